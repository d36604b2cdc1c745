"""In which order pieces of work follow one another, what they share, and how far those of a mirrored product reach.

Of a mirrored product large pieces and small ones take turns, so that halves of all pieces are about as much work.
"""

from __future__ import annotations

from xlalite.backends.codegen.kernels.dot.plan import DotPlan
from xlalite.backends.codegen.kernels.dot.view import DotView, Matrix
from xlalite.backends.codegen.kernels.scalars import Scalar, Scalars
from xlalite.backends.codegen.llvm import Value


def part_of(math: Scalars, plan: DotPlan, number: Scalar) -> tuple[Scalar, Scalar]:
    """Which part of the depth a number stands for, and which piece of the result."""
    return math.divide(number, plan.units), math.remainder(number, plan.units)


def operand_piece(
    math: Scalars, view: DotView, operand: Matrix, of: tuple[Scalar, Scalar], unit: Scalar, units: int
) -> Value:
    """A number for a piece of an operand in a part of the depth; all products may have it in common."""
    place, product = of
    if any(operand.batch):
        place = math.add(math.multiply(place, view.batch_count), product)
    return math.value(math.add(math.multiply(place, units), unit))


def row_unit(math: Scalars, plan: DotPlan, number: Scalar) -> Scalar:
    """Which piece of the rows a number stands for: of strips, one with many columns, then one with few."""
    unit = math.remainder(number, plan.row_units)
    return math.subtract(plan.row_units - 1, _from_both_ends(math, unit, plan.row_units)) if plan.in_strips else unit


def product_and_columns(math: Scalars, plan: DotPlan, number: Scalar) -> tuple[Scalar, Scalar]:
    """Which product a number stands for, and which piece of its columns: of squares, one with many rows, then few."""
    block, count = math.divide(number, plan.row_units), plan.view.batch_count
    if plan.products_inside:
        return math.remainder(block, count), math.divide(block, count)
    unit = math.remainder(block, plan.column_units)
    product = math.divide(block, plan.column_units) if count > 1 else 0
    return product, _from_both_ends(math, unit, plan.column_units) if plan.mirrors else unit


def strip_columns(math: Scalars, plan: DotPlan, strip: Scalar) -> Scalar:
    """Columns of a strip of rows: whole tiles up to the diagonal."""
    end = math.multiply(math.add(strip, 1), plan.unit_rows)
    tiles = math.divide(math.add(end, plan.columns - 1), plan.columns)
    return math.least(math.multiply(tiles, plan.columns), plan.view.n)


def most_strip_columns(math: Scalars, plan: DotPlan, number: Scalar) -> Scalar:
    """Columns that a strip and those behind it need."""
    before = math.divide(math.remainder(number, plan.row_units), 2)
    return strip_columns(math, plan, math.subtract(plan.row_units - 1, before))


def _from_both_ends(math: Scalars, number: Scalar, count: int) -> Scalar:
    """The first of so many, the last, the second, the last but one."""
    half, is_last = math.divide(number, 2), math.remainder(number, 2)
    return math.add(half, math.multiply(is_last, math.subtract(count - 1, math.multiply(half, 2))))
