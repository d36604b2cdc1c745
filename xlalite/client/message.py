"""Structured settings that are read and written by attribute, with the manners of protocol buffer messages.

A message class declares its fields as descriptors; everything else (nested creation, checks, copying, merging, text)
follows from the declarations. Nothing here knows what the fields mean.
"""

import difflib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar, Generic, Self, TypeVar, overload

from xlalite.client.message_values import (
    FieldNameError,
    MapValues,
    RepeatedValues,
    ValueType,
    wrong_type,
)

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
M = TypeVar("M", bound="Message")


@dataclass(frozen=True, slots=True)
class MessageOf(Generic[M]):
    """Messages of one class."""

    message: type[M]

    @property
    def default(self) -> M:
        """A new empty message."""
        return self.message()

    def check(self, value: object, where: str) -> M:
        """A copy of the message, so that two owners never share one."""
        if not isinstance(value, self.message):
            raise wrong_type(where, f"a {self.message.__name__}", value)
        copy = self.message()
        copy.MergeFrom(value)
        return copy


class Field(ABC, Generic[T]):
    """A declared field of a message class."""

    name: str
    owner: str

    def __set_name__(self, owner: type, name: str) -> None:
        """Learns the name that the class body gives to the field."""
        self.name = name
        self.owner = owner.__name__

    @overload
    def __get__(self, message: None, owner: type) -> Self: ...
    @overload
    def __get__(self, message: "Message", owner: type) -> T: ...
    def __get__(self, message: "Message | None", owner: type) -> Self | T:
        """The field's value in a message; the field itself when asked of the class."""
        return self if message is None else self.read(message)

    def __set__(self, message: "Message", value: T) -> None:
        """Refuses: only fields of single values are assigned."""
        raise FieldNameError(
            f"{self.where} cannot be assigned as a whole: change what is inside it, or give it to {self.owner}(...)"
        )

    @property
    def where(self) -> str:
        """The field's name for errors."""
        return f"{self.owner}.{self.name}"

    @abstractmethod
    def read(self, message: "Message") -> T:
        """The value; containers and nested messages are made when first read."""

    @abstractmethod
    def initialize(self, message: "Message", value: object) -> None:
        """Takes over the value given to the constructor."""

    @abstractmethod
    def is_set(self, message: "Message") -> bool:
        """Whether the value differs from that of an untouched message."""

    @abstractmethod
    def merge(self, message: "Message", other: "Message") -> None:
        """Merges the other message's value, which is set, into this one's."""

    @abstractmethod
    def lines(self, message: "Message") -> Iterator[str]:
        """The value, which is set, as lines of text."""

    def _made_once(self, message: "Message", make: Callable[[], V]) -> V:
        """What the message keeps for the field, made when there is nothing yet."""
        if self.name not in message._values:
            message._values[self.name] = make()
        return message._values[self.name]  # type: ignore[return-value]  # only this method and checks put it there


class Single(Field[T]):
    """A field that holds one plain value."""

    def __init__(self, type: ValueType[T]) -> None:
        """Declares the field with what it may hold."""
        self.type = type

    def __set__(self, message: "Message", value: T | int) -> None:
        """Assigns the checked value."""
        message._values[self.name] = self.type.check(value, self.where)

    def read(self, message: "Message") -> T:
        """The value, or the default."""
        found: T = message._values.get(self.name, self.type.default)  # type: ignore[assignment]  # only __set__ puts it there
        return found

    def initialize(self, message: "Message", value: object) -> None:
        """Assigns the value; None leaves the field alone, as protocol buffers do."""
        if value is not None:
            message._values[self.name] = self.type.check(value, self.where)

    def is_set(self, message: "Message") -> bool:
        """Whether the value differs from the default."""
        return self.read(message) != self.type.default

    def merge(self, message: "Message", other: "Message") -> None:
        """The other value wins."""
        message._values[self.name] = self.read(other)

    def lines(self, message: "Message") -> Iterator[str]:
        """`name: value`."""
        yield f"{self.name}: {_value_text(self.read(message))}"


