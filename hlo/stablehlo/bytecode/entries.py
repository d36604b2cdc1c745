"""The numbered attributes and types of MLIR bytecode, each read when it is first asked for; locations among them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

from xlalite.hlo.stablehlo.bytecode.byte_cursor import ByteCursor
from xlalite.hlo.stablehlo.bytecode.container import Container, Entry, pick
from xlalite.hlo.stablehlo.reading.syntax import Location

T = TypeVar("T")
_NESTING = 64


class EntryTable(Generic[T]):
    """Reads entries by number, each once.

    Attributes:
        what: What the entries are, for errors.
    """

    __slots__ = ("_container", "_entries", "_open", "_read", "_values", "what")

    def __init__(
        self, container: Container, entries: list[Entry], what: str, read: Callable[[Entry, ByteCursor], T]
    ) -> None:
        self._container = container
        self._entries = entries
        self._read = read
        self._values: dict[int, T] = {}
        self._open: set[int] = set()
        self.what = what

    def at(self, cursor: ByteCursor, number: int) -> T:
        """The entry with a number that stands at a cursor.

        Raises:
            BinaryParseError: There is none, or it is damaged or contains itself.
        """
        if number in self._values:
            return self._values[number]
        entry = pick(cursor, self._entries, number, self.what)
        if number in self._open or len(self._open) >= _NESTING:
            raise cursor.error(f"the {self.what} {number} is nested too deep")
        self._open.add(number)
        self._values[number] = self._read(entry, self._container.cursor(entry))
        self._open.discard(number)
        return self._values[number]

    def next(self, cursor: ByteCursor) -> T:
        """Consumes a number and gives its entry."""
        return self.at(cursor, cursor.integer())


class LocationEntries(Mapping[str, Location]):
    """Locations by their number as text; one that refers to others does so by alias, so nothing is nested."""

    def __init__(self, container: Container) -> None:
        self._container = container

    def __getitem__(self, alias: str) -> Location:
        if int(alias) >= len(self):
            raise KeyError(alias)
        entry = self._container.attributes[int(alias)]
        if entry.dialect != "builtin" or not entry.is_custom:
            return Location()
        cursor = self._container.cursor(entry)
        return self._location(cursor, cursor.integer())

    def __iter__(self) -> Iterator[str]:
        return map(str, range(len(self)))

    def __len__(self) -> int:
        return len(self._container.attributes)

    def _location(self, cursor: ByteCursor, code: int) -> Location:
        match code:
            case 10:  # a callee and where it is called
                return Location(inner=(self._other(cursor),))
            case 11:  # file, line, column
                return Location(file=self._text(cursor), line=cursor.integer())
            case 12 | 13:  # several; 13 has metadata behind them
                return Location(inner=tuple(cursor.list(lambda: self._other(cursor))))
            case 14:  # a name and what is inside
                return Location(name=self._text(cursor), inner=(self._other(cursor),))
            case 22:  # a range in a file: the numbers that it has, the first line among them
                file = self._text(cursor)
                return Location(file=file, line=cursor.integer() if cursor.count() else 0)
            case _:
                return Location()

    def _other(self, cursor: ByteCursor) -> Location:
        number = cursor.integer()
        pick(cursor, self._container.attributes, number, "location")
        return Location(alias=str(number))

    def _text(self, cursor: ByteCursor) -> str:
        """The text of a string attribute."""
        entry = pick(cursor, self._container.attributes, cursor.integer(), "text")
        inner = self._container.cursor(entry)
        if not entry.is_custom or inner.integer() != 2:
            raise cursor.error("a location needs a text")
        return self._container.text(inner)
