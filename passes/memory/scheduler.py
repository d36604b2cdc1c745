"""Puts the instructions of every computation into the order in which they run, for low peak memory.

List scheduling: among the instructions that are ready, the one that frees most bytes net of what it allocates runs
next; ties go to the earlier one in post order. Readers of an array run before an instruction that can overwrite it in
place, where dependencies allow; what a loop's state becomes can overwrite what it was. What sends runs before what may
wait, lest devices wait for each other.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ir.traversal import dependencies, reachable
from xlalite.hlo.ops.rules.transfer_order import senders_and_waiters
from xlalite.hlo.records import dataclass
from xlalite.passes.analysis.in_place import overwritable_operands, reusable_operands
from xlalite.passes.core.base import HloPass


@dataclass(frozen=True)
class Scheduler(HloPass):
    """Schedules the module and marks it as scheduled.

    Requires nothing; leaves `is_scheduled` true. Declines for a module that is scheduled already.
    """

    name: ClassVar[str] = "scheduler"

    def run(self, module: HloModule) -> bool:
        """Orders each computation."""
        if module.config.is_scheduled:
            return False
        for computation in module.computations():
            computation.set_order(schedule(computation))
        module.update_config(is_scheduled=True)
        return True


def schedule(computation: HloComputation) -> list[HloInstruction]:
    """An order of the computation's instructions that respects all dependencies."""
    post_order = computation.post_order()
    rank = {instruction: number for number, instruction in enumerate(post_order)}
    successors = _successors(post_order, computation.root)
    waiting = dict.fromkeys(post_order, 0)
    for followers in successors.values():
        for follower in followers:
            waiting[follower] += 1
    uses_left = {instruction: instruction.user_count for instruction in post_order}
    sizes = {instruction: _bytes(instruction) for instruction in post_order}
    reads = {instruction: tuple(dict.fromkeys(instruction.operands)) for instruction in post_order}
    # Priorities of waiting instructions change as others run; stale heap entries are recognised by their priority.
    ready: list[tuple[int, int, HloInstruction]] = []

    def priority(instruction: HloInstruction) -> int:
        return sizes[instruction] - sum([sizes[operand] for operand in reads[instruction] if uses_left[operand] == 1])

    def push(instruction: HloInstruction) -> None:
        heapq.heappush(ready, (priority(instruction), rank[instruction], instruction))

    for instruction in post_order:
        if not waiting[instruction]:
            push(instruction)
    order: list[HloInstruction] = []
    done: set[HloInstruction] = set()
    while ready:
        cost, number, instruction = heapq.heappop(ready)
        if instruction in done:
            continue
        current = priority(instruction)
        if current < cost:
            heapq.heappush(ready, (current, number, instruction))
            continue
        done.add(instruction)
        order.append(instruction)
        for operand in reads[instruction]:
            uses_left[operand] -= 1
            if uses_left[operand] == 1:
                for user in operand.users:
                    if user not in done and not waiting[user]:
                        push(user)
        for follower in successors[instruction]:
            waiting[follower] -= 1
            if not waiting[follower]:
                push(follower)
    return order


def _successors(
    post_order: Sequence[HloInstruction], root: HloInstruction
) -> Mapping[HloInstruction, Mapping[HloInstruction, None]]:
    """What must, or had better, run after each instruction."""
    order = _RunningOrder(post_order)
    senders, waiters = senders_and_waiters(post_order)
    for sender in senders:
        for waiter in waiters:
            if waiter is not sender:
                order.put_before(sender, waiter)
    updates = [(one, one.operand(number)) for one in post_order for number in overwritable_operands(one)]
    for instruction, overwritten in (*updates, *_updates_of_state(root)):
        for reader in overwritten.users:
            if reader is not instruction:
                order.put_before(reader, instruction)
    return order.successors


def _updates_of_state(root: HloInstruction) -> Iterator[tuple[HloInstruction, HloInstruction]]:
    """What gives the next state of a loop, if `root` is one, and what of the old state it can be written over."""
    computation = root.parent
    assert computation is not None, "an instruction that is scheduled belongs to a computation"
    parameters = computation.parameters
    if root.opcode != "tuple" or len(parameters) != 1 or parameters[0].shape != root.shape:
        return
    old = {user: user.attrs.index for user in parameters[0].users if user.opcode == "get-tuple-element"}
    for index, result in enumerate(root.operands):
        update = result.operand(0) if result.opcode == "get-tuple-element" else result
        for number, _ in reusable_operands(update):
            if old.get(update.operand(number)) == index:
                yield update, update.operand(number)


class _RunningOrder:
    """An order that respects what runs before what, kept up to date while more is demanded.

    The algorithm is that of Pearce and Kelly (2006): only what lies between two instructions is looked at and moved.
    """

    def __init__(self, post_order: Sequence[HloInstruction]) -> None:
        self.successors: dict[HloInstruction, dict[HloInstruction, None]] = {
            instruction: dict.fromkeys((*instruction.users, *instruction.control_successors))
            for instruction in post_order
        }
        self._rank = {instruction: number for number, instruction in enumerate(post_order)}
        self._put_before: dict[HloInstruction, list[HloInstruction]] = {}

    def put_before(self, first: HloInstruction, then: HloInstruction) -> None:
        """Demands an order of two instructions, unless the other is demanded already."""
        rank = self._rank
        lowest, highest = rank[then], rank[first]
        if lowest < highest:
            behind = list(reachable([then], lambda one: (n for n in self.successors[one] if rank[n] <= highest)))
            if first in behind:
                return
            before = list(reachable([first], lambda one: (n for n in self._predecessors(one) if rank[n] > lowest)))
            moved = [*sorted(before, key=rank.__getitem__), *sorted(behind, key=rank.__getitem__)]
            rank.update(zip(moved, sorted(rank[one] for one in moved), strict=True))
        self.successors[first][then] = None
        self._put_before.setdefault(then, []).append(first)

    def _predecessors(self, instruction: HloInstruction) -> Iterable[HloInstruction]:
        return (*dependencies(instruction), *self._put_before.get(instruction, ()))


def _bytes(instruction: HloInstruction) -> int:
    return instruction.shape.size_bytes if instruction.op.computes else 0
