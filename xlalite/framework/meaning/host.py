"""What an operation needs from whoever runs it outside a compiled cluster."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from xlalite.framework.graph.errors import UninitializedError
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import HandleData

T = TypeVar("T")
WAIT_LIMIT: ContextVar[float | None] = ContextVar("WAIT_LIMIT", default=None)
"""When operations that wait must give up, by `time.monotonic`."""

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
HostValue: TypeAlias = "Array | HandleData"


class HostContext(Protocol):
    """Variables and per-operation state of one session. Implementations are safe for concurrent calls."""

    def read_variable(self, name: str) -> Array | None:
        """The variable's value, which the caller must not change; None when it has none."""
        ...

    def assign_variable(self, name: str, value: Array) -> None:
        """Replaces the variable's value; takes over the array."""
        ...

    def state(self, operation: Operation, make: Callable[[], T]) -> T:
        """The operation's state in this session (a generator, a counter); made at its first use."""
        ...


class LocalContext:
    """A context that lives in dictionaries: enough for tests, constant folding and simple sessions."""

    def __init__(self) -> None:
        self.variables: dict[str, Array] = {}
        self._states: dict[Operation, Any] = {}

    def read_variable(self, name: str) -> Array | None:
        """The variable's value, or None."""
        return self.variables.get(name)

    def assign_variable(self, name: str, value: Array) -> None:
        """Replaces the variable's value."""
        self.variables[name] = value

    def state(self, operation: Operation, make: Callable[[], T]) -> T:
        """The operation's state; made at its first use."""
        if operation not in self._states:
            self._states[operation] = make()
        found: T = self._states[operation]
        return found


def require_variable(context: HostContext, operation: Operation, data: HandleData) -> Array:
    """The value of a variable that must have one.

    Raises:
        UninitializedError: it has none; the message names the variable.
    """
    value = context.read_variable(data.name)
    if value is None:
        raise uninitialized(operation, data)
    return value


def uninitialized(operation: Operation, data: HandleData) -> UninitializedError:
    """The error for reading a variable that has no value."""
    return UninitializedError(
        None,
        operation,
        f"variable {data.name!r} ({data.dtype.name}{data.shape}) has no value yet, it is uninitialized; "
        "run its initializer first",
    )
