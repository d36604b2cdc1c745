"""Gives every array of a scheduled module its bytes.

Values that must share memory do (loop state, branch results, donated inputs); then results take over the memory of
operands that are read for the last time; what remains is packed into one arena.
"""

from __future__ import annotations

from collections.abc import Iterator

from xlalite.hlo.errors import PassError
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.types.literal import Literal
from xlalite.hlo.types.shape import ShapeIndex
from xlalite.passes.analysis.buffer_groups import BufferGroup, BufferGroups
from xlalite.passes.analysis.buffer_values import BufferValues
from xlalite.passes.analysis.in_place import reusable_operands
from xlalite.passes.analysis.required_sharing import Refusal, analyse, overwrites, share_required, try_share
from xlalite.passes.memory.arena_packing import Block, pack
from xlalite.passes.memory.buffers import (
    ALIGNMENT_BYTES,
    Allocation,
    AllocationKind,
    BufferAssignment,
    BufferSlice,
    Donation,
)


def assign_buffers(module: HloModule) -> BufferAssignment:
    """The memory of every array of a scheduled module with all copies inserted.

    Raises:
        PassError: Values that must share memory cannot: copy insertion has not run.
    """

    def refuse(refusal: Refusal) -> None:
        raise PassError(
            f"assigning buffers of {module.name}: %{refusal.value.instruction.name} must lie in the memory of "
            f"%{refusal.holder.name}, but {refusal.reason}; expected a copy"
        )

    groups = analyse(module)
    share_required(groups, refuse)
    _reuse_operands(groups)
    return _Assigner(module, groups).assign()


def _reuse_operands(groups: BufferGroups) -> None:
    """Lets results take over the memory of operands read for the last time."""
    values = groups.values
    for instruction in values.schedule.spans:
        leaves = [index for index, leaf in instruction.shape.leaves() if leaf.is_array]
        taken: set[int] = set()
        for number, results in overwrites(instruction, reusable_operands(instruction), groups):
            if len(taken) == len(leaves):
                break
            source = groups.of(values.of(instruction.operand(number)))
            for result in results:
                if result in taken:
                    continue
                target = groups.of(values.of(instruction, leaves[result]))
                if source is not target:
                    if source.parameter is not None or _is_needed_after(source, instruction, values):
                        break
                    if target.size_bytes != source.size_bytes:
                        continue
                    if try_share(groups, source, target, instruction) is not None:
                        continue
                taken.add(result)
                break  # Results are written at one time: no other can lie there.


def _is_needed_after(group: BufferGroup, reader: HloInstruction, values: BufferValues) -> bool:
    """Whether the memory holds something while an instruction writes that it does not hold for the instruction only."""
    written = 2 * values.schedule.spans[reader].end + 1
    return any(value.end(reader) > written for value in group.alive(written, written + 1))


class _Assigner:
    def __init__(self, module: HloModule, groups: BufferGroups) -> None:
        self._module = module
        self._groups = groups
        self._allocations: list[Allocation] = []
        self._place: dict[BufferGroup, BufferSlice] = {}

    def assign(self) -> BufferAssignment:
        groups = self._groups.all()
        for group in groups:
            if group.parameter is not None:
                self._own(group, AllocationKind.PARAMETER, group.parameter)
        for group in groups:
            if group.output is not None and group.parameter is None:
                self._own(group, AllocationKind.OUTPUT, group.output)
        for group in groups:
            if group.is_constant:
                self._own(group, AllocationKind.CONSTANT, 0)
        self._pack([group for group in groups if group not in self._place])
        donations = tuple(
            Donation(group.parameter, group.output)
            for group in groups
            if group.parameter is not None and group.output is not None
        )
        slices = dict(self._slices())
        allocations = tuple(self._allocations)

        def report() -> str:
            from xlalite.passes.memory.buffer_report import buffer_report

            return buffer_report(self._module, allocations, self._groups, self._place)

        return BufferAssignment(allocations, slices, donations, report)

    def _own(self, group: BufferGroup, kind: AllocationKind, leaf: int) -> None:
        literal = _literal_of(group) if kind is AllocationKind.CONSTANT else None
        allocation = Allocation(len(self._allocations), kind, group.size_bytes, leaf, literal)
        self._allocations.append(allocation)
        self._place[group] = BufferSlice(allocation, 0, group.size_bytes)

    def _pack(self, groups: list[BufferGroup]) -> None:
        blocks = [Block(group.size_bytes, group.start, group.end) for group in groups]
        offsets, total = pack(blocks, ALIGNMENT_BYTES)
        arena = Allocation(len(self._allocations), AllocationKind.ARENA, total)
        if groups:
            self._allocations.append(arena)
        for group, offset in zip(groups, offsets, strict=True):
            self._place[group] = BufferSlice(arena, offset, group.size_bytes)

    def _slices(self) -> Iterator[tuple[tuple[HloInstruction, ShapeIndex], BufferSlice]]:
        values = self._groups.values
        for position in values.positions():
            value = values.of(*position)
            place = self._place[self._groups.of(value)]
            yield position, BufferSlice(place.allocation, place.offset, value.size_bytes)


def _literal_of(group: BufferGroup) -> Literal:
    instruction, index = group.values[0].position
    literal: Literal = instruction.attrs.literal
    for number in index:
        literal = literal.elements[number]
    return literal
