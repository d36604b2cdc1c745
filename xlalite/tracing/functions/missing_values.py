"""Reductions that leave NaN out."""

from __future__ import annotations

from typing import Any

import numpy

from xlalite.tracing.duck_numpy import np
from xlalite.tracing.functions.reductions import floating_array
from xlalite.tracing.functions.registry import records
from xlalite.tracing.promotion import traced_array
from xlalite.tracing.ufunc_methods import finished

_NOTHING = np._NoValue  # NumPy's own default


def _kept(keepdims: Any) -> bool:
    return False if keepdims is _NOTHING else bool(keepdims)


def _filled(a: Any, value: Any) -> Any:
    x = traced_array(a)
    return x if x.dtype.kind in "iub" else np.where(np.isnan(x), x.dtype.type(value), x)


def _where(a: Any, where: Any) -> Any:
    known = ~np.isnan(traced_array(a))
    return known if where is True or where is _NOTHING else known & where


@records(np.nansum)
def nansum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = _NOTHING,
    initial: Any = _NOTHING,
    where: Any = _NOTHING,
) -> Any:
    return np.sum(_filled(a, 0), axis, dtype, out, _kept(keepdims), initial, where)


@records(np.nanprod)
def nanprod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = _NOTHING,
    initial: Any = _NOTHING,
    where: Any = _NOTHING,
) -> Any:
    return np.prod(_filled(a, 1), axis, dtype, out, _kept(keepdims), initial, where)


@records(np.nancumsum)
def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return np.cumsum(_filled(a, 0), axis, dtype, out)


@records(np.nancumprod)
def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return np.cumprod(_filled(a, 1), axis, dtype, out)


@records(np.nanmax)
def nanmax(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = _NOTHING, initial: Any = _NOTHING, where: Any = _NOTHING
) -> Any:
    return _extreme(np.fmax, a, axis, out, keepdims, initial, where)


@records(np.nanmin)
def nanmin(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = _NOTHING, initial: Any = _NOTHING, where: Any = _NOTHING
) -> Any:
    return _extreme(np.fmin, a, axis, out, keepdims, initial, where)


@records(np.nanargmax)
def nanargmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = _NOTHING) -> Any:
    return np.argmax(_filled(a, -np.inf), axis, out, keepdims=_kept(keepdims))


@records(np.nanargmin)
def nanargmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = _NOTHING) -> Any:
    return np.argmin(_filled(a, np.inf), axis, out, keepdims=_kept(keepdims))


@records(np.nanmean)
def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = _NOTHING, *, where: Any = _NOTHING
) -> Any:
    return np.mean(a, axis, dtype, out, _kept(keepdims), where=_where(a, where))


@records(np.nanvar)
def nanvar(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = _NOTHING,
    *,
    where: Any = _NOTHING,
    mean: Any = _NOTHING,
    correction: Any = _NOTHING,
) -> Any:
    ddof = ddof if correction is _NOTHING else correction
    kept = _kept(keepdims)
    known = _where(a, where)
    found = np.var(floating_array(a, dtype), axis, ddof=ddof, keepdims=kept, where=known, mean=mean)
    has_enough = np.greater(np.sum(known, axis, keepdims=kept), ddof)
    return finished(np.where(has_enough, found, found.dtype.type(np.nan)), out)


@records(np.nanstd)
def nanstd(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = _NOTHING,
    *,
    where: Any = _NOTHING,
    mean: Any = _NOTHING,
    correction: Any = _NOTHING,
) -> Any:
    found = nanvar(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction)
    return finished(np.sqrt(found), out)


def _extreme(ufunc: numpy.ufunc, a: Any, axis: Any, out: Any, keepdims: Any, initial: Any, where: Any) -> Any:
    x = traced_array(a)
    if x.dtype.kind in "iub":
        ufunc, limits = (np.maximum if ufunc is np.fmax else np.minimum), None
    else:
        limits = -np.inf if ufunc is np.fmax else np.inf
        is_known = ~np.isnan(x)
        plain = np.maximum if ufunc is np.fmax else np.minimum
        kept = _kept(keepdims)
        given = {} if where is _NOTHING else {"where": where}
        start = x.dtype.type(limits) if where is not _NOTHING and initial is _NOTHING else initial
        found = plain.reduce(
            np.where(is_known, x, x.dtype.type(limits)),
            axis=axis,
            keepdims=kept,
            **({} if start is _NOTHING else {"initial": start}),
            **given,
        )
        has_any = np.any(is_known if where is _NOTHING else is_known & where, axis=axis, keepdims=kept)
        if initial is _NOTHING:
            found = np.where(has_any, found, x.dtype.type(np.nan))
        return finished(found, out)
    function = np.max if ufunc is np.maximum else np.min
    return function(x, axis, out, _kept(keepdims), initial, where)
