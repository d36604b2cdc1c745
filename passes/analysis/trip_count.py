"""How often a while loop runs, when its state tells."""

from __future__ import annotations

import json
from typing import ClassVar

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.numerics.conversion import integer_range
from xlalite.hlo.ops.comparison import Direction
from xlalite.hlo.records import dataclass
from xlalite.passes.analysis.loop_state import LoopState, is_element_of, loop_state
from xlalite.passes.core.base import HloPass
from xlalite.passes.rewriting.patterns import splat_integer


@dataclass(frozen=True, slots=True)
class TripCountAnnotator(HloPass):
    """Writes the number of iterations of counting loops into `backend_config` as `known_trip_count`, as XLA does.

    A `backend_config` that says something else already stays.
    """

    name: ClassVar[str] = "while-loop-trip-count-annotator"
    opcodes: ClassVar[frozenset[str]] = frozenset({"while"})

    def run(self, module: HloModule) -> bool:
        """Annotates every loop whose count is known; says whether an annotation is new."""
        changed = False
        for instruction in module.instructions():
            if instruction.opcode != "while" or instruction.backend_config:
                continue
            count = trip_count(instruction)
            if count is not None:
                instruction.backend_config = json.dumps({"known_trip_count": {"n": str(count)}})
                changed = True
        return changed


def known_trip_count(loop: HloInstruction) -> int | None:
    """The number of iterations that `TripCountAnnotator` wrote down."""
    try:
        return int(json.loads(loop.backend_config)["known_trip_count"]["n"])
    except (ValueError, KeyError, TypeError):
        return None


def trip_count(loop: HloInstruction) -> int | None:
    """The number of iterations of a loop that counts: i = start; while i < limit: i += step.

    Start, limit and step are constants, the limit perhaps in an element that the body does not change. None when the
    loop is anything else, or when the counter would wrap.
    """
    state = loop_state(loop)
    if state is None or not state.condition.root.shape.is_scalar or state.condition.root.opcode != "compare":
        return None
    comparison = state.condition.root
    lhs, rhs = comparison.operands
    direction: Direction = comparison.attrs.direction
    limit = _known_integer(state, rhs)
    if limit is None:
        limit, lhs, direction = _known_integer(state, lhs), rhs, direction.swapped
    if limit is None or not is_element_of(lhs, state.condition.parameters[0]):
        return None
    counter: int = lhs.attrs.index
    start, step = splat_integer(state.initial[counter]), _step(state, counter)
    if start is None or step is None:
        return None
    return _count(start, limit, step, direction, lhs)


def _known_integer(state: LoopState, instruction: HloInstruction) -> int | None:
    """The integer that an instruction of the condition gives in every iteration."""
    if is_element_of(instruction, state.condition.parameters[0]):
        index = instruction.attrs.index
        return splat_integer(state.initial[index]) if state.is_invariant(index) else None
    return splat_integer(instruction)


def _step(state: LoopState, counter: int) -> int | None:
    """What the body adds to the counter."""
    updated, parameter = state.updated[counter], state.body.parameters[0]
    if updated.opcode not in ("add", "subtract"):
        return None
    lhs, rhs = updated.operands
    if not is_element_of(lhs, parameter) and updated.opcode == "add":
        lhs, rhs = rhs, lhs
    if not is_element_of(lhs, parameter) or lhs.attrs.index != counter:
        return None
    step = splat_integer(rhs)
    return -step if step is not None and updated.opcode == "subtract" else step


def _count(start: int, limit: int, step: int, direction: Direction, counter: HloInstruction) -> int | None:
    if not _holds(start, limit, direction):
        return 0
    distance = limit - start
    if direction is Direction.EQ:
        return 1 if step else None
    if direction is Direction.NE:
        if step == 0 or distance % step or distance // step < 0:
            return None
        return distance // step
    rising = direction in (Direction.LT, Direction.LE)
    if step == 0 or rising != (step > 0):
        return None
    inclusive = direction in (Direction.LE, Direction.GE)
    count = (abs(distance) + inclusive + abs(step) - 1) // abs(step)
    last = start + count * step
    lowest, highest = integer_range(counter.shape.dtype)
    return count if lowest <= last <= highest else None


def _holds(value: int, limit: int, direction: Direction) -> bool:
    return {
        Direction.EQ: value == limit,
        Direction.NE: value != limit,
        Direction.LT: value < limit,
        Direction.LE: value <= limit,
        Direction.GT: value > limit,
        Direction.GE: value >= limit,
    }[direction]
