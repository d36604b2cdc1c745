"""Boxes cut out of images and brought to one size, and the derivatives with respect to images and boxes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.framework.graph.dtypes import float32, int32
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.framework.meaning.static_value import constant_value_as_shape
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.building.common import sum_axes
from xlalite.hlo.building.indexing import gather_slices, scatter_slices
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.records import dataclass
from xlalite.ops.helpers.declare import REAL_TYPES, declare
from xlalite.ops.helpers.gradient_rules import shape_tensor
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.shape_rules import require_type


@dataclass(frozen=True, slots=True)
class _Line:
    """Where the places of one dimension of the crops lie in the images.

    Attributes:
        inside: `[boxes, places]`, whether it lies in the image.
        below: The element at or before it.
        above: The element at or behind it.
        share: How far it is from `below`.
        from_start: `[places]`, how much it moves with the first side of the box.
        from_end: And with the second.
    """

    inside: Handle
    below: Handle
    above: Handle
    share: Handle
    from_start: Handle
    from_end: Handle


def _line(b: Builder, boxes: Handle, axis: int, size: int, count: int, method: str) -> _Line:
    """The places along height (0) or width (1) of an image."""
    steps = np.arange(count) / (count - 1) if count > 1 else np.full(count, 0.5)
    weights = [b.constant((share * (size - 1)).astype(boxes.dtype.numpy), boxes.dtype) for share in (1 - steps, steps)]
    dims = (boxes.dims[0], count)
    spread = [b.broadcast(each, dims, [1]) for each in weights]
    sides = [
        b.broadcast(b.reshape(b.slice(boxes, [0, i], [dims[0], i + 1]), dims[:1]), dims, [0]) for i in (axis, axis + 2)
    ]
    place = sides[0] * spread[0] + sides[1] * spread[1]
    inside = b.compare(place, 0, "GE") & b.compare(place, size - 1, "LE")
    limits = [b.full(limit, place.dtype, dims) for limit in (0, max(0, size - 1))]
    kept = b.op("clamp", (limits[0], b.select(inside, place, limits[0]), limits[1]))
    if method == "nearest":
        nearest = b.op("round-nearest-afz", (kept,))
        rounded = b.convert(nearest, int32.hlo)
        return _Line(inside, rounded, rounded, b.full(0, place.dtype, dims), *spread)
    below, above = b.op("floor", (kept,)), b.op("ceil", (kept,))
    return _Line(inside, b.convert(below, int32.hlo), b.convert(above, int32.hlo), kept - below, *spread)


class _Crops:
    """The crops of a batch of images, `[boxes, rows, columns, channels]`."""

    def __init__(
        self,
        ctx: LoweringContext,
        op: Operation,
        images: Sequence[int],
        boxes: Handle,
        owners: Handle,
        size: Sequence[int],
    ) -> None:
        self._b = b = ctx.builder
        if boxes.dims != (owners.shape.element_count, 4):
            raise ShapeError(f"boxes of shape {boxes.dims} do not fit {owners.shape.element_count} box indices")
        self._images = tuple(images)
        self.dims = (boxes.dims[0], *size, images[3])
        method = op.get_attr("method")
        self.rows = _line(b, boxes, 0, images[1], size[0], method)
        self.columns = _line(b, boxes, 1, images[2], size[1], method)
        self._owners = b.broadcast(owners, self.dims[:3], [0])
        self.inside = self.spread(self.rows.inside, 1) & self.spread(self.columns.inside, 2)

    def spread(self, line: Handle, axis: int) -> Handle:
        """What `[boxes, rows]` or `[boxes, columns]` say, at each place of the crops."""
        return self._b.broadcast(line, self.dims, [0, axis])

    def corners(self) -> list[tuple[Handle, Handle]]:
        """The index vectors of the four elements around each place, and their weights."""
        found = []
        for row, is_lower in ((self.rows.below, False), (self.rows.above, True)):
            for column, is_right in ((self.columns.below, False), (self.columns.above, True)):
                planes = [
                    self._owners,
                    *(self._b.broadcast(line, self.dims[:3], [0, i]) for i, line in ((1, row), (2, column))),
                ]
                vectors = self._b.concatenate([self._b.reshape(plane, [*self.dims[:3], 1]) for plane in planes], 3)
                vertical, horizontal = self.spread(self.rows.share, 1), self.spread(self.columns.share, 2)
                shares = (vertical if is_lower else -vertical + 1, horizontal if is_right else -horizontal + 1)
                found.append((vectors, shares[0] * shares[1]))
        return found


def _infer_boxes(op: Operation, boxes: Tensor, owners: Tensor) -> int | None:
    """Number of boxes."""
    require_type(boxes, {float32}, "boxes")
    require_type(owners, {int32}, "box_ind")
    if op.get_attr("method") not in ("bilinear", "nearest"):
        raise ShapeError(f"method {op.get_attr('method')!r} is not one of bilinear, nearest")
    shape = boxes.shape.merge_with([None, 4])
    return owners.shape.with_rank(1).merge_with(shape.as_list()[:1]).as_list()[0]


def _infer(op: Operation) -> Sequence[OutputType]:
    images, boxes, owners, size = op.inputs
    require_type(images, REAL_TYPES, "image")
    rows, columns = constant_value_as_shape(size).with_rank(2).as_list()
    channels = images.shape.with_rank(4).as_list()[3]
    return [(float32, TensorShape([_infer_boxes(op, boxes, owners), rows, columns, channels]))]


def _lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (images, boxes, owners) = ctx.builder, inputs
    size = [int(each) for each in ctx.constant(op, "crop_size")]
    outside = b.full(float(op.get_attr("extrapolation_value")), float32.hlo, (boxes.dims[0], *size, images.dims[3]))
    if 0 in images.dims:
        return [outside]
    crops = _Crops(ctx, op, images.dims, boxes, owners, size)
    wide = b.convert(images, float32.hlo)
    total = b.full(0, float32.hlo, crops.dims)
    for vectors, weight in crops.corners():
        total = total + gather_slices(b, wide, vectors) * weight
    return [b.select(crops.inside, total, outside)]


def _gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    images, boxes, owners, _ = op.inputs
    method = {"method": op.get_attr("method")}
    to_boxes = None
    if op.get_attr("method") == "bilinear":
        to_boxes = node("CropAndResizeGradBoxes", [grad, images, boxes, owners], method)
    if not images.dtype.is_floating:
        return [None, to_boxes, None, None]
    inputs = [grad, boxes, owners, shape_tensor(images)]
    return [node("CropAndResizeGradImage", inputs, {**method, "T": images.dtype}), to_boxes, None, None]


def _image_infer(op: Operation) -> Sequence[OutputType]:
    grads, boxes, owners, size = op.inputs
    require_type(grads, {float32}, "grads")
    require_type(size, {int32}, "image_size")
    grads.shape.with_rank(4)
    _infer_boxes(op, boxes, owners)
    return [(op.get_attr("T"), constant_value_as_shape(size).with_rank(4))]


def _image_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (grads, boxes, owners) = ctx.builder, inputs
    images = [int(each) for each in ctx.constant(op, "image_size")]
    total = b.full(0, float32.hlo, images)
    if 0 not in images:
        crops = _Crops(ctx, op, images, boxes, owners, grads.dims[1:3])
        kept = b.select(crops.inside, grads, b.full(0, grads.dtype, grads.dims))
        for vectors, weight in crops.corners():
            total = scatter_slices(b, total, vectors, kept * weight, "add")
    return [b.convert(total, op.outputs[0].dtype.hlo)]


def _boxes_infer(op: Operation) -> Sequence[OutputType]:
    grads, images, boxes, owners = op.inputs
    require_type(grads, {float32}, "grads")
    require_type(images, REAL_TYPES, "image")
    for tensor in (grads, images):
        tensor.shape.with_rank(4)
    return [(float32, TensorShape([_infer_boxes(op, boxes, owners), 4]))]


def _boxes_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    """How the crops change as their places move, and how these move with the sides of the boxes."""
    b, (grads, images, boxes, owners) = ctx.builder, inputs
    if 0 in (*images.dims, *grads.dims):
        return [b.full(0, float32.hlo, boxes.dims)]
    crops = _Crops(ctx, op, images.dims, boxes, owners, grads.dims[1:3])
    wide = b.convert(images, float32.hlo)
    top_left, top_right, bottom_left, bottom_right = (gather_slices(b, wide, each) for each, _ in crops.corners())
    kept = b.select(crops.inside, grads, b.full(0, grads.dtype, grads.dims))
    down, right = crops.spread(crops.rows.share, 1), crops.spread(crops.columns.share, 2)
    per_row = (bottom_left - top_left) * (-right + 1) + (bottom_right - top_right) * right
    per_column = (top_right - top_left) * (-down + 1) + (bottom_right - bottom_left) * down
    to_rows, to_columns = sum_axes(b, kept * per_row, [2, 3]), sum_axes(b, kept * per_column, [1, 3])
    sides = [
        sum_axes(b, moved * along, [1])
        for moved, along in (
            (to_rows, crops.rows.from_start),
            (to_columns, crops.columns.from_start),
            (to_rows, crops.rows.from_end),
            (to_columns, crops.columns.from_end),
        )
    ]
    return [b.concatenate([b.reshape(side, [boxes.dims[0], 1]) for side in sides], 1)]


declare(
    "CropAndResize",
    ("image", "boxes", "box_ind", "crop_size"),
    _infer,
    _lower,
    _gradient,
    None,
    attrs=("method", "extrapolation_value"),
    defaults={"method": "bilinear", "extrapolation_value": 0.0},
    constant_inputs=("crop_size",),
)
declare(
    "CropAndResizeGradImage",
    ("grads", "boxes", "box_ind", "image_size"),
    _image_infer,
    _image_lower,
    None,
    None,
    attrs=("T", "method"),
    defaults={"method": "bilinear"},
    constant_inputs=("image_size",),
)
declare(
    "CropAndResizeGradBoxes",
    ("grads", "image", "boxes", "box_ind"),
    _boxes_infer,
    _boxes_lower,
    None,
    None,
    attrs=("method",),
    defaults={"method": "bilinear"},
)
