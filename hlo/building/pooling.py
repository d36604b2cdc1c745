"""Sums, averages and largest values below windows, and what derivatives by them are by the array."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.building.common import accumulator_type
from xlalite.hlo.ir.monoid import MonoidKind, monoid_identity
from xlalite.hlo.ops import OPS
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape
from xlalite.hlo.types.window import Window, WindowDimension


def window_sums(x: Handle, window: Sequence[WindowDimension]) -> Handle:
    """The sum below each window."""
    b, attrs = x.builder, OPS["reduce-window"].attrs(window=Window(tuple(window)))
    return b.op("reduce-window", (x, b.constant(0, x.dtype)), attrs, (b.scalar_function("add", x.dtype),))


def window_counts(
    window: Sequence[WindowDimension], dims: Sequence[int], counted: Sequence[tuple[int, int]] | None = None
) -> npt.NDArray[np.float64]:
    """How many elements each window holds, with 1 for dimensions along which all hold as many.

    Args:
        window: The window.
        dims: Sizes of the array.
        counted: How many elements of the padding count before and behind each dimension; none if left out.
    """
    counts = np.ones((1,) * len(dims))
    for i, (dim, size) in enumerate(zip(window, dims, strict=True)):
        before, behind = (0, 0) if counted is None else counted[i]
        places = np.arange(dim.output_size(size))[:, None] * dim.stride - dim.pad_low
        places = places + np.arange(dim.size) * dim.rhs_dilate
        own = ((places >= -before) & (places < size + behind)).sum(1)
        if own.size and (own == own[0]).all():
            own = own[:1]
        counts = counts * own.reshape([-1 if i == axis else 1 for axis in range(len(dims))])
    return counts


def window_averages(x: Handle, window: Sequence[WindowDimension], counts: npt.NDArray[np.float64]) -> Handle:
    """The sum below each window over a number of its own; sums of narrow types are wide."""
    total = window_sums(x.builder.convert(x, accumulator_type(x.dtype)), window)
    return x.builder.convert(_divided(total, counts), x.dtype)


def averages_to_array(
    grad: Handle, window: Sequence[WindowDimension], counts: npt.NDArray[np.float64], dims: Sequence[int]
) -> Handle:
    """Each element gets its share from all windows that hold it: sums below a window over spread gradients."""
    b = grad.builder
    if 0 in (*grad.dims, *dims):
        return b.full(0, grad.dtype, dims)
    back = []
    for dim, size, count in zip(window, dims, grad.dims, strict=True):
        low = dim.dilated_size - 1 - dim.pad_low
        high = size + dim.dilated_size - 1 - low - ((count - 1) * dim.stride + 1)
        back.append(WindowDimension(dim.size, 1, low, high, dim.stride, dim.rhs_dilate))
    shares = _divided(b.convert(grad, accumulator_type(grad.dtype)), counts)
    return b.convert(window_sums(shares, back), grad.dtype)


def window_largest(x: Handle, window: Sequence[WindowDimension]) -> Handle:
    """The largest element below each window; NaN if there is one."""
    b, attrs = x.builder, OPS["reduce-window"].attrs(window=Window(tuple(window)))
    start = b.constant(monoid_identity(MonoidKind.MAXIMUM, x.dtype), x.dtype)
    return b.op("reduce-window", (x, start), attrs, (b.scalar_function("maximum", x.dtype),))


def largest_to_array(x: Handle, grad: Handle, window: Sequence[WindowDimension]) -> Handle:
    """Gradients added up where the first of the largest elements of their windows lie."""
    b, wide = x.builder, accumulator_type(x.dtype)
    element = Shape.array(wide)
    select = b.subcomputation("at_least", (element, element), lambda inner, p: inner.compare(p[0], p[1], "GE"))
    attrs = OPS["select-and-scatter"].attrs(window=Window(tuple(window)))
    operands = (b.convert(x, wide), b.convert(grad, wide), b.constant(0, wide))
    added = b.op("select-and-scatter", operands, attrs, (select, b.scalar_function("add", wide)))
    return b.convert(added, x.dtype)


def window_largest_with(x: Handle, numbers: Handle, window: Sequence[WindowDimension], *others: Handle) -> list[Handle]:
    """For each window its largest element, the least number (s64) beside such, and what `others` have there."""
    b, operands = x.builder, (x, numbers, *others)
    lowest = b.constant(monoid_identity(MonoidKind.MAXIMUM, x.dtype), x.dtype)
    # No element has so large a number, so that even the lowest value takes the place of the start.
    last = b.constant(np.iinfo(np.int64).max, DType.S64)
    starts = (lowest, last, *(b.constant(0, other.dtype) for other in others))

    def better(inner: Builder, p: tuple[Handle, ...]) -> Handle:
        own, new = p[: len(operands)], p[len(operands) :]
        tied = inner.compare(own[0], new[0], "EQ")
        stays = inner.compare(own[0], new[0], "GT")
        if own[0].dtype.is_floating:
            both_nan = inner.compare(own[0], own[0], "NE") & inner.compare(new[0], new[0], "NE")
            stays, tied = stays | inner.compare(own[0], own[0], "NE"), tied | both_nan
        stays = inner.select(tied, inner.compare(own[1], new[1], "LT"), stays)
        return inner.tuple([inner.select(stays, *pair) for pair in zip(own, new, strict=True)])

    scalars = [Shape.array(operand.dtype) for operand in operands]
    function = b.subcomputation("first_largest", [*scalars, *scalars], better)
    attrs = OPS["reduce-window"].attrs(window=Window(tuple(window)))
    found = b.op("reduce-window", (*operands, *starts), attrs, (function,))
    return [found[i] for i in range(len(operands))]


def _divided(x: Handle, counts: npt.NDArray[np.float64]) -> Handle:
    divisor = x.builder.constant(counts.astype(x.dtype.numpy), x.dtype)
    return x / x.builder.broadcast_in_dim(divisor, x.dims, range(len(x.dims)))
