"""Images read between their pixels: at grids, below moved filters, in regions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import reduce
from operator import and_, mul

import numpy as np

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.building.common import max_axes
from xlalite.hlo.building.convolutions import channels_last, channels_second
from xlalite.hlo.building.indexing import gather_slices, index_vectors
from xlalite.hlo.ops import OPS
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.interop.onnx.context import NodeContext, filled, rule
from xlalite.interop.onnx.rules.convolutions import biased
from xlalite.interop.onnx.rules.reductions import mean

_SHARPNESS = -0.75


@dataclass(frozen=True, slots=True)
class _Tap:
    """One of the pixels around places along a dimension: their positions, whole numbers as floats, and weights."""

    position: Handle
    weight: Handle | None


def _linear_taps(place: Handle) -> list[_Tap]:
    left = place.builder.op("floor", (place,))
    share = place - left
    return [_Tap(left, filled(1, share) - share), _Tap(left + 1.0, share)]


def _cubic_taps(place: Handle) -> list[_Tap]:
    """Keys (1981)."""
    left = place.builder.op("floor", (place,))
    share, a = place - left, _SHARPNESS

    def near(x: Handle) -> Handle:
        return (x * (a + 2) - (a + 3)) * x * x + 1.0

    def far(x: Handle) -> Handle:
        return ((x * a - 5 * a) * x + 8 * a) * x - 4 * a

    weights = [far(share + 1.0), near(share), near(1.0 - share), far(2.0 - share)]
    return [_Tap(left + float(i - 1), weight) for i, weight in enumerate(weights)]


def _pixels(image: Handle, batch: Handle, positions: Sequence[Handle], fills: bool) -> Handle:
    """`image[batch, positions...]` with channels last; pixels outside are 0, or else the nearest inside."""
    b = image.builder
    inside, bounded = [], []
    for position, size in zip(positions, image.dims[1:-1], strict=True):
        last = filled(size - 1, position)
        inside.append(b.compare(position, 0, "GE") & b.compare(position, last, "LE"))
        bounded.append(b.convert(b.op("clamp", (filled(0, position), position, last)), DType.S64))
    found = gather_slices(b, image, index_vectors([batch, *bounded]))
    if not fills:
        return found
    mask = b.broadcast(reduce(and_, inside), found.dims, range(len(found.dims) - 1))
    return b.select(mask, found, b.full(0, found.dtype, found.dims))


def _sampled(image: Handle, batch: Handle, taps: Sequence[Sequence[_Tap]], fills: bool) -> Handle:
    """The weighted sum over the taps of all dimensions; channels stay last."""
    b, total = image.builder, None
    for chosen in itertools.product(*taps):
        found = _pixels(image, batch, [tap.position for tap in chosen], fills)
        weights = [tap.weight for tap in chosen if tap.weight is not None]
        if weights:
            weight = b.convert(reduce(mul, weights), found.dtype)
            found = found * b.broadcast(weight, found.dims, range(len(found.dims) - 1))
        total = found if total is None else total + found
    assert total is not None, "an image has spatial dimensions"
    return total


@rule("GridSample")
def _grid_sample(context: NodeContext) -> Handle:
    """At places of a grid whose last dimension has them from the last spatial dimension to the first, from -1 to 1."""
    b, x, grid = context.builder, context.operand(0), context.operand(1)
    rank = len(x.dims) - 2
    if len(grid.dims) != rank + 2 or grid.dims[-1] != rank or grid.dims[0] != x.dims[0]:
        raise context.error(f"a grid {grid.shape.text()} for {x.shape.text()}")
    aligned = context.integer("align_corners", 0) != 0
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(
        context.text("mode", "linear"), context.text("mode", "linear")
    )
    border = context.text("padding_mode", "zeros")
    if mode not in ("linear", "nearest", "cubic") or border not in ("zeros", "border", "reflection"):
        raise context.error(f"mode {mode!r} with padding_mode {border!r}")
    wide = DType.F64 if grid.dtype is DType.F64 else DType.F32
    batch = b.iota(DType.S64, grid.dims[:-1], 0)
    taps: list[list[_Tap]] = []
    for axis in range(rank):
        size = x.dims[2 + axis]
        column = [*[0] * (rank + 1), rank - 1 - axis]
        share = b.slice(grid, column, [*grid.dims[:-1], rank - axis])
        share = b.convert(b.reshape(share, grid.dims[:-1]), wide)
        place = (share + 1.0) * ((size - 1) / 2) if aligned else ((share + 1.0) * float(size) - 1.0) * 0.5
        if mode == "nearest":
            place = b.op("round-nearest-even", (place,))
        if mode != "cubic":
            place = _held(place, size, border, aligned)
        if mode == "nearest":
            place = b.op("round-nearest-even", (place,))
        own = [_Tap(place, None)] if mode == "nearest" else (_linear_taps if mode == "linear" else _cubic_taps)(place)
        if border == "reflection":
            own = [_Tap(_reflected(tap.position, size, aligned), tap.weight) for tap in own]
        taps.append(own)
    image = channels_last(x)
    return channels_second(_sampled(image, batch, taps, fills=border == "zeros"))


def _held(place: Handle, size: int, border: str, aligned: bool) -> Handle:
    """Places outside moved inside as the border wants it."""
    if border == "border":
        return place.builder.op("clamp", (filled(0, place), place, filled(size - 1, place)))
    return _reflected(place, size, aligned) if border == "reflection" else place


def _reflected(place: Handle, size: int, aligned: bool) -> Handle:
    """Places mirrored at the first and the last pixel, or at their outer edges."""
    b = place.builder
    low, span = (0.0, float(size - 1)) if aligned else (-0.5, float(size))
    if span == 0:
        return filled(0, place)
    distance = b.op("abs", (place - low,)) % filled(2 * span, place)
    found = b.op("minimum", (distance, filled(2 * span, place) - distance)) + low
    outside = b.compare(place, low, "LT") | b.compare(place, low + span, "GT")
    return b.select(outside, found, place)


@rule("DeformConv")
def _deform_conv(context: NodeContext) -> Handle:
    """A convolution whose taps lie where the offsets say: the pixels below them, times the filters."""
    b, x, filters, offsets = context.builder, context.operand(0), context.operand(1), context.operand(2)
    groups, own_groups = context.integer("group", 1), context.integer("offset_group", 1)
    batch, channels = x.dims[:2]
    kernel = filters.dims[2:]
    rank, places = len(kernel), math.prod(kernel)
    strides, dilations = (context.integers(name, (1,) * rank) for name in ("strides", "dilations"))
    pads = context.integers("pads", (0,) * (2 * rank))
    sizes = offsets.dims[2:]
    moved = b.reshape(offsets, (batch, own_groups, places, rank, *sizes))
    dims = (batch, own_groups, places, *sizes)
    taps = []
    tap = np.stack(np.unravel_index(np.arange(places), kernel), 0)
    for axis in range(rank):
        starts = [0, 0, 0, axis, *[0] * rank]
        offset = b.slice(moved, starts, [batch, own_groups, places, axis + 1, *sizes])
        base = np.arange(sizes[axis]) * strides[axis] - pads[axis]
        fixed = base + (tap[axis] * dilations[axis])[:, np.newaxis]
        spread = b.broadcast(context.constant(fixed, offset.dtype), dims, [2, 3 + axis])
        taps.append(_linear_taps(b.reshape(offset, dims) + spread))
    # Each group of channels has offsets of its own: groups are examples while pixels are read.
    split = b.reshape(x, (batch * own_groups, channels // own_groups, *x.dims[2:]))
    example = b.iota(DType.S64, dims, 0) * own_groups + b.iota(DType.S64, dims, 1)
    found = _sampled(channels_last(split), example, taps, fills=True)
    if context.has(4):
        mask = b.reshape(context.operand(4), dims)
        found = found * b.broadcast(mask, found.dims, range(len(dims)))
    # [batch, own group, tap, space..., channel] as [batch, group, channel of the group, tap, space...]
    last = len(found.dims) - 1
    found = b.transpose(found, [0, 1, last, *range(2, last)])
    found = b.reshape(found, (batch, groups, channels // groups * places, *sizes))
    weights = b.reshape(filters, (groups, filters.dims[0] // groups, filters.dims[1] * places))
    attrs = OPS["dot"].attrs((0,), (2,), (1,), (2,))
    product = b.op("dot", (weights, found), attrs)
    order = [2, 0, 1, *range(3, 3 + rank)]
    return biased(context, b.reshape(b.transpose(product, order), (batch, filters.dims[0], *sizes)), 3)


@rule("RoiAlign")
def _roi_align(context: NodeContext) -> Handle:
    """Averages, or largest values, of places spread evenly over parts of regions."""
    b, x, regions = context.builder, context.operand(0), context.operand(1)
    rows, columns = context.integer("output_height", 1), context.integer("output_width", 1)
    mode = context.text("mode", "avg")
    if mode not in ("avg", "max"):
        raise context.error(f"mode {mode!r} is none of avg, max")
    count, ratio = regions.dims[0], context.integer("sampling_ratio", 0)
    half = context.version >= 16 and context.text("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    scaled = regions * context.constant(context.number("spatial_scale", 1.0), regions.dtype)
    if half:
        scaled = scaled - 0.5
    corners = [b.reshape(b.slice(scaled, [0, i], [count, i + 1]), (count,)) for i in range(4)]
    lows, highs = (corners[1], corners[0]), (corners[3], corners[2])
    spans = [high - low for low, high in zip(lows, highs, strict=True)]
    if not half:
        spans = [b.op("maximum", (span, filled(1, span))) for span in spans]
    image = channels_last(x)
    examples = b.convert(context.operand(2), DType.S64)
    if ratio > 0:
        return _pooled(context, image, examples, lows, spans, (rows, columns), (ratio, ratio), mode)
    # As many places as a part has pixels: each region has a number of its own, which must be known.
    known = [context.importer.known.of(span) for span in spans]
    found = []
    for number in range(count):
        ratios = [max(1, math.ceil(float(known[i][number]) / (rows, columns)[i])) for i in range(2)]
        one = [[b.slice(each, [number], [number + 1]) for each in group] for group in (lows, spans)]
        example = b.slice(examples, [number], [number + 1])
        found.append(_pooled(context, image, example, one[0], one[1], (rows, columns), (ratios[0], ratios[1]), mode))
    return b.concatenate(found, 0) if found else b.full(0, x.dtype, (0, x.dims[1], rows, columns))


def _pooled(
    context: NodeContext,
    image: Handle,
    examples: Handle,
    lows: Sequence[Handle],
    spans: Sequence[Handle],
    sizes: tuple[int, int],
    ratios: tuple[int, int],
    mode: str,
) -> Handle:
    b, count = context.builder, examples.dims[0]
    dims = (count, sizes[0], sizes[1], ratios[0], ratios[1])
    taps, inside = [], []
    for axis in range(2):
        steps = np.arange(sizes[axis])[:, np.newaxis] + (np.arange(ratios[axis]) + 0.5) / ratios[axis]
        share = b.broadcast(context.constant(steps / sizes[axis], lows[axis].dtype), dims, [1 + axis, 3 + axis])
        place = b.broadcast(lows[axis], dims, [0]) + share * b.broadcast(spans[axis], dims, [0])
        size = image.dims[1 + axis]
        inside.append(b.compare(place, -1.0, "GE") & b.compare(place, float(size), "LE"))
        taps.append(_linear_taps(b.op("clamp", (filled(0, place), place, filled(size - 1, place)))))
    batch = b.broadcast(examples, dims, [0])
    if mode == "avg":
        found = _sampled(image, batch, taps, fills=False)
    else:  # the largest of the weighted pixels, not of their sums
        parts = [
            _sampled(image, batch, [[one], [other]], fills=False) for one, other in itertools.product(taps[0], taps[1])
        ]
        found = reduce(lambda p, q: b.op("maximum", (p, q)), parts)
    is_inside = b.broadcast(reduce(and_, inside), found.dims, range(5))
    found = b.select(is_inside, found, b.full(0, found.dtype, found.dims))
    pooled = mean(found, (3, 4)) if mode == "avg" else max_axes(b, found, (3, 4), True)
    return channels_second(b.reshape(pooled, (count, *sizes, image.dims[-1])))
