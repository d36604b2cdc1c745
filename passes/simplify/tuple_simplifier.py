"""Removes tuples that are taken apart at once, or put together again as they were."""

from __future__ import annotations

from typing import ClassVar

from xlalite.hlo.building.replacement import replace
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.records import dataclass
from xlalite.passes.core.base import HloPass


@dataclass(frozen=True, slots=True)
class TupleSimplifier(HloPass):
    """get-tuple-element(tuple(..., a, ...)) -> a, and tuple(t[0], ..., t[n-1]) -> t.

    Instructions with control dependencies are left alone.
    """

    name: ClassVar[str] = "tuple-simplifier"
    opcodes: ClassVar[frozenset[str]] = frozenset({"get-tuple-element", "tuple"})
    counts_changes: ClassVar[bool] = True

    def run(self, module: HloModule) -> bool:
        """Simplifies in every computation; says whether anything changed."""
        changed = False
        for computation in module.computations():
            for instruction in computation.post_order():
                if instruction.parent is not computation:
                    continue
                simpler = _simpler(instruction)
                if simpler is not None and self.may_change():
                    replace(instruction, simpler)
                    changed = True
        return changed


def _simpler(instruction: HloInstruction) -> HloInstruction | None:
    if instruction.is_controlled:
        return None
    if instruction.opcode == "get-tuple-element":
        source = instruction.operand(0)
        return source.operand(instruction.attrs.index) if source.opcode == "tuple" else None
    if instruction.opcode == "tuple":
        return _whole_tuple(instruction)
    return None


def _whole_tuple(instruction: HloInstruction) -> HloInstruction | None:
    """The tuple whose elements the instruction lists in order, all of them."""
    parts = instruction.operands
    if not parts or parts[0].opcode != "get-tuple-element":
        return None
    source = parts[0].operand(0)
    if not source.shape.compatible(instruction.shape):
        return None
    for index, part in enumerate(parts):
        if part.opcode != "get-tuple-element" or part.operand(0) is not source or part.attrs.index != index:
            return None
    return source
