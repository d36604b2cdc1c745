"""Expresses scaled-dot by a dot of scaled operands."""

from __future__ import annotations

from typing import ClassVar

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.passes.rewriting.expander import OpExpander


@dataclass(frozen=True, slots=True)
class ScaledDotExpander(OpExpander):
    """scaled-dot(a, b, s, t) -> dot(a * s, b * t), each scale repeated over its block.

    Products of what has few bits are exact in f32; others are rounded once more, like those of the dot itself. Where
    the result, or what is scaled, is f64, all is.
    """

    name: ClassVar[str] = "scaled-dot-expander"
    opcodes: ClassVar[frozenset[str]] = frozenset({"scaled-dot"})

    def may_expand(self, instruction: HloInstruction) -> bool:
        """Whether all sizes are known."""
        return not any(operand.shape.is_dynamic for operand in instruction.operands)

    def expand(self, builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...]) -> Handle:
        """Builds the dot."""
        lhs, rhs, lhs_scale, rhs_scale = operands
        is_wide = instruction.shape.dtype is DType.F64 or any(operand.dtype is DType.F64 for operand in operands)
        dtype = DType.F64 if is_wide else DType.F32
        sides = [
            builder.convert(operand, dtype) * _repeated(builder, builder.convert(scale, dtype), operand.dims)
            for operand, scale in ((lhs, lhs_scale), (rhs, rhs_scale))
        ]
        # The product of wide operands may be too large for the result's type where their sum is not.
        wide = builder.op("dot", sides, instruction.attrs, shape=instruction.shape.with_dtype(dtype))
        return builder.convert(wide, instruction.shape.dtype)


def _repeated(builder: Builder, scale: Handle, dims: tuple[int, ...]) -> Handle:
    """Each element of a scale as often as its block has elements, along each dimension."""
    if not scale.dims:
        return builder.broadcast(scale, dims)
    blocks = [part for size, count in zip(dims, scale.dims, strict=True) for part in (count, size // count)]
    return builder.reshape(builder.broadcast(scale, blocks, range(0, len(blocks), 2)), dims)
