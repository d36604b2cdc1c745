"""How many columns of each row a kernel looks at, where a mask of positions, such as a causal one, hides the others."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.comparison import Direction
from xlalite.hlo.types.dtype import DType
from xlalite.passes.rewriting.patterns import splat_integer

_FARTHEST = 1 << 30
"""Positions are sums that must not wrap."""


def columns_ahead(scores: HloInstruction, result: HloInstruction) -> int | None:
    """The least `a` for which row r of scores is read in columns up to r + a only, on the way to a result.

    What is hidden is not chosen by any select, so that its value does not matter. None if nothing is known.
    """
    found: list[int] = []
    waiting = [scores]
    while waiting:
        one = waiting.pop()
        if one is result:
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
