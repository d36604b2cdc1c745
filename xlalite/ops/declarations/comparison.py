"""Comparisons, logic and choices between two tensors."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from xlalite.framework.graph.dtypes import COMPILABLE_TYPES, DType, bool_, string
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.hlo.building.broadcasting import broadcast_dims
from xlalite.hlo.building.builder import Handle
from xlalite.hlo.building.common import broadcast_to
from xlalite.hlo.errors import ShapeError
from xlalite.ops.helpers.declare import ELEMENTWISE, REAL_TYPES, declare, declare_binary
from xlalite.ops.helpers.gradient_rules import sum_to
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.shape_rules import broadcast_shapes, require_same_type, require_type


def _declare_comparison(name: str, direction: str, allowed: Collection[DType]) -> None:
    declare_binary(name, lambda b, x, y: b.compare(x, y, direction), None, allowed, bool_)


_declare_comparison("Equal", "EQ", {*COMPILABLE_TYPES, string})
_declare_comparison("NotEqual", "NE", {*COMPILABLE_TYPES, string})
_declare_comparison("Less", "LT", REAL_TYPES)
_declare_comparison("LessEqual", "LE", REAL_TYPES)
_declare_comparison("Greater", "GT", REAL_TYPES)
_declare_comparison("GreaterEqual", "GE", REAL_TYPES)
declare_binary("LogicalAnd", "and", None, {bool_})
declare_binary("LogicalOr", "or", None, {bool_})


# SelectV2(condition, t, e): all three are broadcast together.


def _select_v2_infer(op: Operation) -> Sequence[OutputType]:
    condition, t, e = op.inputs
    require_type(condition, {bool_}, "condition")
    dtype = require_same_type([t, e])
    return [(dtype, broadcast_shapes(condition.shape, broadcast_shapes(t.shape, e.shape)))]


def _select_v2_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    condition, t, e = inputs
    b = ctx.builder
    dims = broadcast_dims(condition.dims, broadcast_dims(t.dims, e.dims))
    return [b.select(*(broadcast_to(b, x, dims) for x in (condition, t, e)))]


def _select_v2_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    condition, t, e = op.inputs
    zeros = node("ZerosLike", [grad])
    whole = op.outputs[0]
    return [
        None,
        sum_to(node("SelectV2", [condition, grad, zeros]), t, whole),
        sum_to(node("SelectV2", [condition, zeros, grad]), e, whole),
    ]


declare("SelectV2", ("condition", "t", "e"), _select_v2_infer, _select_v2_lower, _select_v2_gradient, ELEMENTWISE)


# Select(condition, t, e): equal shapes; the condition may also be a scalar or choose whole rows.


def _select_infer(op: Operation) -> Sequence[OutputType]:
    condition, t, e = op.inputs
    require_type(condition, {bool_}, "condition")
    dtype = require_same_type([t, e])
    shape = t.shape.merge_with(e.shape)
    rank = condition.shape.rank
    if rank is not None and rank > 1:
        shape = shape.merge_with(condition.shape)
    if rank == 1 and shape.dims is not None:
        rows = condition.shape if shape.dims else TensorShape(())
        if not rows.is_compatible_with(shape.dims[:1]):
            raise ShapeError(f"condition of shape {condition.shape} cannot choose among rows of shape {shape}")
    return [(dtype, shape)]


def _select_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    condition, t, e = inputs
    b = ctx.builder
    if condition.dims != t.dims:
        condition = b.broadcast(condition, t.dims, [0] if condition.dims else [])
    return [b.select(condition, t, e)]


def _select_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    condition, zeros = op.inputs[0], node("ZerosLike", [grad])
    return [None, node("Select", [condition, grad, zeros]), node("Select", [condition, zeros, grad])]


declare("Select", ("condition", "t", "e"), _select_infer, _select_lower, _select_gradient, ELEMENTWISE)
