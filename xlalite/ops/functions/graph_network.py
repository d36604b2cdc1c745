"""Graphs of operations as graphs of networkx."""

from __future__ import annotations

from typing import Any

from xlalite.framework.graph.graph import Graph


def graph_network(graph: Graph) -> Any:
    """The operations of a graph, by name, as a `networkx.MultiDiGraph`: an edge for each input, and for each wait.

    Nodes have `type`, `device` and `operation`. Edges have `tensor`, the name of what they carry, and `position`, that
    of the input; those of control dependencies have the tensor `^name` and the position -1, as in a `NodeDef`.
    """
    import networkx  # which only those need who ask

    network = networkx.MultiDiGraph()
    for operation in graph.get_operations():
        network.add_node(operation.name, type=operation.type, device=operation.device, operation=operation)
    for operation in graph.get_operations():
        for position, tensor in enumerate(operation.inputs):
            network.add_edge(tensor.op.name, operation.name, tensor=tensor.name, position=position)
        for before in operation.control_inputs:
            network.add_edge(before.name, operation.name, tensor=f"^{before.name}", position=-1)
    return network


Graph.to_network = graph_network
