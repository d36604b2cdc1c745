"""Columns of a far right operand that the first tile of rows packs for the others, while all fetch those that follow.

A panel comes from behind the second cache while the tiles of the one before are computed: each fetches a part of it.
[64,768] by [768,3024] takes 2.3 ms of one core where columns are packed apart from tiles, 1.7 so.
"""

from __future__ import annotations

from dataclasses import fields

from xlalite.backends.codegen.kernels.dot.outer_tile import LINE_BYTES, OuterTile
from xlalite.backends.codegen.kernels.dot.panel_tile import PanelTile
from xlalite.backends.codegen.kernels.dot.plan import DotPlan
from xlalite.backends.codegen.kernels.scalars import Scalar, Scalars
from xlalite.backends.codegen.llvm import FunctionBuilder, Value


def fills_panel(plan: DotPlan, columns: int) -> bool:
    """Whether tiles of so many columns share a panel: they need all of its vectors."""
    return columns > plan.columns - plan.lanes


def panel_tile(plan: DotPlan, tile: OuterTile, *, packs: bool) -> PanelTile:
    """The tile that shares a panel; one of fewer columns reads them where they lie."""
    known = {field.name: getattr(tile, field.name) for field in fields(tile)}
    reads_panel = fills_panel(plan, tile.columns) and not packs
    if reads_panel:
        line = -(-tile.columns // tile.lanes) * tile.lanes
        known |= {"b_depth": line, "b_filled": True, "in_pairs": tile.may_pair}
    assert tile.chains == 1, "many rows have sums in one chain"
    return PanelTile(
        **known, packs=packs, fetched=_lines_fetched(plan), fetches_half=reads_panel and _fetches_half(plan)
    )


def reads_panel(fb: FunctionBuilder, math: Scalars, plan: DotPlan, is_first: Value, width: Scalar) -> Value:
    """Whether a tile of a width reads a panel: neither the one that packs it nor one of few columns."""
    is_wide = fb.icmp("ugt", math.value(width), math.value(plan.columns - plan.lanes))
    return fb.and_(is_wide, fb.not_(is_first))


def place_ahead(
    fb: FunctionBuilder, math: Scalars, plan: DotPlan, b: Value, tile: tuple[Scalar, Scalar], width: Scalar
) -> Value:
    """What a tile fetches first, whose columns lie at b; `tile` is its first row and column in a piece of a width.

    Behind the last columns of a piece follow the first ones of the next terms.
    """
    row, column = tile
    stride, columns, line = plan.view.rhs.depth.stride, plan.columns, LINE_BYTES // plan.numbers.kept.size_bytes
    number = math.divide(row, plan.rows)
    if _fetches_half(plan):
        term = math.multiply(math.remainder(number, 2), plan.unit_depth // 2)
        part = math.add(math.multiply(math.divide(number, 2), line), math.multiply(term, stride))
    else:
        part = math.multiply(number, _lines_fetched(plan) * line)
    is_inside = fb.icmp("ult", math.value(math.add(column, columns)), math.value(width))
    below = math.subtract(plan.unit_depth * stride, column)
    distance = math.add(fb.select(is_inside, math.value(columns), math.value(below)), part)
    return fb.gep(plan.numbers.kept, b, distance, inbounds=False)


def _fetches_half(plan: DotPlan) -> bool:
    """Whether there are so many tiles, which take terms two by two, that each fetches half of the rows only."""
    return _tiles(plan) >= 2 * _lines(plan) and plan.view.k % 2 == 0


def _lines_fetched(plan: DotPlan) -> int:
    """Lines of each row that a tile fetches."""
    return -(-_lines(plan) // _tiles(plan))


def _tiles(plan: DotPlan) -> int:
    """Tiles of the rows of a piece."""
    return -(-plan.unit_rows // plan.rows)


def _lines(plan: DotPlan) -> int:
    """Lines that a row of a panel lies in, which begins anywhere in the first one."""
    return -(-plan.columns * plan.numbers.kept.size_bytes // LINE_BYTES) + 1
