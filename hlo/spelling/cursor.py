"""The parser's position in a text: what every part of the grammar reads with."""

from __future__ import annotations

import re

from xlalite.hlo.errors import ParseError
from xlalite.hlo.spelling.lexer import SourceText, TokenPosition
from xlalite.hlo.spelling.literal_reader import read_literal
from xlalite.hlo.spelling.shape_text import read_shape
from xlalite.hlo.types.limits import DEFAULT_LIMITS, ParseLimits
from xlalite.hlo.types.literal import Literal
from xlalite.hlo.types.quoting import unquote
from xlalite.hlo.types.shape import Shape

_INTEGER = re.compile(r"[-+]?\d{1,20}", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:inf|nan)", re.ASCII)
_WORD = re.compile(r"[\w.?+%-][^\"'(){}\[\],]*", re.ASCII)
_CLOSING = {"{": "}", "[": "]", "(": ")"}
_CLOSERS = frozenset(_CLOSING.values())


class TokenCursor(TokenPosition):
    """A position in HLO text; implements the `Cursor` that codecs read from.

    Attributes:
        shapes: Shapes by their text, so that each spelling is read once.
    """

    __slots__ = ("shapes",)

    def __init__(self, text: str | bytes, limits: ParseLimits = DEFAULT_LIMITS) -> None:
        super().__init__(SourceText(text), limits)
        self.shapes: dict[str, Shape] = {}

    def touching(self) -> bool:
        """Whether the next token follows the previous one with no space between."""
        return bool(self.tokens[self.index]) and self.source.touching(self.index)

    def word(self, expected: str) -> str:
        """Consumes one word, number or compound token."""
        token = self.tokens[self.index]
        if not _WORD.fullmatch(token):
            raise self.unexpected(expected)
        self.index += 1
        return token

    def integer(self) -> int:
        """Consumes an integer that fits into 64 bits, signed or unsigned."""
        token = self.tokens[self.index]
        if not _INTEGER.fullmatch(token):
            raise self.unexpected("an integer")
        value = int(token)
        if not -(1 << 63) <= value < 1 << 64:
            raise self.error(f"{token} does not fit into 64 bits")
        self.index += 1
        return value

    def number(self) -> float:
        """Consumes an integer or a floating-point number."""
        token = self.tokens[self.index]
        if not _FLOAT.fullmatch(token):
            raise self.unexpected("a number")
        self.index += 1
        return float(token)

    def string(self) -> str:
        """Consumes a quoted string and returns its contents."""
        token = self.tokens[self.index]
        if token[:1] not in ('"', "'"):
            raise self.unexpected("a quoted string")
        try:
            text = unquote(token)
        except ValueError as error:
            raise self.error(str(error)) from None
        self.index += 1
        return text

    def skip_balanced(self) -> None:
        """Consumes a group in braces, brackets or parentheses."""
        if self.peek() not in _CLOSING:
            raise self.unexpected("'{'")
        opening = self.index
        tokens, index = self.tokens, self.index
        closers: list[str] = []
        while True:
            token = tokens[index]
            if token in _CLOSING:
                closers.append(_CLOSING[token])
            elif token in _CLOSERS:
                if token != closers.pop():
                    raise self.error_at(index, f"found {token!r}, which does not close the group")
                if not closers:
                    self.index = index + 1
                    return
            elif not token:
                raise self.error_at(opening, f"{tokens[opening]!r} is never closed")
            index += 1

    def balanced(self) -> str:
        """Consumes a group in braces, brackets or parentheses and returns its text verbatim."""
        first = self.index
        self.skip_balanced()
        return self.source.between(first, self.index)

    def verbatim(self) -> str:
        """Consumes an attribute's value of any form and returns its text.

        The value is a token or a group, and whatever follows it without a space between: `[2,2]<=[4]T(1,0)`.
        """
        first = self.index
        if self.peek() in ("", ",", ")", "]", "}"):
            raise self.unexpected("a value")
        while True:
            if self.peek() in _CLOSING:
                self.skip_balanced()
            else:
                self.index += 1
            if self.peek() in ("", ",", ")", "]", "}") or not self.touching():
                return self.source.between(first, self.index)

    def shape(self) -> Shape:
        """Consumes a shape."""
        token = self.tokens[self.index]
        known = self.shapes.get(token)
        if known is not None:
            self.index += 1
            return known
        return read_shape(self)

    def literal(self, shape: Shape) -> Literal:
        """Consumes a literal of a shape."""
        return read_literal(self, shape)


def is_group(text: str) -> bool:
    """Whether the text is exactly one group in braces, brackets or parentheses."""
    try:
        cursor = TokenCursor(text)
        cursor.skip_balanced()
    except ParseError:
        return False
    return cursor.at("")
