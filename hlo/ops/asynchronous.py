"""Operations that start now and finish later, and the ones that only order or annotate.

The evaluator does the work when it starts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Caller, Calls, Memory, OpDef, ShapeContext, Trait
from xlalite.hlo.ops.rules.shapes import check_called
from xlalite.hlo.records import dataclass
from xlalite.hlo.spelling.attributes import attribute
from xlalite.hlo.spelling.codecs import INT, STRING, VERBATIM
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Token, Value
from xlalite.hlo.types.shape import Shape


def zero_value(shape: Shape) -> Value:
    """Zeros of a shape; contexts of asynchronous operations have no other meaning."""
    if shape.is_tuple:
        return tuple(zero_value(element) for element in shape.elements)
    return np.zeros(shape.dims, shape.dtype.numpy) if shape.is_array else Token()


def tuple_element(value: Value, index: int) -> Value:
    """An element of a tuple value."""
    assert isinstance(value, tuple), "the shape rule lets only tuples through"
    return value[index]


@dataclass(frozen=True, slots=True)
class CopyStartAttrs:
    """Place among prefetches across programs; -1 for an ordinary copy."""

    cross_program_prefetch_index: int = attribute(INT, default=-1)


def _copy_start_shape(context: ShapeContext) -> Shape:
    operand, declared = context.operands[0], context.declared
    inferred = Shape.tuple([operand, operand, Shape.array(DType.U32)])
    if declared is None:
        return inferred
    context.require(declared.compatible(inferred), f"the declared shape {declared.text()} is not {inferred.text()}")
    return declared


def _copy_start(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    return operands[0], operands[0], np.zeros((), np.uint32)


def _copy_done_shape(context: ShapeContext) -> Shape:
    operand = context.operands[0]
    context.require(operand.is_tuple and len(operand.elements) == 3, "the operand must be a copy-start")
    return operand.elements[0]


def _first_element(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    return tuple_element(operands[0], 0)


@dataclass(frozen=True, slots=True)
class AsyncStartAttrs:
    """The thread of execution."""

    async_execution_thread: str = attribute(STRING, default="main")


def _async_start_shape(context: ShapeContext) -> Shape:
    result = check_called(context, 0, context.operands, "calls").result
    inferred = Shape.tuple([Shape.tuple(context.operands), result])
    declared = context.declared
    if declared is None:
        return inferred
    context.require(
        declared.is_tuple
        and len(declared.elements) >= 2
        and all(a.compatible(b) for a, b in zip(declared.elements, inferred.elements, strict=False)),
        f"the declared shape {declared.text()} must start with the operands and the result: {inferred.text()}",
    )
    return declared


def _async_start(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    result = call(instruction.called_computations[0], operands)
    return (tuple(operands), result, *(zero_value(element) for element in instruction.shape.elements[2:]))


def _async_operand(context: ShapeContext) -> Shape:
    operand = context.operands[0]
    context.require(
        operand.is_tuple and len(operand.elements) >= 2 and operand.elements[0].is_tuple,
        "the operand must be an async-start or async-update",
    )
    return operand


def _same_value(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    return operands[0]


def _async_done(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    return tuple_element(operands[0], 1)


def _after_all_shape(context: ShapeContext) -> Shape:
    for position, operand in enumerate(context.operands):
        context.require(operand.is_token, f"operand {position} must be a token, found {operand.text()}")
    return Shape.token()


def _after_all(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    return Token()


@dataclass(frozen=True, slots=True)
class DomainAttrs:
    """Kind, entry and exit of the boundary, verbatim."""

    domain: str = attribute(VERBATIM, default="")


OPS = (
    OpDef(
        "copy-start",
        "(copy, original, context) of a copy under way",
        1,
        _copy_start_shape,
        _copy_start,
        attrs=CopyStartAttrs,
        traits=Trait.DATA_MOVEMENT,
    ),
    OpDef(
        "copy-done",
        "the copy that copy-start began",
        1,
        _copy_done_shape,
        _first_element,
        traits=Trait.DATA_MOVEMENT,
    ),
    OpDef(
        "async-start",
        "((operands), calls(operands), contexts...) of a call under way",
        None,
        _async_start_shape,
        _async_start,
        attrs=AsyncStartAttrs,
        calls=Calls(("calls",)),
    ),
    OpDef("async-update", "the same call, further on", 1, _async_operand, _same_value),
    OpDef(
        "async-done",
        "the result of the call that async-start began",
        1,
        lambda context: _async_operand(context).elements[1],
        _async_done,
    ),
    OpDef(
        "after-all",
        "a token that exists once all operands do",
        None,
        _after_all_shape,
        _after_all,
        memory=Memory.NONE,
    ),
    OpDef(
        "domain",
        "x, at a boundary of shardings",
        1,
        lambda context: context.operands[0],
        _same_value,
        attrs=DomainAttrs,
        traits=Trait.DATA_MOVEMENT,
        memory=Memory.NAMES_OPERAND,
    ),
)
