"""The tile for few rows and a large right operand, which is read once, like a stream.

c[i, j] = sum over p of a[i, p] * b[p, j]. A few rows of b are read side by side from their first column to the last,
while the next ones are asked for: memory is never idle, also where rows are too short, or too many bytes lie between
them, for the processor to see by itself what follows. The sums stay in the nearest cache.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import fields
from typing import ClassVar

from xlalite.backends.codegen.arrays.types import representation
from xlalite.backends.codegen.kernels.dot.tile import Tile, TileBuilder
from xlalite.backends.codegen.llvm import Type, Value
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType

_VECTORS = 2
"""Vectors of a row that are under way at a time."""

_LINE_BYTES = 64
"""What is fetched at a time."""


@dataclass(frozen=True, slots=True)
class _Arguments:
    """The distances of rows and columns of a, rows of b and rows of c, and the number of columns."""

    a_row: Value
    a_depth: Value
    b_depth: Value
    c_row: Value
    width: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTile(Tile):
    """A tile of all rows and of any number of columns, whose sums are in one chain each.

    Attributes:
        a_type: Element type of a.
        b_type: Element type of b.
        streams: Rows of b that are read side by side.
    """

    name: ClassVar[str] = "dot_stream"
    arguments: ClassVar[int] = len(fields(_Arguments))

    a_type: DType
    b_type: DType
    streams: int

    def emit(self, builder: TileBuilder) -> None:
        """Zeros, to which the products of some rows of b after others are added."""
        fb, kept = builder.fb, builder.kept
        _, _, c, depth, _, *numbers = fb.parameters
        given = _Arguments(*numbers)
        for line in self._rows(builder, kept, c, given.c_row):
            fb.memset(line, 0, fb.mul(given.width, kept.size_bytes), align=kept.size_bytes)
        whole = fb.sub(depth, fb.urem(depth, self.streams))
        with fb.loop(0, whole, self.streams) as p:
            self._add(builder, given, p, self.streams)
        with fb.loop(whole, depth) as p:
            self._add(builder, given, p, 1)

    def _rows(self, builder: TileBuilder, element: Type, first: Value, distance: Value) -> list[Value]:
        """Where some rows begin, as many as the tile has."""
        fb = builder.fb
        return [first, *(fb.gep(element, first, fb.mul(distance, row)) for row in range(1, self.rows))]

    def _add(self, builder: TileBuilder, given: _Arguments, p: Value, count: int) -> None:
        """Adds the products of `count` rows of b to all sums."""
        fb = builder.fb
        a_memory, b_memory = representation(self.a_type).memory, representation(self.b_type).memory
        a, b, c = fb.parameters[:3]
        terms = [fb.add(p, q) for q in range(count)]
        columns = [fb.gep(a_memory, a, fb.mul(term, given.a_depth)) for term in terms]
        lefts = [self._rows(builder, a_memory, column, given.a_row) for column in columns]
        rights = [fb.gep(b_memory, b, fb.mul(term, given.b_depth)) for term in terms]
        after = [fb.gep(b_memory, right, fb.mul(given.b_depth, count), inbounds=False) for right in rights]
        spread = [[self._spread(builder, place) for place in each] for each in zip(*lefts, strict=True)]
        lines = self._rows(builder, builder.kept, c, given.c_row)
        step = self.lanes * _VECTORS
        whole = fb.sub(given.width, fb.urem(given.width, step))
        with fb.loop(0, whole, step) as column:
            for right, place in itertools.product(after, range(0, step, max(1, _LINE_BYTES // b_memory.size_bytes))):
                fb.prefetch(fb.gep(b_memory, right, fb.add(column, place), inbounds=False))
            for start in range(0, step, self.lanes):
                self._add_vector(builder, spread, rights, lines, fb.add(column, start), None)
        with fb.loop(whole, given.width, self.lanes) as column:
            self._add_vector(builder, spread, rights, lines, column, builder.below(column, given.width))

    def _spread(self, builder: TileBuilder, address: Value) -> Value:
        memory = representation(self.a_type).memory
        element = builder.numbers.take(builder.fb, self.a_type, builder.fb.load(memory, address, memory.size_bytes))
        return builder.fb.splat(element, self.lanes)

    def _add_vector(
        self,
        builder: TileBuilder,
        spread: Sequence[Sequence[Value]],
        rights: Sequence[Value],
        lines: Sequence[Value],
        column: Value,
        mask: Value | None,
    ) -> None:
        """Adds to the sums of some columns; `rights` and `lines` are the rows of b and of c."""
        fb, kept, numbers = builder.fb, builder.kept, builder.numbers
        b_memory = representation(self.b_type).memory
        places = [fb.gep(kept, line, column) for line in lines]
        sums = builder.zeros(self.rows)
        for q, right in enumerate(rights):
            stored = builder.load(fb.gep(b_memory, right, column), mask, b_memory)
            line = numbers.take(fb, self.b_type, stored)
            sums = [numbers.multiply_add(fb, row[q], line, total) for row, total in zip(spread, sums, strict=True)]
        for place, found in zip(places, sums, strict=True):
            builder.store(numbers.add(fb, builder.load(place, mask), found), place, mask)
