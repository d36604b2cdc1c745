"""Elements and slices at indices: taken, put and combined with what is there."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from xlalite.hlo.building.broadcasting import broadcast_dims
from xlalite.hlo.building.builder import Handle, Number
from xlalite.hlo.building.common import broadcast_to
from xlalite.hlo.building.cumulative import cumulative
from xlalite.hlo.building.indexing import (
    gather_along,
    gather_rows,
    gather_slices,
    index_vectors,
    scatter_along,
    scatter_slices,
    wrapped,
)
from xlalite.hlo.ir.monoid import MonoidKind, monoid_identity
from xlalite.hlo.types.dtype import DType
from xlalite.interop.torch.rules.operation import Operation
from xlalite.interop.torch.rules.registry import Declined, rule

_REDUCTIONS = {
    "sum": "add",
    "add": "add",
    "mean": "add",
    "prod": "multiply",
    "multiply": "multiply",
    "amax": "maximum",
    "amin": "minimum",
}
_MONOIDS = {
    "add": MonoidKind.ADD,
    "multiply": MonoidKind.MULTIPLY,
    "maximum": MonoidKind.MAXIMUM,
    "minimum": MonoidKind.MINIMUM,
}


@rule("aten.embedding.default")
def embedding(
    at: Operation,
    table: Handle,
    indices: Handle,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Handle:
    """Rows of a table."""
    _check(at, indices, table.dims[0], IndexError)
    return gather_rows(at.builder, table, indices, 0)


@rule("aten.embedding_dense_backward.default")
def embedding_backward(
    at: Operation, grad: Handle, indices: Handle, count: int, padding_idx: int, scale_grad_by_freq: bool
) -> Handle:
    """Sums of gradients for each row; none for the padding, and over how often it was read if asked for."""
    b, places = at.builder, indices
    if padding_idx >= 0:
        places = b.select(b.compare(places, padding_idx, "EQ"), b.full(count, places.dtype, places.dims), places)
    vectors = b.reshape(places, (*places.dims, 1))
    if scale_grad_by_freq:
        one = b.full(1, grad.dtype, indices.dims)
        often = scatter_slices(b, b.full(0, grad.dtype, (count,)), vectors, one, "add")
        share = b.reshape(gather_rows(b, often, indices, 0), (*indices.dims, 1))
        grad = grad / broadcast_to(b, share, grad.dims)
    return scatter_slices(b, b.full(0, grad.dtype, (count, grad.dims[-1])), vectors, grad, "add")


@rule("aten.index_select.default")
def index_select(at: Operation, x: Handle, axis: int, indices: Handle) -> Handle:
    """Slices along a dimension."""
    b = at.builder
    _check(at, indices, x.dims[axis] if x.dims else 1, IndexError)
    if not x.dims:
        return x
    return gather_rows(b, x, b.reshape(indices, (math.prod(indices.dims),)), axis % len(x.dims))


@rule("aten.gather.default")
def gather(at: Operation, x: Handle, axis: int, indices: Handle, sparse_grad: bool = False) -> Handle:
    """Elements at indices along a dimension."""
    _check(at, indices, x.dims[axis] if x.dims else 1)
    if not x.dims or not indices.dims:
        return at.builder.reshape(x, indices.dims)
    return gather_along(x, indices, axis % len(x.dims))


@rule(
    "aten.scatter.src",
    "aten.scatter.value",
    "aten.scatter.reduce",
    "aten.scatter.value_reduce",
    "aten.scatter_add.default",
)
def scatter(
    at: Operation, x: Handle, axis: int, indices: Handle, source: Handle | Number, reduce: str | None = None
) -> Handle:
    """Elements put at indices along a dimension, or combined with what is there."""
    opcode = "add" if at.name == "aten.scatter_add.default" else _REDUCTIONS[reduce] if reduce else "assign"
    updates = _updates(at, source, indices, x.dtype)
    _check(at, indices, x.dims[axis] if x.dims else 1)
    if opcode == "assign":
        return _along(at, x, indices, updates, axis, opcode)
    return at.cast(_along(at, at.wide(x), indices, at.wide(updates), axis, opcode), x.dtype)


@rule("aten.scatter_reduce.two")
def scatter_reduce(
    at: Operation, x: Handle, axis: int, indices: Handle, source: Handle, reduce: str, include_self: bool = True
) -> Handle:
    """Elements combined at indices along a dimension, with or without what is there."""
    b, opcode = at.builder, _REDUCTIONS[reduce]
    _check(at, indices, x.dims[axis] if x.dims else 1)
    x = start = at.wide(x)
    updates, ones = at.wide(_updates(at, source, indices, x.dtype)), b.full(1, x.dtype, indices.dims)
    if not include_self:
        nothing = b.constant(monoid_identity(_MONOIDS[opcode], x.dtype), x.dtype)
        start = _along(at, x, indices, b.broadcast(nothing, indices.dims), axis, "assign")
    found = _along(at, start, indices, updates, axis, opcode)
    if reduce != "mean":
        return at.cast(found, at.dtype)
    own = b.full(int(include_self), x.dtype, x.dims)
    count = b.op("maximum", (_along(at, own, indices, ones, axis, "add"), b.full(1, x.dtype, x.dims)))
    if x.dtype.is_floating or x.dtype.is_complex:
        return at.cast(found / count, at.dtype)
    quotient = found / count
    inexact = b.compare(quotient * count, found, "NE") & b.compare(found, 0, "LT")
    return b.select(inexact, quotient - 1, quotient)


def _check(
    at: Operation, indices: Handle, size: int, error: type[Exception] = RuntimeError, *, from_end: bool = False
) -> None:
    """Indices that a dimension has not end the call, as in torch; negative ones count from its end or are such."""
    if 0 not in indices.dims:
        own = at.builder.convert(indices, DType.S64)
        own = at.builder.convert(own + size if from_end else own, DType.U64)  # where negative ones are large
        message = f"index is out of bounds for a dimension of size {size}"
        at.refuse_where(at.builder.compare(own, 2 * size if from_end else size, "GE"), message, error)


def _updates(at: Operation, source: Handle | Number, indices: Handle, dtype: DType) -> Handle:
    """As many updates as there are indices, which the source may exceed."""
    b = at.builder
    if not isinstance(source, Handle):
        return b.full(source, dtype, indices.dims)
    if len(source.dims) != len(indices.dims):
        return broadcast_to(b, source, indices.dims)
    return b.slice(source, [0] * len(indices.dims), indices.dims) if source.dims != indices.dims else source


def _along(at: Operation, x: Handle, indices: Handle, updates: Handle, axis: int, opcode: str) -> Handle:
    if not x.dims or not indices.dims:
        whole, places, given = (at.builder.reshape(each, (1,) * max(len(x.dims), 1)) for each in (x, indices, updates))
        return at.builder.reshape(scatter_along(whole, places, given, 0, opcode), x.dims)
    return scatter_along(x, indices, updates, axis % len(x.dims), opcode)


@rule("aten.index_add.default", "aten.index_copy.default")
def index_add(at: Operation, x: Handle, axis: int, indices: Handle, source: Handle, alpha: Number = 1) -> Handle:
    """Slices along a dimension, put or added."""
    is_copy = at.name.startswith("aten.index_copy")
    _check(at, indices, x.dims[axis] if x.dims else 1, IndexError if is_copy else RuntimeError)
    if is_copy:
        return _rows(at, x, axis, indices, source, "assign")
    source = at.wide(source) * alpha if alpha != 1 else at.wide(source)
    return at.cast(_rows(at, at.wide(x), axis, indices, source, "add"), at.dtype)


@rule("aten.index_fill.int_Scalar", "aten.index_fill.int_Tensor")
def index_fill(at: Operation, x: Handle, axis: int, indices: Handle, value: Handle | Number) -> Handle:
    """Slices along a dimension, filled."""
    b, count = at.builder, math.prod(indices.dims)
    axis = axis % max(len(x.dims), 1)
    _check(at, indices, x.dims[axis] if x.dims else 1, IndexError, from_end=True)
    dims = [count if i == axis else size for i, size in enumerate(x.dims)]
    filled = b.broadcast(b.convert(value, x.dtype), dims) if isinstance(value, Handle) else b.full(value, x.dtype, dims)
    return _rows(at, x, axis, indices, filled, "assign")


def _rows(at: Operation, x: Handle, axis: int, indices: Handle, updates: Handle, opcode: str) -> Handle:
    b, count = at.builder, math.prod(indices.dims)
    own = b.reshape(x, x.dims or (1,))
    axis = axis % len(own.dims)
    front = [axis, *(i for i in range(len(own.dims)) if i != axis)]
    back = list(np.argsort(front))
    given = b.reshape(updates, [count if i == axis else size for i, size in enumerate(own.dims)])
    vectors = wrapped(b.reshape(indices, (count, 1)), own.dims[axis])
    found = scatter_slices(b, b.transpose(own, front), vectors, b.transpose(given, front), opcode)
    return b.reshape(b.transpose(found, back), x.dims)


@rule("aten.index.Tensor", "aten._unsafe_index.Tensor")
def index(at: Operation, x: Handle, indices: Sequence[Handle | None]) -> Handle:
    """NumPy's indexing by arrays."""
    b, own = at.builder, _Indices.of(at, x, indices)
    own.check(at)
    if 0 in at.dims:
        return b.full(0, x.dtype, at.dims)
    found = gather_slices(b, b.transpose(x, own.front), own.vectors(at))
    return b.transpose(found, own.order)


