"""Takes fusions apart."""

from __future__ import annotations

from typing import ClassVar

from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.records import dataclass
from xlalite.passes.core.base import HloPass
from xlalite.passes.rewriting.inlining import inline_instruction
from xlalite.passes.simplify.dce import remove_uncalled_computations


@dataclass(frozen=True, slots=True)
class Defusion(HloPass):
    """Replaces every fusion by its body.

    Modules that another compiler optimised come with its kernels, which need not suit this backend: some hold what no
    kernel of ours computes. Our own fusion starts from single instructions. Control dependencies go over to what stands
    for the fusion's root.
    """

    name: ClassVar[str] = "defusion"
    opcodes: ClassVar[frozenset[str]] = frozenset({"fusion"})
    counts_changes: ClassVar[bool] = True

    def run(self, module: HloModule) -> bool:
        """Takes apart what there is, fusions inside fusions too."""
        changed = False
        for instruction in module.instructions():
            if instruction.opcode == "fusion" and self.may_change():
                inline_instruction(instruction, instruction.called_computations[0])
                changed = True
        if changed:
            remove_uncalled_computations(module)
        return changed
