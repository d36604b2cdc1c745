"""A line in the log now and then, while a compilation takes long: `compiling m: fusion, 4,180 instructions, 6 s`."""

from __future__ import annotations

import logging
import time

_LOG = logging.getLogger("xlalite")
_PAUSE_SECONDS = 2.0


class Progress:
    """What one compilation says of itself, at the level `INFO`; nothing if it is quick."""

    def __init__(self) -> None:
        self._start: float | None = None
        self._spoke = 0.0

    def note(self, module_name: str, step: str, instructions: int) -> None:
        """Says that a step begins, unless less than two seconds have passed since the start or the last line."""
        now = time.perf_counter()
        if self._start is None:
            self._start = self._spoke = now
        if now - self._spoke >= _PAUSE_SECONDS:
            self._spoke = now
            _LOG.info(
                "compiling %s: %s, %s instructions, %.0f s", module_name, step, f"{instructions:,}", now - self._start
            )
