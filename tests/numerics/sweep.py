"""The worst error of one function of one type."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from numerics.errors import WIDE, comparison, compiled, exact_truth, extended_errors
from numerics.functions import functions_of
from numerics.points import is_exhaustive, points
from xlalite.hlo.types.dtype import DType

# So many of the worst are computed again by mpmath, because other references may be wrong where it is hardest.
CHECKED = 24
Judge = Callable[[tuple[np.ndarray, ...], np.ndarray], tuple[np.ndarray, float]]
"""The errors of found values, and the largest."""


@dataclass(frozen=True)
class Worst:
    """The largest error found: how large, where, and in how many points."""

    name: str
    dtype: DType
    ulp: float
    operands: tuple[str, ...]
    points: int


def whole_sweep(name: str, dtype: DType, limit: int) -> Worst:
    """All numbers, where there are too many so many; where there is no reference but mpmath, some thousand."""
    function = functions_of(dtype.value)[name]
    if is_exhaustive(function.arity, dtype):
        count = 2**dtype.bits
    elif function.extended is None and dtype not in WIDE:
        count = 10**4 if function.bits < 500 else 10**3
    else:
        count = limit
    size = min(count, 2**16)
    judge = _beside_wider(name, dtype, size) if dtype in WIDE else _beside_libraries(name, dtype)
    return _sweep(name, dtype, range(-(-count // size)), size, judge)


def short_sweep(name: str, dtype: DType) -> Worst:
    """A few points such as the whole sweep has."""
    function = functions_of(dtype.value)[name]
    # Two operands are what mpmath is slowest at.
    size, chunks = (16 >> function.arity, range(4 >> function.arity)) if function.extended is None else (512, range(4))
    if is_exhaustive(function.arity, dtype):
        chunks = range(1, 2**dtype.bits // size, 2**dtype.bits // size // 61)
    return _sweep(name, dtype, chunks, size, _beside_libraries(name, dtype))


def _result_type(name: str, dtype: DType) -> DType:
    return dtype.component if name == "abs" else dtype


def _beside_wider(name: str, dtype: DType, size: int) -> Judge:
    """Compares with the same function of a wider type, compiled too."""
    wide, result = WIDE[dtype], _result_type(name, dtype)
    run = compiled(name, wide, size)
    compare = comparison(result, _result_type(name, wide), size)

    def judge(operands: tuple[np.ndarray, ...], found: np.ndarray) -> tuple[np.ndarray, float]:
        with np.errstate(invalid="ignore"):
            widened = [x.astype(wide.numpy) for x in operands]
        errors, largest = compare(found, np.asarray(run(*widened)))
        return np.asarray(errors), float(largest)

    return judge


def _beside_libraries(name: str, dtype: DType) -> Judge:
    """Compares with long doubles of the C library, or where it has none, with mpmath."""
    function, result = functions_of(dtype.value)[name], _result_type(name, dtype)
    extended = np.clongdouble if dtype.is_complex else np.longdouble

    def judge(operands: tuple[np.ndarray, ...], found: np.ndarray) -> tuple[np.ndarray, float]:
        with np.errstate(all="ignore"):
            wide = [x.astype(np.result_type(x.dtype, np.float32)).astype(extended) for x in operands]
            if function.extended is not None:
                errors = extended_errors(found, function.extended(*wide), result)
            else:
                errors = extended_errors(found, exact_truth(function, operands, result), result)
                errors[~np.isfinite(np.stack(wide)).all(axis=0)] = 0
        return errors, float(errors.max())

    return judge


def _sweep(name: str, dtype: DType, chunks: Iterable[int], size: int, judge: Judge) -> Worst:
    function, result = functions_of(dtype.value)[name], _result_type(name, dtype)
    run = compiled(name, dtype, size)
    candidates: list[tuple[float, int, tuple[np.generic, ...], np.generic]] = []
    count = 0
    for chunk in chunks:
        operands = points(name, function.arity, dtype, chunk, size)
        found = np.asarray(run(*operands))
        errors, largest = judge(operands, found)
        count += size
        if len(candidates) < CHECKED or largest > candidates[0][0]:
            place = int(np.argmax(errors))
            entry = float(errors[place]), chunk, tuple(x[place] for x in operands), found[place]
            (heapq.heappush if len(candidates) < CHECKED else heapq.heappushpop)(candidates, entry)
    least = min(entry[0] for entry in candidates) if len(candidates) == CHECKED else 0.0
    worst, place = -1.0, ()
    for error, _, numbers, value in candidates:
        with np.errstate(all="ignore"):
            truth = exact_truth(function, tuple(np.array([x]) for x in numbers), result)
        # What mpmath has no value for keeps the error beside the other reference.
        if not np.isnan(truth[0]):
            with np.errstate(all="ignore"):
                error = float(extended_errors(np.array([value]), truth, result)[0])
        if error > worst:
            worst, place = error, numbers
    assert worst >= 0.98 * least, f"{name} {dtype.value}: the reference is wrong in more places than are checked"
    return Worst(name, dtype, worst, tuple(map(_spelled, place)), count)


def _spelled(x: np.generic) -> str:
    if isinstance(x, np.complexfloating):
        return f"{x.real}{'' if str(x.imag).startswith('-') else '+'}{x.imag}i"
    return str(x)
