"""Elementwise operations on operands of two floating-point types get operands of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Trait
from xlalite.hlo.ops import elementwise_binary
from xlalite.hlo.ops.rules.elementwise_rules import common_dtype
from xlalite.hlo.records import dataclass
from xlalite.passes.rewriting.expander import OpExpander

if TYPE_CHECKING:
    from xlalite.hlo.building.builder import Builder, Handle


@dataclass(frozen=True, slots=True)
class MixedPrecisionExpander(OpExpander):
    """op(x, y) -> op(convert(x), y) where x is of the narrower floating-point type."""

    name: ClassVar[str] = "mixed-precision-expander"
    opcodes: ClassVar[frozenset[str]] = frozenset(
        (*(op.name for op in elementwise_binary.OPS if op.has(Trait.ELEMENTWISE)), "compare", "stochastic-convert")
    )

    def may_expand(self, instruction: HloInstruction) -> bool:
        """Whether the types differ and have a wider one."""
        lhs, rhs = (operand.shape.dtype for operand in instruction.operands)
        return lhs is not rhs and common_dtype(lhs, rhs) is not None

    def expand(self, builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...]) -> Handle:
        """The operation on operands of the wider type."""
        common = common_dtype(*(operand.shape.dtype for operand in instruction.operands))
        assert common is not None, "only operations whose types have a wider one are expanded"
        converted = [builder.convert(operand, common) for operand in operands]
        return builder.op(instruction.opcode, converted, instruction.attrs)
