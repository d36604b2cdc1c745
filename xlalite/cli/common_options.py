"""Options that every command has, and that are taken before it reads its own."""

from __future__ import annotations

import _thread
import os
import sys
import threading

from xlalite.cli.errors import UsageError

TIMED_OUT = 124
"""The exit code of a command that takes longer than `--timeout`; that of timeout(1)."""

_PATIENCE_SECONDS = 3.0


def take_option(words: list[str], name: str) -> list[str]:
    """Removes each `name VALUE` and `name=VALUE` in front of a `--`, behind which words belong to another program.

    Raises:
        UsageError: The last one has no value.
    """
    values: list[str] = []
    end = words.index("--") if "--" in words else len(words)
    for position in reversed([at for at, word in enumerate(words[:end]) if word.partition("=")[0] == name]):
        _, equals, value = words.pop(position).partition("=")
        if not equals:
            if position >= len(words):
                raise UsageError(f"{name} needs a value")
            value = words.pop(position)
        values.insert(0, value)
    return values


class Deadline:
    """The end of a command that takes too long: as if it were interrupted, so that what it has started ends, too.

    Attributes:
        has_passed: Whether it has come.
    """

    def __init__(self) -> None:
        self.has_passed = False
        self._seconds = 0.0
        self._timers: list[threading.Timer] = []

    def start(self, words: list[str]) -> None:
        """Takes `--timeout SECONDS` out of the words.

        Raises:
            UsageError: That is no number of seconds.
        """
        for text in take_option(words, "--timeout"):
            try:
                self._seconds = float(text)
            except ValueError:
                self._seconds = 0.0
            if not 0 < self._seconds < threading.TIMEOUT_MAX - _PATIENCE_SECONDS:
                raise UsageError(f"--timeout: expected a number of seconds, found {text!r}")
        if self._seconds:
            # Code of LLVM or of the module itself hears of no interruption, and is ended with the process.
            self._timers = [
                threading.Timer(self._seconds, self._interrupt),
                threading.Timer(self._seconds + _PATIENCE_SECONDS, self._end_process),
            ]
            for timer in self._timers:
                timer.daemon = True
                timer.start()

    def cancel(self) -> None:
        """The command has ended."""
        for timer in self._timers:
            timer.cancel()

    def report(self, program: str) -> int:
        """Says what happened, and gives the exit code."""
        print(f"{program}: it has not ended after {self._seconds:g} s (--timeout)", file=sys.stderr)
        return TIMED_OUT

    def _interrupt(self) -> None:
        self.has_passed = True
        _thread.interrupt_main()

    def _end_process(self) -> None:
        self.report("xlalite")
        sys.stderr.flush()
        os._exit(TIMED_OUT)