@rule("aten.index_put.default", "aten._unsafe_index_put.default")
def index_put(
    at: Operation, x: Handle, indices: Sequence[Handle | None], values: Handle, accumulate: bool = False
) -> Handle:
    """NumPy's assignment to what arrays index; what is indexed twice is added up if asked for."""
    b, given = at.builder, [each for each in indices if each is not None]
    if len(given) == 1 and given[0].dtype is DType.PRED and not accumulate and math.prod(values.dims) == 1:
        first = next(i for i, each in enumerate(indices) if each is not None)
        mask = b.broadcast(given[0], x.dims, range(first, first + len(given[0].dims)))
        return b.select(mask, b.broadcast(b.reshape(values, ()), x.dims), x)
    own = _Indices.of(at, x, indices)
    own.check(at)
    turned = b.transpose(x, own.front)
    taken = [(*own.dims, *turned.dims[len(given) :])[i] for i in own.order]
    updates = b.transpose(broadcast_to(b, values, taken), np.argsort(own.order).tolist())
    if 0 in updates.dims:
        return x
    if accumulate:
        turned, updates = at.wide(turned), at.wide(updates)
    found = scatter_slices(b, turned, own.vectors(at), updates, "add" if accumulate else "assign")
    return b.transpose(at.cast(found, at.dtype), np.argsort(own.front).tolist())


