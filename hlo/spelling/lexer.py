"""Cuts HLO text into tokens.

One compiled expression does the work. A token is a plain string; where it stands is found out only when somebody asks
(for an error, or for text that is kept verbatim), so that the common case stays quick. Text that is no token becomes a
token of one character, which no rule of the grammar accepts.
"""

from __future__ import annotations

import re
from array import array

from xlalite.hlo.errors import ParseError

# The time stays linear whatever the text is: a string or a comment that never ends takes the whole rest as one token,
# and spaces at the end belong to an empty token.
_TOKEN = re.compile(
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

    __slots__ = ("_starts", "text", "tokens")

    def __init__(self, text: str | bytes) -> None:
        """Cuts the text; bytes are taken as UTF-8.

        Raises:
            ParseError: A string or a comment does not end.
        """
        decoded = text.decode("utf-8", "surrogateescape") if isinstance(text, bytes) else text
        self.text = decoded.removeprefix("\ufeff")
        self.tokens: list[str] = _TOKEN.findall(self.text)
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
            self._starts = array("q", (match.start(1) for match in _TOKEN.finditer(self.text)))
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
        if position >= len(self.text):
            position = len(self.text.rstrip())
        line_start = self.text.rfind("\n", 0, position) + 1
        line_end = self.text.find("\n", position)
        line = self.text[line_start : line_end if line_end >= 0 else len(self.text)]
        return ParseError(message, self.text.count("\n", 0, position) + 1, position - line_start + 1, line)
