"""Models in stages: where sizes follow from values that only the running program knows, the program before runs first.

What a stage gives is an input of the next one, which is compiled for its sizes, or for its values where they are sizes
themselves. Operators whose values say how much they give are evaluated between two stages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from xlalite.hlo.records import dataclass
from xlalite.interop.onnx.graph import Graph, ModelProgram, Node, OtherType, ValueInfo

_SIZED_BY_VALUES = ("Compress", "NonMaxSuppression", "NonZero", "Unique")
_BETWEEN = OtherType("a value between stages")


@dataclass(frozen=True, slots=True)
class Stages:
    """A model around one of its nodes.

    Attributes:
        before: What does not need the node; gives what the others need of it.
        evaluated: The node by itself, if it is to be evaluated.
        behind: What needs the node; gives the outputs of the model that nothing before gives.
    """

    before: ModelProgram
    evaluated: ModelProgram | None
    behind: ModelProgram


def is_sized_by_values(node: Node) -> bool:
    """Whether an operator gives as much as values say."""
    return not node.domain and node.op_type in _SIZED_BY_VALUES


def stages_around(program: ModelProgram, node: Node) -> Stages | None:
    """The stages; None if the node needs nothing but inputs, and is not to be evaluated."""
    graph = program.graph
    is_evaluated = is_sized_by_values(node)
    constants = [each for each in graph.nodes if _is_constant(each)]
    waiting, behind, before = set(node.outputs), list[Node](), list[Node]()
    for each in graph.nodes:
        if each is node:
            behind += [] if is_evaluated else [node]
        elif not waiting.isdisjoint(_needed(each)):
            behind.append(each)
            waiting.update(each.outputs)
        else:
            before.append(each)
    made = {name for each in before if not _is_constant(each) for name in each.outputs}
    if not is_evaluated and made.isdisjoint(_needed(node)):
        return None
    results = {info.name for info in graph.outputs}
    wanted = results.union(_needed(node), *map(_needed, behind)) & made
    given = {info.name for info in graph.inputs if info.name not in graph.initializers} | made
    given |= set(node.outputs if is_evaluated else ())
    return Stages(
        _part(program, before, [ValueInfo(name, _BETWEEN) for name in sorted(wanted)]),
        _part(program, [*constants, node], [ValueInfo(name, _BETWEEN) for name in node.outputs if name])
        if is_evaluated
        else None,
        _part(program, [*constants, *behind], [info for info in graph.outputs if info.name not in given]),
    )


def _part(program: ModelProgram, nodes: Collection[Node], outputs: Collection[ValueInfo]) -> ModelProgram:
    """Some nodes of a model; whatever they need and do not make is an input."""
    graph = program.graph
    needed = {info.name for info in outputs}.union(*map(_needed, nodes))
    made = {name for node in nodes for name in node.outputs}
    initializers = {name: array for name, array in graph.initializers.items() if name in needed}
    named = {info.name: info for info in graph.inputs}
    inputs = [
        named.get(name, ValueInfo(name, _BETWEEN)) for name in sorted(needed - made - initializers.keys()) if name
    ]
    part = replace(graph, nodes=tuple(nodes), inputs=tuple(inputs), outputs=tuple(outputs), initializers=initializers)
    return replace(program, graph=part)


def _is_constant(node: Node) -> bool:
    """Whether a node costs nothing, so that each stage may have it."""
    return not node.domain and node.op_type == "Constant"


def _needed(node: Node) -> set[str]:
    """Names that a node needs, those in its graphs too."""
    return {
        *node.inputs,
        *(name for each in node.attributes.values() if isinstance(each, Graph) for name in _free(each)),
    }


def _free(graph: Graph) -> Iterator[str]:
    """Names that a graph needs of what is around it; perhaps some of its own."""
    yield from (info.name for info in graph.outputs)
    for node in graph.nodes:
        yield from _needed(node)
