"""Makes large diagrams small: runs of nodes become one node each, which opens.

A run is an interval of the order of the nodes, so that folding makes no cycle; runs end where few values are alive,
which in a network of layers is between layers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import takewhile

from xlalite.hlo.tools.graph.diagram import Diagram, Edge, Node, shortened, size_text
from xlalite.hlo.wording import counted

LARGEST = 160
_SLACK = 0.25
_KINDS_NAMED = 4
_PORTS = 24
_SCOPES_NAMED = 3


def folded(diagram: Diagram, largest: int = LARGEST) -> Diagram:
    """The diagram with at most about `largest` nodes beside each other, the others inside regions."""
    count = len(diagram.nodes)
    if count <= largest:
        return diagram
    levels = math.ceil(math.log(count) / math.log(largest / (1 + 2 * _SLACK)))
    run = count ** (1 / levels)
    for _ in range(levels - 1):
        diagram = _fold(_late_sources(diagram), run)
    return diagram


def _fold(diagram: Diagram, length: float) -> Diagram:
    """Makes a region of each run of about a length."""
    runs = _runs(len(diagram.nodes), diagram.edges, length)
    region_of = [number for number, run in enumerate(runs) for _ in run]
    inside: list[list[Edge]] = [[] for _ in runs]
    entering: list[list[Edge]] = [[] for _ in runs]
    leaving: list[dict[int, int]] = [{} for _ in runs]
    crossing: dict[tuple[int, int], dict[int, int]] = {}
    for edge in diagram.edges:
        source, target = region_of[edge.source], region_of[edge.target]
        if source == target:
            inside[source].append(edge)
        else:
            entering[target].append(edge)
            leaving[source][edge.source] = edge.size_bytes
            crossing.setdefault((source, target), {})[edge.source] = edge.size_bytes
    made = Diagram(diagram.title)
    common = len(_common(diagram.nodes))
    made.nodes = [_region(diagram, common, *one) for one in zip(runs, inside, entering, leaving, strict=True)]
    made.edges = [Edge(*ends, size_bytes=sum(values.values())) for ends, values in crossing.items()]
    return made


def _region(
    diagram: Diagram, common: int, run: range, inside: list[Edge], entering: list[Edge], leaving: dict[int, int]
) -> Node:
    """A run of nodes as one, named after the scopes inside of the `common` ones, which are those of all nodes."""
    nodes = [diagram.nodes[number] for number in run]
    sources = list(dict.fromkeys(edge.source for edge in entering))
    part = Diagram(f"{nodes[0].name} … {nodes[-1].name}")
    if len(sources) > _PORTS:
        ports, port_of = [_common_port([diagram.nodes[number] for number in sources])], dict.fromkeys(sources, 0)
    else:
        ports = [_port(diagram.nodes[number]) for number in sources]
        port_of = {number: position for position, number in enumerate(sources)}
    part.nodes = ports + nodes
    first = len(ports) - run.start
    entries = {(port_of[e.source], e.target + first): e for e in entering}
    part.edges = [Edge(*ends, e.size_bytes, e.is_control) for ends, e in entries.items()]
    part.edges += [Edge(e.source + first, e.target + first, e.size_bytes, e.is_control) for e in inside]
    drawn = [node for node in part.all_nodes() if node.kind not in ("port", "region")]
    counts = Counter(node.opcode for node in drawn)
    most = counts.most_common(_KINDS_NAMED)
    words = ", ".join(f"{count} {name}" for name, count in most) + (", …" if len(counts) > len(most) else "")
    named = _scopes_text(drawn, common)
    values = f"{counted(len(leaving), 'value')}, {size_text(sum(leaving.values()))}" if leaving else ""
    name = f"{nodes[0].name}…{nodes[-1].name}"
    return Node(
        name,
        nodes[0].computation,
        "",
        "region",
        (*([named] if named else []), f"{len(drawn):,} instructions", words),
        values,
        f"{name}\n{words}",
        max(leaving.values(), default=0),
        any(node.is_root for node in nodes),
        insides=(part,),
        scopes=_common(nodes),
    )


def _scopes_text(nodes: Sequence[Node], common: int) -> str:
    """The scopes inside of the `common` ones: `gradients/layer_9, layer_8`, or the first and the last of many."""
    outer = _common(nodes)
    inner = list(dict.fromkeys(node.scopes[len(outer)] for node in nodes if len(node.scopes) > len(outer)))
    words = ", ".join(inner) if len(inner) <= _SCOPES_NAMED else f"{inner[0]} … {inner[-1]}"
    return shortened("/".join([*outer[common:], *([words] if words else [])]))


def _common(nodes: Sequence[Node]) -> tuple[str, ...]:
    """The scopes that all nodes with any stand in."""
    levels = zip(*(node.scopes for node in nodes if node.scopes), strict=False)
    return tuple(names[0] for names in takewhile(lambda names: len(set(names)) == 1, levels))


def _port(node: Node) -> Node:
    return Node(
        node.name, node.computation, "", "port", (node.name,), node.value, f"from outside: {node.hint}", node.size_bytes
    )


def _common_port(nodes: Sequence[Node]) -> Node:
    """One port for more values than a picture can show."""
    size_bytes = sum(node.size_bytes for node in nodes)
    line = f"{len(nodes)} values from outside"
    hint = ", ".join(node.name for node in nodes[:_PORTS])
    return Node(nodes[0].name, nodes[0].computation, "", "port", (line,), size_text(size_bytes), hint, size_bytes)


def _late_sources(diagram: Diagram) -> Diagram:
    """The nodes in an order in which those that nothing leads to stand just before the first that they lead to."""
    count = len(diagram.nodes)
    entered = {edge.target for edge in diagram.edges}
    first: dict[int, int] = {}
    for edge in diagram.edges:
        first[edge.source] = min(first.get(edge.source, count), edge.target)
    keys = [(number if number in entered else first.get(number, number) - 0.5, number) for number in range(count)]
    order = [number for _, number in sorted(keys)]
    place = {number: position for position, number in enumerate(order)}
    edges = [Edge(place[e.source], place[e.target], e.size_bytes, e.is_control) for e in diagram.edges]
    return Diagram(diagram.title, [diagram.nodes[number] for number in order], edges)


def _runs(count: int, edges: Sequence[Edge], length: float) -> list[range]:
    """Intervals of the nodes, cut where the fewest values are alive."""
    last = list(range(count))
    for edge in edges:
        last[edge.source] = max(last[edge.source], edge.target)
    change = [0] * (count + 2)
    for node, end in enumerate(last):
        change[node + 1] += 1
        change[end + 1] -= 1
    alive, now = [], 0
    for value in change:
        now += value
        alive.append(now)
    runs, start = [], 0
    shortest, longest = math.floor((1 - _SLACK) * length), math.ceil((1 + _SLACK) * length)
    while count - start > longest:
        cuts = range(start + shortest, start + longest)
        cut = min(cuts, key=lambda at: (alive[at], abs(at - start - length)))
        runs.append(range(start, cut))
        start = cut
    return [*runs, range(start, count)]
