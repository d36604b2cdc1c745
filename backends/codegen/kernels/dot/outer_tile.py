"""The tile in registers that sums outer products: vectors along one dimension, an element of the other in all lanes.

c[i, j] (+)= sum over p of a[i, p] * b[p, j]. The sums are in one chain each, or in one after another of equal lengths,
so that an element does not depend on the tile that it lies in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xlalite.backends.codegen.kernels.dot.tile import Tile, TileBuilder
from xlalite.backends.codegen.llvm import I1, I64, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class OuterTile(Tile):
    """A tile whose last vectors may be partly used; both operands are in the type of sums.

    Attributes:
        a_depth: Distance of a's columns.
        run: How many columns of a follow one another at that distance; the depth is a multiple of it. 0 if all do.
        jump: Distance from where such a run ends to where the next one begins.
        b_depth: Distance of b's rows.
        adds: Whether `adds` counts: the sums may be added to those in c.
        piece: Terms after which a sum is added to c and begins anew, a multiple of the run; 0 if it never does.
    """

    name: ClassVar[str] = "dot_tile"

    a_depth: int
    run: int
    jump: int
    b_depth: int
    adds: bool
    piece: int

    @property
    def _starts(self) -> range:
        """The first columns of the vectors of a row."""
        return range(0, self.columns, self.lanes)

    def emit(self, builder: TileBuilder) -> None:
        """Stores the sums of all terms, or adds to them what comes to so many terms after others."""
        fb = builder.fb
        a, b, c, depth, adds = fb.parameters
        if not self.piece:
            _, _, *sums = self._sums(builder, a, b, depth)
            self._store(builder, c, sums, adds)
            return
        with fb.carried_loop(0, depth, self.piece, [a, b, adds], nonempty=True) as loop:
            terms = fb.smin(fb.sub(depth, loop.index), self.piece)
            before, b, begun = loop.values
            a, b, *sums = self._sums(builder, before, b, terms)
            self._store(builder, c, sums, begun)
            loop.yield_(a, b, fb.constant(I1, 1))

    def _sums(self, builder: TileBuilder, a: Value, b: Value, depth: Value) -> list[Value]:
        """Sums over p in a loop, then over what fills no round of chains; after a and b behind them."""
        fb = builder.fb
        count = (self.rows + builder.numbers.flips) * len(self._starts)
        sums = builder.zeros(count * self.chains)
        if self.run:
            with fb.carried_loop(0, depth, self.run, [a, b, *sums]) as loop:
                now, b, *later = self._run(builder, loop.values, fb.constant(I64, self.run), count)
                loop.yield_(fb.gep(builder.kept, now, self.jump), b, *later)
            a, b, *sums = loop.results
        else:
            a, b, *sums = self._run(builder, [a, b, *sums], depth, count)
        return [a, b, *builder.joined(sums, count)]

    def _run(self, builder: TileBuilder, values: Sequence[Value], depth: Value, count: int) -> list[Value]:
        """a, b and the sums of all chains after so many columns of a run."""
        fb, chains = builder.fb, self.chains
        whole = fb.sub(depth, fb.urem(depth, chains)) if chains > 1 else depth
        with fb.carried_loop(0, whole, chains, values) as loop:
            now, later = loop.values[:2], list(loop.values[2:])
            for chain in range(chains):
                part = slice(chain * count, (chain + 1) * count)
                later[part] = self._step(builder, now[0], now[1], later[part], chain)
            loop.yield_(*self._advanced(builder, now[0], now[1], chains), *later)
        a, b, *sums = loop.results
        if chains == 1:
            return [a, b, *sums]
        with fb.carried_loop(whole, depth, 1, [a, b, *sums[:count]]) as loop:
            later = self._step(builder, loop.values[0], loop.values[1], loop.values[2:], 0)
            loop.yield_(*self._advanced(builder, loop.values[0], loop.values[1], 1), *later)
        return [*loop.results, *sums[count:]]

    def _advanced(self, builder: TileBuilder, a: Value, b: Value, steps: int) -> tuple[Value, Value]:
        fb, kept = builder.fb, builder.kept
        return fb.gep(kept, a, self.a_depth * steps), fb.gep(kept, b, self.b_depth * steps)

    def _step(self, builder: TileBuilder, a: Value, b: Value, sums: Sequence[Value], ahead: int) -> list[Value]:
        """The outer product at one p."""
        fb, kept = builder.fb, builder.kept
        lines = []
        for start in self._starts:
            offset = start + ahead * self.b_depth
            lines.append(builder.load(fb.gep(kept, b, offset) if offset else b, self.columns - start))
        after: list[Value] = []
        for row in range(self.rows):
            offset = row * self.a_row + ahead * self.a_depth
            element = fb.load(kept, fb.gep(kept, a, offset) if offset else a, kept.size_bytes)
            spread = fb.splat(element, self.lanes)
            for number, line in enumerate(lines):
                after.append(builder.numbers.multiply_add(fb, spread, line, sums[row * len(lines) + number]))
        if builder.numbers.flips:
            flips = zip(lines, sums[self.rows * len(lines) :], strict=True)
            after.extend(builder.numbers.add_flip(fb, line, total) for line, total in flips)
        return after

    def _store(self, builder: TileBuilder, c: Value, sums: Sequence[Value], adds: Value) -> None:
        """Writes the sums to c; with `adds`, to those that are there."""
        fb = builder.fb
        if builder.numbers.flips:
            across = len(self._starts)
            flips = sums[self.rows * across :]
            sums = [
                builder.numbers.without_flip(fb, total, flips[number % across])
                for number, total in enumerate(sums[: self.rows * across])
            ]
        offsets = [row * self.c_row + start for row in range(self.rows) for start in self._starts]
        addresses = [fb.gep(builder.kept, c, offset) if offset else c for offset in offsets]
        used = [self.columns - start for _ in range(self.rows) for start in self._starts]
        if self.adds:
            choice = fb.if_else(adds)
            with choice.then():
                found = map(builder.load, addresses, used)
                choice.yield_(*(builder.numbers.add(fb, a, b) for a, b in zip(list(found), sums, strict=True)))
            with choice.otherwise():
                choice.yield_(*sums)
            sums = choice.results
        for value, address, lanes in zip(sums, addresses, used, strict=True):
            builder.store(value, address, lanes)
