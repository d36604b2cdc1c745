"""Adds operations to the right graph: the one of the inputs, or the body of a loop or branch that is being built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.graph import Graph
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor


def operation(
    op_type: str, inputs: Sequence[Tensor] = (), attrs: Mapping[str, Any] | None = None, name: str | None = None
) -> Operation:
    """A new operation.

    Raises:
        GraphError: the inputs belong to different graphs.
        ShapeError: their shapes do not fit.
        ElementTypeError: their element types do not.
    """
    graph = graph_for(inputs)
    return graph.create_op(op_type, [graph.capture(tensor) for tensor in inputs], attrs, name)


def node(
    op_type: str, inputs: Sequence[Tensor] = (), attrs: Mapping[str, Any] | None = None, name: str | None = None
) -> Tensor:
    """The only output of a new operation."""
    (output,) = operation(op_type, inputs, attrs, name).outputs
    return output


def graph_for(inputs: Sequence[Tensor]) -> Graph:
    """The graph that an operation on `inputs` belongs to."""
    default = get_default_graph()
    if default.building_function or not inputs:
        return default
    return inputs[0].graph
