"""Replaces calls by what they call."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.records import dataclass
from xlalite.passes.core.base import HloPass
from xlalite.passes.rewriting.inlining import inline_instruction
from xlalite.passes.simplify.dce import remove_uncalled_computations


@dataclass(frozen=True, slots=True)
class CallInliner(HloPass):
    """Inlines `call`, innermost first.

    A computation with one call site is always inlined; one with several as long as the module stays below
    `max_instructions`, so that a deep tree of calls does not grow without bound. Each refusal is recorded. Calls with
    control dependencies stay.
    """

    name: ClassVar[str] = "call-inliner"
    opcodes: ClassVar[frozenset[str]] = frozenset({"call"})
    counts_changes: ClassVar[bool] = True

    max_instructions: int = 200_000

    def run(self, module: HloModule) -> bool:
        """Inlines what may be inlined; says whether there was any."""
        total = sum(map(len, module.computations()))
        sites = Counter(callee for instruction in module.instructions() for callee in instruction.called_computations)
        changed = False
        for instruction in module.instructions():
            if instruction.opcode != "call":
                continue
            callee = instruction.called_computations[0]
            if not self._may_inline(module, instruction, sites[callee], total) or not self.may_change():
                continue
            total += len(callee)
            sites.update(c for inner in callee.instructions for c in inner.called_computations)
            inline_instruction(instruction, callee)
            changed = True
        if changed:
            remove_uncalled_computations(module)
        return changed

    def _may_inline(self, module: HloModule, call: HloInstruction, sites: int, total: int) -> bool:
        if call.is_controlled:
            module.record(self.name, (call.name,), "not inlined", "control dependencies")
            return False
        size = len(call.called_computations[0])
        if sites > 1 and total + size > self.max_instructions:
            figures = {"call sites": sites, "callee instructions": size, "module instructions": total}
            module.record(self.name, (call.name,), "not inlined", "module would grow too large", figures)
            return False
        return True
