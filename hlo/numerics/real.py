"""Real functions that NumPy does not have, or has with other values at the edges."""

from __future__ import annotations

from functools import cache

import numpy as np

from xlalite.hlo.numerics.rounding import AnyArray
from xlalite.hlo.types.dtype import DType


def sign(x: AnyArray) -> AnyArray:
    """-1 or 1; zeros and NaN stay what they are."""
    return np.where((x == 0) | np.isnan(x), x, np.copysign(np.ones_like(x), x))


def round_half_away(x: AnyArray) -> AnyArray:
    """The nearest integer, halves away from zero; the sign of zero stays."""
    whole = np.trunc(x)
    away = np.abs(x - whole) >= 0.5
    return np.copysign(np.where(away, whole + np.copysign(np.ones_like(x), x), whole), x)


def logistic(x: AnyArray) -> AnyArray:
    """1 / (1 + exp(-x)); small results keep their digits."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small))


def power(x: AnyArray, y: AnyArray) -> AnyArray:
    """x^y as in IEEE 754's pow: 1^y = x^0 = 1 even for NaN."""
    if (y == 2).all():
        return np.square(x)  # powers of negative numbers take NumPy 100 times as long
    return np.where((x == 1) | (y == 0), np.ones_like(x), np.power(x, y))


def maximum(x: AnyArray, y: AnyArray) -> AnyArray:
    """The larger number; NaN if either is NaN, and +0 is larger than -0."""
    return np.where((x == y) & (x == 0), np.where(np.signbit(x), y, x), np.maximum(x, y))


def minimum(x: AnyArray, y: AnyArray) -> AnyArray:
    """The smaller number; NaN if either is NaN, and -0 is smaller than +0."""
    return np.where((x == y) & (x == 0), np.where(np.signbit(x), x, y), np.minimum(x, y))


def total_order_keys(x: AnyArray) -> AnyArray:
    """Integers in the total order of the values: -NaN < -inf < ... < -0 < +0 < ... < inf < NaN.

    The fnuz types have one NaN, a negative one, in the place of -0.
    """
    dtype = DType.from_numpy(x.dtype)
    bits = dtype.bits
    spare = np.int64(64 - bits)
    pattern = np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}").astype(np.uint64).view(np.int64).reshape(x.shape)
    if dtype is DType.F8E8M0FNU:  # the one floating-point type without a sign bit
        return pattern
    signed = (pattern << spare) >> spare
    keys = np.where(signed < 0, signed ^ np.int64((1 << (bits - 1)) - 1), signed)
    return np.where(np.isnan(x), np.int64(-(1 << (bits - 1)) - 1), keys) if has_only_negative_nan(dtype) else keys


@cache
def has_only_negative_nan(dtype: DType) -> bool:
    """Whether NaN of a floating-point type is the pattern that is -0 in others, as in the fnuz types."""
    return dtype.bits == 8 and bool(np.isnan(np.array(0x80, np.uint8).view(dtype.numpy)))
