"""Elements chosen by index or condition, and put where an index or condition says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlalite.hlo.errors import TracingError
from xlalite.ops.functions import array, math
from xlalite.tracing import views
from xlalite.tracing.duck_numpy import np
from xlalite.tracing.functions.registry import records
from xlalite.tracing.promotion import as_tensor, normal_axis, promoted, traced, traced_array
from xlalite.tracing.traced_array import TracedArray
from xlalite.tracing.ufunc_methods import finished


@records(np.where)
def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    if x is None or y is None:
        return np.nonzero(condition)
    chosen, other = promoted(x, y)
    return traced(array.where_v2(math.cast(as_tensor(condition), np.bool_), chosen, other))


@records(np.select)
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    found: Any = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        found = np.where(condition, choice, found)
    return found


@records(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Any:
    values = traced_array(x)
    conditions = list(condlist) if isinstance(condlist, list | tuple) else [condlist]
    if conditions and np.ndim(conditions[0]) == 0 and values.ndim:
        conditions = [condlist]
    branches = list(funclist)
    if len(branches) == len(conditions) + 1:
        conditions.append(~np.any(np.stack([traced_array(each) for each in conditions]), axis=0))
    found: Any = np.zeros_like(values)
    for condition, branch in zip(conditions, branches, strict=True):
        given = branch(values, *args, **kw) if callable(branch) else branch
        found = np.where(condition, traced_array(given).astype(values.dtype), found)
    return found


@records(np.choose)
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    options = list(choices)
    count = len(options)
    index = np.mod(a, count) if mode == "wrap" else np.clip(a, 0, count - 1)
    found: Any = options[-1]
    for position in range(count - 2, -1, -1):
        found = np.where(np.equal(index, position), options[position], found)
    return finished(traced_array(found), out)


@records(np.take)
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    x = np.ravel(traced_array(a)) if axis is None else traced_array(a)
    along = 0 if axis is None else normal_axis(axis, x.ndim)
    if mode == "raise":
        index = indices if isinstance(indices, TracedArray) else np.asarray(indices, np.intp)
    else:
        limit = x.shape[along]
        index = np.mod(indices, limit) if mode == "wrap" else np.clip(indices, 0, limit - 1)
    found = x[(slice(None),) * along + (index,)]
    return finished(found, out)


@records(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    x, index = traced_array(arr), traced_array(indices)
    if axis is None:
        return np.ravel(x)[index]
    return x[_grid(x, index, normal_axis(axis, x.ndim))]


@records(np.put_along_axis)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    index = traced_array(indices)
    if axis is None:
        np.ravel(arr)[index] = values
    else:
        arr[_grid(arr, index, normal_axis(axis, arr.ndim))] = values


@records(np.put)
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    flat = np.ravel(_target(a, "put"))
    index = traced_array(ind) if isinstance(ind, TracedArray) else np.asarray(ind)
    if mode != "raise":
        index = np.mod(index, flat.size) if mode == "wrap" else np.clip(index, 0, flat.size - 1)
    flat[index] = np.resize(v, np.shape(index)) if np.ndim(v) else v


@records(np.putmask)
def putmask(a: Any, mask: Any, values: Any) -> None:
    """Values by the places in the array, again and again."""
    target, given = _target(a, "putmask"), np.ravel(traced_array(values))
    if given.size:
        spread = given[np.arange(target.size) % given.size] if given.size > 1 else given[0]
        _replace(target, mask, np.reshape(spread, target.shape if given.size > 1 else ()))


@records(np.place)
def place(arr: Any, mask: Any, vals: Any) -> None:
    """One value after the other, again and again."""
    target, given = _target(arr, "place"), np.ravel(traced_array(vals))
    if not given.size:
        raise ValueError("Cannot insert from an empty array!")
    chosen = np.reshape(np.asarray(mask) if not isinstance(mask, TracedArray) else mask, target.shape).astype(bool)
    numbers = np.reshape(np.cumsum(traced_array(chosen)) - 1, target.shape)
    _replace(target, chosen, given[np.maximum(numbers, 0) % given.size])


def _replace(target: TracedArray, mask: Any, values: Any) -> None:
    target[...] = np.where(mask, values.astype(target.dtype), target)


@records(np.compress)
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    return finished(np.take(a, _chosen("compress", condition), axis), out)


@records(np.extract)
def extract(condition: Any, arr: Any) -> Any:
    return np.take(arr, _chosen("extract", condition))


def _chosen(name: str, condition: Any) -> Any:
    if isinstance(condition, TracedArray) and condition.known is None:
        raise TracingError(
            f"numpy.{name} cannot be recorded by xlalite.jit: how many elements are chosen is not known while the "
            "function is traced, and so not the size of the result; use np.where(condition, x, y), x[condition], or a "
            "reduction with where=condition"
        )
    return np.flatnonzero(np.asarray(condition))


@records(np.copyto)
def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    target = _target(dst, "copyto")
    target[...] = src if where is True else np.where(where, traced_array(src).astype(target.dtype), target)


@records(np.fill_diagonal)
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    target = _target(a, "fill_diagonal")
    places = np.zeros(target.shape, np.bool_)
    np.fill_diagonal(places, True, wrap)
    index = places.nonzero()
    target[index] = np.resize(val, len(index[0])) if np.ndim(val) else val


@records(np.diagonal)
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    turned = np.moveaxis(traced_array(a), (axis1, axis2), (-2, -1))
    rows, columns = turned.shape[-2:]
    return turned.view_through(views.diagonal(rows, columns, offset))


@records(np.linalg.diagonal)
def matrix_diagonal(x: Any, /, *, offset: int = 0) -> Any:
    return diagonal(x, offset, -2, -1)


@records(np.trace)
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    return np.sum(diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype, out=out)


@records(np.linalg.trace)
def matrix_trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    return trace(x, offset, -2, -1, dtype)


@records(np.apply_along_axis)
def apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    x = np.moveaxis(traced_array(arr), axis, -1)
    rows = np.reshape(x, (-1, x.shape[-1]))
    results = np.stack([traced_array(func1d(row, *args, **kwargs)) for row in rows])
    found = np.reshape(results, (*x.shape[:-1], *results.shape[1:]))
    return np.moveaxis(found, -1, axis) if results.ndim == 2 else found


@records(np.apply_over_axes)
def apply_over_axes(func: Any, a: Any, axes: Any) -> Any:
    x = traced_array(a)
    for axis in np.atleast_1d(axes):
        found = func(x, int(axis))
        x = found if found.ndim == x.ndim else np.expand_dims(found, int(axis))
    return x


@records(np.unravel_index)
def unravel_index(indices: Any, shape: Any, order: str = "C") -> Any:
    rest, parts = traced_array(indices), []
    sizes_ = (shape,) if isinstance(shape, int) else tuple(shape)
    for size in reversed(sizes_) if order == "C" else sizes_:
        parts.append(np.mod(rest, size))
        rest = rest // size
    return tuple(reversed(parts) if order == "C" else parts)


@records(np.ravel_multi_index)
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Any:
    parts = list(multi_index)
    modes = (mode,) * len(parts) if isinstance(mode, str) else mode
    found: Any = 0
    axes = range(len(parts)) if order == "C" else reversed(range(len(parts)))
    for axis in axes:
        size = dims[axis]
        part = np.mod(parts[axis], size) if modes[axis] == "wrap" else np.clip(parts[axis], 0, size - 1)
        found = found * size + part
    return found


@records(np.ix_)
def ix_(*args: Any) -> Any:
    return np.meshgrid(*args, indexing="ij", sparse=True)


def _grid(x: TracedArray, index: TracedArray, axis: int) -> tuple[Any, ...]:
    if index.ndim != x.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    places: list[Any] = []
    for i, size in enumerate(x.shape):
        own = np.arange(size if index.shape[i] == 1 else index.shape[i])
        places.append(index if i == axis else own.reshape((-1,) + (1,) * (x.ndim - 1 - i)))
    return tuple(places)


def _target(a: Any, name: str) -> TracedArray:
    if not isinstance(a, TracedArray):
        raise TypeError(
            f"numpy.{name} changes its first argument, an array that the function being traced does not compute; make "
            "it of a traced array, as np.zeros_like(x), or with xlalite.numpy"
        )
    return a
