"""Balancing of matrices: rows and columns are exchanged, then scaled by powers of two (Parlett and Reinsch, 1969).

Exchanges bring eigenvalues that stand alone to the ends of the diagonal. Scales make a row about as long as its column.
What is still graded then is sorted, which LAPACK does not: reflections that begin with long rows keep short ones apart.
"""

from __future__ import annotations

from xlalite.backends.codegen.arrays.index import Affine, IndexMath
from xlalite.backends.codegen.arrays.ir_array import ArrayView
from xlalite.backends.codegen.kernels.linear_algebra.numbers import is_equal, real_part, scaled, size_of
from xlalite.backends.codegen.kernels.linear_algebra.panel_matrix import PanelMatrix
from xlalite.backends.codegen.llvm import I1, I64, FunctionBuilder, Value
from xlalite.hlo.records import dataclass

_MOST_ROUNDS = 20
"""Of scaling; two or three are usual."""

_WORTHWHILE = 0.95
"""A row and its column are scaled if their lengths together become shorter than this part."""

_MUCH_LONGER = 8.0
"""Rows and columns change places if one is so much longer: those of ordinary matrices stay, as LAPACK's do. Of columns
that grow from 1e-12 to 1 the backward error falls from 3e4 units to 1, that of eigenvalues from 1e9 to 300."""


