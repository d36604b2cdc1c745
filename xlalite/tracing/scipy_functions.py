"""Functions of `scipy.special` that are no ufuncs, and so do not ask their arguments how they are computed."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from types import FrameType, ModuleType
from typing import Any

from xlalite.framework.structure import flatten
from xlalite.tracing.duck_numpy import np
from xlalite.tracing.promotion import floating, traced
from xlalite.tracing.traced_array import TracedArray


def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """log(sum(b * exp(a))), from the largest element."""
    x = traced(floating(a))
    if b is not None:
        x = np.where(np.not_equal(b, 0), x, x.dtype.type(-np.inf))
    largest = np.max(x, axis=axis, keepdims=True)
    top = np.where(np.isfinite(largest), largest, x.dtype.type(0))
    terms = np.exp(x - top) if b is None else b * np.exp(x - top)
    total = np.sum(terms, axis=axis, keepdims=keepdims)
    sign = np.sign(total)
    found = np.log(np.abs(total) if return_sign else total) + np.reshape(top, total.shape)
    return (found, sign) if return_sign else found


def softmax(x: Any, axis: Any = None) -> Any:
    """exp(x) / sum(exp(x))."""
    given = traced(floating(x))
    powers = np.exp(given - np.max(given, axis=axis, keepdims=True))
    return powers / np.sum(powers, axis=axis, keepdims=True)


def log_softmax(x: Any, axis: Any = None) -> Any:
    """log(softmax(x)), without a loss of small ones."""
    given = traced(floating(x))
    top = np.max(given, axis=axis, keepdims=True)
    rest = given - np.where(np.isfinite(top), top, given.dtype.type(0))
    return rest - np.log(np.sum(np.exp(rest), axis=axis, keepdims=True))


FUNCTIONS: Mapping[str, Callable[..., Any]] = {"logsumexp": logsumexp, "log_softmax": log_softmax, "softmax": softmax}

INSTEAD: Mapping[str, str] = {
    "scipy.fft": "the functions of np.fft",
    "scipy.linalg": "those of np.linalg",
    "scipy.signal": "np.convolve, np.correlate, np.fft, or xlalite.scan for filters that feed back",
    "scipy.stats": "NumPy's functions and those of scipy.special: ndtr(x) for norm.cdf(x), ndtri(p) for norm.ppf(p), "
    "np.exp(-x**2 / 2) / np.sqrt(2 * np.pi) for norm.pdf(x), gammainc, betainc",
    "scipy.special": "NumPy's functions, or import scipy.special outside of the function",
    "scipy": "NumPy's functions",
    "numpy.ma": "np.where(mask, x, other), and reductions with where=mask, in the place of masked arrays",
    "numpy.polynomial": "np.polyval, or functions as np.polynomial.polynomial.polyval",
    "numpy.lib._stride_tricks_impl": "np.lib.stride_tricks.sliding_window_view, or indices",
    "numpy": "other functions of arrays, np.take(x, i) where it is an index",
}
"""What to write where modules cannot be recorded."""


def instead_of_caller() -> str | None:
    """What to write instead of the function of scipy or NumPy that is being called; None if there is no such caller."""
    frame: FrameType | None = sys._getframe(1)
    module = function = ""
    while frame is not None and (name := frame.f_globals.get("__name__", "")).split(".")[0] in _LIBRARIES:
        if not name.startswith("xlalite"):
            module, called = name, frame.f_code.co_name
            function = function if called.startswith("_") else called
        frame = frame.f_back
    if not module:
        return None
    path = module.split(".")
    advice = next(INSTEAD[known] for i in range(len(path), 0, -1) if (known := ".".join(path[:i])) in INSTEAD)
    shown = ".".join(each for each in path[:2] if each not in ("lib", "_core"))
    return (
        f"{shown}{f' ({function})' if function else ''} cannot be recorded by xlalite.jit: it takes arrays that have "
        f"values; write {advice}, or call it through xlalite.pure_callback"
    )


def as_seen(value: Any) -> Any:
    """What stands for scipy, its module `special` or one of these functions in a text; None for anything else."""
    scipy, special = sys.modules.get("scipy"), sys.modules.get("scipy.special")
    if special is None:
        return None
    if isinstance(value, ModuleType) and (value is scipy or value is special):
        return _Module(value)
    name = getattr(value, "__name__", None)
    if isinstance(name, str) and name in FUNCTIONS and value is getattr(special, name):
        return _recorded(value, FUNCTIONS[name])
    return None


_LIBRARIES = ("contextlib", "functools", "numpy", "scipy", "xlalite")


class _Module(ModuleType):
    """A module of scipy with these functions in it."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__(module.__name__, module.__doc__)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        seen = as_seen(found)
        return found if seen is None else seen


def _recorded(function: Callable[..., Any], rule: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        leaves, _ = flatten((arguments, options))
        chosen = rule if any(isinstance(each, TracedArray) for each in leaves) else function
        return chosen(*arguments, **options)

    return call
