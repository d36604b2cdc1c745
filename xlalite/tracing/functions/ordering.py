"""Sorting, searching, and what follows from order: medians and other quantiles."""

from __future__ import annotations

from functools import partial
from typing import Any

from xlalite.hlo.errors import TracingError
from xlalite.ops.functions import array as arrays, ordering
from xlalite.tracing.duck_numpy import np
from xlalite.tracing.functions.reductions import floating_array
from xlalite.tracing.functions.registry import records, refuse
from xlalite.tracing.promotion import normal_axes, normal_axis, numpy_dtype, promoted, sizes, traced, traced_array
from xlalite.tracing.traced_array import TracedArray
from xlalite.tracing.ufunc_methods import finished

_EXCHANGED = 9
"""Rows of at most so many elements are put in order side by side."""
_OF_ELEMENTS = ("lower", "higher", "nearest", "inverted_cdf")
"""Methods of quantiles that choose an element."""
_LOOKED_THROUGH = 64
"""Sequences of at most so many elements are compared with all of them, in vectors."""


@records(np.sort)
def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: bool | None = None) -> Any:
    x, along = _along(a, axis)
    if x.dtype.kind == "c":
        return np.take_along_axis(x, np.argsort(x, along), along)
    if x.dtype == np.bool_:
        return np.sort(x.astype(np.uint8), along).astype(np.bool_)
    return traced(ordering.sort(_in_numpys_order(x).tensor, along))


def _in_numpys_order(x: Any) -> Any:
    """NaNs without a sign: those with one come first in the order of bits, which is otherwise NumPy's."""
    return np.where(np.isnan(x), x.dtype.type(np.nan), x) if x.tensor.dtype.is_floating else x


@records(np.argsort)
def argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: bool | None = None) -> Any:
    x, along = _along(a, axis)
    if x.dtype.kind == "c":
        return np.lexsort((x.imag, x.real), axis=along)
    if x.dtype == np.bool_:
        x = x.astype(np.uint8)
    return traced(ordering.argsort((_in_numpys_order(x) + 0).tensor, along)).astype(np.int64)


@records(np.lexsort)
def lexsort(keys: Any, axis: int = -1) -> Any:
    columns = [traced_array(each) for each in keys]
    order = np.argsort(columns[0], axis)
    for column in columns[1:]:
        order = np.take_along_axis(order, np.argsort(np.take_along_axis(column, order, axis), axis), axis)
    return order


@records(np.partition)
def partition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> Any:
    """In order, which is one of the orders that NumPy allows."""
    return np.sort(a, axis)


@records(np.argpartition)
def argpartition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> Any:
    return np.argsort(a, axis)


@records(np.sort_complex)
def sort_complex(a: Any) -> Any:
    x = traced_array(a)
    return np.sort(x.astype(np.result_type(x.dtype, np.complex64)))


@records(np.searchsorted)
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    sequence = traced_array(a) if sorter is None else np.take(traced_array(a), sorter)
    ordered, wanted = promoted(sequence, v)
    if ordered.shape.rank != 1:
        raise ValueError("object too deep for desired array")
    if side not in ("left", "right"):
        raise ValueError(f"search side must be 'left' or 'right' (got '{side}')")
    places, x = traced(ordered), traced(wanted)
    if places.shape[0] <= _LOOKED_THROUGH:
        return np.sum(_comes_before(places, x[..., None], side), axis=-1)
    # The largest power of two first: each step looks at one element.
    found = np.zeros_like(x, dtype=np.int64)
    step = (1 << places.shape[0].bit_length()) >> 1
    while step:
        further = found + step
        here = traced(arrays.gather(ordered, np.minimum(further, places.shape[0]).tensor - 1))
        found = np.where(_comes_before(here, x, side) & (further <= places.shape[0]), further, found)
        step >>= 1
    return found


@records(np.digitize)
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    edges = bins if isinstance(bins, TracedArray) and bins.known is None else np.asarray(bins)
    place = partial(np.searchsorted, v=traced_array(x), side="left" if right else "right")
    if edges.size == 0:
        return place(edges)
    is_falling = edges[0] > edges[-1]
    if isinstance(is_falling, TracedArray):
        places = place(np.where(is_falling, edges[::-1], edges))
        return np.where(is_falling, edges.size - places, places)
    return edges.size - place(edges[::-1]) if is_falling else place(edges)


