"""What a long compilation says of itself: `compiling m: fusion, 4,180 instructions, 6 s`.

It is a message of the log now and then, and on a terminal a line that goes away with the compilation.
"""

from __future__ import annotations

import sys
import time

from xlalite.hlo import log

_PAUSE_SECONDS = 2.0
_CLEAR = "\x1b[K"


class Progress:
    """What one compilation says of itself, at the level `INFO`; nothing if it is quick.

    Where nobody listens to the log and standard error is a terminal, a line there says it instead.
    """

    def __init__(self) -> None:
        self._start: float | None = None
        self._spoke = 0.0
        self._has_line = False

    def note(self, module_name: str, step: str, instructions: int) -> None:
        """Says that a step begins, unless less than two seconds have passed since the start or the last line."""
        now = time.perf_counter()
        if self._start is None:
            self._start = self._spoke = now
        if now - self._spoke < _PAUSE_SECONDS:
            return
        self._spoke = now
        text = f"compiling {module_name}: {step}, {instructions:,} instructions, {now - self._start:.0f} s"
        if log.wants_info():
            log.info("%s", text)
        elif _is_terminal():
            self._has_line = True
            sys.stderr.write(f"\r{_CLEAR}{text}")
            sys.stderr.flush()

    def end(self) -> None:
        """Takes the line away."""
        if self._has_line:
            self._has_line = False
            sys.stderr.write(f"\r{_CLEAR}")
            sys.stderr.flush()


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()
