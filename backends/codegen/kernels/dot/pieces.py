"""Pieces of work that somebody chose for a product by measuring, and how HLO says so.

Tiles, and the depth at which sums begin anew, stay as they are planned: results are the same bit by bit.
"""

from __future__ import annotations

import re
from dataclasses import replace

from xlalite.backends.codegen.kernels.dot.plan import DotPlan
from xlalite.backends.codegen.kernels.dot.tilings import Form
from xlalite.hlo.records import dataclass

_CONFIG = re.compile(r'\{"piece":"(\d{1,9})x(\d{1,9})","rows_outside":(true|false)\}')

_MOST_PACKED_BYTES = 4 << 20
"""Scratch memory that a choice may take for packed operands."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """How large pieces of work are, and in which order one meets its tiles.

    Attributes:
        rows: `DotPlan.unit_rows`.
        columns: `DotPlan.unit_columns`.
        rows_outside: `DotPlan.rows_outside`.
    """

    rows: int
    columns: int
    rows_outside: bool

    @classmethod
    def of(cls, plan: DotPlan) -> Pieces:
        """Those of a plan."""
        return cls(plan.unit_rows, plan.unit_columns, plan.rows_outside)

    @classmethod
    def from_config(cls, config: str) -> Pieces | None:
        """What the `backend_config` of a product says; None if it is about something else."""
        found = _CONFIG.fullmatch(config)
        return cls(int(found[1]), int(found[2]), found[3] == "true") if found else None

    @property
    def config(self) -> str:
        """As the `backend_config` of the product."""
        return f'{{"piece":"{self.rows}x{self.columns}","rows_outside":{str(self.rows_outside).lower()}}}'

    def __str__(self) -> str:
        """As figures have it."""
        return f"{self.rows}x{self.columns}" + (", rows outside" if self.rows_outside else "")


def plan_in_pieces(plan: DotPlan, config: str) -> DotPlan:
    """The plan in the pieces that a configuration asks for; as it is if they do not fit."""
    pieces = Pieces.from_config(config)
    return plan if pieces is None or not _fits(plan, pieces) else _with(plan, pieces)


def choices(plan: DotPlan) -> tuple[Pieces, ...]:
    """A handful of pieces that may be as good as those of a plan, which are the first."""
    planned = Pieces.of(plan)
    found = [planned, replace(planned, rows_outside=not planned.rows_outside)]
    for rows, columns in ((1, 2), (2, 1), (1, 4), (-2, 1), (1, -2), (-2, 2), (2, -2)):
        sizes = _scaled(plan.unit_rows, rows, plan.row_step, plan.view.m)
        found.append(
            replace(planned, rows=sizes, columns=_scaled(plan.unit_columns, columns, plan.columns, plan.view.n))
        )
    return tuple(dict.fromkeys(one for one in found if one == planned or _fits(plan, one)))


def _scaled(size: int, factor: int, step: int, whole: int) -> int:
    """A size so many times as large, or a part of it, in whole steps, or all."""
    wanted = size * factor if factor > 0 else size // -factor
    return min(max(1, -(-wanted // step)) * step, whole)


def _fits(plan: DotPlan, pieces: Pieces) -> bool:
    """Whether the code of a plan is right for these pieces and their memory is not too large."""
    rows, columns, view = pieces.rows, pieces.columns, plan.view
    # Of an image that is padded line by line, pieces are as large as what they copy.
    is_fixed = plan.form is not Form.COLUMNS or plan.parts > 1 or plan.staging is not None
    if is_fixed or not (0 < rows <= view.m and 0 < columns <= view.n):
        return False
    if (rows % plan.row_step and rows < view.m) or (columns % plan.columns and columns < view.n):
        return False
    if pieces.rows_outside and plan.shares_panels:
        return False
    if plan.overlaps and (view.m - 1) % rows + 1 < plan.rows:
        return False
    return _with(plan, pieces).packed_elements * plan.numbers.kept.size_bytes <= _MOST_PACKED_BYTES


def _with(plan: DotPlan, pieces: Pieces) -> DotPlan:
    return replace(plan, unit_rows=pieces.rows, unit_columns=pieces.columns, rows_outside=pieces.rows_outside)
