"""Programs as notebooks show them: a picture, then the text, the entry open and first, operations in their colours."""

from __future__ import annotations

import re
from html import escape

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ir.traversal import callees, reachable
from xlalite.hlo.text import print_computation
from xlalite.hlo.tools.graph.diagram import kind_of
from xlalite.hlo.tools.graph.svg import graph_style, graph_svg
from xlalite.hlo.wording import counted

_MOST_LINES = 1000
_MOST_DRAWN = 400
_OPCODE = re.compile(r"(?<=[\]})] )([a-z][a-z0-9-]*)(?=\()")
_STYLE = """
.hlo-notebook pre { white-space: pre; overflow-x: auto; line-height: 1.4; margin: 0.3em 0; }
.hlo-notebook pre b { padding: 0 3px; border-radius: 3px; font-weight: 600; color: var(--g-text); }
.hlo-notebook summary { cursor: pointer; font-weight: 600; }
.hlo-notebook .picture { overflow: auto; max-height: 32em; }
"""


def notebook_html(subject: HloModule | HloComputation) -> str:
    """A module, or a computation with what it calls, as HTML that stands by itself and needs no script."""
    if isinstance(subject, HloModule):
        entry, others = subject.entry_computation, subject.computations()[:-1]
        title = f"HloModule {subject.name}"
    else:
        entry, title = subject, f"computation {subject.name}"
        others = tuple(one for one in reachable([subject], callees) if one is not subject)
    count = sum(map(len, (entry, *others)))
    parts = [
        f'<div class="hlo-graph-page hlo-notebook"><style>{graph_style()}{_STYLE}{_colours()}</style>',
        f"<p><b>{escape(title)}</b>: {counted(count, 'instruction')} in {counted(1 + len(others), 'computation')}</p>",
        f"<details{' open' if count <= _MOST_DRAWN else ''}><summary>graph</summary>"
        f'<div class="picture">{graph_svg(entry, style=False)}</div></details>',
        _text(entry, is_open=True),
        *(_text(one, is_open=False) for one in reversed(others)),
        "</div>",
    ]
    return "\n".join(parts)


def _text(computation: HloComputation, *, is_open: bool) -> str:
    """The text of a computation, cut after 1000 lines."""
    kinds = {one.opcode: kind_of(one) for one in computation.instructions}

    def coloured(match: re.Match[str]) -> str:
        kind = kinds.get(match[1])
        return f'<b class="{kind}">{match[1]}</b>' if kind else match[1]

    lines = print_computation(computation).rstrip().splitlines()
    shown = [_OPCODE.sub(coloured, escape(line), count=1) for line in lines[:_MOST_LINES]]
    if len(lines) > _MOST_LINES:
        shown.append(f"... {len(lines) - _MOST_LINES} more lines")
    word = "ENTRY " if computation.is_entry else ""
    summary = f"<summary>{word}{escape(computation.name)}, {counted(len(computation), 'instruction')}</summary>"
    return f"<details{' open' if is_open else ''}>{summary}<pre>{chr(10).join(shown)}</pre></details>"


def _colours() -> str:
    kinds = re.findall(r"\.hlo-graph \.(\w+) > rect \{ fill: var", graph_style())
    return "".join(f".hlo-notebook b.{kind} {{ background: var(--g-{kind}); }}\n" for kind in kinds)
