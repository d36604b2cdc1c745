"""Sums, products, extrema and what is made of them. Sums of narrow floating-point types are taken in f32."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xlalite.hlo.building.builder import Builder, Handle, Handles
from xlalite.hlo.types.dtype import DType, Kind
from xlalite.hlo.types.shape import Shape
from xlalite.interop.torch.rules.operation import Number, Operation, highest, lowest
from xlalite.interop.torch.rules.registry import Declined, rule

Axes = Sequence[int] | int | None


@rule("aten.sum.dim_IntList", "aten.sum.default")
def sum_(op: Operation, x: Handle, dim: Axes = None, keepdim: bool = False, dtype: object = None) -> Handle:
    """Sum in the result's type."""
    return op.cast(op.reduce(op.wide(x), op.axes(dim, len(x.dims)), "add", 0, keepdim), op.dtype)


@rule("aten.mean.dim", "aten.mean.default")
def mean(op: Operation, x: Handle, dim: Axes = None, keepdim: bool = False, dtype: object = None) -> Handle:
    """Mean in the result's type."""
    axes = op.axes(dim, len(x.dims))
    total = op.reduce(op.wide(x), axes, "add", 0, keepdim)
    return op.cast(total / math.prod(x.dims[axis] for axis in axes), op.dtype)


@rule("aten.prod.default", "aten.prod.dim_int")
def prod(op: Operation, x: Handle, dim: Axes = None, keepdim: bool = False, dtype: object = None) -> Handle:
    """Product in the result's type."""
    return op.cast(op.reduce(op.wide(x), op.axes(dim, len(x.dims)), "multiply", 1, keepdim), op.dtype)


@rule("aten.amax.default", "aten.max.default")
def amax(op: Operation, x: Handle, dim: Axes = None, keepdim: bool = False) -> Handle:
    """Largest element; NaN where there is one."""
    return op.reduce(x, _with_elements(op, x, dim), "maximum", lowest(x.dtype), keepdim)


@rule("aten.amin.default", "aten.min.default")
def amin(op: Operation, x: Handle, dim: Axes = None, keepdim: bool = False) -> Handle:
    """Smallest element; NaN where there is one."""
    return op.reduce(x, _with_elements(op, x, dim), "minimum", highest(x.dtype), keepdim)


def _with_elements(op: Operation, x: Handle, dim: Axes) -> tuple[int, ...]:
    axes = op.axes(dim, len(x.dims))
    if any(not x.dims[axis] for axis in axes):
        raise Declined("the extreme of nothing")
    return axes


@rule("aten.any.default", "aten.any.dim", "aten.any.dims")
def any_(op: Operation, x: Handle, dim: Axes = None, keepdim: bool = False) -> Handle:
    """Whether an element is not zero."""
    found = op.reduce(op.cast(x, DType.PRED), op.axes(dim, len(x.dims)), "or", False, keepdim)
    return op.cast(found, op.dtype)


@rule("aten.all.default", "aten.all.dim", "aten.all.dims")
def all_(op: Operation, x: Handle, dim: Axes = None, keepdim: bool = False) -> Handle:
    """Whether no element is zero."""
    found = op.reduce(op.cast(x, DType.PRED), op.axes(dim, len(x.dims)), "and", True, keepdim)
    return op.cast(found, op.dtype)


@rule("aten.var.correction")
def var(
    op: Operation, x: Handle, dim: Axes = None, *, correction: Number | None = None, keepdim: bool = False
) -> Handle:
    """Mean square of the distances from the mean."""
    return variance_and_mean(op, x, dim, correction, keepdim)[0]


@rule("aten.var.dim")
def var_dim(op: Operation, x: Handle, dim: Axes, unbiased: bool = True, keepdim: bool = False) -> Handle:
    """Mean square of the distances from the mean, corrected by one or not."""
    return variance_and_mean(op, x, dim, int(unbiased), keepdim)[0]


@rule("aten.var_mean.correction")
def var_mean(
    op: Operation, x: Handle, dim: Axes = None, *, correction: Number | None = None, keepdim: bool = False
) -> Handles:
    """Variance and mean."""
    return variance_and_mean(op, x, dim, correction, keepdim)


def variance_and_mean(op: Operation, x: Handle, dim: Axes, correction: Number | None, keep: bool) -> Handles:
    """Variance and mean, in two passes."""
    if x.dtype.kind is not Kind.FLOAT:
        raise Declined(f"variance of {x.dtype.value}")
    axes, wide = op.axes(dim, len(x.dims)), op.wide(x, x.dtype)
    count = math.prod(x.dims[axis] for axis in axes)
    lost = 1 if correction is None else correction
    assert not isinstance(lost, complex), "ATen declares a real number"
    middle = op.reduce(wide, axes, "add", 0, True) / count
    centred = wide - op.expand(middle, x.dims)
    divisor = max(0, count - lost)
    squares = op.reduce(centred * centred, axes, "add", 0, keep) / divisor
    mean_dims = squares.dims
    return op.cast(squares, x.dtype), op.cast(op.builder.reshape(middle, mean_dims), x.dtype)


