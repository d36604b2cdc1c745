"""The tile in registers that sums inner products: vectors along the contracted dimension.

c[i, j] = sum over p of a[i, p] * b[j, p], where p is contiguous in both. Worth it where few columns would leave lanes
unused. The lanes of a sum are added in a fixed order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

from xlalite.backends.codegen.arrays.types import representation
from xlalite.backends.codegen.kernels.dot.tile import Tile, TileBuilder
from xlalite.backends.codegen.kernels.scalars import Scalar, Scalars
from xlalite.backends.codegen.llvm import I64, PTR, Value, constant
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType


@dataclass(frozen=True, slots=True)
class _Arguments:
    """Where a and b begin, the distances of rows of a, b and c, and the number of p; that of a short tile is known."""

    a: Value
    b: Value
    a_row: Scalar
    b_row: Scalar
    c_row: Scalar
    depth: Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerTile(Tile):
    """A tile with at most as many columns as lanes.

    Attributes:
        a_row: Distance of a's rows; None if it is an argument.
        b_row: Distance of b's rows, likewise.
        c_row: Distance of c's rows, likewise.
        depth: Number of p, likewise.
        a_type: Element type of a in memory; None for the type of sums.
        b_type: Element type of b in memory; None for the type of sums.
        looks_up_a: Whether a is a table of the places of the runs of its rows.
        looks_up_b: Whether b is one of those of its rows.
        has_rests: Whether runs have other terms than whole rounds of chains.
        begins_anew: Whether there may be more terms than a chain of sums should have.
        adds: Whether `adds` counts: the sums may be added to those in c.
    """

    name: ClassVar[str] = "dot_inner"
    arguments: ClassVar[int] = 3

    a_row: int | None
    b_row: int | None
    c_row: int | None
    depth: int | None
    a_type: DType | None
    b_type: DType | None
    looks_up_a: bool = False
    looks_up_b: bool = False
    has_rests: bool = True
    begins_anew: bool = False
    adds: bool = False

    @property
    def argument_count(self) -> int:
        """With the terms of a run, and how far behind their places a and b begin."""
        return self.arguments + 3 * self._has_runs

    @property
    def _has_runs(self) -> bool:
        return self.looks_up_a or self.looks_up_b

    def emit(self, builder: TileBuilder) -> None:
        """Sums over whole vectors of p in a loop, then over the rest."""
        fb, count = builder.fb, self.rows * self.columns
        math = Scalars(fb)
        a, b, _, depth, _, *distances = fb.parameters
        known = (self.a_row, self.b_row, self.c_row, self.depth)
        dynamic = (*distances[: self.arguments], depth)
        numbers = (v if one is None else one for one, v in zip(known, dynamic, strict=True))
        given = _Arguments(a, b, *numbers)
        if self._has_runs:
            sums = self._in_runs(builder, given, *distances[self.arguments :])
            self._store(builder, given, builder.joined(sums, count))
            return
        step = self.lanes * self.chains
        whole = math.subtract(given.depth, math.remainder(given.depth, step))
        sums = builder.zeros(count * self.chains)
        longest = builder.numbers.longest_chain * step
        if longest and (not isinstance(whole, int) or whole > longest):
            with fb.carried_loop(0, whole, longest, sums) as pieces:
                end = fb.smin(fb.add(pieces.index, longest), math.value(whole))
                found = self._sums(builder, given, pieces.index, end, builder.zeros(count * self.chains))
                pieces.yield_(*map(partial(builder.numbers.add, fb), pieces.values, found))
            sums = list(pieces.results)
        elif whole != 0:
            sums = self._sums(builder, given, 0, whole, sums)
        if isinstance(whole, int) and isinstance(given.depth, int):
            for chain, start in enumerate(range(whole, given.depth, self.lanes)):
                part = slice(chain * count, (chain + 1) * count)
                mask = builder.below(start, given.depth)
                sums[part] = self._step(builder, given, start, mask, sums[part])
        else:
            sums = self._rest(builder, given, whole, sums)
        self._store(builder, given, builder.joined(sums, count))

    def _in_runs(
        self, builder: TileBuilder, given: _Arguments, run: Value, a_place: Value, b_place: Value
    ) -> list[Value]:
        """Sums of all chains over one run after the other."""
        fb, math, lanes = builder.fb, Scalars(builder.fb), self.lanes * self.chains
        whole = fb.sub(run, fb.urem(run, lanes))
        sides = (a_place, self.looks_up_a, self.a_type), (b_place, self.looks_up_b, self.b_type)

        def summed(first: Scalar, last: Scalar, sums: Sequence[Value]) -> list[Value]:
            with fb.carried_loop(first, last, 1, sums) as loop:
                begins = list[Value]()
                for pointer, (place, looks_up, dtype) in zip((given.a, given.b), sides, strict=True):
                    memory = builder.kept if dtype is None else representation(dtype).memory
                    begin = fb.load(PTR, fb.gep(PTR, pointer, loop.index), 8) if looks_up else pointer
                    begins.append(math.address(memory, begin, place if looks_up else fb.mul(loop.index, run)))
                a, b = begins
                now = replace(given, a=a, b=b, depth=run)
                later = self._sums(builder, now, 0, whole, loop.values)
                loop.yield_(*(self._rest(builder, now, whole, later) if self.has_rests else later))
            return list(loop.results)

        runs = fb.udiv(math.value(given.depth), run)
        zeros = builder.zeros(self.rows * self.columns * self.chains)
        if not self.begins_anew:
            return summed(0, runs, zeros)
        most = fb.udiv(constant(I64, builder.numbers.longest_chain * lanes), run)
        with fb.carried_loop(0, runs, most, zeros) as pieces:
            found = summed(pieces.index, fb.smin(fb.add(pieces.index, most), runs), zeros)
            pieces.yield_(*map(partial(builder.numbers.add, fb), pieces.values, found))
        return list(pieces.results)

    def _rest(self, builder: TileBuilder, given: _Arguments, whole: Scalar, sums: Sequence[Value]) -> list[Value]:
        """The sums with the products of what fills no round of chains."""
        count = self.rows * self.columns
        with builder.fb.carried_loop(whole, given.depth, self.lanes, sums[:count]) as rest:
            mask = builder.below(rest.index, given.depth)
            rest.yield_(*self._step(builder, given, rest.index, mask, rest.values))
        return [*rest.results, *sums[count:]]

    def _sums(
        self, builder: TileBuilder, given: _Arguments, start: Scalar, end: Scalar, sums: Sequence[Value]
    ) -> list[Value]:
        """Sums of all chains over a number of p that all chains have."""
        count = self.rows * self.columns
        with builder.fb.carried_loop(start, end, self.lanes * self.chains, sums) as loop:
            later = list(loop.values)
            for chain in range(self.chains):
                part = slice(chain * count, (chain + 1) * count)
                place = Scalars(builder.fb).add(loop.index, chain * self.lanes)
                later[part] = self._step(builder, given, place, None, later[part])
            loop.yield_(*later)
        return list(loop.results)

    def _step(
        self, builder: TileBuilder, given: _Arguments, p: Scalar, mask: Value | None, sums: Sequence[Value]
    ) -> list[Value]:
        """Products of one vector of p, of which the lanes of a mask count."""
        fb, numbers, math = builder.fb, builder.numbers, Scalars(builder.fb)

        def line(pointer: Value, dtype: DType | None, distance: Scalar) -> Value:
            memory = numbers.kept if dtype is None else representation(dtype).memory
            address = math.address(memory, math.address(memory, pointer, distance), p)
            stored = builder.load(address, mask, memory)
            return stored if dtype is None else numbers.take(fb, dtype, stored)

        lines = [line(given.b, self.b_type, math.multiply(given.b_row, j)) for j in range(self.columns)]
        after: list[Value] = []
        for i in range(self.rows):
            left = line(given.a, self.a_type, math.multiply(given.a_row, i))
            for j, right in enumerate(lines):
                after.append(numbers.multiply_add(fb, left, right, sums[i * self.columns + j]))
        return after

    def _store(self, builder: TileBuilder, given: _Arguments, sums: Sequence[Value]) -> None:
        """Adds the lanes of every sum and stores the totals, or adds them to what is there, a row at a time."""
        math, columns = Scalars(builder.fb), self.columns
        used = builder.below(0, columns)
        for i in range(self.rows):
            row = math.address(builder.kept, builder.fb.parameters[2], math.multiply(given.c_row, i))
            total = self._totals(builder, sums[i * columns : (i + 1) * columns])
            if self.adds:
                # No sum is -0, so that adding 0 is the same as adding nothing.
                adds = builder.fb.splat(builder.fb.parameters[4], self.lanes)
                found = builder.load(row, adds if used is None else builder.fb.and_(used, adds))
                total = builder.numbers.add(builder.fb, total, found)
            builder.store(total, row, used)

    def _totals(self, builder: TileBuilder, sums: Sequence[Value]) -> Value:
        """One vector whose lane j is the sum of the lanes of vector j: a tree, the same for each j.

        Where there are two vectors, the halves of one are added in the places of the first halves, and those of the
        other in the places of the second ones; then the same with halves of halves.
        """
        lines: list[Value | None] = [*sums, *[None] * (self.lanes - len(sums))]
        while len(lines) > 1:
            half = len(lines) // 2
            pairs = zip(lines[:half], lines[half:], strict=True)
            lines = [None if a is None else self._halves_added(builder, a, b, half) for a, b in pairs]
        (total,) = lines
        assert total is not None, "a tile has columns"
        return total

    def _halves_added(self, builder: TileBuilder, a: Value, b: Value | None, half: int) -> Value:
        fb, lanes = builder.fb, range(self.lanes)
        if b is None:
            return builder.numbers.add(fb, a, fb.shuffle(a, None, [lane ^ half for lane in lanes]))
        low = fb.shuffle(a, b, [lane if not lane & half else self.lanes + lane - half for lane in lanes])
        high = fb.shuffle(a, b, [lane + half if not lane & half else self.lanes + lane for lane in lanes])
        return builder.numbers.add(fb, low, high)
