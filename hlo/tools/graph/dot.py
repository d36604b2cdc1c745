"""Pictures of programs in the language of Graphviz, for other tools; colours are those of the SVG in the light."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.tools.graph.diagram import Diagram, Node, diagram_of
from xlalite.hlo.tools.graph.svg import graph_style, stroke_width


def graph_dot(subject: HloModule | HloComputation, shown: Collection[HloInstruction] | None = None) -> str:
    """A computation, or a module's entry, as a digraph; what instructions call are clusters.

    Args:
        subject: What to draw.
        shown: Only these instructions of the computation; None for all.
    """
    computation = subject.entry_computation if isinstance(subject, HloModule) else subject
    lines = _DotLines().of(diagram_of(computation, shown), "")
    head = [
        f"digraph {_quoted(computation.name)} {{",
        "rankdir=TB; compound=true;",
        'node [shape=box, style="rounded,filled", fontname="monospace", fontsize=10];',
        'edge [fontname="monospace", fontsize=8, color="#9aa6b5"];',
    ]
    return "\n".join([*head, *lines, "}"]) + "\n"


class _DotLines:
    def __init__(self) -> None:
        self._colours = dict(reversed(re.findall(r"--g-(\w+): (#\w{6});", graph_style())))
        self._count = 0

    def of(self, diagram: Diagram, indent: str) -> Iterator[str]:
        first = self._count
        self._count += len(diagram.nodes)
        for number, node in enumerate(diagram.nodes, first):
            if node.insides:
                yield f"{indent}subgraph cluster_{number} {{"
                yield f'{indent}  style="rounded,filled"; color="#9aa6b5"; fillcolor="{self._colours[node.kind]}";'
                yield f"{indent}  {self._node(number, node)}"
                for inside in node.insides:
                    yield from self.of(inside, f"{indent}  ")
                yield f"{indent}}}"
            else:
                yield f"{indent}{self._node(number, node)}"
        for edge in diagram.edges:
            ends = f"n{first + edge.source} -> n{first + edge.target}"
            if edge.is_control:
                yield f'{indent}{ends} [style=dashed, color="#d6336c"];'
            else:
                label = _quoted(diagram.nodes[edge.source].value)
                yield f"{indent}{ends} [label={label}, penwidth={stroke_width(edge.size_bytes):.1f}];"

    def _node(self, number: int, node: Node) -> str:
        border = ", penwidth=2" if node.is_root else ""
        label, hint = _quoted("\n".join(node.lines)), _quoted(node.hint)
        return f'n{number} [label={label}, tooltip={hint}, fillcolor="{self._colours[node.kind]}"{border}];'


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
