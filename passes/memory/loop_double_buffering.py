"""Unrolls loops whose state would be copied at the end of every iteration, so that it moves between buffers instead.

A body that needs its old state while it writes the new one (a stencil, an exchange of two arrays) writes elsewhere, and
what it wrote would have to be copied back. The next iteration, unrolled behind it, writes where the old state was:
two iterations together need no copy.
"""

from __future__ import annotations

import json
from typing import ClassVar

from xlalite.hlo.building.construct import element
from xlalite.hlo.building.create import create
from xlalite.hlo.errors import PassError
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ir.op import Trait
from xlalite.hlo.ops.structural import ParameterAttrs
from xlalite.hlo.records import dataclass
from xlalite.passes.analysis.loop_state import is_element_of, loop_state
from xlalite.passes.analysis.required_sharing import Refusal, analyse, share_required
from xlalite.passes.analysis.trip_count import known_trip_count
from xlalite.passes.core.base import HloPass
from xlalite.passes.memory.scheduler import schedule
from xlalite.passes.rewriting.inlining import inline_body

_FACTORS = (2, 3)
_MOST_STEPS = 64
"""Instructions of a body that compute something, all iterations of the unrolled one together."""

_FEW_STEPS = 4
_BYTES_A_STEP = 32
"""Bytes that are worth the code of another step; of a few steps the code is always worth it."""


@dataclass(frozen=True, slots=True)
class LoopDoubleBuffering(HloPass):
    """Unrolls loops by two or three where fewer bytes of their state are copied then; each with a record.

    Requires a schedule, and leaves it and known trip counts true. Iterations that are left over run before the loop; of
    unknown counts, the last one may be a copy. Declines for bodies that are long or hold control flow or side effects.
    """

    name: ClassVar[str] = "loop-double-buffer-transformer"
    opcodes: ClassVar[frozenset[str]] = frozenset({"while"})
    counts_changes: ClassVar[bool] = True

    def run(self, module: HloModule) -> bool:
        """Unrolls what is worth it; says whether there was any.

        Raises:
            PassError: The module is not scheduled.
        """
        if not module.config.is_scheduled:
            raise PassError(f"{self.name}: module {module.name} is not scheduled, expected the scheduler to have run")
        changed = False
        for loop in [instruction for instruction in module.instructions() if instruction.opcode == "while"]:
            factor, saved = _best_factor(loop)
            if factor > 1 and self.may_change():
                module.record(
                    self.name,
                    (loop.name,),
                    "unrolled",
                    "its state need not be copied",
                    {"times": factor, "bytes": saved},
                )
                _unroll(loop, factor)
                changed = True
        return changed


def _best_factor(loop: HloInstruction) -> tuple[int, int]:
    """By how much to unroll a loop, and the bytes that are not copied in each iteration then."""
    instructions = [instruction for called in loop.called_computations for instruction in called.instructions]
    if loop.is_controlled or any(_must_stay(instruction) for instruction in instructions) or loop_state(loop) is None:
        return 1, 0
    count = known_trip_count(loop)
    steps = sum(instruction.op.computes for instruction in loop.called_computations[1].instructions)
    worth = _BYTES_A_STEP * steps if steps > _FEW_STEPS or count is None else 1
    before = least = _copied_bytes(loop, 1)
    best = 1
    for factor in _FACTORS if count is not None else _FACTORS[:1]:
        is_long = count is None or count >= 2 * factor
        if least >= worth and is_long and factor * steps <= _MOST_STEPS:
            copied = _copied_bytes(loop, factor) // factor
            if before - copied >= worth and copied < least:
                best, least = factor, copied
    return best, before - least


def _must_stay(instruction: HloInstruction) -> bool:
    return instruction.op.has(Trait.CONTROL_FLOW) or instruction.has_side_effect


def _copied_bytes(loop: HloInstruction, factor: int) -> int:
    """Bytes of the state that a loop, unrolled, has to copy at the end of its body; tried on a loop of its own."""
    trial = HloModule(loop.name)
    entry = HloComputation("entry")
    called = [_copy_into(trial, computation, {}) for computation in loop.called_computations]
    state = entry.add(create("parameter", (), ParameterAttrs(0), shape=loop.shape, name="state"))
    entry.set_root(entry.add(loop.clone((state,), called_computations=called)))
    trial.add(entry, entry=True)
    trial.update_config(is_scheduled=True)
    if factor > 1:
        _repeat_body(entry.root, factor)
    ends = {
        called[1].root,
        *(i.called_computations[0].root for i in called[1].instructions if i.opcode == "conditional"),
    }
    refusals: list[Refusal] = []
    share_required(analyse(trial), refusals.append)
    return sum(refusal.value.size_bytes for refusal in refusals if refusal.holder in ends)


def _copy_into(
    module: HloModule, computation: HloComputation, copies: dict[HloComputation, HloComputation]
) -> HloComputation:
    if computation not in copies:
        copies[computation] = module.add(computation.clone(called=lambda one: _copy_into(module, one, copies)))
    return copies[computation]


def _unroll(loop: HloInstruction, factor: int) -> None:
    parent, body, count = loop.parent, loop.called_computations[1], known_trip_count(loop)
    assert parent is not None, "a loop in a computation"
    for _ in range(count % factor if count is not None else 0):
        state, _ = inline_body(body, loop.operands, parent)
        loop.set_operands((state,))
        parent.set_order(schedule(parent))
    _repeat_body(loop, factor)
    if count is not None:
        loop.backend_config = json.dumps({"known_trip_count": {"n": str(count // factor)}})


def _repeat_body(loop: HloInstruction, factor: int) -> None:
    """Makes a loop's body several iterations; of the second one, if the count is unknown, the condition is asked."""
    condition, body = loop.called_computations
    if known_trip_count(loop) is None:
        body.set_root(_another_iteration(condition, body))
    else:
        once = body.clone()
        for _ in range(1, factor):
            root, _ = inline_body(once, (body.root,), body)
            body.set_root(root)
    body.set_order(schedule(body))


def _another_iteration(condition: HloComputation, body: HloComputation) -> HloInstruction:
    """What another iteration makes of the state that a body returns, if the loop goes on, else that state.

    Both branches give those elements only that the body changes.
    """
    module, state = body.module, body.root
    assert module is not None, "a loop's computations are those of a module"
    iteration, last = _copy_into(module, body, {}), module.add(HloComputation("last"))
    changed = [n for n, result in enumerate(state.operands) if not _is_element(result, n, body.parameters[0])]
    iteration.set_root(iteration.add(create("tuple", [iteration.root.operand(number) for number in changed])))
    same = last.add(create("parameter", (), ParameterAttrs(0), shape=state.shape, name="state"))
    last.set_root(last.add(create("tuple", [last.add(element(same, number)) for number in changed])))
    goes_on, _ = inline_body(condition, (state,), body)
    results = list(state.operands)
    choice = body.add(create("conditional", (goes_on, state, state), None, (iteration, last)))
    for place, number in enumerate(changed):
        results[number] = body.add(element(choice, place))
    return body.add(create("tuple", results))


def _is_element(instruction: HloInstruction, number: int, source: HloInstruction) -> bool:
    return is_element_of(instruction, source) and instruction.attrs.index == number
