"""Takes optimisation barriers out once nothing is optimised any more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xlalite.hlo.building.replacement import replace
from xlalite.hlo.ir.module import HloModule
from xlalite.passes.core.base import HloPass


@dataclass(frozen=True, slots=True)
class BarrierRemover(HloPass):
    """opt-barrier(A) -> A.

    Run it after the last pass that barriers are meant to hold off. Those with control dependencies stay.
    """

    name: ClassVar[str] = "barrier-remover"

    def run(self, module: HloModule) -> bool:
        """Removes barriers in every computation; says whether there were any."""
        changed = False
        for computation in module.computations():
            for instruction in computation.instructions:
                controlled = instruction.control_predecessors or instruction.control_successors
                if instruction.opcode == "opt-barrier" and not controlled:
                    replace(instruction, instruction.operand(0))
                    changed = True
        return changed
