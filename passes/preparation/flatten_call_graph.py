"""Gives every call site of control flow its own computation."""

from __future__ import annotations

from typing import ClassVar

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.records import dataclass
from xlalite.passes.core.base import HloPass


@dataclass(frozen=True, slots=True)
class FlattenCallGraph(HloPass):
    """Clones computations that several `while`, `conditional` or `call` sites share, so that each has one caller.

    Buffers can then be assigned to a computation for its only caller. Functions applied to elements (reducers,
    comparators) stay shared: they have no buffers.
    """

    name: ClassVar[str] = "flatten-call-graph"

    def run(self, module: HloModule) -> bool:
        """Clones what is shared; says whether there was any."""
        seen: set[HloComputation] = set()
        changed = False
        # Callers first: the clone of a computation brings new call sites of what it calls.
        waiting = [*module.computations()]
        while waiting:
            computation = waiting.pop()
            for instruction in computation.instructions:
                if not instruction.called_computations or instruction.op.calls.applies_to_elements:
                    continue
                callees = []
                for callee in instruction.called_computations:
                    own = callee
                    if callee in seen:
                        own = module.add(callee.clone())
                        waiting.append(own)
                        changed = True
                    seen.add(own)
                    callees.append(own)
                instruction.called_computations = tuple(callees)
        return changed
