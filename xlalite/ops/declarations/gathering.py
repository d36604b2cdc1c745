"""Selecting rows by index, and one-hot encoding. Indices out of range clamp, as in XLA."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.framework.graph.dtypes import INTEGER_TYPES, int32
from xlalite.framework.graph.op_spec import Gradient, OpSpec, OutputType, VariableAccess, register
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor, handle_data_of
from xlalite.framework.graph.tensor_shape import TensorShape, unknown_shape
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.framework.meaning.static_value import constant_value
from xlalite.hlo.building.builder import Handle
from xlalite.hlo.building.indexing import gather_rows
from xlalite.hlo.errors import ShapeError
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.declare import MOVEMENT, declare
from xlalite.ops.helpers.gradient_rules import of_one_output, shape_tensor
from xlalite.ops.helpers.indexed_slices import gathered_rows
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.shape_rules import normalize_axis, require_same_type, require_scalar, require_type

# GatherV2(params, indices, axis): params[:axis] + indices + params[axis+1:].


def _gather_infer(op: Operation) -> Sequence[OutputType]:
    params, indices, axis = op.inputs
    require_type(indices, INTEGER_TYPES, "indices")
    require_scalar(axis, "axis")
    position = constant_value(axis)
    if params.shape.dims is None or indices.shape.dims is None or position is None:
        ranks = params.shape.rank, indices.shape.rank
        return [(params.dtype, unknown_shape(None if None in ranks else sum(r or 0 for r in ranks) - 1))]
    along = normalize_axis(int(position), len(params.shape.with_rank_at_least(1)))
    dims = params.shape.dims
    _check_indices(indices, dims[along])
    return [(params.dtype, TensorShape([*dims[:along], *indices.shape.dims, *dims[along + 1 :]]))]


def _check_indices(indices: Tensor, size: int | None) -> None:
    """Raises ShapeError when an index that the graph holds is out of range; run-time indices clamp."""
    values = indices.op.get_attr("value") if indices.op.spec.is_constant else None
    if values is None or size is None or values.size == 0:
        return
    for extreme in (int(values.min()), int(values.max())):
        if not 0 <= extreme < size:
            raise ShapeError(f"index {extreme} of {indices.name!r} is out of range, expected 0 to {size - 1}")


def _gather_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    params, indices = inputs
    axis = normalize_axis(int(ctx.constant(op, "axis")), params.shape.rank)
    if params.dims[axis] == 0 and indices.shape.element_count:
        raise ShapeError(f"cannot gather from the empty dimension {axis} of {params.shape.text()}")
    return [gather_rows(ctx.builder, params, indices, axis)]


def _gather_gradient(op: Operation, grad: Tensor) -> Sequence[Gradient | None]:
    params, indices, axis = op.inputs
    position = constant_value(axis)
    if position == 0:
        return [gathered_rows(grad, indices, params.shape, shape_tensor(params)), None, None]
    if params.shape.rank is None or indices.shape.rank is None or position is None:
        raise ShapeError("the gradient of GatherV2 needs known ranks and a constant axis")
    along = normalize_axis(int(position), params.shape.rank)
    inner, rank = indices.shape.rank, params.shape.rank
    # The dimensions of the indices come first, then rows are added up, then the axis goes back to its place.
    moved = [*range(along, along + inner), *range(along), *range(along + inner, rank + inner - 1)]
    sizes = shape_tensor(params)
    count = node("GatherV2", [sizes, constant(along), constant(0)])
    summed = node("UnsortedSegmentSum", [_transpose(grad, moved), indices, count])
    return [_transpose(summed, [*range(1, along + 1), 0, *range(along + 1, rank)]), None, None]


def _transpose(x: Tensor, order: Sequence[int]) -> Tensor:
    if list(order) == sorted(order):
        return x
    return node("Transpose", [x, constant(np.array(order, np.int32))])


declare(
    "GatherV2",
    ("params", "indices", "axis"),
    _gather_infer,
    _gather_lower,
    _gather_gradient,
    MOVEMENT,
    constant_inputs=("axis",),
)


# ResourceGather(resource, indices): rows of a variable, without reading all of it first.


def _resource_gather_infer(op: Operation) -> Sequence[OutputType]:
    data = handle_data_of(op.inputs[0])
    require_type(op.inputs[1], INTEGER_TYPES, "indices")
    rows = TensorShape(None if data.shape.dims is None else data.shape.with_rank_at_least(1).dims)
    return [(data.dtype, op.inputs[1].shape.concatenate(rows[1:]))]


def _resource_gather_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    return [gather_rows(ctx.builder, ctx.read_variable(op, op.inputs[0]), inputs[0], 0)]


def _resource_gather_gradient(op: Operation, grad: Tensor) -> Sequence[Gradient | None]:
    handle, indices = op.inputs
    sizes = node("VariableShape", [handle], {"out_type": int32})
    return [gathered_rows(grad, indices, handle_data_of(handle).shape, sizes), None]


register(
    OpSpec(
        "ResourceGather",
        _resource_gather_infer,
        inputs=("resource", "indices"),
        lower=_resource_gather_lower,
        gradient=of_one_output(_resource_gather_gradient),
        group=None,
        variable_access=VariableAccess.READ,
    )
)


# OneHot(indices, depth, on_value, off_value): a new dimension of size depth, on where its position is the index.


def _one_hot_infer(op: Operation) -> Sequence[OutputType]:
    indices, depth, on, off = op.inputs
    require_type(indices, INTEGER_TYPES, "indices")
    dtype = require_same_type([on, off])
    for tensor, what in ((depth, "depth"), (on, "on_value"), (off, "off_value")):
        require_scalar(tensor, what)
    known = constant_value(depth)
    if known is not None and int(known) < 0:
        raise ShapeError(f"depth must not be negative, found {int(known)}")
    dims = indices.shape.dims
    if dims is None:
        return [(dtype, unknown_shape())]
    axis = normalize_axis(op.get_attr("axis"), len(dims) + 1)
    return [(dtype, TensorShape([*dims[:axis], None if known is None else int(known), *dims[axis:]]))]


def _one_hot_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (indices, on, off) = ctx.builder, inputs
    axis = normalize_axis(op.get_attr("axis"), indices.shape.rank + 1)
    dims = (*indices.dims[:axis], int(ctx.constant(op, "depth")), *indices.dims[axis:])
    positions = b.iota(indices.dtype, dims, axis)
    spread = b.broadcast(indices, dims, [i for i in range(len(dims)) if i != axis])
    return [b.select(b.compare(spread, positions, "EQ"), b.broadcast(on, dims), b.broadcast(off, dims))]


declare(
    "OneHot",
    ("indices", "depth", "on_value", "off_value"),
    _one_hot_infer,
    _one_hot_lower,
    None,
    MOVEMENT,
    attrs=("axis",),
    constant_inputs=("depth",),
)
