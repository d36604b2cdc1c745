"""Statistics: averages, covariances, histograms; interpolation between samples."""

from __future__ import annotations

from typing import Any

from xlalite.hlo.errors import TracingError
from xlalite.tracing.duck_numpy import np
from xlalite.tracing.functions.reductions import count_of, floating_array
from xlalite.tracing.functions.registry import records
from xlalite.tracing.promotion import as_tensor, common_type, normal_axes, numpy_dtype, sizes, traced_array
from xlalite.tracing.traced_array import TracedArray, as_known

_NOTHING = np._NoValue  # NumPy's own default


@records(np.average)
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = _NOTHING) -> Any:
    kept = False if keepdims is _NOTHING else bool(keepdims)
    x = floating_array(a, None)
    if weights is None:
        found = np.mean(x, axis, keepdims=kept)
        total: Any = np.full_like(found, count_of(x, axis))
    else:
        w = traced_array(weights)
        if w.shape != x.shape:
            axes = normal_axes(axis, x.ndim)
            if axis is None:
                raise TypeError("Axis must be specified when shapes of a and weights differ.")
            if w.shape != tuple(x.shape[i] for i in axes):
                raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
            order = sorted(range(len(axes)), key=axes.__getitem__)
            w = np.reshape(np.transpose(w, order), [x.shape[i] if i in axes else 1 for i in range(x.ndim)])
            w = np.broadcast_to(w, x.shape)
        wanted = np.result_type(x.dtype, w.dtype)
        total = np.sum(w.astype(wanted), axis, keepdims=kept)
        found = np.sum(x.astype(wanted) * w.astype(wanted), axis, keepdims=kept) / total
    return (found, total) if returned else found


@records(np.cov)
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Any:
    ddof = (0 if bias else 1) if ddof is None else ddof
    wanted = np.result_type(common_type(m, m if y is None else y), np.float64) if dtype is None else np.dtype(dtype)
    x = _variables(m, wanted, rowvar)
    if y is not None:
        x = np.concatenate([x, _variables(y, wanted, rowvar)])
    weights: Any = None
    for each in (fweights, aweights):
        if each is not None:
            weights = traced_array(each).astype(np.float64) * (1 if weights is None else weights)
    if weights is None:
        mean, total = np.mean(x, axis=1, keepdims=True), x.shape[1]
        factor: Any = total - ddof
        scaled = x - mean
        product = np.matmul(scaled, np.conjugate(scaled).T)
    else:
        total = np.sum(weights)
        mean = np.sum(x * weights, axis=1, keepdims=True) / total
        scaled = x - mean
        extra = 1.0 if aweights is None else np.sum(weights * aweights) / total
        factor = total - ddof * extra
        product = np.matmul(scaled, np.conjugate(scaled * weights).T)
    return np.squeeze(product / factor)


