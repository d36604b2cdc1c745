"""Ways through a module: all instructions, what one depends on, what depends on it, who calls whom."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule


def all_instructions(module: HloModule) -> Iterator[HloInstruction]:
    """Every instruction, callees before callers, operands before users."""
    for computation in module.computations():
        yield from computation.post_order()


def dependencies(instruction: HloInstruction) -> tuple[HloInstruction, ...]:
    """What the instruction needs in its computation, by operands or control, nearest first; not itself."""
    return _reach(instruction, lambda one: (*one.operands, *one.control_predecessors))


def dependents(instruction: HloInstruction) -> tuple[HloInstruction, ...]:
    """What needs the instruction in its computation, nearest first; not itself."""
    return _reach(instruction, lambda one: (*one.users, *one.control_successors))


def callers(module: HloModule) -> dict[HloComputation, tuple[HloInstruction, ...]]:
    """The instructions that call each computation; none for the entry and for what nobody calls."""
    found: dict[HloComputation, dict[HloInstruction, None]] = {one: {} for one in module.computations()}
    for instruction in all_instructions(module):
        for called in instruction.called_computations:
            found[called][instruction] = None
    return {computation: tuple(instructions) for computation, instructions in found.items()}


def _reach(
    start: HloInstruction, step: Callable[[HloInstruction], tuple[HloInstruction, ...]]
) -> tuple[HloInstruction, ...]:
    seen: dict[HloInstruction, None] = {start: None}
    waiting = deque([start])
    while waiting:
        for one in step(waiting.popleft()):
            if one not in seen:
                seen[one] = None
                waiting.append(one)
    return tuple(seen)[1:]
