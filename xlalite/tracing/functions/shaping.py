"""The same elements in other shapes and orders; where NumPy gives a view, so do these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlalite.hlo.errors import TracingError
from xlalite.ops.functions import array as arrays
from xlalite.tracing import views
from xlalite.tracing.duck_numpy import np
from xlalite.tracing.functions.registry import records
from xlalite.tracing.promotion import as_tensor, normal_axes, normal_axis, sizes, traced, traced_array
from xlalite.tracing.traced_array import TracedArray


@records(np.shape)
def shape(a: Any) -> tuple[int, ...]:
    return sizes(a)


@records(np.ndim)
def ndim(a: Any) -> int:
    return len(sizes(a))


@records(np.size)
def size(a: Any, axis: Any = None) -> int:
    dims = sizes(a)
    return int(np.prod([dims[each] for each in normal_axes(axis, len(dims))]))


@records(np.reshape)
def reshape(a: Any, /, shape: Any, order: Any = "C", *, copy: bool | None = None) -> Any:
    x = traced_array(a)
    wanted = np.empty(x.shape, np.bool_).reshape(shape).shape
    if order == "F":
        return np.transpose(np.reshape(np.transpose(x), wanted[::-1]))
    found = x.view_through(views.reshaped(x.shape, wanted))
    return found.copy() if copy else found


@records(np.ravel)
def ravel(a: Any, order: Any = "C") -> Any:
    return np.reshape(traced_array(a), -1, order=order)


@records(np.transpose)
def transpose(a: Any, axes: Any = None) -> Any:
    x = traced_array(a)
    order = tuple(range(x.ndim))[::-1] if axes is None else normal_axes(axes, x.ndim)
    if len(order) != x.ndim:
        raise ValueError("axes don't match array")
    return x.view_through(views.transposed(order))


@records(np.matrix_transpose, np.linalg.matrix_transpose)
def matrix_transpose(x: Any, /) -> Any:
    return traced_array(x).mT


@records(np.swapaxes)
def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    order = list(range(len(sizes(a))))
    one, other = normal_axis(axis1, len(order)), normal_axis(axis2, len(order))
    order[one], order[other] = order[other], order[one]
    return np.transpose(traced_array(a), order)


@records(np.moveaxis)
def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    rank = len(sizes(a))
    old, new = normal_axes(source, rank), normal_axes(destination, rank)
    if len(old) != len(new):
        raise ValueError("`source` and `destination` arguments must have the same number of elements")
    order = [axis for axis in range(rank) if axis not in old]
    for to, axis in sorted(zip(new, old, strict=True)):
        order.insert(to, axis)
    return np.transpose(traced_array(a), order)


@records(np.rollaxis)
def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    rank = len(sizes(a))
    axis, start = normal_axis(axis, rank), start + rank if start < 0 else start
    return np.moveaxis(traced_array(a), axis, start - 1 if axis < start else start)


@records(np.expand_dims)
def expand_dims(a: Any, axis: Any) -> Any:
    x = traced_array(a)
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    new = set(normal_axes(axes, x.ndim + len(axes)))
    old = iter(x.shape)
    return np.reshape(x, [1 if i in new else next(old) for i in range(x.ndim + len(axes))])


@records(np.squeeze)
def squeeze(a: Any, axis: Any = None) -> Any:
    x = traced_array(a)
    dropped = [i for i, each in enumerate(x.shape) if each == 1] if axis is None else normal_axes(axis, x.ndim)
    if any(x.shape[i] != 1 for i in dropped):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return np.reshape(x, [each for i, each in enumerate(x.shape) if i not in dropped])


@records(np.atleast_1d)
def atleast_1d(*arys: Any) -> Any:
    return _each([np.reshape(traced_array(x), -1) if not sizes(x) else x for x in arys])


@records(np.atleast_2d)
def atleast_2d(*arys: Any) -> Any:
    return _each([traced_array(x) if len(sizes(x)) > 1 else np.reshape(traced_array(x), (1, -1)) for x in arys])


@records(np.atleast_3d)
def atleast_3d(*arys: Any) -> Any:
    found = []
    for x in arys:
        dims = sizes(x)
        wanted = {0: (1, 1, 1), 1: (1, *dims, 1), 2: (*dims, 1)}.get(len(dims), dims)
        found.append(np.reshape(traced_array(x), wanted))
    return _each(found)


@records(np.broadcast_to)
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    dims = (shape,) if isinstance(shape, int) else tuple(shape)
    if np.broadcast_shapes(sizes(array), dims) != dims:
        raise ValueError(f"cannot broadcast an array of shape {sizes(array)} to shape {dims}")
    return traced(arrays.broadcast_to(as_tensor(array), list(dims)))


@records(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    dims = np.broadcast_shapes(*map(sizes, args))
    return tuple(np.broadcast_to(traced_array(each), dims) for each in args)


@records(np.flip)
def flip(m: Any, axis: Any = None) -> Any:
    x = traced_array(m)
    axes = normal_axes(axis, x.ndim)
    return x[tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(x.ndim))]


@records(np.fliplr)
def fliplr(m: Any) -> Any:
    return np.flip(traced_array(m), 1)


@records(np.flipud)
def flipud(m: Any) -> Any:
    return np.flip(traced_array(m), 0)


@records(np.rot90)
def rot90(m: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> Any:
    x = traced_array(m)
    turns = k % 4
    if turns == 0:
        return x[...]
    if turns == 2:
        return np.flip(x, axes)
    return np.swapaxes(np.flip(x, axes[1]), *axes) if turns == 1 else np.flip(np.swapaxes(x, *axes), axes[1])


@records(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    x = traced_array(a)
    if axis is None:
        return np.reshape(np.roll(np.ravel(x), shift, 0), x.shape)
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    shifts = np.broadcast_to(shift, len(axes)) if not isinstance(shift, TracedArray) else shift
    for i, each in enumerate(axes):
        x = TracedArray(
            arrays.roll(x.tensor, as_tensor(shifts[i] if np.ndim(shifts) else shifts), normal_axis(each, x.ndim))
        )
    return x


@records(np.tile)
def tile(A: Any, reps: Any) -> Any:  # NumPy's name
    counts = [reps] if isinstance(reps, int) else list(reps)
    rank = max(len(counts), len(sizes(A)))
    padded = np.reshape(traced_array(A), (1,) * (rank - len(sizes(A))) + sizes(A))
    return traced(arrays.tile(padded.tensor, [1] * (rank - len(counts)) + counts))


@records(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    found = traced_array(x)
    rank = found.ndim
    lengths = [window_shape] if isinstance(window_shape, int) else list(window_shape)
    axes = normal_axes(axis, rank)
    if len(lengths) != len(axes):
        raise ValueError(f"Must provide a window for each dimension: found {len(lengths)} for {len(axes)} dimensions")
    for along, length in zip(axes, lengths, strict=True):
        count = found.shape[along] - length + 1
        if length < 0 or count < 1:
            raise ValueError("window shape cannot be larger than input array shape")
        places = np.arange(count)[:, None] + np.arange(length)
        found = np.moveaxis(np.take(found, places, axis=along), along + 1, -1)
    return found


@records(np.repeat)
def repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
    x, along = (np.ravel(traced_array(a)), 0) if axis is None else (traced_array(a), normal_axis(axis, len(sizes(a))))
    length = sizes(x)[along]
    if isinstance(repeats, TracedArray) and repeats.known is None:
        raise TracingError(
            "numpy.repeat cannot be recorded by xlalite.jit: how often elements are repeated is not known while the "
            "function is traced, and so not the size of the result; pass it as a static argument"
        )
    if isinstance(repeats, int) and repeats >= 0:
        before, after = x.shape[: along + 1], x.shape[along + 1 :]
        each = np.broadcast_to(np.expand_dims(x, along + 1), (*before, repeats, *after))
        return np.reshape(each, (*before[:-1], length * repeats, *after))
    return np.take(x, np.repeat(np.arange(length), repeats), axis=along)


@records(np.resize)
def resize(a: Any, new_shape: Any) -> Any:
    dims = (new_shape,) if isinstance(new_shape, int) else tuple(new_shape)
    total, own = int(np.prod(dims)), int(np.prod(sizes(a)))
    if own == 0 or total == 0:
        return np.zeros_like(traced_array(a), shape=dims)
    return np.reshape(np.ravel(traced_array(a))[np.arange(total) % own], dims)


def _each(found: list[Any]) -> Any:
    return found[0] if len(found) == 1 else tuple(found)
