"""Locks and forks: one that a forked child finds free, whoever held it in the parent, and one that forks wait for."""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import AbstractContextManager


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


def hold_over_forks(lock: AbstractContextManager[object]) -> None:
    """Makes forks wait for the lock of a library, so that a child never finds the library in the middle of work."""
    _library_locks.append(lock)


def _take() -> None:
    """An import that a fork waits for may bring a library: which locks there are is known behind it."""
    no_fork.acquire()
    _taken.extend(_library_locks)
    for lock in _taken:
        lock.__enter__()


def _give_back() -> None:
    while _taken:
        _taken.pop().__exit__(None, None, None)
    no_fork.release()


_library_locks: list[AbstractContextManager[object]] = []
_taken: list[AbstractContextManager[object]] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_take, after_in_parent=_give_back, after_in_child=_give_back)
