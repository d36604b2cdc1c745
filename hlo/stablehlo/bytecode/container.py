"""The sections of MLIR bytecode: texts, dialects, names of operations, where each attribute and type lies.

Source: MLIR's description of its bytecode format, versions 0 to 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TypeVar

from xlalite.hlo.records import dataclass
from xlalite.hlo.stablehlo.bytecode.byte_cursor import ByteCursor

T = TypeVar("T")
MAGIC = b"ML\xefR"
_NEWEST = 6
_PROPERTIES_SINCE = 5
_STRINGS, _DIALECTS, _ENTRIES, _OFFSETS, _OPERATIONS, _PROPERTIES = 0, 1, 2, 3, 4, 8


@dataclass(frozen=True, slots=True)
class Entry:
    """An attribute or a type: `is_custom` if its dialect encodes it, else it is spelled as text."""

    dialect: str
    start: int
    end: int
    is_custom: bool


@dataclass(slots=True)
class Container:
    """What a file holds, not yet understood.

    Attributes:
        data: The bytes.
        version: Version of the format.
        strings: All texts.
        operation_names: Names of operations with their dialects.
        attributes: Where attributes lie.
        types: Where types lie.
        properties: Where the attributes that belong to an operation's definition lie.
        operations: The module.
    """

    data: bytes
    version: int
    strings: list[str] = field(default_factory=list)
    operation_names: list[str] = field(default_factory=list)
    attributes: list[Entry] = field(default_factory=list)
    types: list[Entry] = field(default_factory=list)
    properties: list[tuple[int, int]] = field(default_factory=list)
    operations: ByteCursor = field(default_factory=lambda: ByteCursor(b"", 0, 0))

    def cursor(self, entry: Entry) -> ByteCursor:
        """The bytes of an attribute or type."""
        return ByteCursor(self.data, entry.start, entry.end)

    def text(self, cursor: ByteCursor) -> str:
        """Consumes the number of a text."""
        return pick(cursor, self.strings, cursor.integer(), "text")


def pick(cursor: ByteCursor, entries: Sequence[T], number: int, what: str) -> T:
    """The entry with a number that was read from a cursor.

    Raises:
        BinaryParseError: There is none.
    """
    if number >= len(entries):
        raise cursor.error(f"there is no {what} {number}")
    return entries[number]


def read_container(data: bytes) -> Container:
    """The sections of a file.

    Raises:
        BinaryParseError: It is no MLIR bytecode, or of a version that is not known.
    """
    start = data.find(MAGIC)
    cursor = ByteCursor(data, start + len(MAGIC), len(data))
    if start < 0:
        raise cursor.error("this is no MLIR bytecode")
    if start:  # jax.export keeps it in a vector of a flatbuffer: the size stands before it
        size = int.from_bytes(data[max(0, start - 4) : start], "little")
        cursor.end = ByteCursor(data, start, len(data)).part(size).end
    version = cursor.integer()
    if version > _NEWEST:
        raise cursor.error(f"version {version} of MLIR bytecode cannot be read, only those up to {_NEWEST}")
    container = Container(data, version)
    cursor.text()  # who wrote it
    sections: dict[int, ByteCursor] = {}
    while cursor.position < cursor.end:
        number, contents = cursor.section()
        sections[number] = contents
    for number, name in ((_STRINGS, "texts"), (_DIALECTS, "dialects"), (_OFFSETS, "offsets"), (_ENTRIES, "attributes")):
        if number not in sections:
            raise cursor.error(f"the section of {name} is missing")
    if _OPERATIONS not in sections:
        raise cursor.error("the section of operations is missing")
    container.operations = sections[_OPERATIONS]
    container.strings = _read_strings(sections[_STRINGS])
    dialects = _read_dialects(sections[_DIALECTS], container)
    _read_offsets(sections[_OFFSETS], sections[_ENTRIES], dialects, container)
    if _PROPERTIES in sections:
        container.properties = _read_properties(sections[_PROPERTIES])
    return container


def _read_strings(cursor: ByteCursor) -> list[str]:
    """The sizes come first, that of the last text first."""
    sizes = cursor.list(cursor.integer)
    texts = []
    for size in reversed(sizes):
        texts.append(cursor.take(size)[:-1].decode("utf-8", "surrogateescape"))
    return texts


def _read_dialects(cursor: ByteCursor, container: Container) -> list[str]:
    """Names of the dialects; those of their operations go into the container."""
    dialects = []
    for _ in range(cursor.count()):
        value = cursor.integer()
        dialects.append(pick(cursor, container.strings, value >> 1, "text"))
        if value & 1:
            cursor.section()  # the dialect's version
    if cursor.position < cursor.end:
        total = cursor.count()
        while len(container.operation_names) < total:
            dialect = pick(cursor, dialects, cursor.integer(), "dialect")
            for _ in range(cursor.count()):
                value = cursor.integer()
                number = value >> 1 if container.version >= _PROPERTIES_SINCE else value
                container.operation_names.append(f"{dialect}.{pick(cursor, container.strings, number, 'text')}")
    return dialects


def _read_offsets(cursor: ByteCursor, entries: ByteCursor, dialects: list[str], container: Container) -> None:
    attribute_count, type_count = cursor.integer(), cursor.integer()
    for count, found in ((attribute_count, container.attributes), (type_count, container.types)):
        while len(found) < count:
            dialect = pick(cursor, dialects, cursor.integer(), "dialect")
            for _ in range(cursor.count()):
                value = cursor.integer()
                part = entries.part(value >> 1)
                found.append(Entry(dialect, part.position, part.end, bool(value & 1)))


def _read_properties(cursor: ByteCursor) -> list[tuple[int, int]]:
    parts = [cursor.part(cursor.integer()) for _ in range(cursor.count())]
    return [(part.position, part.end) for part in parts]
