"""custom-call: operations that HLO itself does not know, and the meaning of the targets that need no library."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from functools import lru_cache

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ir.op import Caller, Calls, OpDef, ShapeContext, Trait
from xlalite.hlo.ops.evaluation import lapack as lapack  # registers its targets
from xlalite.hlo.ops.rules.lapack_calls import lapack_call
from xlalite.hlo.ops.rules.shapes import array_value
from xlalite.hlo.ops.sorting import top_elements
from xlalite.hlo.records import dataclass
from xlalite.hlo.spelling.attributes import attribute
from xlalite.hlo.spelling.codecs import (
    ALIASING,
    BOOL,
    DIM_LABELS,
    INT,
    LITERAL,
    PRECISION,
    SHAPE_LIST,
    STRING,
    WINDOW,
    OutputAlias,
    Precision,
    enum_codec,
)
from xlalite.hlo.surroundings.custom_calls import CUSTOM_CALLS, custom_call, run_custom_call
from xlalite.hlo.types.convolution_dims import ConvolutionDims
from xlalite.hlo.types.literal import Literal, Value
from xlalite.hlo.types.shape import Shape
from xlalite.hlo.types.window import Window


class ApiVersion(enum.Enum):
    """How the target expects to be called."""

    UNSPECIFIED = "API_VERSION_UNSPECIFIED"
    ORIGINAL = "API_VERSION_ORIGINAL"
    STATUS_RETURNING = "API_VERSION_STATUS_RETURNING"
    STATUS_RETURNING_UNIFIED = "API_VERSION_STATUS_RETURNING_UNIFIED"
    TYPED_FFI = "API_VERSION_TYPED_FFI"


class CustomCallSchedule(enum.Enum):
    """Where the scheduler should put the call."""

    NONE = "SCHEDULE_NONE"
    LATEST = "SCHEDULE_LATEST"
    EARLIEST = "SCHEDULE_EARLIEST"


class PaddingType(enum.Enum):
    """How a convolution behind the call pads."""

    INVALID = "PADDING_INVALID"
    VALID = "PADDING_VALID"
    SAME = "PADDING_SAME"


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomCallAttrs:
    """Target and everything that XLA lets a custom call carry."""

    window: Window | None = attribute(WINDOW, default=None)
    dim_labels: ConvolutionDims | None = attribute(DIM_LABELS, default=None)
    feature_group_count: int = attribute(INT, default=1)
    batch_group_count: int = attribute(INT, default=1)
    operand_precision: tuple[Precision, ...] = attribute(PRECISION, default=())
    padding_type: PaddingType = attribute(enum_codec(PaddingType, what="padding type"), default=PaddingType.INVALID)
    custom_call_target: str = attribute(STRING)
    operand_layout_constraints: tuple[Shape, ...] | None = attribute(SHAPE_LIST, default=None)
    custom_call_has_side_effect: bool = attribute(BOOL, default=False)
    literal: Literal | None = attribute(LITERAL, default=None)
    output_to_operand_aliasing: tuple[OutputAlias, ...] = attribute(ALIASING, default=())
    schedule: CustomCallSchedule = attribute(
        enum_codec(CustomCallSchedule, what="schedule"), default=CustomCallSchedule.NONE
    )
    api_version: ApiVersion = attribute(enum_codec(ApiVersion, what="API version"), default=ApiVersion.ORIGINAL)

    @property
    def has_side_effect(self) -> bool:
        """Whether the call must not be removed, merged or reordered."""
        return self.custom_call_has_side_effect


def _custom_call_shape(context: ShapeContext) -> Shape:
    context.require(context.declared is not None, "the result shape must be given")
    assert context.declared is not None, "required above"
    constraints = context.attrs.operand_layout_constraints
    if constraints is not None:
        context.require(
            len(constraints) == len(context.operands)
            and all(want.compatible(have) for want, have in zip(constraints, context.operands, strict=True)),
            "operand_layout_constraints do not have the shapes of the operands",
        )
    return context.declared


def _its_operands(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    return operands[0] if len(operands) == 1 else tuple(operands)


# On one device a value is its own shard, and all memory is alike.
for _target in (
    "Sharding",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "ShardBarrierFrom",
    "ShardBarrierTo",
    "LayoutConstraint",
    "MoveToDevice",
    "MoveToHost",
    "annotate_device_placement",
    "xla.sdy.FuncResultSharding",
    "xla.sdy.GlobalToLocalShape",
    "xla.sdy.LocalToGlobalShape",
    "xla.sdy.PropagationBarrier",
):
    CUSTOM_CALLS[_target] = _its_operands


@custom_call("xla.sdy.ShardingGroup")
def _sharding_group(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    """Nothing: it only says that values are sharded alike."""
    return ()


@custom_call("TopK")
def _top_k(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    """The largest elements of the last dimension and their positions; k is the size of the result."""
    return top_elements(array_value(operands[0]), instruction.shape.elements[0].dims[-1], largest=True)


EVALUATE = "xlalite.evaluate"
"""The target of calls that hold a program: `backend_config` is the text of the module that is to be evaluated."""


REFUSE = "xlalite.refuse"
"""The target of such calls where the program is known to fail; evaluating it says why."""


@custom_call(REFUSE)
@custom_call(EVALUATE)
def _evaluate(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    """The value of the module's entry computation."""
    return call(evaluated_module(instruction.backend_config).entry_computation, operands)


@lru_cache(maxsize=64)
def evaluated_module(text: str) -> HloModule:
    """What a call of `EVALUATE` computes; nobody may change it."""
    from xlalite.hlo.text import parse  # which needs the table of all operations

    return parse(text)


def _flops(instruction: HloInstruction) -> int:
    """Those of LAPACK's routines; what other targets do is not known."""
    asked = lapack_call(instruction)
    return 0 if asked is None else math.prod(asked.batch) * asked.flops


OPS = (
    OpDef(
        "custom-call",
        "custom_call_target(operands...)",
        None,
        _custom_call_shape,
        run_custom_call,
        attrs=CustomCallAttrs,
        traits=Trait.OPAQUE,
        explicit_shape=True,
        calls=Calls(("to_apply",), list_name="called_computations", optional=True),
        flops=_flops,
    ),
)
