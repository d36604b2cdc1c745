"""Bytes as MLIR writes its integers, lists and sections: the way back of `ByteCursor`."""

from __future__ import annotations

from collections.abc import Iterable


def integer(value: int) -> bytes:
    """An unsigned integer of at most 64 bits: the zeros at the low end of the first byte say how many bytes follow."""
    size = max(1, -(-value.bit_length() // 7))
    if size > 8:
        return b"\0" + value.to_bytes(8, "little")
    return ((value << size) | (1 << (size - 1))).to_bytes(size, "little")


def signed(value: int) -> bytes:
    """A signed integer: the lowest bit is the sign."""
    return integer((value << 1) ^ (value >> 63))


def listed(entries: Iterable[bytes]) -> bytes:
    """A count and the entries."""
    parts = list(entries)
    return integer(len(parts)) + b"".join(parts)


def section(number: int, contents: bytes) -> bytes:
    """A section: its number, its size, its contents."""
    return bytes([number]) + integer(len(contents)) + contents
