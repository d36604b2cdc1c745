"""Codecs for the values that attributes of operations have."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import TypeVar

from xlalite.hlo.attributes import Codec, Cursor

E = TypeVar("E", bound=enum.Enum)
T = TypeVar("T")


def list_codec(name: str, parse_one: Callable[[Cursor], T], format_one: Callable[[T], str]) -> Codec[tuple[T, ...]]:
    """A codec for `{a, b, c}` lists of one kind of element, printed with the separator `,`."""

    def parse(cursor: Cursor) -> tuple[T, ...]:
        cursor.expect("{")
        values: list[T] = []
        while not cursor.accept("}"):
            if values:
                cursor.expect(",")
            values.append(parse_one(cursor))
        return tuple(values)

    return Codec(name, parse, lambda values: "{" + ",".join(map(format_one, values)) + "}")


def enum_codec(enum_class: type[E], *, what: str) -> Codec[E]:
    """A codec for a closed set of words; the member's value is the word."""
    by_word = {member.value: member for member in enum_class}

    def parse(cursor: Cursor) -> E:
        word = cursor.word(what)
        if word not in by_word:
            raise cursor.error(f"{what}: found {word!r}, expected one of {', '.join(by_word)}")
        return by_word[word]

    return Codec(what, parse, lambda member: str(member.value))


def _parse_bool(cursor: Cursor) -> bool:
    word = cursor.word("true or false")
    if word not in ("true", "false"):
        raise cursor.error(f"found {word!r}, expected true or false")
    return word == "true"


INT: Codec[int] = Codec("integer", lambda cursor: cursor.integer(), str)
BOOL: Codec[bool] = Codec("boolean", _parse_bool, lambda value: "true" if value else "false")
FLOAT: Codec[float] = Codec("number", lambda cursor: cursor.number(), lambda value: f"{value:.9g}")
VERBATIM: Codec[str] = Codec("braced text", lambda cursor: cursor.balanced(), str)
INT_LIST: Codec[tuple[int, ...]] = list_codec("list of integers", lambda cursor: cursor.integer(), str)
