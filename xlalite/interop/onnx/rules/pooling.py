"""Pooling below windows and over whole images."""

from __future__ import annotations

import math

import numpy as np

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.building.common import max_axes, sum_axes
from xlalite.hlo.building.convolutions import channels_last, channels_second
from xlalite.hlo.building.indexing import gather_rows, scatter_slices
from xlalite.hlo.building.pooling import (
    window_averages,
    window_counts,
    window_largest,
    window_largest_with,
    window_sums,
)
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.window import WindowDimension
from xlalite.interop.onnx.context import NodeContext, filled, rule
from xlalite.interop.onnx.rules.reductions import mean
from xlalite.interop.onnx.rules.windows import SpatialWindow, spatial_window

_STILL = WindowDimension(1)


def _window(context: NodeContext, x: Handle) -> SpatialWindow:
    return spatial_window(context, x.dims[2:], context.integers("kernel_shape"))


@rule("AveragePool")
def _average_pool(context: NodeContext) -> Handle:
    x = context.operand(0)
    window = _window(context, x)
    own, whole = channels_last(x), (_STILL, *window.dimensions, _STILL)
    counted = [(0, 0), *window.pads, (0, 0)] if context.integer("count_include_pad", 0) else None
    return channels_second(window_averages(own, whole, window_counts(whole, own.dims, counted)))


@rule("MaxPool")
def _max_pool(context: NodeContext) -> tuple[Handle, ...]:
    b, x = context.builder, context.operand(0)
    window = (_STILL, *_window(context, x).dimensions, _STILL)
    own = channels_last(x)
    if len(context.node.outputs) < 2:
        return (channels_second(window_largest(own, window)),)
    places = np.arange(math.prod(x.dims[2:]))
    space = places.reshape(x.dims[2:], order="F" if context.integer("storage_order", 0) else "C")
    outer = np.arange(math.prod(x.dims[:2])).reshape(*x.dims[:2], *[1] * space.ndim) * places.size
    numbers = channels_last(b.constant(np.asarray(outer + space, np.int64)))
    return tuple(channels_second(found) for found in window_largest_with(own, numbers, window))


@rule("LpPool")
def _lp_pool(context: NodeContext) -> Handle:
    x = context.operand(0)
    window = (_STILL, *_window(context, x).dimensions, _STILL)
    return channels_second(_root(context, window_sums(channels_last(_power(context, x)), window)))


@rule("GlobalAveragePool")
def _global_average_pool(context: NodeContext) -> Handle:
    x = context.operand(0)
    return mean(x, tuple(range(2, len(x.dims))))


@rule("GlobalMaxPool")
def _global_max_pool(context: NodeContext) -> Handle:
    x = context.operand(0)
    return max_axes(context.builder, x, range(2, len(x.dims)), True)


@rule("GlobalLpPool")
def _global_lp_pool(context: NodeContext) -> Handle:
    x = context.operand(0)
    return _root(context, sum_axes(context.builder, _power(context, x), range(2, len(x.dims)), True))


def _power(context: NodeContext, x: Handle) -> Handle:
    """|x|^p."""
    p = context.integer("p", 2)
    size = context.builder.op("abs", (x,))
    return size if p == 1 else x * x if p == 2 else context.builder.op("power", (size, filled(p, x)))


def _root(context: NodeContext, x: Handle) -> Handle:
    p = context.integer("p", 2)
    if p in (1, 2):
        return x if p == 1 else context.builder.op("sqrt", (x,))
    return context.builder.op("power", (x, filled(1 / p, x)))


