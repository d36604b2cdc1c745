"""Products with groups or scales: ragged-dot, scaled-dot."""

from __future__ import annotations

import enum
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Caller, OpDef, ShapeContext
from xlalite.hlo.ops.dot import DotAttrs, dot_arrays, dot_dims, dot_flops, free_dimensions
from xlalite.hlo.ops.evaluation.products import product_dtype
from xlalite.hlo.ops.rules.shapes import array_value, check_dimensions
from xlalite.hlo.records import dataclass
from xlalite.hlo.spelling.attributes import attribute
from xlalite.hlo.spelling.codecs import INT_LIST, PRECISION, Precision
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Array, Value
from xlalite.hlo.types.shape import Shape


class RaggedMode(enum.Enum):
    """What kind of dimension is cut into groups."""

    FREE = "free"
    """[b, m, k] x [g, b, k, n] -> [b, m, n]: each group of rows has its own rhs."""
    CONTRACTING = "contracting"
    """[b, m, k] x [b, k, n] -> [g, b, m, n]: each group of terms gives its own result."""
    BATCH = "batch"
    """[b, m, k] x [b, k, n] -> [b, m, n]: groups change nothing."""


@dataclass(frozen=True, slots=True)
class RaggedDotAttrs:
    """Dimension numbers of a dot, with a grouped dimension of lhs and perhaps one of rhs that counts groups."""

    lhs_batch_dims: tuple[int, ...] = attribute(INT_LIST, default=())
    lhs_contracting_dims: tuple[int, ...] = attribute(INT_LIST, default=(), print_default=True)
    rhs_batch_dims: tuple[int, ...] = attribute(INT_LIST, default=())
    rhs_contracting_dims: tuple[int, ...] = attribute(INT_LIST, default=(), print_default=True)
    operand_precision: tuple[Precision, ...] = attribute(PRECISION, default=())
    lhs_ragged_dims: tuple[int, ...] = attribute(INT_LIST, default=(), print_default=True)
    rhs_group_dims: tuple[int, ...] = attribute(INT_LIST, default=())

    @property
    def mode(self) -> RaggedMode:
        """What kind of dimension is cut into groups."""
        if self.lhs_ragged_dims[0] in self.lhs_batch_dims:
            return RaggedMode.BATCH
        contracting = self.lhs_ragged_dims[0] in self.lhs_contracting_dims
        return RaggedMode.CONTRACTING if contracting else RaggedMode.FREE

    @property
    def plain(self) -> DotAttrs:
        """The dimension numbers of the dot of one group, in which rhs has no group dimension."""
        group = self.rhs_group_dims[0] if self.rhs_group_dims else np.inf
        return DotAttrs(
            self.lhs_batch_dims,
            self.lhs_contracting_dims,
            tuple(dim - (dim > group) for dim in self.rhs_batch_dims),
            tuple(dim - (dim > group) for dim in self.rhs_contracting_dims),
            self.operand_precision,
        )


def outer_dims(attrs: RaggedDotAttrs, lhs_rank: int) -> list[int]:
    """The dimensions of lhs that group sizes may vary along: those outside the ragged one, of its own kind or batch."""
    ragged = attrs.lhs_ragged_dims[0]
    if attrs.mode is RaggedMode.BATCH:
        return list(attrs.lhs_batch_dims[: attrs.lhs_batch_dims.index(ragged)])
    if attrs.mode is RaggedMode.CONTRACTING:
        return [*attrs.lhs_batch_dims, *attrs.lhs_contracting_dims[: attrs.lhs_contracting_dims.index(ragged)]]
    free = free_dimensions(lhs_rank, attrs.lhs_batch_dims, attrs.lhs_contracting_dims)
    return [*attrs.lhs_batch_dims, *free[: free.index(ragged)]]


