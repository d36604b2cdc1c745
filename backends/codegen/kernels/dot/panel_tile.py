"""The tile that shares a panel of b, which is far, with those of other rows: one packs it, all fetch the next one.

Two pointers are further arguments: the panel, and what the tile fetches first; the distance of b's rows is that of the
rows that are fetched.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from xlalite.backends.codegen.kernels.dot.outer_tile import LINE_BYTES, OuterArguments, OuterTile
from xlalite.backends.codegen.kernels.dot.tile import TileBuilder
from xlalite.backends.codegen.kernels.scalars import Scalars
from xlalite.backends.codegen.llvm import Value
from xlalite.hlo.records import dataclass

_ROW_ARGUMENT = 5 + 2
"""The parameter of a tile that says how far b's rows lie apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelTile(OuterTile):
    """A tile whose sums are in one chain each, over one run.

    Attributes:
        packs: Whether it reads b where it lies and packs it; else b is the panel, or what fills no panel.
        fetched: Lines of each row that are fetched.
        fetches_half: Whether it fetches one row, instead of two, where terms are taken two by two.
    """

    packs: bool
    fetched: int
    fetches_half: bool

    @property
    def pointers(self) -> int:
        """The panel, and what is fetched first."""
        return 2

    def _run(
        self, builder: TileBuilder, given: OuterArguments, values: Sequence[Value], depth: Value, count: int
    ) -> list[Value]:
        fb, math, kept, steps = builder.fb, Scalars(builder.fb), builder.kept, self._steps(builder, count)
        row_fetched, line = fb.parameters[_ROW_ARGUMENT], len(self._starts) * self.lanes
        rows = 1 if self.fetches_half else steps
        with fb.carried_loop(0, depth, steps, [*fb.parameters[-2:], *values], nonempty=True) as loop:
            panel, ahead, *now = loop.values
            later = now[2:]
            for row, number in itertools.product(range(rows), range(self.fetched)):
                place = math.add(math.multiply(row_fetched, row), number * LINE_BYTES // kept.size_bytes)
                fb.prefetch(fb.gep(kept, ahead, math.value(place), inbounds=False))
            for step in range(steps):
                packed = math.address(kept, panel, step * line) if self.packs else None
                later = self._step(builder, given, now[:2], later, step, packed)
            panel = math.address(kept, panel, steps * line)
            ahead = fb.gep(kept, ahead, math.value(math.multiply(row_fetched, rows)), inbounds=False)
            loop.yield_(panel, ahead, *self._advanced(builder, given, now[:2], steps), *later)
        return list(loop.results[2:])
