"""The sums of lines of a plane that follow one another: each line of the input is read once for all that see it."""

from __future__ import annotations

from collections.abc import Mapping

from xlalite.backends.codegen.arrays.index import ZERO, Affine, Position
from xlalite.backends.codegen.arrays.types import Element, zero_element
from xlalite.backends.codegen.elements.dot import multiply_add
from xlalite.backends.codegen.elements.registers import flatten, unflatten
from xlalite.backends.codegen.kernels.convolution.tile import Tile, Totals
from xlalite.hlo.types.dtype import DType


class TileInOrder(Tile):
    """Emits the sums of all lines of a tile, some vectors of each.

    As many lines have sums as the window is high. A line of the input is added to all of them; then the first has seen
    its whole window, and the next one begins.
    """

    _seen: Position = ZERO

    def emit(self) -> None:
        """Line after line of the input, those in the padding, too."""
        fb, plan, math = self._entry.fb, self._plan, self._math
        dim, one = self._labels.output_spatial[plan.across], self._attrs.window.dimensions[plan.across]
        first, behind = self._index.get(dim, ZERO), one.size - 1
        zeros = (zero_element(self._kept, plan.lanes),) * self._count
        sums = zeros * one.size
        nothing = self._of_padding()
        count = self._entry.numbers.value(plan.lines + behind)
        with fb.carried_loop(0, count, 1, flatten(sums), nonempty=True) as loop:
            sums = unflatten(loop.values, sums)
            place = math.add(first, Affine(loop.index, 0, (0, plan.lines + behind - 1)))
            sums = self._with_line(math.add_constant(place, -one.pad_low), sums, nothing)
            with fb.if_(fb.icmp("uge", loop.index, behind)):
                place = math.add(first, Affine(loop.index, 0, (behind, plan.lines + behind - 1)))
                self._index[dim] = math.add_constant(place, -behind)
                self._finish(sums[: self._count])
            loop.yield_(*flatten(sums[self._count :] + zeros))

    def _with_line(self, place: Position, sums: Totals, nothing: Totals) -> Totals:
        """The sums with the products of a line of the input, or of what is before the first one or behind the last."""
        fb, size = self._entry.fb, self._lhs.shape.dims[self._labels.input_spatial[self._plan.across]]
        assert isinstance(place, Affine), "lines are the same for all lanes"
        bounds = self._math.bounds(place)
        self._seen = place
        if bounds is not None and bounds[0] >= 0 and bounds[1] < size:
            return self._products(sums)
        is_inside = fb.icmp("ult", self._math.scalar(place.base), self._entry.numbers.value(size))
        choice = fb.if_else(is_inside, likely=True)
        with choice.then():
            self._seen = Affine(place.base, 0, (0, size - 1))
            choice.yield_(*flatten(self._products(sums)))
        with choice.otherwise():
            pairs = zip(flatten(sums), flatten(nothing), strict=True) if nothing else ()
            choice.yield_(*([fb.fadd(total, more) for total, more in pairs] or flatten(sums)))
        return unflatten(choice.results, sums)

    def _products(self, sums: Totals) -> Totals:
        """The sums with the products of a line of the input, which the first ones see last."""
        plan, emitter = self._plan, self._emitter(0)
        rows, columns = (self._attrs.window.dimensions[number].size for number in (plan.across, plan.along))
        after, known = list(sums), dict[object, Element]()
        for column in range(columns):
            offsets = {plan.across: ZERO, plan.along: Affine(column)}
            weights = self._weights(Affine(column))
            for number in range(self._count):
                element = self._input(number, offsets, ZERO, known, is_padding=False)
                for row in range(rows):
                    place = (rows - 1 - row) * self._count + number
                    after[place] = multiply_add(emitter, self._kept, after[place], element, weights[row])
        return tuple(after)

    def _weights(self, column: Affine) -> list[Element]:
        """A column of the window."""
        plan = self._plan
        rows = range(self._attrs.window.dimensions[plan.across].size)
        return [self._weight({plan.across: Affine(row), plan.along: column}, ZERO, 0) for row in rows]

    def _of_padding(self) -> Totals:
        """What each of the lines that have sums gains of zeros: something where a weight is infinite."""
        plan = self._plan
        if self._kept.is_integral or self._kept is DType.PRED:
            return ()
        emitter, columns = self._emitter(0), self._attrs.window.dimensions[plan.along].size
        zero = zero_element(self._kept, plan.lanes)
        found: Totals = (zero,) * self._attrs.window.dimensions[plan.across].size
        with self._entry.fb.carried_loop(0, columns, 1, flatten(found), nonempty=True) as loop:
            weights = self._weights(Affine(loop.index, 0, (0, columns - 1)))
            pairs = zip(unflatten(loop.values, found), weights, strict=True)
            loop.yield_(*flatten(tuple(multiply_add(emitter, self._kept, one, zero, weight) for one, weight in pairs)))
        return tuple(one for one in reversed(unflatten(loop.results, found)) for _ in range(self._count))

    def _pixel(self, neighbour: int, offsets: Mapping[int, Affine]) -> dict[int, Position]:
        pixel = super()._pixel(neighbour, offsets)
        pixel[self._labels.input_spatial[self._plan.across]] = self._seen
        return pixel
