"""The transpose kernel: moves the minor dimension in tiles that fit registers.

A tile is as many rows as a vector has lanes; its vectors are loaded along the operand's minor dimension, transposed by
log2(lanes) rounds of shuffles and stored along the result's minor dimension, so both sides move whole vectors.
The parallel extent is the outermost of the other result dimensions, or strips of the longer side where there is none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import ClassVar

from xlalite.backends.codegen.arrays.index import ZERO, Affine, IndexMath, row_major_strides
from xlalite.backends.codegen.arrays.ir_array import store_past_caches
from xlalite.backends.codegen.kernels.kernel import Declined, Kernel, KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry, open_kernel
from xlalite.backends.codegen.kernels.lane_exchange import exchanged
from xlalite.backends.codegen.kernels.loop_nest import task_loops
from xlalite.backends.codegen.kernels.scalars import Scalar
from xlalite.backends.codegen.llvm import (
    I64,
    PTR,
    VOID,
    Function,
    FunctionBuilder,
    ModuleBuilder,
    Type,
    Value,
    integer,
    vector,
)
from xlalite.hlo.records import dataclass
from xlalite.passes.fusion.kernel_shape import KernelShape

_SMALLEST_SIZE = 4
"""Sizes below this are better off in vectors of a loop, and of bytes this size, too: [4,50000] turned round takes 17 us
in tiles, 5 in a loop."""

_FEW_BYTES = 1 << 18
"""Arrays up to this, as weights are, have tiles of side 8, which compile 1 ms sooner: [256,256] takes 10.3 us of one
core so and 8.4 with 16, [100,300] 4.6 and 6.1.
"""

_FEW_ELEMENTS = 256
"""Elements of a matrix up to which its tiles are turned where they are met."""

_STRIP = 64
"""Rows or columns of one unit of the extent of a two-dimensional transpose; a multiple of every tile's side, so that no
tile begins in the unit before. The last unit has the rest, too."""

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
        return dims[self.outer[0]] if self.outer else max(1, max(dims[-1], dims[self.rows]) // _STRIP)

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """Walks over the other dimensions; in each position a matrix is turned, by a function that programs share.

        Where only a tile or two are turned at a time, a call takes longer than they do; where lines are stored past the
        caches, they are as they lie.
        """
        entry = open_kernel(module, name, self.request)
        root = self.request.body.root
        if root.shape.element_count:
            is_shared = (
                not entry.outputs[0].streams and root.shape.dims[self.rows] * root.shape.dims[-1] > _FEW_ELEMENTS
            )
            if is_shared:
                entry.fb.only_calls()
            else:
                entry.fb.is_as_written = not entry.outputs[0].streams
            self._turn_all(module, entry, is_shared=is_shared)
        entry.close()
        return entry.function

    def _turn_all(self, module: ModuleBuilder, entry: KernelEntry, *, is_shared: bool) -> None:
        fb, root = entry.fb, self.request.body.root
        dims, last = root.shape.dims, root.shape.rank - 1
        operand = root.operand(0)
        strides = row_major_strides(operand.shape.dims)
        reads, writes = [strides[d] for d in root.attrs.dimensions], row_major_strides(dims)
        streams = entry.outputs[0].streams
        is_near = root.shape.size_bytes <= _NEAR_ARRAYS * self.request.target.cache_bytes[1]
        tile = _Tile(root.shape.dtype.size_bytes, self.side, streams)
        is_tall = dims[self.rows] > dims[-1]
        with task_loops(entry, [dims[d] for d in self.outer]) as index:
            row, rows = self._part(entry, dims[self.rows], is_longer=is_tall)
            column, columns = self._part(entry, dims[-1], is_longer=not is_tall)
            positions = {**dict(zip(self.outer, index, strict=True)), self.rows: Affine(row), last: Affine(column)}
            places = IndexMath(fb, 1)
            place = tuple(positions.get(d, ZERO) for d in range(len(dims)))
            source, target = (
                fb.gep(tile.type, array.pointer, places.vector(places.linear(place, distances)))
                for array, distances in ((entry.inputs[operand.attrs.number], reads), (entry.outputs[0], writes))
            )
            sizes = reads[-1], writes[self.rows], rows, columns, self.side * is_near
            if is_shared:
                given = (fb.constant(I64, size) if isinstance(size, int) else size for size in sizes)
                fb.call(tile.function(module), source, target, *given)
            else:
                tile.turn(fb, source, target, *sizes)

    def _part(self, entry: KernelEntry, size: int, *, is_longer: bool) -> tuple[Value, Scalar]:
        """What of a side is the task's: where it begins, and how much it is."""
        fb = entry.fb
        if self.outer or not is_longer:
            return fb.constant(I64, 0), size
        begin, is_last = fb.mul(entry.begin, _STRIP, "nsw"), fb.icmp("sge", entry.end, self.extent)
        end = fb.select(is_last, fb.constant(I64, size), fb.mul(entry.end, _STRIP, "nsw"))
        return begin, fb.sub(end, begin)


