"""What the messages look like: the tables of fields, read once."""

from __future__ import annotations

import enum
import re

from xlalite.hlo.proto.data_messages import DATA_MESSAGES
from xlalite.hlo.proto.enum_words import declare_enums
from xlalite.hlo.proto.module_messages import MODULE_MESSAGES
from xlalite.hlo.records import dataclass


class WireType(enum.IntEnum):
    """How the bytes of a field are delimited."""

    VARINT = 0
    FIXED64 = 1
    BYTES = 2
    GROUP_START = 3
    GROUP_END = 4
    FIXED32 = 5


class Kind(enum.Enum):
    """Type of a field's values."""

    INT32 = "int32"
    INT64 = "int64"
    UINT32 = "uint32"
    UINT64 = "uint64"
    BOOL = "bool"
    ENUM = "enum"
    FLOAT = "float"
    DOUBLE = "double"
    STRING = "string"
    BYTES = "bytes"
    FIXED32 = "fixed32"
    MESSAGE = "message"

    @property
    def wire_type(self) -> WireType:
        """How one value lies in the bytes."""
        return _WIRE_TYPES.get(self, WireType.VARINT)


_WIRE_TYPES = {
    Kind.FLOAT: WireType.FIXED32,
    Kind.DOUBLE: WireType.FIXED64,
    Kind.FIXED32: WireType.FIXED32,
    Kind.STRING: WireType.BYTES,
    Kind.BYTES: WireType.BYTES,
    Kind.MESSAGE: WireType.BYTES,
}

BULK_DTYPES = {
    Kind.INT32: "<i4",
    Kind.INT64: "<i8",
    Kind.UINT32: "<u4",
    Kind.UINT64: "<u8",
    Kind.BOOL: "?",
    Kind.FLOAT: "<f4",
    Kind.DOUBLE: "<f8",
}
"""NumPy's types for the values of bulk fields."""


@dataclass(frozen=True, slots=True)
class ProtoField:
    """One field of a message.

    Attributes:
        number: Its number.
        name: Its name.
        kind: Type of its values.
        type_name: The message type or the enum.
        repeated: Whether it holds any number of values.
        bulk: Whether the values are kept as NumPy arrays.
        has_presence: Whether a zero that is written differs from nothing.
        group: The group of fields of which only one is there, if it belongs to one.
    """

    number: int
    name: str
    kind: Kind
    type_name: str = ""
    repeated: bool = False
    bulk: bool = False
    has_presence: bool = False
    group: str = ""


class MessageType:
    """A message type: its name and its fields.

    Attributes:
        name: The type's name.
        by_name: Fields by name.
        by_tag: Fields by the tags they may have; a repeated number may be packed or not.
        by_number: Fields by number.
    """

    __slots__ = ("by_name", "by_number", "by_tag", "name")

    def __init__(self, name: str, fields: tuple[ProtoField, ...]) -> None:
        self.name = name
        self.by_name = {field.name: field for field in fields}
        self.by_number = {field.number: field for field in fields}
        self.by_tag: dict[int, tuple[ProtoField, WireType]] = {}
        for field in fields:
            wire_types = {field.kind.wire_type}
            if field.repeated:
                wire_types.add(WireType.BYTES)
            for wire_type in wire_types:
                self.by_tag[field.number << 3 | wire_type] = (field, wire_type)


_ENTRY = re.compile(r"(\d+) (\w+) ([\w.:]+)(\*|\[\]|\?\w*|)")
_KINDS = {kind.value: kind for kind in Kind}


def _read_field(entry: str) -> ProtoField:
    match = _ENTRY.fullmatch(entry)
    assert match is not None, f"malformed table entry {entry!r}"
    number, name, type_text, mark = match.groups()
    word, _, type_name = type_text.partition(":")
    kind = _KINDS.get(word, Kind.MESSAGE)
    return ProtoField(
        int(number),
        name,
        kind,
        word if kind is Kind.MESSAGE else type_name,
        repeated=mark in ("*", "[]"),
        bulk=mark == "[]",
        has_presence=mark.startswith("?"),
        group=mark[1:] if mark.startswith("?") else "",
    )


def _read_types(table: str) -> dict[str, MessageType]:
    entries: dict[str, list[str]] = {}
    name = ""
    for line in table.strip().splitlines():
        if line.endswith(":"):
            name = line[:-1]
            entries[name] = []
        else:
            entries[name].extend(part.strip() for part in line.split(";") if part.strip())
    return {name: MessageType(name, tuple(map(_read_field, parts))) for name, parts in entries.items()}


MESSAGE_TYPES: dict[str, MessageType] = {}
"""All message types by name."""


def declare_messages(messages: str, enums: str = "") -> None:
    """Adds tables of messages, spelled as in `data_messages`, and of enums, spelled as in `enum_words`.

    In a table, `?word` marks a field of which only one in the group `word` is there.
    """
    found = _read_types(messages)
    assert not found.keys() & MESSAGE_TYPES.keys(), f"declared twice: {found.keys() & MESSAGE_TYPES.keys()}"
    MESSAGE_TYPES.update(found)
    declare_enums(enums)


declare_messages(DATA_MESSAGES)
declare_messages(MODULE_MESSAGES)
