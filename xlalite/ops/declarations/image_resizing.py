"""Images in other sizes, with the weights that TensorFlow has."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from xlalite.framework.graph.dtypes import FLOATING_TYPES, DType, float32, int32
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.framework.meaning.host import Array
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.framework.meaning.static_value import constant_value_as_shape
from xlalite.hlo.building.builder import Handle
from xlalite.hlo.building.resampling import Taps, cubic_weights
from xlalite.hlo.errors import ShapeError
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.declare import REAL_TYPES, declare
from xlalite.ops.helpers.gradient_rules import shape_tensor
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.shape_rules import require_type

_PLACES = ("align_corners", "half_pixel_centers")
_DEFAULTS = dict.fromkeys(_PLACES, False)
_TABLE_SIZE = 1024
"""TensorFlow reads the weights of cubic interpolation from a table of so many places between two elements."""


TapRule = Callable[[Operation, int, int], Taps]


def _scale(op: Operation, old: int, new: int) -> np.float32:
    if op.get_attr("align_corners") and new > 1:
        return np.float32(old - 1) / np.float32(new - 1)
    return np.float32(old) / np.float32(new)


def _places(op: Operation, old: int, new: int) -> Array:
    """Where the new elements lie between the old ones."""
    numbers = np.arange(new, dtype=np.float32)
    if op.get_attr("half_pixel_centers"):
        return (numbers + np.float32(0.5)) * _scale(op, old, new) - np.float32(0.5)
    return numbers * _scale(op, old, new)


def _linear(op: Operation, old: int, new: int) -> Taps:
    places = _places(op, old, new)
    below = np.floor(places)
    share = places - below
    indices = np.stack([np.maximum(below, 0), np.minimum(np.ceil(places), old - 1)], 1)
    return Taps(indices.astype(np.int32), np.stack([1 - share, share], 1))


def _nearest(op: Operation, old: int, new: int) -> Taps:
    numbers, scale = np.arange(new, dtype=np.float32), _scale(op, old, new)
    if op.get_attr("half_pixel_centers"):
        places = np.floor((numbers + np.float32(0.5)) * scale)
    else:
        places = np.floor(numbers * scale + np.float32(0.5 if op.get_attr("align_corners") else 0))
    return Taps(np.clip(places, 0, old - 1).astype(np.int32)[:, None])


def _cubic(op: Operation, old: int, new: int) -> Taps:
    half = op.get_attr("half_pixel_centers")
    sharpness = np.float32(-0.5 if half else -0.75)
    places = _places(op, old, new)
    below = np.floor(places)
    share = np.rint((places - below) * np.float32(_TABLE_SIZE)) / np.float32(_TABLE_SIZE)
    weights = cubic_weights(share, sharpness)
    wanted = below.astype(np.int64)[:, None] + np.arange(-1, 3)
    indices = np.clip(wanted, 0, old - 1)
    if half:
        # What lies outside does not count.
        weights = np.where(indices == wanted, weights, 0)
        weights = weights / weights.sum(1, keepdims=True)
    return Taps(indices.astype(np.int32), weights.astype(np.float32))


def _area(op: Operation, old: int, new: int) -> Taps:
    """Each new element is the average of what it covers."""
    scale = _scale(op, old, new)
    starts = np.arange(new, dtype=np.float32) * scale
    ends = np.arange(1, new + 1, dtype=np.float32) * scale
    count = int((np.ceil(ends) - np.floor(starts)).max(initial=0))
    wanted = np.floor(starts)[:, None] + np.arange(count, dtype=np.float32)
    covered = np.minimum(wanted + 1, ends[:, None]) - np.maximum(wanted, starts[:, None])
    indices = np.clip(wanted, 0, old - 1).astype(np.int32)
    return Taps(indices, (np.maximum(covered, 0) / scale).astype(np.float32))


def _checked_sizes(old: Sequence[int], new: Sequence[int]) -> None:
    if 0 in (*old, *new):
        raise ShapeError(f"images of size {list(old)} cannot be resized to {list(new)}: sizes must be positive")


def _declare(name: str, taps: TapRule, result: DType | None, attrs: tuple[str, ...] = _PLACES) -> None:
    """Declares the operation; `result` is the element type that it gives whatever it gets."""

    def infer(op: Operation) -> Sequence[OutputType]:
        images, size = op.inputs
        require_type(images, REAL_TYPES, "images")
        require_type(size, {int32}, "size")
        if all(op.get_attr(each) for each in attrs) and len(attrs) > 1:
            raise ShapeError("align_corners and half_pixel_centers exclude each other")
        dims = images.shape.with_rank(4).as_list()
        sizes = constant_value_as_shape(size).with_rank(2).as_list()
        return [(result or images.dtype, TensorShape([dims[0], *sizes, dims[3]]))]

    def lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
        b, (images,) = ctx.builder, inputs
        sizes = [int(each) for each in ctx.constant(op, "size")]
        if 0 in (images.dims[0], images.dims[3]):
            return [b.full(0, op.outputs[0].dtype.hlo, [images.dims[0], *sizes, images.dims[3]])]
        _checked_sizes(images.dims[1:3], sizes)
        found = b.convert(images, op.outputs[0].dtype.hlo)
        for axis, new in enumerate(sizes, 1):
            found = taps(op, images.dims[axis], new).of(found, axis)
        return [found]

    def gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
        known = {each: op.get_attr(each) for each in attrs}
        images = op.inputs[0]
        if result is not None:
            return [node(f"{name}Grad", [grad, images], known), None]
        sizes = node("Slice", [shape_tensor(images), constant([1]), constant([2])])
        return [node(f"{name}Grad", [grad, sizes], known), None]

    has_gradient = attrs is _PLACES
    inputs = ("images", "size")
    declare(
        name,
        inputs,
        infer,
        lower,
        gradient if has_gradient else None,
        None,
        attrs=attrs,
        defaults=dict.fromkeys(attrs, False),
        constant_inputs=("size",),
    )
    if has_gradient:
        _declare_gradient(name, taps, by_size=result is None)


def _declare_gradient(name: str, taps: TapRule, by_size: bool) -> None:
    """Declares the gradient, which gets the old sizes as a vector or together with the images."""

    def infer(op: Operation) -> Sequence[OutputType]:
        grads, other = op.inputs
        dims = grads.shape.with_rank(4).as_list()
        if not by_size:
            require_type(other, FLOATING_TYPES, "original_image")
            require_type(grads, {float32}, "grads")
            sizes = other.shape.with_rank(4).as_list()
            return [(other.dtype, TensorShape([dims[0], *sizes[1:3], dims[3]]).merge_with(other.shape))]
        require_type(grads, REAL_TYPES, "grads")
        require_type(other, {int32}, "size")
        sizes = constant_value_as_shape(other).with_rank(2).as_list()
        return [(grads.dtype, TensorShape([dims[0], *sizes, dims[3]]))]

    def lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
        b, grads = ctx.builder, inputs[0]
        sizes = [int(each) for each in ctx.constant(op, "size")] if by_size else list(inputs[1].dims[1:3])
        _checked_sizes(sizes, grads.dims[1:3])
        found = grads
        for axis, old in reversed(list(enumerate(sizes, 1))):
            found = taps(op, old, grads.dims[axis]).transposed(found, axis, old)
        return [b.convert(found, op.outputs[0].dtype.hlo)]

    def gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
        sizes = node("Slice", [shape_tensor(op.inputs[0]), constant([1]), constant([2])])
        return [node(name, [grad, sizes], {each: op.get_attr(each) for each in _PLACES}), None]

    second, constants = ("size", ("size",)) if by_size else ("original_image", ())
    declare(
        f"{name}Grad",
        ("grads", second),
        infer,
        lower,
        gradient,
        None,
        attrs=_PLACES,
        defaults=_DEFAULTS,
        constant_inputs=constants,
    )


_declare("ResizeBilinear", _linear, float32)
_declare("ResizeBicubic", _cubic, float32)
_declare("ResizeNearestNeighbor", _nearest, None)
_declare("ResizeArea", _area, float32, _PLACES[:1])
