"""The tile in registers that sums inner products: vectors along the contracted dimension.

`void tile(ptr a, ptr b, ptr c, i64 depth, i1 adds)` computes c[i, j] = sum over p of a[i, p] * b[j, p], where p is
contiguous in both. Worth it where few columns would leave lanes unused. The lanes of a sum are added in a fixed order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xlalite.backends.cpu.kernels.dot.numbers import Numbers
from xlalite.backends.cpu.llvm import (
    I1,
    I64,
    PTR,
    VOID,
    Function,
    ModuleBuilder,
    Value,
    vector,
    vector_constant,
    zero,
)
from xlalite.backends.cpu.types import representation
from xlalite.hlo.dtype import DType


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
        lanes = self._tile.lanes
        return vector_constant(vector(I1, lanes), [int(lane < used) for lane in range(lanes)])

    def _joined(self, parts: Sequence[Value]) -> Value:
        """The sum of the chains of one element, by halves."""
        while len(parts) > 1:
            half = len(parts) // 2
            rest = parts[2 * half :]
            parts = [*(self._numbers.add(self._fb, parts[i], parts[i + half]) for i in range(half)), *rest]
        return parts[0]

    def _store(self, sums: Sequence[Value]) -> None:
        """Adds the lanes of every sum and stores the rows of totals."""
        fb, tile = self._fb, self._tile
        c, align = fb.parameters[2], self._numbers.kept.size_bytes
        for i in range(tile.rows):
            line = self._totals(sums[i * tile.columns : (i + 1) * tile.columns])
            address = fb.gep(self._numbers.kept, c, i * tile.c_row) if i else c
            if tile.columns == 1:
                fb.store(fb.extract(line, 0), address, align)
            elif tile.columns == line.type.lanes:
                fb.store(line, address, align)
            else:
                used = [int(lane < tile.columns) for lane in range(line.type.lanes)]
                mask = vector_constant(line.type.with_scalar(I1), used)
                fb.masked_store(line, address, mask, align)

    def _totals(self, sums: Sequence[Value]) -> Value:
        """One vector whose lane j is the sum of the lanes of vector j: a tree, the same for each j."""
        fb, lanes = self._fb, self._tile.lanes
        width = 1 << max(len(sums) - 1, 0).bit_length()
        lines = [*sums, *([zero(self._wide)] * (width - len(sums)))]
        # Each line is a row of `groups` partial results, `lanes // groups` lanes each; a round joins two lines.
        while len(lines) > 1:
            half = len(lines) // 2
            lines = [self._paired(lines[i], lines[i + half], lanes // (width // len(lines))) for i in range(half)]
        line, extent = lines[0], lanes // width
        while extent > 1:
            extent //= 2
            every = range(0, line.type.lanes, 2 * extent)
            low = [start + lane for start in every for lane in range(extent)]
            line = self._numbers.add(
                fb, fb.shuffle(line, None, low), fb.shuffle(line, None, [lane + extent for lane in low])
            )
        return line

    def _paired(self, a: Value, b: Value, extent: int) -> Value:
        """Folds each run of `extent` lanes of a and b to half; a's folded runs come before b's, run by run."""
        lanes, half = self._tile.lanes, extent // 2
        low = [
            side * lanes + start + lane
            for start in range(0, lanes, extent)
            for side in (0, 1)
            for lane in range(half)
        ]
        high = [lane + half for lane in low]
        fb = self._fb
        return self._numbers.add(fb, fb.shuffle(a, b, low), fb.shuffle(a, b, high))