@rule("aten.argmax.default")
def argmax(op: Operation, x: Handle, dim: int | None = None, keepdim: bool = False) -> Handle:
    """Where the largest element is; the first of them."""
    return extremum(op, x, dim, keepdim, "GT")[1]


@rule("aten.argmin.default")
def argmin(op: Operation, x: Handle, dim: int | None = None, keepdim: bool = False) -> Handle:
    """Where the smallest element is; the first of them."""
    return extremum(op, x, dim, keepdim, "LT")[1]


@rule("aten.max.dim")
def max_dim(op: Operation, x: Handle, dim: int, keepdim: bool = False) -> Handles:
    """The largest elements along an axis, and where they are."""
    return extremum(op, x, dim, keepdim, "GT")


@rule("aten.min.dim")
def min_dim(op: Operation, x: Handle, dim: int, keepdim: bool = False) -> Handles:
    """The smallest elements along an axis, and where they are."""
    return extremum(op, x, dim, keepdim, "LT")


def extremum(op: Operation, x: Handle, dim: int | None, keep: bool, direction: str) -> Handles:
    """Extremal elements and the first places of them; NaN goes before every number."""
    b, _ = op.builder, _with_elements(op, x, dim)
    flat = b.reshape(x, (math.prod(x.dims),)) if dim is None else b.reshape(x, x.dims or (1,))
    axis = op.axis(dim or 0, len(flat.dims))
    worst = lowest(x.dtype) if direction == "GT" else highest(x.dtype)
    starts = (op.number(worst, x.dtype), op.number(flat.dims[axis], DType.S64))
    scalars = [Shape.array(x.dtype), Shape.array(DType.S64)] * 2

    def better(inner: Builder, p: Handles) -> Handle:
        value, place, other, other_place = p
        first = inner.compare(place, other_place, "LT")
        nan, other_nan = inner.compare(value, value, "NE"), inner.compare(other, other, "NE")
        same = inner.compare(value, other, "EQ") | (nan & other_nan)
        wins = (inner.compare(value, other, direction) | nan) & ~other_nan
        wins = inner.select(same, first, wins)
        return inner.tuple([inner.select(wins, value, other), inner.select(wins, place, other_place)])

    function = b.subcomputation(f"first_{direction.lower()}_{op.unique_name}", scalars, better)
    pair = b.reduce((flat, b.iota(DType.S64, flat.dims, axis)), starts, (axis,), function)
    dims = pair[0].dims
    if keep:
        dims = tuple(1 if dim is None or i == axis else size for i, size in enumerate(x.dims))
    elif not x.dims:
        dims = ()
    return b.reshape(pair[0], dims), b.reshape(pair[1], dims)


@rule("aten.linalg_vector_norm.default")
def vector_norm(
    op: Operation, x: Handle, ord: Number = 2, dim: Axes = None, keepdim: bool = False, *, dtype: object = None
) -> Handle:
    """Norm of the elements along axes."""
    if x.dtype.kind is not Kind.FLOAT:
        raise Declined(f"norm of {x.dtype.value}")
    b, axes = op.builder, op.axes(dim, len(x.dims))
    size = b.op("abs", (op.wide(x),))
    match ord:
        case math.inf:
            found = op.reduce(size, axes, "maximum", 0, keepdim)
        case _ if ord == -math.inf:
            found = op.reduce(size, axes, "minimum", math.inf, keepdim)
        case 0:
            found = op.reduce(op.cast(b.compare(size, 0, "NE"), size.dtype), axes, "add", 0, keepdim)
        case 1:
            found = op.reduce(size, axes, "add", 0, keepdim)
        case 2:
            found = b.op("sqrt", (op.reduce(size * size, axes, "add", 0, keepdim),))
        case _:
            assert not isinstance(ord, complex), "ATen declares a real number"
            found = op.reduce(size ** float(ord), axes, "add", 0, keepdim) ** (1 / float(ord))
    return op.cast(found, op.dtype)


@rule("aten._softmax.default", "aten._log_softmax.default")
def softmax(op: Operation, x: Handle, dim: int, half_to_float: bool) -> Handle:
    """Softmax along an axis, or its logarithm."""
    axes, wide, b = op.axes(dim, len(x.dims)), op.wide(x), op.builder
    shifted = wide - op.expand(op.reduce(wide, axes, "maximum", -math.inf, True), x.dims)
    powers = b.op("exponential", (shifted,))
    total = op.reduce(powers, axes, "add", 0, True)
    if op.name == "aten._softmax.default":
        return op.cast(powers / op.expand(total, x.dims), op.dtype)
    return op.cast(shifted - op.expand(b.op("log", (total,)), x.dims), op.dtype)
