"""Cuts text into tokens, and stands among them.

One compiled expression does the work. A token is a plain string; where it stands is found out only when somebody asks
(for an error, or for text that is kept verbatim), so that the common case stays quick. Text that is no token becomes a
token of one character, which no rule of the grammar accepts.
"""

from __future__ import annotations

import re
from array import array

from xlalite.hlo.errors import ParseError, XlaliteError
from xlalite.hlo.types.limits import ParseLimits

# The time stays linear whatever the text is: a string or a comment that never ends takes the whole rest as one token,
# and spaces at the end belong to an empty token.
_HLO_TOKEN = re.compile(
    r"""
    (?: [ \t\r\n\f\v]++ | /\*.*?\*/ | //[^\n]*+ )*+
    (
      [(),{}]
    | %[\w.]++ (?: -(?!>)[\w.]*+ )*+
    | metadata=\{ (?: [^{}"']++ | "(?:[^"\\]|\\.)*+" | \{[^{}"']*+\} )*+ \}
    | [a-z]\w*+ \[ [\d,<=?]*+ \] (?: \{(?=[\d:])[^{}\s"'/]*+\} | \{\} )?+
    | [\dbfio?]++ _ [\dbfio?]++ -> [\dbfio?]++
    | [A-Za-z_][\w.]*+ (?: -(?!>)[\w.]*+ )*+ =?+
    | [-+]?+ (?: \d | \.\d ) [\w.]*+ (?: (?<=[eExX_]) [-+] [\w.]++ )*+
    | [-+] (?: inf | nan ) \b
    | "(?:[^"\\]|\\.)*+ (?: " | \\?+\Z )
    | '(?:[^'\\]|\\.)*+ (?: ' | \\?+\Z )
    | -> | <= | \.\.\. | /\*.*+ | . | \Z
    )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_END = ("", "", "")
_WHOLE_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'", re.DOTALL)


class SourceText:
    """A text and its tokens.

    Attributes:
        text: The whole text.
        tokens: The tokens in order; empty strings mark the end, enough of them to look ahead.
    """

    __slots__ = ("_pattern", "_starts", "text", "tokens")

    def __init__(self, text: str | bytes, pattern: re.Pattern[str] = _HLO_TOKEN) -> None:
        """Cuts the text; bytes are taken as UTF-8. Group 1 of the pattern is a token, and empty at the end.

        Raises:
            ParseError: A string or a comment does not end.
        """
        decoded = text.decode("utf-8", "surrogateescape") if isinstance(text, bytes) else text
        self.text = decoded.removeprefix("\ufeff")
        self.tokens: list[str] = pattern.findall(self.text)
        self._pattern = pattern
        self._starts: array[int] | None = None
        while self.tokens and not self.tokens[-1]:
            self.tokens.pop()
        last_index = len(self.tokens) - 1
        last = self.tokens[-1] if self.tokens else ""
        self.tokens.extend(_END)
        if last.startswith("/*"):
            raise self.error(last_index, "the comment does not end")
        if last[:1] in ('"', "'") and not _WHOLE_STRING.fullmatch(last):
            raise self.error(last_index, "the string does not end")

    def start(self, index: int) -> int:
        """Where a token starts in the text."""
        if self._starts is None:
            self._starts = array("q", (match.start(1) for match in self._pattern.finditer(self.text)))
            self._starts.extend([len(self.text)] * len(_END))
        return self._starts[index]

    def end(self, index: int) -> int:
        """Where a token ends in the text."""
        return self.start(index) + len(self.tokens[index])

    def between(self, first: int, after: int) -> str:
        """The text of the tokens from `first` up to, not including, `after`, with what stands between them."""
        return self.text[self.start(first) : self.end(after - 1)] if after > first else ""

    def touching(self, index: int) -> bool:
        """Whether the token follows the previous one directly, with no space between."""
        return index > 0 and self.end(index - 1) == self.start(index)

    def error(self, index: int, message: str) -> ParseError:
        """The error for a token: line, column, the line's text."""
        position = self.start(index)
        return error_in(self.text, position if position < len(self.text) else len(self.text.rstrip()), message)


def error_in(text: str, position: int, message: str) -> ParseError:
    """The error for a place in a text: line, column, the line's text."""
    start, end = text.rfind("\n", 0, position) + 1, text.find("\n", position)
    line = text[start : end if end >= 0 else len(text)]
    return ParseError(message, text.count("\n", 0, position) + 1, position - start + 1, line)


class TokenPosition:
    """A place among the tokens of a text; every reader of a grammar moves it on.

    Attributes:
        source: The text.
        tokens: The source's tokens.
        index: Number of the next token.
        limits: What the text may ask for.
        depth: How many nested things are open.
    """

    __slots__ = ("depth", "index", "limits", "source", "tokens")

    def __init__(self, source: SourceText, limits: ParseLimits) -> None:
        self.source = source
        self.tokens = source.tokens
        self.index = 0
        self.limits = limits
        self.depth = 0

    def peek(self) -> str:
        """The next token; "" at the end."""
        return self.tokens[self.index]

    def at(self, text: str) -> bool:
        """Whether the next token is exactly `text`."""
        return self.tokens[self.index] == text

    def accept(self, text: str) -> bool:
        """Consumes the next token if it is exactly `text`; says whether it did."""
        if self.tokens[self.index] == text:
            self.index += 1
            return True
        return False

    def expect(self, text: str) -> None:
        """Consumes the next token, which must be exactly `text`.

        Raises:
            ParseError: Another one is there.
        """
        if self.tokens[self.index] != text:
            raise self.unexpected(repr(text))
        self.index += 1

    def enter(self) -> None:
        """Notes that something nested starts; `leave` notes its end.

        Raises:
            ParseError: Too many are open.
        """
        self.depth += 1
        if self.depth > self.limits.nesting:
            raise self.error(f"nested more than {self.limits.nesting} deep")

    def leave(self) -> None:
        """Notes that something nested ended."""
        self.depth -= 1

    def error(self, message: str) -> ParseError:
        """The error for the next token."""
        return self.source.error(self.index, message)

    def error_at(self, index: int, error: XlaliteError | str) -> ParseError:
        """The error for another token, perhaps with the message of an error of a lower stage."""
        return self.source.error(index, str(error))

    def unexpected(self, expected: str) -> ParseError:
        """The error that says what was found and what was expected."""
        token = self.tokens[self.index]
        found = repr(token if len(token) <= 40 else token[:40] + "...") if token else "the end of the text"
        return self.error(f"found {found}, expected {expected}")
