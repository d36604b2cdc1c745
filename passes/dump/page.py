"""A directory of dumps as one HTML page that needs nothing else: no server, no network, and no script for the reading.

The page is a view of the records and of the text files; what is too large to show is a link to its file.
"""

from __future__ import annotations

import base64
import json
import math
import re
import zlib
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from urllib.parse import quote

from xlalite.hlo.errors import XlaliteError
from xlalite.hlo.records import dataclass
from xlalite.hlo.text import parse
from xlalite.hlo.tools.graph.svg import graph_script, graph_style, graph_svg
from xlalite.hlo.wording import counted
from xlalite.passes.core.pass_record import PassRecord
from xlalite.passes.dump.differences import difference
from xlalite.passes.dump.memory_map import memory_map
from xlalite.passes.dump.records import DECISIONS, DumpContents, ModuleEntry, ReportEntry, Status

_DRAWN = {
    "hlo-before-optimizations": "Picture before the passes",
    "hlo-backend": "Picture of what is compiled, kernels as boxes that open",
}
_BUFFERS = "buffer-assignment"
_STATUS_CLASS = {Status.COMPILED: "good", Status.FAILED: "bad", Status.UNFINISHED: "bad", Status.UNREAD: ""}


@dataclass(frozen=True, slots=True)
class PageLimits:
    """How much of a directory one page shows.

    Attributes:
        text_bytes: A longer text is shown up to here.
        diff_bytes: So is a longer difference.
        page_bytes: Once the page holds so much text, what follows is links.
        diff_lines: Longer modules are not compared: it would take minutes.
    """

    text_bytes: int = 1 << 20
    diff_bytes: int = 128 << 10
    page_bytes: int = 8 << 20
    diff_lines: int = 20_000


def render_page(
    contents: DumpContents,
    directory: Path,
    *,
    title: str = "",
    has_links: bool = True,
    limits: PageLimits | None = None,
) -> str:
    """The page about the dumps in a directory.

    Args:
        contents: What is in the directory.
        directory: Where the files are.
        title: What to call it; by default the name of the directory.
        has_links: Whether the page will lie beside the files and link to them.
        limits: How much is shown; None for the usual.
    """
    name = title or f"xlalite dump: {directory.resolve().name}"
    return _Page(directory, limits or PageLimits(), has_links=has_links).render(contents, name)


