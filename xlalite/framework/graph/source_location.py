"""Where in the user's program an operation was made: one file and line, cheap enough to record for every operation."""

from __future__ import annotations

import linecache
import sys
from functools import cache
from types import TracebackType

from xlalite.hlo.records import dataclass


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A line of the user's program.

    Attributes:
        file: Path as Python knows it.
        line: 1-based line.
        function: Function the line is in, `<module>` at top level.
    """

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def user_location() -> SourceLocation:
    """The innermost frame outside the package, NumPy and SciPy, which call back; examples count as user code."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return SourceLocation(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def user_line(traceback: TracebackType | None) -> str:
    """The innermost of the user's lines that an error went through, with its text; empty if it went through none."""
    found = ""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not _is_ours(traceback.tb_frame.f_globals.get("__name__", "")):
            text = linecache.getline(code.co_filename, traceback.tb_lineno).strip()
            found = f"{code.co_filename}:{traceback.tb_lineno}" + (f": {text}" if text else "")
        traceback = traceback.tb_next
    return found


@cache
def _is_ours(module: str) -> bool:
    if module == "contextlib" or module.startswith(("numpy.", "scipy.")):
        return True
    return module.startswith("xlalite.") and not module.startswith("xlalite.examples")
