"""The variables of one session, and the state of its operations.

A compiled cluster overwrites the array of a variable that it updates. An array that somebody else may be looking at
must not change, so it is copied first: one handed out to an operation or to the user, one that a running cluster reads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from xlalite.framework.graph.operation import Operation
from xlalite.framework.meaning.host import Array

T = TypeVar("T")


class VariableValue:
    """The value of a variable between two assignments.

    Attributes:
        array: The elements: row-major, writeable, in memory of their own.
        is_shared: Whether somebody else may hold the array.
        shape: Its sizes.
        readers: How many running clusters read the array; changed under the store's lock.
    """

    __slots__ = ("array", "is_shared", "readers", "shape")

    def __init__(self, array: Array, is_shared: bool) -> None:
        self.array = array
        self.shape = array.shape
        self.is_shared = is_shared
        self.readers = 0


class VariableStore:
    """Values of variables by name; also what operations run by themselves need of a session.

    Attributes:
        lock: Held while a cluster that updates variables runs, so that updates do not mix; the methods for compiled
            clusters (`put`, `begin_reading`, `exclusive`) and `find` expect it to be held.
        find: The value of a variable or None, without marking it as shared.
        settled: What steps know of the values, by step; forgotten when a value is replaced, shared or read. Changed
            under the lock.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._values: dict[str, VariableValue] = {}
        self.find = self._values.get
        self.settled: dict[object, Any] = {}
        self._states: dict[Operation, Any] = {}
        self._state_lock = threading.RLock()
        self._is_closed = False

    def read_variable(self, name: str) -> Array | None:
        """The variable's array, which keeps its elements from now on; None when it has no value."""
        with self.lock:
            value = self._values.get(name)
            if value is None:
                return None
            value.is_shared = True
            self.settled.clear()
            return value.array

    def assign_variable(self, name: str, value: Array) -> None:
        """Replaces the variable's value; the array may be shared with the caller, who must not change it."""
        if not (value.flags.c_contiguous and value.flags.writeable and value.flags.aligned):
            value = np.array(value, order="C")
        with self.lock:
            self._values[name] = VariableValue(value, is_shared=True)
            self.settled.clear()

    def state(self, operation: Operation, make: Callable[[], T]) -> T:
        """The operation's state in this session; made at its first use. Nobody waits for one of a closed session."""
        with self._state_lock:
            if operation not in self._states:
                self._states[operation] = make()
                if self._is_closed:
                    _cancel(self._states[operation])
            found: T = self._states[operation]
            return found

    def names(self) -> tuple[str, ...]:
        """The variables that have a value."""
        with self.lock:
            return tuple(self._values)

    @property
    def size_bytes(self) -> int:
        """Memory of all values."""
        with self.lock:
            return sum(value.array.nbytes for value in self._values.values())

    def close(self) -> None:
        """Forgets all values and states for good; who waits for a state waits no longer."""
        with self._state_lock:
            self._is_closed = True
            states = list(self._states.values())
            self._states.clear()
        for state in states:
            _cancel(state)
        with self.lock:
            self._values.clear()
            self.settled.clear()

    # For compiled clusters, under the lock.

    def put(self, name: str, array: Array) -> None:
        """Replaces the value by an array that belongs to nobody else."""
        self._values[name] = VariableValue(array, is_shared=False)
        self.settled.clear()

    def begin_reading(self, values: Iterable[VariableValue | None]) -> None:
        """Says of values that a running cluster reads them; who reads them no longer takes 1 from their `readers`."""
        self.settled.clear()
        for value in values:
            if value is not None:
                value.readers += 1

    def exclusive(self, name: str, value: VariableValue) -> VariableValue:
        """The variable's value in memory that may be overwritten: itself, or a copy that takes its place."""
        if value.is_shared or value.readers:
            value = self._values[name] = VariableValue(value.array.copy(), is_shared=False)
            self.settled.clear()
        return value


def _cancel(state: Any) -> None:
    if hasattr(state, "cancel"):
        state.cancel()
