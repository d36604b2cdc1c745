"""Compiled clusters by signature: the most recently used ones, within a limit of bytes."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TypeAlias

from xlalite.backends.base import Executable

Signature: TypeAlias = tuple[Hashable, ...]
"""The cluster's number, then for each argument what its code depends on."""


class CompiledCluster:
    """One signature of a cluster as machine code.

    Attributes:
        executable: The program: array inputs, then variables, in; outputs, then new values of variables, out.
        function: Its quickest callable.
        variables: Positions, among the cluster's variables, of those that have a parameter.
        updates: For each new value, the position of its variable.
        donated: Positions of the variables whose memory the new value takes.
        output_count: Number of outputs.
        compile_seconds: What making it took.
        last_used: Time of its last use on the cache's clock.
    """

    __slots__ = (
        "compile_seconds",
        "donated",
        "executable",
        "function",
        "last_used",
        "output_count",
        "updates",
        "variables",
    )

    def __init__(
        self,
        executable: Executable,
        variables: tuple[int, ...],
        updates: tuple[int, ...],
        donated: tuple[int, ...],
        output_count: int,
    ) -> None:
        """Connects an executable to its cluster."""
        self.executable = executable
        self.function: Callable[..., object] = executable.function
        self.variables = variables
        self.updates = updates
        self.donated = donated
        self.output_count = output_count
        self.compile_seconds = 0.0
        self.last_used = 0


@dataclass(frozen=True, slots=True)
class CacheStatistics:
    """What a compilation cache has done.

    Attributes:
        entries: Compiled signatures it holds.
        size_bytes: Their code.
        compilations: Signatures ever compiled.
        evictions: Signatures dropped to stay within the limit.
        compile_seconds: Time spent compiling.
    """

    entries: int
    size_bytes: int
    compilations: int
    evictions: int
    compile_seconds: float


class CompilationCache:
    """Compiled signatures of all clusters of a session; safe for concurrent use."""

    def __init__(self, limit_bytes: int | None = None) -> None:
        """An empty cache; the entry last added stays even when it alone is over the limit."""
        self.limit_bytes = limit_bytes
        self._entries: dict[Signature, CompiledCluster] = {}
        self._lock = threading.Lock()
        self._clock = itertools.count(1)
        self._size_bytes = 0
        self._compilations = 0
        self._evictions = 0
        self._compile_seconds = 0.0

    def find(self, signature: Signature) -> CompiledCluster | None:
        """The entry of a signature; it counts as used now. Takes no lock: this is on the path of every step."""
        found = self._entries.get(signature)
        if found is not None:
            found.last_used = next(self._clock)
        return found

    def add(self, signature: Signature, compiled: CompiledCluster) -> None:
        """Keeps an entry, and drops those used longest ago until the limit holds."""
        with self._lock:
            compiled.last_used = next(self._clock)
            self._entries[signature] = compiled
            self._compilations += 1
            self._compile_seconds += compiled.compile_seconds
            self._size_bytes += compiled.executable.code_size_bytes
            while self.limit_bytes is not None and self._size_bytes > self.limit_bytes and len(self._entries) > 1:
                oldest = min(self._entries, key=lambda key: self._entries[key].last_used)
                self._size_bytes -= self._entries.pop(oldest).executable.code_size_bytes
                self._evictions += 1

    def clear(self) -> None:
        """Drops all entries; the counters of what was done stay."""
        with self._lock:
            self._entries.clear()
            self._size_bytes = 0

    def executables(self) -> tuple[Executable, ...]:
        """The compiled programs, in the order of their compilation."""
        with self._lock:
            return tuple(entry.executable for entry in self._entries.values())

    def statistics(self) -> CacheStatistics:
        """The counters now."""
        with self._lock:
            return CacheStatistics(
                len(self._entries), self._size_bytes, self._compilations, self._evictions, self._compile_seconds
            )
