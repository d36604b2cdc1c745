"""Nested structures: leaves in TensorFlow's order, and the same structure around other leaves."""

import dataclasses
from collections import OrderedDict, namedtuple
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from xlalite.framework.structure import flatten, have_same_names, rebuild, rebuilder

Pair = namedtuple("Pair", ["first", "second"])


@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    x: Any
    y: Any

    def __post_init__(self) -> None:
        assert isinstance(self.x, int), "made again with other leaves"


class Sample:
    """What attrs makes of a class: it lists its fields."""

    __attrs_attrs__ = (SimpleNamespace(name="_hidden"), SimpleNamespace(name="shown"))

    def __init__(self, hidden: Any, shown: Any) -> None:
        self._hidden = hidden
        self.shown = shown


@pytest.mark.parametrize(
    ("value", "leaves"),
    [
        (1, [1]),
        ("text", ["text"]),
        ([], []),
        (None, []),
        ([1, (2, [3]), None], [1, 2, 3]),
        (Pair(1, Pair(2, 3)), [1, 2, 3]),
        ({"b": 1, "a": 2, "c": {"z": 3, "y": 4}}, [2, 1, 4, 3]),
        (OrderedDict(b=1, a=2), [2, 1]),
        ({"b": 1, 2: 3}, [1, 3]),
        (Point(1, [2]), [1, 2]),
    ],
)
def test_leaves_come_in_order_and_go_back(value: Any, leaves: list[Any]) -> None:
    found, structure = flatten(value)
    assert found == leaves
    again = rebuild(structure, found)
    assert again == value
    assert type(again) is type(value)
    assert rebuilder(structure)(found) == value
    hash(structure)


def test_mappings_keep_the_order_of_their_keys() -> None:
    _, structure = flatten({"b": 0, "a": 0})
    assert list(rebuild(structure, [1, 2]).items()) == [("b", 2), ("a", 1)]


def test_any_mapping_comes_back_as_a_dictionary() -> None:
    leaves, structure = flatten(MappingProxyType({"b": 1, "a": 2}))
    assert leaves == [2, 1]
    assert rebuild(structure, leaves) == {"b": 1, "a": 2}


def test_none_may_count_as_a_leaf() -> None:
    leaves, structure = flatten([1, None], none_is_leaf=True)
    assert leaves == [1, None]
    assert rebuild(structure, [2, 3]) == [2, 3]


def test_classes_are_made_again_without_their_constructors() -> None:
    assert rebuild(flatten(Point(1, 2))[1], ["a", "b"]).x == "a"
    leaves, structure = flatten(Sample(1, [2]))
    assert leaves == [1, 2]
    made = rebuild(structure, [3, 4])
    assert (type(made), made._hidden, made.shown) == (Sample, 3, [4])


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        ({"a": 1, "b": 2}, {"b": 3, "a": 4}, True),
        ({"a": 1}, {"b": 1}, False),
        ([{"a": 1}], ({"b": 1},), False),
        ([1, 2], (1, 2), True),
        (1, [1], True),
    ],
)
def test_names_are_compared_whatever_the_sequences(one: Any, other: Any, agree: bool) -> None:
    assert have_same_names(flatten(one)[1], flatten(other)[1]) is agree
