"""Average and largest values below windows over the last dimensions, and their derivatives."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.building.common import accumulator_type, sum_axes
from xlalite.hlo.building.indexing import scatter_along
from xlalite.hlo.building.pooling import (
    averages_to_array,
    largest_to_array,
    window_averages,
    window_counts,
    window_largest_with,
)
from xlalite.hlo.ops import OPS
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.window import WindowDimension
from xlalite.interop.torch.rules.operation import Operation
from xlalite.interop.torch.rules.registry import rule


def _window(
    dims: Sequence[int],
    output: Sequence[int],
    sizes: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int] = (1,),
) -> list[WindowDimension]:
    """The window over the last dimensions; behind them it may reach further than the padding, or less far."""
    space = len(sizes)
    steps = zip(*(_each(each, space) for each in (sizes, stride or sizes, padding, dilation)), strict=True)
    window = [WindowDimension(1) for _ in dims[:-space]]
    for size, count, (extent, by, pad, spread) in zip(dims[-space:], output[-space:], steps, strict=True):
        behind = (count - 1) * by + (extent - 1) * spread + 1 - size - pad
        window.append(WindowDimension(extent, by, pad, behind, rhs_dilate=spread))
    return window


def _each(sizes: Sequence[int], count: int) -> Sequence[int]:
    return list(sizes) * count if len(sizes) == 1 else sizes


def _counts(
    window: Sequence[WindowDimension], dims: Sequence[int], *, with_padding: bool, override: int | None
) -> npt.NDArray[np.float64]:
    if override is not None:
        return np.full((1,) * len(dims), float(override))
    return window_counts(window, dims, [(dim.pad_low, dim.pad_low) for dim in window] if with_padding else None)


@rule("aten.avg_pool1d.default", "aten.avg_pool2d.default", "aten.avg_pool3d.default")
def avg_pool(
    at: Operation,
    x: Handle,
    sizes: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Handle:
    """Padding counts if it is said to; what a window reaches beyond it never does."""
    window = _window(x.dims, at.dims, sizes, stride, padding)
    counts = _counts(window, x.dims, with_padding=count_include_pad, override=divisor_override)
    return window_averages(x, window, counts)


@rule("aten.avg_pool2d_backward.default", "aten.avg_pool3d_backward.default")
def avg_pool_backward(
    at: Operation,
    grad: Handle,
    x: Handle,
    sizes: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Handle:
    """Each element gets its share."""
    window = _window(x.dims, grad.dims, sizes, stride, padding)
    counts = _counts(window, x.dims, with_padding=count_include_pad, override=divisor_override)
    return averages_to_array(grad, window, counts, x.dims)


@rule("aten.max_pool2d_with_indices.default", "aten.max_pool3d_with_indices.default")
def max_pool(
    at: Operation,
    x: Handle,
    sizes: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
) -> tuple[Handle, Handle]:
    """The largest elements, and where in their image the first of them lie."""
    b, space = at.builder, x.dims[-len(sizes) :]
    window = _window(x.dims, at.dims, sizes, stride, padding, dilation)
    numbers = b.reshape(b.iota(DType.S64, [math.prod(space)], 0), space)
    places = b.broadcast(numbers, x.dims, range(len(x.dims) - len(space), len(x.dims)))
    largest, place = window_largest_with(x, places, window)
    return largest, place


@rule("aten.max_pool2d_with_indices_backward.default", "aten.max_pool3d_with_indices_backward.default")
def max_pool_backward(
    at: Operation,
    grad: Handle,
    x: Handle,
    sizes: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
    indices: Handle,
) -> Handle:
    """Gradients go to the elements that were the largest."""
    b, window = at.builder, _window(x.dims, grad.dims, sizes, stride, padding, dilation)
    if all(dim.rhs_dilate == 1 and dim.pad_high >= 0 for dim in window):
        return largest_to_array(x, grad, window)
    wide, kept = accumulator_type(x.dtype), x.dims[: -len(sizes)]
    flat = [*kept, math.prod(x.dims[-len(sizes) :])]
    rows = [*kept, math.prod(grad.dims[-len(sizes) :])]
    updates = b.reshape(b.convert(grad, wide), rows)
    found = scatter_along(b.full(0, wide, flat), b.reshape(indices, rows), updates, len(kept), "add")
    return b.convert(b.reshape(found, x.dims), x.dtype)


def _averaging(old: int, new: int) -> npt.NDArray[np.float64]:
    """`[old, new]`, the shares of old elements in new ones, each the average of what it covers at least partly."""
    numbers = np.arange(new)
    starts, ends = numbers * old // new, -(-(numbers + 1) * old // new)
    places = np.arange(old)[:, None]
    return ((places >= starts) & (places < ends)) / (ends - starts)


@rule("aten._adaptive_avg_pool2d.default", "aten._adaptive_avg_pool3d.default")
def adaptive_avg_pool(at: Operation, x: Handle, sizes: Sequence[int]) -> Handle:
    """Averages of as many parts as are asked for, which may share elements."""
    return _averaged(at, x, at.dims, len(sizes), is_transposed=False)


@rule("aten._adaptive_avg_pool2d_backward.default", "aten._adaptive_avg_pool3d_backward.default")
def adaptive_avg_pool_backward(at: Operation, grad: Handle, x: Handle) -> Handle:
    """Each element gets its shares."""
    return _averaged(at, grad, x.dims, len(x.dims) - 1, is_transposed=True)


def _averaged(at: Operation, x: Handle, dims: Sequence[int], space: int, *, is_transposed: bool) -> Handle:
    b, wide = at.builder, accumulator_type(x.dtype)
    found = b.convert(x, wide)
    for axis in range(max(len(dims) - space, 1), len(dims)):
        old, new = found.dims[axis], dims[axis]
        if is_transposed and old == 1:
            stretched = [*found.dims[:axis], new, *found.dims[axis + 1 :]]
            found = b.broadcast_in_dim(found / new, stretched, range(len(dims)))
        elif new == 1:
            found = sum_axes(b, found, [axis], keep_dims=True) / old
        elif old != new:
            shares = _averaging(new, old).T if is_transposed else _averaging(old, new)
            weights = b.constant(shares.astype(wide.numpy), wide)
            attrs = OPS["dot"].attrs(lhs_contracting_dims=(axis,), rhs_contracting_dims=(0,))
            product = b.op("dot", (found, weights), attrs)
            order = [*range(axis), len(dims) - 1, *range(axis, len(dims) - 1)]
            found = b.transpose(product, order)
    return b.convert(found, x.dtype)
