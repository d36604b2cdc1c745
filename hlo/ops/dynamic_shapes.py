"""Sizes that are known only at run time: get-dimension-size, set-dimension-size, dynamic-reshape.

A value whose shape has dynamic dimensions is, for the evaluator, an array of the actual sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from xlalite.hlo.errors import EvaluationError
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Caller, OpDef, ShapeContext, Trait
from xlalite.hlo.ops.rules.shapes import array_value, check_dimensions
from xlalite.hlo.records import dataclass
from xlalite.hlo.spelling.attributes import attribute
from xlalite.hlo.spelling.codecs import INT_LIST
from xlalite.hlo.surroundings.custom_calls import custom_call
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Value
from xlalite.hlo.types.shape import Shape


@dataclass(frozen=True, slots=True)
class DimensionSizeAttrs:
    """The one dimension whose size is asked for or set."""

    dimensions: tuple[int, ...] = attribute(INT_LIST)

    @property
    def dimension(self) -> int:
        """The only entry of `dimensions`."""
        return self.dimensions[0]


def _one_dimension(context: ShapeContext) -> Shape:
    operand = context.array(0)
    context.require(len(context.attrs.dimensions) == 1, "dimensions must have exactly one entry")
    check_dimensions(context, context.attrs.dimensions, operand.rank, "dimensions")
    return operand


def _get_shape(context: ShapeContext) -> Shape:
    _one_dimension(context)
    return Shape.array(DType.S32)


def _get(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    return np.asarray(array_value(operands[0]).shape[instruction.attrs.dimension], np.int32)


def _set_shape(context: ShapeContext) -> Shape:
    operand, size = _one_dimension(context), context.array(1, "size")
    context.require(size.is_scalar and size.dtype is DType.S32, f"the size must be s32[], found {size.text()}")
    flags = list(operand.dynamic or (False,) * operand.rank)
    flags[context.attrs.dimension] = True
    dynamic = replace(operand, dynamic=tuple(flags))
    # A size that is known to be the bound leaves the dimension static; then the text says so.
    static = replace(operand, dynamic=())
    declared = context.declared
    return static if declared is not None and declared.compatible(static) else dynamic


def _set(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    """Elements beyond the former size, which have no defined value, are zero."""
    operand, size, axis = array_value(operands[0]), int(array_value(operands[1])), instruction.attrs.dimension
    bound = instruction.shape.dims[axis]
    if not 0 <= size <= bound:
        raise EvaluationError(f"set-dimension-size: size {size} of dimension {axis} is not in [0, {bound}]")
    if instruction.shape.is_dynamic or size == bound:
        kept = operand[(slice(None),) * axis + (slice(0, size),)]
        missing = size - kept.shape[axis]
        return np.pad(kept, [(0, missing if dim == axis else 0) for dim in range(kept.ndim)]) if missing else kept
    raise EvaluationError(f"set-dimension-size: size {size} for dimension {axis}, which is declared static")


def _dynamic_reshape_shape(context: ShapeContext) -> Shape:
    context.require(len(context.operands) >= 1, "the operand is missing")
    operand, result = context.array(0), context.declared_array()
    context.require(
        operand.dtype is result.dtype,
        f"the operand's element type is {operand.dtype.value}, the result's is {result.dtype.value}",
    )
    sizes = [context.array(position, "size") for position in range(1, len(context.operands))]
    context.require(
        len(sizes) == result.rank and all(size.is_scalar and size.dtype is DType.S32 for size in sizes),
        f"needs one s32[] size for each of the {result.rank} dimensions of {result.text()}",
    )
    context.require(
        operand.element_count == result.element_count,
        f"{result.text()} has {result.element_count} elements, the operand has {operand.element_count}",
    )
    return result


def _dynamic_reshape(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    operand = array_value(operands[0])
    sizes = [int(array_value(size)) for size in operands[1:]]
    if min(sizes, default=0) < 0 or int(np.prod(sizes, dtype=np.int64)) != operand.size:
        raise EvaluationError(f"dynamic-reshape: {operand.size} elements cannot have the sizes {sizes}")
    return operand.reshape(sizes)


@custom_call("SliceToDynamic")
def _slice_to_dynamic(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    """The first elements of an array; the other operands are the sizes of all dimensions."""
    array, *sizes = map(array_value, operands)
    return array[tuple(slice(0, max(int(size), 0)) for size in sizes)]


@custom_call("PadToStatic")
def _pad_to_static(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    """The array in one of the largest size, with zeros behind it; and the sizes of all dimensions."""
    array = array_value(operands[0])
    padded = np.zeros(instruction.shape.elements[0].dims, array.dtype)
    padded[tuple(map(slice, array.shape))] = array
    return (padded, *(np.asarray(size, np.int32) for size in array.shape))


OPS = (
    OpDef(
        "get-dimension-size",
        "the size of a dimension, as s32[]",
        1,
        _get_shape,
        _get,
        attrs=DimensionSizeAttrs,
    ),
    OpDef(
        "set-dimension-size",
        "x of which only the first elements along a dimension count",
        2,
        _set_shape,
        _set,
        attrs=DimensionSizeAttrs,
        traits=Trait.DATA_MOVEMENT,
    ),
    OpDef(
        "dynamic-reshape",
        "the same elements in row-major order with sizes given by operands",
        None,
        _dynamic_reshape_shape,
        _dynamic_reshape,
        traits=Trait.DATA_MOVEMENT,
        explicit_shape=True,
    ),
)
