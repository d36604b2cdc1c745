"""Nested sequences and dictionaries of values: their leaves in order, and the same structure with other leaves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any


def flatten(structure: Any) -> list[Any]:
    """The leaves of nested lists, tuples and dictionaries; dictionaries in the order of their sorted keys."""
    if isinstance(structure, dict):
        return [leaf for key in sorted(structure) for leaf in flatten(structure[key])]
    if isinstance(structure, list | tuple):
        return [leaf for item in structure for leaf in flatten(item)]
    return [structure]


def pack_like(structure: Any, leaves: Sequence[Any]) -> Any:
    """The structure with its leaves replaced in order."""
    return _pack(structure, iter(leaves))


def _pack(structure: Any, leaves: Iterator[Any]) -> Any:
    if isinstance(structure, dict):
        return type(structure)((key, _pack(structure[key], leaves)) for key in sorted(structure))
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return type(structure)(*(_pack(item, leaves) for item in structure))
    if isinstance(structure, list | tuple):
        return type(structure)(_pack(item, leaves) for item in structure)
    return next(leaves)
