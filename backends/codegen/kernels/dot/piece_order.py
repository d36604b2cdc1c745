"""In which order pieces of work follow one another, and how far those of a mirrored product reach.

Of a mirrored product large pieces and small ones take turns, so that halves of all pieces are about as much work.
"""

from __future__ import annotations

from xlalite.backends.codegen.kernels.dot.plan import DotPlan
from xlalite.backends.codegen.kernels.scalars import Scalar, Scalars


def row_unit(math: Scalars, plan: DotPlan, number: Scalar) -> Scalar:
    """Which piece of the rows a number stands for: of strips, one with many columns, then one with few."""
    unit = math.remainder(number, plan.row_units)
    return math.subtract(plan.row_units - 1, _from_both_ends(math, unit, plan.row_units)) if plan.in_strips else unit


def column_unit(math: Scalars, plan: DotPlan, number: Scalar) -> tuple[Scalar, Scalar]:
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
