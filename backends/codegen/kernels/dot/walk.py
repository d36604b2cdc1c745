"""How one dimension of a matrix lies in memory where several dimensions of an array make it up."""

from __future__ import annotations

import math
from collections.abc import Iterable

from xlalite.backends.codegen.kernels.scalars import Scalar, Scalars
from xlalite.hlo.records import dataclass

_ANY = 1 << 62
"""A size or a stride that only an argument says."""


@dataclass(frozen=True, slots=True)
class Walk:
    """Positions counted through some dimensions of an array, the last one fastest.

    Attributes:
        steps: Sizes and strides of as few dimensions as will do, outermost first.
    """

    steps: tuple[tuple[int, int], ...]

    @classmethod
    def through(cls, dimensions: Iterable[tuple[int, int]]) -> Walk:
        """Through (size, stride) of some dimensions in order; what one stride walks through becomes one."""
        steps: list[tuple[int, int]] = []
        for size, stride in dimensions:
            if size == 1:
                continue
            if steps and steps[-1][1] == size * stride:
                steps[-1] = steps[-1][0] * size, stride
            else:
                steps.append((size, stride))
        return cls(tuple(steps) or ((1, 0),))

    @classmethod
    def pair(cls, dimensions: Iterable[tuple[int, int, int]]) -> tuple[Walk, Walk]:
        """Two walks through the same positions, (size, stride, stride), which have runs in common."""
        steps: list[tuple[int, int, int]] = []
        for size, one, other in dimensions:
            if size == 1:
                continue
            if steps and steps[-1][1:] == (size * one, size * other):
                steps[-1] = steps[-1][0] * size, one, other
            else:
                steps.append((size, one, other))
        steps = steps or [(1, 0, 0)]
        return cls(tuple((size, one) for size, one, _ in steps)), cls(tuple((size, other) for size, _, other in steps))

    @property
    def run(self) -> int:
        """Positions that one stride walks through."""
        return self.steps[-1][0]

    @property
    def stride(self) -> int:
        """Distance of neighbours in a run; 0 if there is one element."""
        return self.steps[-1][1]

    @property
    def count(self) -> int:
        """Positions in all."""
        return math.prod(size for size, _ in self.steps)

    @property
    def is_single(self) -> bool:
        """Whether one stride walks through all."""
        return len(self.steps) == 1

    @property
    def is_contiguous(self) -> bool:
        """Whether neighbours in a run touch."""
        return self.stride in (0, 1)

    @property
    def is_backwards(self) -> bool:
        """Whether some dimension is walked through from its end."""
        return any(stride < 0 for _, stride in self.steps)

    @property
    def general(self) -> Walk:
        """What code for any size and stride is made from, if one stride walks through all; neighbours may touch."""
        return Walk(((_ANY, 1 if self.is_contiguous else _ANY),)) if self.is_single else self

    @property
    def general_in_runs(self) -> Walk:
        """The same if two strides do, or three."""
        if len(self.steps) not in (2, 3):
            return self.general
        return Walk((*((_ANY, _ANY) for _ in self.steps[1:]), *Walk(self.steps[-1:]).general.steps))

    @property
    def is_general(self) -> bool:
        """Whether sizes and strides are those of arguments."""
        return self.run == _ANY

    @property
    def span(self) -> int:
        """Elements of memory from the first one to the last."""
        return 1 + sum((size - 1) * abs(stride) for size, stride in self.steps)

    @property
    def is_forward(self) -> bool:
        """Whether every position lies behind all before it, or where its neighbour does."""
        inner = (Walk(self.steps[number + 1 :]).span for number in range(len(self.steps) - 1))
        return self.stride >= 0 and all(stride >= span for (_, stride), span in zip(self.steps, inner, strict=False))

    @property
    def bridged(self) -> Walk | None:
        """Through all elements of memory between the first one and the last; None if it does not only go forward."""
        return Walk(((self.span, 1),)) if self.is_contiguous and self.is_forward else None

    def in_runs(self, run: int) -> Walk:
        """The same positions in runs of so many, by which those of each run can be divided."""
        return Walk((*self.steps[:-1], (self.run // run, run * self.stride), (run, self.stride)))

    def is_even(self, step: int) -> bool:
        """Whether every `step` positions lie in one run, or are whole runs equally far apart."""
        if self.is_single or self.run % step == 0:
            return True
        return step % self.run == 0 and (len(self.steps) == 2 or self.steps[-2][0] % (step // self.run) == 0)

    @property
    def jump(self) -> int:
        """Distance from where a run ends to where the next one begins."""
        return 0 if self.is_single else self.steps[-2][1] - self.run * self.stride

    def place(self, math: Scalars, position: Scalar) -> Scalar:
        """Where a position lies, in elements from the first one."""
        place = math.multiply(position, self.stride)
        # One division for each step: a remainder would be another one where LLVM improves nothing.
        for (_, outer), (size, stride) in zip(self.steps[-2::-1], self.steps[:0:-1], strict=True):
            position = math.divide(position, size)
            place = math.add(place, math.multiply(position, outer - size * stride))
        return place

    def count_before(self, math: Scalars, place: Scalar) -> Scalar:
        """How many positions lie before a place; neighbours in a run touch, and it only goes forward."""
        (size, stride), inner = self.steps[0], Walk(self.steps[1:])
        if not inner.steps:
            return math.least(place, size)
        whole = math.least(math.divide(place, stride), size)
        count = inner.count_before(math, math.subtract(place, math.multiply(whole, stride)))
        total = size * inner.count
        return math.least(math.add(math.multiply(whole, inner.count), count), total)
