"""Makes instructions whose shape follows from the operation's shape rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xlalite.hlo.ir.instruction import HloInstruction, Metadata
from xlalite.hlo.ir.op import Attrs
from xlalite.hlo.ops import OPS
from xlalite.hlo.types.shape import Shape

if TYPE_CHECKING:
    from xlalite.hlo.ir.computation import HloComputation


def create(
    opcode: str,
    operands: Sequence[HloInstruction] = (),
    attrs: Attrs = None,
    called: Sequence[HloComputation] = (),
    *,
    shape: Shape | None = None,
    name: str = "",
    metadata: Metadata | None = None,
) -> HloInstruction:
    """A loose instruction with its inferred (or checked) shape.

    Args:
        opcode: XLA's name of the operation.
        operands: The operands.
        attrs: The attributes; the declaration's defaults when absent.
        called: The called computations.
        shape: The result shape of operations whose shape does not follow from the operands.
        name: Wanted name; made unique when the instruction joins a computation.
        metadata: Where it came from.

    Raises:
        ShapeError: Shapes or attributes do not fit.
        KeyError: There is no such operation.
    """
    op = OPS[opcode]
    if attrs is None:
        attrs = op.attrs()
    result = op.infer_shape(
        [operand.shape for operand in operands], attrs, [computation.program_shape for computation in called], shape
    )
    return HloInstruction(op, result, operands, attrs, called, name, metadata or Metadata())
