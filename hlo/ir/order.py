"""Orders of instructions in which operands and control predecessors come before their users."""

from __future__ import annotations

from collections.abc import Iterable

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction


def canonical_order(computation: HloComputation) -> tuple[HloInstruction, ...]:
    """Depth first from the instructions that nobody uses, in order of insertion: XLA's post order."""
    return depth_first(one for one in computation.instructions if not one.user_count and not one.control_successors)


def structural_order(computation: HloComputation) -> tuple[HloInstruction, ...]:
    """Depth first from the root, then the parameters, then what else nobody uses in order of insertion."""
    unused = (one for one in computation.instructions if not one.user_count)
    return depth_first([computation.root, *computation.parameters, *unused])


def depth_first(starts: Iterable[HloInstruction]) -> tuple[HloInstruction, ...]:
    """What the starting points depend on, and they themselves, each once; operands from left to right."""
    order: dict[HloInstruction, None] = {}
    for start in starts:
        stack = [(start, False)]
        while stack:
            instruction, done = stack.pop()
            if instruction in order:
                continue
            if done:
                order[instruction] = None
                continue
            stack.append((instruction, True))
            before = (*instruction.operands, *instruction.control_predecessors)
            stack.extend((one, False) for one in reversed(before) if one not in order)
    return tuple(order)
