"""Polynomials as their coefficients, the highest power first."""

from __future__ import annotations

from typing import Any

from xlalite.hlo.errors import TracingError
from xlalite.tracing.duck_numpy import np
from xlalite.tracing.functions.reductions import floating_array
from xlalite.tracing.functions.registry import records, refuse
from xlalite.tracing.promotion import sizes, traced_array


@records(np.polyval)
def polyval(p: Any, x: Any) -> Any:
    coefficients = traced_array(p)
    found: Any = np.zeros_like(traced_array(x))
    for each in coefficients:
        found = found * x + each
    return found


@records(np.polyadd)
def polyadd(a1: Any, a2: Any) -> Any:
    return np.add(*_aligned(a1, a2))


@records(np.polysub)
def polysub(a1: Any, a2: Any) -> Any:
    return np.subtract(*_aligned(a1, a2))


@records(np.polymul)
def polymul(a1: Any, a2: Any) -> Any:
    return np.convolve(np.atleast_1d(traced_array(a1)), np.atleast_1d(traced_array(a2)))


@records(np.polyder)
def polyder(p: Any, m: int = 1) -> Any:
    found = traced_array(p)
    for _ in range(m):
        found = found[:-1] * np.arange(found.shape[0] - 1, 0, -1)
    return found


@records(np.polyint)
def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    found = floating_array(p, None)
    constants = np.broadcast_to(0 if k is None else k, m)
    for i in range(m):
        found = np.concatenate([found / np.arange(found.shape[0], 0, -1), np.reshape(traced_array(constants[i]), (1,))])
    return found


@records(np.polyfit)
def polyfit(x: Any, y: Any, deg: int, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False) -> Any:
    if full or cov:
        raise TracingError("numpy.polyfit with full or cov cannot be recorded by xlalite.jit")
    places, values = floating_array(x, None), floating_array(y, None)
    rcond = sizes(places)[0] * np.finfo(places.dtype).eps if rcond is None else rcond
    matrix = np.vander(places, deg + 1)
    if w is not None:
        matrix = matrix * np.reshape(w, (-1, 1))
        values = values * (w if values.ndim == 1 else np.reshape(w, (-1, 1)))
    scale = np.sqrt(np.sum(matrix * matrix, axis=0))
    found = np.linalg.lstsq(matrix / scale, values, rcond)[0]
    return found / (scale if found.ndim == 1 else np.reshape(scale, (-1, 1)))


@records(np.poly)
def poly(seq_of_zeros: Any) -> Any:
    zeros = floating_array(seq_of_zeros, None)
    if zeros.ndim == 2:
        zeros = np.linalg.eigvals(zeros)
    found: Any = np.ones(1, zeros.dtype)
    for each in zeros:
        found = np.convolve(found, np.stack([np.ones_like(each), -each]))
    return found


refuse(
    "leading zeros decide about the degree of a polynomial, and the coefficients are not known while the function is "
    "traced",
    *(np.roots, np.polydiv),
)


def _aligned(a1: Any, a2: Any) -> list[Any]:
    parts = [np.atleast_1d(traced_array(each)) for each in (a1, a2)]
    most = max(each.shape[0] for each in parts)
    return [np.pad(each, (most - each.shape[0], 0)) for each in parts]
