"""Buffer assignment as text, in the manner of XLA's dumps."""

from __future__ import annotations

from collections.abc import Mapping

from xlalite.hlo.ir.module import HloModule
from xlalite.passes.analysis.buffer_groups import BufferGroup, BufferGroups
from xlalite.passes.memory.buffers import Allocation, AllocationKind, BufferSlice


def buffer_report(
    module: HloModule,
    allocations: tuple[Allocation, ...],
    groups: BufferGroups,
    place: Mapping[BufferGroup, BufferSlice],
) -> str:
    """Every allocation with its values, then totals and how far the arena is from the least that could do."""
    lines = [f"BufferAssignment: module {module.name}"]
    inside: dict[int, list[tuple[int, int, BufferGroup]]] = {allocation.number: [] for allocation in allocations}
    for group, slot in place.items():
        inside[slot.allocation.number].append((slot.offset, group.start, group))
    for allocation in allocations:
        leaf = f" {allocation.leaf}" if allocation.kind in (AllocationKind.PARAMETER, AllocationKind.OUTPUT) else ""
        lines.append(f"allocation {allocation.number}: size {allocation.size_bytes}, {allocation.kind.value}{leaf}:")
        for offset, _, group in sorted(inside[allocation.number], key=lambda item: item[:2]):
            for value in group.values:
                index = "".join(f"{{{i}}}" for i in value.position[1])
                shape = value.instruction.shape.subshape(value.position[1]).text()
                lines.append(
                    f"  value: %{value.instruction.name}{index} (size={value.size_bytes}, offset={offset}): {shape}, "
                    f"live {value.start // 2} to {value.end() // 2 - 1}"
                )
    lines.append("")
    for kind in AllocationKind:
        total = sum(a.size_bytes for a in allocations if a.kind is kind)
        lines.append(f"Total {kind.value} bytes: {total}")
    lines.append(f"Total bytes: {sum(a.size_bytes for a in allocations)}")
    arena = sum(a.size_bytes for a in allocations if a.kind is AllocationKind.ARENA)
    least = _least_arena(groups, place)
    waste = 0.0 if not arena else 100.0 * (arena - least) / arena
    lines.append(f"Arena: {arena} bytes, at most {least} in use at once, {waste:.1f}% lost to fragmentation")
    return "\n".join(lines) + "\n"


def _least_arena(groups: BufferGroups, place: Mapping[BufferGroup, BufferSlice]) -> int:
    """The most bytes in use at once: no arena can be smaller."""
    events: list[tuple[int, int]] = []
    for group in groups.all():
        if place[group].allocation.kind is AllocationKind.ARENA:
            events += [(group.start, group.size_bytes), (group.end, -group.size_bytes)]
    used = most = 0
    for _, change in sorted(events):
        used += change
        most = max(most, used)
    return most
