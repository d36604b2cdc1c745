"""Singular values of a real upper bidiagonal matrix by QR steps with implicit shifts (Golub and Reinsch, 1970).

A step chases an element along the diagonals with rotations from the right and from the left in turn. They are kept, and
applied to the vectors a panel at a time, with one row staying in registers.
"""

from __future__ import annotations

from xlalite.backends.codegen.arrays.index import Affine, IndexMath
from xlalite.backends.codegen.arrays.ir_array import ArrayView
from xlalite.backends.codegen.elements.registers import flatten, unflatten
from xlalite.backends.codegen.kernels.linear_algebra.numbers import negative, scaled, total
from xlalite.backends.codegen.kernels.linear_algebra.panel import Panel, Row
from xlalite.backends.codegen.kernels.linear_algebra.panel_matrix import PanelMatrix
from xlalite.backends.codegen.llvm import I64, FunctionBuilder, Value
from xlalite.hlo.records import dataclass

_MOST_STEPS = 60
"""For one singular value; two or three are usual."""


@dataclass(frozen=True, slots=True)
class Rotations:
    """Room for the rotations of a step: cosines and sines."""

    cosines: ArrayView
    sines: ArrayView


@dataclass(frozen=True, slots=True)
class BidiagonalQr:
    """The iteration; rows of `left` and `right`, if there are any, turn with the matrix.

    Attributes:
        fb: Where code goes.
        size: Rows and columns of the matrix, the largest of whose numbers is about one.
        diagonal: [size].
        above: [size]; above[k] stands above diagonal[k], above[0] is zero.
        of_left: Rotations of rows.
        of_right: Rotations of columns.
        left: The left singular vectors, one a row.
        right: The right ones.
    """

    fb: FunctionBuilder
    size: int
    diagonal: ArrayView
    above: ArrayView
    of_left: Rotations
    of_right: Rotations
    left: PanelMatrix | None
    right: PanelMatrix | None

    def run(self) -> Value:
        """Makes the matrix diagonal and not negative; how many values were not found."""
        fb = self.fb
        limit = self._limit()
        with fb.carried_loop(0, self.size, 1, (fb.constant(I64, 0),)) as each:
            high = fb.sub(fb.constant(I64, self.size - 1), each.index)
            with fb.while_loop((fb.constant(I64, 0),)) as steps:
                low, is_zero = self._block(high, limit)
                with fb.if_(is_zero):
                    self._clear_row(low, high, limit)
                is_open = fb.icmp("ne", low, high)
                steps.continue_while(fb.and_(is_open, fb.icmp("slt", steps.values[0], _MOST_STEPS)))
                self._step(low, high)
                for matrix, rotations in ((self.right, self.of_right), (self.left, self.of_left)):
                    if matrix is not None:
                        with matrix.each_panel() as panel:
                            self._turn(panel, rotations, low, high)
                steps.yield_(fb.add(steps.values[0], 1))
            self._make_positive(high)
            each.yield_(fb.add(each.values[0], fb.zext(is_open, I64)))
        return each.results[0]

    def _read(self, view: ArrayView, place: Value) -> Value:
        found = view.read(IndexMath(self.fb, 1), (Affine(place),))
        assert isinstance(found, Value), "the matrix is real"
        return found

    def _write(self, view: ArrayView, place: Value, number: Value) -> None:
        view.write(IndexMath(self.fb, 1), (Affine(place),), number)

    def _limit(self) -> Value:
        """What counts as zero: the rounding of the largest sum of a column."""
        fb = self.fb
        real = self._read(self.diagonal, fb.constant(I64, 0)).type
        with fb.carried_loop(0, self.size, 1, (fb.constant(real, 0.0),)) as loop:
            sizes = [fb.fabs(self._read(view, loop.index)) for view in (self.diagonal, self.above)]
            loop.yield_(fb.maxnum(loop.values[0], fb.fadd(sizes[0], sizes[1])))
        return fb.fmul(loop.results[0], 2.0**-24 if real.bits == 32 else 2.0**-53)

    def _is_zero(self, view: ArrayView, place: Value, limit: Value) -> Value:
        return self.fb.fcmp("ole", self.fb.fabs(self._read(view, place)), limit)

    def _block(self, high: Value, limit: Value) -> tuple[Value, Value]:
        """(the first row that is coupled with row `high`, whether the row before it has nothing on its diagonal)."""
        fb = self.fb
        with fb.while_loop((high,)) as search:
            (low,) = search.values
            is_apart = self._is_zero(self.above, low, limit)
            is_zero = self._is_zero(self.diagonal, fb.smax(fb.sub(low, 1), 0), limit)
            search.continue_while(fb.not_(fb.or_(is_apart, is_zero)))
            search.yield_(fb.sub(low, 1))
        return low, fb.not_(is_apart)

    def _clear_row(self, low: Value, high: Value, limit: Value) -> None:
        """Rotates the row before `low`, where the diagonal has nothing, until nothing is right of it."""
        fb, empty = self.fb, self.fb.sub(low, 1)
        real = limit.type
        with fb.while_loop((low, fb.constant(real, 0.0), fb.constant(real, 1.0))) as loop:
            row, cosine, sine = loop.values
            place = fb.smin(row, high)
            own = self._read(self.above, place)
            f, is_inside = fb.fmul(sine, own), fb.icmp("sle", row, high)
            self._write(self.above, place, fb.select(is_inside, fb.fmul(cosine, own), own))
            loop.continue_while(fb.and_(is_inside, fb.fcmp("ogt", fb.fabs(f), limit)))
            g = self._read(self.diagonal, row)
            length = fb.sqrt(fb.fadd(fb.fmul(f, f), fb.fmul(g, g)))
            self._write(self.diagonal, row, length)
            cosine, sine = fb.fdiv(g, length), fb.fdiv(fb.fneg(f), length)
            if self.left is not None:
                with self.left.each_panel() as panel:
                    first, second = _rotated(panel, panel.row(empty), panel.row(row), cosine, sine)
                    panel.set_row(empty, first)
                    panel.set_row(row, second)
            loop.yield_(fb.add(row, 1), cosine, sine)

    def _step(self, low: Value, high: Value) -> None:
        """Finds the rotations of a step on the rows from `low` to `high`."""
        fb, before = self.fb, self.fb.sub(high, 1)
        x, y, z = (self._read(self.diagonal, place) for place in (low, before, high))
        g, h = self._read(self.above, before), self._read(self.above, high)
        one, two = fb.constant(x.type, 1.0), fb.constant(x.type, 2.0)
        squares = fb.fadd(fb.fmul(fb.fsub(y, z), fb.fadd(y, z)), fb.fmul(fb.fsub(g, h), fb.fadd(g, h)))
        f = fb.fdiv(squares, fb.fmul(two, fb.fmul(h, y)))
        root = fb.copysign(fb.sqrt(fb.fadd(fb.fmul(f, f), one)), f)
        shifted = fb.fadd(fb.fmul(fb.fsub(x, z), fb.fadd(x, z)), fb.fmul(h, fb.fsub(fb.fdiv(y, fb.fadd(f, root)), h)))
        with fb.carried_loop(low, high, 1, (fb.fdiv(shifted, x), x, one, one)) as loop:
            (f, x, cosine, sine), row = loop.values, loop.index
            behind = fb.add(row, 1)
            g, y = self._read(self.above, behind), self._read(self.diagonal, behind)
            h, g = fb.fmul(sine, g), fb.fmul(cosine, g)
            length, cosine, sine = self._rotation(f, h)
            self._write(self.above, row, length)
            self._write(self.of_right.cosines, row, cosine)
            self._write(self.of_right.sines, row, sine)
            f = fb.fadd(fb.fmul(x, cosine), fb.fmul(g, sine))
            g = fb.fsub(fb.fmul(g, cosine), fb.fmul(x, sine))
            h, y = fb.fmul(y, sine), fb.fmul(y, cosine)
            length, cosine, sine = self._rotation(f, h)
            self._write(self.diagonal, row, length)
            self._write(self.of_left.cosines, row, cosine)
            self._write(self.of_left.sines, row, sine)
            f = fb.fadd(fb.fmul(cosine, g), fb.fmul(sine, y))
            loop.yield_(f, fb.fsub(fb.fmul(cosine, y), fb.fmul(sine, g)), cosine, sine)
        f, x, _, _ = loop.results
        self._write(self.above, low, fb.constant(f.type, 0.0))
        self._write(self.above, high, f)
        self._write(self.diagonal, high, x)

    def _rotation(self, f: Value, h: Value) -> tuple[Value, Value, Value]:
        """(length, cosine, sine) of what turns (f, h) to (length, 0)."""
        fb = self.fb
        length = fb.sqrt(fb.fadd(fb.fmul(f, f), fb.fmul(h, h)))
        is_zero = fb.fcmp("oeq", length, 0.0)
        return length, fb.select(is_zero, 1.0, fb.fdiv(f, length)), fb.select(is_zero, 0.0, fb.fdiv(h, length))

    def _turn(self, panel: Panel, rotations: Rotations, low: Value, high: Value) -> None:
        """Applies the rotations of a step to a panel of vectors."""
        fb, first = self.fb, panel.row(low)
        with fb.carried_loop(low, high, 1, flatten(first)) as loop:
            cosine, sine = (self._read(view, loop.index) for view in (rotations.cosines, rotations.sines))
            behind = panel.row(fb.add(loop.index, 1))
            done, kept = _rotated(panel, unflatten(loop.values, first), behind, cosine, sine)
            panel.set_row(loop.index, done)
            loop.yield_(*flatten(kept))
        panel.set_row(high, unflatten(loop.results, first))

    def _make_positive(self, place: Value) -> None:
        fb, number = self.fb, self._read(self.diagonal, place)
        with fb.if_(fb.fcmp("olt", number, 0.0)):
            self._write(self.diagonal, place, fb.fneg(number))
            if self.right is not None:
                with self.right.each_panel() as panel:
                    panel.set_row(place, tuple(negative(fb, part) for part in panel.row(place)))


def _rotated(panel: Panel, one: Row, other: Row, cosine: Value, sine: Value) -> tuple[Row, Row]:
    """(one * cosine + other * sine, other * cosine - one * sine)."""
    fb, lanes = panel.fb, panel.form.lanes
    c, s, back = fb.splat(cosine, lanes), fb.splat(sine, lanes), fb.splat(fb.fneg(sine), lanes)
    pairs = list(zip(one, other, strict=True))
    return (
        tuple(total(fb, scaled(fb, a, c), scaled(fb, b, s)) for a, b in pairs),
        tuple(total(fb, scaled(fb, b, c), scaled(fb, a, back)) for a, b in pairs),
    )
