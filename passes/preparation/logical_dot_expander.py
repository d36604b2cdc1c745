"""Expresses products of truth values, convolutions too, by those of integers."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.passes.rewriting.expander import OpExpander

if TYPE_CHECKING:
    from xlalite.hlo.building.builder import Builder, Handle


@dataclass(frozen=True, slots=True)
class LogicalDotExpander(OpExpander):
    """dot or convolution of pred -> how many terms are true, as s32, is not 0.

    Kernels multiply bytes; truth values would be looked at one by one.
    """

    name: ClassVar[str] = "logical-dot-expander"
    opcodes: ClassVar[frozenset[str]] = frozenset({"dot", "convolution"})

    def may_expand(self, instruction: HloInstruction) -> bool:
        """Whether all numbers are truth values."""
        return all(one.shape.dtype is DType.PRED for one in (instruction, *instruction.operands))

    def expand(self, builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...]) -> Handle:
        """Builds the product of bytes and the comparison."""
        numbers = [builder.convert(operand, DType.S8) for operand in operands]
        shape = instruction.shape.with_dtype(DType.S32)
        return builder.compare(builder.op(instruction.opcode, numbers, instruction.attrs, shape=shape), 0, "NE")
