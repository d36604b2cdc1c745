"""Tensors and variables of which a slice is replaced: `v[1:, ::-2].assign(value)`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.framework.graph.errors import ElementTypeError
from xlalite.framework.graph.op_spec import OpSpec, OutputType, VariableAccess, register
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor, handle_data_of
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.hlo.building.builder import Handle
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.types.dtype import DType
from xlalite.ops.declarations.strided_slice import MASKS, SlicePlan, in_order, put_back, slice_plan_of
from xlalite.ops.helpers.declare import MOVEMENT, declare
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.shape_rules import require_same_type

_INDEX = ("begin", "end", "strides")


def _updated(ctx: LoweringContext, op: Operation, x: Handle, value: Handle) -> Handle:
    """`x` with the value where the index points."""
    b, plan = ctx.builder, slice_plan_of(ctx, op, x.dims)
    if not value.shape.element_count and 0 in plan.result:
        return x
    if value.dims != plan.result:
        raise ShapeError(f"a value of shape {value.dims} cannot replace a slice of shape {plan.result}")
    if all(abs(part.step) == 1 or part.count == 1 for part in plan.dimensions):
        starts = [b.constant(_lowest(plan, axis), DType.S32) for axis in range(len(x.dims))]
        return b.op("dynamic-update-slice", (x, in_order(b, value, plan), *starts))
    replaced = put_back(b, b.full(True, DType.PRED, plan.result), x.dims, plan)
    return b.select(replaced, put_back(b, value, x.dims, plan), x)


def _lowest(plan: SlicePlan, axis: int) -> np.int32:
    part = plan.dimensions[axis]
    return np.int32(min(part.start, part.start + (part.count - 1) * part.step))


# TensorStridedSliceUpdate(input, begin, end, strides, value).


def _infer(op: Operation) -> Sequence[OutputType]:
    x, *_, value = op.inputs
    require_same_type([x, value])
    return [(x.dtype, x.shape)]


def _gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    masks = {name: op.get_attr(name) for name in MASKS}
    index = op.inputs[1:4]
    taken = node("StridedSlice", [grad, *index], masks)
    kept = node("TensorStridedSliceUpdate", [grad, *index, node("ZerosLike", [taken])], masks)
    return [kept, None, None, None, taken]


declare(
    "TensorStridedSliceUpdate",
    ("input", *_INDEX, "value"),
    _infer,
    lambda ctx, op, inputs: [_updated(ctx, op, *inputs)],
    _gradient,
    MOVEMENT,
    attrs=MASKS,
    constant_inputs=_INDEX,
)


# ResourceStridedSliceAssign(ref, begin, end, strides, value).


def _assign_infer(op: Operation) -> Sequence[OutputType]:
    data, value = handle_data_of(op.inputs[0]), op.inputs[4]
    if value.dtype is not data.dtype:
        raise ElementTypeError(
            f"value has element type {value.dtype.name}; variable {data.name!r} has {data.dtype.name}"
        )
    return []


def _assign(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    ctx.assign_variable(op.inputs[0], _updated(ctx, op, ctx.read_variable(op, op.inputs[0]), inputs[0]))
    return []


register(
    OpSpec(
        "ResourceStridedSliceAssign",
        _assign_infer,
        inputs=("ref", *_INDEX, "value"),
        attrs=MASKS,
        lower=_assign,
        gradient=None,
        group=None,
        constant_inputs=_INDEX,
        is_stateful=True,
        variable_access=VariableAccess.MODIFY,
    )
)
