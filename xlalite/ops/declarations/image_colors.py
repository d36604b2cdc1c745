"""Colours of images, `[..., 3]`: other coordinates, hue, saturation and contrast."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xlalite.framework.graph.dtypes import FLOATING_TYPES
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.building.common import accumulator_type, sum_axes, zeros_like
from xlalite.ops.helpers.declare import declare
from xlalite.ops.helpers.shape_rules import require_rank, require_scalar, require_type

Colour = tuple[Handle, Handle, Handle]


def _planes(b: Builder, images: Handle) -> Colour:
    """The three colours of each place, computed with in at least single precision."""
    last, wide = len(images.dims) - 1, b.convert(images, accumulator_type(images.dtype))
    ends = list(images.dims[:-1])
    starts = [0] * last
    first, second, third = (b.reshape(b.slice(wide, [*starts, i], [*ends, i + 1]), ends) for i in range(3))
    return first, second, third


def _joined(b: Builder, planes: Sequence[Handle], like: Handle) -> Handle:
    columns = [b.reshape(plane, [*like.dims[:-1], 1]) for plane in planes]
    return b.convert(b.concatenate(columns, len(like.dims) - 1), like.dtype)


def _to_hsv(b: Builder, colours: Colour) -> Colour:
    red, green, blue = colours
    value = b.op("maximum", (b.op("maximum", (red, green)), blue))
    spread = value - b.op("minimum", (b.op("minimum", (red, green)), blue))
    zeros = zeros_like(b, value)
    has_colour = b.compare(spread, 0, "GT")
    saturation = b.select(b.compare(value, 0, "GT"), spread / value, zeros)
    sixth = b.full(1, spread.dtype, spread.dims) / (spread * 6)
    from_green, from_blue = (blue - red) * sixth + 2 / 6, (red - green) * sixth + 4 / 6
    hue = b.select(b.compare(green, value, "EQ"), from_green, from_blue)
    hue = b.select(b.compare(red, value, "EQ"), (green - blue) * sixth, hue)
    hue = b.select(has_colour, hue, zeros)
    return b.select(b.compare(hue, 0, "LT"), hue + 1, hue), saturation, value


def _from_hsv(b: Builder, colours: Colour) -> Colour:
    hue, saturation, value = colours
    angle = hue * 6

    def shade(distance: Handle) -> Handle:
        limits = [b.full(limit, distance.dtype, distance.dims) for limit in (0, 1)]
        share = b.op("clamp", (limits[0], distance, limits[1]))
        return (b.full(1, saturation.dtype, saturation.dims) - saturation + saturation * share) * value

    def away_from(centre: float) -> Handle:
        return b.op("abs", (angle - centre,))

    return shade(away_from(3) - 1), shade(-away_from(2) + 2), shade(-away_from(4) + 2)


def _infer(op: Operation) -> Sequence[OutputType]:
    images = op.inputs[0]
    require_type(images, FLOATING_TYPES, "images")
    for tensor, what in zip(op.inputs[1:], op.spec.inputs[1:], strict=True):
        require_type(tensor, FLOATING_TYPES, what)
        require_scalar(tensor, what)
    shape = images.shape.with_rank_at_least(1)
    if shape.dims is not None:
        shape = shape.merge_with([*shape.dims[:-1], 3])
    return [(images.dtype, shape)]


def _declare(name: str, inputs: tuple[str, ...], build: Callable[[Builder, Colour, Sequence[Handle]], Colour]) -> None:
    def lower(ctx: LoweringContext, op: Operation, handles: tuple[Handle, ...]) -> Sequence[Handle]:
        b, images = ctx.builder, handles[0]
        planes = _planes(b, images)
        numbers = [b.broadcast(b.convert(each, planes[0].dtype), planes[0].dims) for each in handles[1:]]
        return [_joined(b, build(b, planes, numbers), images)]

    declare(name, inputs, _infer, lower, None, None)


def _turned(b: Builder, colours: Colour, numbers: Sequence[Handle]) -> Colour:
    hue, saturation, value = _to_hsv(b, colours)
    moved = hue + numbers[0]
    return _from_hsv(b, (moved - b.op("floor", (moved,)), saturation, value))


def _saturated(b: Builder, colours: Colour, numbers: Sequence[Handle]) -> Colour:
    hue, saturation, value = _to_hsv(b, colours)
    limits = [b.full(limit, saturation.dtype, saturation.dims) for limit in (0, 1)]
    return _from_hsv(b, (hue, b.op("clamp", (limits[0], saturation * numbers[0], limits[1])), value))


_declare("RGBToHSV", ("images",), lambda b, colours, _: _to_hsv(b, colours))
_declare("HSVToRGB", ("images",), lambda b, colours, _: _from_hsv(b, colours))
_declare("AdjustHue", ("images", "delta"), _turned)
_declare("AdjustSaturation", ("images", "scale"), _saturated)


# AdjustContrastv2(images, contrast_factor): each channel of each image further away from its mean, or nearer.


def _contrast_infer(op: Operation) -> Sequence[OutputType]:
    images, factor = op.inputs
    require_type(images, FLOATING_TYPES, "images")
    require_type(factor, FLOATING_TYPES, "contrast_factor")
    require_scalar(factor, "contrast_factor")
    require_rank(images, lambda rank: rank >= 3, "at least height, width and channels", "images")
    return [(images.dtype, TensorShape(images.shape))]


def _contrast_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (images, factor) = ctx.builder, inputs
    x = b.convert(images, accumulator_type(images.dtype))
    rank = len(x.dims)
    space = [rank - 3, rank - 2]
    count = max(1, x.dims[space[0]] * x.dims[space[1]])
    mean = b.broadcast(sum_axes(b, x, space) / count, x.dims, [i for i in range(rank) if i not in space])
    return [b.convert((x - mean) * b.convert(factor, x.dtype) + mean, images.dtype)]


declare("AdjustContrastv2", ("images", "contrast_factor"), _contrast_infer, _contrast_lower, None, None)
