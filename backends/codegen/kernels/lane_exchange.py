"""Exchanging lanes between vectors."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.backends.codegen.llvm import F32, FunctionBuilder, Value, vector

_ROUNDS_IN_VIEW = 2
"""LLVM tries to join every shuffle with all before it: more than half of what a kernel takes to compile. Pairs gain."""


def exchanged(fb: FunctionBuilder, lines: Sequence[Value], *, falling: bool = False) -> list[Value]:
    """Transposes every square of as many neighbouring lanes as there are vectors, by rounds of ever larger blocks.

    Args:
        fb: Where to write.
        lines: The vectors.
        falling: Whether the largest blocks come first.
    """
    side, lanes = len(lines), lines[0].type.lanes
    distances = [1 << number for number in range(side.bit_length() - 1)]
    for done, distance in enumerate(reversed(distances) if falling else distances):
        if done and done % _ROUNDS_IN_VIEW == 0 and len(distances) > _ROUNDS_IN_VIEW + 1:
            lines = [fenced(fb, line) for line in lines]
        low = [lane if not lane & distance else lanes + lane - distance for lane in range(lanes)]
        high = [lane + distance if not lane & distance else lanes + lane for lane in range(lanes)]
        after = list(lines)
        for number in range(side):
            if not number & distance:
                a, b = lines[number], lines[number + distance]
                after[number], after[number + distance] = fb.shuffle(a, b, low), fb.shuffle(a, b, high)
        lines = after
    return list(lines)


def fenced(fb: FunctionBuilder, line: Value) -> Value:
    """The same vector, behind which LLVM does not look."""
    words = vector(F32, line.type.bits * line.type.lanes // F32.bits)
    return fb.bitcast(fb.arithmetic_fence(fb.bitcast(line, words)), line.type)
