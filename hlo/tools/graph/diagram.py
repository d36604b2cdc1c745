"""What is drawn of a program: nodes with their words and colours, edges, and what lies inside a node.

A computation is one diagram. What an instruction calls stands inside its node, so that fusions and loops open and
close; scalar constants stand in the text of their users, as in XLA's pictures. Large diagrams are folded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import field

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.monoid import recognise_monoid
from xlalite.hlo.ir.op import Memory, Trait
from xlalite.hlo.ops.structural import ConstantAttrs, ParameterAttrs
from xlalite.hlo.records import dataclass
from xlalite.hlo.spelling.literal_text import format_literal
from xlalite.hlo.text.instruction_printer import own_attributes

KINDS = {
    "parameter": "parameters",
    "constant": "constants",
    "elementwise": "elementwise",
    "transcendental": "elementwise, costly",
    "movement": "moves data",
    "reduction": "reductions, sorts",
    "product": "products, factors",
    "random": "random",
    "fusion": "fusions",
    "control": "loops, branches",
    "collective": "between devices",
    "opaque": "custom calls, host",
    "name": "tuples, bitcasts",
    "other": "others",
    "region": "folded instructions",
    "port": "from outside",
}
"""The colours of nodes: CSS class and what it stands for."""

_LINE = 34
_SHOWN_ELEMENTS = 4


@dataclass(slots=True, eq=False)
class Node:
    """Something with a name in a picture.

    Attributes:
        name: The instruction; for a port, the value that comes in.
        computation: Where it stands.
        opcode: Its operation; empty for what is no instruction.
        kind: One of `KINDS`.
        lines: What is written in it.
        value: What it hands on, as text beside its edges: a shape.
        hint: What a mouse that rests on it is told.
        size_bytes: Bytes of its value.
        is_root: Whether its value is the result.
        is_cut: Whether some of its operands or users are not drawn.
        insides: What lies in it.
        scopes: The names of the scopes that the program was written in around it, from the outermost to the inmost.
    """

    name: str
    computation: str
    opcode: str
    kind: str
    lines: tuple[str, ...]
    value: str = ""
    hint: str = ""
    size_bytes: int = 0
    is_root: bool = False
    is_cut: bool = False
    insides: tuple[Diagram, ...] = ()
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Edge:
    """A value, or an order, that leads from one node to another; nodes by their numbers in the diagram."""

    source: int
    target: int
    size_bytes: int = 0
    is_control: bool = False


@dataclass(slots=True, eq=False)
class Diagram:
    """A picture of one computation or a part of one; the nodes stand in an order in which no edge leads back.

    Attributes:
        title: What it shows.
        nodes: The nodes.
        edges: The edges between them.
    """

    title: str
    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)

    def all_nodes(self) -> Iterator[Node]:
        """The nodes here and inside them, outer ones first."""
        for node in self.nodes:
            yield node
            for inside in node.insides:
                yield from inside.all_nodes()


def diagram_of(
    computation: HloComputation,
    shown: Collection[HloInstruction] | None = None,
    fold: Callable[[Diagram], Diagram] = lambda diagram: diagram,
) -> Diagram:
    """The diagram of a computation with what it calls; a computation with several callers is drawn at the first.

    Args:
        computation: What to draw.
        shown: Only these instructions of it; None for all.
        fold: Makes each diagram, the inner ones first, as small as it is to be.
    """
    return _Drawing(fold).diagram(computation, computation.name, shown)


class _Drawing:
    def __init__(self, fold: Callable[[Diagram], Diagram]) -> None:
        self._fold = fold
        self._drawn: dict[HloComputation, str] = {}

    def diagram(
        self, computation: HloComputation, title: str, shown: Collection[HloInstruction] | None = None
    ) -> Diagram:
        made = Diagram(title)
        chosen = None if shown is None else frozenset(shown)
        numbers: dict[HloInstruction, int] = {}
        for one in computation.post_order():
            if (chosen is not None and one not in chosen) or (_is_written_at_users(one) and not one.is_root):
                continue
            node = self._node(one)
            if chosen is not None:
                around = (*one.operands, *one.users)
                node.is_cut = any(near not in chosen and not _is_written_at_users(near) for near in around)
            numbers[one] = len(made.nodes)
            made.nodes.append(node)
        for one, number in numbers.items():
            for before in dict.fromkeys(one.operands):
                if before in numbers:
                    made.edges.append(Edge(numbers[before], number, before.shape.size_bytes))
            for before in one.control_predecessors:
                if before in numbers and before not in one.operands:
                    made.edges.append(Edge(numbers[before], number, is_control=True))
        return self._fold(made)

    def _node(self, one: HloInstruction) -> Node:
        assert one.parent is not None, "post_order gives what belongs to a computation"
        lines = [one.name]
        call = _call(one)
        if call:
            lines.append(call)
        insides, said = self._insides(one)
        attributes = [*own_attributes(one, after_calls=False), *own_attributes(one, after_calls=True), *said]
        if one.op.attrs not in (ConstantAttrs, ParameterAttrs) and attributes:
            lines += _filled(attributes)
        value = one.shape.text()
        return Node(
            one.name,
            one.parent.name,
            one.opcode,
            kind_of(one),
            tuple(shortened(line) for line in lines),
            shortened(value),
            _hint(one, lines, value),
            one.shape.size_bytes,
            one.is_root,
            insides=insides,
            scopes=tuple(one.metadata.op_name.split("/")[:-1]),
        )

    def _insides(self, one: HloInstruction) -> tuple[tuple[Diagram, ...], list[str]]:
        """Diagrams of what an instruction calls, and words on what needs or has none."""
        insides: list[Diagram] = []
        said: list[str] = []
        for role, called in zip(_roles(one), one.called_computations, strict=True):
            monoid = recognise_monoid(called) if one.op.calls.applies_to_elements else None
            if monoid is not None:
                said.append(f"{role}={monoid.kind.value}")
            elif called in self._drawn:
                said.append(f"{role}={called.name}, drawn in {self._drawn[called]}")
            else:
                self._drawn[called] = one.name
                insides.append(self.diagram(called, f"{role}: {called.name}" if len(_roles(one)) > 1 else called.name))
        return tuple(insides), said


def kind_of(one: HloInstruction) -> str:
    """Which of `KINDS` an instruction is."""
    op = one.op
    if op.attrs is ParameterAttrs:
        return "parameter"
    if op.attrs is ConstantAttrs:
        return "constant"
    if op.name == "fusion":
        return "fusion"
    tests = (
        ("control", op.has(Trait.CONTROL_FLOW)),
        ("collective", op.has(Trait.COLLECTIVE)),
        ("opaque", op.has(Trait.OPAQUE) or op.has(Trait.SIDE_EFFECT)),
        ("random", op.has(Trait.NON_DETERMINISTIC)),
        ("reduction", op.calls.applies_to_elements),
        ("name", op.memory is not Memory.WRITES),
        ("movement", op.has(Trait.DATA_MOVEMENT)),
        ("transcendental", op.has(Trait.TRANSCENDENTAL)),
        ("elementwise", op.is_elementwise),
        ("product", op.flops is not None),
    )
    return next((kind for kind, holds in tests if holds), "other")


def shortened(text: str, limit: int = _LINE) -> str:
    """The text, its middle left out if it is long."""
    if len(text) <= limit:
        return text
    half = (limit - 1) // 2
    return f"{text[: limit - 1 - half]}…{text[len(text) - half :]}"


def size_text(size_bytes: float) -> str:
    """A number of bytes for people."""
    for unit in ("B", "KiB", "MiB"):
        if size_bytes < 1024:
            return f"{size_bytes:.0f} {unit}" if unit == "B" or size_bytes >= 100 else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1024
    return f"{size_bytes:.1f} GiB"


def _is_written_at_users(one: HloInstruction) -> bool:
    return one.op.attrs is ConstantAttrs and one.shape.is_array and one.shape.rank == 0 and not one.is_controlled


def _call(one: HloInstruction) -> str:
    """The operation with the operands that are written in it; empty where the name says it all."""
    if one.op.attrs is ParameterAttrs:
        return f"parameter({one.attrs.number})"
    if one.op.attrs is ConstantAttrs:
        shape = one.shape
        small = shape.is_array and shape.element_count <= _SHOWN_ELEMENTS
        return format_literal(one.attrs.literal) if small else ""
    words = [format_literal(o.attrs.literal) if _is_written_at_users(o) else "·" for o in one.operands]
    if any(word != "·" for word in words):
        return f"{one.opcode}({', '.join(words)})"
    return "" if one.name.startswith(one.opcode) else one.opcode


def _filled(parts: list[str]) -> Iterator[str]:
    """The parts, as many on a line as it takes."""
    line = ""
    for part in parts:
        if line and len(line) + len(part) + 2 > _LINE:
            yield f"{line},"
            line = part
        else:
            line = f"{line}, {part}" if line else part
    yield line


def _roles(one: HloInstruction) -> tuple[str, ...]:
    calls, count = one.op.calls, len(one.called_computations)
    if calls.names and len(calls.names) == count:
        return calls.names
    return tuple(f"branch {number}" for number in range(count)) if count > 1 else ("calls",) * count


def _hint(one: HloInstruction, lines: list[str], value: str) -> str:
    parts = [f"{value}, {size_text(one.shape.size_bytes)}", *lines]
    metadata = one.metadata
    parts += [metadata.op_name] if metadata.op_name else []
    parts += [f"{metadata.source_file}:{metadata.source_line}"] if metadata.source_file else []
    return "\n".join(parts)
