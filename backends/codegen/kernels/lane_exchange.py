"""Exchanging lanes between vectors."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.backends.codegen.llvm import FunctionBuilder, Value


def exchanged(fb: FunctionBuilder, lines: Sequence[Value], *, falling: bool = False) -> list[Value]:
    """Transposes every square of as many neighbouring lanes as there are vectors, by rounds of ever larger blocks.

    Args:
        fb: Where to write.
        lines: The vectors.
        falling: Whether the largest blocks come first.
    """
    side, lanes = len(lines), lines[0].type.lanes
    distances = [1 << number for number in range(side.bit_length() - 1)]
    for distance in reversed(distances) if falling else distances:
        low = [lane if not lane & distance else lanes + lane - distance for lane in range(lanes)]
        high = [lane + distance if not lane & distance else lanes + lane for lane in range(lanes)]
        after = list(lines)
        for number in range(side):
            if not number & distance:
                a, b = lines[number], lines[number + distance]
                after[number], after[number + distance] = fb.shuffle(a, b, low), fb.shuffle(a, b, high)
        lines = after
    return list(lines)
