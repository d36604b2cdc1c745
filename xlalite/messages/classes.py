"""TensorFlow's messages as classes, made from the tables: `Example`, `GraphDef`, `Summary` and the like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from xlalite.hlo.proto.enum_words import ENUM_NUMBERS
from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.proto.schema import BULK_DTYPES, MESSAGE_TYPES, Kind, ProtoField
from xlalite.hlo.proto.text_format import decode_text, encode_text
from xlalite.hlo.proto.wire import decode, encode
from xlalite.hlo.records import dataclass
from xlalite.messages import tables
from xlalite.messages.setting_values import Boolean, Integer, Real, Text, ValueMap, ValueType, wrong_type
from xlalite.messages.settings import (
    Collection,
    Nested,
    Setting,
    Settings,
    SettingsOf,
    Single,
    mapping,
    repeated,
    repeated_settings,
)

assert tables is not None, "the tables are declared when they are imported"

M = TypeVar("M", bound="Message")


@dataclass(frozen=True, slots=True)
class Bytes:
    """Strings of bytes."""

    default: bytes = b""

    def check(self, value: object, where: str) -> bytes:
        """The bytes."""
        if not isinstance(value, bytes):
            raise wrong_type(where, "bytes", value)
        return value


@dataclass(frozen=True, slots=True)
class Utf8(Text):
    """Strings, which may be given as their bytes."""

    def check(self, value: object, where: str) -> str:
        """The string."""
        return Text.check(self, value.decode() if isinstance(value, bytes) else value, where)


class Message(Settings):
    """A message with bytes and text."""

    __slots__ = ("_is_there",)

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:
        """The message's bytes."""
        return encode(self.to_proto())

    SerializePartialToString = SerializeToString

    def ParseFromString(self, serialized: bytes) -> int:
        """Becomes what the bytes say.

        Raises:
            BinaryParseError: they are no such message.
        """
        self.Clear()
        return self.MergeFromString(serialized)

    def MergeFromString(self, serialized: bytes) -> int:
        """Adds what the bytes say."""
        self.take_proto(decode(bytes(serialized), self.type_name()))
        return len(serialized)

    @classmethod
    def FromString(cls: type[M], serialized: bytes) -> M:
        """The message that the bytes are."""
        message = cls()
        message.MergeFromString(serialized)
        return message

    @classmethod
    def from_text(cls: type[M], text: str) -> M:
        """The message that a text is, in the text format of protocol buffers."""
        message = cls()
        message.take_proto(decode_text(text, cls.type_name()))
        return message

    @classmethod
    def type_name(cls) -> str:
        """The name of the message's type in the tables."""
        return cls.__qualname__

    def ByteSize(self) -> int:
        """The number of bytes."""
        return len(self.SerializeToString())

    def IsInitialized(self) -> bool:
        """True: no field is required."""
        return True

    def SetInParent(self) -> None:
        """Makes the message be there although none of its fields is set."""
        object.__setattr__(self, "_is_there", True)

    def Clear(self) -> None:
        """Unsets every field."""
        super().Clear()
        object.__setattr__(self, "_is_there", False)

    def WhichOneof(self, group: str) -> str | None:
        """The name of the field that is set in a group of which only one is."""
        for field in MESSAGE_TYPES[self.type_name()].by_name.values():
            if field.group == group and self.HasField(field.name):
                return field.name
        return None

    def to_proto(self) -> ProtoMessage:
        """The message as the readers and writers of `hlo/proto` have it."""
        fields = MESSAGE_TYPES[self.type_name()].by_name
        message = ProtoMessage(self.type_name())
        for setting, value in self.ListFields():
            message.values[setting.name] = _to_wire(fields[setting.name], value)
        return message

    def take_proto(self, message: ProtoMessage) -> None:
        """Adds what a message says."""
        object.__setattr__(self, "_is_there", True)
        for name, value in message.values.items():
            self._field(name).take(self, _from_wire(message.type.by_name[name], value))

    def is_there(self) -> bool:
        """Whether the message was set or read, even without any field."""
        return getattr(self, "_is_there", False) or any(self.ListFields())

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...

    def _lines(self) -> Iterator[str]:
        return iter(encode_text(self.to_proto()).splitlines())


class OneMessage(Nested[M]):
    """A message in a field, which may be there without any field of its own."""

    def __init__(self, kind: type[M], others: tuple[str, ...]) -> None:
        """`others` are the fields of the same group, which go when this one is set."""
        super().__init__(kind)
        self._others = others

    def read(self, settings: Settings) -> M:
        """The message inside."""
        return self._made_once(settings, self.type.kind)

    def take(self, settings: Settings, value: object) -> None:
        """Copies the message."""
        _clear(settings, self._others)
        super().take(settings, value)
        self.read(settings).SetInParent()

    def is_set(self, settings: Settings) -> bool:
        """Whether the message is there."""
        return self.name in settings._values and self.read(settings).is_there()

    def merge(self, settings: Settings, other: Settings) -> None:
        """Merges both."""
        super().merge(settings, other)
        self.read(settings).SetInParent()


class OneValue(Single[Any]):
    """A plain value whose presence counts."""

    def __init__(self, type: ValueType[Any], others: tuple[str, ...]) -> None:
        """`others` are the fields of the same group, which go when this one is set."""
        super().__init__(type)
        self._others = others

    def take(self, settings: Settings, value: object) -> None:
        """Assigns the checked value."""
        _clear(settings, self._others)
        super().take(settings, value)

    def is_set(self, settings: Settings) -> bool:
        """Whether a value was assigned."""
        return self.name in settings._values


