"""Known monoids on whole arrays: reductions along axes, combinations of pairs, combinations at places that repeat.

Everything here computes in the wide type of `accumulation`; callers widen before and narrow after.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from xlalite.hlo.ir.monoid import MonoidKind
from xlalite.hlo.numerics import real
from xlalite.hlo.types.literal import Array

_UFUNCS = {
    MonoidKind.ADD: np.add,
    MonoidKind.MULTIPLY: np.multiply,
    MonoidKind.MAXIMUM: np.maximum,
    MonoidKind.MINIMUM: np.minimum,
    MonoidKind.AND: np.bitwise_and,
    MonoidKind.OR: np.bitwise_or,
    MonoidKind.XOR: np.bitwise_xor,
}

_SIGN_FLIP = np.int64(np.iinfo(np.int64).max)


def reduce_along(kind: MonoidKind, array: Array, axis: int) -> Array:
    """The combination along an axis, which must not be empty."""
    if _has_negative_zero(kind, array):
        return _from_keys(np.asarray(_UFUNCS[kind].reduce(_to_keys(kind, array), axis=axis)), array.dtype)
    # From the first element on: an infinite complex number times NumPy's 1 + 0i would have a part that is NaN.
    return np.asarray(_UFUNCS[kind].reduce(array, axis=axis, initial=None))


def combine_pairs(kind: MonoidKind, lhs: Array, rhs: Array) -> Array:
    """The combination of each two elements."""
    if lhs.dtype.kind == "f" and kind in _ZERO_AWARE:
        return _ZERO_AWARE[kind](lhs, rhs)
    return np.asarray(_UFUNCS[kind](lhs, rhs))


def combine_at_places(kind: MonoidKind, target: Array, places: npt.NDArray[np.int64], updates: Array) -> Array:
    """A vector with updates combined in at places, one after the other."""
    if _has_negative_zero(kind, target) or _has_negative_zero(kind, updates):
        keys = _to_keys(kind, target)
        _UFUNCS[kind].at(keys, places, _to_keys(kind, updates))
        return _from_keys(keys, target.dtype)
    result = target.copy()
    _UFUNCS[kind].at(result, places, updates)
    return result


_ZERO_AWARE = {MonoidKind.MAXIMUM: real.maximum, MonoidKind.MINIMUM: real.minimum}


def _has_negative_zero(kind: MonoidKind, array: Array) -> bool:
    """Whether NumPy, for which -0 and +0 are equal, could keep the wrong one of them in a maximum or minimum."""
    return array.dtype.kind == "f" and kind in _ZERO_AWARE and bool((np.signbit(array) & (array == 0)).any())


def _to_keys(kind: MonoidKind, array: Array) -> npt.NDArray[np.int64]:
    """Integers in the order of the floats, -0 below +0; NaN is what the monoid never replaces."""
    wide = np.ascontiguousarray(array, dtype=np.float64)
    bits = wide.view(np.int64)
    keys = np.where(bits < 0, bits ^ _SIGN_FLIP, bits)
    limits = np.iinfo(np.int64)
    return np.where(np.isnan(wide), limits.max if kind is MonoidKind.MAXIMUM else limits.min, keys).reshape(array.shape)


def _from_keys(keys: npt.NDArray[np.int64], dtype: np.dtype[np.generic]) -> Array:
    bits = np.ascontiguousarray(np.where(keys < 0, keys ^ _SIGN_FLIP, keys))
    return bits.view(np.float64).reshape(keys.shape).astype(dtype)
