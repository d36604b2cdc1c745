"""Loops that run never or once, and loop state that is constant or unused."""

from __future__ import annotations

from typing import ClassVar

from xlalite.hlo.building.replacement import remove_dead, replace
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ir.traversal import dependencies, reachable
from xlalite.hlo.records import dataclass
from xlalite.passes.analysis.loop_state import (
    LoopState,
    can_spread_state,
    is_element_of,
    loop_state,
    spread_state,
    with_state,
)
from xlalite.passes.analysis.trip_count import trip_count
from xlalite.passes.core.base import HloPass
from xlalite.passes.rewriting.inlining import inline_instruction
from xlalite.passes.simplify.dce import remove_uncalled_computations


@dataclass(frozen=True, slots=True)
class WhileSimplifier(HloPass):
    """Makes loops smaller or removes them.

    - The state is written as a tuple of elements on both ends.
    - A loop that runs 0 times is its operand; one that runs once is its body, inlined.
    - Users of an element that the body does not change use its initial value; a scalar constant among them moves into
      condition and body.
    - Elements that neither users nor other elements need are dropped.

    Loops with control dependencies keep their number of iterations. Loops with side effects in the body are treated
    alike: they run as often as before.
    """

    name: ClassVar[str] = "while-loop-simplifier"
    opcodes: ClassVar[frozenset[str]] = frozenset({"while"})
    counts_changes: ClassVar[bool] = True

    def run(self, module: HloModule) -> bool:
        """Simplifies every loop; says whether anything changed."""
        changed = False
        for instruction in module.instructions():
            if instruction.opcode == "while":
                changed |= self._simplify(module, instruction)
        if changed:
            remove_uncalled_computations(module)
        return changed

    def _simplify(self, module: HloModule, loop: HloInstruction) -> bool:
        changed = can_spread_state(loop) and self.may_change()
        if changed:
            spread_state(loop)
        state = loop_state(loop)
        if state is None:
            return changed
        count = None if loop.is_controlled else trip_count(loop)
        if count is not None and count <= 1:
            return self._unroll(module, loop, count) or changed
        changed |= self._read_initial_values(state)
        if loop.parent is None:  # Its last user is gone, and the loop with it.
            return True
        changed |= self._move_constants_inside(state)
        return self._drop_unused(module, state) or changed

    def _unroll(self, module: HloModule, loop: HloInstruction, count: int) -> bool:
        parent, body = loop.parent, loop.called_computations[1]
        assert parent is not None, "a loop in a computation"
        if not self.may_change():
            return False
        module.record(self.name, (loop.name,), "removed", "the number of iterations", {"times": count})
        if count == 0:
            replace(loop, loop.operand(0))
            return True
        inline_instruction(loop, body)
        return True

    def _read_initial_values(self, state: LoopState) -> bool:
        """Lets users of invariant elements use the initial values."""
        parent = state.loop.parent
        assert parent is not None, "a loop in a computation"
        changed = False
        for user in state.loop.users:
            if user.is_controlled or not is_element_of(user, state.loop) or not state.is_invariant(user.attrs.index):
                continue
            if self.may_change():
                replace(user, state.initial[user.attrs.index])
                changed = True
        return changed

    def _move_constants_inside(self, state: LoopState) -> bool:
        """Puts copies of scalar constants in the place of invariant elements in condition and body."""
        changed = False
        for index, initial in enumerate(state.initial):
            if initial.opcode != "constant" or not initial.shape.is_scalar or not state.is_invariant(index):
                continue
            for computation in (state.condition, state.body):
                for read in state.reads(computation, index):
                    handed_on = computation is state.body and read is state.updated[index]
                    users = [user for user in read.users if not (handed_on and user is computation.root)]
                    if not users and not (read.is_root and computation is state.condition):
                        continue
                    if not self.may_change():
                        return changed
                    twin = computation.add(initial.clone())
                    spared = (computation.root,) if handed_on else ()
                    read.replace_all_uses_with(twin, except_users=spared)
                    remove_dead(read)
                    changed = True
        return changed

    def _drop_unused(self, module: HloModule, state: LoopState) -> bool:
        loop = state.loop
        if loop.is_root or any(not is_element_of(user, loop) for user in loop.users):
            return False
        needed = _needed_elements(state)
        if len(needed) == len(state.initial):
            return False
        kept = sorted(needed)
        if not kept or not self.may_change():
            return False
        figures = {"elements": len(state.initial), "kept": len(kept)}
        module.record(self.name, (loop.name,), "state made smaller", "elements nobody needs", figures)
        with_state(state, kept)
        return True


def _needed_elements(state: LoopState) -> set[int]:
    """Elements that users of the loop, the condition, side effects or other needed elements read."""
    parameter = state.body.parameters[0]
    effects = [i for i in state.body.instructions if i.has_side_effect or i.control_successors]
    needed = {user.attrs.index for user in state.loop.users}
    needed |= {read.attrs.index for read in state.condition.parameters[0].users}

    def sources(instruction: HloInstruction) -> tuple[HloInstruction, ...]:
        before = dependencies(instruction)
        return (*before, state.updated[instruction.attrs.index]) if is_element_of(instruction, parameter) else before

    starts = [*effects, *(state.updated[index] for index in needed)]
    found = reachable(starts, sources)
    return needed | {each.attrs.index for each in found if is_element_of(each, parameter)}
