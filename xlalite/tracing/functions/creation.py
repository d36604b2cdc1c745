"""Arrays like others, ranges, and matrices of given diagonals."""

from __future__ import annotations

from typing import Any

from xlalite.framework.graph.dtypes import as_dtype
from xlalite.ops.functions import array
from xlalite.ops.helpers.promotion import cast_to
from xlalite.tracing.duck_numpy import np
from xlalite.tracing.functions.registry import records
from xlalite.tracing.promotion import as_tensor, common_type, numpy_dtype, sizes, traced
from xlalite.tracing.traced_array import TracedArray


@records(np.full_like)
def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None
) -> Any:
    wanted = as_dtype(numpy_dtype(a) if dtype is None else np.dtype(dtype))
    dims = sizes(a) if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)
    return traced(array.broadcast_to(cast_to(as_tensor(fill_value), wanted), list(dims)))


@records(np.zeros_like, np.empty_like)
def zeros_like(a: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None) -> Any:
    return full_like(a, 0, dtype, shape=shape)


@records(np.ones_like)
def ones_like(a: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None) -> Any:
    return full_like(a, 1, dtype, shape=shape)


@records(np.copy)
def copy(a: Any, order: Any = "K", subok: bool = False) -> Any:
    return traced(as_tensor(a))


@records(np.astype)
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    return x.astype(dtype)


@records(np.linspace)
def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None, axis: int = 0
) -> Any:
    wanted = common_type(start, stop, float(num)) if dtype is None else np.dtype(dtype)
    working = wanted if wanted.kind in "fc" else np.dtype(np.float64)
    first, last = (TracedArray(cast_to(as_tensor(each), as_dtype(working))) for each in (start, stop))
    gaps = num - 1 if endpoint else num
    step = (last - first) / gaps if gaps else (last - first) * np.nan
    rank = max(first.ndim, last.ndim)
    counts = np.arange(num, dtype=working).reshape((-1,) + (1,) * rank)
    found = first + counts * step if gaps > 0 else first + counts * (last - first)
    if endpoint and num > 1:
        found = np.concatenate([found[:-1], np.broadcast_to(last, found.shape[1:])[None]])
    if wanted.kind in "iu":
        found = np.floor(found)
    found = np.moveaxis(found.astype(wanted), 0, axis)
    return (found, step) if retstep else found


@records(np.logspace)
def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Any:
    found = np.power(base, np.linspace(start, stop, num, endpoint, axis=axis))
    return found if dtype is None else found.astype(dtype)


@records(np.geomspace)
def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    kind = as_dtype(np.result_type(common_type(start, stop, float(num)), np.float64))
    first, last = (traced(cast_to(as_tensor(each), kind)) for each in (start, stop))
    sign = np.sign(first)
    found = sign * 10.0 ** np.linspace(np.log10(first * sign), np.log10(last * sign), num, endpoint)
    if num > 0:
        found[0] = first
    if num > 1 and endpoint:
        found[-1] = last
    found = np.moveaxis(found, 0, axis)
    return found if dtype is None else found.astype(dtype)


@records(np.diag)
def diag(v: Any, k: int = 0) -> Any:
    if len(sizes(v)) == 2:
        return np.diagonal(v, k)
    return np.diagflat(v, k)


@records(np.diagflat)
def diagflat(v: Any, k: int = 0) -> Any:
    elements = np.ravel(v)
    size = elements.shape[0] + abs(k)
    matrix: Any = TracedArray(as_tensor(np.zeros((size, size), elements.dtype)))
    places = np.arange(elements.shape[0])
    matrix[places + max(-k, 0), places + max(k, 0)] = elements
    return matrix


@records(np.tril)
def tril(m: Any, k: int = 0) -> Any:
    return np.where(np.tri(*sizes(m)[-2:], k=k, dtype=bool), m, np.zeros_like(m))


@records(np.triu)
def triu(m: Any, k: int = 0) -> Any:
    return np.where(np.tri(*sizes(m)[-2:], k=k - 1, dtype=bool), np.zeros_like(m), m)


@records(np.vander)
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:  # NumPy's name
    count = sizes(x)[0] if N is None else N
    x = x.astype(np.promote_types(numpy_dtype(x), int))
    if count == 0:
        return np.zeros_like(x, shape=(len(x), 0))
    columns = [np.ones_like(x)]
    for _ in range(count - 1):
        columns.append(columns[-1] * x)
    powers = np.stack(columns, axis=1)
    return powers if increasing else powers[:, ::-1]


@records(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    rank = len(xi)
    grid = [np.reshape(x, (1,) * i + (-1,) + (1,) * (rank - 1 - i)) for i, x in enumerate(xi)]
    if indexing == "xy" and rank > 1:
        grid = [np.swapaxes(x, 0, 1) for x in grid]
    return tuple(grid) if sparse else tuple(np.broadcast_arrays(*grid))


@records(np.tril_indices_from)
def tril_indices_from(arr: Any, k: int = 0) -> Any:
    return np.tril_indices(sizes(arr)[-2], k=k, m=sizes(arr)[-1])


@records(np.triu_indices_from)
def triu_indices_from(arr: Any, k: int = 0) -> Any:
    return np.triu_indices(sizes(arr)[-2], k=k, m=sizes(arr)[-1])


@records(np.diag_indices_from)
def diag_indices_from(arr: Any) -> Any:
    return np.diag_indices(sizes(arr)[0], len(sizes(arr)))