@records(np.median)
def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    rows, dims = _rows(floating_array(a, None), axis)
    length = rows.shape[-1]
    few = 0 < length <= _EXCHANGED and rows.dtype.kind == "f"
    ordered = _exchanged(rows) if few else np.sort(rows)
    half = length // 2
    if length == 0:
        found = np.full_like(rows, np.nan, shape=rows.shape[:-1])
    else:
        low = ordered[..., half - (length + 1) % 2]
        found = low if length % 2 else (low + ordered[..., half]) * ordered.dtype.type(0.5)
        found = np.where(np.isnan(ordered[..., -1]), ordered[..., -1], found)
    return finished(np.reshape(found, dims) if keepdims else found, out)


@records(np.quantile)
def quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Any:
    if weights is not None:
        raise TracingError("numpy.quantile with weights cannot be recorded by xlalite.jit")
    rows, dims = _rows(floating_array(a, None), axis)
    ordered = np.sort(rows)
    length = rows.shape[-1]
    if isinstance(q, TracedArray):
        share = q.astype(np.result_type(q.dtype, rows.dtype))
    else:
        share = np.asarray(q, rows.dtype if type(q) in (int, float) else None)
    low, high, weight = _neighbours(share, length, method)
    flat = [np.reshape(each, -1) for each in (low, high, weight)]
    first, second = (np.moveaxis(np.take(ordered, each, axis=-1), -1, 0) for each in flat[:2])
    factor = np.reshape(flat[2], (-1,) + (1,) * (rows.ndim - 1))
    # As NumPy interpolates: from the nearer end, so that equal neighbours give themselves.
    distance = second - first
    found = np.where(np.less(factor, 0.5), first + distance * factor, second - distance * (1 - factor))
    found = np.where(np.isnan(ordered[..., -1]), ordered[..., -1], found)
    own = numpy_dtype(a) if method in _OF_ELEMENTS else np.result_type(rows.dtype, share.dtype)
    found = np.reshape(found.astype(own), (*sizes(q), *(dims if keepdims else rows.shape[:-1])))
    return finished(found, out)


@records(np.percentile)
def percentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Any:
    share = q / 100 if type(q) in (int, float) else np.true_divide(q, 100)
    return quantile(a, share, axis, out, overwrite_input, method, keepdims, weights=weights)


@records(np.nanmedian)
def nanmedian(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False) -> Any:
    rows, dims = _rows(floating_array(a, None), axis)
    if not rows.shape[-1]:
        return np.mean(a, axis, None, out, keepdims is True)
    ordered = np.sort(rows)
    count = np.sum(~np.isnan(rows), axis=-1)
    low, high = np.maximum((count - 1) // 2, 0), np.maximum(count // 2, 0)
    pair = [np.take_along_axis(ordered, np.expand_dims(each, -1), -1)[..., 0] for each in (low, high)]
    found = np.where(np.equal(low, high), pair[0], (pair[0] + pair[1]) * ordered.dtype.type(0.5))
    return finished(np.reshape(found, dims) if keepdims is True else found, out)


@records(np.nanquantile)
def nanquantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: Any = None,
) -> Any:
    if weights is not None or method != "linear":
        raise TracingError("numpy.nanquantile is recorded by xlalite.jit with method='linear' and without weights")
    rows, dims = _rows(floating_array(a, None), axis)
    ordered = np.sort(rows)
    count = np.sum(~np.isnan(rows), axis=-1)
    share = np.reshape(traced_array(q).astype(rows.dtype), (-1,) + (1,) * (rows.ndim - 1))
    place = share * (np.maximum(count, 1) - 1)
    low = np.floor(place)
    weight = place - low
    spread = np.moveaxis(ordered, -1, 0)
    first = np.take_along_axis(spread, low.astype(np.int64), 0)
    second = np.take_along_axis(spread, np.ceil(place).astype(np.int64), 0)
    distance = second - first
    found = np.where(np.less(weight, 0.5), first + distance * weight, second - distance * (1 - weight))
    found = np.reshape(found.astype(rows.dtype), (*sizes(q), *(dims if keepdims is True else rows.shape[:-1])))
    return finished(found, out)


