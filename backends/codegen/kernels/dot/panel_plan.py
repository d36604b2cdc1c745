"""Plans of products of few rows with a far right operand, whose columns the first tile of rows packs for the others."""

from __future__ import annotations

from dataclasses import replace

from xlalite.backends.codegen.kernels.dot.numbers import Numbers
from xlalite.backends.codegen.kernels.dot.plan import DotPlan, finished_plan
from xlalite.backends.codegen.kernels.dot.tilings import Form, Tiling, best_tiling, outer_tilings
from xlalite.backends.codegen.kernels.dot.transfer import OperandCycles
from xlalite.backends.codegen.kernels.dot.units import PIECES, UNIT_CYCLES, busier, part_of
from xlalite.backends.codegen.kernels.dot.view import DotView
from xlalite.backends.codegen.llvm import TargetInfo

_VECTORS = 3
"""Vectors of columns that a tile may have: with 8 rows they need fewer loads than two vectors with 12."""

_BEGINNING, _LITTLE = 512.0, 0.03
"""Results that take as long as waiting for the first panel of a piece, and what more pieces may lose: [64,1024] by
[1024,1024] takes two threads 517 us in pieces of 48 columns, 483 in such of 192, 442 in such of 528.
"""


def panel_plan(view: DotView, numbers: Numbers, lanes: int, target: TargetInfo) -> DotPlan:
    """All rows meet some columns in each piece of work."""
    depth = _depth(view, numbers, lanes, target)
    sizes = view, lanes, target, view.m, 0, depth
    tiling = best_tiling(outer_tilings(Form.COLUMNS, *sizes, packs_lhs=False, in_panels=True))
    plan = finished_plan(Form.COLUMNS, view, numbers, lanes, tiling, OperandCycles(0.0, 0.0), depth, view.m)
    return replace(
        plan,
        unit_rows=view.m,
        unit_columns=_columns(view, tiling),
        part_depth=-(-view.k // depth) * depth,
        shares_packed=False,
        shares_panels=True,
    )


def _depth(view: DotView, numbers: Numbers, lanes: int, target: TargetInfo) -> int:
    """Terms of a panel, which takes half of the nearest cache; an even number where there are several."""
    line_bytes = _VECTORS * lanes * numbers.kept.size_bytes
    limit = min(target.cache_bytes[0] // (2 * line_bytes), numbers.longest_chain or view.k)
    pieces = -(-view.k // limit)
    return -(-view.k // (2 * pieces)) * 2 if pieces > 1 else view.k


def _columns(view: DotView, tiling: Tiling) -> int:
    """Columns of the most pieces that lose little."""
    choices: list[tuple[float, int]] = []
    for count in range(1, PIECES + 1):
        columns = part_of(view.n, count, tiling.columns)
        if count == 1 or tiling.cycles * columns / view.n >= UNIT_CYCLES:
            uneven = busier(view, view.m, columns, helps=True) if view.batch_count == 1 else 0.0
            choices.append((uneven + _BEGINNING / (view.m * columns), columns))
    least = min(cost for cost, _ in choices)
    return min(columns for cost, columns in choices if cost <= least + _LITTLE)
