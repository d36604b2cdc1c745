"""In which types reductions and products compute before their result is rounded once.

Real floating point computes in f64, complex numbers in c128, integers in 64 bits, pred in itself.
"""

from __future__ import annotations

import numpy as np

from xlalite.hlo.numerics.conversion import convert
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Array


def wide_dtype(dtype: DType) -> np.dtype[np.generic]:
    """The NumPy type that sums and products of an element type are kept in."""
    if dtype.is_floating:
        return np.dtype(np.float64)
    if dtype.is_complex:
        return np.dtype(np.complex128)
    if dtype is DType.PRED:
        return np.dtype(np.bool_)
    return np.dtype(np.uint64 if dtype.is_unsigned else np.int64)


def widen(array: Array, dtype: DType) -> Array:
    """The array in `wide_dtype(dtype)`; exact when its own type fits into `dtype`."""
    return array.astype(wide_dtype(dtype), copy=False)


def narrow(array: Array, dtype: DType) -> Array:
    """The array in an element type: floats rounded once to nearest even, integers wrapped."""
    with np.errstate(all="ignore"):
        # Of arrays without dimensions NumPy makes scalars now and then.
        return np.asarray(convert(array, dtype))
