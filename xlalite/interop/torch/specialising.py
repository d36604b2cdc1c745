"""Graphs with symbolic sizes, made concrete for the sizes of a call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode


def is_symbolic(module: torch.fx.GraphModule) -> bool:
    """Whether sizes of a graph, or numbers among its inputs, differ from call to call."""
    inputs = [node.meta.get("val") for node in module.graph.nodes if node.op == "placeholder"]
    return any(not isinstance(value, torch.Tensor) or bool(_symbolic_sizes(value)) for value in inputs)


def sizes_of(arguments: Sequence[Any]) -> tuple[Any, ...]:
    """What of a call a concrete graph is for."""
    return tuple((tuple(a.shape), a.stride()) if isinstance(a, torch.Tensor) else a for a in arguments)


def specialised(module: torch.fx.GraphModule, arguments: Sequence[Any]) -> torch.fx.GraphModule:
    """A copy of a graph whose values have the sizes that follow from arguments."""
    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    concrete = torch.fx.GraphModule(module, graph)
    mode = FakeTensorMode()
    remaining = iter(arguments)
    values: dict[torch.fx.Node, Any] = {}
    with mode, torch.no_grad():
        for node in graph.nodes:
            match node.op:
                case "placeholder":
                    given = next(remaining)
                    values[node] = mode.from_tensor(given) if isinstance(given, torch.Tensor) else given
                case "get_attr":
                    held = getattr(concrete, node.target)
                    values[node] = mode.from_tensor(held) if isinstance(held, torch.Tensor) else held
                case "call_function":
                    taken, named = torch.fx.node.map_arg((node.args, node.kwargs), values.__getitem__)
                    values[node] = node.target(*taken, **named)
                case _:
                    continue
            node.meta["val"] = values[node]
    return concrete


def _symbolic_sizes(value: torch.Tensor) -> list[Any]:
    sizes = [*value.shape, *value.stride(), value.storage_offset()]
    return [size for size in sizes if isinstance(size, torch.SymInt)]