class _Page:
    """Writes one page; remembers how much text it holds."""

    def __init__(self, directory: Path, limits: PageLimits, *, has_links: bool) -> None:
        self._directory = directory
        self._limits = limits
        self._has_links = has_links
        self._room = limits.page_bytes

    def render(self, contents: DumpContents, name: str) -> str:
        body = [
            _header(contents, name, self._link("index.json", "index.json")),
            _TOOLS,
            _overview(contents.modules),
            *(self._report(report, contents.modules) for report in contents.reports),
            *(self._module(module) for module in contents.modules),
        ]
        style, script = graph_style() + _asset("page.css"), graph_script() + _asset("links.js") + _asset("page.js")
        return _DOCUMENT.format(style=style, script=script, body="\n".join(body), name=escape(name))

    def _report(self, report: ReportEntry, modules: tuple[ModuleEntry, ...]) -> str:
        words = set(re.findall(r"[\w.-]+", self._read(report.file)))
        links = ", ".join(
            f'<a class="mono" href="#{escape(module.prefix)}">{escape(module.name)}</a>'
            for module in modules
            if module.name in words
        )
        parts = [
            f'<section id="{escape(report.name)}"><h2>{escape(report.name)}</h2>',
            '<p class="faint">What a session ran, which operations became clusters, and why the others did not. '
            f"Each cluster is compiled as a module of its own{f': {links}' if links else ''}.</p>",
            self._text("Cluster report", report.file, is_open=True),
            self._decisions(report.decisions),
            "</section>",
        ]
        return "\n".join(part for part in parts if part)

    def _module(self, module: ModuleEntry) -> str:
        files = module.files
        # Texts first: a page that is too small for both does without pictures.
        texts = [self._text(name, file) for name, file in files.items() if name != DECISIONS]
        parts = [
            f'<section id="{escape(module.prefix)}">\n<h2>{escape(module.prefix)}</h2>',
            self._facts(module),
            f'<p class="bad">{escape(module.error)}</p>' if module.error else "",
            self._passes(module),
            self._decisions(files[DECISIONS]) if DECISIONS in files else "",
            *(self._picture(title, files[stage]) for stage, title in _DRAWN.items() if stage in files),
            self._memory(files[_BUFFERS]) if _BUFFERS in files else "",
            *texts,
            "</section>",
        ]
        return "\n".join(part for part in parts if part)

    def _passes(self, module: ModuleEntry) -> str:
        if not module.passes:
            return '<p class="faint">No pass ran.</p>'
        longest = max(entry.time_ms for entry in module.passes) or 1.0
        rows = "".join(self._pass_row(entry, longest, module) for entry in module.passes)
        head = _PASSES_HEAD.replace("<table>", '<table class="passes">')
        return f"{head}{rows}</table>{_diff_hint(module.passes)}"

    def _pass_row(self, entry: PassRecord, longest: float, module: ModuleEntry) -> str:
        before, after = entry.instructions
        words = f"{module.name} {entry.pipeline} {entry.name} {'changed' if entry.changed else 'unchanged'}"
        place = escape(f"{module.prefix}.{entry.number}")
        row = (
            f'<tr id="{place}" class="{"changed" if entry.changed else "same"}"'
            f' data-changed="{"yes" if entry.changed else "no"}" data-words="{escape(words)}">'
            f'<td class="n"><a href="#{place}">{entry.number}</a></td><td>{escape(entry.pipeline)}</td>'
            f"<td>{escape(entry.name)}</td><td>{'changed' if entry.changed else 'unchanged'}</td>"
            f'<td class="n time">{_ms(entry.time_ms)}<i style="--part:{_bar(entry.time_ms, longest):.2f}"></i></td>'
            f'<td class="n">{_ms(entry.verification_ms)}</td><td class="n">{_change(before, after)}</td>'
            f'<td class="n">{_change(*entry.computations)}</td></tr>\n'
        )
        return row + self._diff_row(entry)

    def _diff_row(self, entry: PassRecord) -> str:
        if entry.before is None or entry.after is None:
            return ""
        return f'<tr class="diff"><td colspan="8">{self._diff(entry.before, entry.after)}</td></tr>\n'

    def _diff(self, before: str, after: str) -> str:
        old, new = (self._read(file).splitlines() for file in (before, after))
        links = f"{self._link(before, 'before')} {self._link(after, 'after')}"
        if max(len(old), len(new)) > self._limits.diff_lines:
            return f"<details><summary>too long to compare: {links}</summary></details>"
        found = difference(old, new)
        moved = f", {found.moved} moved" if found.moved else ""
        summary = f'<span class="good">+{found.added}</span> <span class="bad">-{found.removed}</span> lines{moved}'
        shown = self._fit("".join(found.lines), self._limits.diff_bytes)
        return f"<details><summary>{summary} {links}</summary><pre>{shown}</pre></details>"

    def _decisions(self, file: str) -> str:
        decisions = json.loads(self._read(file) or "[]")
        if not decisions:
            return ""
        shown = decisions[: self._limits.text_bytes // 512]
        more = len(decisions) - len(shown)
        rest = f"<p>{more} more are in the file.</p>" if more else ""
        self._room -= 256 * len(shown)
        rows = "".join(map(_decision_row, shown))
        head = f"Decisions <span class='faint'>{len(decisions)}</span> {self._link(file, 'file')}"
        table = f'<div class="scroll">{_DECISIONS_HEAD}{rows}</table>{rest}</div>'
        return f"<details><summary>{head}</summary>{table}</details>"

    def _picture(self, title: str, file: str) -> str:
        """The program in a text file as a graph, if it can be read; one that finds no room is folded for good."""
        try:
            module = parse(self._read(file))
            drawn = _later(graph_svg(module, foldable=True, style=False))
        except XlaliteError:
            return ""
        hint = "Click an instruction to see what it is, who reads it, and what became of it."
        if len(drawn) > self._room:
            drawn = _later(graph_svg(module, style=False))
            hint = 'Too large to open here: "xlalite graph FILE -o graph.html" makes a page of it.'
        if len(drawn) > self._room:
            return f'<p class="faint">{title}: too large for a page; "xlalite graph" draws parts of it.</p>'
        self._room -= len(drawn)
        head = f'<summary>{title}</summary><p class="faint">{hint}</p>'
        return f'<details class="picture" data-of="{escape(file)}">{head}{drawn}</details>'

    def _memory(self, file: str) -> str:
        drawn = memory_map(self._read(file))
        head = "<summary>Memory map <span class='faint'>addresses over steps</span></summary>"
        return f"<details>{head}{_later(drawn)}</details>" if drawn else ""

    def _text(self, title: str, file: str, *, is_open: bool = False) -> str:
        text = self._read(file)
        if "\0" in text:
            return f"<p>{self._link(file, title)}</p>" if self._has_links else ""
        lines = text.count("\n")
        head = f"{escape(title)} <span class='faint'>{lines} lines</span> {self._link(file, 'file')}"
        opened = " open" if is_open else ""
        stage = f'data-file="{escape(file)}" data-stage="{escape(title)}"'
        shown = f"<pre {stage}>{escape(self._fit(text, self._limits.text_bytes))}</pre>"
        return f"<details{opened}><summary>{head}</summary>{shown}</details>"

    def _fit(self, text: str, limit: int) -> str:
        """As much of a text as may be shown; always whole lines."""
        room = min(limit, max(self._room, 0))
        if len(text) > room:
            text = text[: text.rfind("\n", 0, room) + 1] + "... the rest is in the file\n"
        self._room -= len(text)
        return text

    def _facts(self, module: ModuleEntry) -> str:
        facts = [f'<span class="{_STATUS_CLASS[module.status]}">{module.status.value}</span>']
        if module.started:
            facts += [
                f"<span>{escape(module.started)}</span>",
                f"<span>process {module.process}: {escape(module.command)}</span>",
            ]
        return f'<div class="facts">{"".join(facts)}</div>{_where_time_went(module)}'

    def _link(self, file: str, text: str) -> str:
        return f'<a href="{quote(file)}">{escape(text)}</a>' if self._has_links else ""

    def _read(self, name: str) -> str:
        """The text of a file; nothing when it has gone since."""
        path = self._directory / name
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _header(contents: DumpContents, name: str, index: str) -> str:
    total = sum(module.compile_ms for module in contents.modules)
    changed = sum(entry.changed for module in contents.modules for entry in module.passes)
    ran = sum(len(module.passes) for module in contents.modules)
    return (
        f"<header><h1>{escape(name)}</h1><span class='faint'>{counted(len(contents.modules), 'module')}, "
        f"{ran} pass runs of which {changed} changed something, {total:.1f} ms of compilation with dumps</span> "
        f"{index}</header>{_asset('about.html')}"
    )


def _where_time_went(module: ModuleEntry) -> str:
    """The time of a compilation in parts that add up: a bar, and the same in words."""
    if not module.started:
        return ""
    parts = _time_parts(module)
    total = module.compile_ms or 1.0
    bar = "".join(
        f'<i class="t{number % 8}" style="width:{100 * ms / total:.2f}%" title="{escape(name)} {ms:.1f} ms"></i>'
        for number, (name, ms) in enumerate(parts.items())
    )
    words = ", ".join(
        f'<i class="t{number % 8}"></i>{escape(name)} {ms:.1f}' for number, (name, ms) in enumerate(parts.items())
    )
    return f'<div class="phases"><div>{bar}</div><p>{module.compile_ms:.1f} ms: {words}</p></div>'


def _time_parts(module: ModuleEntry) -> dict[str, float]:
    """Milliseconds by what they were spent on; what is left of the total went to dumps and the like."""
    verifier = sum(entry.verification_ms for entry in module.passes) + module.phases.get("verification", 0.0)
    parts = {"verifier": verifier, "passes": sum(entry.time_ms for entry in module.passes)}
    parts |= {name: ms for name, ms in module.phases.items() if name not in ("verification", "passes", "dumps")}
    rest = "dumps" if module.phases else "all else"
    return parts | {rest: max(module.compile_ms - sum(parts.values()), 0.0)}


def _overview(modules: tuple[ModuleEntry, ...]) -> str:
    rows = "".join(map(_overview_row, modules))
    return f"{_OVERVIEW_HEAD}{rows}</table>" if modules else "<p>No module has been compiled.</p>"


def _overview_row(module: ModuleEntry) -> str:
    changed = sum(entry.changed for entry in module.passes)
    sizes = _change(module.passes[0].instructions[0], module.passes[-1].instructions[1]) if module.passes else ""
    passes = " ".join(dict.fromkeys(entry.name for entry in module.passes if entry.changed))
    words = f"{module.prefix} {module.status.value} {passes}"
    return (
        f'<tr data-words="{escape(words)}"><td class="mono"><a href="#{escape(module.prefix)}">'
        f"{escape(module.prefix)}</a></td>"
        f'<td class="{_STATUS_CLASS[module.status]}">{module.status.value}</td>'
        f'<td class="n">{module.compile_ms:.1f}</td><td class="n">{len(module.passes)}</td>'
        f'<td class="n">{changed}</td><td class="n">{sizes}</td></tr>\n'
    )


def _diff_hint(passes: tuple[PassRecord, ...]) -> str:
    if all(entry.after is not None for entry in passes if entry.changed):
        return ""
    return '<p class="faint">--xla_dump_hlo_pass_re=.* dumps the module around every pass, and shows what changed.</p>'


def _decision_row(decision: Mapping[str, object]) -> str:
    subject, numbers = decision["subject"], decision["numbers"]
    assert isinstance(subject, list), "Decision.as_dict writes a list"
    assert isinstance(numbers, dict), "Decision.as_dict writes a dictionary"
    cells = [
        str(decision["decided_by"]),
        " → ".join(map(str, subject)),
        str(decision["verdict"]),
        str(decision["reason"]),
        ", ".join(f"{name}={value}" for name, value in numbers.items()),
    ]
    words = escape(" ".join(cells))
    by, about, *rest = map(escape, cells)
    tail = "".join(f"<td>{cell}</td>" for cell in rest)
    return f'<tr class="decision" data-words="{words}"><td>{by}</td><td class="mono">{about}</td>{tail}</tr>\n'


def _later(drawn: str) -> str:
    """A picture, packed, since its words repeat; the script puts it in its place when it is looked at."""
    packed = base64.b64encode(zlib.compress(drawn.encode(), 9)).decode()
    return f'<div class="scroll"><script type="image/svg+xml;deflate">{packed}</script></div>'


def _ms(time_ms: float) -> str:
    return "&lt; 0.01" if 0 < time_ms < _SHORTEST_MS else f"{time_ms:.2f}"


def _bar(time_ms: float, longest_ms: float) -> float:
    """The part of a bar's room, on a logarithmic scale: most passes are a thousand times shorter than the longest."""
    return math.log1p(time_ms / _SHORTEST_MS) / math.log1p(longest_ms / _SHORTEST_MS)


def _change(before: int, after: int) -> str:
    return str(after) if before == after else f"{before} → {after}"


def _asset(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _table_head(columns: Mapping[str, bool]) -> str:
    """The start of a table; columns map to whether they hold numbers."""

    def cells() -> Iterator[str]:
        for column, is_number in columns.items():
            yield f'<th class="n">{column}</th>' if is_number else f"<th>{column}</th>"

    return f"<table><tr>{''.join(cells())}</tr>\n"


_SHORTEST_MS = 0.01
_OVERVIEW_HEAD = _table_head(
    {"module": False, "status": False, "ms": True, "passes": True, "changed": True, "instructions": True}
)
_PASSES_HEAD = _table_head(
    {
        "#": True,
        "pipeline": False,
        "pass": False,
        "": False,
        "ms": True,
        "verifier ms": True,
        "instructions": True,
        "computations": True,
    }
)
_DECISIONS_HEAD = _table_head({"by": False, "about": False, "verdict": False, "reason": False, "numbers": False})

_TOOLS = """\
<div class="tools" hidden>
<input type="search" placeholder="search everything   ( / )" aria-label="search">
<label><input type="checkbox" checked> changed only</label>
<label><input type="checkbox"> side by side</label>
<label><input type="checkbox"> metadata</label>
<a href="#" id="unfold" role="button">fold or unfold all diffs</a>
<span class="count faint" role="status"></span>
<ol id="hits" hidden></ol>
</div>
<aside id="about" hidden aria-label="the chosen instruction"></aside>"""

_DOCUMENT = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>{name}</title>
<style>
{style}</style>
</head>
<body>
{body}
<script>
{script}</script>
</body>
</html>
"""
