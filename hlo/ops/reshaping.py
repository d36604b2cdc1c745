"""Operations that make or rearrange arrays without arithmetic: iota, broadcast, reshape, transpose, reverse."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Caller, Memory, OpDef, ShapeContext, Trait
from xlalite.hlo.ops.rules.shapes import array_value, check_dimensions, dynamic_flags
from xlalite.hlo.records import dataclass
from xlalite.hlo.spelling.attributes import attribute
from xlalite.hlo.spelling.codecs import INT, INT_LIST
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Array, Value
from xlalite.hlo.types.shape import Shape


@dataclass(frozen=True, slots=True)
class IotaAttrs:
    """The dimension along which the values count."""

    iota_dimension: int = attribute(INT)


def _iota_shape(context: ShapeContext) -> Shape:
    shape = context.declared_array()
    context.require(shape.dtype is not DType.PRED, "pred has no iota")
    context.require(shape.rank > 0, "the result must have at least one dimension")
    check_dimensions(context, (context.attrs.iota_dimension,), shape.rank, "iota_dimension")
    return shape


def _iota(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    shape, dimension = instruction.shape, instruction.attrs.iota_dimension
    from xlalite.hlo.ops.evaluation.accumulation import narrow

    line = narrow(np.arange(shape.dims[dimension], dtype=np.int64), shape.dtype)
    sizes = [1] * shape.rank
    sizes[dimension] = shape.dims[dimension]
    return np.broadcast_to(line.reshape(sizes), shape.dims)


@dataclass(frozen=True, slots=True)
class BroadcastAttrs:
    """Operand dimension i becomes result dimension dimensions[i]."""

    dimensions: tuple[int, ...] = attribute(INT_LIST, default=(), print_default=True)


def _broadcast_shape(context: ShapeContext) -> Shape:
    operand, result = context.array(0), context.declared_array()
    dimensions: tuple[int, ...] = context.attrs.dimensions
    if operand.dtype is not result.dtype:
        raise context.error(
            f"the operand's element type is {operand.dtype.value}, the result's is {result.dtype.value}"
        )
    if len(dimensions) != operand.rank:
        raise context.error(f"dimensions has {len(dimensions)} entries for an operand of rank {operand.rank}")
    check_dimensions(context, dimensions, result.rank, "dimensions")
    for position, dimension in enumerate(dimensions):
        if operand.dims[position] != result.dims[dimension]:
            raise context.error(
                f"operand dimension {position} is {operand.dims[position]}, result dimension {dimension} is "
                f"{result.dims[dimension]} (sizes of 1 are not stretched; reshape first)"
            )
    return result


def _broadcast(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    operand = array_value(operands[0])
    dimensions, dims = instruction.attrs.dimensions, list(instruction.shape.dims)
    sizes = [1] * len(dims)
    for size, dimension in zip(operand.shape, dimensions, strict=True):
        sizes[dimension] = dims[dimension] = size
    order = sorted(range(len(dimensions)), key=lambda position: dimensions[position])
    return np.broadcast_to(operand.transpose(order).reshape(sizes), dims)


@dataclass(frozen=True, slots=True)
class ReshapeAttrs:
    """Which result dimension takes what remains of a dynamic shape; -1 when none is named."""

    inferred_dimension: int = attribute(INT, default=-1)


def _reshape_shape(context: ShapeContext) -> Shape:
    operand, result = context.array(0), context.declared_array()
    if operand.dtype is not result.dtype:
        raise context.error(
            f"the operand's element type is {operand.dtype.value}, the result's is {result.dtype.value}"
        )
    if operand.element_count != result.element_count:
        raise context.error(
            f"{result.text()} has {result.element_count} elements, the operand has {operand.element_count}"
        )
    inferred = context.attrs.inferred_dimension
    if not (-1 <= inferred < result.rank):
        raise context.error(f"inferred_dimension {inferred} is no dimension of {result.text()}")
    return result


def _reshape(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    operand, shape = array_value(operands[0]), instruction.shape
    if operand.size == shape.element_count:
        return operand.reshape(shape.dims)
    return operand.reshape(_dynamic_sizes(operand, shape, instruction.attrs.inferred_dimension))


def _dynamic_sizes(operand: Array, shape: Shape, inferred: int) -> list[int]:
    """Sizes of a result whose bounds exceed the actual size of the operand: one dimension takes the difference."""
    dynamic = [dim for dim, flag in enumerate(shape.dynamic) if flag]
    sizes = list(shape.dims)
    sizes[inferred if inferred >= 0 else (dynamic or [0])[0]] = -1
    return sizes


@dataclass(frozen=True, slots=True)
class TransposeAttrs:
    """Result dimension i is operand dimension dimensions[i]."""

    dimensions: tuple[int, ...] = attribute(INT_LIST)


def _transpose_shape(context: ShapeContext) -> Shape:
    operand, dimensions = context.array(0), context.attrs.dimensions
    if sorted(dimensions) != list(range(operand.rank)):
        raise context.error(
            f"dimensions {list(dimensions)} is no permutation of the operand's {operand.rank} dimensions"
        )
    return Shape.array(
        operand.dtype,
        [operand.dims[dimension] for dimension in dimensions],
        dynamic=[dynamic_flags(operand)[dimension] for dimension in dimensions],
    )


def _transpose(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    return array_value(operands[0]).transpose(instruction.attrs.dimensions)


@dataclass(frozen=True, slots=True)
class ReverseAttrs:
    """The dimensions along which the order is turned round."""

    dimensions: tuple[int, ...] = attribute(INT_LIST)


def _reverse_shape(context: ShapeContext) -> Shape:
    operand = context.array(0)
    check_dimensions(context, context.attrs.dimensions, operand.rank, "dimensions")
    return operand


def _reverse(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    return np.flip(array_value(operands[0]), instruction.attrs.dimensions)


OPS = (
    OpDef(
        "iota",
        "result[i] = i[iota_dimension]",
        0,
        _iota_shape,
        _iota,
        attrs=IotaAttrs,
        traits=Trait.DATA_MOVEMENT,
        explicit_shape=True,
    ),
    OpDef(
        "broadcast",
        "result[i] = x[i[dimensions]]",
        1,
        _broadcast_shape,
        _broadcast,
        attrs=BroadcastAttrs,
        traits=Trait.DATA_MOVEMENT,
        explicit_shape=True,
    ),
    OpDef(
        "reshape",
        "the same elements in row-major order with other sizes",
        1,
        _reshape_shape,
        _reshape,
        attrs=ReshapeAttrs,
        traits=Trait.DATA_MOVEMENT,
        memory=Memory.NAMES_OPERAND,
        explicit_shape=True,
    ),
    OpDef(
        "transpose",
        "result[i] = x[j] with j[dimensions[d]] = i[d]",
        1,
        _transpose_shape,
        _transpose,
        attrs=TransposeAttrs,
        traits=Trait.DATA_MOVEMENT,
    ),
    OpDef(
        "reverse",
        "result[i] = x[size - 1 - i] along dimensions",
        1,
        _reverse_shape,
        _reverse,
        attrs=ReverseAttrs,
        traits=Trait.DATA_MOVEMENT,
    ),
)
