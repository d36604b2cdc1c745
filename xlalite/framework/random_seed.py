"""Seeds of random operations: from the graph, from the operation, from both, or none."""

from __future__ import annotations

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.graph import Graph

_DEFAULT_GRAPH_SEED = 87654321


def set_random_seed(seed: int | None) -> None:
    """Sets the default graph's seed; operations created later draw reproducible numbers."""
    get_default_graph().seed = seed


def get_seed(op_seed: int | None) -> tuple[int, int]:
    """The two seeds of a new random operation in the default graph.

    With a graph seed alone, the operation's own seed is its number in the graph, so that operations differ but a
    program that builds the same graph draws the same numbers. Without any seed both are 0, which means unpredictable.
    """
    graph: Graph = get_default_graph()
    if graph.seed is None and op_seed is None:
        return 0, 0
    first = _DEFAULT_GRAPH_SEED if graph.seed is None else int(graph.seed)
    second = graph.version if op_seed is None else int(op_seed)
    # Both zero would mean no seed.
    return (0, 2**31 - 1) if (first, second) == (0, 0) else (first, second)
