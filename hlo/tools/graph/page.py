"""A picture of a program as one page for a browser: search, details, boxes that open, light and dark. No network."""

from __future__ import annotations

import json
from collections.abc import Collection
from html import escape
from pathlib import Path

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ir.traversal import callees, reachable
from xlalite.hlo.text import print_instruction
from xlalite.hlo.tools.graph.diagram import KINDS, kind_of
from xlalite.hlo.tools.graph.svg import graph_script, graph_style, graph_svg
from xlalite.hlo.wording import counted

_TEXT = 2000


def graph_page(
    subject: HloModule | HloComputation, shown: Collection[HloInstruction] | None = None, selected: str = ""
) -> str:
    """A page with the picture of a computation, or of a module's entry.

    Args:
        subject: What to draw.
        shown: Only these instructions of the computation; None for all.
        selected: An instruction of the computation to begin with.
    """
    computation = subject.entry_computation if isinstance(subject, HloModule) else subject
    outer = [one for one in computation.instructions if shown is None or one in shown]
    called = reachable([callee for one in outer for callee in one.called_computations], callees)
    contents = {computation.name: outer} | {one.name: list(one.instructions) for one in called}
    details = {
        name: {one.name: [print_instruction(one)[:_TEXT], [o.name for o in one.operands]] for one in instructions}
        for name, instructions in contents.items()
    }
    kinds = {kind_of(one) for instructions in contents.values() for one in instructions}
    count = sum(map(len, contents.values()))
    return _DOCUMENT.format(
        title=escape(computation.name if computation.module is None else computation.module.name),
        summary=f"{count:,} instructions in {counted(len(contents), 'computation')}",
        style=graph_style() + _asset("page.css"),
        legend="".join(f'<li><i class="{kind}"></i>{words}</li>' for kind, words in KINDS.items() if kind in kinds),
        svg=graph_svg(computation, shown, foldable=True, style=False),
        details=_json(details),
        start=_json({"computation": computation.name, "name": selected}),
        script=graph_script() + _asset("page.js"),
    )


def _json(value: object) -> str:
    """Data in a script: no text in it ends the script."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def _asset(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


_DOCUMENT = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>{title}</title>
<style>
{style}</style>
</head>
<body class="hlo-graph-page">
<header>
<h1>{title}</h1><span class="faint">{summary}</span>
<input id="search" type="search" placeholder="find an instruction   ( / )" aria-label="find" autocomplete="off">
<span id="count" class="faint" role="status"></span>
<span class="buttons"><button id="open">open all</button><button id="close">close all</button><button
 id="out" aria-label="smaller">&minus;</button><button id="whole">fit</button><button
 id="in" aria-label="larger">+</button></span>
</header>
<main>
<div id="view" tabindex="0">{svg}</div>
<aside>
<section id="details"><p class="faint">Click an instruction to see what it reads and who reads it; click a box to open
it. Broad edges carry many bytes, dashed ones only an order.</p></section>
<ul id="legend">{legend}</ul>
</aside>
</main>
<script>
const DETAILS = {details}, START = {start};
{script}</script>
</body>
</html>
"""
