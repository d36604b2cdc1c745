"""Copies of lines of bytes, in whole vectors: shared functions that move lines are made with them."""

from __future__ import annotations

from xlalite.backends.codegen.llvm import I8, FunctionBuilder, TargetInfo, Value, vector

_LONG_LINE_BYTES = 1024
"""Lines whose bytes take so long that a call for each is nothing: of 224 bytes, a third of the time is calls."""


def line_lanes(target: TargetInfo, size: int) -> int:
    """Bytes of the vectors that copy lines of a size, at least one vector; 1 if these are left to the C library."""
    lanes = min(target.vector_bits // 8, 1 << size.bit_length() - 1)
    return lanes if size < _LONG_LINE_BYTES else 1


def copy_line(fb: FunctionBuilder, lanes: int, source: Value, target: Value, size: Value) -> None:
    """A line; its last vector begins in the one before."""
    if lanes == 1:
        fb.memcpy(target, source, size)
        return
    wide = vector(I8, lanes)

    def copy(place: Value) -> None:
        fb.store(fb.load(wide, fb.gep(I8, source, place), 1), fb.gep(I8, target, place), 1)

    last = fb.sub(size, lanes)
    with fb.loop(0, last, lanes) as place:
        copy(place)
    copy(last)
