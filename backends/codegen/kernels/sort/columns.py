"""Rows whose neighbours lie side by side in memory: as many as a vector has lanes are sorted together.

Read one by one they would fetch a line of the cache for each element. Squares of them are transposed on the way to
memory of their own and back.
"""

from __future__ import annotations

from xlalite.backends.codegen.arrays.index import ZERO, Affine, Index
from xlalite.backends.codegen.arrays.ir_array import lanes_below
from xlalite.backends.codegen.kernels.lane_exchange import exchanged, fenced
from xlalite.backends.codegen.kernels.loop_nest import places_of
from xlalite.backends.codegen.kernels.scratch import aligned
from xlalite.backends.codegen.kernels.sort.records import Records
from xlalite.backends.codegen.kernels.sort.rows import Rows
from xlalite.backends.codegen.llvm import I64, Value, vector
from xlalite.hlo.records import dataclass

_FEWEST, _LONGEST = 4, 8192
"""Neighbours that are worth it, and elements of a row that leave the cache room for the others."""


def has_columns(dims: tuple[int, ...], dimension: int, records: Records) -> bool:
    """Whether rows of keys alone lie side by side."""
    is_beside = dimension < len(dims) - 1 and dims[-1] >= _FEWEST
    return is_beside and records.is_sorted_in_place and records.lanes <= dims[dimension] <= _LONGEST


def groups_of(dims: tuple[int, ...], records: Records) -> int:
    """How many groups of neighbours there are side by side."""
    return -(-dims[-1] // records.lanes)


def column_sizes(records: Records) -> tuple[int, ...]:
    """Bytes of the words of a group of rows, and of a buffer."""
    return records.lanes * _row_bytes(records), *records.sizes[1:]


def _row_bytes(records: Records) -> int:
    """Bytes from one row to the next, not a power of 2, so that rows do not meet in a set of the cache."""
    size = records.sizes[0]
    return size + aligned(1) if size % 4096 == 0 else size


@dataclass(frozen=True, slots=True)
class Columns(Rows):
    """Rows with neighbours along the minor dimension."""

    def sort_group(self, group: Value, buffers: list[Value]) -> None:
        """Emits the sort of a group of rows."""
        fb, records, width = self.entry.fb, self.records, self.dims[-1]
        lanes, word, groups = records.lanes, records.word, groups_of(self.dims, records)
        wide, row_words = vector(word, lanes), _row_bytes(records) // word.size_bytes
        outer, left = fb.udiv(group, groups), fb.mul(fb.urem(group, groups), lanes)
        mask = lanes_below(fb, left, width, lanes) if width % lanes else None

        def words_of(number: Value | int) -> Value:
            at = number * row_words if isinstance(number, int) else fb.mul(number, row_words)
            return fb.gep(word, buffers[0], at)

        with fb.carried_loop(0, self.length, lanes, [fb.constant(wide, 0)]) as loop:
            # The last square overlaps the one before it.
            top, lines, merged = fb.smin(loop.index, self.length - lanes), [], loop.values[0]
            for number in range(lanes):
                key, is_merged = self._key(self._place(outer, fb.add(top, number), left), mask, lanes)
                lines.append(fb.zext(key, word))
                if self._merges_keys:
                    # LLVM would compare the comparisons of all lines with each other.
                    merged = fenced(fb, fb.select(is_merged, -1, merged))
            for line_number, line in enumerate(exchanged(fb, lines)):
                fb.store(line, fb.gep(word, words_of(line_number), top), word.size_bytes)
            loop.yield_(merged)
        merged = fb.icmp("ne", loop.results[0], 0)
        merged = merged if mask is None else fb.and_(merged, mask)
        count, neighbours = fb.constant(I64, self.length), fb.smin(fb.sub(fb.constant(I64, width), left), lanes)
        with fb.loop(0, neighbours) as row:
            records.sort(fb, [words_of(row), *buffers[1:]], count)
        with fb.loop(0, self.length, lanes) as position:
            top = fb.smin(position, self.length - lanes)
            rows = [fb.load(wide, fb.gep(word, words_of(number), top), word.size_bytes) for number in range(lanes)]
            for number, line in enumerate(exchanged(fb, rows)):
                self._write_numbers(self._place(outer, fb.add(top, number), left), line, mask)
        if self._merges_keys:
            with fb.if_(fb.any_lane(merged), likely=False), fb.loop(0, neighbours) as row:
                self._restore(fb.add(fb.mul(outer, width), fb.add(left, row)), words_of(row), ZERO, count)

    def _place(self, outer: Value, position: Value, left: Value) -> Index:
        """Where neighbours lie, given their position and the first of them."""
        before, after = self.dims[: self.dimension], self.dims[self.dimension + 1 : -1]
        others = places_of(self.entry.fb, outer, (*before, *after))
        return (*others[: len(before)], Affine(position), *others[len(before) :], Affine(left, 1))
