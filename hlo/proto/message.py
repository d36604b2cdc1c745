"""Messages as values: what lies between bytes or text on one side and the IR on the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from xlalite.hlo.errors import ParseError
from xlalite.hlo.proto.enum_words import ENUM_NUMBERS, ENUMS
from xlalite.hlo.proto.schema import MESSAGE_TYPES, MessageType


class Origin(Protocol):
    """Where a message was read from."""

    def error(self, position: int, message: str) -> ParseError:
        """The error for what stands at a position."""


class _Nowhere:
    """The origin of messages that were made here."""

    def error(self, position: int, message: str) -> ParseError:
        return ParseError(message)


_NOWHERE = _Nowhere()


class ProtoMessage:
    """A message: values by field name.

    Single values are `int`, `float`, `bool`, `str`, `bytes` or `ProtoMessage`, repeated ones lists of them; bulk fields
    hold a list of arrays.

    Attributes:
        type: The message type.
        values: Values of the fields that are there.
        origin: Where it was read from.
        position: Where it starts there.
    """

    __slots__ = ("origin", "position", "type", "values")

    def __init__(self, type_: MessageType | str, origin: Origin = _NOWHERE, position: int = 0) -> None:
        self.type = MESSAGE_TYPES[type_] if isinstance(type_, str) else type_
        self.values: dict[str, Any] = {}
        self.origin = origin
        self.position = position

    def error(self, message: str) -> ParseError:
        """The error to raise for this message."""
        return self.origin.error(self.position, f"{self.type.name}: {message}")

    def has(self, name: str) -> bool:
        """Whether a field is there."""
        return name in self.values

    def integer(self, name: str) -> int:
        """An integer; 0 when it is absent."""
        value: int = self.values.get(name, 0)
        return value

    def integers(self, name: str) -> tuple[int, ...]:
        """Repeated integers."""
        return tuple(self.values.get(name, ()))

    def number(self, name: str) -> float:
        """A floating-point number; 0 when it is absent."""
        value: float = self.values.get(name, 0.0)
        return value

    def boolean(self, name: str) -> bool:
        """A boolean; false when it is absent."""
        value: bool = self.values.get(name, False)
        return value

    def booleans(self, name: str) -> tuple[bool, ...]:
        """Repeated booleans."""
        return tuple(self.values.get(name, ()))

    def text(self, name: str) -> str:
        """A string; empty when it is absent."""
        value: str = self.values.get(name, "")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """Repeated strings."""
        return tuple(self.values.get(name, ()))

    def data(self, name: str) -> bytes:
        """Bytes; none when they are absent."""
        value: bytes = self.values.get(name, b"")
        return value

    def word(self, name: str) -> str:
        """The word of an enum; the one with number 0 when it is absent.

        Raises:
            ParseError: The enum has no such number.
        """
        return self._word(name, self.values.get(name, 0))

    def words(self, name: str) -> tuple[str, ...]:
        """The words of repeated enums.

        Raises:
            ParseError: The enum has no such number.
        """
        return tuple(self._word(name, number) for number in self.values.get(name, ()))

    def array(self, name: str) -> npt.NDArray[Any]:
        """The values of a bulk field."""
        chunks = self.values.get(name, ())
        return np.concatenate(chunks) if chunks else np.zeros(0, np.int64)

    def message(self, name: str) -> ProtoMessage:
        """A message; an empty one when it is absent."""
        value: ProtoMessage | None = self.values.get(name)
        return (
            value if value is not None else ProtoMessage(self.type.by_name[name].type_name, self.origin, self.position)
        )

    def messages(self, name: str) -> Sequence[ProtoMessage]:
        """Repeated messages."""
        value: Sequence[ProtoMessage] = self.values.get(name, ())
        return value

    def put(self, name: str, value: int | float | str | bytes | ProtoMessage) -> ProtoMessage:
        """Sets a single field and returns this message."""
        assert not self.type.by_name[name].repeated, f"{name} is repeated"
        self.values[name] = value
        return self

    def put_all(self, name: str, values: Iterable[int | float | str | bytes | ProtoMessage]) -> ProtoMessage:
        """Sets a repeated field and returns this message."""
        assert self.type.by_name[name].repeated, f"{name} is not repeated"
        self.values[name] = list(values)
        return self

    def put_word(self, name: str, word: str) -> ProtoMessage:
        """Sets an enum by its word and returns this message.

        Raises:
            KeyError: The enum has no such word.
        """
        return self.put(name, ENUM_NUMBERS[self.type.by_name[name].type_name][word])

    def put_words(self, name: str, words: Iterable[str]) -> ProtoMessage:
        """Sets repeated enums by their words and returns this message.

        Raises:
            KeyError: The enum has no such word.
        """
        numbers = ENUM_NUMBERS[self.type.by_name[name].type_name]
        return self.put_all(name, [numbers[word] for word in words])

    def put_array(self, name: str, array: npt.NDArray[Any]) -> ProtoMessage:
        """Sets a bulk field and returns this message."""
        assert self.type.by_name[name].bulk, f"{name} holds no bulk data"
        self.values[name] = [array]
        return self

    def open(self, name: str) -> ProtoMessage:
        """The message in a single field, made when it is absent; for filling it."""
        known: ProtoMessage | None = self.values.get(name)
        if known is None:
            known = self.values[name] = ProtoMessage(self.type.by_name[name].type_name)
        return known

    def append(self, name: str) -> ProtoMessage:
        """A new message at the end of a repeated field; for filling it."""
        new = ProtoMessage(self.type.by_name[name].type_name)
        self.values.setdefault(name, []).append(new)
        return new

    def _word(self, name: str, number: int) -> str:
        words = ENUMS[self.type.by_name[name].type_name]
        if number not in words:
            raise self.error(f"{name}: found number {number}, which is none of {', '.join(words.values())}")
        return words[number]
