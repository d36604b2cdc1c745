"""Runs in parts: one step whose values are fed and fetched bit by bit, each operation running once.

Parts run operation by operation.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from xlalite.client.feeds import resolve_feed
from xlalite.client.fetches import resolve_fetches
from xlalite.client.session_errors import FeedError, FetchError
from xlalite.framework.graph.graph import Graph
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.meaning.host import HostValue
from xlalite.framework.meaning.op_execution import run_operation_on_host
from xlalite.framework.meaning.variable_use import begin_states
from xlalite.runtime.pruning import needed_operations
from xlalite.runtime.variables import VariableStore


class PartialRun:
    """One step and how far it is."""

    def __init__(self, graph: Graph, fetches: Any, feeds: Iterable[Any]) -> None:
        """A step in which only these fetches and feeds may occur, each once."""
        self._graph = graph
        declared = resolve_fetches(graph, fetches)
        self._fetches: set[Tensor | Operation] = {*declared.tensors, *declared.targets}
        self._feeds = {resolve_feed(graph, each).tensor for each in feeds}
        self._values: dict[Tensor, HostValue] = {}
        self._done: set[Operation] = set()
        self._lock = threading.Lock()

    def run(self, fetches: Any, feed_dict: Mapping[Any, Any] | None, store: VariableStore) -> Any:
        """What the fetches are, once these values are fed too.

        Raises:
            FeedError, FetchError: something was not declared, or comes a second time.
        """
        wanted = resolve_fetches(self._graph, fetches)
        with self._lock:
            for key, value in (feed_dict or {}).items():
                feed = resolve_feed(self._graph, key)
                if feed.tensor not in self._feeds:
                    raise FeedError(f"Tensor {feed.tensor.name!r} was not declared as a feed, or was fed before")
                self._values[feed.tensor] = feed.convert(value)
                self._feeds.remove(feed.tensor)
            asked: list[Tensor | Operation] = [*wanted.tensors, *wanted.targets]
            for each in asked:
                if each not in self._fetches:
                    raise FetchError(f"{each.name!r} was not declared as a fetch, or was fetched before")
            self._fetches.difference_update(asked)
            needed = needed_operations(wanted.tensors, wanted.targets, self._values.keys())
            begin_states(needed, store)
            for operation in needed:
                self._run(operation, store)
            results = [np.array(self._values[tensor]) for tensor in wanted.tensors]
        return wanted.assemble(results)

    def _run(self, operation: Operation, store: VariableStore) -> None:
        if operation in self._done:
            return
        inputs = [self._values[tensor] for tensor in operation.inputs]
        found = run_operation_on_host(operation, inputs, store)
        self._done.add(operation)
        for tensor, value in zip(operation.outputs, found, strict=True):
            self._values.setdefault(tensor, value)
