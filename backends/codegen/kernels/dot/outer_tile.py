"""The tile in registers that sums outer products: vectors along one dimension, an element of the other in all lanes.

c[i, j] (+)= sum over p of a[i, p] * b[p, j]. The sums are in one chain each, or in one after another of equal lengths,
so that an element does not depend on the tile that it lies in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from xlalite.backends.codegen.kernels.dot.tile import Tile, TileBuilder
from xlalite.backends.codegen.kernels.scalars import Scalar, Scalars
from xlalite.backends.codegen.llvm import I1, PTR, Value, vector
from xlalite.hlo.records import dataclass

LINE_BYTES = 64
"""What is fetched at a time."""

_TILES_AHEAD = 2
"""How far ahead b is fetched: with 2 or 3, [8,1024] by [1024,8192] takes 3 ms instead of 8, with 1 5 ms, with 6 3.6."""


@dataclass(frozen=True, slots=True)
class OuterArguments:
    """What is known of a call's arguments, or the arguments.

    Attributes:
        a_row: Distance of a's rows.
        a_depth: Distance of a's columns.
        b_depth: Distance of b's rows.
        c_row: Distance of c's rows.
        piece: The terms after which sums begin anew.
        height: The rows that are stored.
        run: How many columns of a follow one another at that distance; the depth is a multiple of it, or less. 0 if
            all do.
        jump: Distance from where such a run ends to where the next one begins.
        masks: The lanes of each vector of a row that are used; None for all.
    """

    a_row: Scalar
    a_depth: Scalar
    b_depth: Scalar
    c_row: Scalar
    piece: Scalar
    height: Scalar
    run: Scalar
    jump: Scalar
    masks: tuple[Value | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OuterTile(Tile):
    """A tile whose last vector may be partly used; both operands are in the type of sums, of which there are terms.

    The strides of operands that lie as the program has them are arguments, so that products of all sizes share tiles;
    those of packed ones are known. b's is an argument where a's is known, too: that costs one register, and more
    products share the tile.

    Attributes:
        a_row: Distance of a's rows; None if it is an argument.
        a_depth: Distance of a's columns, likewise; if their places are looked up, how far behind these a begins.
        b_depth: Distance of b's rows, likewise.
        b_filled: Whether b's rows are read in whole vectors, behind the last column, too.
        looks_up_a: Whether a is a table of the places of its columns.
        looks_up_b: Whether b is a table of the places of its rows.
        narrows: Whether the number of columns is an argument, any that needs all vectors; else it is known.
        shortens: Whether the number of rows is an argument, too: all are summed, and the first ones stored.
        has_runs: Whether columns of a lie in several runs, which are two arguments more.
        adds: Whether `adds` counts: the sums may be added to those in c.
        begins_anew: Whether sums are added to c and begin anew after some terms, a multiple of the run.
        b_is_far: Whether b's rows come from beyond the second cache, a few columns of each: what comes next is fetched.
        in_pairs: Whether columns of a are taken two by two; for sums in one chain.
        may_pair: Whether they may be: there are an even number in each run.
        may_shorten: Whether rows behind the last one are there to be summed.
    """

    name: ClassVar[str] = "dot_tile"
    arguments: ClassVar[int] = 7

    a_row: int | None
    a_depth: int | None
    b_depth: int | None
    b_filled: bool
    looks_up_a: bool
    looks_up_b: bool
    narrows: bool
    shortens: bool
    has_runs: bool
    adds: bool
    begins_anew: bool
    b_is_far: bool = False
    in_pairs: bool = False
    may_pair: bool = False
    may_shorten: bool = False

    @property
    def most_general(self) -> OuterTile:
        """The tile that knows least among those that can take its place, little slower."""
        least = {"narrows": True, "has_runs": True, "adds": True, "begins_anew": True}
        may = {"in_pairs": self.may_pair, "shortens": self.may_shorten}
        return self.as_general_as(replace(self, b_depth=None, b_filled=False, **least, **may))

    def as_general_as(self, other: OuterTile) -> OuterTile:
        """The tile of these sizes that knows no more of a product than another."""
        narrows = self.narrows or other.narrows
        return replace(
            self,
            columns=-(-self.columns // self.lanes) * self.lanes if narrows else self.columns,
            b_depth=self.b_depth if self.b_depth == other.b_depth else None,
            b_filled=self.b_filled and other.b_filled,
            narrows=narrows,
            shortens=self.shortens or (other.shortens and self.may_shorten),
            has_runs=self.has_runs or other.has_runs,
            adds=self.adds or other.adds,
            begins_anew=self.begins_anew or other.begins_anew,
            in_pairs=self.in_pairs or (other.in_pairs and self.may_pair),
        )

    @property
    def argument_count(self) -> int:
        """With those about runs."""
        return self.arguments + 2 * self.has_runs

    @property
    def _starts(self) -> range:
        """The first columns of the vectors of a row."""
        return range(0, self.columns, self.lanes)

    def emit(self, builder: TileBuilder) -> None:
        """Stores the sums of all terms, or adds to them what comes to so many terms after others."""
        fb = builder.fb
        a, b, c, depth, adds, *arguments = fb.parameters
        sizes = None if self.narrows else self.columns, None if self.shortens else self.rows
        known = (self.a_row, self.a_depth, self.b_depth, None, None, *sizes)
        a_row, a_depth, b_depth, c_row, piece, width, height = (
            number if one is None else one for one, number in zip(known, arguments, strict=False)
        )
        run, jump = arguments[self.arguments :] if self.has_runs else (0, 0)
        if not builder.numbers.is_rare:
            ends = (*(start + self.lanes for start in self._starts[:-1]), width)
            masks = tuple(map(builder.below, self._starts, ends))
            call = OuterArguments(a_row, a_depth, b_depth, c_row, piece, height, run, jump, masks)
            self._compute(builder, call, (a, b, c), depth, adds)
            return
        # A few rows and columns after others, not improved by LLVM: compiled with many products, it is seldom called.
        fb.is_brief = fb.is_strength_reduced = True
        math, kept, (*_, columns, rows) = Scalars(fb), builder.kept, arguments
        with fb.loop(0, columns, self.columns) as column, fb.loop(0, rows, self.rows) as row:
            masks = tuple(builder.below(math.value(math.add(column, start)), columns) for start in self._starts)
            call = OuterArguments(a_row, a_depth, b_depth, c_row, piece, fb.sub(rows, row), run, jump, masks)
            lines = ((one, math.multiply(row, stride)) for one, stride in ((a, a_row), (c, c_row)))
            a_line, c_line = (math.address(kept, *line) for line in lines)
            self._compute(builder, call, (a_line, fb.gep(kept, b, column), fb.gep(kept, c_line, column)), depth, adds)

    def _compute(
        self, builder: TileBuilder, call: OuterArguments, places: tuple[Value, Value, Value], depth: Value, adds: Value
    ) -> None:
        """Stores the sums of all rows, or adds to them."""
        fb = builder.fb
        a, b, c = places
        if not self.begins_anew:
            _, _, *sums = self._sums(builder, call, a, b, depth)
            self._store(builder, c, call, sums, adds)
            return
        with fb.carried_loop(0, depth, call.piece, [a, b, c, adds], nonempty=True) as loop:
            terms = fb.smin(fb.sub(depth, loop.index), call.piece)
            before, b, c, begun = loop.values
            a, b, *sums = self._sums(builder, call, before, b, terms)
            self._store(builder, c, call, sums, begun)
            loop.yield_(a, b, c, fb.constant(I1, 1))

    def _sums(self, builder: TileBuilder, given: OuterArguments, a: Value, b: Value, depth: Value) -> list[Value]:
        """Sums over p in a loop, then over what fills no round of chains; after a and b behind them."""
        fb = builder.fb
        count = (self.rows + builder.numbers.flips) * len(self._starts)
        sums = builder.zeros(count * self.chains)
        if self.has_runs:
            run = fb.smin(Scalars(fb).value(given.run), depth)
            with fb.carried_loop(0, depth, run, [a, b, *sums], nonempty=True) as loop:
                now, b, *later = self._run(builder, given, loop.values, run, count)
                loop.yield_(Scalars(fb).address(builder.kept, now, given.jump), b, *later)
            a, b, *sums = loop.results
        else:
            a, b, *sums = self._run(builder, given, [a, b, *sums], depth, count)
        return [a, b, *builder.joined(sums, count)]

    def _run(
        self, builder: TileBuilder, given: OuterArguments, values: Sequence[Value], depth: Value, count: int
    ) -> list[Value]:
        """a, b and the sums of all chains after so many columns of a run."""
        fb, chains, steps = builder.fb, self.chains, self._steps(builder, count)
        whole = fb.sub(depth, fb.urem(depth, chains)) if chains > 1 else depth
        with fb.carried_loop(0, whole, steps, values, nonempty=chains == 1) as loop:
            now, later = loop.values[:2], list(loop.values[2:])
            for step in range(steps):
                chain = step % chains
                part = slice(chain * count, (chain + 1) * count)
                later[part] = self._step(builder, given, now, later[part], step)
            loop.yield_(*self._advanced(builder, given, now, steps), *later)
        a, b, *sums = loop.results
        if chains == 1:
            return [a, b, *sums]
        with fb.carried_loop(whole, depth, 1, [a, b, *sums[:count]]) as loop:
            now = loop.values[:2]
            later = self._step(builder, given, now, loop.values[2:], 0)
            loop.yield_(*self._advanced(builder, given, now, 1), *later)
        return [*loop.results, *sums[count:]]

    def _steps(self, builder: TileBuilder, count: int) -> int:
        """Terms of one round of a loop with so many sums."""
        # What the second term needs of b is read before the first one is done.
        fits = count + 2 * len(self._starts) < builder.fb.module.target.vector_registers
        return 2 if self.in_pairs and fits else self.chains

    def _advanced(self, builder: TileBuilder, given: OuterArguments, now: Sequence[Value], steps: int) -> list[Value]:
        math = Scalars(builder.fb)
        operands = zip(now, (given.a_depth, given.b_depth), (self.looks_up_a, self.looks_up_b), strict=True)
        return [
            math.address(PTR, place, steps)
            if looks_up
            else math.address(builder.kept, place, math.multiply(distance, steps))
            for place, distance, looks_up in operands
        ]

    def _step(
        self,
        builder: TileBuilder,
        given: OuterArguments,
        now: Sequence[Value],
        sums: Sequence[Value],
        ahead: int,
        panel: Value | None = None,
    ) -> list[Value]:
        """The outer product at one p; the row of b is copied to a panel."""
        fb, kept, math = builder.fb, builder.kept, Scalars(builder.fb)
        a, b = now
        across, offset = math.multiply(given.a_depth, ahead), math.multiply(given.b_depth, ahead)
        if self.looks_up_a:
            a = math.address(kept, fb.load(PTR, math.address(PTR, a, ahead), 8), given.a_depth)
            across = 0
        if self.looks_up_b:
            b, offset = fb.load(PTR, math.address(PTR, b, ahead), 8), given.b_depth
        b = math.address(kept, b, offset)
        places = zip(self._starts, given.masks, strict=True)
        lines = [builder.load(math.address(kept, b, start), None if self.b_filled else mask) for start, mask in places]
        if self.b_is_far:
            for start in range(0, self.columns, LINE_BYTES // kept.size_bytes):
                fb.prefetch(fb.gep(kept, b, _TILES_AHEAD * self.columns + start, inbounds=False))
        if panel is not None:
            for start, line in zip(self._starts, lines, strict=True):
                builder.store(line, math.address(kept, panel, start), None)
        after: list[Value] = []
        for row in range(self.rows):
            offset = math.add(math.multiply(given.a_row, row), across)
            element = fb.load(kept, math.address(kept, a, offset), kept.size_bytes)
            spread = fb.splat(element, self.lanes)
            for number, line in enumerate(lines):
                after.append(builder.numbers.multiply_add(fb, spread, line, sums[row * len(lines) + number]))
        if builder.numbers.flips:
            flips = zip(lines, sums[self.rows * len(lines) :], strict=True)
            after.extend(builder.numbers.add_flip(fb, line, total) for line, total in flips)
        return after

    def _store(self, builder: TileBuilder, c: Value, given: OuterArguments, sums: Sequence[Value], adds: Value) -> None:
        """Writes the sums to c; with `adds`, to those that are there."""
        fb, across = builder.fb, len(self._starts)
        if builder.numbers.flips:
            flips = sums[self.rows * across :]
            sums = [
                builder.numbers.without_flip(fb, total, flips[number % across])
                for number, total in enumerate(sums[: self.rows * across])
            ]
        # No sum is -0, so that adding 0 is the same as adding nothing.
        added = fb.splat(adds, self.lanes) if self.adds else None
        if not self.shortens:
            self._store_whole(builder, c, given, sums, added)
            return
        branch = fb.if_else(fb.icmp("sge", Scalars(fb).value(given.height), self.rows))
        with branch.then():
            self._store_whole(builder, c, given, sums, added)
            branch.yield_()
        with branch.otherwise():
            self._store_first(builder, c, given, sums, added)
            branch.yield_()

    def _store_whole(
        self, builder: TileBuilder, c: Value, given: OuterArguments, sums: Sequence[Value], added: Value | None
    ) -> None:
        across = len(self._starts)
        for row in range(self.rows):
            self._store_row(builder, c, given, sums[row * across : (row + 1) * across], added)
            c = Scalars(builder.fb).address(builder.kept, c, given.c_row)

    def _store_first(
        self, builder: TileBuilder, c: Value, given: OuterArguments, sums: Sequence[Value], added: Value | None
    ) -> None:
        """Writes as many rows as there are, out of memory."""
        fb, math, across = builder.fb, Scalars(builder.fb), len(self._starts)
        kept = fb.alloca(vector(builder.kept, self.lanes), self.rows * across, align=LINE_BYTES)
        for number, total in enumerate(sums):
            builder.store(total, math.address(builder.kept, kept, number * self.lanes), None)
        with fb.carried_loop(0, given.height, 1, [kept, c], nonempty=True) as loop:
            found, line = loop.values
            parts = [math.address(builder.kept, found, start) for start in self._starts]
            self._store_row(builder, line, given, [builder.load(part, None) for part in parts], added)
            behind = math.address(builder.kept, found, across * self.lanes)
            loop.yield_(behind, math.address(builder.kept, line, given.c_row))

    def _store_row(
        self, builder: TileBuilder, line: Value, given: OuterArguments, sums: Sequence[Value], added: Value | None
    ) -> None:
        """Writes the sums of a row; added to those that are there in the lanes of a mask."""
        fb = builder.fb
        for start, mask, total in zip(self._starts, given.masks, sums, strict=True):
            address = Scalars(fb).address(builder.kept, line, start)
            if added is not None:
                found = builder.load(address, added if mask is None else fb.and_(mask, added))
                total = builder.numbers.add(fb, total, found)
            builder.store(total, address, mask)
