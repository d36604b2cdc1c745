"""The graph that new operations go to: one stack for each thread, over one graph for the process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from xlalite.framework.graph.errors import GraphError

if TYPE_CHECKING:
    from xlalite.framework.graph.graph import Graph


class _GraphStack(threading.local):
    def __init__(self) -> None:
        self.graphs: list[Graph] = []


_STACK = _GraphStack()
_LOCK = threading.Lock()
_process_graph: Graph | None = None


def get_default_graph() -> Graph:
    """The innermost graph of `with graph.as_default()` in this thread, otherwise the process's own graph."""
    if _STACK.graphs:
        return _STACK.graphs[-1]
    global _process_graph
    with _LOCK:
        if _process_graph is None:
            from xlalite.framework.graph.graph import Graph

            _process_graph = Graph()
        return _process_graph


def reset_default_graph() -> None:
    """Replaces the process's own graph by an empty one.

    Raises:
        GraphError: called inside `with graph.as_default()`.
    """
    if _STACK.graphs:
        raise GraphError("reset_default_graph() cannot be called inside a `with graph.as_default()` block")
    global _process_graph
    with _LOCK:
        _process_graph = None


@contextmanager
def use_as_default(graph: Graph) -> Iterator[Graph]:
    """Makes `graph` the thread's default for the body."""
    _STACK.graphs.append(graph)
    try:
        yield graph
    finally:
        removed = _STACK.graphs.pop()
        assert removed is graph, "default graphs were entered and left out of order"
