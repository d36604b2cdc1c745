"""Loops over the columns of a row that carry accumulators.

Several accumulator sets hide the latency of the combining operation; which element goes to which set and lane depends
on the number of columns only, so results are the same for every thread count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xlalite.backends.cpu.index import Affine, Position
from xlalite.backends.cpu.ir_array import lanes_below
from xlalite.backends.cpu.llvm import FunctionBuilder, Value

Registers = tuple[Value, ...]
Step = Callable[[tuple[Position, ...], "Value | None", Registers], Registers]
"""(column index, mask, accumulators) -> the accumulators after the elements at the index."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """How columns are walked.

    Attributes:
        dims: Sizes of the column dimensions, all but the last walked one by one.
        lanes: Lanes of a vector along the last dimension.
        sets: Accumulator sets.
        start: First column of the last dimension; those before were taken care of.
    """

    dims: tuple[int, ...]
    lanes: int
    sets: int
    start: int = 0

    def run(self, fb: FunctionBuilder, initial: Sequence[Registers], step: Step) -> list[Registers]:
        """Emits the loops; `initial` has one tuple of accumulators a set, and so has the result."""
        return self._outer(fb, (), [tuple(registers) for registers in initial], step)

    def _outer(
        self, fb: FunctionBuilder, index: tuple[Position, ...], carried: list[Registers], step: Step
    ) -> list[Registers]:
        level = len(index)
        if level == len(self.dims) - 1:
            return self._inner(fb, index, carried, step)
        width = len(carried[0])
        with fb.carried_loop(0, self.dims[level], 1, _join(carried)) as loop:
            inside = self._outer(fb, (*index, Affine(loop.index)), _split(loop.values, width, self.sets), step)
            loop.yield_(*_join(inside))
        return _split(loop.results, width, self.sets)

    def _inner(
        self, fb: FunctionBuilder, index: tuple[Position, ...], carried: list[Registers], step: Step
    ) -> list[Registers]:
        size, stride = self.dims[-1], 1 if self.lanes > 1 else 0
        block = self.sets * self.lanes
        at = self.start
        blocks_end = at + (size - at) // block * block
        if blocks_end > at:
            carried = self._blocks(fb, index, carried, step, at, blocks_end)
            at = blocks_end
        number = 0
        while at + self.lanes <= size:
            carried[number] = step((*index, Affine(at, stride)), None, carried[number])
            at += self.lanes
            number += 1
        if at < size:
            mask = lanes_below(fb, at, size, self.lanes)
            carried[0] = step((*index, Affine(at, stride)), mask, carried[0])
        return carried

    def _blocks(
        self,
        fb: FunctionBuilder,
        index: tuple[Position, ...],
        carried: list[Registers],
        step: Step,
        start: int,
        end: int,
    ) -> list[Registers]:
        stride = 1 if self.lanes > 1 else 0
        width = len(carried[0])
        block = self.sets * self.lanes
        if end - start == block:
            return [
                step((*index, Affine(start + number * self.lanes, stride)), None, registers)
                for number, registers in enumerate(carried)
            ]
        with fb.carried_loop(start, end, block, _join(carried)) as loop:
            inside = []
            for number, registers in enumerate(_split(loop.values, width, self.sets)):
                position = fb.add(loop.index, number * self.lanes, "nsw") if number else loop.index
                inside.append(step((*index, Affine(position, stride)), None, registers))
            loop.yield_(*_join(inside))
        return _split(loop.results, width, self.sets)


def _join(carried: Sequence[Registers]) -> Registers:
    return tuple(register for registers in carried for register in registers)


def _split(registers: Registers, width: int, sets: int) -> list[Registers]:
    return [registers[number * width : (number + 1) * width] for number in range(sets)]