class Nested(Field[M]):
    """A field that holds a message, which exists as soon as it is looked at."""

    def __init__(self, message: type[M]) -> None:
        """Declares the field with the class of its message."""
        self.type = MessageOf(message)

    def read(self, message: "Message") -> M:
        """The nested message."""
        return self._made_once(message, self.type.message)

    def initialize(self, message: "Message", value: object) -> None:
        """Copies a message; a mapping is taken as its keyword arguments."""
        if isinstance(value, Mapping):
            value = self.type.message(**value)
        if value is not None:
            message._values[self.name] = self.type.check(value, self.where)

    def is_set(self, message: "Message") -> bool:
        """Whether anything inside is set."""
        return self.name in message._values and any(self.read(message).ListFields())

    def merge(self, message: "Message", other: "Message") -> None:
        """Merges the two messages."""
        self.read(message).MergeFrom(self.read(other))

    def lines(self, message: "Message") -> Iterator[str]:
        """The block `name { ... }`."""
        yield from _block(self.name, self.read(message))


class Repeated(Field[RepeatedValues[T]], Generic[T]):
    """A field that holds any number of values."""

    def __init__(self, type: ValueType[T]) -> None:
        """Declares the field with what each element may hold."""
        self.type = type

    def read(self, message: "Message") -> RepeatedValues[T]:
        """The list."""
        return self._made_once(message, self._empty)

    def initialize(self, message: "Message", value: object) -> None:
        """Appends every element of the value."""
        if value is None:
            return
        if isinstance(value, str | bytes) or not isinstance(value, Iterable):
            raise wrong_type(self.where, "a sequence", value)
        self.read(message).extend(value)

    def is_set(self, message: "Message") -> bool:
        """Whether there is an element."""
        return bool(message._values.get(self.name))

    def merge(self, message: "Message", other: "Message") -> None:
        """Appends the other's elements."""
        self.read(message).extend(list(self.read(other)))

    def lines(self, message: "Message") -> Iterator[str]:
        """One entry for each element."""
        for value in self.read(message):
            if isinstance(value, Message):
                yield from _block(self.name, value)
            else:
                yield f"{self.name}: {_value_text(value)}"

    def _empty(self) -> RepeatedValues[T]:
        return RepeatedValues(self.type, self.where)


class RepeatedMessages(Repeated[M]):
    """A field that holds any number of messages; its list can make them."""

    def __init__(self, message: type[M]) -> None:
        """Declares the field with the class of its messages."""
        super().__init__(MessageOf(message))

    def read(self, message: "Message") -> "MessageValues[M]":
        """The list."""
        return self._made_once(message, self._empty)

    @overload
    def __get__(self, message: None, owner: type) -> Self: ...
    @overload
    def __get__(self, message: "Message", owner: type) -> "MessageValues[M]": ...
    def __get__(self, message: "Message | None", owner: type) -> "Self | MessageValues[M]":
        """The list of a message; the field itself when asked of the class."""
        return self if message is None else self.read(message)

    def _empty(self) -> "MessageValues[M]":
        return MessageValues(self.type, self.where)


class MapOf(Field[MapValues[K, T]], Generic[K, T]):
    """A field that maps keys to values."""

    def __init__(self, keys: ValueType[K], values: ValueType[T]) -> None:
        """Declares the field with what its keys and values may hold."""
        self.keys = keys
        self.values = values

    def read(self, message: "Message") -> MapValues[K, T]:
        """The mapping."""
        return self._made_once(message, lambda: MapValues(self.keys, self.values, self.where))

    def initialize(self, message: "Message", value: object) -> None:
        """Takes over every entry of a mapping."""
        if value is None:
            return
        if not isinstance(value, Mapping):
            raise wrong_type(self.where, "a mapping", value)
        self.read(message).update(value)

    def is_set(self, message: "Message") -> bool:
        """Whether there is an entry."""
        return bool(message._values.get(self.name))

    def merge(self, message: "Message", other: "Message") -> None:
        """The other's entries win."""
        self.read(message).update(self.read(other))

    def lines(self, message: "Message") -> Iterator[str]:
        """One block `name { key: ... value: ... }` for each entry."""
        for key, value in self.read(message).items():
            yield from (f"{self.name} {{", f"  key: {_value_text(key)}", f"  value: {_value_text(value)}", "}")


class MessageValues(RepeatedValues[M]):
    """The list of a repeated message field."""

    __slots__ = ()

    def add(self, **fields: object) -> M:
        """Appends a new message with the given fields and returns it."""
        made = self._type.default
        for name, value in fields.items():
            made._field(name).initialize(made, value)
        self._items.append(made)
        return made


