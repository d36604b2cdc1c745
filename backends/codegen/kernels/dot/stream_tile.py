"""The tile for few rows and a large right operand, which is read once, like a stream.

c[i, j] = sum over p of a[i, p] * b[p, j]. A few rows of b are read side by side from their first column to the last,
while the next ones are asked for: memory is never idle, also where rows are too short, or too many bytes lie between
them, for the processor to see by itself what follows. The sums stay in the nearest cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xlalite.backends.codegen.arrays.types import representation
from xlalite.backends.codegen.kernels.dot.tile import Tile, TileBuilder
from xlalite.backends.codegen.llvm import FunctionBuilder, Type, Value
from xlalite.hlo.types.dtype import DType

_VECTORS = 2
"""Vectors of a row that are under way at a time."""

_LINE_BYTES = 64
"""What is fetched at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTile(Tile):
    """A tile of all rows and of many columns, whose sums are in one chain each.

    Attributes:
        a_row: Distance of a's rows.
        c_row: Distance of c's rows.
        a_depth: Distance of a's columns.
        a_type: Element type of a.
        b_depth: Distance of b's rows.
        b_type: Element type of b.
        streams: Rows of b that are read side by side.
    """

    name: ClassVar[str] = "dot_stream"

    a_row: int
    c_row: int
    a_depth: int
    a_type: DType
    b_depth: int
    b_type: DType
    streams: int

    def emit(self, builder: TileBuilder) -> None:
        """Zeros, to which the products of some rows of b after others are added."""
        fb, kept = builder.fb, builder.kept
        depth = fb.parameters[3]
        for i in range(self.rows):
            line = _element(fb, kept, fb.parameters[2], i * self.c_row)
            fb.memset(line, 0, self.columns * kept.size_bytes, align=kept.size_bytes)
        whole = fb.sub(depth, fb.urem(depth, self.streams))
        with fb.loop(0, whole, self.streams) as p:
            self._add(builder, p, self.streams)
        with fb.loop(whole, depth) as p:
            self._add(builder, p, 1)

    def _add(self, builder: TileBuilder, p: Value, count: int) -> None:
        """Adds the products of `count` rows of b to all sums."""
        fb = builder.fb
        a_memory, b_memory = representation(self.a_type).memory, representation(self.b_type).memory
        a = fb.gep(a_memory, fb.parameters[0], fb.mul(p, self.a_depth))
        b = fb.gep(b_memory, fb.parameters[1], fb.mul(p, self.b_depth))
        spread = [
            [self._spread(builder, _element(fb, a_memory, a, i * self.a_row + q * self.a_depth)) for q in range(count)]
            for i in range(self.rows)
        ]
        step = self.lanes * _VECTORS
        whole = self.columns - self.columns % step
        with fb.loop(0, whole, step) as column:
            here = fb.gep(b_memory, b, column), fb.gep(builder.kept, fb.parameters[2], column)
            for place in range(0, step, max(1, _LINE_BYTES // b_memory.size_bytes)):
                for q in range(count, 2 * count):
                    fb.prefetch(fb.gep(b_memory, here[0], place + q * self.b_depth, inbounds=False))
            for start in range(0, step, self.lanes):
                self._add_vector(builder, spread, here, start, self.lanes)
        for start in range(whole, self.columns, self.lanes):
            self._add_vector(builder, spread, (b, fb.parameters[2]), start, self.columns - start)

    def _spread(self, builder: TileBuilder, address: Value) -> Value:
        memory = representation(self.a_type).memory
        element = builder.numbers.take(builder.fb, self.a_type, builder.fb.load(memory, address, memory.size_bytes))
        return builder.fb.splat(element, self.lanes)

    def _add_vector(
        self, builder: TileBuilder, spread: Sequence[Sequence[Value]], here: tuple[Value, Value], start: int, used: int
    ) -> None:
        """Adds to the sums of some columns; `here` is the column before the first by `start` in b and in c."""
        fb, kept, numbers = builder.fb, builder.kept, builder.numbers
        b_memory = representation(self.b_type).memory
        places = [_element(fb, kept, here[1], start + i * self.c_row) for i in range(self.rows)]
        sums = builder.zeros(self.rows)
        for q in range(len(spread[0])):
            stored = builder.load(_element(fb, b_memory, here[0], start + q * self.b_depth), used, b_memory)
            line = numbers.take(fb, self.b_type, stored)
            sums = [numbers.multiply_add(fb, row[q], line, total) for row, total in zip(spread, sums, strict=True)]
        for place, found in zip(places, sums, strict=True):
            builder.store(numbers.add(fb, builder.load(place, used), found), place, used)


def _element(fb: FunctionBuilder, element: Type, pointer: Value, offset: int) -> Value:
    return fb.gep(element, pointer, offset) if offset else pointer
