"""Conditionals whose branch is known, or does not matter, become that branch."""

from __future__ import annotations

from typing import ClassVar

from xlalite.hlo.ir.fingerprint import Fingerprints
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.passes.core.base import HloPass
from xlalite.passes.rewriting.inlining import inline_instruction
from xlalite.passes.rewriting.patterns import splat_bool, splat_integer
from xlalite.passes.simplify.dce import remove_uncalled_computations


@dataclass(frozen=True, slots=True)
class ConditionalSimplifier(HloPass):
    """conditional(constant, ...) -> the chosen branch, inlined; also when all branches do the same on one operand.

    An index out of range chooses the last branch. Conditionals with control dependencies stay.
    """

    name: ClassVar[str] = "conditional-simplifier"
    opcodes: ClassVar[frozenset[str]] = frozenset({"conditional"})
    counts_changes: ClassVar[bool] = True

    def run(self, module: HloModule) -> bool:
        """Simplifies in every computation; says whether anything changed."""
        changed = False
        fingerprints = Fingerprints()
        for instruction in module.instructions():
            branch = _known_branch(instruction, fingerprints) if instruction.opcode == "conditional" else None
            if branch is None or not self.may_change():
                continue
            inline_instruction(instruction, instruction.called_computations[branch], [instruction.operand(branch + 1)])
            module.record(self.name, (instruction.name,), "inlined", "the branch is known", {"branch": branch})
            changed = True
        if changed:
            remove_uncalled_computations(module)
        return changed


def _known_branch(instruction: HloInstruction, fingerprints: Fingerprints) -> int | None:
    if instruction.is_controlled:
        return None
    selector, *operands = instruction.operands
    branches = instruction.called_computations
    if selector.shape.dtype is DType.PRED:
        choice = splat_bool(selector)
        if choice is not None:
            return 0 if choice else 1
    else:
        index = splat_integer(selector)
        if index is not None:
            return index if 0 <= index < len(branches) else len(branches) - 1
    one_operand = all(operand is operands[0] for operand in operands)
    if one_operand and len({fingerprints.of_computation(branch) for branch in branches}) == 1:
        return 0
    return None
