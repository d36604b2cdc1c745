"""Sorts by any comparator, stably.

A comparator that compares the same function of both sides is an order of keys, which NumPy sorts. Any other is applied
to whole arrays in a merge sort, in which a binary search tells how many elements of the right run go before one of the
left run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Caller
from xlalite.hlo.numerics.real import total_order_keys
from xlalite.hlo.ops.comparison import ComparisonType, Direction, default_comparison_type
from xlalite.hlo.ops.evaluation.scalar_function import ArrayFunction, array_function, is_vectorizable
from xlalite.hlo.ops.rules.shapes import array_value
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Array, Value

Order: TypeAlias = npt.NDArray[np.int64]


def sorted_order(comparator: HloComputation, rows: Sequence[Array], call: Caller) -> Order:
    """For [rows, n] arrays the positions, in each row, of the elements in sorted order; equal ones keep theirs.

    Args:
        comparator: (a0, b0, a1, b1, ...) -> whether a comes before b.
        rows: The arrays, all of one size.
        call: Evaluates a computation.
    """
    keys = _sort_keys(comparator, rows, call)
    if keys is not None:
        return ascending_order(keys)
    return _merge_sort(array_function(comparator, call), rows)


def ascending_order(keys: Array) -> Order:
    """Stable order of the last axis."""
    return np.argsort(keys, axis=-1, kind="stable").astype(np.int64, copy=False)


def integer_keys(values: Array) -> Array:
    """Numbers in the total order of the values, such that `~keys` is the reverse order."""
    dtype = DType.from_numpy(values.dtype)
    if dtype.is_floating:
        return total_order_keys(values)
    if dtype is DType.PRED or dtype.bits < 8:
        return values.astype(np.int8)
    return values


@dataclass(frozen=True, slots=True)
class SortKey:
    """What a comparator orders by, when it compares the same function of both sides.

    Attributes:
        side: The function of the first side, an instruction of the comparator that reads its even parameters.
        is_descending: Whether larger numbers come first.
        is_total: Whether -0 comes before +0, and NaN is after inf or before -inf by its sign. Else zeros are equal, and
            NaN, for which a comparator that says no to everything has no place, is the largest of all.
    """

    side: HloInstruction
    is_descending: bool
    is_total: bool


def sort_key(comparator: HloComputation) -> SortKey | None:
    """The key of a comparator that is `compare(f(a), f(b))` with a strict order; None for others.

    It may say by itself that numbers come before NaN: `f(a) < f(b) or (f(a) is a number and f(b) is none)`.
    """
    root = _comparison_of_numbers(comparator.root)
    if root.opcode != "compare" or root.attrs.direction not in (Direction.LT, Direction.GT):
        return None
    lhs, rhs = root.operands
    is_descending = root.attrs.direction is Direction.GT
    if _mirrored(rhs, lhs, {}):
        lhs, is_descending = rhs, not is_descending
    elif not _mirrored(lhs, rhs, {}):
        return None
    dtype = lhs.shape.dtype
    order = root.attrs.type if root.attrs.type is not None else default_comparison_type(dtype)
    if dtype.is_complex or (dtype.is_integral and order is not default_comparison_type(dtype)):
        return None
    return SortKey(lhs, is_descending, order is ComparisonType.TOTALORDER)


def _comparison_of_numbers(root: HloInstruction) -> HloInstruction:
    """The comparison of numbers in one that takes NaN for the largest; another root as it is."""
    for less, rest in (root.operands, root.operands[::-1]) if root.opcode == "or" else ():
        if less.opcode != "compare" or rest.opcode != "and" or less.attrs.type is ComparisonType.TOTALORDER:
            continue
        small, large = less.operands if less.attrs.direction is Direction.LT else less.operands[::-1]
        parts = {(part.operand(0), part.attrs.direction) for part in rest.operands if _compares_with_itself(part)}
        if parts == {(small, Direction.EQ), (large, Direction.NE)}:
            return less
    return root


def _compares_with_itself(part: HloInstruction) -> bool:
    return part.opcode == "compare" and part.operand(0) is part.operand(1)


def _sort_keys(comparator: HloComputation, rows: Sequence[Array], call: Caller) -> Array | None:
    """Numbers whose ascending order is the comparator's, if it has a key."""
    key = sort_key(comparator)
    if key is None or not is_vectorizable(comparator):
        return None
    values = np.broadcast_to(array_value(_evaluate_side(key.side, rows, {}, call)), rows[0].shape)
    if key.side.shape.dtype.is_floating and not key.is_total:
        zero, nan = np.zeros_like(values), np.full_like(values, np.nan)
        values = np.where(np.isnan(values), nan, np.where(values == 0, zero, values))
    keys = integer_keys(values)
    return np.invert(keys) if key.is_descending else keys


def _mirrored(a: HloInstruction, b: HloInstruction, known: dict[tuple[HloInstruction, HloInstruction], bool]) -> bool:
    """Whether b computes from the second of each pair of parameters what a computes from the first."""
    found = known.get((a, b))
    if found is None:
        if a.opcode == "parameter":
            found = b.opcode == "parameter" and a.attrs.number % 2 == 0 and b.attrs.number == a.attrs.number + 1
        else:
            found = (
                a.op is b.op
                and a.attrs == b.attrs
                and a.shape.compatible(b.shape)
                and a.called_computations == b.called_computations
                and len(a.operands) == len(b.operands)
                and all(_mirrored(x, y, known) for x, y in zip(a.operands, b.operands, strict=True))
            )
        known[a, b] = found
    return found


def _evaluate_side(
    instruction: HloInstruction, rows: Sequence[Array], known: dict[HloInstruction, Value], call: Caller
) -> Value:
    if instruction.opcode == "parameter":
        number: int = instruction.attrs.number
        return rows[number // 2]
    if instruction not in known:
        operands = [_evaluate_side(operand, rows, known, call) for operand in instruction.operands]
        known[instruction] = instruction.op.evaluate(instruction, operands, call)
    return known[instruction]


def _merge_sort(comparator: ArrayFunction, rows: Sequence[Array]) -> Order:
    count, length = rows[0].shape
    flat = [array.ravel() for array in rows]

    def comes_before(a: Order, b: Order) -> npt.NDArray[np.bool_]:
        sides = [side for array in flat for side in (array[a], array[b])]
        return comparator(sides)[0].astype(np.bool_)

    order: Order = np.arange(count * length)
    positions = np.tile(np.arange(length), count)
    row_starts = np.repeat(np.arange(count) * length, length)
    width = 1
    while width < length:
        is_left = positions // width % 2 == 0
        left, row = np.flatnonzero(is_left), row_starts[is_left]
        right_start = np.minimum(positions[left] // width * width + width, length)
        low, high = right_start, np.minimum(right_start + width, length)
        for _ in range(width.bit_length()):
            middle = (low + high) // 2
            goes_right = comes_before(order[row + np.minimum(middle, length - 1)], order[left]) & (low < high)
            low, high = np.where(goes_right, middle + 1, low), np.where(goes_right, high, np.minimum(middle, high))
        # The searches of a comparator that contradicts itself may cross; kept in order, no element is lost.
        places = left + np.maximum.accumulate(row + low) - (row + right_start)
        merged, is_taken = np.empty_like(order), np.zeros(order.shape, np.bool_)
        merged[places], is_taken[places] = order[left], True
        merged[~is_taken] = order[~is_left]
        order, width = merged, 2 * width
    by_row: Order = (order - row_starts).reshape(count, length)
    return by_row
