"""Arrays put together and taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from xlalite.framework.graph.dtypes import as_dtype
from xlalite.ops.functions import array
from xlalite.ops.helpers.promotion import cast_to
from xlalite.tracing.duck_numpy import np
from xlalite.tracing.functions.registry import records
from xlalite.tracing.promotion import normal_axis, promoted, sizes, traced, traced_array
from xlalite.tracing.ufunc_methods import finished


@records(np.concatenate)
def concatenate(
    arrays: Sequence[Any], /, axis: int | None = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Any:
    parts = promoted(*arrays)
    if axis is None:
        parts, axis = [array.reshape(part, [-1]) for part in parts], 0
    found = array.concat(parts, normal_axis(axis, len(parts[0].shape.known_dims())))
    return finished(traced(found if dtype is None else cast_to(found, as_dtype(np.dtype(dtype)))), out)


@records(np.stack)
def stack(
    arrays: Sequence[Any], axis: int = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Any:
    return np.concatenate([np.expand_dims(traced_array(each), axis) for each in arrays], axis, out, dtype=dtype)


@records(np.hstack)
def hstack(tup: Sequence[Any], *, dtype: Any = None, casting: str = "same_kind") -> Any:
    parts = [np.atleast_1d(traced_array(each)) for each in tup]
    return np.concatenate(parts, 0 if parts[0].ndim == 1 else 1, dtype=dtype)


@records(np.vstack)
def vstack(tup: Sequence[Any], *, dtype: Any = None, casting: str = "same_kind") -> Any:
    return np.concatenate([np.atleast_2d(traced_array(each)) for each in tup], 0, dtype=dtype)


@records(np.dstack)
def dstack(tup: Sequence[Any]) -> Any:
    return np.concatenate([np.atleast_3d(traced_array(each)) for each in tup], 2)


@records(np.column_stack)
def column_stack(tup: Sequence[Any]) -> Any:
    return np.concatenate(
        [traced_array(x) if len(sizes(x)) > 1 else np.reshape(traced_array(x), (-1, 1)) for x in tup], 1
    )


@records(np.block)
def block(arrays: Any) -> Any:
    depth, inner = 0, arrays
    while isinstance(inner, list):
        depth, inner = depth + 1, inner[0]
    rank = max(depth, _deepest_rank(arrays))
    return _joined(arrays, depth, rank)


@records(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    x = traced_array(ary)
    along = normal_axis(axis, x.ndim)
    bounds = [part.tolist() for part in np.array_split(np.arange(x.shape[along]), indices_or_sections)]
    before = (slice(None),) * along
    starts = np.cumsum([0, *map(len, bounds)]).tolist()
    return [x[(*before, slice(start, stop))] for start, stop in pairwise(starts)]


@records(np.split)
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    if isinstance(indices_or_sections, int) and sizes(ary)[axis] % indices_or_sections:
        raise ValueError("array split does not result in an equal division")
    return array_split(ary, indices_or_sections, axis)


@records(np.hsplit)
def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    return split(ary, indices_or_sections, 1 if len(sizes(ary)) > 1 else 0)


@records(np.vsplit)
def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    return split(ary, indices_or_sections, 0)


@records(np.dsplit)
def dsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    return split(ary, indices_or_sections, 2)


@records(np.unstack)
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    return tuple(np.moveaxis(traced_array(x), axis, 0))


@records(np.append)
def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    return np.concatenate([traced_array(arr), traced_array(values)], axis)


@records(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    x, along = (np.ravel(traced_array(arr)), 0) if axis is None else (traced_array(arr), normal_axis(axis, arr.ndim))
    length = x.shape[along]
    # What NumPy does with positions it does with numbers, too: those of new values are negative.
    count = 1 if np.ndim(obj) == 0 else len(np.arange(length)[obj] if isinstance(obj, slice) else obj)
    given = traced_array(values)
    if np.ndim(obj) == 0 and given.ndim:
        given = np.moveaxis(np.expand_dims(given, 0), 0, along) if given.ndim < x.ndim else given
        count = given.shape[along] if given.ndim == x.ndim else 1
    wanted = (*x.shape[:along], count, *x.shape[along + 1 :])
    new = np.broadcast_to(given, wanted).astype(x.dtype)
    order = np.insert(np.arange(length), obj, length + np.arange(count))
    return np.take(np.concatenate([x, new], along), order, axis=along)


@records(np.delete)
def delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    x, along = (np.ravel(traced_array(arr)), 0) if axis is None else (traced_array(arr), normal_axis(axis, arr.ndim))
    return np.take(x, np.delete(np.arange(x.shape[along]), obj), axis=along)


def _deepest_rank(arrays: Any) -> int:
    return max(map(_deepest_rank, arrays)) if isinstance(arrays, list) else len(sizes(arrays))


def _joined(arrays: Any, depth: int, rank: int) -> Any:
    if not isinstance(arrays, list):
        x = traced_array(arrays)
        return np.reshape(x, (1,) * (rank - x.ndim) + x.shape)
    return np.concatenate([_joined(each, depth - 1, rank) for each in arrays], axis=-depth)
