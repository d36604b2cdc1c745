"""Values of images between their elements, at places that are themselves computed; outside an image all is 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xlalite.framework.graph.dtypes import FLOATING_TYPES, int32
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape, unknown_shape
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.building.common import sum_axes
from xlalite.hlo.building.indexing import gather_slices, scatter_slices
from xlalite.hlo.errors import ShapeError
from xlalite.ops.helpers.declare import declare, declare_outputs
from xlalite.ops.helpers.node import operation
from xlalite.ops.helpers.shape_rules import require_same_type, require_type


class _Corner(NamedTuple):
    """One of the four elements around each place.

    Attributes:
        vectors: Its index vectors, `[batch, places, 3]`.
        exists: Whether it lies in the image, `[batch, places]`.
        share_x: Its weight along the width.
        share_y: Its weight along the height.
        sign_x: Whether that grows as the place moves to the right.
        sign_y: Whether that grows as the place moves down.
    """

    vectors: Handle
    exists: Handle
    share_x: Handle
    share_y: Handle
    sign_x: int
    sign_y: int


def _infer(op: Operation) -> Sequence[OutputType]:
    data, warp = op.inputs[:2]
    dtype = require_same_type(op.inputs)
    require_type(data, FLOATING_TYPES, "data")
    dims = data.shape.with_rank(4).as_list()
    if warp.shape.dims is None:
        return [(dtype, unknown_shape())]
    shape = warp.shape.with_rank_at_least(2).merge_with([dims[0], *warp.shape.dims[1:-1], 2])
    return [(dtype, TensorShape([*shape.as_list()[:-1], dims[3]]))]


def _corners(b: Builder, data: Handle, warp: Handle) -> list[_Corner]:
    """The elements around places `[batch, places, 2]`, x before y."""
    high, wide = data.dims[1:3]
    dims = warp.dims[:2]
    x, y = (b.reshape(b.slice(warp, [0, 0, i], [*dims, i + 1]), dims) for i in (0, 1))
    left, top = b.op("floor", (x,)), b.op("floor", (y,))
    found = []
    for sign_y, row in ((-1, top), (1, top + 1)):
        for sign_x, column in ((-1, left), (1, left + 1)):
            exists = b.compare(row, 0, "GE") & b.compare(row, high - 1, "LE")
            exists = exists & b.compare(column, 0, "GE") & b.compare(column, wide - 1, "LE")
            inside = [b.convert(b.select(exists, place, 0), int32.hlo) for place in (row, column)]
            numbers = [b.iota(int32.hlo, dims, 0), *inside]
            vectors = b.concatenate([b.reshape(each, [*dims, 1]) for each in numbers], 2)
            share_x = x - left if sign_x > 0 else left + 1 - x
            share_y = y - top if sign_y > 0 else top + 1 - y
            found.append(_Corner(vectors, exists, share_x, share_y, sign_x, sign_y))
    return found


def _flat_places(b: Builder, data: Handle, warp: Handle) -> Handle:
    if len(warp.dims) < 2 or warp.dims[-1] != 2 or warp.dims[0] != data.dims[0]:
        raise ShapeError(f"warp of shape {warp.dims} does not fit images of shape {data.dims}")
    return b.reshape(warp, [warp.dims[0], warp.shape.element_count // max(1, 2 * warp.dims[0]), 2])


def _masked(b: Builder, corner: _Corner, values: Handle) -> Handle:
    """Values `[batch, places, channels]` where the corner exists."""
    return b.select(b.broadcast(corner.exists, values.dims, [0, 1]), values, b.full(0, values.dtype, values.dims))


def _lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (data, warp) = ctx.builder, inputs
    sizes = [*warp.dims[:-1], data.dims[3]]
    if 0 in (*data.dims, *warp.dims):
        return [b.full(0, data.dtype, sizes)]
    places = _flat_places(b, data, warp)
    total = b.full(0, data.dtype, [*places.dims[:2], data.dims[3]])
    for corner in _corners(b, data, places):
        weight = b.broadcast(corner.share_x * corner.share_y, total.dims, [0, 1])
        total = total + _masked(b, corner, gather_slices(b, data, corner.vectors)) * weight
    return [b.reshape(total, sizes)]


def _gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    return operation("ResamplerGrad", [*op.inputs, grad]).outputs


def _grad_infer(op: Operation) -> Sequence[OutputType]:
    _, (dtype, shape) = op.inputs, _infer(op)[0]
    shape.assert_is_compatible_with(op.inputs[2].shape)
    return [(dtype, op.inputs[0].shape), (dtype, op.inputs[1].shape)]


def _grad_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (data, warp, grad) = ctx.builder, inputs
    to_data = b.full(0, data.dtype, data.dims)
    if 0 in (*data.dims, *warp.dims):
        return [to_data, b.full(0, warp.dtype, warp.dims)]
    places = _flat_places(b, data, warp)
    flat = b.reshape(grad, [*places.dims[:2], data.dims[3]])
    to_x = to_y = b.full(0, data.dtype, places.dims[:2])
    for corner in _corners(b, data, places):
        weight = b.broadcast(corner.share_x * corner.share_y, flat.dims, [0, 1])
        to_data = scatter_slices(b, to_data, corner.vectors, _masked(b, corner, flat * weight), "add")
        pull = sum_axes(b, _masked(b, corner, gather_slices(b, data, corner.vectors)) * flat, [2])
        to_x, to_y = to_x + pull * corner.share_y * corner.sign_x, to_y + pull * corner.share_x * corner.sign_y
    columns = [b.reshape(each, [*places.dims[:2], 1]) for each in (to_x, to_y)]
    return [to_data, b.reshape(b.concatenate(columns, 2), warp.dims)]


declare("Resampler", ("data", "warp"), _infer, _lower, _gradient, None)
declare_outputs("ResamplerGrad", ("data", "warp", "grad_output"), _grad_infer, _grad_lower, None, None)
