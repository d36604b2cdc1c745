"""Pieces of HLO that many lowerings share: NumPy's broadcasting, and reductions with kept dimensions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from xlalite.hlo.building.broadcasting import broadcast_dims
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.ir.monoid import MonoidKind, monoid_identity
from xlalite.hlo.types.dtype import DType as HloDType

_WIDER_ACCUMULATOR = {HloDType.F16: HloDType.F32, HloDType.BF16: HloDType.F32}


def broadcast_to(b: Builder, x: Handle, dims: Sequence[int]) -> Handle:
    """`x` at larger sizes by NumPy's rules: dimensions align at the end, sizes of 1 repeat."""
    return b.broadcast_in_dim(x, dims, range(len(dims) - len(x.dims), len(dims)))


def broadcast_pair(b: Builder, x: Handle, y: Handle) -> tuple[Handle, Handle]:
    """Both operands at their common sizes."""
    dims = broadcast_dims(x.dims, y.dims)
    return broadcast_to(b, x, dims), broadcast_to(b, y, dims)


def reduce_axes(
    b: Builder, x: Handle, opcode: str, identity: npt.ArrayLike, axes: Sequence[int], keep_dims: bool
) -> Handle:
    """Reduction along `axes`; half-precision sums and products are accumulated in f32."""
    order = sorted(axes)
    wide = accumulator_type(x.dtype) if opcode in ("add", "multiply") else x.dtype
    operand = b.convert(x, wide)
    start = b.constant(np.asarray(identity).astype(wide.numpy), wide)
    reduced = b.convert(b.reduce(operand, start, order, opcode), x.dtype) if order else x
    return b.reshape(reduced, [1 if i in order else size for i, size in enumerate(x.dims)]) if keep_dims else reduced


def accumulator_type(dtype: HloDType) -> HloDType:
    """The type in which sums of `dtype` are formed."""
    return _WIDER_ACCUMULATOR.get(dtype, dtype)


def sum_axes(b: Builder, x: Handle, axes: Sequence[int], keep_dims: bool = False) -> Handle:
    """Sum along `axes`."""
    return reduce_axes(b, x, "add", 0, axes, keep_dims)


def max_axes(b: Builder, x: Handle, axes: Sequence[int], keep_dims: bool = False) -> Handle:
    """Largest value along `axes`; NaN if there is one."""
    return reduce_axes(b, x, "maximum", monoid_identity(MonoidKind.MAXIMUM, x.dtype), axes, keep_dims)


def zeros_like(b: Builder, x: Handle) -> Handle:
    """Zeros of the type and sizes of `x`."""
    return b.full(0, x.dtype, x.dims)
