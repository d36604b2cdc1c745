"""Loops over the columns of a row that carry accumulators.

Several accumulator sets hide the latency of the combining operation; which element goes to which set and lane depends
on the number of columns only, so results are the same for every thread count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xlalite.backends.codegen.arrays.index import Affine, Lanes, Position, sum_of
from xlalite.backends.codegen.arrays.ir_array import lanes_below
from xlalite.backends.codegen.llvm import I64, FunctionBuilder, Operand, Value, vector, vector_constant
from xlalite.hlo.records import dataclass

Registers = tuple[Value, ...]
SweepBody = Callable[[tuple[Position, ...], "Value | None", Registers], Registers]
"""(column index, mask, accumulators) -> the accumulators after the elements at the index."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """How columns are walked: neighbours in neighbouring lanes.

    Attributes:
        dims: Sizes of the column dimensions, all but the last walked one by one.
        lanes: Lanes of a vector along the last dimension.
        sets: Accumulator sets.
        start: Where the last dimension begins; what lies before is in the accumulators already.
        stop: Where whole blocks end of which the others are not needed, behind the first one; None if all are.
        rotates: Whether a turn of the loop has one vector, for the first set, which is the last one in the next turn:
            less code, where elements are expensive, for the same sums.
    """

    dims: tuple[int, ...]
    lanes: int
    sets: int
    start: int = 0
    stop: Value | None = None
    rotates: bool = False

    def run(self, fb: FunctionBuilder, initial: Sequence[Registers], body: SweepBody) -> list[Registers]:
        """Emits the loops; `initial` has one tuple of accumulators a set, and so has the result."""
        return self._outer(fb, (), [tuple(registers) for registers in initial], body)

    def _outer(
        self, fb: FunctionBuilder, index: tuple[Position, ...], carried: list[Registers], body: SweepBody
    ) -> list[Registers]:
        level = len(index)
        if level == len(self.dims) - 1:
            return self._inner(fb, index, carried, body)
        return carried_sets(
            fb, range(self.dims[level]), carried, lambda at, sets: self._outer(fb, (*index, Affine(at)), sets, body)
        )

    def _inner(
        self, fb: FunctionBuilder, index: tuple[Position, ...], carried: list[Registers], body: SweepBody
    ) -> list[Registers]:
        size, stride = self.dims[-1], 1 if self.lanes > 1 else 0
        block = self.sets * self.lanes
        at = self.start + (size - self.start) // block * block
        if at > self.start:
            carried = self._blocks(fb, index, carried, body, at)
        number = 0
        while at + self.lanes <= size:
            carried[number] = body((*index, Affine(at, stride)), None, carried[number])
            at += self.lanes
            number += 1
        if at < size:
            mask = lanes_below(fb, at, size, self.lanes)
            carried[0] = body((*index, Affine(at, stride)), mask, carried[0])
        return carried

    def _blocks(
        self, fb: FunctionBuilder, index: tuple[Position, ...], carried: list[Registers], body: SweepBody, end: int
    ) -> list[Registers]:
        stride = 1 if self.lanes > 1 else 0
        block = self.sets * self.lanes
        if end == self.start + block:
            return [
                body((*index, Affine(self.start + number * self.lanes, stride)), None, registers)
                for number, registers in enumerate(carried)
            ]

        def take(at: Value, sets: Sequence[Registers]) -> list[Registers]:
            inside = []
            for number, registers in enumerate(sets):
                ahead = number * self.lanes
                bounds = (self.start + ahead, end - block + ahead + self.lanes - 1)
                position = Affine(sum_of(at, ahead), stride, bounds, block)
                inside.append(body((*index, position), None, registers))
            return inside

        def rotate(at: Value, sets: Sequence[Registers]) -> list[Registers]:
            first, *others = sets
            position = Affine(at, stride, (self.start, end - 1), self.lanes)
            return [*others, body((*index, position), None, first)]

        stop = end if self.stop is None else fb.smin(self.stop, end)
        step, turn = (self.lanes, rotate) if self.rotates else (block, take)
        return carried_sets(fb, range(self.start, end, step), carried, turn, stop)


@dataclass(frozen=True, slots=True)
class SweepInOrder:
    """How columns of one dimension are walked when their order matters: a run of neighbours for each lane.

    The first lane has the first runs, one for each set, the next lane those that follow. The first runs may be one
    column longer than the others.

    Attributes:
        size: Number of columns, at least one for each lane of each set.
        lanes: Lanes of a vector.
        sets: Accumulator sets.
    """

    size: int
    lanes: int
    sets: int

    @property
    def length(self) -> int:
        """Columns that each run has."""
        return self.size // (self.lanes * self.sets)

    @property
    def longer(self) -> int:
        """How many runs have one more."""
        return self.size % (self.lanes * self.sets)

    def position(self, number: int, at: Value | int, fb: FunctionBuilder) -> Position:
        """The columns that the lanes of a set have at a place in their runs."""
        runs = range(number, self.lanes * self.sets, self.sets)
        starts = [run * self.length + min(run, self.longer) for run in runs]
        step = self.sets * self.length
        if starts == [starts[0] + lane * step for lane in range(self.lanes)]:
            return Affine(sum_of(at, starts[0]), step)
        base = fb.constant(I64, at) if isinstance(at, int) else at
        return Lanes(fb.add(fb.splat(base, self.lanes), vector_constant(vector(I64, self.lanes), starts)))

    def run(self, fb: FunctionBuilder, initial: Sequence[Registers], body: SweepBody) -> list[Registers]:
        """Emits the loop; `initial`, one tuple of accumulators a set, holds the first element of each run."""
        carried = [tuple(registers) for registers in initial]

        def take(at: Value | int, sets: Sequence[Registers]) -> list[Registers]:
            return [body((self.position(n, at, fb),), None, registers) for n, registers in enumerate(sets)]

        if self.length > 1:
            carried = carried_sets(fb, range(1, self.length), carried, take)
        for number in range(self.sets):
            having_more = -(-(self.longer - number) // self.sets)
            if having_more > 0:
                mask = lanes_below(fb, 0, having_more, self.lanes)
                carried[number] = body((self.position(number, self.length, fb),), mask, carried[number])
        return carried


def carried_sets(
    fb: FunctionBuilder,
    bounds: range,
    carried: Sequence[Registers],
    body: Callable[[Value, list[Registers]], Sequence[Registers]],
    stop: Operand | None = None,
) -> list[Registers]:
    """A loop over a range that carries sets of as many accumulators each; `body` gives those after a turn.

    It may stop earlier, but not before the first turn.
    """
    end = bounds.stop if stop is None else stop
    with fb.carried_loop(bounds.start, end, bounds.step, _join(carried), nonempty=len(bounds) > 0) as loop:
        loop.yield_(*_join(body(loop.index, _split(loop.values, len(carried)))))
    return _split(loop.results, len(carried))


def _join(carried: Sequence[Registers]) -> Registers:
    return tuple(register for registers in carried for register in registers)


def _split(registers: Registers, sets: int) -> list[Registers]:
    width = len(registers) // sets
    return [registers[number * width : (number + 1) * width] for number in range(sets)]