@dataclass(frozen=True, slots=True)
class _Tile:
    """A square that is turned in registers; the last one of a side begins in the one before it.

    Attributes:
        size_bytes: Size of an element.
        side: Rows and columns.
        streams: Whether lines are stored past the caches.
    """

    size_bytes: int
    side: int
    streams: bool

    @property
    def type(self) -> Type:
        """An element as it is moved."""
        return integer(8 * self.size_bytes)

    def function(self, module: ModuleBuilder) -> Function:
        """`void turn(ptr source, ptr target, i64 down, i64 across, i64 rows, i64 columns, i64 ahead)`, for any program.

        target[row * across + column] = source[column * down + row]. Where there are fewer rows or columns than a tile
        has, those before them are turned, too. So far ahead of what is written, lines are asked for.
        """

        def build(fb: FunctionBuilder) -> None:
            fb.is_as_written = True
            self.turn(fb, *fb.parameters)
            fb.ret()

        kinds = ("noalias readonly", "noalias", *("",) * 5)
        return module.shared_function(self, "transpose", VOID, (PTR, PTR, *(I64,) * 5), kinds, build)

    def turn(
        self,
        fb: FunctionBuilder,
        source: Value,
        target: Value,
        down: Scalar,
        across: Scalar,
        rows: Scalar,
        columns: Scalar,
        ahead: Scalar,
    ) -> None:
        """Writes the loops over blocks of tiles; see `function`."""
        block = _STREAMED_BLOCK if self.streams else _BLOCK
        with _blocks(fb, columns, block) as right, _blocks(fb, rows, block) as below:
            outer, inner = (right, below) if self.streams else (below, right)
            with fb.loop(*outer, self.side) as slow, fb.loop(*inner, self.side) as fast:
                row, column = (fast, slow) if self.streams else (slow, fast)
                row, column = self._last(fb, row, rows), self._last(fb, column, columns)
                read = fb.gep(self.type, source, fb.add(fb.mul(column, down), row))
                write = fb.gep(self.type, target, fb.add(fb.mul(row, across), column))
                is_asked = bool(ahead) if isinstance(ahead, int) else fb.icmp("ne", ahead, 0)
                with nullcontext() if isinstance(is_asked, bool) else fb.if_(is_asked):
                    for line in self._lines(fb, fb.gep(self.type, write, ahead), across) if is_asked else ():
                        fb.prefetch(line, write=True)
                self._move(fb, self._lines(fb, read, down), self._lines(fb, write, across), across)

    def _last(self, fb: FunctionBuilder, place: Value, size: Scalar) -> Value:
        """Where a tile begins that is to end within a side."""
        if isinstance(size, int) and size % self.side == 0:
            return place
        return fb.smin(place, size - self.side if isinstance(size, int) else fb.sub(size, self.side))

    def _lines(self, fb: FunctionBuilder, first: Value, distance: Scalar) -> list[Value]:
        """Where the lines of a tile begin."""
        if isinstance(distance, int):
            return [fb.gep(self.type, first, number * distance) if number else first for number in range(self.side)]
        lines = [first]
        for _ in range(1, self.side):
            lines.append(fb.gep(self.type, lines[-1], distance))
        return lines

    def _move(self, fb: FunctionBuilder, read: Sequence[Value], written: Sequence[Value], across: Scalar) -> None:
        wide, align = vector(self.type, self.side), min(self.size_bytes, 8)
        loaded = list[Value]()
        for line in read:
            loaded.append(fb.load(wide, line, align))
            fb.prefetch(fb.gep(self.type, line, _TILES_AHEAD * self.side))
        lines = exchanged(fb, loaded)
        if not self.streams:
            for line, address in zip(lines, written, strict=True):
                fb.store(line, address, align)
            return
        assert isinstance(across, int), "functions for all programs do not store past the caches"
        # Lines that are a multiple of their size apart are aligned alike.
        period = wide.size_bytes // math.gcd(wide.size_bytes, across * self.size_bytes)
        for first in range(min(period, self.side)):
            store_past_caches(fb, lines[first::period], written[first::period], align)


@contextmanager
def _blocks(fb: FunctionBuilder, size: Scalar, block: int) -> Iterator[tuple[Scalar, Scalar]]:
    """A loop over blocks of a side, if there are several: where each begins and ends."""
    if isinstance(size, int) and size <= block:
        yield 0, size
        return
    with fb.loop(0, size, block) as first:
        yield first, fb.smin(fb.add(first, block), size)
