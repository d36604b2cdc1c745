"""Exchanging lanes between vectors."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.backends.codegen.llvm import F32, FunctionBuilder, Value, vector

_PART_BITS = 128
"""One instruction interleaves the lanes of two vectors within parts of this size, or chooses among such parts."""


def exchanged(fb: FunctionBuilder, lines: Sequence[Value]) -> list[Value]:
    """Transposes every square of as many neighbouring lanes as there are vectors.

    Each shuffle is one that an instruction does. LLVM would try to join it with all before it, a fifth of what it
    takes to compile for [2048,2048] of f32: hence a fence behind every round.
    """
    side, lanes = len(lines), lines[0].type.lanes
    part = min(_PART_BITS // lines[0].type.scalar.bits, side)
    low = [lane - lane % part + lane % part // 2 + lane % 2 * lanes for lane in range(lanes)]
    high = [lane + part // 2 for lane in low]
    rounds = part.bit_length() - 1
    for number in range(rounds):
        pairs = _pairs(lines, part // 2)
        lines = [fb.shuffle(*pair, order) for pair in pairs for order in (low, high)]
        if number < rounds - 1 or part < side:
            lines = [fenced(fb, line) for line in lines]
    if side == lanes == 4 * part:
        return _squares_of_parts(fb, lines, part)
    return _squares(fb, lines, part)


def _pairs(lines: Sequence[Value], distance: int) -> list[tuple[Value, Value]]:
    """Lines so far apart."""
    return [(line, lines[number + distance]) for number, line in enumerate(lines) if not number & distance]


def _squares_of_parts(fb: FunctionBuilder, lines: Sequence[Value], part: int) -> list[Value]:
    """Transposes the square of four parts of each of every so many lines."""

    def order(*parts: int) -> list[int]:
        return [number * part + lane for number in parts for lane in range(part)]

    halves, ends = (order(0, 1, 4, 5), order(2, 3, 6, 7)), (order(0, 2, 4, 6), order(1, 3, 5, 7))
    after = list(lines)
    for first in range(part):
        a, b, c, d = lines[first::part]
        joined = [[fenced(fb, fb.shuffle(*pair, half)) for pair in ((a, b), (c, d))] for half in halves]
        after[first::part] = [fb.shuffle(one, other, end) for one, other in joined for end in ends]
    return after


def _squares(fb: FunctionBuilder, lines: Sequence[Value], part: int) -> list[Value]:
    """Transposes squares of parts by rounds of ever larger blocks."""
    after, lanes, distance = list(lines), lines[0].type.lanes, part
    while distance < len(lines):
        low = [lane if not lane & distance else lanes + lane - distance for lane in range(lanes)]
        high = [lane + distance if not lane & distance else lanes + lane for lane in range(lanes)]
        pairs = _pairs(after, distance)
        firsts = [number for number in range(len(lines)) if not number & distance]
        for number, pair in zip(firsts, pairs, strict=True):
            after[number], after[number + distance] = fb.shuffle(*pair, low), fb.shuffle(*pair, high)
        distance *= 2
        if distance < len(lines):
            after = [fenced(fb, line) for line in after]
    return after


def fenced(fb: FunctionBuilder, line: Value) -> Value:
    """The same vector, behind which LLVM does not look."""
    words = vector(F32, line.type.bits * line.type.lanes // F32.bits)
    return fb.bitcast(fb.arithmetic_fence(fb.bitcast(line, words)), line.type)
