"""Sizes, order, parts and joins of tensors, and tensors of one value or of counting numbers."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.hlo.building.builder import Handle, Handles
from xlalite.hlo.types.dtype import DType, Kind
from xlalite.interop.torch.rules.operation import Number, Operand, Operation
from xlalite.interop.torch.rules.registry import Declined, rule


@rule(
    *("aten.view.default", "aten._unsafe_view.default", "aten.reshape.default", "aten.unsqueeze.default"),
    *("aten.squeeze.default", "aten.squeeze.dim", "aten.squeeze.dims"),
)
def view(op: Operation, x: Handle, *_: object) -> Handle:
    """The same elements in order, with other sizes."""
    return op.builder.reshape(x, op.dims)


@rule(
    *("aten.clone.default", "aten.alias.default", "aten.detach.default", "aten.lift_fresh_copy.default"),
    *("aten.contiguous.default",),
)
def same(op: Operation, x: Handle, *_: object, **__: object) -> Handle:
    """The value itself."""
    return x


@rule("aten.copy.default")
def copy(op: Operation, x: Handle, source: Handle, *_: object) -> Handle:
    """Another value at this one's sizes and type."""
    return op.expand(op.cast(source, op.dtype), op.dims)


@rule("aten.expand.default")
def expand(op: Operation, x: Handle, *_: object, **__: object) -> Handle:
    """Broadcasting."""
    return op.expand(x, op.dims)


@rule("aten.permute.default")
def permute(op: Operation, x: Handle, dims: Sequence[int]) -> Handle:
    """Axes in another order."""
    return op.builder.transpose(x, [op.axis(dim, len(x.dims)) for dim in dims])


@rule("aten.t.default")
def t(op: Operation, x: Handle) -> Handle:
    """A matrix transposed."""
    return op.builder.transpose(x, range(len(x.dims))[::-1])


@rule("aten.transpose.int")
def transpose(op: Operation, x: Handle, first: int, second: int) -> Handle:
    """Two axes exchanged."""
    order = list(range(len(x.dims)))
    if order:
        i, j = op.axis(first, len(x.dims)), op.axis(second, len(x.dims))
        order[i], order[j] = order[j], order[i]
    return op.builder.transpose(x, order)


@rule("aten.flip.default")
def flip(op: Operation, x: Handle, dims: Sequence[int]) -> Handle:
    """Turned round along axes."""
    return op.builder.reverse(x, op.axes(list(dims), len(x.dims)) if dims and x.dims else ())


@rule("aten.repeat.default")
def repeat(op: Operation, x: Handle, repeats: Sequence[int]) -> Handle:
    """The tensor so many times behind itself along each axis."""
    dims = (1,) * (len(repeats) - len(x.dims)) + x.dims
    pairs = [size for times, own in zip(repeats, dims, strict=True) for size in (times, own)]
    spread = op.builder.broadcast_in_dim(op.builder.reshape(x, dims), pairs, range(1, 2 * len(dims), 2))
    return op.builder.reshape(spread, op.dims)


@rule("aten.cat.default")
def cat(op: Operation, tensors: Sequence[Handle], dim: int = 0) -> Handle:
    """Tensors behind each other; empty ones of one axis count for nothing."""
    real = [op.cast(x, op.dtype) for x in tensors if x.dims != (0,) or len(op.dims) == 1]
    return op.builder.concatenate(real, op.axis(dim, len(op.dims)))


