"""`train.Coordinator`: threads that stop together."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from xlalite.framework.graph.errors import OutOfRangeError

Raised = tuple[type[BaseException], BaseException, TracebackType | None]


class Coordinator:
    """Knows whether to stop, and why; the first error of any thread is raised where the threads are joined."""

    def __init__(self, clean_stop_exception_types: tuple[type[BaseException], ...] | None = None) -> None:
        """Errors of `clean_stop_exception_types`, by default the end of the input, are no errors."""
        self._clean = clean_stop_exception_types or (OutOfRangeError,)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._raised: Raised | None = None
        self._threads: set[threading.Thread] = set()

    def request_stop(self, ex: Any = None) -> None:
        """Asks all threads to stop; perhaps because of an error."""
        with self._lock:
            if ex is not None and self._raised is None and not self._stop.is_set():
                raised = ex if isinstance(ex, tuple) else (type(ex), ex, ex.__traceback__)
                if not isinstance(raised[1], self._clean):
                    self._raised = raised
            self._stop.set()

    def should_stop(self) -> bool:
        """Whether threads are asked to stop."""
        return self._stop.is_set()

    def clear_stop(self) -> None:
        """Starts over."""
        with self._lock:
            self._raised = None
            self._stop.clear()

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Waits until threads are asked to stop; whether they are."""
        return self._stop.wait(timeout)

    @contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """An error in the block asks all threads to stop and goes no further."""
        try:
            yield
        except BaseException:
            self.request_stop(sys.exc_info())

    def register_thread(self, thread: threading.Thread) -> None:
        """Makes `join` wait for a thread too."""
        with self._lock:
            self._threads.add(thread)

    def join(
        self,
        threads: Iterable[threading.Thread] | None = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None:
        """Waits for threads to end, and raises the error that made them stop.

        Raises:
            RuntimeError: some thread does not end within the time of grace.
        """
        with self._lock:
            waited = {*self._threads, *(threads or ())}
        while any(thread.is_alive() for thread in waited) and not self._stop.wait(0.05):
            pass
        end = time.monotonic() + stop_grace_period_secs
        for thread in waited:
            thread.join(max(0.0, end - time.monotonic()) if self._stop.is_set() else None)
        with self._lock:
            raised, self._threads = self._raised, set()
        if raised is not None:
            raise raised[1].with_traceback(raised[2])
        alive = [thread.name for thread in waited if thread.is_alive()]
        if alive and not ignore_live_threads:
            raise RuntimeError(f"Coordinator stopped with threads still running: {' '.join(alive)}")

    @property
    def joined(self) -> bool:
        """Whether no thread is waited for."""
        return not self._threads

    def raise_requested_exception(self) -> None:
        """Raises the error that made threads stop, if there is one."""
        with self._lock:
            raised = self._raised
        if raised is not None:
            raise raised[1]


class LooperThread(threading.Thread):
    """Calls a function every so often until its coordinator says to stop."""

    def __init__(
        self,
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Any = None,
        args: Any = (),
        kwargs: Any = None,
    ) -> None:
        super().__init__(daemon=True)
        self._coordinator = coord
        self._seconds = timer_interval_secs or 0.0
        self._call: Callable[[], Any] = lambda: target(*args, **(kwargs or {}))
        coord.register_thread(self)

    def run(self) -> None:
        """Calls until it is time to stop."""
        with self._coordinator.stop_on_exception():
            while not self._coordinator.should_stop():
                self._call()
                self._coordinator.wait_for_stop(self._seconds)
