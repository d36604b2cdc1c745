"""Replaces `map` by its function applied to whole arrays."""

from __future__ import annotations

from typing import ClassVar

from xlalite.hlo.building.replacement import remove_dead, replace
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.records import dataclass
from xlalite.passes.core.base import HloPass
from xlalite.passes.rewriting.inlining import apply_elementwise


@dataclass(frozen=True, slots=True)
class MapInliner(HloPass):
    """map(x, y), to_apply=f -> f's instructions on arrays, when f is elementwise operations on scalars.

    Other maps stay, with a record.
    """

    name: ClassVar[str] = "map-inliner"
    opcodes: ClassVar[frozenset[str]] = frozenset({"map"})
    counts_changes: ClassVar[bool] = True

    def run(self, module: HloModule) -> bool:
        """Inlines in every computation; says whether anything changed."""
        changed = False
        for instruction in module.instructions():
            if instruction.opcode != "map":
                continue
            function = instruction.called_computations[0]
            result = apply_elementwise(function, instruction.operands, instruction.shape.dims)
            if result is None:
                module.record(self.name, (instruction.name,), "not inlined", "its function is not elementwise")
            elif self.may_change():
                replace(instruction, result)
                changed = True
            else:
                remove_dead(result)
        return changed
