"""Cuts MLIR text into tokens.

As in the lexer of HLO, one compiled expression does the work, a token is a plain string, and where it stands is found
out when somebody asks. The type of an array and the contents of a constant are one token each: there may be millions of
numbers in them.
"""

from __future__ import annotations

import re

from xlalite.hlo.spelling.lexer import SourceText, TokenPosition
from xlalite.hlo.types.limits import DEFAULT_LIMITS, ParseLimits
from xlalite.hlo.types.shape import Shape

_TOKEN = re.compile(
    r"""
    (?: [ \t\r\n\f\v]++ | //[^\n]*+ )*+
    (
      tensor< (?: [^<>\n]++ | <[^<>\n]*+> )*+ >
    | dense< [^<>"]*+ >
    | %[\w$.-]++
    | @ (?: [\w$.-]++ | "(?:[^"\\]|\\.)*+" )
    | [\#!^] [A-Za-z_][\w$.]*+ | [\#^] \d++
    | [A-Za-z_][\w$.]*+
    | 0x[0-9A-Fa-f]++
    | -?+ \d++ (?: \.\d*+ (?: [eE][-+]?+\d++ )?+ )?+
    | "(?:[^"\\]|\\.)*+ (?: " | \\?+\Z )
    | -> | :: | . | \Z
    )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_OPENING = {"(": ")", "[": "]", "{": "}", "<": ">"}
_CLOSING = frozenset(_OPENING.values())


class MlirCursor(TokenPosition):
    """A place in the tokens of MLIR text.

    Attributes:
        array_types: Types that were read already, by their token; the same ones come again and again.
    """

    __slots__ = ("array_types",)

    def __init__(self, text: str | bytes, limits: ParseLimits = DEFAULT_LIMITS) -> None:
        super().__init__(SourceText(text, _TOKEN), limits)
        self.array_types: dict[str, Shape] = {}

    def next(self) -> str:
        """Consumes a token; the end stays where it is."""
        token = self.tokens[self.index]
        if token:
            self.index += 1
        return token

    def name(self, what: str, sigil: str) -> str:
        """Consumes a name that begins with `%`, `@`, `^`, ...; returns it without the sign and quotes.

        Raises:
            ParseError: Something else is there.
        """
        token = self.peek()
        if not token.startswith(sigil) or len(token) < 2:
            raise self.unexpected(what)
        self.index += 1
        return token[1:].strip('"')

    def word(self, what: str) -> str:
        """Consumes an identifier.

        Raises:
            ParseError: Something else is there.
        """
        token = self.peek()
        if not (token[:1].isalpha() or token[:1] == "_"):
            raise self.unexpected(what)
        self.index += 1
        return token

    def string(self, what: str = "a string") -> str:
        """Consumes a string in double quotes and returns its text.

        Raises:
            ParseError: Something else is there.
        """
        token = self.peek()
        if not token.startswith('"'):
            raise self.unexpected(what)
        self.index += 1
        return unescape(token[1:-1])

    def integer(self, what: str = "an integer") -> int:
        """Consumes an integer.

        Raises:
            ParseError: Something else is there, or more digits than 64 bits need.
        """
        token = self.peek()
        digits = token.removeprefix("-")
        if not digits.isdecimal() or len(digits) > 20:
            raise self.unexpected(what)
        self.index += 1
        return int(token)

    def skip_balanced(self) -> str:
        """Consumes brackets with all that is in them and returns their text.

        Raises:
            ParseError: A bracket does not close, or another one closes.
        """
        first = self.index
        closing: list[str] = []
        while True:
            token = self.peek()
            if not token:
                raise self.error_at(first, f"the {self.tokens[first]!r} is not closed")
            if token in _OPENING:
                closing.append(_OPENING[token])
            elif token in _CLOSING and (not closing or closing.pop() != token):
                raise self.error(f"{token!r} closes nothing")
            self.index += 1
            if not closing:
                return self.source.between(first, self.index)


_ESCAPE = re.compile(r"\\([0-9A-Fa-f]{2}|.)", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t"}


def unescape(text: str) -> str:
    """The text of a string: a backslash and two hexadecimal digits stand for a character."""
    if "\\" not in text:
        return text

    def replacement(match: re.Match[str]) -> str:
        what = match[1]
        return chr(int(what, 16)) if len(what) == 2 else _LETTERS.get(what, what)

    return _ESCAPE.sub(replacement, text)