@rule("aten.slice.Tensor")
def slice_(
    op: Operation, x: Handle, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Handle:
    """Part of an axis, as Python slices."""
    axis = op.axis(dim, len(x.dims))
    first, last, _ = slice(start, end, step).indices(x.dims[axis])
    return part(op, x, axis, first, max(first, last), step)


@rule("aten.select.int")
def select_int(op: Operation, x: Handle, dim: int, index: int) -> Handle:
    """One place of an axis, which goes away."""
    axis = op.axis(dim, len(x.dims))
    place = index % x.dims[axis]
    return op.builder.reshape(part(op, x, axis, place, place + 1), op.dims)


@rule("aten.split_with_sizes.default")
def split_with_sizes(op: Operation, x: Handle, split_sizes: Sequence[int], dim: int = 0) -> Handles:
    """Parts of an axis."""
    axis, parts, start = op.axis(dim, len(x.dims)), [], 0
    for size in split_sizes:
        parts.append(part(op, x, axis, start, start + size))
        start += size
    return tuple(parts)


@rule("aten.slice_scatter.default")
def slice_scatter(
    op: Operation,
    x: Handle,
    source: Handle,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Handle:
    """X with part of an axis replaced."""
    axis = op.axis(dim, len(x.dims))
    first, last, _ = slice(start, end, step).indices(x.dims[axis])
    return _replaced(op, x, source, axis, first, max(first, last), step)


@rule("aten.select_scatter.default")
def select_scatter(op: Operation, x: Handle, source: Handle, dim: int, index: int) -> Handle:
    """X with one place of an axis replaced."""
    axis = op.axis(dim, len(x.dims))
    place = index % x.dims[axis]
    one = op.builder.reshape(source, [1 if i == axis else size for i, size in enumerate(x.dims)])
    return _replaced(op, x, one, axis, place, place + 1, 1)


def _replaced(op: Operation, x: Handle, source: Handle, axis: int, first: int, last: int, step: int) -> Handle:
    """X with every step-th place of an axis replaced, by a padded source that a mask selects."""
    count, size = source.dims[axis], x.dims[axis]
    source = op.cast(source, x.dtype)
    if not count:
        return x
    if step == 1:
        pieces = [part(op, x, axis, 0, first), source, part(op, x, axis, last, size)]
        return op.builder.concatenate([piece for piece in pieces if piece.dims[axis]], axis)
    high = size - first - (count - 1) * step - 1
    places = [(first, high, step - 1) if i == axis else (0, 0, 0) for i in range(len(x.dims))]
    spread = op.builder.pad(source, op.number(0, x.dtype), places)
    ones = op.builder.full(True, DType.PRED, source.dims)
    mask = op.builder.pad(ones, op.number(False, DType.PRED), places)
    return op.builder.select(mask, spread, x)


@rule("aten.constant_pad_nd.default")
def constant_pad_nd(op: Operation, x: Handle, pad: Sequence[int], value: Number = 0) -> Handle:
    """A value around the tensor, the last axis first; negative amounts cut."""
    pairs = [(pad[i], pad[i + 1], 0) for i in range(0, len(pad), 2)]
    places = [*[(0, 0, 0)] * (len(x.dims) - len(pairs)), *pairs[::-1]]
    return op.builder.pad(x, op.number(value, x.dtype), places)


@rule("aten.full.default", "aten.full_like.default")
def full(op: Operation, _: object, fill_value: Operand, **__: object) -> Handle:
    """One value everywhere."""
    return op.full(fill_value, op.dtype, op.dims)


@rule("aten.fill.Scalar", "aten.fill.Tensor")
def fill(op: Operation, _: Handle, value: Operand) -> Handle:
    """One value everywhere."""
    return op.full(value, op.dtype, op.dims)


@rule("aten.scalar_tensor.default")
def scalar_tensor(op: Operation, value: Operand, **_: object) -> Handle:
    """A number as a tensor."""
    return op.full(value, op.dtype, op.dims)


@rule("aten.empty.memory_format", "aten.empty_strided.default", "aten.empty_permuted.default")
def empty(op: Operation, *_: object, **__: object) -> Handle:
    """Any values: zeros."""
    return op.full(0, op.dtype, op.dims)


@rule("aten.arange.start_step", "prims.iota.default")
def arange(op: Operation, start: Number, end: Number = 0, step: Number = 1, **named: object) -> Handle:
    """Counting numbers."""
    if op.name == "prims.iota.default":
        first, increment = named.get("start", 0), named.get("step", 1)
        assert isinstance(first, int), "prims.iota counts by whole numbers"
        assert isinstance(increment, int), "prims.iota counts by whole numbers"
        start, step = first, increment
    kind = op.dtype.kind
    dtype = op.dtype if kind in (Kind.SIGNED, Kind.UNSIGNED) else DType.F64
    if kind in (Kind.PRED, Kind.COMPLEX):
        raise Declined(f"counting in {op.dtype.value}")
    numbers = op.builder.iota(dtype, op.dims, 0)
    if step != 1:
        numbers = numbers * op.number(step, dtype)
    if start != 0:
        numbers = numbers + op.number(start, dtype)
    return op.cast(numbers, op.dtype)


def part(op: Operation, x: Handle, axis: int, start: int, limit: int, step: int = 1) -> Handle:
    """Part of one axis."""
    starts = [start if i == axis else 0 for i in range(len(x.dims))]
    limits = [limit if i == axis else size for i, size in enumerate(x.dims)]
    steps = [step if i == axis else 1 for i in range(len(x.dims))]
    return op.builder.slice(x, starts, limits, steps)
