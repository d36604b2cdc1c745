"""What a pass changed, as lines of HTML: moved lines told from new ones, and the words that changed marked."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
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


def without_metadata(text: str) -> str:
    """HLO text that does not say where instructions come from."""
    return _METADATA.sub("", text)


def difference(old: Sequence[str], new: Sequence[str]) -> Difference:
    """The difference of two texts, in lines."""
    lines = list(difflib.unified_diff(old, new, "before", "after", lineterm=""))[2:]
    removed, added = (Counter(line[1:] for line in lines if line[0] == sign) for sign in "-+")
    moved = removed & added
    count = moved.total()
    shown = tuple(_html(lines, moved))
    return Difference(shown, added.total() - count, removed.total() - count, count)


def _html(lines: Sequence[str], moved: Counter[str]) -> Iterator[str]:
    position = 0
    while position < len(lines):
        end = position
        while end < len(lines) and lines[end][0] in "+-":
            end += 1
        if end == position:
            line = escape(lines[position])
            yield f'<span class="hunk">{line}</span>\n' if line[0] == "@" else f"{line}\n"
            position += 1
            continue
        yield from _changes(lines[position:end], moved)
        position = end


def _changes(lines: Sequence[str], moved: Counter[str]) -> Iterator[str]:
    """Lines that are gone and lines that are new, next to each other; those that define the same name are compared."""
    partners: dict[tuple[str, str], str] = {}
    for line in lines:
        found = _DEFINED.match(line)
        if found and line[1:] not in moved:
            partners[line[0], found[1]] = line
    for line in lines:
        if line[1:] in moved:
            yield f'<span class="moved">{escape(line)}</span>\n'
            continue
        found = _DEFINED.match(line)
        other = partners.get(("-" if line[0] == "+" else "+", found[1])) if found else None
        words = escape(line) if other is None else line[0] + _marked(line[1:], other[1:])
        yield f'<span class="{"add" if line[0] == "+" else "del"}">{words}</span>\n'


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
