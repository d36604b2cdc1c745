"""Gives dynamic-slice and dynamic-update-slice one scalar index a dimension."""

from __future__ import annotations

from typing import ClassVar

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.records import dataclass
from xlalite.passes.rewriting.expander import OpExpander

_FIRST_INDEX = {"dynamic-slice": 1, "dynamic-update-slice": 2}


@dataclass(frozen=True, slots=True)
class DynamicIndexSplitter(OpExpander):
    """The older form, whose start indices are one vector, -> the form with scalars."""

    name: ClassVar[str] = "dynamic-index-splitter"
    opcodes: ClassVar[frozenset[str]] = frozenset(_FIRST_INDEX)

    def may_expand(self, instruction: HloInstruction) -> bool:
        """Whether the start indices are one vector."""
        starts = instruction.operands[_FIRST_INDEX[instruction.opcode] :]
        return len(starts) == 1 and starts[0].shape.rank == 1

    def expand(self, builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...]) -> Handle:
        """Builds the same operation on scalars cut out of the vector."""
        first = _FIRST_INDEX[instruction.opcode]
        starts = builder.scalars(operands[first])
        return builder.op(instruction.opcode, (*operands[:first], *starts), instruction.attrs)
