"""What a pass changed, as lines of HTML: moved lines told from new ones, and the words that changed marked.

Metadata is not compared. It stands in elements of the class `meta`, for the page to hide.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from xlalite.hlo.records import dataclass

_METADATA = re.compile(r', metadata=\{(?:[^{}"]|"(?:[^"\\]|\\.)*"|\{[^{}]*\})*\}')
_WORDS = re.compile(r"[\w.%-]+|.")
_DEFINED = re.compile(r"[ +-]*(?:ROOT )?(%?[\w.-]+) ")
_LONGEST_LINE = 2000


@dataclass(frozen=True, slots=True)
class Difference:
    """Two texts side by side.

    Attributes:
        lines: The difference, a `<span>` for each line that is new (`add`), gone (`del`), or elsewhere (`moved`).
        added: How many lines are new.
        removed: How many are gone.
        moved: How many are the same and stand elsewhere.
    """

    lines: tuple[str, ...]
    added: int
    removed: int
    moved: int


def difference(old: Sequence[str], new: Sequence[str]) -> Difference:
    """The difference of two texts, in lines."""
    before, after = _bare(old), _bare(new)
    lines = list(difflib.unified_diff([*before[0]], [*after[0]], "before", "after", lineterm=""))[2:]
    removed, added = (Counter(line[1:] for line in lines if line[0] == sign) for sign in "-+")
    moved = removed & added
    count = moved.total()
    shown = tuple(_html(lines, moved, {"-": before[1], "+": after[1], " ": after[1]}))
    return Difference(shown, added.total() - count, removed.total() - count, count)


def _bare(lines: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The lines without metadata, and what is left out of each; of lines that are then the same, of the first."""
    bare: list[str] = []
    metadata: dict[str, str] = {}
    for line in lines:
        found = _METADATA.search(line)
        bare.append(line if found is None else line[: found.start()] + line[found.end() :])
        if found is not None:
            metadata.setdefault(bare[-1], f'<span class="meta">{escape(found[0])}</span>')
    return bare, metadata


def _html(lines: Sequence[str], moved: Counter[str], metadata: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    position = 0
    while position < len(lines):
        end = position
        while end < len(lines) and lines[end][0] in "+-":
            end += 1
        for line, kind, words in _changes(lines[position:end], moved):
            yield f'<span class="{kind}">{words}{metadata[line[0]].get(line[1:], "")}</span>\n'
        if end < len(lines):
            line = lines[end]
            kind, tail = ("hunk", "") if line[0] == "@" else ("same", metadata[" "].get(line[1:], ""))
            yield f'<span class="{kind}">{escape(line)}{tail}</span>\n'
        position = end + 1


def _changes(lines: Sequence[str], moved: Counter[str]) -> Iterator[tuple[str, str, str]]:
    """Lines that are gone or new, what they are, and their words; marked where another line defines the same name."""
    partners: dict[tuple[str, str], str] = {}
    for line in lines:
        found = _DEFINED.match(line)
        if found and line[1:] not in moved:
            partners[line[0], found[1]] = line
    for line in lines:
        if line[1:] in moved:
            yield line, "moved", escape(line)
            continue
        found = _DEFINED.match(line)
        other = partners.get(("-" if line[0] == "+" else "+", found[1])) if found else None
        words = escape(line) if other is None else line[0] + _marked(line[1:], other[1:])
        yield line, "add" if line[0] == "+" else "del", words


def _marked(line: str, other: str) -> str:
    """A line in which the words that another lacks are marked."""
    if max(len(line), len(other)) > _LONGEST_LINE:
        return escape(line)
    words, others = _WORDS.findall(line), _WORDS.findall(other)
    parts = []
    for kind, first, last, _, _ in difflib.SequenceMatcher(None, words, others, autojunk=False).get_opcodes():
        text = escape("".join(words[first:last]))
        parts.append(text if kind == "equal" or not text else f"<b>{text}</b>")
    return "".join(parts)
