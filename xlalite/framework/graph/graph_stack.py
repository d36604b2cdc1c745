"""The graphs that were made the default in this thread, the innermost last."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xlalite.framework.graph.graph import Graph


class _GraphStack(threading.local):
    def __init__(self) -> None:
        self.graphs: list[Graph] = []


_STACK = _GraphStack()


def innermost_graph() -> Graph | None:
    """The graph of the innermost `with graph.as_default()`; None outside of all."""
    return _STACK.graphs[-1] if _STACK.graphs else None


@contextmanager
def use_as_default(graph: Graph) -> Iterator[Graph]:
    """Makes `graph` the thread's default for the body."""
    _STACK.graphs.append(graph)
    try:
        yield graph
    finally:
        removed = _STACK.graphs.pop()
        assert removed is graph, "default graphs were entered and left out of order"
