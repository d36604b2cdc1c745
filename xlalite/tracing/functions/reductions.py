"""Sums and the like of elements, along dimensions or of all, and running ones."""

from __future__ import annotations

from typing import Any

import numpy

from xlalite.framework.graph.dtypes import as_dtype
from xlalite.ops.functions import math
from xlalite.ops.helpers.promotion import cast_to
from xlalite.tracing.duck_numpy import np
from xlalite.tracing.functions.registry import records
from xlalite.tracing.promotion import as_tensor, normal_axes, numpy_dtype, sizes, traced, traced_array
from xlalite.tracing.traced_array import TracedArray
from xlalite.tracing.ufunc_methods import accumulate, finished, reduce

_NOTHING = np._NoValue  # NumPy's own default of keepdims and initial


def _given(value: Any, default: Any) -> Any:
    return default if value is _NOTHING else value


def _record_reduction(ufunc: numpy.ufunc, *functions: Any) -> None:
    @records(*functions)
    def rule(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        return reduce(
            ufunc, a, axis, dtype, out, bool(_given(keepdims, False)), _given(initial, None), _given(where, True)
        )


def _record_extreme(ufunc: numpy.ufunc, *functions: Any) -> None:
    @records(*functions)
    def rule(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
    ) -> Any:
        return reduce(
            ufunc, a, axis, None, out, bool(_given(keepdims, False)), _given(initial, None), _given(where, True)
        )


def _record_question(ufunc: numpy.ufunc, *functions: Any) -> None:
    @records(*functions)
    def rule(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
        return reduce(ufunc, a, axis, np.bool_, out, bool(_given(keepdims, False)), None, _given(where, True))


_record_reduction(np.add, np.sum)
_record_reduction(np.multiply, np.prod)
_record_extreme(np.maximum, np.max, np.amax)
_record_extreme(np.minimum, np.min, np.amin)
_record_question(np.logical_and, np.all)
_record_question(np.logical_or, np.any)


@records(np.mean)
def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Any:
    x = floating_array(a, dtype)
    where = _given(where, True)
    # As NumPy: f16 is summed in f32.
    wide = x.astype(np.float32) if x.dtype == np.float16 and dtype is None else x
    total = np.sum(wide, axis, keepdims=bool(_given(keepdims, False)), where=where)
    found = total / count_of(x, axis, bool(_given(keepdims, False)), where)
    return finished(found.astype(x.dtype), out)


@records(np.var)
def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> Any:
    """Mean of squared distances from the mean, over n - ddof; `correction` is another name of `ddof`."""
    keepdims, where, mean = bool(_given(keepdims, False)), _given(where, True), _given(mean, None)
    correction = _given(correction, None)
    if correction is not None:
        if ddof:
            raise ValueError("ddof and correction can't be provided simultaneously.")
        ddof = correction
    x = floating_array(a, dtype)
    own = x.dtype
    x = x.astype(np.float32) if own == np.float16 and dtype is None else x
    distance = x - (np.mean(x, axis, keepdims=True, where=where) if mean is None else mean)
    squares = np.square(np.real(distance))
    if x.dtype.kind == "c":
        squares = squares + np.square(np.imag(distance))
    count = count_of(x, axis, keepdims, where) - ddof
    found = np.sum(squares, axis, keepdims=keepdims, where=where)
    found = found / (np.maximum(count, 0).astype(found.dtype) if isinstance(count, TracedArray) else max(count, 0))
    return finished(found.astype(own if own == np.float16 else found.dtype), out)


@records(np.std)
def std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> Any:
    found = var(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction)
    return finished(np.sqrt(found), out)


@records(np.ptp)
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    keepdims = bool(_given(keepdims, False))
    return finished(np.max(a, axis, keepdims=keepdims) - np.min(a, axis, keepdims=keepdims), out)


@records(np.argmax)
def argmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
    return _place(math.argmax, a, axis, out, keepdims)


@records(np.argmin)
def argmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
    return _place(math.argmin, a, axis, out, keepdims)


@records(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return np.sum(np.not_equal(a, 0), axis, keepdims=keepdims)


@records(np.cumsum)
def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return accumulate(np.add, *_along(a, axis), dtype, out)


@records(np.cumprod)
def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return accumulate(np.multiply, *_along(a, axis), dtype, out)


@records(np.cumulative_sum)
def cumulative_sum(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Any:
    return _cumulative(np.add, x, axis, dtype, out, include_initial)


@records(np.cumulative_prod)
def cumulative_prod(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Any:
    return _cumulative(np.multiply, x, axis, dtype, out, include_initial)


def floating_array(a: Any, dtype: Any) -> Any:
    """The array as numbers with fractions, or in the type that is asked for."""
    own = numpy_dtype(a)
    wanted = np.dtype(dtype) if dtype is not None else np.dtype(np.float64) if own.kind in "iub" else own
    return TracedArray(cast_to(as_tensor(a), as_dtype(wanted)))


def count_of(x: Any, axis: Any, keepdims: bool = False, where: Any = True) -> Any:
    """How many elements a reduction takes."""
    if where is True:
        dims = sizes(x)
        return int(np.prod([dims[each] for each in normal_axes(axis, len(dims))]))
    return np.sum(np.broadcast_to(traced_array(where), sizes(x)), axis, keepdims=keepdims)


def _place(find: Any, a: Any, axis: Any, out: Any, keepdims: Any) -> Any:
    x = traced_array(a)
    if 0 in x.shape and (axis is None or x.shape[axis] == 0):
        raise ValueError("attempt to get argmax/argmin of an empty sequence")
    if x.dtype == np.bool_:
        x = x.astype(np.uint8)
    flat, along = (np.ravel(x), 0) if axis is None else (x, normal_axes(axis, x.ndim)[0])
    if x.dtype.kind == "c":
        best = (np.max if find is math.argmax else np.min)(flat, axis=along, keepdims=True)
        # Parts of a NaN may be numbers: the first NaN is the place.
        flat, find = np.logical_or(flat == best, np.isnan(flat)).astype(np.uint8), math.argmax
    found = traced(find(flat.tensor, along))
    if _given(keepdims, False):
        found = np.reshape(found, [1 if axis is None or i == along else each for i, each in enumerate(x.shape)])
    return finished(found, out)


def _along(a: Any, axis: Any) -> tuple[Any, int]:
    return (np.ravel(traced_array(a)), 0) if axis is None else (a, axis)


def _cumulative(ufunc: numpy.ufunc, x: Any, axis: Any, dtype: Any, out: Any, include_initial: bool) -> Any:
    rank = len(sizes(x))
    if axis is None and rank != 1:
        raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
    axis = axis or 0
    found = accumulate(ufunc, x, axis, dtype)
    if include_initial:
        dims = [1 if i == normal_axes(axis, rank)[0] else each for i, each in enumerate(found.shape)]
        found = np.concatenate([np.full_like(found, ufunc.identity, shape=dims), found], axis)
    return finished(found, out)
