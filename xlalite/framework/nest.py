"""`nest`: nested structures as TensorFlow's programs handle them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from xlalite.framework.structure import flatten as taken_apart, is_leaf, rebuild


def is_nested(value: Any) -> bool:
    """Whether a value is a structure, not a leaf."""
    return value is not None and not is_leaf(type(value))


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """The leaves in order; None is one."""
    return taken_apart(structure, none_is_leaf=True)[0]


def pack_sequence_as(structure: Any, flat_sequence: Iterable[Any], expand_composites: bool = False) -> Any:
    """The structure with other leaves.

    Raises:
        ValueError: there are more or fewer leaves.
    """
    leaves, around = taken_apart(structure, none_is_leaf=True)
    given = list(flat_sequence)
    if len(given) != len(leaves):
        raise ValueError(f"the structure has {len(leaves)} leaves, found {len(given)}")
    return rebuild(around, given)


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False) -> None:
    """Makes sure that two structures are alike.

    Raises:
        ValueError: they are not; a TypeError when only their types differ.
    """
    one, other = (taken_apart(each, none_is_leaf=True)[1] for each in (nest1, nest2))
    if _form(one, False) != _form(other, False):
        raise ValueError(f"The two structures don't have the same nested structure: {nest1!r:.200} and {nest2!r:.200}")
    if check_types and _form(one, True) != _form(other, True):
        raise TypeError(f"The two structures don't have the same sequence type: {nest1!r:.200} and {nest2!r:.200}")


def map_structure(func: Callable[..., Any], *structure: Any, **options: Any) -> Any:
    """The structure with what a function makes of its leaves; of those of several structures, leaf by leaf.

    Raises:
        ValueError: the structures differ.
    """
    for each in structure[1:]:
        assert_same_structure(structure[0], each, options.get("check_types", True))
    leaves = [flatten(each) for each in structure]
    return pack_sequence_as(structure[0], [func(*each) for each in zip(*leaves, strict=True)])


def _form(structure: Any, with_types: bool) -> Any:
    if not isinstance(structure, tuple):
        return structure
    kind, names, *inner = structure
    return (kind if with_types else None, names, *(_form(each, with_types) for each in inner))