class _Indices:
    """Arrays that index some dimensions.

    Attributes:
        given: The arrays, at their common sizes.
        dims: These sizes.
        sizes: Those of the dimensions that they index.
        front: The order of dimensions that has the indexed ones first.
        order: The order in which the result has the dimensions of the arrays and then all others.
    """

    def __init__(self, x: Handle, given: list[Handle], places: list[int]) -> None:
        b, rank = x.builder, len(x.dims)
        self.dims: tuple[int, ...] = ()
        for each in given:
            self.dims = broadcast_dims(self.dims, each.dims)
        self.given = [broadcast_to(b, each, self.dims) for each in given]
        self.sizes = [x.dims[i] for i in places]
        others = [i for i in range(rank) if i not in places]
        self.front = [*places, *others]
        count, before = len(self.dims), places[0]
        self.order = list(range(count + len(others)))
        if places == list(range(before, before + len(places))):
            self.order = [*range(count, count + before), *range(count), *range(count + before, count + len(others))]

    @staticmethod
    def of(at: Operation, x: Handle, indices: Sequence[Handle | None]) -> _Indices:
        """Those of a call.

        Raises:
            Declined: A mask says how many elements there are.
        """
        places = [i for i, each in enumerate(indices) if each is not None]
        given = [each for each in indices if each is not None]
        if any(each.dtype in (DType.PRED, DType.U8) for each in given):
            raise Declined("a mask says how many elements there are")
        return _Indices(x, given, places)

    def check(self, at: Operation) -> None:
        """Indices that are in no dimension end the call, unless somebody has seen to them."""
        if not at.name.startswith("aten._unsafe"):
            for each, size in zip(self.given, self.sizes, strict=True):
                _check(at, each, size, IndexError, from_end=True)

    def vectors(self, at: Operation) -> Handle:
        """The index vectors; negative numbers count from the end."""
        b = at.builder
        wide = [b.convert(each, DType.S64) for each in self.given]
        return index_vectors([wrapped(each, size) for each, size in zip(wide, self.sizes, strict=True)])


