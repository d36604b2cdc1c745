"""Operations that run other computations: while, conditional, call, fusion."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Caller, Calls, OpDef, ShapeContext, Trait
from xlalite.hlo.ops.rules.shapes import array_value, check_called
from xlalite.hlo.records import dataclass
from xlalite.hlo.spelling.attributes import attribute
from xlalite.hlo.spelling.codecs import ALIASING, BOOL, OutputAlias, enum_codec
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Value
from xlalite.hlo.types.shape import Shape


def _while_shape(context: ShapeContext) -> Shape:
    state = context.operands[0]
    condition = check_called(context, 0, [state], "condition")
    body = check_called(context, 1, [state], "body")
    if not (condition.result.is_scalar and condition.result.dtype is DType.PRED):
        raise context.error(f"condition gives {condition.result.text()}, expected pred[]")
    if not body.result.compatible(state):
        raise context.error(f"body gives {body.result.text()}, the loop's state is {state.text()}")
    return state


def _while(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    condition, body = instruction.called_computations
    state = operands[0]
    while bool(array_value(call(condition, [state]))):
        state = call(body, [state])
    return state


def _conditional_shape(context: ShapeContext) -> Shape:
    context.require(len(context.operands) >= 2, "needs a predicate or branch index and one operand for each branch")
    selector = context.array(0, "predicate or branch index")
    branches = len(context.called)
    if not (selector.is_scalar and selector.dtype in (DType.PRED, DType.S32)):
        raise context.error(f"operand 0 must be pred[] or s32[], found {selector.text()}")
    if selector.dtype is DType.PRED and branches != 2:
        raise context.error(f"a predicate chooses between 2 computations, found {branches}")
    if len(context.operands) != branches + 1:
        raise context.error(
            f"{branches} branches need as many operands besides operand 0, found {len(context.operands) - 1}"
        )
    for branch in range(branches):
        program = check_called(context, branch, [context.operands[branch + 1]], f"branch {branch}")
        if not program.result.compatible(context.called[0].result):
            raise context.error(
                f"branch {branch} gives {program.result.text()}, branch 0 gives {context.called[0].result.text()}"
            )
    return context.called[0].result


def _conditional(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    branches = instruction.called_computations
    selector = array_value(operands[0])
    if instruction.operand(0).shape.dtype is DType.PRED:
        branch = 0 if bool(selector) else 1
    else:
        branch = int(selector) if 0 <= int(selector) < len(branches) else len(branches) - 1
    return call(branches[branch], [operands[branch + 1]])


@dataclass(frozen=True, slots=True)
class CallAttrs:
    """Whether the call stands for a composite operation that a backend may implement as a whole."""

    is_composite: bool = attribute(BOOL, default=False, after_calls=True)


def _call_shape(context: ShapeContext) -> Shape:
    return check_called(context, 0, context.operands, "to_apply").result


def _run_computation(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    return call(instruction.called_computations[0], operands)


class FusionKind(enum.Enum):
    """What shape of kernel a fusion becomes."""

    LOOP = "kLoop"
    INPUT = "kInput"
    OUTPUT = "kOutput"
    CUSTOM = "kCustom"


@dataclass(frozen=True, slots=True)
class FusionAttrs:
    """What kind of kernel, and which results lie in the memory of operands."""

    kind: FusionKind = attribute(enum_codec(FusionKind, what="fusion kind"))
    output_to_operand_aliasing: tuple[OutputAlias, ...] = attribute(ALIASING, default=())


def _fusion_shape(context: ShapeContext) -> Shape:
    result = check_called(context, 0, context.operands, "calls").result
    if context.declared is None:
        return result
    if not context.declared.compatible(result):
        raise context.error(f"the fused computation gives {result.text()}, declared is {context.declared.text()}")
    return context.declared


OPS = (
    OpDef(
        "while",
        "s = operand; while condition(s): s = body(s)",
        1,
        _while_shape,
        _while,
        traits=Trait.CONTROL_FLOW,
        calls=Calls(("condition", "body")),
    ),
    OpDef(
        "conditional",
        "branch[p](operand of that branch); an index out of range chooses the last branch",
        None,
        _conditional_shape,
        _conditional,
        traits=Trait.CONTROL_FLOW,
        calls=Calls(("true_computation", "false_computation"), list_name="branch_computations"),
    ),
    OpDef(
        "call",
        "to_apply(operands...)",
        None,
        _call_shape,
        _run_computation,
        attrs=CallAttrs,
        traits=Trait.CONTROL_FLOW,
        calls=Calls(("to_apply",)),
    ),
    OpDef(
        "fusion",
        "calls(operands...), meant to become one kernel",
        None,
        _fusion_shape,
        _run_computation,
        attrs=FusionAttrs,
        calls=Calls(("calls",)),
    ),
)
