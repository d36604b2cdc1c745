"""Which kernels run before which, kept up to date while kernels grow.

A *step* is a kernel, or an instruction that is in none. Every step has a height above those of all steps that read what
it gives, so a path leads downwards only: whether one step leads to another is asked of the steps between their heights,
and mostly of none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.passes.fusion.group import KernelGroup

Step: TypeAlias = KernelGroup | HloInstruction


class KernelOrder:
    """Heights of the steps visited so far; users are visited before what they use."""

    def __init__(self, groups_of: Mapping[HloInstruction, Sequence[KernelGroup]]) -> None:
        """Reads from a table, kept by the owner, of the kernels that compute each instruction."""
        self._groups_of = groups_of
        self._heights: dict[Step, int] = {}

    def place(self, step: Step) -> None:
        """Gives a new step its height."""
        self._heights[step] = self._least_height(step)

    def height(self, step: Step) -> int:
        """More than those of all steps that read what it gives."""
        return self._heights[step]

    def leads_to(self, starts: Iterable[HloInstruction], goals: Collection[KernelGroup], limit: int) -> bool:
        """Whether what reads the starts, outside the goals, leads to a goal; also true when `limit` looks do not tell.

        The search goes down from the readers and up from the goals in turn, and ends when either has seen everything.

        Args:
            starts: Instructions that the goals give, or are to give.
            goals: Kernels that are to be one.
            limit: How often a step may be looked at.
        """
        heights = self._heights
        below: dict[Step, None] = {step: None for start in starts for step in self._readers(start) if step not in goals}
        above: dict[Step, None] = dict.fromkeys(goals)
        down, up = list(below), list(above)
        floor = min(map(heights.__getitem__, goals))
        ceiling = max(map(heights.__getitem__, below), default=floor)
        while down and up:
            step = down.pop()
            if heights[step] > floor:
                for follower in self._followers(step):
                    limit -= 1
                    if follower in above:
                        return True
                    if follower not in below:
                        below[follower] = None
                        down.append(follower)
            step = up.pop()
            if heights[step] < ceiling:
                for before in self._predecessors(step):
                    limit -= 1
                    if before in below:
                        return True
                    if before not in above:
                        above[before] = None
                        up.append(before)
            if limit <= 0:
                return True
        return False

    def add_output(self, group: KernelGroup, output: HloInstruction) -> None:
        """Lifts a kernel that gives one more array above what reads it, and what leads to the kernel above that."""
        least = 1 + max(map(self._heights.__getitem__, self._readers(output)), default=-1)
        if least > self._heights[group]:
            self._heights[group] = least
            self._lift_before(group)

    def merge(self, group: KernelGroup) -> None:
        """Lifts a kernel that has become several in one above what reads it, and what leads to it above that."""
        self._heights[group] = max(self._heights[group], self._least_height(group))
        self._lift_before(group)

    def _lift_before(self, group: KernelGroup) -> None:
        waiting: list[Step] = [group]
        while waiting:
            step = waiting.pop()
            least = self._heights[step] + 1
            for before in self._predecessors(step):
                if self._heights[before] < least:
                    self._heights[before] = least
                    waiting.append(before)

    def _least_height(self, step: Step) -> int:
        return 1 + max(map(self._heights.__getitem__, self._followers(step)), default=-1)

    def _followers(self, step: Step) -> Iterator[Step]:
        for output in step.outputs if isinstance(step, KernelGroup) else (step,):
            yield from self._readers(output)

    def _readers(self, output: HloInstruction) -> list[Step]:
        """The steps that need an instruction's array: not those that compute it for themselves."""
        groups_of, found = self._groups_of, list[Step]()
        for user in (*output.users, *output.control_successors):
            groups = groups_of.get(user)
            if groups is None:
                found.append(user)
            else:
                found += [group for group in groups if output not in group.places]
        return found

    def _predecessors(self, step: Step) -> list[Step]:
        """The steps visited so far that give what a step needs."""
        groups_of, found = self._groups_of, list[Step]()
        members: Collection[HloInstruction] = step.places if isinstance(step, KernelGroup) else (step,)
        inside: Collection[HloInstruction] = members if isinstance(step, KernelGroup) else ()
        for member in members:
            for operand in (*member.operands, *member.control_predecessors):
                if operand in inside:
                    continue
                groups = groups_of.get(operand)
                if groups is not None:
                    found += [group for group in groups if operand not in group.duplicates]
                elif operand in self._heights:
                    found.append(operand)
        return found
