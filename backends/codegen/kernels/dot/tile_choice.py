"""Which function computes a tile: one of whole tiles, or one of the rest of a dimension, where tiles do not ask."""

from __future__ import annotations

from collections.abc import Callable

from xlalite.backends.codegen.kernels.dot.driver_part import DriverPart
from xlalite.backends.codegen.kernels.dot.layout import (
    DotLayout,
    fills_columns,
    fills_rows,
    narrows_tiles,
    tile_of,
    widened_tile_of,
)
from xlalite.backends.codegen.kernels.dot.panels import fills_panel
from xlalite.backends.codegen.kernels.dot.plan import DotPlan
from xlalite.backends.codegen.kernels.dot.tile import Tile
from xlalite.backends.codegen.kernels.dot.tilings import Form
from xlalite.backends.codegen.kernels.scalars import Scalar
from xlalite.backends.codegen.llvm import Value
from xlalite.hlo.records import dataclass


@dataclass(frozen=True, slots=True)
class TileChoice(DriverPart):
    """Emits the choice of a function.

    Attributes:
        layout: What the product has in scratch memory.
    """

    layout: DotLayout

    def declare_first(self) -> None:
        """Declares the tile that takes longest to compile, so that it is there first."""
        first_tile(self.plan, self.layout).function(self.module, self.plan.numbers)

    def function(
        self, height: Scalar, width: Scalar, is_exact: Value | None, packs_panel: Value | None = None
    ) -> Value:
        """The function for so many rows and columns.

        `is_exact` says whether words are right for the numbers, `packs_panel` whether rows are the first of a panel.
        """
        plan = self.plan
        if plan.form is Form.STREAM or plan.walks_columns:
            return self._of(plan.rows, plan.columns, is_exact)

        def of_columns(columns: int) -> Value:
            if fills_rows(plan, self.layout):
                return self._of(plan.rows, columns, is_exact)
            rest = plan.row_run % plan.rows
            function = self._choice(height, plan.rows, rest, lambda rows: self._of(rows, columns, is_exact))
            if packs_panel is None or not fills_panel(plan, columns):
                return function
            begins_short = 0 < plan.view.m % plan.unit_rows < plan.rows
            packing = self._choice(height, plan.rows, rest * begins_short, lambda rows: self._packing(rows, columns))
            return self.fb.select(packs_panel, packing, function)

        rest = _rest_columns(plan, self.layout)
        return (
            of_columns(rest)
            if _has_one_width(plan, self.layout)
            else self._choice(width, plan.columns, rest, of_columns)
        )

    def _choice(self, size: Scalar, whole: int, rest: int, option: Callable[[int], Value]) -> Value:
        if isinstance(size, int) or not rest:
            return option(size if isinstance(size, int) else whole)
        return self.fb.select(self.fb.icmp("eq", size, self.math.operand(whole)), option(whole), option(rest))

    def _packing(self, rows: int, columns: int) -> Value:
        tile = tile_of(self.plan, self.layout, rows, columns, packs_panel=True)
        return self.callee(tile.function(self.module, self.plan.numbers))

    def _of(self, rows: int, columns: int, is_exact: Value | None) -> Value:
        tile, numbers = tile_of(self.plan, self.layout, rows, columns), self.plan.numbers
        function = self.callee(tile.function(self.module, numbers))
        if is_exact is None or numbers.widened is None:
            return function
        widened_tile = widened_tile_of(self.plan)
        return self.fb.select(is_exact, function, self.callee(widened_tile.function(self.module, numbers.widened)))


def first_tile(plan: DotPlan, layout: DotLayout) -> Tile:
    """The tile of most rows and columns."""
    return tile_of(
        plan, layout, plan.rows, _rest_columns(plan, layout) if _has_one_width(plan, layout) else plan.columns
    )


def _rest_columns(plan: DotPlan, layout: DotLayout) -> int:
    """Columns of the last tile, if there are fewer; else 0."""
    is_whole = plan.overlaps_columns or plan.walks_columns or fills_columns(plan, layout)
    return 0 if is_whole else plan.column_run % plan.columns


def _has_one_width(plan: DotPlan, layout: DotLayout) -> bool:
    """Whether a tile that is told its width is the last one and all others."""
    return _rest_columns(plan, layout) > 0 and narrows_tiles(plan)
