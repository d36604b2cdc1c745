"""Borders around arrays: of constants, of the array's own elements, of what summarises them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xlalite.hlo.errors import TracingError
from xlalite.tracing.duck_numpy import np
from xlalite.tracing.functions.registry import records
from xlalite.tracing.promotion import contains_traced, traced_array


@records(np.pad)
def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    sides = _SIDES.get(mode) if isinstance(mode, str) else None
    if sides is None:
        raise TracingError(f"pad with mode {mode!r} cannot be recorded by xlalite.jit; use np.concatenate")
    x = traced_array(array)
    pairs = {name: _pairs(kwargs.get(name, default), x.ndim) for name, default in _PAIRS.items()}
    for axis, width in enumerate(_pairs(pad_width, x.ndim)):
        options = {name: each[axis] for name, each in pairs.items()}
        borders = [
            np.broadcast_to(traced_array(side).astype(x.dtype), (*x.shape[:axis], count, *x.shape[axis + 1 :]))
            for side, count in zip(sides(x, axis, width, mode, {**kwargs, **options}), width, strict=True)
        ]
        x = np.concatenate([borders[0], x, borders[1]], axis=axis)
    return x


def _constants(x: Any, axis: int, width: Any, mode: str, options: Mapping[str, Any]) -> Sequence[Any]:
    found: Sequence[Any] = options["constant_values"]
    return found


def _neighbours(x: Any, axis: int, width: Any, mode: str, options: Mapping[str, Any]) -> Sequence[Any]:
    """Elements of the array itself: which ones, NumPy's padding of positions says; odd ones are turned at the ends."""
    length = x.shape[axis]
    places = np.pad(np.arange(length), width, mode)
    found = [np.take(x, each, axis) for each in (places[: width[0]], places[width[0] + length :])]
    if options.get("reflect_type") != "odd" or mode not in ("reflect", "symmetric"):
        return found
    if max(width) > length - (mode == "reflect"):
        raise TracingError("pad with reflect_type='odd' beyond the size of an array cannot be recorded by xlalite.jit")
    return [2 * np.take(x, [end], axis) - each for end, each in zip((0, length - 1), found, strict=True)]


def _ramps(x: Any, axis: int, width: Any, mode: str, options: Mapping[str, Any]) -> Sequence[Any]:
    before, after = (
        np.linspace(end, np.take(x, place, axis), count, endpoint=False, dtype=x.dtype, axis=axis)
        for end, place, count in zip(options["end_values"], (0, x.shape[axis] - 1), width, strict=True)
    )
    return before, np.flip(after, axis)


def _summaries(x: Any, axis: int, width: Any, mode: str, options: Mapping[str, Any]) -> Sequence[Any]:
    """What becomes of so many elements at either end; of all of them for None."""
    size = x.shape[axis]
    first, last = (size if each is None else min(each, size) for each in options["stat_length"])
    if 0 in (first, last) and mode in ("maximum", "minimum"):
        raise ValueError("stat_length of 0 yields no value for padding")
    parts = np.take(x, np.arange(first), axis), np.take(x, np.arange(size - last, size), axis)
    summary = {"maximum": np.max, "minimum": np.min, "mean": np.mean, "median": np.median}[mode]
    found = [summary(part, axis=axis, keepdims=True) for part in parts]
    return [np.rint(each) for each in found] if x.dtype.kind in "iu" else found


def _pairs(given: Any, rank: int) -> Any:
    """What NumPy takes as one for all, as a pair for all, or as a pair for each dimension."""
    if isinstance(given, dict):
        return [given.get(i, given.get(i - rank, (0, 0))) for i in range(rank)]
    if contains_traced(given):
        return [[*each] for each in np.broadcast_to(traced_array(given), (rank, 2))]
    return np.broadcast_to(np.asarray(given), (rank, 2)).tolist()


_PAIRS: Mapping[str, Any] = {"constant_values": 0, "end_values": 0, "stat_length": None}
_SIDES: Mapping[str, Callable[..., Sequence[Any]]] = {
    **dict.fromkeys(("constant", "empty"), _constants),
    **dict.fromkeys(("edge", "reflect", "symmetric", "wrap"), _neighbours),
    **dict.fromkeys(("maximum", "minimum", "mean", "median"), _summaries),
    "linear_ramp": _ramps,
}
