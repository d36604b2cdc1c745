"""Garbage collection rests while many objects are made that stay.

CPython looks through new objects after every few hundred of them and now and then through all there are. Importing and
compiling make objects that live on, so this finds nothing, and once took a third of a first step. It still looks, some
hundred times as seldom: what passes throw away is garbage that only a collection finds. Looking a hundred times as
seldom still took a tenth of compiling 20,000 instructions. What imports left behind then counts as old at once: the
first look through it took longer than the rest of a small compilation.
"""

from __future__ import annotations

import gc
import sys
import threading
from contextlib import ContextDecorator

_NEW_OBJECTS = 500_000
_NEW_MODULES = 20


class _FewCollections(ContextDecorator):
    """Collections are few from the first `with` or decorated call to the end of the last, in whatever threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._modules = 0
        self._usual: tuple[int, int, int] = (0, 0, 0)

    def __enter__(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._usual = gc.get_threshold()
                self._modules = len(sys.modules)
                if self._usual[0]:  # zero switches collections off
                    gc.set_threshold(max(self._usual[0], _NEW_OBJECTS), *self._usual[1:])

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users:
                return
            if len(sys.modules) > self._modules + _NEW_MODULES and not gc.get_freeze_count():
                gc.freeze()  # both together make all objects old, at the price of none
                gc.unfreeze()
            if self._usual[0] and gc.get_threshold()[0] == max(self._usual[0], _NEW_OBJECTS):
                gc.set_threshold(*self._usual)


few_collections = _FewCollections()
