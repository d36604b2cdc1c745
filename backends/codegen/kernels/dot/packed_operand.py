"""A right operand in the order in which tiles read it, as HLO says it: `[panels, k, width]`, a panel to a tile.

Whoever packs writes `transpose(reshape(pad(w)))`; the product reads `slice(reshape(transpose(packed)))`, which is `w`.
"""

from __future__ import annotations

from xlalite.hlo.building.construct import pad, reshape, scalar, slice_of, transpose
from xlalite.hlo.building.replacement import remove_dead
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.dot import DotAttrs
from xlalite.hlo.records import dataclass

_PANELS_INSIDE = (1, 0, 2)


@dataclass(frozen=True, slots=True)
class PackedOperand:
    """A matrix in panels.

    Attributes:
        k: Terms of a sum.
        n: Columns.
        width: Columns of a panel; the last one is filled up with zeros.
        is_turned: Whether the matrix to be packed is `[n, k]` instead of `[k, n]`.
    """

    k: int
    n: int
    width: int
    is_turned: bool = False

    @property
    def panels(self) -> int:
        """Number of panels."""
        return -(-self.n // self.width)

    def packed(self, matrix: HloInstruction) -> HloInstruction:
        """The matrix in panels; loose instructions."""
        rest = (0, self.panels * self.width - self.n, 0)
        amounts = (rest, (0, 0, 0)) if self.is_turned else ((0, 0, 0), rest)
        padded = pad(matrix, scalar(0, matrix.shape.dtype), amounts)
        if self.is_turned:
            return transpose(reshape(padded, (self.panels, self.width, self.k)), (0, 2, 1))
        return transpose(reshape(padded, (self.k, self.panels, self.width)), _PANELS_INSIDE)

    def unpacked(self, panels: HloInstruction) -> HloInstruction:
        """The matrix `[k, n]` out of its panels; loose instructions."""
        lines = reshape(transpose(panels, _PANELS_INSIDE), (self.k, self.panels * self.width))
        return slice_of(lines, ((0, self.k, 1), (0, self.n, 1)))


def packed_rhs(dot: HloInstruction) -> tuple[PackedOperand, HloInstruction] | None:
    """How the right operand of a dot is packed and its panels, which are a parameter; None if it is not."""
    if dot.opcode != "dot":
        return None
    attrs: DotAttrs = dot.attrs
    lines = dot.operand(1)
    if attrs.rhs_contracting_dims != (0,) or attrs.rhs_batch_dims or lines.shape.rank != 2:
        return None
    k, n = lines.shape.dims
    if lines.opcode == "slice":
        lines = lines.operand(0)
    if lines.opcode != "reshape" or lines.operand(0).opcode != "transpose":
        return None
    panels = lines.operand(0).operand(0)
    if panels.opcode != "parameter" or panels.shape.rank != 3 or not panels.shape.element_count:
        return None
    packing = PackedOperand(k, n, panels.shape.dims[2])
    if panels.shape.dims != (packing.panels, k, packing.width):
        return None
    unpacked = packing.unpacked(panels)
    is_packed = _same(unpacked, dot.operand(1))
    remove_dead(unpacked)
    return (packing, panels) if is_packed else None


def memory_of(dot: HloInstruction) -> tuple[HloInstruction, HloInstruction]:
    """The operands of a dot, the panels for a right one that is packed; what is padded for an image, or cut."""
    packed, (image, kernel) = packed_rhs(dot), dot.operands
    if dot.opcode == "convolution":
        image = image.operand(0) if image.opcode == "pad" else image
        kernel = kernel.operand(0) if kernel.opcode == "slice" else kernel
    return image, kernel if packed is None else packed[1]


def _same(one: HloInstruction, other: HloInstruction) -> bool:
    """Whether two chains of operations on one instruction are equal."""
    while one is not other:
        if (one.opcode, one.shape, one.attrs) != (other.opcode, other.shape, other.attrs) or len(one.operands) != 1:
            return False
        one, other = one.operand(0), other.operand(0)
    return True
