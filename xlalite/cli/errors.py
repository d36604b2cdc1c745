"""Errors of the command line."""

from __future__ import annotations

import os

from xlalite.hlo.errors import XlaliteError

REPORTED = (XlaliteError, OSError, RecursionError, MemoryError)
"""What a command ends with when something is wrong with its input; anything else is a fault of xlalite."""

WRONG_INPUT = 2
"""The exit code then."""

ANSWER_IS_NO = 1
"""The exit code when modules or results differ."""


class UsageError(XlaliteError, ValueError):
    """The command line asks for something that does not exist."""


def message_of(error: BaseException) -> str:
    """What went wrong, for people."""
    match error:
        case MemoryError():
            return "there is not enough memory"
        case RecursionError():
            return "the input is nested too deeply"
        case OSError(filename=str() | bytes() as name, strerror=str(reason)):
            return f"{os.fsdecode(name)}: {reason}"
        case OSError(strerror=str(reason)):  # of a stream, which has no name
            return f"cannot read or write: {reason}"
        case KeyError(args=(str(text),)):  # whose own text is quoted
            return text
    return str(error)
