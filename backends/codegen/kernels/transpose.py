"""The transpose kernel: moves the minor dimension in tiles that fit registers.

A tile is as many rows as a vector has lanes; its vectors are loaded along the operand's minor dimension, transposed by
log2(lanes) rounds of shuffles and stored along the result's minor dimension, so both sides move whole vectors.
The parallel extent is the outermost of the other result dimensions, or strips of the longer side where there is none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from xlalite.backends.codegen.arrays.index import ZERO, Affine, Index, IndexMath, Position, row_major_strides
from xlalite.backends.codegen.arrays.ir_array import store_past_caches
from xlalite.backends.codegen.kernels.kernel import Declined, Kernel, KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry, open_kernel
from xlalite.backends.codegen.kernels.lane_exchange import exchanged
from xlalite.backends.codegen.kernels.loop_nest import task_loops
from xlalite.backends.codegen.llvm import Function, ModuleBuilder, Operand, Value, integer, vector
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.records import dataclass
from xlalite.passes.fusion.kernel_shape import KernelShape

_SMALLEST_SIZE = 4
"""Sizes below this are better off in vectors of a loop, and of bytes this size, too: [4,50000] turned round takes 17 us
in tiles, 5 in a loop."""

_FEW_BYTES = 1 << 18
"""Arrays up to this, as weights are, have tiles of side 8, which compile 1 ms sooner: [256,256] takes 10.3 us of one
core so and 8.4 with 16, [100,300] 4.6 and 6.1.
"""

_STRIP = 64
"""Rows or columns of one unit of the extent of a two-dimensional transpose; a multiple of every tile's side."""

_BLOCK = 64
"""Rows and columns of a block of tiles: so many pages of both sides are known to the processor at once."""

_STREAMED_BLOCK = 128
"""The same where only the operand's lines are in the caches; the tiles of a block then follow the operand's rows, whose
lines they share: 4096x4096 take 5.7 ms of one core, 7.2 in the other order, 9.2 with stores through the caches."""

_TILES_AHEAD = 2
"""How far along the operand's rows its lines are asked for: there are more rows at once than the processor foresees.
[63,64,1000] with 64 and 1000 exchanged takes 0.9 instead of 1.3 ms of one core, 2048x2048 1.4 instead of 1.6."""

_NEAR_ARRAYS = 2
"""Results up to so many times as large as the second cache have the lines of the next tile asked for, too: [300,400]
takes 15 instead of 21 us of one core, [1000,777] 241 instead of 285, but 2048x2048 up to 8 % more."""


def plan_transpose(request: KernelRequest, shape: KernelShape) -> TransposeKernel | Declined:
    """The kernel that moves an array in tiles."""
    root = request.body.root
    if root.operand(0).opcode != "parameter":
        return Declined("the transposed array is not in memory")
    rank = root.shape.rank
    lanes = request.target.lanes(8 * root.shape.dtype.size_bytes)
    if lanes == 1:
        return Declined("an element fills a vector")
    rows = root.attrs.dimensions.index(rank - 1)
    small = min(root.shape.dims[-1], root.shape.dims[rows])
    if small < _SMALLEST_SIZE + (root.shape.dtype.size_bytes == 1):
        return Declined(f"a side of the tile has only {small} elements")
    is_quick = root.shape.dtype.size_bytes >= 4 and root.shape.size_bytes <= _FEW_BYTES
    most = min(lanes, 8 if is_quick else 16)
    side = min(most, 1 << (small.bit_length() - 1))
    outer = tuple(d for d in range(rank - 1) if d != rows and root.shape.dims[d] != 1)
    return TransposeKernel(request, rows, side, outer)


