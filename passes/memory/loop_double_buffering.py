"""Unrolls loops whose state would be copied at the end of every iteration, so that it moves between buffers instead.

A body that needs its old state while it writes the new one (a stencil, an exchange of two arrays) writes elsewhere, and
what it wrote would have to be copied back. The next iteration, unrolled behind it, writes where the old state was:
two iterations together need no copy.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar

from xlalite.hlo.building.create import create
from xlalite.hlo.errors import PassError
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ir.op import Trait
from xlalite.hlo.ops.structural import ParameterAttrs
from xlalite.passes.analysis.required_sharing import Refusal, analyse, share_required
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

    Requires a schedule and known trip counts, and leaves both true. Iterations that are left over run before the loop.
    Declines for bodies that are long or hold control flow or side effects.
    """

    name: ClassVar[str] = "loop-double-buffer-transformer"
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
    count, body = _known_trip_count(loop), loop.called_computations[1].instructions
    if count is None or loop.is_controlled or any(_must_stay(instruction) for instruction in body):
        return 1, 0
    steps = sum(instruction.op.computes for instruction in body)
    worth = _BYTES_A_STEP * steps if steps > _FEW_STEPS else 1
    before = least = _copied_bytes(loop, 1)
    best = 1
    for factor in _FACTORS:
        if least >= worth and count >= 2 * factor and factor * steps <= _MOST_STEPS:
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
    refusals: list[Refusal] = []
    share_required(analyse(trial), refusals.append)
    return sum(refusal.value.size_bytes for refusal in refusals if refusal.holder is called[1].root)


def _copy_into(
    module: HloModule, computation: HloComputation, copies: dict[HloComputation, HloComputation]
) -> HloComputation:
    if computation not in copies:
        copies[computation] = module.add(computation.clone(called=lambda one: _copy_into(module, one, copies)))
    return copies[computation]


def _unroll(loop: HloInstruction, factor: int) -> None:
    parent, body, count = loop.parent, loop.called_computations[1], _known_trip_count(loop)
    assert parent is not None, "a loop in a computation"
    assert count is not None, "the caller asked"
    for _ in range(count % factor):
        state, _ = inline_body(body, loop.operands, parent)
        loop.set_operands((state,))
    if count % factor:
        parent.set_order(schedule(parent))
    _repeat_body(loop, factor)
    loop.backend_config = json.dumps({"known_trip_count": {"n": str(count // factor)}})


def _repeat_body(loop: HloInstruction, factor: int) -> None:
    body = loop.called_computations[1]
    once = body.clone()
    for _ in range(1, factor):
        root, _ = inline_body(once, (body.root,), body)
        body.set_root(root)
    body.set_order(schedule(body))


def _known_trip_count(loop: HloInstruction) -> int | None:
    """The number of iterations that `TripCountAnnotator` wrote down."""
    try:
        return int(json.loads(loop.backend_config)["known_trip_count"]["n"])
    except (ValueError, KeyError, TypeError):
        return None
