"""Elementwise operations of three operands: select and clamp."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.hlo.errors import EvaluationError
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Caller, OpDef, ShapeContext, Trait
from xlalite.hlo.numerics import real
from xlalite.hlo.numerics.rounding import AnyArray, in_own_precision, in_whole_bytes
from xlalite.hlo.ops.evaluation.lifting import arrays_of, elementwise
from xlalite.hlo.ops.rules.elementwise_rules import is_real, require_type
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Value
from xlalite.hlo.types.shape import Shape


def _select_shape(context: ShapeContext) -> Shape:
    condition, on_true, on_false = (context.array(position) for position in range(3))
    context.require(condition.dtype is DType.PRED, f"the condition must be pred, found {condition.dtype.value}")
    context.require(
        on_true.dtype is on_false.dtype, f"element types {on_true.dtype.value} and {on_false.dtype.value} differ"
    )
    context.require(on_true.dims == on_false.dims, "the sizes of both choices must be equal")
    context.require(
        condition.is_scalar or condition.dims == on_true.dims,
        "the condition must be a scalar or have the sizes of the choices",
    )
    return on_true


def _select(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    condition, on_true, on_false = arrays_of(operands)
    if condition.dtype != np.bool_:
        raise EvaluationError(f"select: the condition must be pred, found {condition.dtype}")
    return np.where(condition, on_true, on_false)


def _clamp_shape(context: ShapeContext) -> Shape:
    low, operand, high = (require_type(context, position, is_real) for position in range(3))
    for bound, what in ((low, "lower"), (high, "upper")):
        context.require(
            bound.dtype is operand.dtype, f"the {what} bound is {bound.dtype.value}, the operand {operand.dtype.value}"
        )
        context.require(
            bound.is_scalar or bound.dims == operand.dims,
            f"the {what} bound must be a scalar or have the sizes of the operand",
        )
    return operand


def _clamp_integers(low: AnyArray, x: AnyArray, high: AnyArray) -> AnyArray:
    return np.minimum(np.maximum(x, low), high)


def _clamp_real(low: AnyArray, x: AnyArray, high: AnyArray) -> AnyArray:
    return real.minimum(real.maximum(x, low), high)


OPS = (
    OpDef(
        "select",
        "x where the condition holds, else y",
        3,
        _select_shape,
        _select,
        traits=Trait.ELEMENTWISE,
    ),
    OpDef(
        "clamp",
        "min(max(x, low), high) of (low, x, high); NaN if any is NaN",
        3,
        _clamp_shape,
        elementwise(pred=_clamp_integers, integer=in_whole_bytes(_clamp_integers), real=in_own_precision(_clamp_real)),
        traits=Trait.ELEMENTWISE,
    ),
)
