"""The tile in registers that sums inner products: vectors along the contracted dimension.

c[i, j] = sum over p of a[i, p] * b[j, p], where p is contiguous in both. Worth it where few columns would leave lanes
unused. The lanes of a sum are added in a fixed order.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from xlalite.backends.codegen.arrays.types import representation
from xlalite.backends.codegen.kernels.dot.tile import Tile, TileBuilder
from xlalite.backends.codegen.kernels.scalars import Scalar, Scalars
from xlalite.backends.codegen.llvm import Value
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType


@dataclass(frozen=True, slots=True)
class _Arguments:
    """The distances of rows of a, b and c, and the number of p; those of a short tile are known."""

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
    """

    name: ClassVar[str] = "dot_inner"
    arguments: ClassVar[int] = 3

    a_row: int | None
    b_row: int | None
    c_row: int | None
    depth: int | None
    a_type: DType | None
    b_type: DType | None

    def emit(self, builder: TileBuilder) -> None:
        """Sums over whole vectors of p in a loop, then over the rest."""
        fb, count = builder.fb, self.rows * self.columns
        math = Scalars(fb)
        _, _, _, depth, _, *distances = fb.parameters
        known = (self.a_row, self.b_row, self.c_row, self.depth)
        given = _Arguments(*(v if one is None else one for one, v in zip(known, (*distances, depth), strict=True)))
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
            with fb.carried_loop(whole, given.depth, self.lanes, sums[:count]) as rest:
                mask = builder.below(rest.index, given.depth)
                rest.yield_(*self._step(builder, given, rest.index, mask, rest.values))
            sums[:count] = rest.results
        self._store(builder, given, builder.joined(sums, count))

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

        a, b = fb.parameters[:2]
        lines = [line(b, self.b_type, math.multiply(given.b_row, j)) for j in range(self.columns)]
        after: list[Value] = []
        for i in range(self.rows):
            left = line(a, self.a_type, math.multiply(given.a_row, i))
            for j, right in enumerate(lines):
                after.append(numbers.multiply_add(fb, left, right, sums[i * self.columns + j]))
        return after

    def _store(self, builder: TileBuilder, given: _Arguments, sums: Sequence[Value]) -> None:
        """Adds the lanes of every sum and stores the totals, a row at a time."""
        math, columns = Scalars(builder.fb), self.columns
        used = builder.below(0, columns)
        for i in range(self.rows):
            row = math.address(builder.kept, builder.fb.parameters[2], math.multiply(given.c_row, i))
            builder.store(self._totals(builder, sums[i * columns : (i + 1) * columns]), row, used)

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
