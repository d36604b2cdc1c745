"""Operations that hold a computation together: parameters, constants and tuples."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.hlo.errors import EvaluationError
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Caller, Memory, OpDef, ShapeContext
from xlalite.hlo.records import dataclass
from xlalite.hlo.spelling.attributes import attribute
from xlalite.hlo.spelling.codecs import INT
from xlalite.hlo.types.literal import Literal, Value
from xlalite.hlo.types.shape import Shape


@dataclass(frozen=True, slots=True)
class ParameterAttrs:
    """Which parameter it is; written in the parentheses."""

    number: int


@dataclass(frozen=True, slots=True)
class ConstantAttrs:
    """The value; written in the parentheses."""

    literal: Literal


@dataclass(frozen=True, slots=True)
class GetTupleElementAttrs:
    """Which element of the tuple."""

    index: int = attribute(INT)


def _declared(context: ShapeContext) -> Shape:
    if context.declared is None:
        raise context.error("the result shape must be given")
    return context.declared


def _constant_shape(context: ShapeContext) -> Shape:
    literal: Literal = context.attrs.literal
    if context.declared is None:
        return literal.shape
    if not context.declared.compatible(literal.shape):
        raise context.error(f"the literal has shape {literal.shape.text()}, declared is {context.declared.text()}")
    return context.declared


def _tuple_element_shape(context: ShapeContext) -> Shape:
    operand = context.operands[0]
    index: int = context.attrs.index
    context.require(operand.is_tuple, "the operand must be a tuple")
    if not (0 <= index < len(operand.elements)):
        raise context.error(f"index {index} is out of range for {len(operand.elements)} elements")
    return operand.elements[index]


def _no_parameter(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    raise EvaluationError(f"parameter %{instruction.name} has no argument")


def _constant_value(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    literal: Literal = instruction.attrs.literal
    return literal.to_value()


def _tuple_element(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    operand = operands[0]
    assert isinstance(operand, tuple), "the verifier lets only tuples through"
    index: int = instruction.attrs.index
    return operand[index]


OPS = (
    OpDef(
        "parameter",
        "the number-th argument of the computation",
        0,
        _declared,
        _no_parameter,
        attrs=ParameterAttrs,
        memory=Memory.GIVEN,
        explicit_shape=True,
    ),
    OpDef(
        "constant",
        "the literal",
        0,
        _constant_shape,
        _constant_value,
        attrs=ConstantAttrs,
        memory=Memory.GIVEN,
        explicit_shape=True,
    ),
    OpDef(
        "tuple",
        "(a, b, ...)",
        None,
        lambda context: Shape.tuple(context.operands),
        lambda instruction, operands, call: tuple(operands),
        memory=Memory.NAMES_OPERAND,
    ),
    OpDef(
        "get-tuple-element",
        "t[index]",
        1,
        _tuple_element_shape,
        _tuple_element,
        attrs=GetTupleElementAttrs,
        memory=Memory.NAMES_OPERAND,
    ),
)
