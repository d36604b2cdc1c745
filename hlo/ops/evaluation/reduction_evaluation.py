"""Reduces arrays with any computation.

Known monoids use NumPy's reductions in a wide type and round once. Any other function must be associative, for long
reductions are computed as trees of halves, short ones folded from left to right; it need not be commutative. Narrow
floats are accumulated in f32 (`hlo/ir/wide_function.py`) and rounded once, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.monoid import Monoid, recognise_monoids
from xlalite.hlo.ir.op import Caller
from xlalite.hlo.ir.wide_function import wide_function
from xlalite.hlo.ops.evaluation.accumulation import narrow, widen
from xlalite.hlo.ops.evaluation.monoid_arrays import combine_pairs, reduce_along
from xlalite.hlo.ops.evaluation.scalar_function import ArrayFunction, array_function
from xlalite.hlo.ops.rules.shapes import elements_of
from xlalite.hlo.types.literal import Array

_FOLD_LIMIT = 1024


def reduce_arrays(
    computation: HloComputation, operands: Sequence[Array], initial: Sequence[Array], axes: Sequence[int], call: Caller
) -> tuple[Array, ...]:
    """Combines the elements of equally large arrays along axes, starting from scalars.

    Args:
        computation: (accumulators..., elements...) -> accumulators.
        operands: The arrays.
        initial: A scalar for each array.
        axes: The axes that go away.
        call: Evaluates a computation.
    """
    kept = [axis for axis in range(operands[0].ndim) if axis not in axes]
    sizes = [operands[0].shape[axis] for axis in kept]
    count = math.prod(operands[0].shape[axis] for axis in axes)
    rows = [operand.transpose(*kept, *sorted(axes)).reshape(math.prod(sizes), count) for operand in operands]
    results = reduce_rows(computation, rows, initial, call)
    return tuple(result.reshape(sizes) for result in results)


def reduce_rows(
    computation: HloComputation, rows: Sequence[Array], initial: Sequence[Array], call: Caller
) -> tuple[Array, ...]:
    """Combines along the second axis of [rows, count] arrays; gives one [rows] array each."""
    monoids = recognise_monoids(computation)
    if monoids is not None:
        return tuple(map(reduce_monoid, monoids, rows, initial))
    types = [shape.dtype for shape in elements_of(computation.root.shape)]
    arrays = [array.T.astype(dtype.numpy, copy=False) for array, dtype in zip(rows, types, strict=True)]
    wide = wide_function(computation)
    if wide is not None:
        given = [start.astype(dtype.numpy) for start, dtype in zip(initial, types, strict=True)]
        results = reduce_rows(wide, [array.T for array in arrays], given, call)
        return tuple(map(narrow, results, types))
    starts = tuple(
        np.broadcast_to(start.astype(dtype.numpy), array.shape[1:])
        for start, dtype, array in zip(initial, types, arrays, strict=True)
    )
    function = array_function(computation, call)
    if len(arrays[0]) == 0:
        return starts
    if len(arrays[0]) <= _FOLD_LIMIT:
        return _fold(function, starts, arrays)
    return function([*starts, *_reduce_by_halves(function, arrays)])


def reduce_monoid(monoid: Monoid, rows: Array, initial: Array) -> Array:
    """Combines along the second axis of a [rows, count] array with a known monoid, in a wide type; rounds once."""
    with np.errstate(all="ignore"):
        start = np.broadcast_to(widen(initial.astype(monoid.dtype.numpy), monoid.dtype), rows.shape[:1])
        if not rows.shape[1]:
            return narrow(start, monoid.dtype)
        total = reduce_along(monoid.kind, widen(rows, monoid.dtype), axis=1)
        return narrow(combine_pairs(monoid.kind, start, total), monoid.dtype)


def _fold(function: ArrayFunction, starts: tuple[Array, ...], arrays: Sequence[Array]) -> tuple[Array, ...]:
    accumulators = starts
    for step in range(len(arrays[0])):
        accumulators = function([*accumulators, *(array[step] for array in arrays)])
    return accumulators


def _reduce_by_halves(function: ArrayFunction, arrays: Sequence[Array]) -> list[Array]:
    """Combines neighbours along the first axis until one is left; keeps the order of the elements."""
    current = list(arrays)
    while (count := len(current[0])) > 1:
        even = count - count % 2
        paired = function([*(array[0:even:2] for array in current), *(array[1:even:2] for array in current)])
        current = [
            np.concatenate([result, array[even:]]) if even < count else result
            for result, array in zip(paired, current, strict=True)
        ]
    return [array[0] for array in current]
