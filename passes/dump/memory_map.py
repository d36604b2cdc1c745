"""A picture of a buffer assignment: which bytes of the arena hold which value, and when."""

from __future__ import annotations

import re
from html import escape

from xlalite.hlo.records import dataclass

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 900, 260, 8, 18, 16
_ARENA = re.compile(r"^allocation \d+: size (\d+), arena:\n((?:  .*\n?)*)", re.MULTILINE)
_VALUE = re.compile(r"^  value: (\S+) \(size=(\d+), offset=(\d+)\): (.*), live (-?\d+) to (-?\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ArenaValue:
    """A value in the arena.

    Attributes:
        name: The value.
        shape: Its shape as text.
        offset: The first byte.
        size: How many bytes.
        first: The step that writes it.
        last: The last step that needs it.
    """

    name: str
    shape: str
    offset: int
    size: int
    first: int
    last: int


def arena_values(report: str) -> list[ArenaValue]:
    """What lies in the arena, by the report of a buffer assignment."""
    arena = _ARENA.search(report)
    found = _VALUE.findall(arena[2]) if arena else []
    return [ArenaValue(name, shape, int(at), int(size), int(a), int(b)) for name, size, at, shape, a, b in found]


def used_bytes(values: list[ArenaValue]) -> list[tuple[int, int]]:
    """For each step at which anything is alive: the step, and up to which byte the arena is in use."""
    steps = sorted({step for value in values for step in (value.first, value.last)})
    return [(step, max(v.offset + v.size for v in values if v.first <= step <= v.last)) for step in steps]


def arena_size(report: str) -> int:
    """The bytes of the arena, by the report."""
    arena = _ARENA.search(report)
    return int(arena[1]) if arena else 0


def memory_map(report: str) -> str:
    """An `<svg>` of the arena: steps to the right, addresses upwards, the peak marked; empty without an arena."""
    values = arena_values(report)
    if not values:
        return ""
    first, last = min(v.first for v in values), max(v.last for v in values)
    size = max(v.offset + v.size for v in values)
    step, top = max(used_bytes(values), key=lambda used: used[1])
    across, up = _WIDTH / (last - first + 1), _HEIGHT / size
    parts = []
    for number, value in enumerate(values):
        x, width = _LEFT + (value.first - first) * across, (value.last - value.first + 1) * across
        y, height = _TOP + _HEIGHT - (value.offset + value.size) * up, value.size * up
        hint = (
            f"{value.name} {value.shape}: {value.size:,} bytes at {value.offset:,}, steps {value.first} to {value.last}"
        )
        parts.append(
            f'<rect class="m{number % 6}" x="{x:.1f}" y="{y:.1f}" width="{max(width - 0.5, 0.5):.1f}" '
            f'height="{max(height - 0.5, 0.5):.1f}"><title>{escape(hint)}</title></rect>'
        )
    peak = f"peak {top:,} of {arena_size(report):,} bytes at step {step}"
    at = _LEFT + (step - first + 0.5) * across
    mark = _TOP + _HEIGHT - top * up
    return (
        f'<svg class="memory" viewBox="0 0 {_WIDTH + 2 * _LEFT} {_TOP + _HEIGHT + _BOTTOM}" role="img" '
        f'aria-label="memory map">{"".join(parts)}'
        f'<line x1="{_LEFT}" x2="{_LEFT + _WIDTH}" y1="{mark:.1f}" y2="{mark:.1f}"/>'
        f'<text x="{min(max(at, 90), _WIDTH - 90):.0f}" y="11">{peak}</text>'
        f'<text x="{_LEFT + _WIDTH / 2}" y="{_TOP + _HEIGHT + 13}">steps {first} to {last}</text></svg>'
    )