@dataclass(frozen=True, slots=True)
class Balance:
    """What is done to a matrix whose numbers are finite.

    Attributes:
        fb: Where code goes.
        matrix: The matrix.
        order: [size] which row of the given matrix each one is.
        scales: [size] what the columns have been multiplied with, and the rows divided by.
        lengths: [size] sums of sizes of each row and its column, once they are scaled.
    """

    fb: FunctionBuilder
    matrix: PanelMatrix
    order: ArrayView
    scales: ArrayView
    lengths: ArrayView

    def start(self) -> None:
        """Nothing is exchanged or scaled."""
        fb, scalars = self.fb, IndexMath(self.fb, 1)
        with fb.loop(0, self.matrix.columns) as row:
            self.order.write(scalars, (Affine(row),), row)
            one = real_part(self.matrix.panel(0).zeros()[0]).type.scalar
            self.scales.write(scalars, (Affine(row),), fb.constant(one, 1.0))

    def exchange(self) -> tuple[Value, Value]:
        """Exchanges rows and columns: those outside [low, high) are triangular then."""
        fb = self.fb
        ends = fb.constant(I64, 0), fb.constant(I64, self.matrix.columns)
        with fb.while_loop((*ends, fb.constant(I1, 1))) as loop:
            low, high, is_going_on = loop.values
            loop.continue_while(is_going_on)
            row = self._alone(low, high, of_columns=False)
            is_row = fb.icmp("sge", row, 0)
            branch = fb.if_else(is_row)
            with branch.then():
                self._exchange(row, fb.sub(high, 1))
                branch.yield_(low, fb.sub(high, 1), is_row)
            with branch.otherwise():
                column = self._alone(low, high, of_columns=True)
                is_column = fb.icmp("sge", column, 0)
                with fb.if_(is_column):
                    self._exchange(column, low)
                branch.yield_(fb.add(low, fb.zext(is_column, I64)), high, is_column)
            loop.yield_(*branch.results)
        return loop.results[0], loop.results[1]

    def _alone(self, low: Value, high: Value, *, of_columns: bool) -> Value:
        """A row, or column, in [low, high) with nothing in them but on the diagonal; or -1."""
        fb = self.fb
        with fb.carried_loop(low, high, 1, (fb.constant(I64, -1),)) as each:
            found, own = each.values[0], each.index
            with fb.while_loop((fb.select(fb.icmp("slt", found, 0), low, high),)) as search:
                (other,) = search.values
                search.continue_while(fb.icmp("slt", other, high))
                number = self.matrix.number(other, own) if of_columns else self.matrix.number(own, other)
                search.continue_while(fb.or_(fb.icmp("eq", other, own), is_equal(fb, number, 0.0)))
                search.yield_(fb.add(other, 1))
            is_alone = fb.and_(fb.icmp("slt", found, 0), fb.icmp("eq", search.results[0], high))
            each.yield_(fb.select(is_alone, own, found))
        return each.results[0]

    def _exchange(self, one: Value, other: Value) -> None:
        fb, matrix, scalars = self.fb, self.matrix, IndexMath(self.fb, 1)
        both = (one, other)
        with fb.if_(fb.icmp("ne", one, other)):
            with matrix.each_panel() as panel:
                rows = [panel.row(row) for row in both]
                for row, held in zip(reversed(both), rows, strict=True):
                    panel.set_row(row, held)
            places = [matrix.place(column) for column in both]
            with fb.loop(0, matrix.form.rows) as row:
                numbers = [panel.number(row, at) for panel, at in places]
                for (panel, at), number in zip(reversed(places), numbers, strict=True):
                    panel.write(scalars, (Affine(row), Affine(at)), number)
            for line in (self.order, self.scales, self.lengths):
                one_number, other_number = (line.read(scalars, (Affine(row),)) for row in both)
                line.write(scalars, (Affine(one),), other_number)
                line.write(scalars, (Affine(other),), one_number)

    def scale(self, low: Value, high: Value) -> None:
        """Scales the rows and columns [low, high) until none gains; those that are much longer come first."""
        fb = self.fb
        with fb.while_loop((fb.constant(I64, 0), fb.constant(I1, 1))) as rounds:
            number, has_changed = rounds.values
            rounds.continue_while(fb.and_(has_changed, fb.icmp("slt", number, _MOST_ROUNDS)))
            with fb.carried_loop(low, high, 1, (fb.constant(I1, 0),)) as each:
                each.yield_(fb.or_(each.values[0], self._scale(each.index, low, high)))
            rounds.yield_(fb.add(number, 1), each.results[0])
        with fb.loop(low, high) as place:
            self._exchange(place, self._much_longer(place, high))

    def _much_longer(self, place: Value, high: Value) -> Value:
        """The longest of [place, high) if it is much longer than the first of them; else that one."""
        fb, scalars = self.fb, IndexMath(self.fb, 1)
        own = real_part(self.lengths.read(scalars, (Affine(place),)))
        with fb.carried_loop(fb.add(place, 1), high, 1, (place, fb.fmul(own, _MUCH_LONGER))) as loop:
            found, most = loop.values
            length = real_part(self.lengths.read(scalars, (Affine(loop.index),)))
            is_longer = fb.fcmp("ogt", length, most)
            loop.yield_(fb.select(is_longer, loop.index, found), fb.select(is_longer, length, most))
        return loop.results[0]

    def _scale(self, row: Value, low: Value, high: Value) -> Value:
        """Scales a row and its column; whether they have changed."""
        fb, scalars, place = self.fb, IndexMath(self.fb, 1), (Affine(row),)
        held = real_part(self.scales.read(scalars, place))
        zero, one = fb.constant(held.type, 0.0), fb.constant(held.type, 1.0)
        with fb.carried_loop(low, high, 1, (zero, zero)) as loop:
            numbers = self.matrix.number(loop.index, row), self.matrix.number(row, loop.index)
            sums = [fb.fadd(a, size_of(fb, b)) for a, b in zip(loop.values, numbers, strict=True)]
            loop.yield_(*sums)
        column, other = loop.results
        self.lengths.write(scalars, place, fb.fadd(column, other))
        is_something = fb.and_(fb.fcmp("ogt", column, 0.0), fb.fcmp("ogt", other, 0.0))
        factors: tuple[Value, ...] = (one, column, other)
        for step, predicate in ((2.0, "olt"), (0.5, "ogt")):
            with fb.while_loop(factors) as search:
                power, length, against = search.values
                is_off = fb.fcmp(predicate, fb.fmul(length, step), against)
                search.continue_while(fb.and_(is_something, is_off))
                search.yield_(fb.fmul(power, step), fb.fmul(length, step), fb.fmul(against, 1 / step))
            factors = search.results
        power, length, against = factors
        has_gained = fb.fcmp("olt", fb.fadd(length, against), fb.fmul(fb.fadd(column, other), _WORTHWHILE))
        most = 2.0 ** (60 if held.type.bits == 32 else 400)
        after = fb.fmul(held, power)
        is_usual = fb.and_(fb.fcmp("ogt", after, 1 / most), fb.fcmp("olt", after, most))
        has_changed = fb.and_(is_usual, has_gained)
        with fb.if_(has_changed):
            self.scales.write(scalars, place, after)
            self._multiply(row, power)
        return has_changed

    def _multiply(self, row: Value, power: Value) -> None:
        """Multiplies a column by a power of two, and divides its row."""
        fb, matrix, scalars = self.fb, self.matrix, IndexMath(self.fb, 1)
        back = fb.fdiv(fb.constant(power.type, 1.0), power)
        with matrix.each_panel() as panel:
            spread = fb.splat(back, panel.form.lanes)
            panel.set_row(row, tuple(scaled(fb, part, spread) for part in panel.row(row)))
        panel, at = matrix.place(row)
        with fb.loop(0, matrix.form.rows) as other:
            panel.write(scalars, (Affine(other), Affine(at)), scaled(fb, panel.number(other, at), power))