def _ragged_dot_shape(context: ShapeContext) -> Shape:
    lhs, rhs, sizes = context.array(0, "lhs"), context.array(1, "rhs"), context.array(2, "group sizes")
    attrs: RaggedDotAttrs = context.attrs
    context.require(
        len(attrs.lhs_ragged_dims) == 1 and 0 <= attrs.lhs_ragged_dims[0] < lhs.rank,
        f"lhs_ragged_dims must name one dimension of lhs, found {list(attrs.lhs_ragged_dims)}",
    )
    mode = attrs.mode
    context.require(
        len(attrs.rhs_group_dims) == (1 if mode is RaggedMode.FREE else 0)
        and all(0 <= dim < rhs.rank for dim in attrs.rhs_group_dims),
        f"a ragged {mode.value} dimension needs {1 if mode is RaggedMode.FREE else 0} rhs_group_dims, "
        f"found {list(attrs.rhs_group_dims)}",
    )
    check_dimensions(context, (*attrs.lhs_batch_dims, *attrs.lhs_contracting_dims), lhs.rank, "lhs dims")
    of_rhs = (*attrs.rhs_batch_dims, *attrs.rhs_contracting_dims, *attrs.rhs_group_dims)
    check_dimensions(context, of_rhs, rhs.rank, "rhs dims")
    context.require(sizes.dtype.is_integral and sizes.rank >= 1, f"group sizes must be integers, found {sizes.text()}")
    outer = tuple(lhs.dims[dim] for dim in outer_dims(attrs, lhs.rank))
    context.require(
        sizes.rank == 1 or sizes.dims[:-1] == outer,
        f"group sizes must have sizes [g] or {[*outer, 'g']}, found {list(sizes.dims)}",
    )
    groups = sizes.dims[-1]
    for dim in attrs.rhs_group_dims:
        context.require(rhs.dims[dim] == groups, f"rhs has {rhs.dims[dim]} groups, the group sizes {groups}")
    one_rhs = Shape.array(rhs.dtype, [size for dim, size in enumerate(rhs.dims) if dim not in attrs.rhs_group_dims])
    dims = dot_dims(context, lhs, one_rhs, attrs.plain)
    return Shape.array(
        product_dtype(context, lhs.dtype, rhs.dtype), [groups, *dims] if mode is RaggedMode.CONTRACTING else dims
    )


