"""Places blocks of memory, each needed for a while, into one arena.

Largest first, each at the lowest offset of the smallest gap that is free during its whole life (best fit). That looks
at every pair of blocks alive together; where thousands are, blocks are placed in the order of time instead, each into
the smallest hole that fits, as an allocator would.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence

from xlalite.hlo.records import dataclass

# Pairs of blocks alive together that best fit looks at: so many in all, and so many more for each block.
_PAIRS = 1_000_000
_PAIRS_A_BLOCK = 64


@dataclass(frozen=True, slots=True)
class Block:
    """So many bytes from a time to before another."""

    size: int
    start: int
    end: int


def pack(blocks: Sequence[Block], alignment: int) -> tuple[list[int], int]:
    """The offset of each block, a multiple of the alignment, and the size of the arena."""
    order = sorted(range(len(blocks)), key=lambda n: (-blocks[n].size, blocks[n].start, blocks[n].end))
    blocks = [Block(-(-block.size // alignment) * alignment, block.start, block.end) for block in blocks]
    alive = pairs = 0
    for _, is_start, _ in _events(blocks):
        pairs += alive if is_start else 0
        alive += 1 if is_start else -1
    few = pairs <= _PAIRS + _PAIRS_A_BLOCK * len(blocks)
    offsets = _best_fit(blocks, order) if few else _by_time(blocks)
    total = max((offset + block.size for offset, block in zip(offsets, blocks, strict=True)), default=0)
    return offsets, total


def _events(blocks: Sequence[Block]) -> list[tuple[int, bool, int]]:
    """When each block starts and ends, in order: (time, whether it starts, its number), ends before starts."""
    sized = [(number, block) for number, block in enumerate(blocks) if block.size]
    starts = [(block.start, True, number) for number, block in sized]
    return sorted([*starts, *((block.end, False, number) for number, block in sized)])


def _best_fit(blocks: Sequence[Block], order: Sequence[int]) -> list[int]:
    offsets = [0] * len(blocks)
    places = [(0, 0)] * len(blocks)
    earlier = _placed_earlier(blocks, order)
    for number in order:
        size = blocks[number].size
        offsets[number] = offset = _best_gap(sorted([places[other] for other in earlier[number]]), size)
        places[number] = (offset, offset + size)
    return offsets


def _placed_earlier(blocks: Sequence[Block], order: Sequence[int]) -> list[list[int]]:
    """For each block, those before it in the order that are alive at some time that it is."""
    rank = [0] * len(blocks)
    for position, number in enumerate(order):
        rank[number] = position
    found: list[list[int]] = [[] for _ in blocks]
    alive: dict[int, None] = {}
    for _, is_start, number in _events(blocks):
        if not is_start:
            del alive[number]
            continue
        own, before = rank[number], found[number]
        for other in alive:
            if rank[other] < own:
                before.append(other)
            else:
                found[other].append(number)
        alive[number] = None
    return found


def _best_gap(busy: Sequence[tuple[int, int]], size: int) -> int:
    """The offset of the smallest free gap that fits; behind everything if none does."""
    best: tuple[int, int] | None = None
    free_from = 0
    for low, high in busy:
        gap = low - free_from
        if gap >= size and (best is None or gap < best[0]):
            best = (gap, free_from)
        if high > free_from:
            free_from = high
    return best[1] if best is not None else free_from


def _by_time(blocks: Sequence[Block]) -> list[int]:
    offsets = [0] * len(blocks)
    holes = _Holes()
    for _, is_start, number in _events(blocks):
        if is_start:
            offsets[number] = holes.take(blocks[number].size)
        else:
            holes.give_back(offsets[number], blocks[number].size)
    return offsets


class _Holes:
    """The free pieces of an arena that grows when none fits; neighbours are one piece."""

    def __init__(self) -> None:
        self._end = 0
        self._by_size: list[tuple[int, int]] = []
        self._size_at: dict[int, int] = {}
        self._start_of_end: dict[int, int] = {}

    def take(self, size: int) -> int:
        """The offset of so many bytes that are free."""
        at = bisect.bisect_left(self._by_size, (size, 0))
        if at < len(self._by_size):
            hole, offset = self._by_size[at]
            self._remove(offset)
            if hole > size:
                self._add(offset + size, hole - size)
            return offset
        offset = self._start_of_end.get(self._end, self._end)
        if offset < self._end:
            self._remove(offset)
        self._end = offset + size
        return offset

    def give_back(self, offset: int, size: int) -> None:
        """Frees what was taken."""
        end = offset + size
        before = self._start_of_end.get(offset)
        if before is not None:
            self._remove(before)
            offset = before
        behind = self._size_at.get(end)
        if behind is not None:
            self._remove(end)
            end += behind
        self._add(offset, end - offset)

    def _add(self, offset: int, size: int) -> None:
        bisect.insort(self._by_size, (size, offset))
        self._size_at[offset] = size
        self._start_of_end[offset + size] = offset

    def _remove(self, offset: int) -> None:
        size = self._size_at.pop(offset)
        del self._start_of_end[offset + size]
        del self._by_size[bisect.bisect_left(self._by_size, (size, offset))]
