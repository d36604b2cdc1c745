"""Structured settings that are read and written by attribute, with the manners of protocol buffers.

A class declares its settings as descriptors; everything else (nested creation, checks, copying, merging, text) follows
from the declarations. Nothing here knows what the settings mean.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, Self, TypeVar, overload

from xlalite.hlo.records import dataclass
from xlalite.hlo.wording import did_you_mean
from xlalite.messages.setting_values import FieldNameError, ValueList, ValueMap, ValueType, value_text, wrong_type

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
C = TypeVar("C", bound="Elements")
M = TypeVar("M", bound="Settings")


@dataclass(frozen=True, slots=True)
class SettingsOf(Generic[M]):
    """Settings of one class, as a value."""

    kind: type[M]

    @property
    def default(self) -> M:
        """New settings of which none is set."""
        return self.kind()

    def check(self, value: object, where: str) -> M:
        """A copy, so that two owners never share one; a mapping is taken as keyword arguments."""
        if isinstance(value, Mapping):
            return self.kind(**value)
        if not isinstance(value, self.kind):
            raise wrong_type(where, f"a {self.kind.__name__}", value)
        copy = self.kind()
        copy.MergeFrom(value)
        return copy

    def lines(self, name: str, value: object) -> Iterator[str]:
        """The block `name { ... }`."""
        assert isinstance(value, Settings), "checked when it came in"
        yield f"{name} {{"
        yield from (f"  {line}" for line in value._lines())
        yield "}"


class Setting(ABC, Generic[T]):
    """A declared setting of a class."""

    name: str
    owner: str

    def __set_name__(self, owner: type, name: str) -> None:
        """Learns the name that the class body gives to the setting."""
        self.name = name
        self.owner = owner.__name__

    @overload
    def __get__(self, settings: None, owner: type) -> Self: ...
    @overload
    def __get__(self, settings: Settings, owner: type) -> T: ...
    def __get__(self, settings: Settings | None, owner: type) -> Self | T:
        """The value in an object; the setting itself when asked of the class."""
        return self if settings is None else self.read(settings)

    def __set__(self, settings: Settings, value: T) -> None:
        """Refuses: only single values are assigned."""
        raise FieldNameError(
            f"{self.where} cannot be assigned as a whole: change what is inside it, or give it to {self.owner}(...)"
        )

    @property
    def where(self) -> str:
        """The setting's name for errors."""
        return f"{self.owner}.{self.name}"

    @abstractmethod
    def read(self, settings: Settings) -> T:
        """The value; containers and nested settings are made when first read."""

    @abstractmethod
    def take(self, settings: Settings, value: object) -> None:
        """Takes over the value given to the constructor."""

    @abstractmethod
    def is_set(self, settings: Settings) -> bool:
        """Whether the value differs from that of an untouched object."""

    @abstractmethod
    def merge(self, settings: Settings, other: Settings) -> None:
        """Merges the other object's value, which is set, into this one's."""

    @abstractmethod
    def lines(self, settings: Settings) -> Iterator[str]:
        """The value, which is set, as lines of text."""

    def _made_once(self, settings: Settings, make: Callable[[], V]) -> V:
        """What the object keeps for the setting, made when there is nothing yet."""
        if self.name not in settings._values:
            settings._values[self.name] = make()
        return settings._values[self.name]  # type: ignore[return-value]  # only this method and checks put it there


class Single(Setting[T]):
    """A setting that is one plain value."""

    def __init__(self, type: ValueType[T]) -> None:
        """Declares the setting with what it may hold."""
        self.type = type

    def __set__(self, settings: Settings, value: T | int) -> None:
        self.take(settings, value)

    def read(self, settings: Settings) -> T:
        """The value, or the default."""
        found: T = settings._values.get(self.name, self.type.default)  # type: ignore[assignment]  # `take` puts it there
        return found

    def take(self, settings: Settings, value: object) -> None:
        """Assigns the checked value."""
        settings._values[self.name] = self.type.check(value, self.where)

    def is_set(self, settings: Settings) -> bool:
        """Whether the value differs from the default."""
        return self.read(settings) != self.type.default

    def merge(self, settings: Settings, other: Settings) -> None:
        """The other value wins."""
        settings._values[self.name] = self.read(other)

    def lines(self, settings: Settings) -> Iterator[str]:
        """`name: value`."""
        yield f"{self.name}: {value_text(self.read(settings))}"


class Accepted(Single[T]):
    """A setting that programs may set and that steers nothing here."""


class Nested(Setting[M]):
    """A setting that holds others, which exist as soon as they are looked at."""

    def __init__(self, kind: type[M]) -> None:
        self.type = SettingsOf(kind)

    def read(self, settings: Settings) -> M:
        """The settings inside."""
        return self._made_once(settings, self.type.kind)

    def take(self, settings: Settings, value: object) -> None:
        """Copies them."""
        settings._values[self.name] = self.type.check(value, self.where)

    def is_set(self, settings: Settings) -> bool:
        """Whether any of them is set."""
        return self.name in settings._values and any(self.read(settings).ListFields())

    def merge(self, settings: Settings, other: Settings) -> None:
        """Merges both."""
        self.read(settings).MergeFrom(self.read(other))

    def lines(self, settings: Settings) -> Iterator[str]:
        """The block `name { ... }`."""
        return self.type.lines(self.name, self.read(settings))