@dataclass(frozen=True, slots=True)
class TransposeKernel(Kernel):
    """How a transpose is cut: `rows` is the result dimension that is minor in the operand.

    Attributes:
        rows: Result dimension along which the operand's memory is contiguous.
        side: Rows and columns of a tile.
        outer: The other result dimensions, but the minor one and those of size 1.
    """

    writes_once: ClassVar[bool] = True

    rows: int
    side: int
    outer: tuple[int, ...]

    @property
    def extent(self) -> int:
        """The outermost of the other dimensions, or strips where there is none."""
        dims = self.request.body.root.shape.dims
        return dims[self.outer[0]] if self.outer else -(-max(dims[-1], dims[self.rows]) // _STRIP)

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """Walks over tiles."""
        entry = open_kernel(module, name, self.request)
        entry.fb.is_as_written = not entry.outputs[0].streams
        root = self.request.body.root
        if root.shape.element_count:
            _TransposeEmitter(entry, root, self).emit()
        entry.close()
        return entry.function


class _TransposeEmitter:
    def __init__(self, entry: KernelEntry, root: HloInstruction, tiles: TransposeKernel) -> None:
        self._entry = entry
        self._tiles = tiles
        self._dims = root.shape.dims
        self._type = integer(8 * root.shape.dtype.size_bytes)
        self._align = min(root.shape.dtype.size_bytes, 8)
        operand = root.operand(0)
        strides = row_major_strides(operand.shape.dims)
        self._source_strides = tuple(strides[d] for d in root.attrs.dimensions)
        self._target_strides = row_major_strides(self._dims)
        self._source = entry.inputs[operand.attrs.number].pointer
        self._target = entry.outputs[0].pointer
        self._streams = entry.outputs[0].streams
        near = _NEAR_ARRAYS * tiles.request.target.cache_bytes[1]
        self._asks_for_targets = not self._streams and root.shape.size_bytes <= near

    def emit(self) -> None:
        """Loops over the outer dimensions, then over tiles."""
        outer = self._tiles.outer
        with task_loops(self._entry, [self._dims[d] for d in outer]) as index:
            self._tile_loops(dict(zip(outer, index, strict=True)))

    def _tile_loops(self, positions: dict[int, Position]) -> None:
        """Blocks of tiles; then the elements that fill no tile."""
        fb, side = self._entry.fb, self._tiles.side
        rows, columns = self._dims[self._tiles.rows], self._dims[-1]
        down, across = self._part(rows, is_longer=rows > columns), self._part(columns, is_longer=rows <= columns)
        whole_rows, whole_columns = self._whole(rows, down), self._whole(columns, across)
        block = _STREAMED_BLOCK if self._streams else _BLOCK
        with self._blocks(*whole_columns, block) as right, self._blocks(*whole_rows, block) as below:
            outer, inner = (right, below) if self._streams else (below, right)
            with fb.loop(*outer, side) as slow, fb.loop(*inner, side) as fast:
                place = (fast, slow) if self._streams else (slow, fast)
                self._tile(positions, *map(Affine, place))
        if rows % side:
            with fb.loop(*whole_columns) as column, fb.loop(*self._rest(rows, down)) as row:
                self._one(positions, Affine(row), Affine(column))
        if columns % side:
            with fb.loop(*self._rest(columns, across)) as column, fb.loop(*down) as row:
                self._one(positions, Affine(row), Affine(column))

    def _part(self, size: int, *, is_longer: bool) -> tuple[Operand, Operand]:
        """What of a side is the task's: where it begins and ends."""
        fb, entry = self._entry.fb, self._entry
        if self._tiles.outer or not is_longer:
            return 0, size
        return fb.mul(entry.begin, _STRIP, "nsw"), fb.smin(fb.mul(entry.end, _STRIP, "nsw"), size)

    def _whole(self, size: int, part: tuple[Operand, Operand]) -> tuple[Operand, Operand]:
        """What of a part of a side whole tiles have."""
        (begin, end), whole = part, size - size % self._tiles.side
        return begin, self._entry.fb.smin(end, whole) if isinstance(end, Value) else whole

    def _rest(self, size: int, part: tuple[Operand, Operand]) -> tuple[Operand, Operand]:
        """What of a part of a side no whole tile has."""
        (begin, end), whole = part, size - size % self._tiles.side
        return self._entry.fb.smax(begin, whole) if isinstance(begin, Value) else whole, end

    @contextmanager
    def _blocks(self, start: Operand, stop: Operand, block: int) -> Iterator[tuple[Operand, Operand]]:
        """A loop over blocks, if there are several: where each begins and ends."""
        fb = self._entry.fb
        if isinstance(start, int) and isinstance(stop, int) and stop - start <= block:
            yield start, stop
            return
        with fb.loop(start, stop, block) as first:
            yield first, fb.smin(fb.add(first, block), stop)

    def _offset(self, strides: tuple[int, ...], positions: dict[int, Position], row: Affine, column: Affine) -> Value:
        index: Index = tuple(
            row if d == self._tiles.rows else column if d == len(self._dims) - 1 else positions.get(d, ZERO)
            for d in range(len(self._dims))
        )
        places = IndexMath(self._entry.fb, 1)
        return places.vector(places.linear(index, strides))

    def _one(self, positions: dict[int, Position], row: Affine, column: Affine) -> None:
        fb = self._entry.fb
        source = fb.gep(self._type, self._source, self._offset(self._source_strides, positions, row, column))
        target = fb.gep(self._type, self._target, self._offset(self._target_strides, positions, row, column))
        fb.store(fb.load(self._type, source, self._align), target, self._align)

    def _tile(self, positions: dict[int, Position], row: Affine, column: Affine) -> None:
        fb, side = self._entry.fb, self._tiles.side
        wide = vector(self._type, side)
        source = fb.gep(self._type, self._source, self._offset(self._source_strides, positions, row, column))
        target = fb.gep(self._type, self._target, self._offset(self._target_strides, positions, row, column))
        down = self._source_strides[-1]
        across = self._target_strides[self._tiles.rows]
        loaded = [
            fb.load(wide, fb.gep(self._type, source, number * down) if number else source, self._align)
            for number in range(side)
        ]
        for number in range(side):
            fb.prefetch(fb.gep(self._type, source, number * down + _TILES_AHEAD * side))
            if self._asks_for_targets:
                fb.prefetch(fb.gep(self._type, target, number * across + side), write=True)
        lines = exchanged(fb, loaded)
        addresses = [fb.gep(self._type, target, number * across) if number else target for number in range(side)]
        if self._streams:
            # Lines that are a multiple of their size apart are aligned alike.
            period = wide.size_bytes // math.gcd(wide.size_bytes, across * self._type.size_bytes)
            for first in range(min(period, side)):
                store_past_caches(fb, lines[first::period], addresses[first::period], self._align)
        else:
            for line, address in zip(lines, addresses, strict=True):
                fb.store(line, address, self._align)
