"""What the loops of a product's kernel are about: the product, pieces of work, and tiles in them."""

from __future__ import annotations

from dataclasses import replace

from xlalite.backends.codegen.kernels.dot.finish import Area
from xlalite.backends.codegen.kernels.dot.layout import DotLayout
from xlalite.backends.codegen.kernels.dot.plan import DotPlan
from xlalite.backends.codegen.kernels.dot.tilings import Form
from xlalite.backends.codegen.kernels.scalars import Scalar, Scalars
from xlalite.backends.codegen.llvm import Value
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.records import dataclass


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of work.

    Attributes:
        lhs: First element of its product's left operand.
        rhs: First element of its product's right operand.
        area: What it computes.
        start: First term.
        unit: Number of the piece of the result, of which this is a part.
        sums: Where a part's sums go, if there are several.
        first_row: Its first row, counted from where the left operand that it reads begins.
    """

    lhs: Value
    rhs: Value
    area: Area
    start: Scalar
    unit: Scalar
    sums: Value | None
    first_row: Scalar


@dataclass(frozen=True, slots=True)
class TileArea:
    """A tile within a piece.

    Attributes:
        area: What it computes, counted from the first row and column of the piece.
        start: First term.
        depth: Number of terms.
        behind: Rows of the area whose results the tile before has given, if it gives others than sums.
    """

    area: Area
    start: Scalar
    depth: Scalar
    behind: Scalar


@dataclass(frozen=True, slots=True)
class Product:
    """What a kernel computes, and how.

    Attributes:
        body: The computation that is the kernel's.
        dot: The product in it.
        plan: How it is computed.
        layout: The memory of a piece of work.
        stores_result: Whether the kernel gives nothing but the sums as they are.
        slot_bytes: What a running call takes of the memory beside the arena; 0 if there is enough of it on the stack.
    """

    body: HloComputation
    dot: HloInstruction
    plan: DotPlan
    layout: DotLayout
    stores_result: bool
    slot_bytes: int


def own_part(
    math: Scalars, plan: DotPlan, layout: DotLayout, tile: TileArea, results: Area, sums: Value
) -> tuple[Area, Value]:
    """Of the results of a tile and of its sums, those that the tile before has not given."""
    if not plan.overlaps:
        return results, sums
    row, height = math.add(results.row, tile.behind), math.subtract(results.height, tile.behind)
    line = 1 if plan.form is Form.ROWS else layout.sums_line
    sums = math.address(plan.numbers.kept, sums, math.multiply(tile.behind, line))
    return replace(results, row=row, height=height), sums
