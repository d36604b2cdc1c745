"""The graph that new operations go to: the thread's innermost default, otherwise one graph for the process."""

from __future__ import annotations

import threading

from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.graph import Graph
from xlalite.framework.graph.graph_stack import innermost_graph

_LOCK = threading.Lock()
_process_graph: Graph | None = None


def get_default_graph() -> Graph:
    """The innermost graph of `with graph.as_default()` in this thread, otherwise the process's own graph."""
    innermost = innermost_graph()
    if innermost is not None:
        return innermost
    global _process_graph
    with _LOCK:
        if _process_graph is None:
            _process_graph = Graph()
        return _process_graph


def reset_default_graph() -> None:
    """Replaces the process's own graph by an empty one.

    Raises:
        GraphError: called inside `with graph.as_default()`.
    """
    if innermost_graph() is not None:
        raise GraphError("reset_default_graph() cannot be called inside a `with graph.as_default()` block")
    global _process_graph
    with _LOCK:
        _process_graph = None
