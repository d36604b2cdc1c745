"""Nested structures as flat lists of leaves, and back, in the order of TensorFlow's `nest`.

Lists, tuples, named tuples, mappings, dataclasses, classes of attrs and None nest; everything else is a leaf. A mapping
gives its values in the order of its sorted keys, so that the order in which it was filled does not matter; rebuilt, it
has its keys in that order again.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

LEAF: Final = "leaf"

VALUE_TYPE: Final = "value_type"
"""Attribute of a class that is made of tensors: the named tuple of what they are when they are fetched."""


def flatten(value: Any, *, none_is_leaf: bool = False) -> tuple[list[Any], Hashable]:
    """The leaves in order, and the structure around them as something that can be a key."""
    leaves: list[Any] = []
    return leaves, _structure(value, leaves, none_is_leaf)


def is_leaf(kind: type) -> bool:
    """Whether values of a type are leaves; None counts as one here."""
    return _sort_of(kind) is LEAF


def rebuild(structure: Hashable, leaves: Iterable[Any]) -> Any:
    """The structure around other leaves.

    Mappings become dictionaries (ordered ones stay so); dataclasses and classes of attrs are made without a call of
    their constructor, since what it checks may hold for the old leaves only.
    """
    return _rebuild(structure, iter(leaves))


def rebuilder(structure: Hashable) -> Callable[[Sequence[Any]], Any]:
    """`rebuild` for one structure; the structures that are fetched in every step have a short way."""
    if structure == LEAF:
        return lambda leaves: leaves[0]
    if isinstance(structure, tuple) and structure[:2] == (list, None) and {*structure[2:]} <= {LEAF}:
        return list
    return functools.partial(rebuild, structure)


def with_value_types(structure: Hashable) -> Hashable:
    """The structure of fetched values: named tuples in place of what is made of tensors."""
    if not isinstance(structure, tuple):
        return structure
    kind, names, *inner = structure
    value_type = getattr(kind, VALUE_TYPE, None)
    parts = map(with_value_types, inner)
    return (kind, names, *parts) if value_type is None else (value_type, None, *parts)


def have_same_names(one: Any, other: Any) -> bool:
    """Whether two structures name their parts alike, so that their leaves belong together one by one."""
    if not (isinstance(one, tuple) and isinstance(other, tuple)):
        return True
    names, theirs = ({*structure[1]} if structure[1] else set() for structure in (one, other))
    return names == theirs and all(map(have_same_names, one[2:], other[2:]))


def _structure(value: Any, leaves: list[Any], none_is_leaf: bool) -> Hashable:
    if value is None and not none_is_leaf:
        return None
    kind = type(value)
    sort: Any = _sort_of(kind)  # type: ignore[arg-type]  # types are hashable
    if sort is LEAF:
        leaves.append(value)
        return LEAF
    if sort is tuple:
        return (kind, None, *[_structure(element, leaves, none_is_leaf) for element in value])
    if sort is dict:
        made = OrderedDict if issubclass(kind, OrderedDict) else dict
        return (made, tuple(value), *[_structure(value[key], leaves, none_is_leaf) for key in _ordered(value)])
    none_is_leaf = none_is_leaf and not hasattr(kind, VALUE_TYPE)
    return (kind, sort, *[_structure(getattr(value, name), leaves, none_is_leaf) for name in sort])


def _rebuild(structure: Any, leaves: Iterator[Any]) -> Any:
    if structure is None:
        return None
    if structure == LEAF:
        return next(leaves)
    kind, names, *inner = structure
    parts = [_rebuild(each, leaves) for each in inner]
    if names is None:
        return kind(*parts) if hasattr(kind, "_make") else kind(parts)
    if kind in (dict, OrderedDict):
        values = dict(zip(_ordered(names), parts, strict=True))
        return kind((name, values[name]) for name in names)
    made: Any = object.__new__(kind)
    for name, part in zip(names, parts, strict=True):
        object.__setattr__(made, name, part)
    return made


@functools.lru_cache(maxsize=1024)
def _sort_of(kind: type) -> Any:
    """What values of a type are: LEAF, `tuple` for sequences, `dict` for mappings, otherwise the names of fields."""
    if issubclass(kind, list | tuple):
        return tuple
    if issubclass(kind, Mapping):
        return dict
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    # Classes of attrs say their fields; attrs need not be installed.
    declared = getattr(kind, "__attrs_attrs__", None)
    return LEAF if declared is None else tuple(field.name for field in declared)


def _ordered(keys: Iterable[Any]) -> list[Any]:
    """Sorted where keys can be compared, otherwise as they come."""
    try:
        return sorted(keys)
    except TypeError:
        return list(keys)
