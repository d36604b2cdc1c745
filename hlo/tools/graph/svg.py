"""Pictures of programs as SVG: `graph_svg`, and `DiagramWriter` for diagrams of any origin.

A picture carries its own colours, light and dark. `graph_script` makes boxes open and close, and shows what an
instruction reads and who reads it, wherever the picture stands in a page.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from html import escape
from pathlib import Path

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.records import dataclass
from xlalite.hlo.tools.graph.diagram import Diagram, Node, diagram_of
from xlalite.hlo.tools.graph.folding import LARGEST, folded
from xlalite.hlo.tools.graph.placement import Extent, Placement, place

_CHARACTER = 6.65  # of a monospaced font of 11 px
_SMALL_CHARACTER = 5.45
_LINE_HEIGHT = 15
_PADDING = 9
_GAP = 44
_HEADER = 8
_MARGIN = 16
_OPEN_LIMIT = 200


def graph_svg(
    subject: HloModule | HloComputation,
    shown: Collection[HloInstruction] | None = None,
    *,
    opened: bool | None = None,
    foldable: bool = False,
    largest: int = LARGEST,
    style: bool = True,
) -> str:
    """A picture of a computation, or of a module's entry, as an `<svg>` element.

    The root is `<svg class="hlo-graph">`. Each instruction is one `<g class="n KIND" data-name="NAME"
    data-computation="COMPUTATION">`, also inside fusions and loops; names are unique in a computation only. Scalar
    constants are no nodes: they stand in the text of their users. Edges are `<path class="e" data-from data-to>`.
    A box that can open has the class `box`, and `open` while it does. Computations of more than `largest` instructions
    are folded into regions (`class="n region box"`), and values that enter a region are `<g class="n port" data-ref>`.
    With `graph_script`, a click sends `hlo-select` with the data of the node as `detail`, and the page may call
    `hloGraph.reveal(name, computation)`.

    Args:
        subject: What to draw.
        shown: Only these instructions of the computation; None for all.
        opened: Whether boxes start open; None for open in small programs.
        foldable: Whether the picture holds what closed boxes hide, for `graph_script` to show; without it, what is
            closed stays so, and the text is small.
        largest: How many nodes may stand in one computation before it is folded.
        style: Whether the picture brings `graph_style`; without it, the page must.
    """
    computation = subject.entry_computation if isinstance(subject, HloModule) else subject
    diagram = diagram_of(computation, shown, lambda one: folded(one, largest))
    is_open = sum(1 for _ in diagram.all_nodes()) <= _OPEN_LIMIT if opened is None else opened
    writer = DiagramWriter(lambda node: is_open and node.kind != "region", foldable)
    return writer.svg(diagram, graph_style() if style else "")


def graph_style() -> str:
    """The style sheet of pictures."""
    return _asset("graph.css")


def graph_script() -> str:
    """The script that makes all pictures of a page answer: `graph_svg(..., foldable=True)`."""
    return _asset("graph.js")


@dataclass(slots=True, eq=False)
class _Drawn:
    """A diagram as text, and how large it is."""

    text: str
    width: float
    height: float


@dataclass(slots=True, eq=False)
class _Box:
    """A node, how large it is closed and as it is drawn, and what it holds."""

    node: Node
    closed: tuple[float, float]
    size: tuple[float, float]
    is_open: bool
    insides: list[_Drawn]


class DiagramWriter:
    """Writes diagrams."""

    def __init__(self, is_open: Callable[[Node], bool], foldable: bool) -> None:
        """Says which boxes are open, and whether closed ones keep what they hide."""
        self._is_open = is_open
        self._foldable = foldable

    def svg(self, diagram: Diagram, style: str) -> str:
        """The picture as a whole."""
        drawn = self._diagram(diagram)
        width, height = drawn.width + 2 * _MARGIN, drawn.height + 2 * _MARGIN
        head = f"<style>{style}</style>" if style else ""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="hlo-graph" role="img" '
            f'aria-label="{escape(diagram.title)}" '
            f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">{head}{_ARROW}'
            f'<rect class="paper" width="100%" height="100%"/>'
            f'<g transform="translate({_MARGIN} {_MARGIN})">{drawn.text}</g></svg>\n'
        )

    def _diagram(self, diagram: Diagram) -> _Drawn:
        used = {edge.source for edge in diagram.edges}
        boxes = [self._box(node) for node in diagram.nodes]
        labels = [_label_width(box.node) if number in used else 0.0 for number, box in enumerate(boxes)]
        extents = [
            Extent(box.size[0] / 2, max(box.size[0] / 2, label), box.size[1])
            for box, label in zip(boxes, labels, strict=True)
        ]
        placement = place(extents, [(edge.source, edge.target) for edge in diagram.edges], _GAP)
        rows = placement.row_of()
        shifts = _shifts(placement, diagram, boxes)
        parts = [
            self._edge(diagram, number, placement, rows, boxes, shifts[number]) for number in range(len(diagram.edges))
        ]
        for number, box in enumerate(boxes):
            row = rows[number]
            y = placement.tops[row] + (placement.heights[row] - box.size[1]) / 2
            parts.append(self._node(number, box, placement.x[number], y, number in used))
        layout = self._layout(placement, labels) if self._foldable and any(box.insides for box in boxes) else ""
        text = f'<g class="d"{layout}>{"".join(parts)}</g>'
        return _Drawn(text, placement.width, placement.height)

    def _layout(self, placement: Placement, labels: Sequence[float]) -> str:
        """What the script needs in order to move things: rows of `number,x,reach of the label`, and ways of edges."""
        rows = ";".join(
            " ".join(
                f"{item},{placement.x[item]:.0f}" + (f",{labels[item]:.0f}" if item < len(labels) else "")
                for item in row
            )
            for row in placement.rows
        )
        routes = ";".join(",".join(map(str, route)) for route in placement.routes)
        return f' data-rows="{rows}" data-routes="{routes}"'

    def _box(self, node: Node) -> _Box:
        width = max(len(node.lines[0]) * _CHARACTER, *(len(line) * _SMALL_CHARACTER for line in node.lines))
        width = max(width + 2 * _PADDING, 40.0) + (14 if node.insides else 0)
        closed = (round(width), float(_LINE_HEIGHT * len(node.lines) + _HEADER))
        is_open = bool(node.insides) and self._is_open(node)
        insides = [self._diagram(one) for one in node.insides] if is_open or self._foldable else []
        size = _open_size(closed, insides) if is_open else closed
        return _Box(node, closed, size, is_open, insides)

    def _node(self, number: int, box: _Box, x: float, y: float, is_used: bool) -> str:
        node, (width, height) = box.node, box.size
        classes = ["n", node.kind]
        classes += [
            word
            for word, holds in (
                ("box", bool(box.insides) or bool(node.insides)),
                ("open", box.is_open),
                ("root", node.is_root),
                ("cut", node.is_cut),
            )
            if holds
        ]
        which = "data-ref" if node.kind == "port" else "data-name"
        size = f' data-size="{box.closed[0]:.0f},{box.closed[1]:.0f}"' if self._foldable and box.insides else ""
        parts = [
            f'<g class="{" ".join(classes)}" {which}="{escape(node.name)}" '
            f'data-computation="{escape(node.computation)}" data-n="{number}"{size} '
            f'transform="translate({x:.0f} {y:.0f})">',
            f"<title>{escape(node.hint)}</title>" if node.hint else "",
            f'<rect x="{-width / 2:.0f}" width="{width:.0f}" height="{height:.0f}" rx="5"/>',
        ]
        left = -width / 2 + _PADDING
        if node.insides:
            parts.append(f'<text class="fold" x="{left:.0f}" y="16">{"▾" if box.is_open else "▸"}</text>')
            left += 14
        for line, text in enumerate(node.lines):
            kind = "" if line == 0 else ' class="s"'
            parts.append(f'<text{kind} x="{left:.0f}" y="{16 + _LINE_HEIGHT * line}">{escape(text)}</text>')
        if is_used and node.value:
            parts.append(f'<text class="v" x="5" y="{height + 13:.0f}">{escape(node.value)}</text>')
        parts.append(_insides_text(box))
        parts.append("</g>")
        return "".join(parts)

    def _edge(
        self, diagram: Diagram, number: int, placement: Placement, rows: list[int], boxes: list[_Box], shift: float
    ) -> str:
        edge = diagram.edges[number]
        source, *points, target = placement.routes[number]

        def span(item: int) -> tuple[float, float]:
            top, height = placement.tops[rows[item]], placement.heights[rows[item]]
            return top, top + height

        x = placement.x[source]
        top, bottom = span(source)
        path = [f"M{x:.0f} {(top + bottom + boxes[source].size[1]) / 2:.0f}V{bottom:.0f}"]
        for item in (*points, target):
            end = placement.x[item] + (shift if item == target else 0.0)
            y, next_bottom = span(item)
            middle = (bottom + y) / 2
            path.append(f"C{x:.0f} {middle:.0f} {end:.0f} {middle:.0f} {end:.0f} {y:.0f}")
            path.append(
                f"V{next_bottom:.0f}" if item != target else f"V{(y + next_bottom - boxes[item].size[1]) / 2:.0f}"
            )
            x, bottom = end, next_bottom
        kind = "e control" if edge.is_control else "e"
        stroke = "" if edge.is_control else f' stroke-width="{stroke_width(edge.size_bytes):.1f}"'
        moves = f' data-s="{shift:.0f}"' if self._foldable and shift else ""
        ends = f'data-from="{edge.source}" data-to="{edge.target}"'
        return f'<path class="{kind}" {ends}{stroke}{moves} d="{"".join(path)}"/>'


def _insides_text(box: _Box) -> str:
    """What lies in a box, side by side below its words."""
    if not box.insides:
        return ""
    width, _ = _open_size(box.closed, box.insides)
    x, parts = -width / 2 + _MARGIN, []
    hidden = "" if box.is_open else ' display="none"'
    for title, inside in zip((one.title for one in box.node.insides), box.insides, strict=True):
        y = box.closed[1] + (_LINE_HEIGHT if len(box.insides) > 1 else 0)
        label = f'<text class="s" x="0" y="-4">{escape(title)}</text>' if len(box.insides) > 1 else ""
        parts.append(
            f'<g class="i" data-size="{inside.width:.0f},{inside.height:.0f}" transform="translate({x:.0f} {y:.0f})">'
            f"{label}{inside.text}</g>"
        )
        x += inside.width + _MARGIN
    return f'<g class="in"{hidden}>{"".join(parts)}</g>'


def _open_size(closed: tuple[float, float], insides: Sequence[_Drawn]) -> tuple[float, float]:
    width = sum(one.width + _MARGIN for one in insides) + _MARGIN
    height = max(one.height for one in insides) + (_LINE_HEIGHT if len(insides) > 1 else 0)
    return max(closed[0], width), closed[1] + height + _MARGIN


def _label_width(node: Node) -> float:
    return 8 + len(node.value) * _SMALL_CHARACTER


def _shifts(placement: Placement, diagram: Diagram, boxes: Sequence[_Box]) -> list[float]:
    """How far from the middle of its target each edge arrives, so that they do so side by side."""
    arriving: dict[int, list[int]] = {}
    for number, edge in enumerate(diagram.edges):
        arriving.setdefault(edge.target, []).append(number)
    shifts = [0.0] * len(diagram.edges)
    for target, numbers in arriving.items():
        numbers.sort(key=lambda number: placement.x[placement.routes[number][-2]])
        step = min(14.0, 0.7 * boxes[target].closed[0] / len(numbers))
        for position, number in enumerate(numbers):
            shifts[number] = step * (position - (len(numbers) - 1) / 2)
    return shifts


def stroke_width(size_bytes: int) -> float:
    """How broad the edge of a value is: 1 px up to some bytes, 6 px from some dozen MiB."""
    return min(1.0 + 0.3 * (size_bytes // 256).bit_length(), 6.0)


def _asset(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


_ARROW = (
    '<defs><marker id="hlo-arrow" viewBox="0 0 8 8" refX="4" refY="7" markerWidth="8" markerHeight="8" '
    'markerUnits="userSpaceOnUse" orient="0"><path d="M0 0L4 8L8 0z"/></marker></defs>'
)
