"""The tile in registers that sums inner products: vectors along the contracted dimension.

c[i, j] = sum over p of a[i, p] * b[j, p], where p is contiguous in both. Worth it where few columns would leave lanes
unused. The lanes of a sum are added in a fixed order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from xlalite.backends.codegen.arrays.types import representation
from xlalite.backends.codegen.kernels.dot.tile import Tile, TileBuilder
from xlalite.backends.codegen.kernels.lane_exchange import exchanged
from xlalite.backends.codegen.llvm import Value, zero
from xlalite.hlo.types.dtype import DType

_GROUP_BITS = 128
"""Totals are stored in groups of this width: shuffles inside it are the cheapest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerTile(Tile):
    """A tile with at most as many columns as lanes.

    Attributes:
        a_row: Distance of a's rows.
        c_row: Distance of c's rows.
        depth: Number of p.
        a_type: Element type of a in memory; None for the type of sums.
        b_type: Element type of b in memory; None for the type of sums.
        b_row: Distance of b's rows.
    """

    name: ClassVar[str] = "dot_inner"

    a_row: int
    c_row: int
    depth: int
    a_type: DType | None
    b_type: DType | None
    b_row: int

    def emit(self, builder: TileBuilder) -> None:
        """Sums over whole vectors of p in a loop, then over the rest."""
        fb, count = builder.fb, self.rows * self.columns
        step = self.lanes * self.chains
        whole = self.depth - self.depth % step
        sums = builder.zeros(count * self.chains)
        longest = (builder.numbers.longest_chain or whole) * step
        if whole > longest:
            with fb.carried_loop(0, whole, longest, sums) as pieces:
                end = fb.smin(fb.add(pieces.index, longest), whole)
                found = self._sums(builder, pieces.index, end, builder.zeros(count * self.chains))
                pieces.yield_(*map(partial(builder.numbers.add, fb), pieces.values, found))
            sums = list(pieces.results)
        elif whole:
            sums = self._sums(builder, 0, whole, sums)
        for chain, start in enumerate(range(whole, self.depth, self.lanes)):
            part = slice(chain * count, (chain + 1) * count)
            sums[part] = self._step(builder, None, start, self.depth - start, sums[part])
        self._store(builder, builder.joined(sums, count))

    def _sums(self, builder: TileBuilder, start: Value | int, end: Value | int, sums: Sequence[Value]) -> list[Value]:
        """Sums of all chains over a number of p that all chains have."""
        count = self.rows * self.columns
        with builder.fb.carried_loop(start, end, self.lanes * self.chains, sums) as loop:
            later = list(loop.values)
            for chain in range(self.chains):
                part = slice(chain * count, (chain + 1) * count)
                later[part] = self._step(builder, loop.index, chain * self.lanes, self.lanes, later[part])
            loop.yield_(*later)
        return list(loop.results)

    def _step(
        self, builder: TileBuilder, base: Value | None, offset: int, used: int, sums: Sequence[Value]
    ) -> list[Value]:
        """Products of one vector of p, of which the first `used` lanes count."""
        fb, numbers = builder.fb, builder.numbers

        def line(pointer: Value, dtype: DType | None, distance: int) -> Value:
            memory = numbers.kept if dtype is None else representation(dtype).memory
            address = pointer if base is None else fb.gep(memory, pointer, base)
            stored = builder.load(fb.gep(memory, address, distance) if distance else address, used, memory)
            return stored if dtype is None else numbers.take(fb, dtype, stored)

        a, b = fb.parameters[:2]
        lines = [line(b, self.b_type, offset + j * self.b_row) for j in range(self.columns)]
        after: list[Value] = []
        for i in range(self.rows):
            left = line(a, self.a_type, offset + i * self.a_row)
            for j, right in enumerate(lines):
                after.append(numbers.multiply_add(fb, left, right, sums[i * self.columns + j]))
        return after

    def _store(self, builder: TileBuilder, sums: Sequence[Value]) -> None:
        """Adds the lanes of every sum and stores the totals, a few neighbours at a time."""
        fb, kept = builder.fb, builder.kept
        c = fb.parameters[2]
        group = min(max(1, _GROUP_BITS // kept.bits), self.lanes)
        for i in range(self.rows):
            for j in range(0, self.columns, group):
                used = min(group, self.columns - j)
                line = self._totals(builder, sums[i * self.columns + j : i * self.columns + j + used], group)
                offset = i * self.c_row + j
                address = fb.gep(kept, c, offset) if offset else c
                if used == group:
                    fb.store(line, address, kept.size_bytes)
                    continue
                for lane in range(used):
                    fb.store(fb.extract(line, lane), fb.gep(kept, address, lane), kept.size_bytes)

    def _totals(self, builder: TileBuilder, sums: Sequence[Value], group: int) -> Value:
        """One vector whose lane j is the sum of the lanes of vector j: a tree, the same for each j."""
        fb, add = builder.fb, builder.numbers.add
        lines = []
        for line in sums:
            while line.type.lanes > group:
                line = add(fb, *fb.split(line))
            lines.append(line)
        lines += [zero(lines[0].type)] * (group - len(lines))
        lines = exchanged(fb, lines)
        while len(lines) > 1:
            half = len(lines) // 2
            lines = [add(fb, lines[i], lines[i + half]) for i in range(half)]
        return lines[0]
