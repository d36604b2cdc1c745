"""Running sums, products and the like along a dimension."""

from __future__ import annotations

from xlalite.hlo.building.builder import Handle, Number
from xlalite.hlo.building.common import accumulator_type
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ops import OPS
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
