"""The text form of messages: `name: "f" computations { id: 1 }`.

Fields that the tables do not know are skipped. Whatever the text is, the only error is `ParseError`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from xlalite.hlo.errors import ParseError
from xlalite.hlo.proto.enum_words import ENUM_NUMBERS, ENUMS
from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.proto.schema import BULK_DTYPES, MESSAGE_TYPES, Kind, MessageType, ProtoField
from xlalite.hlo.records import dataclass
from xlalite.hlo.spelling.lexer import error_in
from xlalite.hlo.types.quoting import quote, unquote

_NESTING = 200
_TOKEN = re.compile(
    r"""(?:\s|\#[^\n]*)*+(?:
        (?P<string>"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+')
      | (?P<word>[A-Za-z_][\w.]*)
      | (?P<number>-?\s*(?:0[xX][\da-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?[fF]?|inf(?:inity)?\b|nan\b))
      | (?P<mark>[{}<>\[\]:,;/])
      | (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_CLOSING = {"{": "}", "<": ">"}
_BOOLEANS = {"true": 1, "t": 1, "1": 1, "false": 0, "f": 0, "0": 0}
_RANGES = {
    Kind.INT32: (-(1 << 31), 1 << 31),
    Kind.INT64: (-(1 << 63), 1 << 63),
    Kind.UINT32: (0, 1 << 32),
    Kind.UINT64: (0, 1 << 64),
}


def decode_text(text: str, type_name: str) -> ProtoMessage:
    """The message that a text spells.

    Raises:
        ParseError: The text is no such message; says where.
    """
    reader = _Reader(text)
    message = reader.message(MESSAGE_TYPES[type_name], "", 0)
    _finish(message)
    return message


def field_names(text: str) -> frozenset[str]:
    """The names of the fields at the top of a text; what follows the first mistake is not looked at."""
    reader = _Reader(text)
    names: set[str] = set()
    try:
        while reader.token.kind == "word":
            names.add(reader.take().text)
            reader.skip_value(0)
    except ParseError:
        pass
    return frozenset(names)


def encode_text(message: ProtoMessage) -> str:
    """The text of a message, two spaces a level, fields in the order of their numbers."""
    return "".join(line + "\n" for line in _lines(message, ""))


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    position: int


class _Reader:
    """Reads one text; keeps one token ahead."""

    __slots__ = ("text", "token")

    def __init__(self, text: str) -> None:
        self.text = text
        self.token = self._next(0)

    def error(self, position: int, message: str) -> ParseError:
        return error_in(self.text, position, message)

    def take(self) -> _Token:
        token = self.token
        if token.kind != "end":
            self.token = self._next(token.position + len(token.text))
        return token

    def accept(self, text: str) -> bool:
        if self.token.kind != "mark" or self.token.text != text:
            return False
        self.take()
        return True

    def unexpected(self, expected: str) -> ParseError:
        token = self.token
        found = repr(token.text[:40]) if token.kind != "end" else "the end of the text"
        return self.error(token.position, f"found {found}, expected {expected}")

    def message(self, type_: MessageType, closing: str, depth: int) -> ProtoMessage:
        if depth > _NESTING:
            raise self.error(self.token.position, f"messages are nested more than {_NESTING} deep")
        message = ProtoMessage(type_, self, self.token.position)
        while not (self.accept(closing) if closing else self.token.kind == "end"):
            name = self.token
            if name.kind == "mark" and name.text == "[":
                self._skip_list(depth)
                self.skip_value(depth)
            elif name.kind != "word":
                raise self.unexpected("the name of a field")
            else:
                self.take()
                field = type_.by_name.get(name.text)
                if field is None:
                    self.skip_value(depth)
                else:
                    self._field(message, field, name, depth)
            while self.accept(",") or self.accept(";"):
                pass
        return message

    def skip_value(self, depth: int) -> None:
        """Consumes the value of a field that is not known, in whichever form."""
        if depth > _NESTING:
            raise self.error(self.token.position, f"messages are nested more than {_NESTING} deep")
        colon = self.accept(":")
        for opening, closing in _CLOSING.items():
            if self.accept(opening):
                while not self.accept(closing):
                    if self.token.kind == "mark" and self.token.text == "[":
                        self._skip_list(depth + 1)
                    elif self.token.kind != "word":
                        raise self.unexpected("the name of a field")
                    else:
                        self.take()
                    self.skip_value(depth + 1)
                    while self.accept(",") or self.accept(";"):
                        pass
                return
        if not colon:
            raise self.unexpected("':' or '{'")
        if self.token.kind == "mark" and self.token.text == "[":
            self._skip_list(depth)
            return
        if self.token.kind not in ("string", "word", "number"):
            raise self.unexpected("a value")
        is_string = self.take().kind == "string"
        while is_string and self.token.kind == "string":
            self.take()

    def _skip_list(self, depth: int) -> None:
        opened = 0
        while True:
            token = self.take()
            if token.kind == "end":
                raise self.error(token.position, "a list is never closed")
            opened += (token.text in ("[", "{", "<")) - (token.text in ("]", "}", ">")) if token.kind == "mark" else 0
            if not opened:
                return

    def _field(self, message: ProtoMessage, field: ProtoField, name: _Token, depth: int) -> None:
        colon = self.accept(":")
        if field.kind is not Kind.MESSAGE and not colon:
            raise self.unexpected("':'")
        if self.accept("["):
            if not field.repeated:
                raise self.error(name.position, f"{field.name} is not repeated")
            while not self.accept("]"):
                self._put(message, field, name, self._value(field, depth))
                if not self.accept(",") and not (self.token.kind == "mark" and self.token.text == "]"):
                    raise self.unexpected("',' or ']'")
            return
        self._put(message, field, name, self._value(field, depth))

    def _put(self, message: ProtoMessage, field: ProtoField, name: _Token, value: Any) -> None:
        if field.repeated:
            message.values.setdefault(field.name, []).append(value)
        elif field.name in message.values:
            raise self.error(name.position, f"{field.name} is given twice")
        else:
            message.values[field.name] = value

    def _value(self, field: ProtoField, depth: int) -> Any:
        if field.kind is Kind.MESSAGE:
            for opening, closing in _CLOSING.items():
                if self.accept(opening):
                    return self.message(MESSAGE_TYPES[field.type_name], closing, depth + 1)
            raise self.unexpected("'{'")
        if field.kind in (Kind.STRING, Kind.BYTES):
            text = self._string()
            return text if field.kind is Kind.STRING else text.encode("utf-8", "surrogateescape")
        token = self.token
        value = _scalar(field, token)
        if value is None:
            wanted = f"{field.kind.value} {field.type_name}".strip()
            raise self.unexpected(f"a value of {field.name} ({wanted})")
        self.take()
        return value

    def _string(self) -> str:
        if self.token.kind != "string":
            raise self.unexpected("a quoted string")
        parts = []
        while self.token.kind == "string":
            try:
                parts.append(unquote(self.token.text))
            except ValueError as error:
                raise self.error(self.token.position, str(error)) from None
            self.take()
        return "".join(parts)

    def _next(self, position: int) -> _Token:
        match = _TOKEN.match(self.text, position)
        if match is None or match.lastgroup is None:
            stop = re.compile(r"(?:\s|#[^\n]*)*+").match(self.text, position)
            start = stop.end() if stop else position
            raise self.error(start, f"found {self.text[start : start + 20]!r}, which is no part of a message")
        return _Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup))


def _scalar(field: ProtoField, token: _Token) -> Any:
    """The value that a token spells, or None when it is no value of the field."""
    text = "".join(token.text.split()) if token.kind == "number" else token.text
    match field.kind:
        case Kind.BOOL:
            return bool(_BOOLEANS[text]) if text in _BOOLEANS else None
        case Kind.ENUM if token.kind == "word":
            return ENUM_NUMBERS[field.type_name].get(text)
        case Kind.FLOAT | Kind.DOUBLE:
            return _real(text)
        case _:
            number = _whole(text) if token.kind == "number" else None
            low, high = _RANGES.get(field.kind, _RANGES[Kind.INT32])
            return number if number is not None and low <= number < high else None


def _real(text: str) -> float | None:
    try:
        return float(text if text[-3:].lower() == "inf" else text.rstrip("fF"))
    except ValueError:
        whole = _whole(text)
        return float(whole) if whole is not None else None


def _whole(text: str) -> int | None:
    digits = text.removeprefix("-")
    base = 16 if digits[:2] in ("0x", "0X") else 8 if len(digits) > 1 and digits[0] == "0" else 10
    try:
        return int(text, base) if len(text) < 30 else None
    except ValueError:
        return None


def _finish(message: ProtoMessage) -> None:
    """Turns the lists of bulk fields into arrays."""
    stack = [message]
    while stack:
        current = stack.pop()
        for name, value in current.values.items():
            field = current.type.by_name[name]
            if field.bulk:
                with np.errstate(over="ignore"):
                    current.values[name] = [np.array(value, BULK_DTYPES[field.kind])]
            elif field.kind is Kind.MESSAGE:
                stack.extend(value if field.repeated else [value])


def _lines(message: ProtoMessage, indent: str) -> Iterator[str]:
    fields = message.type.by_name
    for name in sorted(message.values, key=lambda name: fields[name].number):
        field, value = fields[name], message.values[name]
        values: list[Any] = value if field.repeated else [value]
        for one in np.concatenate(values).tolist() if field.bulk else values:
            if field.kind is Kind.MESSAGE:
                yield f"{indent}{name} {{"
                yield from _lines(one, indent + "  ")
                yield f"{indent}}}"
            else:
                yield f"{indent}{name}: {_format(field, one)}"


def _format(field: ProtoField, value: Any) -> str:
    match field.kind:
        case Kind.STRING:
            return quote(value)
        case Kind.BYTES:
            return quote(value.decode("utf-8", "surrogateescape"))
        case Kind.BOOL:
            return "true" if value else "false"
        case Kind.ENUM:
            return ENUMS[field.type_name].get(value, str(value))
        case _:
            return repr(value) if value == value else "nan"