def _ragged_dot(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    """Elements of the ragged dimension beyond the sum of the group sizes belong to no group; their results are zero.

    A negative size counts as zero.
    """
    attrs: RaggedDotAttrs = instruction.attrs
    lhs, rhs, sizes = (array_value(operand) for operand in operands)
    dtype = instruction.shape.dtype
    if attrs.mode is RaggedMode.BATCH:
        return dot_arrays(lhs, rhs, attrs.plain, dtype)
    groups = _group_numbers(lhs, sizes, attrs)
    result = np.zeros(instruction.shape.dims, dtype.numpy)
    for group in range(sizes.shape[-1]):
        member = groups == group
        if attrs.mode is RaggedMode.FREE:
            product = dot_arrays(lhs, np.take(rhs, group, axis=attrs.rhs_group_dims[0]), attrs.plain, dtype)
            # The result starts with the dimensions that the group numbers have.
            rows = member.reshape(*member.shape, *(1,) * (product.ndim - member.ndim))
            np.copyto(result, product, where=rows)
        else:
            result[group] = _dot_of_members(lhs, rhs, member, attrs, dtype)
    return result


def _group_numbers(lhs: Array, sizes: Array, attrs: RaggedDotAttrs) -> npt.NDArray[np.int64]:
    """For each element of the ragged dimension, and of those outside it, the number of the group it lies in."""
    positions = np.arange(lhs.shape[attrs.lhs_ragged_dims[0]])
    # No group is larger than all, so that sums do not wrap around.
    ends = np.cumsum(np.clip(sizes.astype(np.float64), 0, len(positions)).astype(np.int64), axis=-1)
    numbers = (positions[:, np.newaxis] >= ends[..., np.newaxis, :]).sum(axis=-1)
    outer = [lhs.shape[dim] for dim in outer_dims(attrs, lhs.ndim)]
    return np.broadcast_to(numbers, (*outer, len(positions)))


def _dot_of_members(
    lhs: Array, rhs: Array, member: npt.NDArray[np.bool_], attrs: RaggedDotAttrs, dtype: DType
) -> Array:
    """The dot over those elements of the contracting dimension that are members; the others count as zero."""
    lhs_dims = [*outer_dims(attrs, lhs.ndim), attrs.lhs_ragged_dims[0]]
    partner = dict(
        zip(
            (*attrs.lhs_batch_dims, *attrs.lhs_contracting_dims),
            (*attrs.rhs_batch_dims, *attrs.rhs_contracting_dims),
            strict=True,
        )
    )
    left = np.where(_spread(member, lhs_dims, lhs.ndim), lhs, np.zeros_like(lhs))
    right = np.where(_spread(member, [partner[dim] for dim in lhs_dims], rhs.ndim), rhs, np.zeros_like(rhs))
    return dot_arrays(left, right, attrs.plain, dtype)


def _spread(member: npt.NDArray[np.bool_], dims: Sequence[int], rank: int) -> npt.NDArray[np.bool_]:
    """An array of the given rank whose dimensions `dims` are those of `member`; the others have size 1."""
    order = sorted(range(len(dims)), key=lambda position: dims[position])
    sizes = [1] * rank
    for position, dim in enumerate(dims):
        sizes[dim] = member.shape[position]
    return member.transpose(order).reshape(sizes)


def _scaled_dot_shape(context: ShapeContext) -> Shape:
    lhs, rhs = context.array(0, "lhs"), context.array(1, "rhs")
    for position, operand in ((2, lhs), (3, rhs)):
        scale = context.array(position, "scale")
        context.require(
            scale.is_scalar
            or (
                scale.rank == operand.rank
                and all(b > 0 and a % b == 0 for a, b in zip(operand.dims, scale.dims, strict=True))
            ),
            f"scale {scale.text()} must be a scalar or divide each dimension of {operand.text()}",
        )
        context.require(scale.dtype.is_floating, f"scales must be floating-point, found {scale.dtype.value}")
    context.require(
        lhs.dtype.is_floating and rhs.dtype.is_floating,
        f"element types {lhs.dtype.value} and {rhs.dtype.value} must be floating-point",
    )
    return Shape.array(product_dtype(context, lhs.dtype, rhs.dtype), dot_dims(context, lhs, rhs, context.attrs))


def _scaled(operand: Array, scale: Array) -> Array:
    """Each block of the operand times its scale, in f64, where the product is exact."""
    wide = scale.astype(np.float64)
    for dim in range(wide.ndim):
        wide = np.repeat(wide, operand.shape[dim] // wide.shape[dim], axis=dim)
    return operand.astype(np.float64) * wide


def _scaled_dot(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    lhs, rhs, lhs_scale, rhs_scale = (array_value(operand) for operand in operands)
    with np.errstate(all="ignore"):
        left, right = _scaled(lhs, lhs_scale), _scaled(rhs, rhs_scale)
    return dot_arrays(left, right, instruction.attrs, instruction.shape.dtype)


OPS = (
    OpDef(
        "ragged-dot",
        "a dot in which each group of a dimension of lhs has its own rhs or its own result",
        3,
        _ragged_dot_shape,
        _ragged_dot,
        attrs=RaggedDotAttrs,
        flops=dot_flops,
    ),
    OpDef(
        "scaled-dot",
        "dot(lhs * lhs_scale, rhs * rhs_scale), with one scale for each block of an operand",
        4,
        _scaled_dot_shape,
        _scaled_dot,
        attrs=DotAttrs,
        flops=dot_flops,
    ),
)