class Elements(Protocol):
    """What a collection asks of its list or mapping."""

    def take(self, value: object, /) -> None:
        """Adds every element of the value."""

    def lines(self, name: str) -> Iterator[str]:
        """One entry for each element."""


class Collection(Setting[C]):
    """A setting that is a list or a mapping."""

    def __init__(self, make: Callable[[str], C]) -> None:
        """Declares the setting with what makes an empty one, given its name for errors."""
        self._make = make

    def read(self, settings: Settings) -> C:
        """The list or mapping."""
        return self._made_once(settings, lambda: self._make(self.where))

    def take(self, settings: Settings, value: object) -> None:
        """Adds every element of the value."""
        self.read(settings).take(value)

    def is_set(self, settings: Settings) -> bool:
        """Whether there is an element."""
        return bool(settings._values.get(self.name))

    def merge(self, settings: Settings, other: Settings) -> None:
        """Adds the other's elements; in mappings they win."""
        self.read(settings).take(self.read(other))

    def lines(self, settings: Settings) -> Iterator[str]:
        """One entry for each element."""
        return self.read(settings).lines(self.name)


def repeated(type: ValueType[T]) -> Collection[ValueList[T]]:
    """A setting that holds any number of values."""
    return Collection(lambda where: ValueList(type, where))


def repeated_settings(kind: type[M]) -> Collection[SettingsList[M]]:
    """A setting that holds any number of others; its list can make them."""
    return Collection(lambda where: SettingsList(SettingsOf(kind), where))


def mapping(keys: ValueType[K], values: ValueType[V]) -> Collection[ValueMap[K, V]]:
    """A setting that maps keys to values."""
    return Collection(lambda where: ValueMap(keys, values, where))


class SettingsList(ValueList[M]):
    """A list of settings."""

    __slots__ = ()

    def add(self, **fields: object) -> M:
        """Appends new settings with the given values and returns them."""
        made = self._type.check(fields, self._where)
        self._items.append(made)
        return made

    def lines(self, name: str) -> Iterator[str]:
        """One block for each element."""
        for each in self._items:
            yield from SettingsOf(type(each)).lines(name, each)


class Settings:
    """Base of all classes of settings."""

    __slots__ = ("_values",)
    __hash__ = None  # type: ignore[assignment]  # settings can change
    _values: dict[str, object]
    _fields: ClassVar[dict[str, Setting[object]]] = {}

    def __init_subclass__(cls) -> None:
        cls._fields = {name: value for name, value in vars(cls).items() if isinstance(value, Setting)}

    def __init__(self, **fields: object) -> None:
        """The given settings are set, but for those given as None, as protocol buffers do."""
        object.__setattr__(self, "_values", {})
        for name, value in fields.items():
            field = self._field(name)
            if value is not None:
                field.take(self, value)

    if not TYPE_CHECKING:  # A type checker would take every misspelt field for a declared one.

        def __getattr__(self, name: str) -> object:
            """Only reached for names that do not exist."""
            raise self._unknown(name)

        def __setattr__(self, name: str, value: object) -> None:
            self._field(name).__set__(self, value)

    def CopyFrom(self, other: Self) -> None:
        """Becomes equal to the other."""
        if other is not self:
            self._same_class(other)
            self.Clear()
            self.MergeFrom(other)

    def MergeFrom(self, other: Self) -> None:
        """Takes over what is set in the other: values replace, nested settings merge, lists grow."""
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
        """Whether the field differs from that of an untouched object."""
        return self._field(name).is_set(self)

    def ListFields(self) -> Iterator[tuple[Setting[object], object]]:
        """The fields that are set, with their values, in the order of their declaration."""
        for field in self._fields.values():
            if field.is_set(self):
                yield field, field.read(self)

    def __eq__(self, other: object) -> bool:
        """Equal when the same fields are set to the same values."""
        if not isinstance(other, Settings):
            return NotImplemented
        return type(self) is type(other) and list(self.ListFields()) == list(other.ListFields())

    def __copy__(self) -> Self:
        copy = type(self)()
        copy.MergeFrom(self)
        return copy

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self.__copy__()

    def __getstate__(self) -> dict[str, object]:
        return self._values

    def __setstate__(self, state: dict[str, object]) -> None:
        object.__setattr__(self, "_values", state)

    def __repr__(self) -> str:
        """The set fields in the text format of protocol buffers."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        for field, _ in self.ListFields():
            yield from field.lines(self)

    def _field(self, name: str) -> Setting[object]:
        try:
            return self._fields[name]
        except KeyError:
            raise self._unknown(name) from None

    def _unknown(self, name: str) -> FieldNameError:
        found = f"{type(self).__name__} has no field {name!r}"
        if path := _path_to(type(self), name):
            return FieldNameError(f"{found}; did you mean {path!r}?")
        return FieldNameError(found + did_you_mean(name, self._fields, f"its fields are {', '.join(self._fields)}"))

    def _same_class(self, other: Settings) -> None:
        if type(other) is not type(self):
            raise wrong_type(type(self).__name__, f"a {type(self).__name__}", other)


def _path_to(kind: type[Settings], name: str) -> str:
    """Where nested settings have the field: `graph_options.optimizer_options.global_jit_level`; empty if nowhere."""
    for field in kind._fields.values():
        if not isinstance(field, Nested):
            continue
        inside = field.type.kind
        below = name if name in inside._fields else _path_to(inside, name)
        if below:
            return f"{field.name}.{below}"
    return ""
