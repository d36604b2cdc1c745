"""A place in bytes; whatever they are, no read leaves its range and no count promises more than there are bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from xlalite.hlo.errors import BinaryParseError

T = TypeVar("T")


class ByteCursor:
    """Reads MLIR's integers, lists and texts from a range of bytes.

    Attributes:
        data: All the bytes.
        position: The next byte.
        end: The byte behind the range.
    """

    __slots__ = ("data", "end", "position")

    def __init__(self, data: bytes, position: int, end: int) -> None:
        self.data = data
        self.position = position
        self.end = end

    def error(self, message: str) -> BinaryParseError:
        """The error for the next byte."""
        return BinaryParseError(message, self.position)

    def take(self, count: int) -> bytes:
        """Consumes so many bytes."""
        if count > self.end - self.position:
            raise self.error(f"{count} bytes are needed, {self.end - self.position} are left")
        self.position += count
        return self.data[self.position - count : self.position]

    def byte(self) -> int:
        """Consumes one byte."""
        if self.position >= self.end:
            raise self.error("the bytes end too early")
        self.position += 1
        return self.data[self.position - 1]

    def integer(self) -> int:
        """Consumes an unsigned integer: the zeros at the low end of the first byte say how many bytes follow."""
        first = self.byte()
        if first & 1:
            return first >> 1
        if not first:
            return int.from_bytes(self.take(8), "little")
        following = (first & -first).bit_length() - 1
        return (first | int.from_bytes(self.take(following), "little") << 8) >> (following + 1)

    def signed(self) -> int:
        """Consumes a signed integer: the lowest bit is the sign."""
        value = self.integer()
        return (value >> 1) ^ -(value & 1)

    def count(self) -> int:
        """Consumes the number of things that follow, each of a byte at least."""
        value = self.integer()
        if value > self.end - self.position:
            raise self.error(f"{value} entries cannot stand in {self.end - self.position} bytes")
        return value

    def list(self, read: Callable[[], T]) -> list[T]:
        """Consumes a count and so many entries."""
        return [read() for _ in range(self.count())]

    def text(self) -> str:
        """Consumes a text that a zero ends."""
        stop = self.data.find(b"\0", self.position, self.end)
        if stop < 0:
            raise self.error("the text does not end")
        text = self.data[self.position : stop].decode("utf-8", "surrogateescape")
        self.position = stop + 1
        return text

    def part(self, size: int) -> ByteCursor:
        """Consumes so many bytes as a range of their own."""
        start = self.position
        self.take(size)
        return ByteCursor(self.data, start, start + size)

    def section(self) -> tuple[int, ByteCursor]:
        """Consumes a section: its number and its contents."""
        head = self.byte()
        size = self.integer()
        if head & 0x80:
            alignment = self.integer()
            if not 0 < alignment <= 1 << 16:
                raise self.error(f"an alignment of {alignment} is impossible")
            self.take(-self.position % alignment)
        return head & 0x7F, self.part(size)

    def require_end(self, what: str) -> None:
        """Requires that everything was consumed."""
        if self.position != self.end:
            raise self.error(f"{what} has {self.end - self.position} bytes that nobody expects")
