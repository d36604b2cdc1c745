"""Nested lists, tuples, named tuples and dictionaries as flat lists of leaves, and back."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

LEAF = None


def flatten(value: Any) -> tuple[list[Any], Hashable]:
    """The leaves in order, and the structure around them as something that can be a key."""
    leaves: list[Any] = []
    return leaves, _structure(value, leaves)


def rebuild(structure: Hashable, leaves: Sequence[Any]) -> Any:
    """The structure around other leaves."""
    return _rebuild(structure, iter(leaves))


def _structure(value: Any, leaves: list[Any]) -> Hashable:
    kind = type(value)
    if isinstance(value, list | tuple):
        return (kind, *[_structure(element, leaves) for element in value])
    if isinstance(value, Mapping):
        return (dict, tuple(value), *[_structure(element, leaves) for element in value.values()])
    leaves.append(value)
    return LEAF


def _rebuild(structure: Any, leaves: Iterator[Any]) -> Any:
    if structure is LEAF:
        return next(leaves)
    kind = structure[0]
    if kind is dict:
        return dict(zip(structure[1], [_rebuild(each, leaves) for each in structure[2:]], strict=True))
    parts = [_rebuild(each, leaves) for each in structure[1:]]
    return kind(*parts) if hasattr(kind, "_make") else kind(parts)
