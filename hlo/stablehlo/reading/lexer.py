"""Cuts MLIR text into tokens.

As in the lexer of HLO, one compiled expression does the work, a token is a plain string, and where it stands is found
out when somebody asks. The type of an array and the contents of a constant are one token each: there may be millions of
numbers in them.
"""

from __future__ import annotations

import re
from array import array

from xlalite.hlo.errors import ParseError
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


class MlirCursor:
    """A place in the tokens of a text; every reader of the grammar moves it on.

    Attributes:
        text: The whole text.
        tokens: The tokens in order; empty strings mark the end.
        index: The next token.
        limits: What the text may ask for.
        array_types: Types that were read already, by their token; the same ones come again and again.
    """

    __slots__ = ("_depth", "_starts", "array_types", "index", "limits", "text", "tokens")

    def __init__(self, text: str | bytes, limits: ParseLimits = DEFAULT_LIMITS) -> None:
        """Cuts the text; bytes are taken as UTF-8.

        Raises:
            ParseError: A string does not end.
        """
        decoded = text.decode("utf-8", "surrogateescape") if isinstance(text, bytes) else text
        self.text = decoded.removeprefix("\ufeff")
        self.tokens: list[str] = _TOKEN.findall(self.text)
        self.index = 0
        self.limits = limits
        self.array_types: dict[str, Shape] = {}
        self._depth = 0
        self._starts: array[int] | None = None
        while self.tokens and not self.tokens[-1]:
            self.tokens.pop()
        last = self.tokens[-1] if self.tokens else ""
        self.tokens.extend(("", "", ""))
        if last.startswith('"') and not re.fullmatch(r'"(?:[^"\\]|\\.)*+"', last, re.DOTALL):
            raise self.error_at(len(self.tokens) - 4, "the string does not end")

    def peek(self) -> str:
        """The next token; "" at the end."""
        return self.tokens[self.index]

    def at(self, token: str) -> bool:
        """Whether the next token is this one."""
        return self.tokens[self.index] == token

    def next(self) -> str:
        """Consumes a token; the end stays where it is."""
        token = self.tokens[self.index]
        if token:
            self.index += 1
        return token

    def accept(self, token: str) -> bool:
        """Consumes the token if it is the next one."""
        if self.tokens[self.index] != token:
            return False
        self.index += 1
        return True

    def expect(self, token: str) -> None:
        """Consumes the token.

        Raises:
            ParseError: Another one is there.
        """
        if self.tokens[self.index] != token:
            raise self.unexpected(repr(token))
        self.index += 1

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

    def deeper(self) -> None:
        """Enters something nested.

        Raises:
            ParseError: Too many are open.
        """
        self._depth += 1
        if self._depth > self.limits.nesting:
            raise self.error(f"nested deeper than {self.limits.nesting} levels")

    def shallower(self) -> None:
        """Leaves something nested."""
        self._depth -= 1

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
            elif token in _CLOSING and closing.pop() != token:
                raise self.error(f"{token!r} closes nothing")
            self.index += 1
            if not closing:
                return self.text[self.start(first) : self.start(self.index - 1) + len(token)]

    def start(self, index: int) -> int:
        """Where a token starts in the text."""
        if self._starts is None:
            self._starts = array("q", (match.start(1) for match in _TOKEN.finditer(self.text)))
            self._starts.extend([len(self.text)] * 3)
        return self._starts[index]

    def error(self, message: str) -> ParseError:
        """The error for the next token."""
        return self.error_at(self.index, message)

    def unexpected(self, expected: str) -> ParseError:
        """The error that says what was found and what was expected."""
        token = self.peek()
        found = "the end of the text" if not token else repr(token if len(token) <= 60 else token[:57] + "...")
        return self.error(f"found {found}, expected {expected}")

    def error_at(self, index: int, message: str) -> ParseError:
        """The error for a token: line, column, the line's text."""
        position = self.start(index)
        if position >= len(self.text):
            position = len(self.text.rstrip())
        line_start = self.text.rfind("\n", 0, position) + 1
        line_end = self.text.find("\n", position)
        line = self.text[line_start : line_end if line_end >= 0 else len(self.text)]
        return ParseError(message, self.text.count("\n", 0, position) + 1, position - line_start + 1, line)


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
