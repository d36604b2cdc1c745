"""NumPy functions, beside ufuncs, that `xlalite.jit` can record; each takes the parameters that it names."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from xlalite.client.numpy_ufuncs import apply_ufunc
from xlalite.client.traced_array import TracedArray, as_tensor, matrix_product, promoted
from xlalite.framework.graph.dtypes import as_dtype
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions import array, math
from xlalite.ops.helpers.promotion import cast_to

Function = Callable[..., Any]


def _sum(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> TracedArray:
    return _reduced(math.reduce_sum, a, axis, dtype, keepdims)


def _prod(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> TracedArray:
    return _reduced(math.reduce_prod, a, axis, dtype, keepdims)


def _mean(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> TracedArray:
    return TracedArray(math.reduce_mean(_floating(a, dtype), axis, keepdims))


def _var(
    a: Any, axis: Any = None, dtype: Any = None, ddof: int = 0, keepdims: bool = False, *, correction: int | None = None
) -> TracedArray:
    """Mean of squared distances from the mean, over n - ddof; `correction` is another name of `ddof`."""
    if correction is not None:
        if ddof:
            raise ValueError("ddof and correction can't be provided simultaneously.")
        ddof = correction
    x = _floating(a, dtype)
    distance = x - math.reduce_mean(x, axis, True)
    squares = math.square(math.real(distance))
    if x.dtype.is_complex:
        squares += math.square(math.imag(distance))
    count = int(np.prod([x.shape.known_dims()[each] for each in _axes(axis, len(x.shape.known_dims()))]))
    return TracedArray(math.reduce_sum(squares, axis, keepdims) / builtins.max(count - ddof, 0))


def _std(
    a: Any, axis: Any = None, dtype: Any = None, ddof: int = 0, keepdims: bool = False, *, correction: int | None = None
) -> TracedArray:
    return TracedArray(math.sqrt(_var(a, axis, dtype, ddof, keepdims, correction=correction).tensor))


def _max(a: Any, axis: Any = None, keepdims: bool = False) -> TracedArray:
    return TracedArray(math.reduce_max(as_tensor(a), axis, keepdims))


def _min(a: Any, axis: Any = None, keepdims: bool = False) -> TracedArray:
    return TracedArray(math.reduce_min(as_tensor(a), axis, keepdims))


def _all(a: Any, axis: Any = None, keepdims: bool = False) -> TracedArray:
    return TracedArray(math.reduce_all(math.cast(as_tensor(a), np.bool_), axis, keepdims))


def _any(a: Any, axis: Any = None, keepdims: bool = False) -> TracedArray:
    return TracedArray(math.reduce_any(math.cast(as_tensor(a), np.bool_), axis, keepdims))


def _argmax(a: Any, axis: int | None = None) -> TracedArray:
    return TracedArray(math.argmax(*_flat_for_no_axis(a, axis)))


def _argmin(a: Any, axis: int | None = None) -> TracedArray:
    return TracedArray(math.argmin(*_flat_for_no_axis(a, axis)))


def _cumsum(a: Any, axis: int | None = None) -> TracedArray:
    x, along = _flat_for_no_axis(a, axis)
    return TracedArray(math.cumsum(_widened(x), along))


def _where(condition: Any, x: Any, y: Any) -> TracedArray:
    chosen, other = promoted(x, y)
    return TracedArray(array.where_v2(math.cast(as_tensor(condition), np.bool_), chosen, other))


def _clip(a: Any, a_min: Any = None, a_max: Any = None) -> Any:
    above = a if a_min is None else apply_ufunc(np.maximum, (a, a_min))
    return above if a_max is None else apply_ufunc(np.minimum, (above, a_max))


def _concatenate(arrays: Sequence[Any], axis: int | None = 0) -> TracedArray:
    parts = promoted(*arrays)
    if axis is None:
        parts, axis = [array.reshape(part, [-1]) for part in parts], 0
    return TracedArray(array.concat(parts, axis))


def _stack(arrays: Sequence[Any], axis: int = 0) -> TracedArray:
    return TracedArray(array.stack(promoted(*arrays), axis))


def _reshape(a: Any, shape: Any) -> TracedArray:
    return TracedArray(array.reshape(as_tensor(a), [shape] if isinstance(shape, int) else list(shape)))


def _ravel(a: Any) -> TracedArray:
    return TracedArray(array.reshape(as_tensor(a), [-1]))


def _transpose(a: Any, axes: Sequence[int] | None = None) -> TracedArray:
    x = as_tensor(a)
    return TracedArray(array.transpose(x, None if axes is None else _axes(tuple(axes), len(axes))))


def _swapaxes(a: Any, axis1: int, axis2: int) -> TracedArray:
    order = list(range(len(as_tensor(a).shape.known_dims())))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return _transpose(a, order)


def _expand_dims(a: Any, axis: int) -> TracedArray:
    return TracedArray(array.expand_dims(as_tensor(a), axis))


def _squeeze(a: Any, axis: Any = None) -> TracedArray:
    return TracedArray(array.squeeze(as_tensor(a), [axis] if isinstance(axis, int) else axis))


def _broadcast_to(array_: Any, shape: Any) -> TracedArray:
    return TracedArray(array.broadcast_to(as_tensor(array_), [shape] if isinstance(shape, int) else list(shape)))


def _flip(m: Any, axis: Any = None) -> TracedArray:
    x = as_tensor(m)
    return TracedArray(array.reverse(x, list(_axes(axis, len(x.shape.known_dims())))))


def _tile(A: Any, reps: Any) -> TracedArray:  # NumPy's name
    x = as_tensor(A)
    counts = [reps] if isinstance(reps, int) else list(reps)
    rank = builtins.max(len(counts), len(x.shape.known_dims()))
    padded = array.reshape(x, [1] * (rank - len(x.shape.known_dims())) + list(x.shape.known_dims()))
    return TracedArray(array.tile(padded, [1] * (rank - len(counts)) + counts))


def _take(a: Any, indices: Any, axis: int | None = None) -> TracedArray:
    x, along = _flat_for_no_axis(a, axis)
    return TracedArray(array.gather(x, as_tensor(indices), axis=along))


def _zeros_like(a: Any, dtype: Any = None) -> TracedArray:
    return TracedArray(array.zeros_like(as_tensor(a), None if dtype is None else as_dtype(np.dtype(dtype))))


def _ones_like(a: Any, dtype: Any = None) -> TracedArray:
    return TracedArray(array.ones_like(as_tensor(a), None if dtype is None else as_dtype(np.dtype(dtype))))


def _full_like(a: Any, fill_value: Any, dtype: Any = None) -> TracedArray:
    like = _zeros_like(a, dtype).tensor
    return TracedArray(array.broadcast_to(cast_to(as_tensor(fill_value), like.dtype), list(like.shape.known_dims())))


def _dot(a: Any, b: Any) -> TracedArray:
    """Sum over the last dimension of `a` and the second to last of `b`; scalars multiply."""
    x, y = promoted(a, b)
    if 0 in (x.shape.rank, y.shape.rank):
        return TracedArray(x * y)
    rank_y = len(y.shape.known_dims())
    if rank_y <= 2:
        flat = array.reshape(x, [-1, x.shape.known_dims()[-1]])
        product = matrix_product(flat, y)
        return TracedArray(array.reshape(product, [*x.shape.known_dims()[:-1], *y.shape.known_dims()[1:]]))
    last_but_one = [rank_y - 2, *range(rank_y - 2), rank_y - 1]
    front = array.transpose(y, last_but_one)
    rest = front.shape.known_dims()[1:]
    flat = matrix_product(
        array.reshape(x, [-1, x.shape.known_dims()[-1]]), array.reshape(front, [front.shape.known_dims()[0], -1])
    )
    return TracedArray(array.reshape(flat, [*x.shape.known_dims()[:-1], *rest]))


def _outer(a: Any, b: Any) -> TracedArray:
    x, y = promoted(a, b)
    return TracedArray(array.reshape(x, [-1, 1]) * array.reshape(y, [1, -1]))


def _real(val: Any) -> TracedArray:
    return TracedArray(math.real(as_tensor(val)))


def _imag(val: Any) -> TracedArray:
    return TracedArray(math.imag(as_tensor(val)))


def _shape(a: Any) -> tuple[int, ...]:
    return as_tensor(a).shape.known_dims()


def _ndim(a: Any) -> int:
    return len(_shape(a))


def _size(a: Any) -> int:
    return int(np.prod(_shape(a)))


FUNCTIONS: Mapping[Function, Function] = {
    np.sum: _sum,
    np.prod: _prod,
    np.mean: _mean,
    np.var: _var,
    np.std: _std,
    np.max: _max,
    np.min: _min,
    np.amax: _max,
    np.amin: _min,
    np.all: _all,
    np.any: _any,
    np.argmax: _argmax,
    np.argmin: _argmin,
    np.cumsum: _cumsum,
    np.where: _where,
    np.clip: _clip,
    np.concatenate: _concatenate,
    np.stack: _stack,
    np.reshape: _reshape,
    np.ravel: _ravel,
    np.transpose: _transpose,
    np.swapaxes: _swapaxes,
    np.expand_dims: _expand_dims,
    np.squeeze: _squeeze,
    np.broadcast_to: _broadcast_to,
    np.flip: _flip,
    np.tile: _tile,
    np.take: _take,
    np.zeros_like: _zeros_like,
    np.ones_like: _ones_like,
    np.full_like: _full_like,
    np.dot: _dot,
    np.outer: _outer,
    np.real: _real,
    np.imag: _imag,
    np.shape: _shape,
    np.ndim: _ndim,
    np.size: _size,
}
"""What each function records."""


def _reduced(reduce: Callable[..., Tensor], a: Any, axis: Any, dtype: Any, keepdims: bool) -> TracedArray:
    x = as_tensor(a)
    return TracedArray(reduce(_widened(x) if dtype is None else math.cast(x, np.dtype(dtype)), axis, keepdims))


def _widened(x: Tensor) -> Tensor:
    """Small integers and truth values as NumPy sums them: in 64 bits."""
    if x.dtype.is_bool or x.dtype.is_integer:
        return math.cast(x, np.uint64 if x.dtype.is_unsigned else np.int64)
    return x


def _floating(a: Any, dtype: Any) -> Tensor:
    x = as_tensor(a)
    if dtype is not None:
        return math.cast(x, np.dtype(dtype))
    return math.cast(x, np.float64) if x.dtype.is_integer or x.dtype.is_bool else x


def _flat_for_no_axis(a: Any, axis: int | None) -> tuple[Tensor, int]:
    x = as_tensor(a)
    return (array.reshape(x, [-1]), 0) if axis is None else (x, axis)


def _axes(axis: Any, rank: int) -> tuple[int, ...]:
    chosen = range(rank) if axis is None else (axis,) if isinstance(axis, int) else axis
    return tuple(each % rank for each in chosen)
