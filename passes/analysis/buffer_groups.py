"""Groups of values that share one piece of memory, and the test whether two groups may become one.

Two groups may share memory when no value of one is written while a value of the other still matters.
"""

from __future__ import annotations

import bisect
import itertools
import operator
from collections.abc import Sequence
from dataclasses import field

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.records import dataclass
from xlalite.passes.analysis.buffer_values import BufferValue, BufferValues

_START = operator.attrgetter("start")


@dataclass(eq=False, slots=True)
class BufferGroup:
    """Values in one piece of memory.

    Attributes:
        values: The values, by the time at which they are written.
        size_bytes: Size of the largest value.
        parameter: Number of the entry parameter's leaf whose memory it is.
        output: Number of the entry result's leaf whose memory it is.
        is_constant: Whether it is a constant's memory.
        is_writable: Whether something other than the program's caller may write to it.
    """

    values: list[BufferValue]
    size_bytes: int
    parameter: int | None = None
    output: int | None = None
    is_constant: bool = False
    is_writable: bool = True

    # How long the first values matter: the latest end of values[: i + 1].
    _ends: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self._ends = list(itertools.accumulate((value.end() for value in self.values), max))

    @property
    def start(self) -> int:
        """When the first value is written."""
        return self.values[0].start

    @property
    def end(self) -> int:
        """One past the last time at which a value matters."""
        return self._ends[-1]

    def alive(self, start: int, end: int) -> Sequence[BufferValue]:
        """The values among which those are that matter at some time from `start` to before `end`."""
        first = bisect.bisect_right(self._ends, start)
        return self.values[first : bisect.bisect_left(self.values, end, lo=first, key=_START)]

    def take(self, others: Sequence[BufferValue]) -> None:
        """Takes in more values; quick when they are few or late."""
        changed = len(self.values)
        for value in others:
            at = bisect.bisect_right(self.values, value.start, key=_START)
            self.values.insert(at, value)
            changed = min(changed, at)
        del self._ends[changed:]
        latest = self._ends[-1] if self._ends else -1
        self._ends += itertools.accumulate((max(latest, value.end()) for value in self.values[changed:]), max)
        self.size_bytes = max(self.size_bytes, *(value.size_bytes for value in others))


class BufferGroups:
    """The groups of a module, merged as far as the program demands (loop state) and as callers ask."""

    def __init__(self, values: BufferValues) -> None:
        """Puts each value into a group of its own, then the values of each loop-carried leaf together."""
        self.values = values
        self._group: dict[BufferValue, BufferGroup] = {}
        for value in values.values:
            self._group[value] = _new_group(value, values.module)
        self._number_parameters()

    def of(self, value: BufferValue) -> BufferGroup:
        """The group of a value."""
        return self._group[value]

    def all(self) -> tuple[BufferGroup, ...]:
        """All groups, in order of their first value."""
        return tuple(dict.fromkeys(self._group[value] for value in self.values.values))

    def conflict(
        self, a: BufferGroup, b: BufferGroup, *, handed_over: HloInstruction | None = None
    ) -> BufferValue | None:
        """A value that keeps the groups apart; None when they may share memory.

        Args:
            a: The group whose contents are handed over.
            b: The group that takes over.
            handed_over: The instruction that reads from `a` and writes to `b` in place; its reads of `a` end before it
                writes.
        """
        if a is b:
            return None
        if a.end <= b.start or b.end <= a.start:
            return None
        if len(a.values) <= len(b.values):
            pairs = ((first, second) for first in a.values for second in b.alive(first.start, first.end()))
        else:
            pairs = ((first, second) for second in b.values for first in a.alive(second.start, second.end()))
        for first, second in pairs:
            if first.start < second.end() and second.start < first.end(handed_over):
                return first
        return None

    def fixed_conflict(self, a: BufferGroup, b: BufferGroup) -> str | None:
        """Why memory from outside keeps the groups apart; None when it does not."""
        if a is b:
            return None
        if not (a.is_writable and b.is_writable):
            return "constant" if a.is_constant or b.is_constant else "memory of an input that is not donated"
        if a.output is not None and b.output is not None:
            return "memory of two outputs"
        if a.parameter is not None and b.parameter is not None:
            return "memory of two inputs"
        return None

    def merge(self, a: BufferGroup, b: BufferGroup) -> BufferGroup:
        """Makes two groups one."""
        if a is b:
            return a
        if len(a.values) < len(b.values):
            a, b = b, a
        a.take(b.values)
        a.parameter = a.parameter if a.parameter is not None else b.parameter
        a.output = a.output if a.output is not None else b.output
        a.is_writable = a.is_writable and b.is_writable
        a.is_constant = a.is_constant or b.is_constant
        for value in b.values:
            self._group[value] = a
        return a

    def _number_parameters(self) -> None:
        number = 0
        donated = {(d[0], d[1]) for d in self.values.module.config.buffer_donors}
        donated |= {(a.parameter_number, a.parameter_index) for a in self.values.module.config.input_output_alias}
        for position, parameter in enumerate(self.values.module.entry_computation.parameters):
            for index, leaf in parameter.shape.leaves():
                if leaf.is_array:
                    group = self.of(self.values.of(parameter, index))
                    group.parameter = number
                    group.is_writable = (position, index) in donated
                    number += 1


def _new_group(value: BufferValue, module: HloModule) -> BufferGroup:
    constant = value.instruction.opcode == "constant"
    return BufferGroup([value], value.size_bytes, is_constant=constant, is_writable=not constant)
