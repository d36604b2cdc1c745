"""Plans of a program's kernels, and which of these have so little to do that LLVM need not improve their code."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from xlalite.backends.codegen.kernels.kernel import Declined
from xlalite.backends.codegen.kernels.kernel_body import kernel_body
from xlalite.backends.codegen.kernels.planner import KernelPlan, KernelPlans
from xlalite.backends.codegen.llvm import ModuleBuilder
from xlalite.backends.cpu.emission.evaluated import why_evaluated
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Trait
from xlalite.passes.analysis.cost_analysis import CostAnalysis
from xlalite.passes.memory.buffers import BufferAssignment

BRIEF_NS = 15.0
"""Kernels that take less, and are in no loop, gain little if LLVM improves them (0 to 40 ns, and a call takes 230)."""

_BRIEF_PART = 1 / 4000
"""Kernels that only move elements gain little, too, if they take so little beside all that the program does.

Their code takes two to four times as long if LLVM does not improve it. Where something is computed that would change
bits: LLVM makes one operation of a multiplication and an addition.
"""

_FLOPS_PER_NS = 128.0
"""What one core does in products of f32, about."""


class StepPlans:
    """How the instructions of a program that need code are computed by kernels."""

    def __init__(self, plans: KernelPlans, assignment: BufferAssignment, entry_steps: Sequence[HloInstruction]) -> None:
        """The steps are those of the entry computation that kernels may compute."""
        self._plans, self._assignment, self._entry_steps = plans, assignment, entry_steps

    def announce(self, module: ModuleBuilder) -> None:
        """Has convolutions say what they can have in common, if there are several."""
        convolutions = [one for one in self._entry_steps if _holds_convolution(one)]
        for one in convolutions if len(convolutions) > 1 else ():
            plan = self.of(one)
            if isinstance(plan, KernelPlan):
                plan.kernel.announce(module)

    def of(
        self, instruction: HloInstruction, in_place: tuple[tuple[int, int], ...] | None = None
    ) -> KernelPlan | Declined:
        """The plan for an instruction, whose results and operands share memory as is assigned, or as is said."""
        reason = why_evaluated(instruction)
        if reason is not None:
            return Declined(reason)
        body = kernel_body(instruction)
        if in_place is None:
            in_place = self._assignment.in_place(instruction, body.operands)
        return self._plans.of(instruction, body, in_place)

    def digest(self, body: HloComputation) -> str:
        """The fingerprint of a kernel's body."""
        return self._plans.digest(body)

    def is_little_work(self, plan: KernelPlan) -> bool:
        """Whether a kernel that is in no loop has little to do."""
        if plan.as_written_ns < BRIEF_NS:
            return True
        return _only_moves(plan.kernel.request.body) and plan.as_written_ns < _BRIEF_PART * self._entry_ns

    @cached_property
    def _entry_ns(self) -> float:
        """How long the entry computation takes on one thread, about, told without plans: none is made in advance."""
        costs = CostAnalysis()
        return sum(costs.of_instruction(instruction).flops for instruction in self._entry_steps) / _FLOPS_PER_NS


def _holds_convolution(instruction: HloInstruction) -> bool:
    if instruction.opcode == "fusion":
        return any(one.opcode == "convolution" for one in instruction.called_computations[0].instructions)
    return instruction.opcode == "convolution"


def _only_moves(body: HloComputation) -> bool:
    others = ("parameter", "constant", "tuple")
    return all(one.op.has(Trait.DATA_MOVEMENT) or one.opcode in others for one in body.instructions)
