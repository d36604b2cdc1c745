"""Running sums, products and the like along a dimension."""

from __future__ import annotations

import math

from xlalite.hlo.building.builder import Builder, Handle, Number
from xlalite.hlo.building.common import accumulator_type
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ops import OPS
from xlalite.hlo.types.shape import Shape
from xlalite.hlo.types.window import Window, WindowDimension


def cumulative(
    x: Handle,
    axis: int,
    combine: str | HloComputation,
    identity: Number,
    *,
    reverse: bool = False,
    exclusive: bool = False,
) -> Handle:
    """What is combined of all elements up to each along a dimension.

    Args:
        x: The array; sums and products of narrow types are wide while they run.
        axis: The dimension.
        combine: An opcode such as `add`, or a computation of two scalars, for which order counts.
        identity: What changes nothing.
        reverse: Whether it begins at the end.
        exclusive: Whether an element itself is left out.
    """
    b, size = x.builder, x.dims[axis] if x.dims else 0
    if 0 in x.dims or not x.dims:
        return x
    if reverse and not isinstance(combine, str):
        turned = cumulative(b.reverse(x, [axis]), axis, combine, identity, exclusive=exclusive)
        return b.reverse(turned, [axis])
    wide = accumulator_type(x.dtype) if combine in ("add", "multiply") else x.dtype
    start, own = b.constant(identity, wide), b.convert(x, wide)
    if exclusive:
        shift = (-1, 1, 0) if reverse else (1, -1, 0)
        own = b.pad(own, start, [shift if i == axis else (0, 0, 0) for i in range(len(x.dims))])
    padding = (0, size - 1) if reverse else (size - 1, 0)
    window = [WindowDimension(size, 1, *padding) if i == axis else WindowDimension(1) for i in range(len(x.dims))]
    function = b.scalar_function(combine, wide) if isinstance(combine, str) else combine
    found = b.op("reduce-window", (own, start), OPS["reduce-window"].attrs(window=Window(tuple(window))), (function,))
    return b.convert(found, x.dtype)


def cumulative_log_sum_exp(x: Handle, axis: int, *, reverse: bool = False, exclusive: bool = False) -> Handle:
    """Logarithms of running sums of exponentials; arguments as above."""
    scalar = Shape.array(x.dtype)
    function = x.builder.subcomputation("log_add", (scalar, scalar), _log_add)
    return cumulative(x, axis, function, -math.inf, reverse=reverse, exclusive=exclusive)


def _log_add(b: Builder, p: tuple[Handle, ...]) -> Handle:
    """log(e^x + e^y), from the larger one."""
    x, y = p
    larger = b.op("maximum", (x, y))
    distance = b.op("abs", (x - y,))
    total = larger + b.op("log-plus-one", (b.op("exponential", (-distance,)),))
    return b.select(b.op("is-finite", (larger,)), total, larger)
