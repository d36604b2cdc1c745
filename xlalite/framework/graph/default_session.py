"""The session that `Tensor.eval` and `Operation.run` use. Sessions live above and announce themselves here."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from xlalite.framework.graph.errors import GraphError

if TYPE_CHECKING:
    from xlalite.framework.graph.graph import Graph
    from xlalite.framework.graph.operation import Operation
    from xlalite.framework.graph.tensor import Tensor


class SessionLike(Protocol):
    """What this layer asks of a session."""

    @property
    def graph(self) -> Graph:
        """The graph the session runs."""
        ...

    def run(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """Runs the fetched elements."""
        ...


class _SessionStack(threading.local):
    def __init__(self) -> None:
        self.sessions: list[SessionLike] = []


_STACK = _SessionStack()


@contextmanager
def default_session(session: SessionLike) -> Iterator[SessionLike]:
    """Makes `session` the thread's default session for the body."""
    push_default_session(session)
    try:
        yield session
    finally:
        remove_default_session(session)


def push_default_session(session: SessionLike) -> None:
    """Makes `session` the thread's default until it is removed."""
    _STACK.sessions.append(session)


def remove_default_session(session: SessionLike) -> None:
    """Takes the latest entry for `session` off the stack, wherever it stands; does nothing when there is none."""
    for position in range(len(_STACK.sessions) - 1, -1, -1):
        if _STACK.sessions[position] is session:
            del _STACK.sessions[position]
            return


def get_default_session() -> SessionLike | None:
    """The thread's default session, if there is one."""
    return _STACK.sessions[-1] if _STACK.sessions else None


def evaluate_tensor(tensor: Tensor, feed_dict: Mapping[Any, Any] | None, session: Any) -> Any:
    """The value of `tensor` in the given or the default session."""
    return _session_for(tensor.graph, session, f"evaluate tensor {tensor.name!r}").run(tensor, feed_dict)


def run_operation(operation: Operation, feed_dict: Mapping[Any, Any] | None, session: Any) -> None:
    """Runs `operation` in the given or the default session."""
    _session_for(operation.graph, session, f"run operation {operation.name!r}").run(operation, feed_dict)


def _session_for(graph: Graph, session: SessionLike | None, what: str) -> SessionLike:
    chosen = session if session is not None else get_default_session()
    if chosen is None:
        raise GraphError(f"cannot {what}: there is no default session; use `with session:` or pass session=")
    if chosen.graph is not graph:
        origin = "default session's" if session is None else "given session's"
        raise GraphError(f"cannot {what}: the {origin} graph is not the graph it belongs to")
    return chosen
