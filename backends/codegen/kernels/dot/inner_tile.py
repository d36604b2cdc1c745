"""The tile in registers that sums inner products: vectors along the contracted dimension.

`void tile(ptr a, ptr b, ptr c, i64 depth, i1 adds)` computes c[i, j] = sum over p of a[i, p] * b[j, p], where p is
contiguous in both. Worth it where few columns would leave lanes unused. The lanes of a sum are added in a fixed order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xlalite.backends.codegen.arrays.types import representation
from xlalite.backends.codegen.kernels.dot.numbers import Numbers
from xlalite.backends.codegen.kernels.dot.packing import exchanged
from xlalite.backends.codegen.llvm import (
    I1,
    I64,
    PTR,
    VOID,
    Function,
    ModuleBuilder,
    Value,
    lane_mask,
    vector,
    zero,
)
from xlalite.hlo.types.dtype import DType

_GROUP_BITS = 128
"""Totals are stored in groups of this width: shuffles inside it are the cheapest."""


@dataclass(frozen=True, slots=True)
class InnerTile:
    """A tile. Strides are in elements.

    Attributes:
        rows: Number of i.
        columns: Number of j; at most the lanes.
        depth: Number of p.
        lanes: Lanes of a vector.
        a_type: Element type of a in memory; None for the type of sums.
        a_row: Distance of a's rows.
        b_type: Element type of b in memory; None for the type of sums.
        b_row: Distance of b's rows.
        c_row: Distance of c's rows.
        chains: Number of vectors that a sum is split into.
    """

    rows: int
    columns: int
    depth: int
    lanes: int
    a_type: DType | None
    a_row: int
    b_type: DType | None
    b_row: int
    c_row: int
    chains: int = 1


def inner_tile(module: ModuleBuilder, numbers: Numbers, tile: InnerTile) -> Function:
    """The function of a tile, shared by all kernels of a module."""
    key = ("inner tile", numbers.kept, tile)

    def build() -> Function:
        name = module.unique_name(f"dot_inner_{tile.rows}x{tile.columns}")
        return _InnerTileEmitter(module, name, numbers, tile).emit()

    return module.define_once(key, build)


class _InnerTileEmitter:
    def __init__(self, module: ModuleBuilder, name: str, numbers: Numbers, tile: InnerTile) -> None:
        self._fb = module.function(
            name,
            VOID,
            (PTR, PTR, PTR, I64, I1),
            parameter_attributes=("noalias readonly", "noalias readonly", "noalias", "", ""),
            attributes=("nounwind", "noinline"),
            linkage="internal",
        )
        self._numbers = numbers
        self._tile = tile
        self._wide = vector(numbers.kept, tile.lanes)

    def emit(self) -> Function:
        fb, tile = self._fb, self._tile
        count = tile.rows * tile.columns
        step = tile.lanes * tile.chains
        whole = tile.depth - tile.depth % step
        sums: list[Value] = [zero(self._wide)] * (count * tile.chains)
        if whole:
            with fb.carried_loop(0, whole, step, sums) as loop:
                later = list(loop.values)
                for chain in range(tile.chains):
                    part = slice(chain * count, (chain + 1) * count)
                    later[part] = self._step(loop.index, chain * tile.lanes, tile.lanes, later[part])
                loop.yield_(*later)
            sums = list(loop.results)
        for chain, start in enumerate(range(whole, tile.depth, tile.lanes)):
            part = slice(chain * count, (chain + 1) * count)
            sums[part] = self._step(None, start, tile.depth - start, sums[part])
        self._store([self._joined(sums[number::count]) for number in range(count)])
        fb.ret()
        return fb.function

    def _step(self, base: Value | None, offset: int, used: int, sums: Sequence[Value]) -> list[Value]:
        """Products of one vector of p, of which the first `used` lanes count."""
        tile = self._tile
        a, b = self._fb.parameters[:2]
        lines = [self._line(b, tile.b_type, base, offset + j * tile.b_row, used) for j in range(tile.columns)]
        after: list[Value] = []
        for i in range(tile.rows):
            line = self._line(a, tile.a_type, base, offset + i * tile.a_row, used)
            for j, other in enumerate(lines):
                after.append(self._numbers.multiply_add(self._fb, line, other, sums[i * tile.columns + j]))
        return after

    def _line(self, pointer: Value, dtype: DType | None, base: Value | None, offset: int, used: int) -> Value:
        fb, lanes = self._fb, self._tile.lanes
        memory = self._numbers.kept if dtype is None else representation(dtype).memory
        address = pointer if base is None else fb.gep(memory, pointer, base)
        address = fb.gep(memory, address, offset) if offset else address
        wide, align = vector(memory, lanes), memory.size_bytes
        if used >= lanes:
            stored = fb.load(wide, address, align)
        else:
            stored = fb.masked_load(wide, address, self._mask(used), zero(wide), align)
        return stored if dtype is None else self._numbers.take(fb, dtype, stored)

    def _mask(self, used: int) -> Value:
        return lane_mask(self._tile.lanes, used)

    def _joined(self, parts: Sequence[Value]) -> Value:
        """The sum of the chains of one element, by halves."""
        while len(parts) > 1:
            half = len(parts) // 2
            rest = parts[2 * half :]
            parts = [*(self._numbers.add(self._fb, parts[i], parts[i + half]) for i in range(half)), *rest]
        return parts[0]

    def _store(self, sums: Sequence[Value]) -> None:
        """Adds the lanes of every sum and stores the totals, a few neighbours at a time."""
        fb, tile = self._fb, self._tile
        c, kept = fb.parameters[2], self._numbers.kept
        group = min(max(1, _GROUP_BITS // kept.bits), tile.lanes)
        for i in range(tile.rows):
            for j in range(0, tile.columns, group):
                used = min(group, tile.columns - j)
                line = self._totals(sums[i * tile.columns + j : i * tile.columns + j + used], group)
                offset = i * tile.c_row + j
                address = fb.gep(kept, c, offset) if offset else c
                if used == group:
                    fb.store(line, address, kept.size_bytes)
                    continue
                for lane in range(used):
                    fb.store(fb.extract(line, lane), fb.gep(kept, address, lane), kept.size_bytes)

    def _totals(self, sums: Sequence[Value], group: int) -> Value:
        """One vector whose lane j is the sum of the lanes of vector j: a tree, the same for each j."""
        fb, add = self._fb, self._numbers.add
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