@rule("aten.masked_scatter.default")
def masked_scatter(at: Operation, x: Handle, mask: Handle, source: Handle) -> Handle:
    """The elements of a source, one after the other, where a mask holds."""
    b, count = at.builder, math.prod(at.dims)
    if not count:
        return broadcast_to(b, x, at.dims)
    chosen = b.reshape(broadcast_to(b, mask, at.dims), (count,))
    number = cumulative(b.convert(chosen, DType.S64), 0, "add", 0) - 1
    if math.prod(source.dims) < count:
        is_missing = chosen & b.compare(number, math.prod(source.dims), "GE")
        at.refuse_where(is_missing, "Number of elements of source < number of ones in mask")
    if 0 in source.dims:
        return broadcast_to(b, x, at.dims)
    flat = b.reshape(source, (math.prod(source.dims),))
    taken = gather_rows(b, flat, number, 0)
    own = b.reshape(broadcast_to(b, x, at.dims), (count,))
    return b.reshape(b.select(chosen, taken, own), at.dims)


@rule("aten.diagonal.default", "aten.diagonal_copy.default")
def diagonal(at: Operation, x: Handle, offset: int = 0, first: int = 0, second: int = 1) -> Handle:
    """A diagonal, as the last dimension."""
    b, rank = at.builder, len(x.dims)
    first, second, count = first % rank, second % rank, at.dims[-1]
    others = [i for i in range(rank) if i not in (first, second)]
    if 0 in at.dims:
        return b.full(0, x.dtype, at.dims)
    numbers = np.arange(count)
    vectors = np.stack([numbers + max(-offset, 0), numbers + max(offset, 0)], 1)
    taken = gather_slices(b, b.transpose(x, [first, second, *others]), b.constant(vectors))
    return b.transpose(taken, [*range(1, rank - 1), 0])


@rule("aten.diagonal_scatter.default")
def diagonal_scatter(
    at: Operation, x: Handle, source: Handle, offset: int = 0, first: int = 0, second: int = 1
) -> Handle:
    """An array with another one on a diagonal."""
    b, rank = at.builder, len(x.dims)
    front = [first % rank, second % rank]
    front += [i for i in range(rank) if i not in front]
    numbers = np.arange(source.dims[-1])
    vectors = np.stack([numbers + max(-offset, 0), numbers + max(offset, 0)], 1)
    updates = b.transpose(source, [rank - 2, *range(rank - 2)])
    found = scatter_slices(b, b.transpose(x, front), b.constant(vectors), updates, "assign")
    return b.transpose(found, np.argsort(front).tolist())


@rule("aten.unfold.default", "aten.unfold_copy.default")
def unfold(at: Operation, x: Handle, axis: int, size: int, step: int) -> Handle:
    """Windows along a dimension, as the last dimension."""
    b, rank = at.builder, len(x.dims)
    if not rank:
        return b.reshape(x, at.dims)
    axis = axis % rank
    if 0 in at.dims:
        return b.full(0, x.dtype, at.dims)
    places = np.arange(at.dims[axis])[:, None] * step + np.arange(size)
    taken = gather_rows(b, x, b.constant(places), axis)
    return b.transpose(taken, [i for i in range(rank + 1) if i != axis + 1] + [axis + 1])


@rule("aten.nonzero_static.default")
def nonzero_static(at: Operation, x: Handle, size: int, fill_value: int = -1) -> Handle:
    """The places of the first elements that are not zero."""
    b, count = at.builder, math.prod(x.dims)
    if 0 in at.dims or not count:
        return b.full(fill_value, DType.S64, at.dims)
    chosen = b.reshape(b.compare(x, 0, "NE"), (count,))
    number = cumulative(b.convert(chosen, DType.S64), 0, "add", 0) - 1
    target = b.select(chosen, number, b.full(size, DType.S64, (count,)))
    parts = [b.reshape(b.iota(DType.S64, x.dims, i), (count,)) for i in range(len(x.dims))]
    vectors = b.reshape(target, (count, 1))
    return scatter_slices(b, b.full(fill_value, DType.S64, at.dims), vectors, index_vectors(parts), "assign")
