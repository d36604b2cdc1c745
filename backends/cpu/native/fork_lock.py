"""Locks and forks: one that a forked child finds free, whoever held it in the parent; what forks wait for."""

from __future__ import annotations

import importlib
import os
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any


class ForkLock:
    """A mutual exclusion for short sections that leave data usable at every step.

    A child has only the thread that forked; a lock that another thread held would stay locked in it for ever.
    """

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        _locks.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *exception: object) -> None:
        self._lock.release()


def _renew_all() -> None:
    for lock in list(_locks):
        lock._lock = threading.Lock()


_locks: weakref.WeakSet[ForkLock] = weakref.WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)

no_fork = threading.RLock()
"""Held where modules are first imported in the middle of work: a child would wait for ever for one whose import another
thread had begun."""

_IMPORTED = ("xlalite.", "llvmlite.", "encodings.")  # the last ones as files are opened
_LONGEST_WAIT_SECONDS = 2.0
"""After which a fork goes on: perhaps what is imported waits for who forks."""


def hold_over_forks(lock: AbstractContextManager[object]) -> None:
    """Makes forks wait for the lock of a library, so that a child never finds the library in the middle of work."""
    _library_locks.append(lock)


def _take() -> None:
    """An import that a fork waits for may bring a library: which locks there are is known behind it."""
    no_fork.acquire()
    _taken.extend(_library_locks)
    for lock in _taken:
        lock.__enter__()
    _await_imports()


def _await_imports() -> None:
    """Lets other threads finish what they import in the middle of work: without them, a child would never have it."""
    end = time.monotonic() + _LONGEST_WAIT_SECONDS
    time.sleep(0)  # who waits for the interpreter has it now, and not between the last look and the fork
    while _are_imports_begun() and time.monotonic() < end:
        time.sleep(0.001)


def _are_imports_begun() -> bool:
    """Whether other threads import what ours ask for at work; Python has no public way to know that (3.11 to 3.14)."""
    locks: dict[str, Callable[[], Any]] = getattr(importlib._bootstrap, "_module_locks", {})
    held = [reference() for name, reference in locks.copy().items() if name.startswith(_IMPORTED)]
    return any(getattr(lock, "owner", None) not in (None, threading.get_ident()) for lock in held)


def _give_back() -> None:
    while _taken:
        _taken.pop().__exit__(None, None, None)
    no_fork.release()


_library_locks: list[AbstractContextManager[object]] = []
_taken: list[AbstractContextManager[object]] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_take, after_in_parent=_give_back, after_in_child=_give_back)
