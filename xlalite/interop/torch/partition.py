"""Which operations of a graph run together: compiled ones in as few modules as possible, torch's own between them.

Every operation gets a stage. What is compiled runs in the stage of its operands; torch's operations of a stage run
after the module of that stage, in the order of the graph among themselves, since they may draw random numbers.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field

import torch
from torch.fx import Node

from xlalite.hlo.records import dataclass
from xlalite.interop.torch.lowering import is_known


@dataclass(slots=True)
class Stage:
    """Operations that run together.

    Attributes:
        compiled: Those of the module, in order.
        eager: Those that torch runs afterwards, in order.
    """

    compiled: list[Node] = field(default_factory=list)
    eager: list[Node] = field(default_factory=list)


def stages_of(graph: torch.fx.Graph, eager: Collection[Node]) -> list[Stage]:
    """The stages of a graph when some operations are torch's."""
    stage_of: dict[Node, int] = {}
    stages = [Stage()]
    latest_eager = 0
    for node in graph.nodes:
        if node.op != "call_function" or is_known(node):
            continue
        sources = [source for source in node.all_input_nodes if source in stage_of]
        if node in eager:
            number = max([latest_eager, *(stage_of[source] for source in sources)])
            latest_eager = number
        else:
            number = max([0, *(stage_of[source] + (source in eager) for source in sources)])
        stage_of[node] = number
        while len(stages) <= number:
            stages.append(Stage())
        (stages[number].eager if node in eager else stages[number].compiled).append(node)
    return stages