@records(np.nanpercentile)
def nanpercentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: Any = None,
) -> Any:
    return nanquantile(a, np.true_divide(q, 100), axis, out, overwrite_input, method, keepdims, weights=weights)


refuse(
    "how many elements are not zero is not known while the function is traced, and so not the size of the result; say "
    "it with size=n, or use np.where(condition, x, y), x[condition], or a reduction with where=condition",
    *(np.nonzero, np.flatnonzero, np.argwhere),
)
refuse(
    "how many elements are chosen is not known while the function is traced, and so not the size of the result; use "
    "np.where(condition, x, y), x[condition], or a reduction with where=condition",
    np.trim_zeros,
)
refuse(
    "how many different elements there are is not known while the function is traced, and so not the size of the "
    "result; say it with size=n, or use np.sort and np.diff, or np.isin, which gives a mask",
    *(np.unique, np.union1d, np.intersect1d, np.setdiff1d, np.setxor1d),
)
refuse(
    "how many different elements there are is not known while the function is traced, and so not the size of the "
    "result; use np.unique with size=n",
    *(np.unique_all, np.unique_counts, np.unique_inverse, np.unique_values),
)


def _exchanged(rows: Any) -> Any:
    """Short rows in order, by exchanges of neighbours that all rows make at once; with a NaN all of it is NaN."""
    columns = [rows[..., i] for i in range(rows.shape[-1])]
    for step in range(len(columns)):
        for i in range(step % 2, len(columns) - 1, 2):
            pair = columns[i], columns[i + 1]
            columns[i], columns[i + 1] = np.minimum(*pair), np.maximum(*pair)
    return np.stack(columns, axis=-1)


def _comes_before(here: Any, x: Any, side: str) -> Any:
    """Whether an element stands before the place of another one; NaN is the largest."""
    before = np.less(here, x) if side == "left" else np.less_equal(here, x)
    if here.dtype.kind not in "fc":
        return before
    return before | (np.isnan(x) & ~np.isnan(here) if side == "left" else np.isnan(x))


def _along(a: Any, axis: Any) -> tuple[Any, int]:
    x = traced_array(a)
    return (np.ravel(x), 0) if axis is None else (x, normal_axis(axis, x.ndim))


def _rows(x: Any, axis: Any) -> tuple[Any, list[int]]:
    """The reduced dimensions as the last one, and the sizes that keep them as 1."""
    axes = normal_axes(axis, x.ndim)
    kept = [i for i in range(x.ndim) if i not in axes]
    turned = np.transpose(x, [*kept, *axes])
    count = int(np.prod([x.shape[i] for i in axes]))
    return np.reshape(turned, [*[x.shape[i] for i in kept], count]), [
        1 if i in axes else each for i, each in enumerate(x.shape)
    ]


def _neighbours(share: Any, length: int, method: str) -> tuple[Any, Any, Any]:
    """Positions of the elements around a quantile, and how far it is from the first to the second."""
    virtual = {
        "linear": lambda: share * (length - 1),
        "lower": lambda: np.floor(share * (length - 1)),
        "higher": lambda: np.ceil(share * (length - 1)),
        "nearest": lambda: np.rint(share * (length - 1)),
        "midpoint": lambda: 0.5 * (np.floor(share * (length - 1)) + np.ceil(share * (length - 1))),
        "inverted_cdf": lambda: np.ceil(share * length) - 1,
        "hazen": lambda: share * length - 0.5,
        "weibull": lambda: share * (length + 1) - 1,
        "median_unbiased": lambda: share * length + (share + 1) / 3 - 1,
        "normal_unbiased": lambda: share * length + (share + 1.5) / 4 - 1,
        "interpolated_inverted_cdf": lambda: share * length - 1,
    }.get(method)
    if virtual is None:
        raise TracingError(f"numpy.quantile with method={method!r} cannot be recorded by xlalite.jit")
    place = np.clip(virtual(), 0, max(length - 1, 0))
    low = np.floor(place)
    return low.astype(np.int64), np.ceil(place).astype(np.int64), place - low
