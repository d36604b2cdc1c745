"""Values for constants whose text leaves them out: small numbers that depend on nothing but the shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape

_BLOCK = 1 << 16


def pseudo_array(shape: Shape) -> npt.NDArray[Any]:
    """The values of an array's shape; made block by block, so that only the result takes memory."""
    values = np.empty(shape.element_count, shape.dtype.numpy)
    for start in range(0, values.size, _BLOCK):
        block = values[start : start + _BLOCK]
        block[...] = _numbers(start, block.size, shape.dtype).astype(shape.dtype.numpy)
    return values.reshape(shape.dims)


def _numbers(start: int, count: int, dtype: DType) -> npt.NDArray[Any]:
    mixed = np.arange(start, start + count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x1234567)
    fraction = (mixed >> np.uint64(40)).astype(np.float64) / (1 << 24)
    if dtype is DType.PRED:
        return np.asarray(fraction < 0.5)
    if dtype.is_integral:
        low = -min(8, 1 << (dtype.bits - 1)) if dtype.is_signed else 0
        high = min(8, (1 << (dtype.bits - dtype.is_signed)) - 1)
        return np.floor(low + fraction * (high - low + 1))
    if dtype is DType.F8E8M0FNU:
        return fraction + 0.5
    return fraction * 2 - 1