@records(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    spread = np.sqrt(np.real(np.diagonal(c)))
    found = c / spread[:, None] / spread[None, :]
    if found.dtype.kind == "c":
        return np.clip(found.real, -1, 1) + 1j * np.clip(found.imag, -1, 1)
    return np.clip(found, -1, 1)


@records(np.bincount)
def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    if minlength <= 0:
        raise TracingError(
            "numpy.bincount: the largest number is not known while the function is traced, and so not the size of the "
            "result; say minlength= (larger numbers are left out)"
        )
    index = traced_array(x)
    added = np.int64(1) if weights is None else floating_array(weights, np.float64)
    found: Any = TracedArray(_zeros(minlength, numpy_dtype(added)))
    np.add.at(found, np.where(np.less(index, minlength) & np.greater_equal(index, 0), index, minlength), added)
    return found


@records(np.histogram_bin_edges)
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    if isinstance(bins, str):
        raise TracingError(f"numpy.histogram: the number of bins={bins!r} depends on values that are not known")
    if np.ndim(bins):
        return bins if isinstance(bins, TracedArray) else np.asarray(bins)
    if range is not None and not any(isinstance(each, TracedArray) for each in range):
        return np.histogram_bin_edges(np.zeros(0, numpy_dtype(a)), bins, range)
    x = floating_array(a, None)
    low, high = (np.min(x), np.max(x)) if range is None else range
    is_point = np.equal(low, high)
    return np.linspace(np.where(is_point, low - 0.5, low), np.where(is_point, high + 0.5, high), bins + 1)


@records(np.histogram)
def histogram(a: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None) -> Any:
    edges = histogram_bin_edges(a, bins, range)
    counts = _counted([np.ravel(traced_array(a))], [edges], weights)
    if density:
        counts = counts / np.diff(edges) / np.sum(counts)
    return counts, as_known(edges)


@records(np.histogram2d)
def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> Any:
    counts, edges = histogramdd([x, y], _bins_by_axis(bins, 2), range, density, weights)
    return counts, edges[0], edges[1]


@records(np.histogramdd)
def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> Any:
    columns = list(sample) if isinstance(sample, list | tuple) else list(np.transpose(traced_array(sample)))
    ranges = [None] * len(columns) if range is None else range
    edges = [
        histogram_bin_edges(column, each, limits)
        for column, each, limits in zip(columns, _bins_by_axis(bins, len(columns)), ranges, strict=True)
    ]
    counts = _counted(columns, edges, weights, np.float64)
    if density:
        counts = counts / np.sum(counts)
        for axis, each in enumerate(edges):
            counts = counts / np.reshape(np.diff(each), (-1,) + (1,) * (len(edges) - 1 - axis))
    return counts, tuple(map(as_known, edges))


@records(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    places, values = floating_array(xp, np.float64), traced_array(fp)
    values = values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)
    wanted = floating_array(x, np.float64)
    if period is not None:
        wanted, places = np.mod(wanted, abs(period)), np.mod(places, abs(period))
        order = np.argsort(places)
        places, values = places[order], values[order]
        places = np.concatenate([places[-1:] - abs(period), places, places[:1] + abs(period)])
        values = np.concatenate([values[-1:], values, values[:1]])
    count = places.shape[0]
    above = np.clip(np.searchsorted(places, wanted, side="right"), 1, max(count - 1, 1))
    below = above - 1
    x0, x1, y0, y1 = places[below], places[above], values[below], values[above]
    slope = (y1 - y0) / (x1 - x0)
    found = slope * (wanted - x0) + y0
    found = np.where(np.equal(wanted, x1), y1, np.where(np.equal(x0, x1), y0, found))
    first, last = (values[0] if left is None else left), (values[-1] if right is None else right)
    if period is None:
        found = np.where(np.less(wanted, places[0]), first, np.where(np.greater(wanted, places[-1]), last, found))
    return np.where(np.isnan(wanted), wanted, found)


def _variables(m: Any, dtype: Any, rowvar: bool) -> Any:
    x = np.atleast_2d(traced_array(m).astype(dtype))
    return x.T if not rowvar and x.shape[0] != 1 else x


def _bins_by_axis(bins: Any, count: int) -> list[Any]:
    if np.ndim(bins) == 0:
        return [bins] * count
    given = list(bins) if len(bins) == count else [bins] * count
    return given


def _counted(columns: list[Any], edges: list[Any], weights: Any, dtype: Any = np.int64) -> Any:
    """Numbers of samples by bin; the last bin holds its upper edge, too."""
    dims = [sizes(each)[0] - 1 for each in edges]
    place: Any = 0
    is_inside: Any = True
    for column, each, size in zip(columns, edges, dims, strict=True):
        x = traced_array(column)
        found = np.searchsorted(each, x, side="right") - 1
        found = np.where(np.equal(x, each[-1]), size - 1, found)
        is_inside = is_inside & np.greater_equal(found, 0) & np.less(found, size) & ~np.isnan(x)
        place = place * size + found
    total = int(np.prod(dims))
    given = np.dtype(dtype).type(1) if weights is None else np.ravel(traced_array(weights))
    counts: Any = TracedArray(_zeros(total, numpy_dtype(given)))
    np.add.at(counts, np.where(is_inside, place, total), given)
    return np.reshape(counts, dims)


def _zeros(count: int, dtype: Any) -> Any:
    return as_tensor(np.zeros(count, dtype))
