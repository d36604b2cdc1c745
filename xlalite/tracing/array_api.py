"""What the array API standard asks of functions beyond NumPy's, for `xlalite.numpy`."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy

from xlalite.tracing.duck_numpy import np
from xlalite.tracing.traced_array import TracedArray


def finfo(type: Any, /) -> Any:
    """`numpy.finfo`, also of an array's element type."""
    return numpy.finfo(_element_type(type))


def iinfo(type: Any, /) -> Any:
    """`numpy.iinfo`, also of an array's element type."""
    return numpy.iinfo(_element_type(type))


def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Any:
    """`numpy.fft.fftfreq` in an element type."""
    return numpy.fft.fftfreq(n, d, device=device).astype(dtype or numpy.float64)


def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Any:
    """`numpy.fft.rfftfreq` in an element type."""
    return numpy.fft.rfftfreq(n, d, device=device).astype(dtype or numpy.float64)


def sort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None, descending: bool = False
) -> Any:
    """`numpy.sort`, also from the largest to the smallest."""
    found = np.sort(a, axis, kind, order, stable=stable)
    return np.flip(found, axis) if descending else found


def argsort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None, descending: bool = False
) -> Any:
    """`numpy.argsort`, also from the largest to the smallest, equal ones in their order."""
    if not descending:
        return np.argsort(a, axis, kind, order, stable=stable)
    found = np.argsort(np.flip(a, axis), axis, kind, order, stable=True)
    return np.flip(a.shape[axis] - 1 - found, axis)


CONSTANT: Mapping[tuple[types.ModuleType, str], Callable[..., Any]] = {
    (numpy, "finfo"): finfo,
    (numpy, "iinfo"): iinfo,
    (numpy.fft, "fftfreq"): fftfreq,
    (numpy.fft, "rfftfreq"): rfftfreq,
}
"""Those that compute nothing with arrays."""

COMPILED: Mapping[tuple[types.ModuleType, str], Callable[..., Any]] = {
    (numpy, "sort"): sort,
    (numpy, "argsort"): argsort,
}


def _element_type(type: Any) -> Any:
    return type.dtype if isinstance(type, numpy.ndarray | TracedArray) else type
