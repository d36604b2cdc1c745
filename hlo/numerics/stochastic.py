"""Stochastic rounding: to one of the two neighbours, the nearer the likelier."""

from __future__ import annotations

import numpy as np

from xlalite.hlo.numerics.conversion import saturate
from xlalite.hlo.numerics.rounding import AnyArray, round_to
from xlalite.hlo.types.dtype import DType


def stochastic_convert(values: AnyArray, random: AnyArray, target: DType) -> AnyArray:
    """Floating-point values in a type with fewer digits.

    With f the position of |x| between its neighbours toward zero (0) and away from it (1), the result is the one away
    from zero where random < floor(f * 2^w), w being the width of the random numbers. Integers saturate, NaN becomes 0.
    """
    wide = values.astype(np.float64)
    return _to_integers(wide, random, target) if target.is_integral else _to_floats(wide, random, target)


def _to_integers(x: AnyArray, random: AnyArray, target: DType) -> AnyArray:
    size = np.abs(x)
    whole = np.trunc(size)
    away = _goes_away(size - whole, random)
    return saturate(np.copysign(whole + away, x), target)


def _to_floats(x: AnyArray, random: AnyArray, target: DType) -> AnyArray:
    nearest = round_to(x, target.numpy)
    pattern = nearest.view(f"u{target.size_bytes}")
    one = pattern.dtype.type(1)
    too_far = np.abs(nearest.astype(np.float64)) > np.abs(x)
    toward_zero = np.where(too_far, pattern - one, pattern)
    away_from_zero = toward_zero + one
    low, high = (np.abs(side.view(target.numpy).astype(np.float64)) for side in (toward_zero, away_from_zero))
    inside = np.isfinite(low) & np.isfinite(high) & (low < np.abs(x)) & (np.abs(x) < high)
    away = _goes_away(np.where(inside, (np.abs(x) - low) / (high - low), 0.0), random)
    chosen = np.where(inside, np.where(away, away_from_zero, toward_zero), pattern)
    return chosen.astype(pattern.dtype).view(target.numpy)


def _goes_away(fraction: AnyArray, random: AnyArray) -> AnyArray:
    """Whether random < floor(fraction * 2^w); fractions are below 1, so the product fits the random numbers' type."""
    threshold = np.where(np.isfinite(fraction), np.ldexp(fraction, random.dtype.itemsize * 8), 0.0)
    below: AnyArray = np.less(random, threshold.astype(random.dtype))
    return below
