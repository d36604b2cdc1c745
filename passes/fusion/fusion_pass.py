"""The fusion pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.records import dataclass
from xlalite.passes.analysis.buffer_values import running_computations
from xlalite.passes.core.base import HloPass
from xlalite.passes.fusion.domain import Place
from xlalite.passes.fusion.fusion_instructions import fuse
from xlalite.passes.fusion.group import KernelGroup
from xlalite.passes.fusion.planner import FusionPlanner, Limits


@dataclass(frozen=True)
class Fusion(HloPass):
    """Puts instructions that can be computed together into one kernel, so that values between them stay in registers.

    Requires no schedule. Every pair of producer and consumer leaves a record: fused, or why not.

    Attributes:
        max_members: Instructions in one kernel.
        max_reductions: Reductions in one kernel.
        dot_epilogues: Whether elementwise work after a dot joins the dot's kernel.
    """

    name: ClassVar[str] = "fusion"

    max_members: int = 128
    max_reductions: int = 8
    dot_epilogues: bool = False

    def run(self, module: HloModule) -> bool:
        """Plans and builds the kernels of every computation that runs as part of the program."""
        changed = False
        for computation in running_computations(module):
            changed |= self._run_on(module, computation)
        return changed

    def _run_on(self, module: HloModule, computation: HloComputation) -> bool:
        limits = Limits(self.max_members, self.max_reductions, dot_epilogues=self.dot_epilogues)
        apart = set[HloInstruction]()
        while True:
            planner = FusionPlanner(computation, limits, apart)
            groups = planner.plan()
            lonely = _rows_without_reductions(groups)
            if not lonely:
                break
            apart |= lonely
        for note in planner.notes:
            module.record(self.name, *note)
        fuse(module, computation, groups)
        return bool(groups)


def _rows_without_reductions(groups: Sequence[KernelGroup]) -> set[HloInstruction]:
    """What kernels would give once a row that reduce nothing, and so are loops for code generation.

    A loop takes rows before the reduction joins for whose sake it does, which may not come to it in the end.
    """
    loops = [group for group in groups if not group.reductions and group.places[group.root] is not Place.ROW]
    return {output for group in loops for output in group.outputs if group.places[output] is Place.ROW}
