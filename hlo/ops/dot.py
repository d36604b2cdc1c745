"""The product of arrays: dot with any batch and contracting dimensions."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import TypeVar

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Caller, OpDef, Place, ShapeContext
from xlalite.hlo.ops.evaluation.products import product_dtype, product_of
from xlalite.hlo.ops.rules.shapes import array_value, check_dimensions, dynamic_flags
from xlalite.hlo.records import dataclass
from xlalite.hlo.spelling.attributes import attribute
from xlalite.hlo.spelling.codecs import INT_LIST, PRECISION, Precision, enum_codec
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Array, Value
from xlalite.hlo.types.shape import Shape

T = TypeVar("T")


class DotAlgorithm(enum.Enum):
    """What types operands may be rounded to and sums kept in: dot_<lhs>_<rhs>_<accumulator>.

    It allows a processor to compute with less; here, as in XLA on CPUs, products are as precise as without it.
    """

    UNSET = "unset"
    ANY_F8_ANY_F8_F32 = "dot_any_f8_any_f8_f32"
    ANY_F8_ANY_F8_F32_FAST_ACCUM = "dot_any_f8_any_f8_f32_fast_accum"
    ANY_F8_ANY_F8_ANY = "dot_any_f8_any_f8_any"
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = "dot_any_f8_any_f8_any_fast_accum"
    F16_F16_F16 = "dot_f16_f16_f16"
    F16_F16_F32 = "dot_f16_f16_f32"
    BF16_BF16_BF16 = "dot_bf16_bf16_bf16"
    BF16_BF16_F32 = "dot_bf16_bf16_f32"
    BF16_BF16_F32_X3 = "dot_bf16_bf16_f32_x3"
    BF16_BF16_F32_X6 = "dot_bf16_bf16_f32_x6"
    BF16_BF16_F32_X9 = "dot_bf16_bf16_f32_x9"
    TF32_TF32_F32 = "dot_tf32_tf32_f32"
    TF32_TF32_F32_X3 = "dot_tf32_tf32_f32_x3"
    F32_F32_F32 = "dot_f32_f32_f32"
    F64_F64_F64 = "dot_f64_f64_f64"


DOT_ALGORITHM = enum_codec(DotAlgorithm, what="dot algorithm")


@dataclass(frozen=True, slots=True)
class DotAttrs:
    """Which dimensions are paired and kept, paired and summed, and how exactly."""

    lhs_batch_dims: tuple[int, ...] = attribute(INT_LIST, default=())
    lhs_contracting_dims: tuple[int, ...] = attribute(INT_LIST, default=(), print_default=True)
    rhs_batch_dims: tuple[int, ...] = attribute(INT_LIST, default=())
    rhs_contracting_dims: tuple[int, ...] = attribute(INT_LIST, default=(), print_default=True)
    operand_precision: tuple[Precision, ...] = attribute(PRECISION, default=())
    algorithm: DotAlgorithm = attribute(DOT_ALGORITHM, default=DotAlgorithm.UNSET)


def free_dimensions(rank: int, batch: Sequence[int], contracting: Sequence[int]) -> list[int]:
    """The dimensions that are neither batch nor contracting, in order."""
    return [dimension for dimension in range(rank) if dimension not in batch and dimension not in contracting]


def dot_dims(context: ShapeContext, lhs: Shape, rhs: Shape, attrs: DotAttrs) -> list[int]:
    """Sizes of the result: batch, then free dimensions of lhs, then free dimensions of rhs."""
    check_dimensions(context, (*attrs.lhs_batch_dims, *attrs.lhs_contracting_dims), lhs.rank, "lhs dims")
    check_dimensions(context, (*attrs.rhs_batch_dims, *attrs.rhs_contracting_dims), rhs.rank, "rhs dims")
    for what, lhs_dims, rhs_dims in (
        ("batch", attrs.lhs_batch_dims, attrs.rhs_batch_dims),
        ("contracting", attrs.lhs_contracting_dims, attrs.rhs_contracting_dims),
    ):
        if len(lhs_dims) != len(rhs_dims):
            raise context.error(f"lhs has {len(lhs_dims)} {what} dimensions, rhs has {len(rhs_dims)}")
        for a, b in zip(lhs_dims, rhs_dims, strict=True):
            if lhs.dims[a] != rhs.dims[b]:
                raise context.error(
                    f"{what} sizes differ: lhs {lhs.text()} dim {a} is {lhs.dims[a]}, "
                    f"rhs {rhs.text()} dim {b} is {rhs.dims[b]}"
                )
    return _arranged(lhs.dims, rhs.dims, attrs)


def _arranged(lhs: Sequence[T], rhs: Sequence[T], attrs: DotAttrs) -> list[T]:
    """What belongs to each dimension of the result, from what belongs to the dimensions of the operands."""
    return [
        *(lhs[dim] for dim in attrs.lhs_batch_dims),
        *(lhs[dim] for dim in free_dimensions(len(lhs), attrs.lhs_batch_dims, attrs.lhs_contracting_dims)),
        *(rhs[dim] for dim in free_dimensions(len(rhs), attrs.rhs_batch_dims, attrs.rhs_contracting_dims)),
    ]


def _dot_shape(context: ShapeContext) -> Shape:
    lhs, rhs = context.array(0, "lhs"), context.array(1, "rhs")
    dims = dot_dims(context, lhs, rhs, context.attrs)
    dynamic = _arranged(dynamic_flags(lhs), dynamic_flags(rhs), context.attrs)
    return Shape.array(product_dtype(context, lhs.dtype, rhs.dtype), dims, dynamic=dynamic)


def _dot(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    return dot_arrays(array_value(operands[0]), array_value(operands[1]), instruction.attrs, instruction.shape.dtype)


def dot_arrays(lhs: Array, rhs: Array, attrs: DotAttrs, dtype: DType) -> Array:
    """The product of two arrays with the given element type."""
    lhs_free = free_dimensions(lhs.ndim, attrs.lhs_batch_dims, attrs.lhs_contracting_dims)
    rhs_free = free_dimensions(rhs.ndim, attrs.rhs_batch_dims, attrs.rhs_contracting_dims)
    batch_sizes = [lhs.shape[dim] for dim in attrs.lhs_batch_dims]
    m_sizes, n_sizes = [lhs.shape[dim] for dim in lhs_free], [rhs.shape[dim] for dim in rhs_free]
    batch, m, n = math.prod(batch_sizes), math.prod(m_sizes), math.prod(n_sizes)
    k = math.prod(lhs.shape[dim] for dim in attrs.lhs_contracting_dims)
    left = lhs.transpose(*attrs.lhs_batch_dims, *lhs_free, *attrs.lhs_contracting_dims).reshape(batch, m, k)
    right = rhs.transpose(*attrs.rhs_batch_dims, *attrs.rhs_contracting_dims, *rhs_free).reshape(batch, k, n)
    product = product_of(left, right, dtype)
    return product.reshape((*batch_sizes, *m_sizes, *n_sizes))


def _paired_dimensions(instruction: HloInstruction) -> list[tuple[Place, ...]]:
    attrs: DotAttrs = instruction.attrs
    lhs = (*attrs.lhs_batch_dims, *attrs.lhs_contracting_dims)
    rhs = (*attrs.rhs_batch_dims, *attrs.rhs_contracting_dims)
    return [((0, a), (1, b)) for a, b in zip(lhs, rhs, strict=True)]


def dot_flops(instruction: HloInstruction) -> int:
    """A multiplication and an addition for each element of the result and of the contraction."""
    lhs, attrs = instruction.operand(0).shape, instruction.attrs
    k: int = math.prod(lhs.dims[dim] for dim in attrs.lhs_contracting_dims)
    return 2 * instruction.shape.element_count * k


OPS = (
    OpDef(
        "dot",
        "result[b, m, n] = sum over k of lhs[b, m, k] * rhs[b, k, n]",
        2,
        _dot_shape,
        _dot,
        attrs=DotAttrs,
        aligned=_paired_dimensions,
        flops=dot_flops,
    ),
)