class MessageMap(ValueMap[Any, M]):
    """A mapping to messages, which are made when they are looked at."""

    __slots__ = ("_make",)

    def __init__(self, keys: ValueType[Any], kind: type[M], where: str) -> None:
        super().__init__(keys, SettingsOf(kind), where)
        self._make = kind

    def __getitem__(self, key: Any) -> M:
        if key not in self._items:
            self[key] = self._make()
        return self._items[key]

    def __contains__(self, key: object) -> bool:
        return key in self._items

    def get(self, key: Any, default: Any = None) -> Any:
        """The message of a key, or the default."""
        return self._items.get(key, default)

    def __eq__(self, other: object) -> bool:
        return self._items == (other._items if isinstance(other, ValueMap) else other)

    __hash__ = None  # type: ignore[assignment]  # mappings can change


def _clear(settings: Settings, names: tuple[str, ...]) -> None:
    for name in names:
        settings._values.pop(name, None)


_VALUES: Mapping[Kind, ValueType[Any]] = {
    Kind.INT32: Integer(32),
    Kind.INT64: Integer(64),
    Kind.UINT32: Integer(32, signed=False),
    Kind.UINT64: Integer(64, signed=False),
    Kind.FIXED32: Integer(32, signed=False),
    Kind.ENUM: Integer(32),
    Kind.BOOL: Boolean(),
    Kind.FLOAT: Real(),
    Kind.DOUBLE: Real(),
    Kind.STRING: Utf8(),
    Kind.BYTES: Bytes(),
}


def _to_wire(field: ProtoField, value: Any) -> Any:
    if _is_map(field):
        return [_entry(field, key, each) for key, each in value.items()]
    if field.bulk:
        return [np.asarray(list(value), BULK_DTYPES[field.kind])]
    if field.kind is Kind.MESSAGE:
        return [each.to_proto() for each in value] if field.repeated else value.to_proto()
    return list(value) if field.repeated else value


def _entry(field: ProtoField, key: Any, value: Any) -> ProtoMessage:
    entry = ProtoMessage(field.type_name)
    entry.values = {"key": key, "value": value.to_proto() if isinstance(value, Message) else value}
    return entry


def _from_wire(field: ProtoField, value: Any) -> Any:
    if _is_map(field):
        held = MESSAGE_TYPES[field.type_name].by_name["value"]
        return {entry.text("key"): _map_value(held, entry) for entry in value}
    if field.bulk:
        return np.concatenate(value).tolist()
    if field.kind is Kind.MESSAGE:
        return [_made(field, each) for each in value] if field.repeated else _made(field, value)
    return value


def _map_value(field: ProtoField, entry: ProtoMessage) -> Any:
    return _made(field, entry.message("value")) if field.kind is Kind.MESSAGE else entry.text("value")


def _made(field: ProtoField, message: ProtoMessage) -> Message:
    made: Message = CLASSES[field.type_name]()
    made.take_proto(message)
    return made


def _is_map(field: ProtoField) -> bool:
    return field.kind is Kind.MESSAGE and field.type_name.endswith("Entry")


def _setting(field: ProtoField, others: tuple[str, ...]) -> Setting[Any]:
    if _is_map(field):
        held = MESSAGE_TYPES[field.type_name].by_name["value"]
        if held.kind is not Kind.MESSAGE:
            return mapping(Utf8(), _VALUES[held.kind])
        return _message_map(CLASSES[held.type_name])
    if field.kind is Kind.MESSAGE:
        kind = CLASSES[field.type_name]
        return repeated_settings(kind) if field.repeated else OneMessage(kind, others)
    if field.repeated:
        return repeated(_VALUES[field.kind])
    return OneValue(_VALUES[field.kind], others) if field.has_presence else Single(_VALUES[field.kind])


def _message_map(kind: type[Message]) -> Setting[Any]:
    return Collection(lambda where: MessageMap(Utf8(), kind, where))


def _make_classes() -> dict[str, Any]:
    names = [name for name in tables.NAMES if not name.endswith("Entry")]
    made: dict[str, Any] = {}
    for name in names:
        doc = f"TensorFlow's message `{name}`."
        made[name] = type(name.rpartition(".")[2], (Message,), {"__slots__": (), "__doc__": doc, "__qualname__": name})
    return made


CLASSES: Mapping[str, Any] = _make_classes()
"""The classes by the names of their messages."""


def _fill(name: str, made: Any) -> None:
    fields = MESSAGE_TYPES[name].by_name
    settings: dict[str, Setting[Any]] = {}
    for field in fields.values():
        others = tuple(
            each.name for each in fields.values() if field.group and each.group == field.group and each is not field
        )
        settings[field.name] = setting = _setting(field, others)
        setattr(made, field.name, setting)
        setting.__set_name__(made, field.name)
        for word, number in ENUM_NUMBERS.get(field.type_name, {}).items() if field.kind is Kind.ENUM else ():
            if field.type_name.startswith(f"{name}."):
                setattr(made, word, number)
    made._fields = settings
    for inner, held in CLASSES.items():
        if inner.rpartition(".")[0] == name:
            setattr(made, held.__name__, held)


for _name, _made_class in CLASSES.items():
    _fill(_name, _made_class)

DATA_TYPES: Mapping[str, int] = ENUM_NUMBERS["DataType"]
"""Numbers of element types by their words, such as `DT_FLOAT`."""


def __getattr__(name: str) -> Any:
    if name in CLASSES:
        return CLASSES[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
