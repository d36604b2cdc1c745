"""Lists in text: elements with commas between them, up to a closing bracket."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol


class _Cursor(Protocol):
    def accept(self, token: str, /) -> bool: ...

    def expect(self, token: str, /) -> None: ...


def separated(cursor: _Cursor, closing: str) -> Iterator[None]:
    """Stops before each element, which the caller consumes; consumes the commas and the closing bracket itself."""
    if cursor.accept(closing):
        return
    yield
    while not cursor.accept(closing):
        cursor.expect(",")
        yield
