"""Exchanging lanes between vectors."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.backends.codegen.llvm import FunctionBuilder, Value


def exchanged(fb: FunctionBuilder, lines: Sequence[Value]) -> list[Value]:
    """Transposes every square of as many neighbouring lanes as there are vectors, by rounds of ever larger blocks."""
    side, lanes = len(lines), lines[0].type.lanes
    distance = 1
    while distance < side:
        low = [lane if not lane & distance else lanes + lane - distance for lane in range(lanes)]
        high = [lane + distance if not lane & distance else lanes + lane for lane in range(lanes)]
        after = list(lines)
        for number in range(side):
            if not number & distance:
                a, b = lines[number], lines[number + distance]
                after[number], after[number + distance] = fb.shuffle(a, b, low), fb.shuffle(a, b, high)
        lines = after
        distance *= 2
    return list(lines)
