"""Few columns: lines of all of them fill vectors, one behind the other.

A vector holds some, if no line is cut; else as many vectors as there are columns hold as many lines as a vector has
lanes. Each lane accumulates for one column, from what changes nothing on; in the end the lanes of each column come
together. A vector along the columns would have most lanes empty, and wait for each sum before it begins the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from xlalite.backends.codegen.arrays.index import Affine, Base, Index, patterned, sum_of
from xlalite.backends.codegen.arrays.interleaving import Columns, filled_row
from xlalite.backends.codegen.arrays.types import Element
from xlalite.backends.codegen.elements.elements import ElementSource, always
from xlalite.backends.codegen.elements.registers import Registers, flatten
from xlalite.backends.codegen.kernels.accumulation import Accumulation, Accumulations
from xlalite.backends.codegen.kernels.accumulator_sweep import carried_sets
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry
from xlalite.backends.codegen.llvm import Value, lane_mask, vector, zero
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.records import dataclass
from xlalite.passes.fusion.domain import Domain, Place

_ACCUMULATORS = 8
"""Vectors of accumulators in flight."""

_LEAST_VECTORS = 4
"""Of the elements of all lines."""

_LEAST_LINES = 8
"""For each column that is sorted out of vectors: a thousand times ten lines of seven would take 9.7 us, not 2.7."""


def takes_lines(domain: Domain, accumulations: Accumulations, lanes: int) -> bool:
    """Whether lines that follow one another are summed, few enough columns wide, and many of them."""
    last = len(domain.dims) - 1
    if domain.columns[-1] != last - 1 or not accumulations.have_identities:
        return False
    lines, count = domain.dims[-2:]
    is_worth_it = lanes % count == 0 or lines >= _LEAST_LINES * count
    return 1 < count <= lanes // 2 and lines * count >= _LEAST_VECTORS * lanes and is_worth_it


@dataclass(frozen=True, slots=True)
class ColumnLines:
    """What sums the lines of a kernel.

    Attributes:
        entry: The kernel.
        domain: What it walks over.
        accumulations: The reductions.
        hoisted: What elements need once a column, and whether it is another for each.
        lanes: Lanes of a vector.
    """

    entry: KernelEntry
    domain: Domain
    accumulations: Accumulations
    hoisted: Mapping[HloInstruction, Place]
    lanes: int

    @property
    def count(self) -> int:
        """How many columns there are."""
        return self.domain.dims[-1]

    @property
    def vectors(self) -> int:
        """How many hold whole lines together."""
        return 1 if self.lanes % self.count == 0 else self.count

    @property
    def width(self) -> int:
        """Lanes of the results."""
        return filled_row(self.count)

    @property
    def mask(self) -> Value | None:
        """Those that are columns."""
        return None if self.width == self.count else lane_mask(self.width, self.count)

    def results(self, outer: Index) -> list[list[Element]]:
        """The results of each reduction, a lane for each column, at an index of the dimensions before."""
        wide = self.entry.emitter(self.lanes)
        starts = [list(map(wide.spread, one.identities)) for one in self.accumulations.each]
        initial = flatten(chain.from_iterable(starts))
        known = [self._known(outer, number) for number in range(self.vectors)]
        sets = max(1, _ACCUMULATORS // (self.vectors * len(initial)))
        carried = self._walked(outer, known, [initial] * (self.vectors * sets), ())
        columns = self.entry.emitter(self.width, self.mask)
        return [
            list(accumulation.results(columns, self._joined(accumulation, like, mine), like))
            for accumulation, like, mine in self.accumulations.parts(starts, carried)
        ]

    def _joined(self, accumulation: Accumulation, like: Sequence[Element], sets: Sequence[Registers]) -> Registers:
        """What all lanes have accumulated, a lane for each column."""
        fb, scalar = self.entry.fb, self.entry.emitter(1)
        line = [accumulation.join_sets(scalar, sets[number :: self.vectors], like) for number in range(self.vectors)]
        if self.vectors == 1:
            return accumulation.join_lines(scalar, line[0], like, self.count)
        parts = [Columns(fb, vectors) for vectors in zip(*line, strict=True)]
        sums = [
            accumulation.join(scalar, [tuple(part.column(number) for part in parts)], like, in_order=False)
            for number in range(self.count)
        ]
        joined = []
        for numbers in zip(*sums, strict=True):
            lanes = zero(vector(numbers[0].type, self.width))
            for column, number in enumerate(numbers):
                lanes = fb.insert(lanes, number, column)
            joined.append(lanes)
        return tuple(joined)

    def _known(self, outer: Index, number: int) -> dict[HloInstruction, ElementSource]:
        """What is needed once a column, for one vector of each line."""
        emitter = self.entry.emitter(self.lanes)
        index = (*outer, self._places(number, 0)[1])
        return {
            member: always(emitter.element(member, index if place is Place.ROW else ()))
            for member, place in self.hoisted.items()
        }

    def _places(self, number: int, line: Base) -> Index:
        """Line and column of each lane of one of the vectors that begin with a line."""
        places = range(number * self.lanes, (number + 1) * self.lanes)
        lines, columns = zip(*(divmod(place, self.count) for place in places), strict=True)
        return patterned(line, lines), patterned(0, columns)

    def _walked(
        self, outer: Index, known: Sequence[Mapping[HloInstruction, ElementSource]], carried: list[Registers], at: Index
    ) -> list[Registers]:
        """The accumulators after all dimensions that are reduced, those at an index of the first of them."""
        size, fb = self.domain.column_dims[len(at)], self.entry.fb
        if len(at) < len(self.domain.columns) - 1:
            return carried_sets(
                fb, range(size), carried, lambda one, sets: self._walked(outer, known, sets, (*at, Affine(one)))
            )

        def take(line: Base, sets: Sequence[Registers], lines: int) -> list[Registers]:
            after = []
            for place, registers in enumerate(sets):
                number, left = place % self.vectors, lines * self.count - place * self.lanes
                if left <= 0:
                    after.append(registers)
                    continue
                mask = None if left >= self.lanes else lane_mask(self.lanes, left)
                begin = place // self.vectors * (self.vectors * self.lanes // self.count)
                index = self._index(outer, at, self._places(number, sum_of(line, begin)))
                emitter = self.entry.emitter(self.lanes, mask, known[number])
                after.append(self.accumulations.take(emitter, registers, index, mask))
            return after

        step = len(carried) * self.lanes // self.count
        whole = size - size % step
        if whole:
            carried = carried_sets(fb, range(0, whole, step), carried, lambda one, sets: take(one, sets, step))
        return take(whole, carried, size - whole)

    def _index(self, outer: Index, reduced: Index, last: Index) -> Index:
        """The index in all dimensions."""
        line, column = last
        kept, taken = iter((*outer, column)), iter((*reduced, line))
        return tuple(next(taken) if d in self.domain.columns else next(kept) for d in range(len(self.domain.dims)))
