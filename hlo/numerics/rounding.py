"""How values get from one precision to another: widening for computing, and rounding once when storing.

NumPy and ml_dtypes round a double to a narrow type by way of float32, which rounds twice; `round_to` does not.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeAlias

import numpy as np
from ml_dtypes import float4_e2m1fn, float6_e2m3fn, float6_e3m2fn

from xlalite.hlo.types.dtype import DType, Kind

# Arrays of whatever element type; ml_dtypes' types are outside NumPy's own type hierarchy.
AnyArray: TypeAlias = np.ndarray[Any, Any]
ArrayFunction: TypeAlias = Callable[..., AnyArray]

_DIRECT = frozenset(map(np.dtype, (np.float32, np.float64, np.longdouble)))
_WITHOUT_NAN = frozenset(map(np.dtype, (float4_e2m1fn, float6_e2m3fn, float6_e3m2fn)))
_WIDER: dict[np.dtype[Any], np.dtype[Any]] = {
    np.dtype(np.float64): np.dtype(np.longdouble),
    np.dtype(np.complex64): np.dtype(np.complex128),
    np.dtype(np.complex128): np.dtype(np.clongdouble),
}


def wider(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """A type with enough more bits that computing in it and rounding once is nearly always correct rounding.

    That is float64 for everything narrower, and long double for float64 (which is no wider on some platforms; then the
    error is that of the C library).
    """
    return _WIDER.get(dtype, np.dtype(np.float64))


def round_to(values: AnyArray, dtype: np.dtype[Any]) -> AnyArray:
    """The floating-point values in another type: to nearest, ties to even, rounded once.

    Out of range gives what the type has for it: infinity, NaN, or the largest value for types with neither. Types
    without NaN have -0 for it, whatever its sign.
    """
    if values.dtype == dtype:
        return values
    if dtype in _WITHOUT_NAN:
        values = np.where(np.isnan(values), values.dtype.type(np.nan), values)
    if dtype in _DIRECT or values.dtype not in _DIRECT or values.dtype == np.float32:
        return values.astype(dtype)
    return round_to_odd(values).astype(dtype)


def round_to_odd(values: AnyArray) -> AnyArray:
    """Wide values in float32, inexact ones with an odd last bit, so that rounding the result again rounds right."""
    nearest = values.astype(np.float32, order="C")
    with np.errstate(all="ignore"):
        inexact = nearest.astype(values.dtype) != values
        too_far = np.abs(nearest.astype(values.dtype)) > np.abs(values)
    inexact &= ~np.isnan(values)
    bits = nearest.view(np.uint32)
    return np.where(inexact, (bits - (too_far & inexact)) | np.uint32(1), bits).astype(np.uint32).view(np.float32)


def widen_integers(values: AnyArray) -> AnyArray:
    """Integers as float64 that rounds to any type of at most 24 digits as the integers themselves do.

    Integers of more than 53 bits lose low bits; a lost bit is remembered in the last bit kept.
    """
    if values.dtype.itemsize < 8:
        return values.astype(np.float64)
    kept = values & ~values.dtype.type(0x7FF)
    sticky = np.where((values & values.dtype.type(0x7FF)) != 0, values.dtype.type(0x800), values.dtype.type(0))
    small = (values >= 0) & (values < 2**53)
    if values.dtype.kind == "i":
        small |= (values < 0) & (values > -(2**53))
    return np.where(small, values, kept | sticky).astype(np.float64)


def in_own_precision(function: ArrayFunction) -> ArrayFunction:
    """The function for all floating-point types: in f32 and f64 as it is, in narrower types by way of f64.

    For functions that are themselves correctly rounded: the result is correctly rounded in every type.
    """

    @wraps(function)
    def apply(*operands: AnyArray) -> AnyArray:
        dtype = operands[0].dtype
        if dtype.isbuiltin == 1 and dtype != np.float16:
            return np.asarray(function(*operands))
        return round_to(np.asarray(function(*(operand.astype(np.float64) for operand in operands))), dtype)

    return apply


def in_wider_precision(function: ArrayFunction) -> ArrayFunction:
    """The function for all floating-point and complex types, computed in `wider` and rounded once."""

    @wraps(function)
    def apply(*operands: AnyArray) -> AnyArray:
        dtype = operands[0].dtype
        wide = wider(dtype)
        result = np.asarray(function(*(operand.astype(wide) for operand in operands)))
        if dtype.kind == "c":
            return result.astype(dtype if result.dtype.kind == "c" else dtype.type(0).real.dtype)
        return round_to(result, dtype)

    return apply


def in_whole_bytes(function: ArrayFunction) -> ArrayFunction:
    """The function for all integer types: sub-byte types are computed in eight bits, and the result wraps."""

    @wraps(function)
    def apply(*operands: AnyArray) -> AnyArray:
        dtype = operands[0].dtype
        if dtype.isbuiltin == 1:
            return np.asarray(function(*operands))
        byte = np.int8 if DType.from_numpy(dtype).kind is Kind.SIGNED else np.uint8
        return np.asarray(function(*(operand.astype(byte) for operand in operands))).astype(dtype)

    return apply
