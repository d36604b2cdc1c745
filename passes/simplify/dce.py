"""Dead code elimination: instructions that nobody uses and computations that nobody calls."""

from __future__ import annotations

from typing import ClassVar

from xlalite.hlo.building.replacement import remove_dead
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ir.traversal import callees, reachable
from xlalite.hlo.records import dataclass
from xlalite.passes.core.base import HloPass


@dataclass(frozen=True, slots=True)
class DeadCodeElimination(HloPass):
    """Removes unused instructions and unreachable computations.

    Parameters, instructions with side effects and instructions that others must run after stay.
    """

    name: ClassVar[str] = "dce"
    reaches_fixpoint: ClassVar[bool] = True

    def run(self, module: HloModule) -> bool:
        """Removes what is dead; says whether there was any."""
        changed = remove_uncalled_computations(module)
        for computation in module.computations():
            changed |= _remove_unused_instructions(computation)
        return remove_uncalled_computations(module) or changed


def remove_uncalled_computations(module: HloModule) -> bool:
    """Removes computations that the entry does not reach; says whether there were any."""
    reached = set(reachable([module.entry_computation], callees))
    unreached = [computation for computation in module.computations() if computation not in reached]
    for computation in unreached:
        module.remove(computation)
    return bool(unreached)


def _remove_unused_instructions(computation: HloComputation) -> bool:
    before = len(computation)
    for instruction in computation.instructions:
        if not instruction.user_count and instruction.parent is computation:
            remove_dead(instruction)
    return len(computation) != before
