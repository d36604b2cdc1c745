"""Locks and forks: one that a forked child finds free, whoever held it in the parent, and one that forks wait for."""

from __future__ import annotations

import os
import threading
import weakref


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
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=no_fork.acquire, after_in_parent=no_fork.release, after_in_child=no_fork.release)
