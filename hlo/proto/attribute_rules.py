"""The kinds of attribute values, and how each lies in the fields of an instruction's message.

A rule names a field of an attributes dataclass and a field of `HloInstructionProto`; `a.b` is field `b` of the message
in field `a`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.shape import Shape

Operands = tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class AttributeRule:
    """How one attribute lies in an instruction's message.

    Attributes:
        field: The field of the attributes dataclass.
        read: (message, operand shapes) -> value; None stands for the declaration's default.
        write: (message, value, operand shapes) -> whether the message can say it.
    """

    field: str
    read: Callable[[ProtoMessage, Operands], Any]
    write: Callable[[ProtoMessage, Any, Operands], bool]


def plain(
    field: str,
    path: str,
    get: Callable[[ProtoMessage, str], Any],
    put: Callable[[ProtoMessage, str, Any], object],
) -> AttributeRule:
    """A rule for a value that lies in one field."""
    *outer, name = path.split(".")

    def read(message: ProtoMessage, operands: Operands) -> Any:
        for step in outer:
            message = message.message(step)
        return get(message, name)

    def write(message: ProtoMessage, value: Any, operands: Operands) -> bool:
        for step in outer:
            message = message.open(step)
        put(message, name, value)
        return True

    return AttributeRule(field, read, write)


def integer(field: str, path: str = "") -> AttributeRule:
    """An integer; absent is 0."""
    return plain(field, path or field, ProtoMessage.integer, ProtoMessage.put)


def positive(field: str, path: str = "") -> AttributeRule:
    """An integer that is not 0; absent is the declaration's default."""
    return plain(field, path or field, lambda message, name: message.integer(name) or None, ProtoMessage.put)


def optional_positive(field: str) -> AttributeRule:
    """An integer that may be absent; the message takes 0 for absent, so that one travels as text."""

    def read(message: ProtoMessage, operands: Operands) -> Any:
        return message.integer(field) or None

    def write(message: ProtoMessage, value: Any, operands: Operands) -> bool:
        if value:
            message.put(field, value)
        return bool(value)

    return AttributeRule(field, read, write)


def optional_integer(field: str, path: str = "") -> AttributeRule:
    """An integer whose absence is -1."""

    def put(message: ProtoMessage, name: str, value: int) -> None:
        if value != -1:
            message.put(name, value)

    return plain(field, path or field, lambda message, name: message.integer(name) if message.has(name) else None, put)


def only_integer(field: str, path: str, absent: int | None = None) -> AttributeRule:
    """An integer that lies in a list alone; an empty list is `absent`."""

    def get(message: ProtoMessage, name: str) -> int | None:
        numbers = message.integers(name)
        if len(numbers) > 1 or (not numbers and absent is None):
            raise message.error(f"{name}: found {len(numbers)} numbers, expected one")
        return numbers[0] if numbers else absent

    return plain(field, path, get, lambda message, name, value: value != absent and message.put_all(name, [value]))


def integers(field: str, path: str = "") -> AttributeRule:
    """A list of integers."""
    return plain(field, path or field, ProtoMessage.integers, ProtoMessage.put_all)


def boolean(field: str, path: str = "") -> AttributeRule:
    """A boolean; absent is false."""
    return plain(field, path or field, ProtoMessage.boolean, ProtoMessage.put)


def number(field: str, path: str = "") -> AttributeRule:
    """A floating-point number of 32 bits; the shortest decimal stands for it, as in text."""
    return plain(
        field, path or field, lambda message, name: float(str(np.float32(message.number(name)))), ProtoMessage.put
    )


def text(field: str, path: str = "") -> AttributeRule:
    """A string."""
    return plain(field, path or field, ProtoMessage.text, ProtoMessage.put)


def named(field: str, path: str = "") -> AttributeRule:
    """A string that is not empty; absent is the declaration's default."""
    return plain(field, path or field, lambda message, name: message.text(name) or None, ProtoMessage.put)


def data(field: str, path: str = "") -> AttributeRule:
    """A string that lies as bytes."""
    return plain(
        field,
        path or field,
        lambda message, name: message.data(name).decode("utf-8", "surrogateescape"),
        lambda message, name, value: message.put(name, value.encode("utf-8", "surrogateescape")),
    )


def spelled_enum(field: str, path: str, enum_class: type[enum.Enum]) -> AttributeRule:
    """An enum that lies as a string, its value."""

    def get(message: ProtoMessage, name: str) -> enum.Enum | None:
        word = message.text(name)
        try:
            return enum_class(word) if word else None
        except ValueError:
            raise message.error(f"{name}: found {word!r}, expected one of {words_of(enum_class)}") from None

    return plain(field, path, get, lambda message, name, value: message.put(name, value.value))


def numbered_enum(field: str, path: str, words: Mapping[enum.Enum, str]) -> AttributeRule:
    """An enum that lies as a number; the declaration's default stands for numbers without a member."""
    members = {word: member for member, word in words.items()}
    return plain(
        field,
        path,
        lambda message, name: members.get(message.word(name)),
        lambda message, name, value: message.put_word(name, words[value]),
    )


def upper(enum_class: type[enum.Enum]) -> dict[enum.Enum, str]:
    """Words of a numbered enum whose values are the words in lower case, or the words themselves."""
    return {member: str(member.value).upper() for member in enum_class}


def tri_state(field: str) -> AttributeRule:
    """A boolean that may be left open; open is the declaration's default."""
    states = {"TRI_STATE_TRUE": True, "TRI_STATE_FALSE": False}
    return plain(
        field,
        field,
        lambda message, name: states.get(message.word(name)),
        lambda message, name, value: message.put_word(name, "TRI_STATE_TRUE" if value else "TRI_STATE_FALSE"),
    )


def triples(field: str, path: str, item: str, names: tuple[str, str, str]) -> AttributeRule:
    """A list of three integers each; `item` is the repeated field inside the message at `path`, or `path` itself."""

    def get(message: ProtoMessage, name: str) -> tuple[tuple[int, ...], ...]:
        items = message.message(name).messages(item) if item else message.messages(name)
        return tuple(tuple(one.integer(part) for part in names) for one in items)

    def put(message: ProtoMessage, name: str, value: tuple[tuple[int, int, int], ...]) -> None:
        holder, repeated = (message.open(name), item) if item else (message, name)
        for numbers in value:
            one = holder.append(repeated)
            for part, entry in zip(names, numbers, strict=True):
                one.put(part, entry)

    return plain(field, path, get, put)


def words_of(enum_class: type[enum.Enum]) -> str:
    """The words of an enum, for a message."""
    return ", ".join(str(member.value) for member in enum_class)
