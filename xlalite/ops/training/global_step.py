"""The variable that counts training steps."""

from __future__ import annotations

from typing import Any

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import int64
from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.graph import Graph
from xlalite.framework.graph.graph_keys import GraphKeys
from xlalite.ops.training.initializers import Zeros
from xlalite.ops.training.variable import Variable
from xlalite.ops.training.variable_scope import get_variable


def get_global_step(graph: Graph | None = None) -> Variable | None:
    """The graph's step counter, or None."""
    found: list[Variable] = (graph or get_default_graph()).get_collection(GraphKeys.GLOBAL_STEP)
    return found[0] if found else None


def create_global_step(graph: Graph | None = None) -> Variable:
    """Makes the step counter.

    Raises:
        GraphError: the graph has one already.
    """
    chosen = graph or get_default_graph()
    if get_global_step(chosen) is not None:
        raise GraphError("the graph already has a global step")
    with chosen.as_default(), chosen.name_scope(None):
        return get_variable(
            "global_step",
            [],
            int64,
            Zeros(),
            trainable=False,
            collections=[GraphKeys.GLOBAL_VARIABLES, GraphKeys.GLOBAL_STEP],
        )


def get_or_create_global_step(graph: Graph | None = None) -> Variable:
    """The step counter, made when there is none."""
    return get_global_step(graph) or create_global_step(graph)


def global_step(sess: Any, global_step_tensor: Variable) -> int:
    """The counter's value in a session."""
    return int(sess.run(global_step_tensor))
