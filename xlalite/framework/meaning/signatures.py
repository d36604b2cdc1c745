"""What is made once for each signature and kept: programs of clusters and functions, modules of single operations.

A signature is everything that the code depends on, as a key. Nothing here knows what is made.
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeAlias, TypeVar
from weakref import WeakSet, WeakValueDictionary

from xlalite.hlo.records import dataclass

T = TypeVar("T")

Signature: TypeAlias = tuple[Hashable, ...]
"""What else decides (a cluster's number, static arguments), then for each argument what the code depends on."""


@dataclass(frozen=True, slots=True)
class CacheStatistics:
    """What a cache of compiled code has done.

    Attributes:
        entries: Compiled signatures it holds.
        size_bytes: Their code.
        compilations: Signatures ever compiled.
        evictions: Signatures dropped to stay within its bounds.
        compile_seconds: Time spent compiling.
    """

    entries: int
    size_bytes: int
    compilations: int
    evictions: int
    compile_seconds: float


class SignatureCache(Generic[T]):
    """The most recently used entries, within bounds; safe for concurrent use.

    Two threads that ask for one signature wait for one compilation; others go on meanwhile, so that what is compiled
    may itself ask for other signatures.

    Attributes:
        shortcuts: Entries by whatever finds them sooner; filled by the owner, and forgotten with the entries.
    """

    def __init__(
        self,
        most: int = sys.maxsize,
        limit_bytes: int = sys.maxsize,
        size_of: Callable[[T], int] = lambda made: 0,
        clocked: Callable[[T], T] | None = None,
    ) -> None:
        """An empty cache.

        Args:
            most: How many entries it keeps; when there are more, an eighth of them goes.
            limit_bytes: How much code it keeps; the entry last made stays even when it alone is larger.
            size_of: Bytes of an entry.
            clocked: What makes of an entry one that takes times, for `clocked_entries`.
        """
        self.shortcuts: dict[Hashable, T] = {}
        self._most = most
        self._limit_bytes = limit_bytes
        self._size_of = size_of
        self._entries: dict[Hashable, _Entry[T]] = {}
        self._turns: WeakValueDictionary[Hashable, threading.RLock] = WeakValueDictionary()
        self._lock = threading.Lock()
        self._clock = itertools.count(1)
        self._size_bytes = 0
        self._compilations = 0
        self._evictions = 0
        self._compile_seconds = 0.0
        self._clocked = clocked
        with _SWITCHING:
            self._aside: dict[Hashable, _Entry[T]] | None = {} if clocked and _clocking else None
            if clocked:
                _CACHES.add(self)

    def find(self, signature: Hashable) -> T | None:
        """The entry of a signature; it counts as used now. Takes no lock: this is on the path of every step."""
        entry = self._entries.get(signature)
        if entry is None:
            return self._found_aside(signature)
        entry.last_used = next(self._clock)
        return entry.made

    def obtain(self, signature: Hashable, make: Callable[[], T]) -> T:
        """The entry of a signature, made if there is none; an error of `make` leaves the cache as it was."""
        found = self.find(signature)
        if found is not None:
            return found
        with self._lock:
            # Lives as long as somebody waits for it.
            turn = self._turns.setdefault(signature, threading.RLock())
        with turn:
            found = self.find(signature)
            if found is None:
                start = time.perf_counter()
                found = make()
                self._add(signature, found, time.perf_counter() - start)
            return found

    def clear(self) -> None:
        """Drops all entries; the counters of what was done stay."""
        with self._lock:
            self._entries.clear()
            self.shortcuts.clear()
            self._size_bytes = 0
            self._aside = None if self._aside is None else {}

    def made(self) -> tuple[T, ...]:
        """What it holds, in the order of making."""
        with self._lock:
            return tuple(entry.made for entry in self._entries.values())

    def statistics(self) -> CacheStatistics:
        """The counters now."""
        with self._lock:
            return CacheStatistics(
                len(self._entries), self._size_bytes, self._compilations, self._evictions, self._compile_seconds
            )

    def _add(self, signature: Hashable, made: T, seconds: float) -> None:
        with self._lock:
            self._entries[signature] = _Entry(made, self._size_of(made), next(self._clock))
            self._size_bytes += self._entries[signature].size_bytes
            self._compilations += 1
            self._compile_seconds += seconds
            self._evict()

    def _found_aside(self, signature: Hashable) -> T | None:
        """An entry that was made before, with clocks, if clocks are wanted."""
        entry = None if self._aside is None else self._aside.get(signature)
        if entry is None or self._clocked is None:
            return None
        made = self._clocked(entry.made)
        with self._lock:
            self._entries[signature] = _Entry(made, 0, next(self._clock))
        return made

    def _switch(self, *, clocks: bool) -> None:
        """Puts the entries aside, or takes them back for those that came since."""
        with self._lock:
            back, self._aside = self._aside, self._entries.copy() if clocks else None
            self._entries.clear()
            self.shortcuts.clear()
            self._entries.update(back or {})
            self._size_bytes = sum(entry.size_bytes for entry in self._entries.values())

    def _evict(self) -> None:
        if len(self._entries) <= self._most and self._size_bytes <= self._limit_bytes:
            return
        # Several at a time, since finding them means looking at all.
        spared = self._most - self._most // 8
        by_age = sorted(self._entries, key=lambda signature: self._entries[signature].last_used)
        for oldest in by_age[:-1]:
            if len(self._entries) <= spared and self._size_bytes <= self._limit_bytes:
                return
            self._size_bytes -= self._entries.pop(oldest).size_bytes
            self._evictions += 1


@contextmanager
def clocked_entries() -> Iterator[None]:
    """Meanwhile caches hold entries with clocks: what they had is put aside, and made to take times when asked for."""
    global _clocking
    with _SWITCHING:
        _clocking += 1
        if _clocking == 1:
            for cache in tuple(_CACHES):
                cache._switch(clocks=True)
    try:
        yield
    finally:
        with _SWITCHING:
            _clocking -= 1
            if not _clocking:
                for cache in tuple(_CACHES):
                    cache._switch(clocks=False)


_SWITCHING = threading.Lock()
_CACHES: WeakSet[SignatureCache[Any]] = WeakSet()
_clocking = 0


@dataclass(slots=True)
class _Entry(Generic[T]):
    """What was made for one signature.

    Attributes:
        made: It.
        size_bytes: Its size.
        last_used: Time of its last use on the cache's clock.
    """

    made: T
    size_bytes: int
    last_used: int
