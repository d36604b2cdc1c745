"""What settings hold: plain values, lists and mappings, each checked when it goes in."""

from __future__ import annotations

import json
import operator
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, MutableSequence
from enum import IntEnum
from typing import Generic, Protocol, TypeVar, overload

import numpy as np

from xlalite.hlo.errors import ConfigError
from xlalite.hlo.records import dataclass

T = TypeVar("T")
K = TypeVar("K")
E = TypeVar("E", bound=IntEnum)
T_co = TypeVar("T_co", covariant=True)


class FieldNameError(ConfigError, AttributeError):
    """A field that the message does not have, or that cannot be assigned as a whole."""


class FieldTypeError(ConfigError, TypeError):
    """A value of the wrong type for its field."""


class FieldValueError(ConfigError, ValueError):
    """A value of the right type that the field cannot hold."""


class ValueType(Protocol[T_co]):
    """What a field may hold: its value when unset, and the check of every value that goes in."""

    @property
    def default(self) -> T_co:
        """The value of a field that was never set."""

    def check(self, value: object, where: str) -> T_co:
        """The value as the field keeps it; `where` names the field in errors."""


@dataclass(frozen=True, slots=True)
class Integer:
    """Integers of a width; whatever Python accepts as an index, so NumPy's integers too."""

    bits: int = 32
    signed: bool = True
    default: int = 0

    def check(self, value: object, where: str) -> int:
        """The integer, if it fits."""
        try:
            number = operator.index(value)  # type: ignore[arg-type]  # the error below is the check
        except TypeError:
            raise wrong_type(where, "an integer", value) from None
        low, high = (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1) if self.signed else (0, (1 << self.bits) - 1)
        if not low <= number <= high:
            raise FieldValueError(f"{where}: {number} is out of range, expected {low} to {high}")
        return number


@dataclass(frozen=True, slots=True)
class Boolean:
    """True or false; 1 and 0 are accepted for them."""

    default: bool = False

    def check(self, value: object, where: str) -> bool:
        """The truth value."""
        if isinstance(value, bool | np.bool_):
            return bool(value)
        try:
            number = operator.index(value)  # type: ignore[arg-type]  # the error below is the check
        except TypeError:
            raise wrong_type(where, "True or False", value) from None
        if number not in (0, 1):
            raise FieldValueError(f"{where}: expected True or False, found {value!r}")
        return bool(number)


@dataclass(frozen=True, slots=True)
class Real:
    """Floating-point numbers; integers are converted."""

    default: float = 0.0

    def check(self, value: object, where: str) -> float:
        """The number as a float."""
        if isinstance(value, str | bytes) or not hasattr(value, "__float__"):
            raise wrong_type(where, "a number", value)
        return float(value)


@dataclass(frozen=True, slots=True)
class Text:
    """Strings."""

    default: str = ""

    def check(self, value: object, where: str) -> str:
        """The string."""
        if not isinstance(value, str):
            raise wrong_type(where, "a string", value)
        return str(value)


@dataclass(frozen=True, slots=True)
class Enumeration(Generic[E]):
    """Members of an enumeration, accepted as members or as their numbers."""

    members: type[E]

    @property
    def default(self) -> E:
        """The member whose number is 0."""
        return self.members(0)

    def check(self, value: object, where: str) -> E:
        """The member."""
        number = Integer().check(value, where)
        try:
            return self.members(number)
        except ValueError:
            known = ", ".join(f"{member.name} = {member.value}" for member in self.members)
            raise FieldValueError(f"{where}: {number} is no {self.members.__name__}, expected one of {known}") from None


class ValueList(MutableSequence[T]):
    """A list that checks what goes in."""

    __slots__ = ("_items", "_type", "_where")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, type: ValueType[T], where: str) -> None:
        self._type = type
        self._where = where
        self._items: list[T] = []

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        return self._items[index]

    def __setitem__(self, index: int | slice, value: T | Iterable[T]) -> None:
        """Replaces an element; slices are deleted or extended, not assigned."""
        if isinstance(index, slice):
            raise FieldTypeError(f"{self._where}: assign single elements, or delete and extend")
        self._items[index] = self._type.check(value, self._where)

    def __delitem__(self, index: int | slice) -> None:
        del self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def insert(self, index: int, value: T) -> None:
        """Inserts the checked value."""
        self._items.insert(index, self._type.check(value, self._where))

    def take(self, values: object) -> None:
        """Appends every element of a sequence."""
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise wrong_type(self._where, "a sequence", values)
        self.extend(list(values))

    def lines(self, name: str) -> Iterator[str]:
        """`name: value` for each element."""
        return (f"{name}: {value_text(value)}" for value in self._items)

    def __eq__(self, other: object) -> bool:
        return self._items == (other._items if isinstance(other, ValueList) else other)

    def __repr__(self) -> str:
        return repr(self._items)


class ValueMap(MutableMapping[K, T]):
    """A mapping that checks keys and values that go in."""

    __slots__ = ("_items", "_keys", "_values", "_where")

    def __init__(self, keys: ValueType[K], values: ValueType[T], where: str) -> None:
        self._keys = keys
        self._values = values
        self._where = where
        self._items: dict[K, T] = {}

    def __getitem__(self, key: K) -> T:
        return self._items[key]

    def __setitem__(self, key: K, value: T) -> None:
        checked_key = self._keys.check(key, f"{self._where} (key)")
        self._items[checked_key] = self._values.check(value, f"{self._where}[{key!r}]")

    def __delitem__(self, key: K) -> None:
        del self._items[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def take(self, entries: object) -> None:
        """Adds or replaces every entry of a mapping."""
        if not isinstance(entries, Mapping):
            raise wrong_type(self._where, "a mapping", entries)
        self.update(entries)

    def lines(self, name: str) -> Iterator[str]:
        """One block `name { key: ... value: ... }` for each entry."""
        for key, value in self._items.items():
            yield from (f"{name} {{", f"  key: {value_text(key)}", f"  value: {value_text(value)}", "}")

    def __repr__(self) -> str:
        return repr(self._items)


def value_text(value: object) -> str:
    """A plain value as protocol buffers write it."""
    if isinstance(value, IntEnum):
        return value.name
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def wrong_type(where: str, expected: str, found: object) -> FieldTypeError:
    """The error for a value of the wrong type."""
    return FieldTypeError(f"{where}: expected {expected}, found {found!r} of type {type(found).__name__}")
