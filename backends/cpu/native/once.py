"""What a process has one of, however many threads ask for it first at the same time."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

from xlalite.backends.cpu.native.fork_lock import no_fork

T = TypeVar("T")


def once(make: Callable[[], T]) -> Callable[[], T]:
    """A function that gives what `make` gave the first time, which two threads never call at once.

    `functools.cache` would let both, and drop what one of them made: machine code, perhaps, that the other thread
    already uses.
    """
    made: list[T] = []

    @functools.wraps(make)
    def get() -> T:
        if not made:
            with no_fork:
                if not made:
                    made.append(make())
        return made[0]

    return get
