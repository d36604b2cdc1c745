"""How many columns of each row a kernel looks at, where a mask of positions, such as a causal one, hides the others."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.monoid import MonoidKind, recognise_monoid
from xlalite.hlo.ops.comparison import Direction
from xlalite.hlo.types.dtype import DType
from xlalite.passes.rewriting.patterns import IEEE_TYPES, splat_float, splat_integer

_FARTHEST = 1 << 30
"""Positions are sums that must not wrap."""


def columns_ahead(scores: HloInstruction, results: Sequence[HloInstruction]) -> int | None:
    """The least `a` for which row r of scores is read in columns up to r + a only, on the way to results.

    What is hidden is not chosen by any select, so that its value does not matter. None if nothing is known.
    """
    found: list[int] = []
    waiting = [scores]
    while waiting:
        one = waiting.pop()
        if one in results:
            return None
        for user in one.users:
            positions = user.operand_positions(one)
            if user.opcode == "select" and positions in ((1,), (2,)):
                ahead = _seen(user.operand(0), range(-scores.shape.rank, 0), is_shown=positions == (1,))
                if ahead is not None:
                    found.append(ahead)
                    continue
            if not user.op.is_elementwise or user.shape.dims != scores.shape.dims:
                return None
            waiting.append(user)
    return max(found, default=None)


def columns_kept(rows: HloInstruction) -> int | None:
    """The least `a` for which row r of a softmax is 0 behind column r + a, or else NaN up to there; None if none is.

    A mask hides the other scores by -inf: their exponential is 0 and changes neither the greatest score nor the sum,
    unless that is what makes all that is not hidden NaN.
    """
    quotient = _unconverted(rows)
    if quotient.opcode != "divide":
        return None
    powers, total = quotient.operands
    if powers.opcode != "exponential" or not _is_of_rows(total, powers, MonoidKind.ADD):
        return None
    scores = powers.operand(0)
    if scores.opcode == "subtract" and _is_of_rows(scores.operand(1), scores.operand(0), MonoidKind.MAXIMUM):
        scores = scores.operand(0)
    masked = _unconverted(scores)
    if masked.opcode != "select":
        return None
    hidden = [splat_float(one) == -math.inf for one in masked.operands[1:]]
    if hidden not in ([False, True], [True, False]):
        return None
    return _seen(masked.operand(0), range(-masked.shape.rank, 0), is_shown=hidden[1])


def _is_of_rows(reduced: HloInstruction, array: HloInstruction, kind: MonoidKind) -> bool:
    """Whether something is the sum of the rows of an array, or the greatest element, for every column."""
    if reduced.opcode != "broadcast":
        return False
    reduce, leading = reduced.operand(0), tuple(range(array.shape.rank - 1))
    if reduce.opcode != "reduce" or len(reduce.operands) != 2 or reduce.operand(0) is not array:
        return False
    monoid, start = recognise_monoid(reduce.called_computations[0]), splat_float(reduce.operand(1))
    is_kind = monoid is not None and monoid.kind is kind and (kind is MonoidKind.MAXIMUM or start == 0)
    return is_kind and reduce.attrs.dimensions == (len(leading),) and reduced.attrs.dimensions == leading


def _unconverted(instruction: HloInstruction) -> HloInstruction:
    """What was converted between floating-point types, which keeps 0, NaN and what is infinite."""
    while instruction.opcode == "convert" and instruction.operand(0).shape.dtype in IEEE_TYPES:
        instruction = instruction.operand(0)
    return instruction


def _seen(mask: HloInstruction, places: Sequence[int], *, is_shown: bool) -> int | None:
    """The same for the places where a mask is true, or where it is not.

    Args:
        mask: What says so.
        places: Which dimension of the scores each of the mask's is, the last two being rows and columns.
        is_shown: Whether true means that a place is read.
    """
    if mask.opcode == "broadcast":
        return _seen(mask.operand(0), [places[d] for d in mask.attrs.dimensions], is_shown=is_shown)
    if mask.opcode == "not":
        return _seen(mask.operand(0), places, is_shown=not is_shown)
    if mask.opcode == ("and" if is_shown else "or"):
        known = [_seen(one, places, is_shown=is_shown) for one in mask.operands]
        return min((ahead for ahead in known if ahead is not None), default=None)
    if mask.opcode != "compare":
        return None
    lhs, rhs = (_position(operand) for operand in mask.operands)
    if lhs is None or rhs is None:
        return None
    direction: Direction = mask.attrs.direction if is_shown else mask.attrs.direction.inverse
    if places[lhs[0]] > places[rhs[0]]:
        lhs, rhs, direction = rhs, lhs, direction.swapped
    if (places[lhs[0]], places[rhs[0]]) != (-2, -1) or direction not in (Direction.GE, Direction.GT):
        return None
    return lhs[1] - rhs[1] - (direction is Direction.GT)


def _position(instruction: HloInstruction) -> tuple[int, int] | None:
    """(d, c) of an array whose elements are their positions in dimension d, plus c."""
    if instruction.shape.dtype not in (DType.S32, DType.S64):
        return None
    if instruction.opcode == "iota":
        return instruction.attrs.iota_dimension, 0
    if instruction.opcode == "broadcast":
        inner = _position(instruction.operand(0))
        return None if inner is None else (instruction.attrs.dimensions[inner[0]], inner[1])
    if instruction.opcode != "add":
        return None
    inner, more = _position(instruction.operand(0)), splat_integer(instruction.operand(1))
    if inner is None or more is None or abs(inner[1] + more) > _FARTHEST:
        return None
    return inner[0], inner[1] + more
