"""Replaces `map` by its function applied to whole arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xlalite.hlo.module import HloModule
from xlalite.passes.base import HloPass
from xlalite.passes.inlining import apply_elementwise
from xlalite.passes.rewrite import replace_with_loose


@dataclass(frozen=True, slots=True)
class MapInliner(HloPass):
    """map(x, y), to_apply=f -> f's instructions on arrays, when f is elementwise operations on scalars.

    Other maps stay, with a record.
    """

    name: ClassVar[str] = "map-inliner"
    counts_changes: ClassVar[bool] = True

    def run(self, module: HloModule) -> bool:
        """Inlines in every computation; says whether anything changed."""
        changed = False
        for computation in module.computations():
            for instruction in computation.instructions:
                if instruction.opcode != "map" or not self.may_change():
                    continue
                function = instruction.called_computations[0]
                result = apply_elementwise(function, instruction.operands, instruction.shape.dims)
                if result is None:
                    module.record(self.name, (instruction.name,), "not inlined", "its function is not elementwise")
                    continue
                replace_with_loose(instruction, result)
                changed = True
        return changed
