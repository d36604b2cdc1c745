"""Base of passes that express one operation by others."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.records import dataclass
from xlalite.passes.core.base import HloPass

if TYPE_CHECKING:
    from xlalite.hlo.building.builder import Builder, Handle


@dataclass(frozen=True, slots=True)
class OpExpander(HloPass):
    """Replaces every instruction of some operations by a composition of others.

    A subclass names the operations and builds the composition; instructions with control dependencies are expanded
    too: the dependencies go over to the result.

    Attributes:
        opcodes: The operations.
        users_first: Whether an instruction's users are expanded before it.
    """

    opcodes: ClassVar[frozenset[str]] = frozenset()
    users_first: ClassVar[bool] = False
    counts_changes: ClassVar[bool] = True

    def run(self, module: HloModule) -> bool:
        """Expands in every computation; says whether there was anything to expand."""
        changed = False
        found = [instruction for instruction in module.instructions() if instruction.opcode in self.opcodes]
        for instruction in reversed(found) if self.users_first else found:
            if instruction.parent is not None and self.may_expand(instruction) and self.may_change():
                self._replace(instruction, module)
                changed = True
        return changed

    def may_expand(self, instruction: HloInstruction) -> bool:
        """Whether this instruction is to be expanded; all are unless a subclass says otherwise."""
        return True

    @abstractmethod
    def expand(self, builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...]) -> Handle:
        """Builds the composition from handles of the instruction's operands."""

    def _replace(self, instruction: HloInstruction, module: HloModule) -> None:
        from xlalite.hlo.building.builder import Builder
        from xlalite.passes.rewriting.inlining import inline_instruction

        builder = Builder(instruction.name, module)
        parameters = tuple(builder.parameter(operand.shape) for operand in instruction.operands)
        builder.computation.set_root(self.expand(builder, instruction, parameters).instruction)
        inline_instruction(instruction, builder.computation)
