"""When a run is given up."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from xlalite.framework.graph.errors import DeadlineExceededError
from xlalite.framework.meaning.host import WAIT_LIMIT


class Deadline:
    """A point in time after which a run stops at the next opportunity."""

    def __init__(self, milliseconds: int) -> None:
        self._milliseconds = milliseconds
        self._end = time.monotonic() + milliseconds / 1000

    @contextmanager
    def limits_waiting(self) -> Iterator[None]:
        """Makes operations that wait for other threads give up in time."""
        token = WAIT_LIMIT.set(self._end)
        try:
            yield
        finally:
            WAIT_LIMIT.reset(token)

    def check(self) -> None:
        """Raises when the time is over.

        Raises:
            DeadlineExceededError: It is.
        """
        if time.monotonic() > self._end:
            raise DeadlineExceededError(None, None, f"the step took longer than {self._milliseconds} ms")
