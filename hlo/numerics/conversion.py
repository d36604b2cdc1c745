"""Conversions between any two element types."""

from __future__ import annotations

import numpy as np

from xlalite.hlo.numerics.rounding import AnyArray, round_to, widen_integers
from xlalite.hlo.types.dtype import DType, Kind


def convert(values: AnyArray, target: DType) -> AnyArray:
    """The values in another element type.

    Floating point to integer truncates toward zero and saturates, NaN becomes 0; integers wrap; everything to floating
    point rounds once, ties to even; to pred is `!= 0`. Complex becomes complex only.
    """
    source = DType.from_numpy(values.dtype)
    if source is target:
        return values
    if target is DType.PRED:
        return np.not_equal(_as_native(values, source), 0)
    if source is DType.PRED:
        return values.astype(np.int8).astype(target.numpy)
    if target.is_complex:
        return _to_complex(values, source, target)
    if target.is_integral:
        return wrap(values, target) if source.is_integral else saturate(values, target)
    if source.is_integral:
        return _integers_to_float(_as_native(values, source), target)
    if values.dtype in (np.float32, np.float64):
        return round_to(values, target.numpy)
    return round_to(values.astype(np.float64), target.numpy)


def wrap(values: AnyArray, target: DType) -> AnyArray:
    """Integers in another integer type: low bits are kept, and signed results sign-extended."""
    source = DType.from_numpy(values.dtype)
    native = _as_native(values, source)
    if target.bits >= 8:
        return native.astype(target.numpy)
    spare = 8 - target.bits
    octets = native.astype(np.uint8) << np.uint8(spare)
    if target.is_signed:
        return (octets.view(np.int8) >> np.int8(spare)).astype(target.numpy)
    return (octets >> np.uint8(spare)).astype(target.numpy)


def saturate(values: AnyArray, target: DType) -> AnyArray:
    """Real floating-point values in an integer type: truncated toward zero, limited to the type's range, NaN as 0."""
    wide = np.trunc(values.astype(np.float64))
    lowest, highest = integer_range(target)
    storage = np.int64 if target.is_signed else np.uint64
    too_high, too_low = wide >= float(highest + 1), wide < float(lowest)
    inside = np.where(too_high | too_low | np.isnan(wide), 0.0, wide).astype(storage)
    result = np.where(too_high, storage(highest), np.where(too_low, storage(lowest), inside))
    return wrap(result, target)


def integer_range(dtype: DType) -> tuple[int, int]:
    """The smallest and the largest integer of a type."""
    if dtype.kind is Kind.SIGNED:
        return -(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1
    return 0, (1 << dtype.bits) - 1


def _as_native(values: AnyArray, source: DType) -> AnyArray:
    """Types that NumPy does not have itself, in the smallest of its own that holds them."""
    if values.dtype.isbuiltin == 1:
        return values
    if source.is_floating:
        return values.astype(np.float32)
    return values.astype(np.int8 if source.is_signed else np.uint8)


def _integers_to_float(values: AnyArray, target: DType) -> AnyArray:
    if target in (DType.F32, DType.F64):
        return values.astype(target.numpy)
    return round_to(widen_integers(values), target.numpy)


def _to_complex(values: AnyArray, source: DType, target: DType) -> AnyArray:
    if source.is_complex:
        return values.astype(target.numpy)
    from xlalite.hlo.numerics.complex_functions import combine

    real = convert(values, target.component)
    return combine(real, np.zeros_like(real))
