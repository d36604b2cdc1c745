"""Moves what a loop computes anew each time, but never differently, in front of it."""

from __future__ import annotations

from typing import ClassVar

from xlalite.hlo.building.construct import element
from xlalite.hlo.building.replacement import remove_dead
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ir.traversal import reachable
from xlalite.hlo.records import dataclass
from xlalite.passes.analysis.loop_state import LoopState, is_element_of, loop_state, with_state
from xlalite.passes.core.base import HloPass
from xlalite.passes.simplify.dce import remove_uncalled_computations

# What is no work at all is not worth an element of the loop's state; nor are these, of which a kernel that reads them
# computes only what it reads. Of operations that move data others look alike (transpose, gather), but cost their reader
# the order in which it goes through memory.
_MADE_BY_THEIR_READERS = frozenset({"iota", "broadcast", "slice"})


@dataclass(frozen=True, slots=True)
class LoopInvariantCodeMotion(HloPass):
    """Computes invariant instructions of a loop's body once, before the loop, and carries them in its state.

    Moved are instructions that depend on constants and on elements that the body does not change, unless they are
    cheap, may fail to end (loops), or give a result more than `max_inflation` times the size of what they read. A loop
    that may run 0 times computes them in vain, which changes no value.

    Attributes:
        max_inflation: Bytes of the result for each byte of the operands.
    """

    name: ClassVar[str] = "while-loop-invariant-code-motion"
    opcodes: ClassVar[frozenset[str]] = frozenset({"while"})
    counts_changes: ClassVar[bool] = True

    max_inflation: float = 2.0

    def run(self, module: HloModule) -> bool:
        """Moves code out of every loop; says whether there was any."""
        changed = False
        for instruction in module.instructions():
            state = loop_state(instruction) if instruction.opcode == "while" else None
            if state is not None and not instruction.is_root and _is_taken_apart(instruction):
                changed |= self._move(module, state)
        if changed:
            remove_uncalled_computations(module)
        return changed

    def _move(self, module: HloModule, state: LoopState) -> bool:
        invariant = _invariant_instructions(state)
        frontier = [instruction for instruction in self._frontier(invariant) if self.may_change()]
        if not frontier:
            return False
        parent = state.loop.parent
        assert parent is not None, "a loop in a computation"
        outside: dict[HloInstruction, HloInstruction] = {}
        for instruction in _in_order(frontier, invariant):
            if is_element_of(instruction, state.body.parameters[0]):
                outside[instruction] = state.initial[instruction.attrs.index]
            else:
                outside[instruction] = parent.add(instruction.clone([outside[o] for o in instruction.operands]))
        first = len(state.initial)
        names = tuple(instruction.name for instruction in frontier)
        loop, new_body = with_state(state, range(first), [outside[instruction] for instruction in frontier])
        for extra, name in enumerate(names):
            inside = new_body.find(name)
            inside.replace_all_uses_with(new_body.add(element(new_body.parameters[0], first + extra)))
            remove_dead(inside)
        module.record(self.name, (loop.name, *names), "moved", "invariant", {"instructions": len(names)})
        return True

    def _frontier(self, invariant: dict[HloInstruction, None]) -> list[HloInstruction]:
        """What is worth moving and is read by something that stays in the body."""
        frontier: list[HloInstruction] = []
        moved: set[HloInstruction] = set()
        for instruction in reversed(invariant):
            if not self._is_worthwhile(instruction):
                continue
            moved.add(instruction)
            if any(user not in moved for user in instruction.users):
                frontier.append(instruction)
        return frontier[::-1]

    def _is_worthwhile(self, instruction: HloInstruction) -> bool:
        if not instruction.op.computes or instruction.opcode in _MADE_BY_THEIR_READERS:
            return False
        if not instruction.shape.is_array:
            return False
        read = sum(operand.shape.size_bytes for operand in instruction.operands)
        return instruction.shape.size_bytes <= self.max_inflation * max(read, 1)


def _is_taken_apart(loop: HloInstruction) -> bool:
    return all(user.opcode == "get-tuple-element" for user in loop.users)


def _invariant_instructions(state: LoopState) -> dict[HloInstruction, None]:
    """Instructions of the body that give the same in every iteration, operands before users."""
    parameter = state.body.parameters[0]
    found: dict[HloInstruction, None] = {}
    for instruction in state.body.post_order():
        if instruction is parameter or instruction.is_controlled:
            continue
        if is_element_of(instruction, parameter):
            if state.is_invariant(instruction.attrs.index):
                found[instruction] = None
            continue
        if instruction.opcode in ("while", "opt-barrier") or instruction is state.body.root or not instruction.is_pure:
            continue
        if all(operand in found for operand in instruction.operands):
            found[instruction] = None
    return found


def _in_order(frontier: list[HloInstruction], invariant: dict[HloInstruction, None]) -> list[HloInstruction]:
    """The frontier and all it depends on, operands before users."""
    needed = set(reachable(frontier, lambda one: [operand for operand in one.operands if operand in invariant]))
    return [instruction for instruction in invariant if instruction in needed]
