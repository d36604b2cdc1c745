"""Modules as HTML for notebooks: computations that fold, operands that link to where they are made; no scripts."""

from __future__ import annotations

import re
from html import escape

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.text.instruction_printer import InstructionPrinter
from xlalite.hlo.text.print_options import DEFAULT
from xlalite.hlo.text.printer import print_computation

_STYLE = (
    "<style>"
    ".xlalite-hlo{font-family:monospace;font-size:12px;line-height:1.5}"
    ".xlalite-hlo summary{cursor:pointer}"
    ".xlalite-hlo ol{margin:0 0 6px 1em;padding-left:2em}"
    ".xlalite-hlo a{color:inherit;text-decoration:none;border-bottom:1px dotted}"
    ".xlalite-hlo li:target{background:#fe9}"
    ".xlalite-hlo .shape{color:#777}"
    "</style>"
)
_MARK = re.compile(r"\0(\d+)\0")
# Notebooks become slow with more.
_MOST_LINES = 1000


def render_html(subject: HloModule | HloComputation) -> str:
    """A piece of HTML that stands by itself; everything from the program is escaped.

    The entry is open, other computations are folded. Long computations are cut after 1000 instructions.
    """
    match subject:
        case HloModule():
            computations, entry = subject.computations(), subject.entry_computation
            heading = f"HloModule {escape(subject.name)}: {len(computations)} computations"
        case HloComputation():
            computations, entry = (subject,), subject
            heading = ""
    # Two outputs of one notebook share a page: the object's own number keeps their anchors apart.
    anchors = _Anchors(f"hlo{id(subject):x}", frozenset(computations))
    bodies = "".join(_render(computation, anchors, is_open=computation is entry) for computation in computations)
    title = f"<div>{heading}</div>" if heading else ""
    return f'{_STYLE}<div class="xlalite-hlo">{title}{bodies}</div>'


class _Anchors:
    """Names of places in the page."""

    __slots__ = ("_names", "_prefix", "_shown")

    def __init__(self, prefix: str, shown: frozenset[HloComputation]) -> None:
        self._prefix = prefix
        self._shown = shown
        self._names: dict[HloInstruction | HloComputation, str] = {}

    def of(self, subject: HloInstruction | HloComputation) -> str:
        """The place of an instruction or computation."""
        return self._names.setdefault(subject, f"{self._prefix}-{len(self._names)}")

    def link(self, subject: HloInstruction | HloComputation) -> str:
        """A link to it, with its name; the name alone for a computation that is not on the page."""
        if isinstance(subject, HloComputation) and subject not in self._shown:
            return f"%{escape(subject.name)}"
        return f'<a href="#{self.of(subject)}">%{escape(subject.name)}</a>'


def _render(computation: HloComputation, anchors: _Anchors, *, is_open: bool) -> str:
    instructions = computation.post_order()
    printer = InstructionPrinter(DEFAULT, lambda one, depth: print_computation(one))
    lines = [_line(one, printer, anchors) for one in instructions[:_MOST_LINES]]
    if len(instructions) > _MOST_LINES:
        lines.append(f"<li>... {len(instructions) - _MOST_LINES} more</li>")
    parameters = ", ".join(parameter.shape.text() for parameter in computation.parameters)
    marker = "ENTRY " if computation.is_entry else ""
    return (
        f'<details id="{anchors.of(computation)}"{" open" if is_open else ""}>'
        f"<summary>{marker}%{escape(computation.name)} "
        f'<span class="shape">({escape(parameters)}) -&gt; {escape(computation.root.shape.text())}, '
        f"{len(instructions)} instructions</span></summary>"
        f"<ol>{''.join(lines)}</ol></details>"
    )


def _line(instruction: HloInstruction, printer: InstructionPrinter, anchors: _Anchors) -> str:
    """The printer's line, in which the names of operands and control predecessors are links."""
    named = [instruction, *instruction.operands, *instruction.control_predecessors]
    # NUL cannot stand in a printed line, so the marks survive the escaping and nothing else looks like them.
    marks = {one: f"\0{number}\0" for number, one in reversed(list(enumerate(named)))}
    text = escape(printer.line(instruction, marks, 0, is_root=instruction.is_root))
    text = _MARK.sub(lambda mark: anchors.link(named[int(mark[1])]) if mark[1] != "0" else _own_name(instruction), text)
    called = "".join(f" {anchors.link(one)}" for one in instruction.called_computations)
    return f'<li id="{anchors.of(instruction)}">{text}{called}</li>'


def _own_name(instruction: HloInstruction) -> str:
    return f"<b>%{escape(instruction.name)}</b>"
