"""Shardy's operations: annotations on one device, for a partitioner to obey. They become what XLA makes of them.

`sdy.manual_computation` says what each device does with its part of arrays: its region is called between custom calls
that stand for cutting and joining.
"""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.ops.control_flow import CallAttrs
from xlalite.hlo.ops.custom import CustomCallAttrs
from xlalite.hlo.stablehlo.reading.syntax import Opaque
from xlalite.hlo.stablehlo.rules.context import ImportRule, OperationContext, elements
from xlalite.hlo.types.shape import Shape

SHARDING = "sdy.sharding"
SHARDING_IN_HLO = "xla.sdy.sharding"
MESHES_IN_HLO = "xla.sdy.meshes"


def _text(context: OperationContext, key: str) -> str:
    value = context.attribute(key)
    if not isinstance(value, Opaque):
        raise context.error(f"the attribute {key} must be one of Shardy's")
    return value.text


def _sharding_constraint(context: OperationContext) -> Handle:
    """The operand; marked where there are several devices to share it."""
    (operand,) = context.take(1)
    text = _text(context, "sharding").removeprefix("#sdy.sharding")
    if context.builder.module.config.num_partitions == 1:
        return operand
    marked = context.op("custom-call", (operand,), CustomCallAttrs(custom_call_target="Sharding"))
    marked.instruction.frontend_attributes = ((SHARDING_IN_HLO, f"#sdy.sharding_per_value<[{text}]>"),)
    return marked


def _sharding_group(context: OperationContext) -> tuple[Handle, ...]:
    """Nothing: it is for a partitioner that values are sharded alike."""
    context.take(1)
    return ()


def _manual_computation(context: OperationContext) -> tuple[Handle, ...]:
    region = context.region(0, 1)
    axes, operands = _text(context, "manual_axes"), context.operands
    parts = [argument.shape for argument in region.arguments]
    if len(parts) != len(operands):
        raise context.error(f"takes {len(operands)} operands, its region {len(parts)}")
    local = _converted(context, "GlobalToLocalShape", "in_shardings", axes, operands, parts)
    body = context.lowering.element_function(region, "xla.sdy.manual_computation_body")
    call = context.builder.op("call", local, CallAttrs(), (body,))
    call.instruction.frontend_attributes = (("inlineable", "false"),)
    found = (call,) if len(region.returned) == 1 else elements(call)
    return _converted(context, "LocalToGlobalShape", "out_shardings", axes, found, context.results)


def _converted(
    context: OperationContext, what: str, key: str, axes: str, values: Sequence[Handle], shapes: Sequence[Shape]
) -> tuple[Handle, ...]:
    """Values as the custom call `xla.sdy.<what>` gives them, one call for all."""
    if len(values) != len(shapes):
        raise context.error(f"has {len(shapes)} results, its region {len(values)}")
    if not values:
        return ()
    attrs = CustomCallAttrs(custom_call_target=f"xla.sdy.{what}", custom_call_has_side_effect=True)
    shape = shapes[0] if len(shapes) == 1 else Shape.tuple(shapes)
    made = context.builder.op("custom-call", values, attrs, shape=shape)
    pairs = ((f"xla.sdy.{key}", _text(context, key)), ("xla.sdy.manual_axes", axes))
    made.instruction.frontend_attributes = tuple(sorted(pairs))
    return (made,) if len(shapes) == 1 else elements(made)


RULES: dict[str, ImportRule] = {
    "sdy.sharding_constraint": _sharding_constraint,
    "sdy.sharding_group": _sharding_group,
    "sdy.manual_computation": _manual_computation,
}
