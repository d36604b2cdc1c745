"""A picture of a buffer assignment: which bytes of the arena hold which value, and when."""

from __future__ import annotations

import heapq
import re
from collections import Counter
from html import escape
from itertools import accumulate

from xlalite.hlo.records import dataclass

_WIDTH, _HEIGHT = 900, 260
_DRAWN = 4000
_TRIED = 8
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
    """For each step at which anything begins or ends: the step, and up to which byte the arena is in use."""
    waiting = sorted(values, key=lambda value: -value.first)
    alive: list[tuple[int, int]] = []
    used = []
    for step in _steps(values):
        while waiting and waiting[-1].first <= step:
            value = waiting.pop()
            heapq.heappush(alive, (-(value.offset + value.size), value.last))
        while alive and alive[0][1] < step:
            heapq.heappop(alive)
        used.append((step, -alive[0][0] if alive else 0))
    return used


def alive_bytes(values: list[ArenaValue]) -> list[tuple[int, int]]:
    """For each step at which anything begins or ends: the step, and how many bytes are alive, shared addresses once."""
    changes: Counter[int] = Counter()
    free_from: dict[int, int] = {}
    for value in sorted(values, key=lambda value: (value.first, -value.size)):
        first = max(value.first, free_from.get(value.offset, value.first))
        if value.last >= first:
            changes[first] += value.size
            changes[value.last + 1] -= value.size
            free_from[value.offset] = value.last + 1
    steps = sorted(changes)
    return list(zip(steps, accumulate(changes[step] for step in steps), strict=True))


@dataclass(frozen=True, slots=True)
class Rematerialization:
    """What computing a value again where it is read, rather than keeping it, would save at the peak.

    Attributes:
        value: The value.
        peak_bytes: How many bytes would be alive at once, at most.
    """

    value: ArenaValue
    peak_bytes: int


def rematerializations(values: list[ArenaValue]) -> list[Rematerialization]:
    """The values that only wait while the most bytes are alive, the ones that save the most first; at most three."""
    sums = alive_bytes(values)
    step, peak = max(sums, key=lambda one: one[1], default=(0, 0))
    waiting = sorted((v for v in values if v.first < step < v.last), key=lambda v: -v.size)[:_TRIED]
    found = []
    for value in waiting:
        rest = max(size - value.size * (value.first < at < value.last) for at, size in sums)
        if rest < peak:
            found.append(Rematerialization(value, rest))
    return sorted(found, key=lambda one: one.peak_bytes)[:3]


def arena_size(report: str) -> int:
    """The bytes of the arena, by the report."""
    arena = _ARENA.search(report)
    return int(arena[1]) if arena else 0


def memory_map(report: str) -> str:
    """The arena as a `<figure>`: steps to the right, addresses upwards, the peak marked; empty without an arena."""
    values = arena_values(report)
    if not values:
        return ""
    first, last = min(v.first for v in values), max(v.last for v in values)
    size = max(v.offset + v.size for v in values)
    across, up = _WIDTH / (last - first + 1), _HEIGHT / size
    drawn = sorted(values, key=lambda v: -v.size * (v.last - v.first + 1))[:_DRAWN]
    parts = []
    for number, value in enumerate(drawn):
        x, width = (value.first - first) * across, (value.last - value.first + 1) * across
        y, height = _HEIGHT - (value.offset + value.size) * up, value.size * up
        hint = (
            f"{value.name} {value.shape}: {value.size:,} bytes at {value.offset:,}, steps {value.first} to {value.last}"
        )
        parts.append(
            f'<rect class="m{number % 6}" x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" '
            f'height="{max(height, 0.5):.1f}"><title>{escape(hint)}</title></rect>'
        )
    top = max(end for _, end in used_bytes(values))
    mark = _HEIGHT - top * up
    left_out = f"; the largest {_DRAWN:,} of {len(values):,} values are drawn" if len(values) > _DRAWN else ""
    return (
        f'<figure class="memory-map"><figcaption>{_peak(values, top, arena_size(report))}{left_out}.</figcaption>'
        f'<svg class="memory" viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="memory map">{"".join(parts)}<line x1="0" x2="{_WIDTH}" y1="{mark:.1f}" y2="{mark:.1f}"/></svg>'
        f'<p class="faint"><span>step {first}</span><output>Point at a value to see what it is.</output>'
        f"<span>step {last}</span></p>{_hints(values)}</figure>"
    )


def _peak(values: list[ArenaValue], top: int, arena: int) -> str:
    step, alive = max(alive_bytes(values), key=lambda one: one[1])
    gaps = f", {top - alive:,} of them in gaps between values" if top > alive else ""
    rounded = f", which is {arena:,} rounded up to whole cache lines" if arena > top else ""
    return f"Peak: {alive:,} bytes are alive at once, at step {step}. Values reach up to byte {top:,}{gaps}{rounded}"


def _hints(values: list[ArenaValue]) -> str:
    """What would be saved by values that are computed twice."""
    items = "".join(
        f"<li>{escape(one.value.name)} {escape(one.value.shape)}: {one.peak_bytes:,} bytes at once</li>"
        for one in rematerializations(values)
    )
    head = "What waits at the peak. If it were computed again where it is read, from operands that are there anyway:"
    return f'<div class="faint">{head}<ul>{items}</ul></div>' if items else ""


def _steps(values: list[ArenaValue]) -> list[int]:
    return sorted({step for value in values for step in (value.first, value.last)})