@rule("MaxUnpool")
def _max_unpool(context: NodeContext) -> Handle:
    """Elements put back to where they were largest, in an array of zeros."""
    b, x, indices = context.builder, context.operand(0), context.operand(1)
    rank = len(x.dims) - 2
    kernel = context.integers("kernel_shape")
    strides, pads = context.integers("strides", (1,) * rank), context.integers("pads", (0,) * (2 * rank))
    own = [(x.dims[2 + i] - 1) * strides[i] - pads[i] - pads[rank + i] + kernel[i] for i in range(rank)]
    dims = context.known_integers(2) if context.has(2) else (*x.dims[:2], *own)
    inferred = (*x.dims[:2], *own)
    count = math.prod(x.dims)
    if context.has(2) and inferred != dims:  # the indices count in the array that was pooled
        position = b.reshape(indices, (count,))
        places = np.indices(inferred).reshape(len(inferred), -1)
        moved = np.ravel_multi_index(tuple(np.minimum(p, d - 1) for p, d in zip(places, dims, strict=True)), dims)
        indices = gather_rows(b, b.constant(moved.astype(np.int64)), position, 0)
    zeros = b.full(0, x.dtype, (math.prod(dims),))
    filled = scatter_slices(b, zeros, b.reshape(indices, (count, 1)), b.reshape(x, (count,)), "assign")
    return b.reshape(filled, dims)


@rule("LRN")
def _lrn(context: NodeContext) -> Handle:
    """X / (bias + alpha / size * sum of the squares of the channels around)^beta."""
    x, size = context.operand(0), context.integer("size")
    window = [WindowDimension(1)] * len(x.dims)
    window[1] = WindowDimension(size, 1, (size - 1) // 2, size // 2)
    total = window_sums(x * x, window) * context.constant(context.number("alpha", 1e-4) / size, x.dtype)
    norm = total + context.constant(context.number("bias", 1.0), x.dtype)
    return x / context.builder.op("power", (norm, filled(context.number("beta", 0.75), x)))


@rule("MaxRoiPool")
def _max_roi_pool(context: NodeContext) -> Handle:
    """The largest value in each cell of a grid over each region; 0 where a cell has no pixel."""
    b, x, regions = context.builder, context.operand(0), context.operand(1)
    pooled, scale = context.integers("pooled_shape"), context.number("spatial_scale", 1.0)
    if len(pooled) != 2 or len(x.dims) != 4 or regions.dims[1:] != (5,):
        raise context.error(f"regions {regions.shape.text()} of {x.shape.text()} in {len(pooled)} dimensions")
    count = regions.dims[0]
    columns = [b.reshape(b.slice(regions, (0, i), (count, i + 1)), (count,)) for i in range(5)]
    edges = [b.op("round-nearest-afz", (each * context.constant(scale, each.dtype),)) for each in columns[1:]]
    rows, places = (_cells(edges[1 - axis], edges[3 - axis], pooled[axis], x.dims[2 + axis]) for axis in range(2))
    own = gather_rows(b, x, b.convert(columns[0], DType.S64), 0)
    low = context.constant(-math.inf, x.dtype)
    for axis, inside in ((3, places), (2, rows)):
        # The dimension of pixels goes; that of cells comes last, so that width stands before height in the end.
        dims = (*own.dims, inside.dims[1])
        mask = b.broadcast(b.transpose(inside, (0, 2, 1)), dims, [0, axis, len(dims) - 1])
        spread = b.select(mask, b.broadcast(own, dims, range(len(own.dims))), b.broadcast(low, dims))
        own = b.reduce(spread, low, [axis], "maximum")
    own = b.transpose(own, [0, 1, 3, 2])
    return b.select(b.compare(own, b.broadcast(low, own.dims), "EQ"), filled(0, own), own)


def _cells(start: Handle, end: Handle, cells: int, size: int) -> Handle:
    """Whether a pixel lies in a cell of a region, `[region, cell, pixel]`."""
    b, dims = start.builder, (*start.dims, cells, size)
    span = b.op("maximum", (end - start + 1.0, filled(1, start))) / filled(cells, start)
    first, step = (b.broadcast(each, dims, [0]) for each in (start, span))
    cell, pixel = (b.iota(start.dtype, dims, axis) for axis in (1, 2))
    low = b.op("floor", (cell * step,)) + first
    high = b.op("ceil", ((cell + 1.0) * step,)) + first
    return b.compare(pixel, low, "GE") & b.compare(pixel, high, "LT")
