"""What a tile in registers of matrices computes of bf16, in vectors of f32, which keep numbers however small they are.

Of 16 words after others the products of first terms are summed, and those of last ones; then both are added up, and to
what is there: as `matrix_tile.py` does, so that the results are the same where both are right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xlalite.backends.codegen.kernels.dot.matrix_tile import WORD_BYTES, MatrixTile, Rows
from xlalite.backends.codegen.kernels.dot.tile import TileBuilder
from xlalite.backends.codegen.kernels.dot.words import first_term, last_term
from xlalite.backends.codegen.kernels.scalars import Scalars
from xlalite.backends.codegen.llvm import I8, I16, I32, Value
from xlalite.hlo.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WidenedMatrixTile(MatrixTile):
    """A tile that stands in for a `MatrixTile`; its rows are computed at a time, of any number."""

    name: ClassVar[str] = "dot_widened_matrices"

    def emit(self, builder: TileBuilder) -> None:
        """Stores the sums of all terms, or adds them to others, a panel after the other."""
        fb, kept = builder.fb, builder.kept
        _, b, c, _, _, _, _, _, _, distance, width, *_ = fb.parameters
        with fb.carried_loop(0, width, self.columns, [b, c], nonempty=True) as panels:
            b, c = panels.values
            self._compute(builder, b, c, fb.smin(fb.sub(width, panels.index), self.columns))
            panels.yield_(fb.gep(kept, b, distance, inbounds=False), fb.gep(kept, c, self.columns, inbounds=False))

    def _compute(self, builder: TileBuilder, b: Value, c: Value, width: Value) -> None:
        """The sums of a panel; of the last row again where rows do not divide all."""
        fb, math, kept = builder.fb, Scalars(builder.fb), builder.kept
        a, _, _, words, adds, a_row, _, b_depth, c_row, _, _, height, *runs = fb.parameters
        lhs = Rows(builder, self, a, a_row, runs)
        starts = range(0, self.columns, self.lanes)
        masks = [builder.below(start, width) for start in starts]
        last = fb.sub(height, 1)
        with fb.loop(0, height, self.rows) as first:
            rows = [fb.smin(fb.add(first, number), last) for number in range(self.rows)]
            lines = [lhs.line(row) for row in rows]
            places = [
                (math.address(kept, c, fb.add(fb.mul(row, c_row), start)), mask)
                for row in rows
                for start, mask in zip(starts, masks, strict=True)
            ]
            known = fb.splat(adds, self.lanes)
            seen = [known if mask is None else fb.and_(mask, known) for _, mask in places]
            before = [builder.load(place, mask) for (place, _), mask in zip(places, seen, strict=True)]
            with fb.carried_loop(0, words, self.words, before) as groups:
                sums = builder.zeros(2 * len(places))
                offset, *_ = lhs.offset(fb.udiv(groups.index, self.words))
                end = fb.smin(fb.add(groups.index, self.words), words)
                with fb.carried_loop(groups.index, end, 1, sums, nonempty=True) as terms:
                    panel = math.address(kept, b, fb.mul(terms.index, b_depth))
                    columns = [builder.load(math.address(kept, panel, start), None, I32) for start in starts]
                    behind = fb.add(offset, fb.mul(fb.sub(terms.index, groups.index), WORD_BYTES))
                    words_of_rows = [fb.load(I32, fb.gep(I8, line, behind), I16.size_bytes) for line in lines]
                    terms.yield_(*self._step(builder, words_of_rows, columns, terms.values))
                firsts, lasts = terms.results[: len(places)], terms.results[len(places) :]
                both = map(builder.numbers.add, [fb] * len(places), firsts, lasts)
                groups.yield_(*map(builder.numbers.add, [fb] * len(places), groups.values, both))
            for (place, mask), total in zip(places, groups.results, strict=True):
                builder.store(total, place, mask)

    def _step(
        self, builder: TileBuilder, rows: Sequence[Value], columns: Sequence[Value], sums: Sequence[Value]
    ) -> list[Value]:
        """Sums of first terms and of last terms with those of one word of each row and column."""
        fb, after = builder.fb, list[Value]()
        for term in (first_term, last_term):
            factors = [term(fb, column) for column in columns]
            for row in rows:
                factor = fb.splat(term(fb, row), self.lanes)
                after += [fb.mul_add(factor, one, sums[len(after) + number]) for number, one in enumerate(factors)]
        return after
