"""Expresses the custom call by which XLA's CPU compiler finds the largest elements."""

from __future__ import annotations

from typing import ClassVar

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.sorting import TopkAttrs
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape
from xlalite.passes.rewriting.expander import OpExpander


@dataclass(frozen=True, slots=True)
class TopKExpander(OpExpander):
    """custom-call(x), custom_call_target="TopK" -> topk(x), k=..., largest=true.

    The call's k is the size of its results. What has a side effect, or other results than topk, stays.
    """

    name: ClassVar[str] = "top-k-expander"
    opcodes: ClassVar[frozenset[str]] = frozenset({"custom-call"})

    def may_expand(self, instruction: HloInstruction) -> bool:
        """Whether it is such a call, and gives what topk gives."""
        if instruction.attrs.custom_call_target != "TopK" or instruction.has_side_effect:
            return False
        operands, result = instruction.operands, instruction.shape
        if len(operands) != 1 or not operands[0].shape.is_array or not operands[0].shape.rank:
            return False
        operand = operands[0].shape
        if not operand.dtype.is_integral and not operand.dtype.is_floating:
            return False
        if not result.is_tuple or len(result.elements) != 2 or not result.elements[0].is_array:
            return False
        dims = (*operand.dims[:-1], *result.elements[0].dims[-1:])
        wanted = Shape.tuple([Shape.array(operand.dtype, dims), Shape.array(DType.S32, dims)])
        return wanted.compatible(result) and dims[-1] <= operand.dims[-1]

    def expand(self, builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...]) -> Handle:
        """Builds the topk."""
        return builder.op("topk", operands, TopkAttrs(instruction.shape.elements[0].dims[-1]))
