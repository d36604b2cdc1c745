"""Sorting, largest elements, and running sums and extremes."""

from __future__ import annotations

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.building.cumulative import cumulative, cumulative_log_sum_exp
from xlalite.hlo.ir.monoid import MonoidKind, monoid_identity
from xlalite.hlo.ops import OPS
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape
from xlalite.hlo.types.window import Window, WindowDimension
from xlalite.interop.torch.rules.operation import Operation
from xlalite.interop.torch.rules.registry import rule


@rule("aten.sort.default")
def sort(at: Operation, x: Handle, axis: int = -1, descending: bool = False) -> tuple[Handle, Handle]:
    """Elements in order, and where they were."""
    return _sorted(at, x, axis, descending=descending)


@rule("aten.sort.stable")
def stable_sort(
    at: Operation, x: Handle, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> tuple[Handle, Handle]:
    """Elements in order, and where they were."""
    return _sorted(at, x, dim, descending=descending)


def _sorted(at: Operation, x: Handle, axis: int, *, descending: bool) -> tuple[Handle, Handle]:
    """NaN is larger than any number; equal elements keep their order."""
    b = at.builder
    if not x.dims:
        return x, b.constant(0, DType.S64)
    axis = axis % len(x.dims)
    keys, numbers = Shape.array(x.dtype), Shape.array(DType.S64)

    def comes_before(inner: Builder, p: tuple[Handle, ...]) -> Handle:
        first, second = (p[1], p[0]) if descending else (p[0], p[1])
        smaller = inner.compare(first, second, "LT")
        if not x.dtype.is_floating:
            return smaller
        is_number, is_nan = inner.compare(first, first, "EQ"), inner.compare(second, second, "NE")
        return smaller | (is_number & is_nan)

    name = f"{'descending' if descending else 'ascending'}_{x.dtype.value}"
    order = b.subcomputation(name, (keys, keys, numbers, numbers), comes_before)
    operands = (x, b.iota(DType.S64, x.dims, axis))
    found = b.op("sort", operands, OPS["sort"].attrs(dimensions=(axis,), is_stable=True), (order,))
    return found[0], found[1]


@rule("aten.topk.default")
def topk(
    at: Operation, x: Handle, k: int, axis: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Handle, Handle]:
    """The largest (or smallest) elements in order, and where they were."""
    b, rank = at.builder, len(x.dims)
    if not rank:
        return b.reshape(x, at.dims), b.full(0, DType.S64, at.dims)
    axis = axis % rank
    order = [*(i for i in range(rank) if i != axis), axis]
    found = b.op("topk", (b.transpose(x, order),), OPS["topk"].attrs(k=k, largest=largest))
    back = [order.index(i) for i in range(rank)]
    return b.transpose(found[0], back), b.convert(b.transpose(found[1], back), DType.S64)


@rule("aten.cumsum.default", "aten.cumprod.default")
def cumsum(at: Operation, x: Handle, axis: int, dtype: object = None) -> Handle:
    """Running sums or products, in the type of the result."""
    opcode, identity = ("add", 0) if at.name.startswith("aten.cumsum") else ("multiply", 1)
    own = at.builder.convert(x, at.dtype)
    return cumulative(own, axis % len(x.dims), opcode, identity) if x.dims else own


@rule("aten.logcumsumexp.default")
def logcumsumexp(at: Operation, x: Handle, axis: int) -> Handle:
    """Logarithms of running sums of exponentials."""
    return cumulative_log_sum_exp(x, axis % len(x.dims)) if x.dims else x


@rule("aten.cummax.default", "aten.cummin.default")
def cummax(at: Operation, x: Handle, axis: int) -> tuple[Handle, Handle]:
    """Running extremes, and where they were last; NaN is both."""
    b, direction = at.builder, "GE" if at.name.startswith("aten.cummax") else "LE"
    if not x.dims or 0 in x.dims:
        return x, b.full(0, DType.S64, x.dims)
    axis, size = axis % len(x.dims), x.dims[axis]
    key, number = Shape.array(x.dtype), Shape.array(DType.S64)

    def better(inner: Builder, p: tuple[Handle, ...]) -> Handle:
        value, place, other, there = p
        takes = inner.compare(other, value, direction) & inner.compare(there, 0, "GE")
        takes = takes | inner.compare(place, 0, "LT")
        if x.dtype.is_floating:
            is_nan = inner.compare(other, other, "NE")
            takes = (takes & inner.compare(value, value, "EQ")) | is_nan | inner.compare(place, 0, "LT")
        return inner.tuple([inner.select(takes, other, value), inner.select(takes, there, place)])

    kind = MonoidKind.MAXIMUM if direction == "GE" else MonoidKind.MINIMUM
    function = b.subcomputation(at.name, (key, number, key, number), better)
    window = [WindowDimension(size, 1, size - 1, 0) if i == axis else WindowDimension(1) for i in range(len(x.dims))]
    starts = (b.constant(monoid_identity(kind, x.dtype), x.dtype), b.constant(-1, DType.S64))
    operands = (x, b.iota(DType.S64, x.dims, axis), *starts)
    found = b.op("reduce-window", operands, OPS["reduce-window"].attrs(window=Window(tuple(window))), (function,))
    return found[0], found[1]
