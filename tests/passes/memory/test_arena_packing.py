"""Blocks that are alive together never share bytes, and the arena is about as large as it must be."""

import itertools
import random

import pytest

from xlalite.passes.memory.arena_packing import Block, pack

ALIGNMENT = 64


def most_alive(blocks: list[Block]) -> int:
    """Aligned bytes alive at the worst time."""
    changes = sorted(
        change
        for block in blocks
        for size in [-(-block.size // ALIGNMENT) * ALIGNMENT]
        for change in [(block.start, size), (block.end, -size)]
    )
    return max(itertools.accumulate(change for _, change in changes))


def random_blocks(count: int, life: int, seed: int) -> list[Block]:
    chance = random.Random(seed)
    starts = [chance.randrange(count) for _ in range(count)]
    return [Block(chance.choice((0, 4, 64, 100, 4096)), start, start + chance.randint(1, life)) for start in starts]


@pytest.mark.parametrize(("count", "life"), [(1, 1), (60, 5), (300, 40), (2000, 1800)])
def test_blocks_alive_together_share_no_bytes(count: int, life: int) -> None:
    """The last case has more pairs than best fit looks at."""
    blocks = [*random_blocks(count, life, seed=count), Block(4, 0, 1)]
    offsets, total = pack(blocks, ALIGNMENT)
    assert all(offset % ALIGNMENT == 0 for offset in offsets)
    placed = [(o, o + b.size, b) for o, b in zip(offsets, blocks, strict=True) if b.size]
    placed.sort(key=lambda item: item[:2])
    alive: list[tuple[int, Block]] = []
    for low, high, block in placed:
        alive = [(end, other) for end, other in alive if end > low]
        assert not any(other.start < block.end and block.start < other.end for _, other in alive)
        alive.append((high, block))
    assert max(high for _, high, _ in placed) <= total


def test_packing_loses_little() -> None:
    for count, life in ((300, 40), (2000, 1800)):
        blocks = random_blocks(count, life, seed=8)
        assert pack(blocks, ALIGNMENT)[1] <= 1.2 * most_alive(blocks)


def test_blocks_of_one_size_one_after_another_take_the_room_of_two() -> None:
    blocks = [Block(100, time, time + 2) for time in range(3000)]
    assert pack(blocks, ALIGNMENT)[1] == 2 * 128


def test_nothing_takes_no_room() -> None:
    assert pack([], ALIGNMENT) == ([], 0)
    assert pack([Block(0, 0, 5), Block(0, 0, 5)], ALIGNMENT)[1] == 0
