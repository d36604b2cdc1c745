"""Window reductions that are running totals."""

from __future__ import annotations

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.types.window import Window, WindowDimension


def accumulated_dimension(instruction: HloInstruction) -> int | None:
    """The dimension along which a window reduction takes all that comes before, or after; None if it does not."""
    if instruction.opcode != "reduce-window":
        return None
    window: Window = instruction.attrs.window
    moving = [number for number, one in enumerate(window.dimensions) if one != WindowDimension(1)]
    if len(moving) != 1:
        return None
    size = instruction.operand(0).shape.dims[moving[0]]
    ends = (WindowDimension(size, pad_low=size - 1), WindowDimension(size, pad_high=size - 1))
    return moving[0] if window.dimensions[moving[0]] in ends else None
