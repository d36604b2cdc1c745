"""Common subexpression elimination: equal instructions on equal operands become one."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.fingerprint import Fingerprints, instruction_key
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ir.op import Trait
from xlalite.hlo.records import dataclass
from xlalite.passes.core.base import HloPass

_NEVER_MERGED = Trait.SIDE_EFFECT | Trait.NON_DETERMINISTIC


@dataclass(frozen=True, slots=True)
class CommonSubexpressionElimination(HloPass):
    """Merges instructions that compute the same, whatever their metadata.

    Two instructions are the same when operation, shape, layout, attributes and operands are equal (in any order for
    commutative operations), constants when their bits are, and called computations when they do the same. Side
    effects, random numbers, optimisation barriers and instructions with control dependencies are left alone.
    """

    name: ClassVar[str] = "cse"
    counts_changes: ClassVar[bool] = True
    reaches_fixpoint: ClassVar[bool] = True

    def run(self, module: HloModule) -> bool:
        """Merges in every computation; says whether anything was merged."""
        fingerprints = Fingerprints()
        unrepeatable: set[HloComputation] = set()
        changed = False
        for computation in module.computations():  # Callees first: nobody asks for a fingerprint before it is final.
            changed |= self._merge_in(computation, fingerprints, unrepeatable)
        return changed

    def _merge_in(
        self, computation: HloComputation, fingerprints: Fingerprints, unrepeatable: set[HloComputation]
    ) -> bool:
        # Every user changes its operands once, however many of them were merged: a wide tuple stays linear.
        merged: dict[HloInstruction, HloInstruction] = {}
        numbers: dict[HloInstruction, int] = {}
        first: dict[Hashable, HloInstruction] = {}
        for instruction in computation.post_order():
            numbers[instruction] = len(numbers)
            if merged and any(operand in merged for operand in instruction.operands):
                instruction.set_operands([merged.get(operand, operand) for operand in instruction.operands])
            called = instruction.called_computations
            if not _is_repeatable(instruction) or (called and not unrepeatable.isdisjoint(called)):
                unrepeatable.add(computation)
                continue
            if not _may_merge(instruction):
                continue
            earlier = first.setdefault(_key(instruction, numbers, fingerprints), instruction)
            if earlier is not instruction and self.may_change():
                merged[instruction] = earlier
        if computation.root in merged:
            computation.set_root(merged[computation.root])
        for instruction in merged:
            computation.remove(instruction)
        return bool(merged)


def _is_repeatable(instruction: HloInstruction) -> bool:
    """Whether nobody can tell once from twice, what it calls aside."""
    return not instruction.op.traits.meets(_NEVER_MERGED) and not getattr(instruction.attrs, "has_side_effect", False)


def _may_merge(instruction: HloInstruction) -> bool:
    return instruction.opcode not in ("parameter", "opt-barrier") and not instruction.is_controlled


def _key(instruction: HloInstruction, numbers: dict[HloInstruction, int], fingerprints: Fingerprints) -> Hashable:
    operands = [numbers[operand] for operand in instruction.operands]
    if instruction.op.has(Trait.COMMUTATIVE):
        operands.sort()
    called = [fingerprints.of_computation(callee) for callee in instruction.called_computations]
    return instruction_key(instruction, operands, called_ids=called)
