"""The fusion pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.module import HloModule
from xlalite.passes.analysis.buffer_values import running_computations
from xlalite.passes.core.base import HloPass
from xlalite.passes.fusion.fusion_instructions import fuse
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
        def record(subject: tuple[str, ...], verdict: str, reason: str, numbers: dict[str, int | float | str]) -> None:
            module.record(self.name, subject, verdict, reason, numbers)

        limits = Limits(self.max_members, self.max_reductions)
        planner = FusionPlanner(computation, limits, record, dot_epilogues=self.dot_epilogues)
        groups = planner.plan()
        fuse(module, computation, groups)
        return bool(groups)
