"""Grey-scale morphology, and values of images between their elements."""

from __future__ import annotations

from typing import Any

from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions.array import reverse
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.promotion import promote


def dilation2d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    rates: Any = None,
    padding: str | None = None,
    name: str | None = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The largest `input + filter` below each position of the window.

    Args:
        input: Images `[batch, height, width, channels]`.
        filter: The window `[height, width, channels]`.
        strides: Distances of its positions, one for each dimension.
        rates: Distances of its elements.
        padding: `SAME` or `VALID`.
        name: Name of the operation.
        filters: Newer spelling of `filter`.
        dilations: Newer spelling of `rates`.
    """
    window = filter if filters is None else filters
    holes = rates if dilations is None else dilations
    attrs = {"strides": tuple(strides), "rates": tuple(holes), "padding": padding}
    return node("Dilation2D", promote(input, window), attrs, name)


def erosion2d(value: Any, kernel: Any, strides: Any, rates: Any, padding: str, name: str | None = None) -> Tensor:
    """The smallest `value - kernel` below each position of the window."""
    images, window = promote(value, kernel)
    return node("Neg", [dilation2d(-images, reverse(window, [0, 1]), strides, rates, padding)], None, name)


def resampler(data: Any, warp: Any, name: str = "resampler") -> Tensor:
    """Images `[batch, height, width, channels]` at places `[batch, ..., 2]`, x before y, by linear interpolation."""
    return node("Resampler", promote(data, warp), None, name)
