"""Inserts the copies without which values that must share memory would overwrite each other.

It runs on a scheduled module: where a loop's initial state, the state that its body returns, a branch's result or an
output cannot lie where it must, a copy is scheduled just before it is needed. What remains can share memory as
required.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xlalite.hlo.building.create import create
from xlalite.hlo.building.replacement import remove_dead
from xlalite.hlo.errors import PassError
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ops.structural import GetTupleElementAttrs
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.shape import ShapeIndex
from xlalite.passes.analysis.required_sharing import Refusal, analyse, share_required
from xlalite.passes.core.base import HloPass

_MAX_ROUNDS = 8


@dataclass(frozen=True)
class CopyInsertion(HloPass):
    """Adds copies to a scheduled module, each with a record that says which value stood in the way.

    Requires a schedule and computations with one caller each; the schedule stays valid.
    """

    name: ClassVar[str] = "copy-insertion"

    def run(self, module: HloModule) -> bool:
        """Inserts what is needed.

        Raises:
            PassError: The module is not scheduled.
        """
        if not module.config.is_scheduled:
            raise PassError(f"{self.name}: module {module.name} is not scheduled, expected the scheduler to have run")
        changed = False
        # A copy reads what another output may have to overwrite, so one round can make another necessary.
        for _ in range(_MAX_ROUNDS):
            refusals: list[Refusal] = []
            share_required(analyse(module), refusals.append)
            if not refusals:
                break
            self._copy(module, refusals)
            changed = True
        return changed

    def _copy(self, module: HloModule, refusals: Sequence[Refusal]) -> None:
        by_holder: dict[tuple[HloInstruction, bool], list[Refusal]] = {}
        for refusal in refusals:
            by_holder.setdefault((refusal.holder, refusal.at_root), []).append(refusal)
            module.record(
                self.name,
                (refusal.value.instruction.name, refusal.holder.name),
                "copied",
                refusal.reason,
                {"bytes": refusal.value.size_bytes},
            )
        edits: dict[HloComputation, _Edit] = {}
        for (holder, at_root), group in by_holder.items():
            computation = holder.parent
            assert computation is not None, "instructions of a module belong to a computation"
            edit = edits.setdefault(computation, _Edit(computation))
            if at_root:
                _copy_at_root(holder, group, edit)
            else:
                _copy_before(holder, group, edit)
        for edit in edits.values():
            edit.set_order()


def _copy_before(loop: HloInstruction, refusals: Sequence[Refusal], edit: _Edit) -> None:
    """Gives a loop copies of some leaves of its initial state."""
    state = edit.with_copies(loop.operand(0), {refusal.index for refusal in refusals}, frozenset())
    loop.set_operands((state,))
    edit.place(before=loop)


def _copy_at_root(root: HloInstruction, refusals: Sequence[Refusal], edit: _Edit) -> None:
    """Makes a computation return copies of some leaves.

    Leaves of loop state are copied twice: first all of them to fresh memory, then to where they belong, so that no copy
    overwrites what another has yet to read.
    """
    staged = frozenset(refusal.index for refusal in refusals if refusal.is_loop_state)
    result = edit.with_copies(root, {refusal.index for refusal in refusals}, staged)
    edit.computation.set_root(result)
    edit.place(before=None)
    remove_dead(root)


class _Edit:
    """New instructions of one computation and their place in its schedule."""

    def __init__(self, computation: HloComputation) -> None:
        self.computation = computation
        self._placed: dict[HloInstruction | None, list[HloInstruction]] = {}
        self._reads: list[HloInstruction] = []
        self._first_copies: list[HloInstruction] = []
        self._copies: list[HloInstruction] = []
        self._tuples: list[HloInstruction] = []

    def with_copies(
        self, value: HloInstruction, copied: set[ShapeIndex], staged: frozenset[ShapeIndex], index: ShapeIndex = ()
    ) -> HloInstruction:
        """The value with the leaves at some indices replaced by copies."""
        if not value.shape.is_tuple:
            if index not in copied:
                return value
            if index in staged:
                value = self._new(self._first_copies, "copy", value)
            return self._new(self._copies, "copy", value)
        if not any(leaf[: len(index)] == index for leaf in copied):
            return value
        elements = []
        for number in range(len(value.shape.elements)):
            element = self._element(value, number)
            elements.append(self.with_copies(element, copied, staged, (*index, number)))
        made = self.computation.add(create("tuple", elements))
        self._tuples.append(made)
        return made

    def place(self, before: HloInstruction | None) -> None:
        """Schedules the instructions made since the last time before one, or at the end."""
        made = (self._reads, self._first_copies, self._copies, self._tuples)
        self._placed[before] = [instruction for kind in made for instruction in kind]
        for kind in made:
            kind.clear()

    def set_order(self) -> None:
        """Puts the new instructions that are still there where they were placed."""
        new = {instruction for instructions in self._placed.values() for instruction in instructions}
        order: list[HloInstruction] = []
        for instruction in self.computation.instructions:
            if instruction not in new:
                order += (*self._placed.get(instruction, ()), instruction)
        order += self._placed.get(None, ())
        self.computation.set_order([instruction for instruction in order if instruction.parent is self.computation])

    def _element(self, value: HloInstruction, number: int) -> HloInstruction:
        if value.opcode == "tuple":
            return value.operand(number)
        return self._new(self._reads, "get-tuple-element", value, GetTupleElementAttrs(number))

    def _new(
        self, where: list[HloInstruction], opcode: str, operand: HloInstruction, attrs: object = None
    ) -> HloInstruction:
        made = self.computation.add(
            create(opcode, (operand,), attrs, name=f"{opcode}.{operand.name}", metadata=operand.metadata)
        )
        where.append(made)
        return made