class Message:
    """Base of all messages: a class body of fields makes a message class."""

    __slots__ = ("_values",)
    __hash__ = None  # type: ignore[assignment]  # a message can change
    _values: dict[str, object]
    _fields: ClassVar[dict[str, Field[object]]] = {}

    def __init_subclass__(cls) -> None:
        """Collects the fields that the class body declares."""
        cls._fields = {name: value for name, value in vars(cls).items() if isinstance(value, Field)}

    def __init__(self, **fields: object) -> None:
        """An empty message, or one with the given fields set."""
        object.__setattr__(self, "_values", {})
        for name, value in fields.items():
            self._field(name).initialize(self, value)

    if not TYPE_CHECKING:  # A type checker would take every misspelt field for a declared one.

        def __getattr__(self, name: str) -> object:
            """Only reached for names that do not exist."""
            raise self._unknown(name)

        def __setattr__(self, name: str, value: object) -> None:
            """Assigns a declared field."""
            self._field(name).__set__(self, value)

    def CopyFrom(self, other: Self) -> None:
        """Becomes equal to the other message."""
        if other is not self:
            self._same_class(other)
            self.Clear()
            self.MergeFrom(other)

    def MergeFrom(self, other: Self) -> None:
        """Takes over what is set in the other message: values replace, messages merge, lists grow."""
        self._same_class(other)
        for field, _ in other.ListFields():
            field.merge(self, other)

    def Clear(self) -> None:
        """Unsets every field."""
        self._values.clear()

    def ClearField(self, name: str) -> None:
        """Unsets one field."""
        self._values.pop(self._field(name).name, None)

    def HasField(self, name: str) -> bool:
        """Whether the field differs from that of an empty message."""
        return self._field(name).is_set(self)

    def ListFields(self) -> Iterator[tuple[Field[object], object]]:
        """The fields that are set, with their values, in the order of their declaration."""
        for field in self._fields.values():
            if field.is_set(self):
                yield field, field.read(self)

    def __eq__(self, other: object) -> bool:
        """Equal when the same fields are set to the same values."""
        if not isinstance(other, Message):
            return NotImplemented
        return type(self) is type(other) and list(self.ListFields()) == list(other.ListFields())

    def __copy__(self) -> Self:
        """An independent copy."""
        copy = type(self)()
        copy.MergeFrom(self)
        return copy

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """An independent copy."""
        return self.__copy__()

    def __getstate__(self) -> dict[str, object]:
        """What pickle keeps."""
        return self._values

    def __setstate__(self, state: dict[str, object]) -> None:
        """Restores what pickle kept."""
        object.__setattr__(self, "_values", state)

    def __repr__(self) -> str:
        """The set fields in the text format of protocol buffers."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        for field, _ in self.ListFields():
            yield from field.lines(self)

    def _field(self, name: str) -> Field[object]:
        try:
            return self._fields[name]
        except KeyError:
            raise self._unknown(name) from None

    def _unknown(self, name: str) -> FieldNameError:
        found = f"{type(self).__name__} has no field {name!r}"
        if path := _path_to(type(self), name):
            return FieldNameError(f"{found}; did you mean {path}?")
        if nearest := difflib.get_close_matches(name, self._fields, n=1):
            return FieldNameError(f"{found}; did you mean {nearest[0]}?")
        return FieldNameError(f"{found}; its fields are {', '.join(self._fields)}")

    def _same_class(self, other: "Message") -> None:
        if type(other) is not type(self):
            raise wrong_type(type(self).__name__, f"a {type(self).__name__}", other)


def _path_to(message: type[Message], name: str) -> str:
    """Where a nested message has the field: `graph_options.optimizer_options.global_jit_level`; empty if nowhere."""
    for field in message._fields.values():
        if not isinstance(field, Nested):
            continue
        nested = field.type.message
        below = name if name in nested._fields else _path_to(nested, name)
        if below:
            return f"{field.name}.{below}"
    return ""


def _block(name: str, message: Message) -> Iterator[str]:
    yield f"{name} {{"
    yield from (f"  {line}" for line in message._lines())
    yield "}"


def _value_text(value: object) -> str:
    if isinstance(value, IntEnum):
        return value.name
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
