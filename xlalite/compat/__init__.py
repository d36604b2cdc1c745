"""Other spellings of the same names, for programs that were written against them."""

from typing import Any

from xlalite.compat import v1 as v1


def as_bytes(bytes_or_text: Any, encoding: str = "utf-8") -> bytes:
    """A text as bytes."""
    return bytes_or_text.encode(encoding) if isinstance(bytes_or_text, str) else bytes(bytes_or_text)


def as_text(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    """Bytes as a text."""
    return bytes_or_text if isinstance(bytes_or_text, str) else bytes(bytes_or_text).decode(encoding)


as_str = as_text


def as_str_any(value: Any) -> str:
    """Bytes as a text, anything else as `str` has it."""
    return as_text(value) if isinstance(value, bytes) else str(value)
