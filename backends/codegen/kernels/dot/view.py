"""A dot of any dimension numbers seen as a batch of matrix products, without moving data.

[batch][m][k] x [batch][k][n] -> [batch][m][n], where m, n and k may each stand for several dimensions as long as one
stride walks through them. The result is row-major.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xlalite.backends.codegen.arrays.index import row_major_strides
from xlalite.backends.codegen.kernels.dot.packed_operand import packed_rhs
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.dot import DotAttrs, free_dimensions


@dataclass(frozen=True, slots=True)
class Matrix:
    """One operand.

    Attributes:
        outer: Stride of the dimension that the result keeps, in elements.
        depth: Stride of the contracted dimension.
        batch: Strides of the batch dimensions.
        panel: How many positions along the outer dimension lie beside each other; 0 if all are one stride apart.
        panel_size: Elements from one panel to the next.
    """

    outer: int
    depth: int
    batch: tuple[int, ...]
    panel: int = 0
    panel_size: int = 0

    @property
    def spacing(self) -> int:
        """Distance of positions that are whole panels apart, for each position between them."""
        return self.panel_size // self.panel if self.panel else self.outer


@dataclass(frozen=True, slots=True)
class DotView:
    """A batch of matrix products.

    Attributes:
        batch: Sizes of the batch dimensions.
        m: Rows of the result.
        n: Columns of the result.
        k: Terms of a sum.
        lhs: The left operand; `outer` is the stride of m.
        rhs: The right operand; `outer` is the stride of n.
    """

    batch: tuple[int, ...]
    m: int
    n: int
    k: int
    lhs: Matrix
    rhs: Matrix

    @property
    def batch_count(self) -> int:
        """Number of products."""
        return math.prod(self.batch)

    def swapped(self) -> DotView:
        """The product of the transposed operands, which gives the transposed result."""
        return DotView(self.batch, self.n, self.m, self.k, self.rhs, self.lhs)


def why_not_viewable(dot: HloInstruction) -> str | None:
    """Why a dot is not a batch of matrix products as its operands lie; None if it is one."""
    return None if _strides(dot) is not None else "dimensions that lie apart would have to be walked by one stride"


def view_of(dot: HloInstruction) -> DotView:
    """The view of a dot; see `why_not_viewable`."""
    strides = _strides(dot)
    assert strides is not None, "the caller asked whether there is a view"
    lhs, rhs = strides
    attrs: DotAttrs = dot.attrs
    left, right = dot.operand(0).shape.dims, dot.operand(1).shape.dims
    lhs_free = free_dimensions(len(left), attrs.lhs_batch_dims, attrs.lhs_contracting_dims)
    rhs_free = free_dimensions(len(right), attrs.rhs_batch_dims, attrs.rhs_contracting_dims)
    return DotView(
        tuple(left[d] for d in attrs.lhs_batch_dims),
        math.prod(left[d] for d in lhs_free),
        math.prod(right[d] for d in rhs_free),
        math.prod(left[d] for d in attrs.lhs_contracting_dims),
        lhs,
        rhs,
    )


def _strides(dot: HloInstruction) -> tuple[Matrix, Matrix] | None:
    attrs: DotAttrs = dot.attrs
    lhs = _matrix(dot.operand(0).shape.dims, attrs.lhs_batch_dims, attrs.lhs_contracting_dims)
    packed = packed_rhs(dot)
    if packed is not None:
        packing, _ = packed
        rhs: Matrix | None = Matrix(1, packing.width, (), packing.width, packing.k * packing.width)
    else:
        rhs = _matrix(dot.operand(1).shape.dims, attrs.rhs_batch_dims, attrs.rhs_contracting_dims)
    return None if lhs is None or rhs is None else (lhs, rhs)


def _matrix(dims: tuple[int, ...], batch: Sequence[int], contracting: Sequence[int]) -> Matrix | None:
    strides = row_major_strides(dims)
    outer = _joint_stride(dims, strides, free_dimensions(len(dims), batch, contracting))
    depth = _joint_stride(dims, strides, contracting)
    if outer is None or depth is None:
        return None
    return Matrix(outer, depth, tuple(strides[d] for d in batch))


def _joint_stride(dims: tuple[int, ...], strides: tuple[int, ...], run: Sequence[int]) -> int | None:
    """The stride that walks through dimensions in the given order; None if there is none, 0 if there is one element."""
    joint, covered = 0, 1
    for d in reversed(run):
        if dims[d] == 1:
            continue
        if joint and strides[d] != joint * covered:
            return None
        joint = joint or strides[d]
        covered *= dims[d]
    return joint
