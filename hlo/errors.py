"""The errors of xlalite: one root, one class for each stage.

A message says what was being done, what was found, what was expected, and where.
"""

from __future__ import annotations

import re

# What a message may have quoted from a text: surrogates, which no encoding has, and what a terminal would obey.
_UNPRINTABLE = re.compile(r"[^\n -~]")


class XlaliteError(Exception):
    """Root of every error that xlalite raises on purpose."""

    def __str__(self) -> str:
        """The message; what names of damaged files hold that no encoding has is escaped."""
        return super().__str__().encode("utf-8", "backslashreplace").decode()


class ShapeError(XlaliteError, ValueError):
    """The shapes or element types of an operation do not fit together."""


class LiteralError(XlaliteError, ValueError):
    """A value cannot be a literal of the wanted shape."""


class ParseError(XlaliteError, ValueError):
    """Text that is not HLO.

    Attributes:
        line: 1-based line of the offending token.
        column: 1-based column of the offending token.
        source_line: The text of that line, without its line break.
    """

    def __init__(self, message: str, line: int = 0, column: int = 0, source_line: str = "") -> None:
        """Builds the full message: position, text of the line and a caret below the token."""
        self.bare_message = _UNPRINTABLE.sub(_escaped, message)
        self.line = line
        self.column = column
        self.source_line = source_line
        super().__init__(self._render())

    def _render(self) -> str:
        if not self.line:
            return self.bare_message
        if not self.source_line:
            return f"line {self.line}, column {self.column}: {self.bare_message}"
        shown, caret = _window(self.source_line, self.column)
        return f"line {self.line}, column {self.column}: {self.bare_message}\n  {shown}\n  {caret}"


class BinaryParseError(ParseError):
    """Bytes that are not the protocol buffer they should be.

    Attributes:
        offset: Number of the first byte of what is wrong.
    """

    def __init__(self, message: str, offset: int) -> None:
        self.offset = offset
        super().__init__(f"byte {offset}: {message}")


class VerificationError(XlaliteError, ValueError):
    """A module that breaks a rule of the IR; names the instruction and the rule."""


class EvaluationError(XlaliteError, RuntimeError):
    """The evaluator was asked for something that has no value."""


class PassError(XlaliteError, RuntimeError):
    """A pass failed or broke the module; names the pass."""


class LoweringError(XlaliteError, ValueError):
    """A program cannot be said in another language: a graph in HLO, HLO in StableHLO."""


class ClusteringError(XlaliteError, ValueError):
    """A graph cannot be clustered as the options ask."""


class ConfigError(XlaliteError):
    """A field of a configuration message that does not exist, or a value that it cannot hold.

    The classes that are raised also derive from the built-in error that a plain Python object would raise.
    """


class FlagError(XlaliteError, ValueError):
    """A flag in XLALITE_FLAGS that does not exist, or a value that it cannot take."""


class DataError(XlaliteError, ValueError):
    """A file of a data set that is missing, or that is not in the format its name promises."""


class CodegenError(XlaliteError, RuntimeError):
    """LLVM refused text, or object code could not be linked; names the module and quotes LLVM."""


class CacheError(XlaliteError, OSError):
    """A cache directory that was asked for by name cannot be used."""


class SerializationError(XlaliteError, ValueError):
    """Bytes that are no executable, or one that cannot run on this machine or with this version of xlalite."""


class DumpError(XlaliteError, OSError):
    """A dump directory that cannot be made or written to."""


class ArgumentError(XlaliteError, ValueError):
    """An executable was called with arguments that do not fit its signature."""


class TracingError(XlaliteError, TypeError):
    """A Python function does something that cannot be recorded as a graph."""


class ExecutionError(XlaliteError, RuntimeError):
    """Compiled code reported a failure while it ran."""


def _escaped(match: re.Match[str]) -> str:
    letter = match[0]
    return letter if letter.isprintable() else letter.encode("unicode_escape").decode()


def _window(source_line: str, column: int, width: int = 100) -> tuple[str, str]:
    """A piece of a long line around the column, and the caret line below it."""
    start = max(0, column - 1 - width // 2)
    shown = source_line[start : start + width]
    prefix = "..." if start else ""
    # One character for one, so that the caret stands right.
    shown = "".join(letter if letter.isprintable() else " " if letter.isspace() else "\ufffd" for letter in shown)
    return prefix + shown, " " * (len(prefix) + column - 1 - start) + "^"
