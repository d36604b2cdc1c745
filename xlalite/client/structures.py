"""Nested lists, tuples, dictionaries, dataclasses and None as flat lists of leaves, and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

LEAF = "leaf"


def flatten(value: Any) -> tuple[list[Any], Hashable]:
    """The leaves in order, and the structure around them as something that can be a key."""
    leaves: list[Any] = []
    return leaves, _structure(value, leaves)


def rebuild(structure: Hashable, leaves: Sequence[Any]) -> Any:
    """The structure around other leaves."""
    return _rebuild(structure, iter(leaves))


def _structure(value: Any, leaves: list[Any]) -> Hashable:
    kind = type(value)
    if value is None:
        return None
    if isinstance(value, list | tuple):
        return (kind, *[_structure(element, leaves) for element in value])
    if isinstance(value, Mapping):
        return (dict, tuple(value), *[_structure(element, leaves) for element in value.values()])
    if dataclasses.is_dataclass(kind):
        names = tuple(field.name for field in dataclasses.fields(kind))
        return (kind, names, *[_structure(getattr(value, name), leaves) for name in names])
    leaves.append(value)
    return LEAF


def _rebuild(structure: Any, leaves: Iterator[Any]) -> Any:
    if structure is None:
        return None
    if structure == LEAF:
        return next(leaves)
    kind = structure[0]
    if kind is dict or dataclasses.is_dataclass(kind):
        named = dict(zip(structure[1], [_rebuild(each, leaves) for each in structure[2:]], strict=True))
        return named if kind is dict else _made(structure[0], named)
    parts = [_rebuild(each, leaves) for each in structure[1:]]
    return kind(*parts) if hasattr(kind, "_make") else kind(parts)


def _made(kind: type[Any], values: Mapping[str, Any]) -> Any:
    """A dataclass with the given fields, whatever its `__init__` would make of them."""
    made: Any = object.__new__(kind)
    for name, value in values.items():
        object.__setattr__(made, name, value)
    return made
