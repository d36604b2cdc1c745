"""Eigenvectors of triangular matrices, which may have blocks of two rows for pairs of complex eigenvalues.

Lanes are vectors, and a panel of them is substituted row by row: for right ones, T * x = w * x, from the last row up,
for left ones, T^H * y = conj(w) * y, from the first row down.
"""

from __future__ import annotations

from xlalite.backends.codegen.arrays.index import Affine, IndexMath, sum_of
from xlalite.backends.codegen.arrays.ir_array import ArrayView
from xlalite.backends.codegen.arrays.types import Element
from xlalite.backends.codegen.kernels.linear_algebra.numbers import (
    chosen,
    conjugate,
    from_real,
    is_equal,
    minus_product,
    near_inverse,
    negative,
    one_like,
    product,
    quotient,
    real_part,
    scaled,
    size_of,
)
from xlalite.backends.codegen.kernels.linear_algebra.panel import Panel, Row
from xlalite.backends.codegen.kernels.linear_algebra.panel_matrix import PanelMatrix
from xlalite.backends.codegen.llvm import I64, FunctionBuilder, Value
from xlalite.hlo.records import dataclass


@dataclass(frozen=True, slots=True)
class TriangularVectors:
    """The substitution.

    Attributes:
        fb: Where code goes.
        matrix: The triangular matrix, the largest of whose numbers is about one.
        values: Real and imaginary parts of its eigenvalues, as many as the panels of vectors have columns.
        vectors: Where the vectors come, one a column: a matrix of complex numbers.
        is_left: Whether they are left ones.
    """

    fb: FunctionBuilder
    matrix: PanelMatrix
    values: tuple[ArrayView, ArrayView]
    vectors: PanelMatrix
    is_left: bool

    def run(self) -> None:
        """Computes all vectors; their lengths are any."""
        fb, size, width = self.fb, self.matrix.columns, self.vectors.form.width
        with fb.loop(0, self.vectors.panels) as number:
            panel, first = self.vectors.panel(number), fb.mul(number, width)
            with fb.loop(0, size) as row:
                panel.set_row(row, panel.zeros())
            start, end = self.rows_of(first)
            with fb.while_loop((fb.constant(I64, 0),)) as loop:
                (done,) = loop.values
                row = fb.add(start, done) if self.is_left else fb.sub(fb.sub(end, 1), done)
                loop.continue_while(fb.icmp("slt", done, fb.sub(end, start)))
                known = (start, row) if self.is_left else (fb.add(row, 1), end)
                loop.yield_(fb.add(done, self._solve_rows(panel, first, row, known)))

    def _solve_rows(self, panel: Panel, first: Value, row: Value, known: tuple[Value, Value]) -> Value:
        """Computes a row, or the two of a block that comes next; how many."""
        fb = self.fb
        one = fb.constant(I64, 1)
        if self.matrix.form.dtype.is_complex:
            self._solve(panel, first, row, known)
            return one
        is_block = self._begins_block(row)
        branch = fb.if_else(is_block)
        with branch.then():
            self._solve_block(panel, first, row, known)
        with branch.otherwise():
            self._solve(panel, first, row, known)
        return fb.select(is_block, fb.constant(I64, 2), one)

    def rows_of(self, first: Value) -> tuple[Value, Value]:
        """The rows in which the vectors of the panel with a first column have something."""
        fb, size, width = self.fb, self.matrix.columns, self.vectors.form.width
        if self.is_left:
            # The first of them may be the second of a pair.
            return fb.smax(fb.sub(first, 1), 0), fb.constant(I64, size)
        return fb.constant(I64, 0), fb.smin(fb.add(first, width + 1), size)

    def _coefficient(self, row: Value, column: Value) -> Element:
        """A number of T, or of T^H."""
        number = self.matrix.number(column, row) if self.is_left else self.matrix.number(row, column)
        return conjugate(self.fb, number) if self.is_left else number

    def _partner(self, row: Value) -> Value:
        """The row that comes after one."""
        return self.fb.add(row, 1) if self.is_left else self.fb.sub(row, 1)

    def _begins_block(self, row: Value) -> Value:
        fb, last = self.fb, self.matrix.columns - 1
        upper, lower = (row, fb.smin(fb.add(row, 1), last)) if self.is_left else (fb.smax(fb.sub(row, 1), 0), row)
        is_coupled = fb.not_(is_equal(fb, self.matrix.number(lower, upper), 0.0))
        return fb.and_(fb.icmp("ne", upper, lower), is_coupled)

    def _solve(self, panel: Panel, first: Value, row: Value, known: tuple[Value, Value]) -> None:
        """Computes a row that is no block's."""
        found = []
        rest = self._rest(panel, row, known)
        for place, part in zip(panel.columns(), rest, strict=True):
            difference = self._difference(panel, first, place, row)
            number = self._quotient(panel, first, place, row, negative(self.fb, part), difference)
            found.append(chosen(self.fb, self._is_own(panel, first, place, row), one_like(part), number))
        self._set_rows(panel, (row,), (tuple(found),), known)

    def _solve_block(self, panel: Panel, first: Value, row: Value, known: tuple[Value, Value]) -> None:
        """Computes the two rows of a block [[a, b], [c, a]]; less w, its determinant is (a - w)^2 - b * c."""
        fb, other = self.fb, self._partner(row)
        rests = [self._rest(panel, each, known) for each in (row, other)]
        to_other, to_row = self._coefficient(row, other), self._coefficient(other, row)
        assert isinstance(to_other, Value), "blocks are real"
        assert isinstance(to_row, Value), "blocks are real"
        s = fb.fmul(fb.sqrt(fb.fabs(to_other)), fb.sqrt(fb.fabs(to_row)))
        lanes = panel.form.lanes
        found: tuple[list[Element], list[Element]] = ([], [])
        for place, one, two in zip(panel.columns(), *rests, strict=True):
            difference = self._difference(panel, first, place, row)
            assert isinstance(difference, tuple), "vectors are complex"
            # Cramer's rule; the determinant is a product of two complex numbers.
            tops = []
            for own, against, factor in ((one, two, to_other), (two, one, to_row)):
                top = product(fb, negative(fb, own), difference)
                tops.append(minus_product(fb, top, fb.splat(fb.fneg(factor), lanes), against))
            is_row, is_other = (self._is_own(panel, first, place, each) for each in (row, other))
            is_own, imaginary = fb.or_(is_row, is_other), fb.fneg(difference[1])
            own = (
                (fb.splat(to_other, lanes), fb.constant(imaginary.type, 0.0)),
                (fb.constant(imaginary.type, 0.0), imaginary),
            )
            for top, start, rows in zip(tops, own, found, strict=True):
                # The same order for both of a pair, so that their vectors are conjugates to the last bit.
                distance = fb.copysign(fb.splat(s, lanes), imaginary)
                for part in (fb.fsub(difference[1], distance), fb.fadd(difference[1], distance)):
                    shifted = difference[0], part
                    top = self._quotient(panel, first, place, row, top, shifted)
                assert isinstance(top, tuple), "vectors are complex"
                # Dividing by one factor and then by its conjugate leaves some imaginary part.
                top = top[0], fb.select(fb.fcmp("oeq", imaginary, 0.0), 0.0, top[1])
                rows.append(chosen(fb, is_own, start, top))
        self._set_rows(panel, (row, other), (tuple(found[0]), tuple(found[1])), known)

    def _rest(self, panel: Panel, row: Value, known: tuple[Value, Value]) -> Row:
        """What the known rows contribute to a row."""
        return panel.combination(lambda column: self._coefficient(row, column), *known)

    def _is_own(self, panel: Panel, first: Value, place: Affine, row: Value) -> Value:
        fb, lanes = self.fb, panel.form.lanes
        columns = fb.add(fb.splat(first, lanes), panel.column_numbers(place))
        return fb.icmp("eq", columns, fb.splat(row, lanes))

    def _values(self, panel: Panel, first: Value, place: Affine) -> list[Value]:
        at = Affine(sum_of(first, place.base), 1)
        return [real_part(view.read(IndexMath(self.fb, panel.form.lanes), (at,))) for view in self.values]

    def _difference(self, panel: Panel, first: Value, place: Affine, row: Value) -> Element:
        """A diagonal element less the eigenvalues of some lanes, or the conjugate of that."""
        fb, lanes = self.fb, panel.form.lanes
        diagonal, (real, imaginary) = self._coefficient(row, row), self._values(panel, first, place)
        parts = [fb.splat(part, lanes) for part in (diagonal if isinstance(diagonal, tuple) else (diagonal,))]
        imaginary = imaginary if self.is_left else fb.fneg(imaginary)
        return fb.fsub(parts[0], real), fb.fadd(parts[1], imaginary) if len(parts) > 1 else imaginary

    def _quotient(
        self, panel: Panel, first: Value, place: Affine, row: Value, top: Element, bottom: Element
    ) -> Element:
        """Top / bottom, which is not let be nearer to zero than rounding brings it."""
        fb = self.fb
        sizes = [fb.fabs(part) for part in self._values(panel, first, place)]
        least, precision = (2.0**-60, 2.0**-23) if sizes[0].type.bits == 32 else (2.0**-400, 2.0**-52)
        around = fb.fadd(
            fb.fadd(sizes[0], sizes[1]), fb.splat(size_of(fb, self._coefficient(row, row)), panel.form.lanes)
        )
        limit = fb.maxnum(fb.fmul(around, precision), least)
        is_small = fb.fcmp("olt", size_of(fb, bottom), limit)
        bottom = chosen(fb, is_small, from_real(bottom, limit), bottom)
        return quotient(fb, self.vectors.form.dtype, top, bottom)

    def _set_rows(
        self, panel: Panel, rows: tuple[Value, ...], found: tuple[Row, ...], known: tuple[Value, Value]
    ) -> None:
        """Stores rows; vectors that have grown much become smaller."""
        fb = self.fb
        sizes = [size_of(fb, part) for part in found[0]]
        for other in found[1:]:
            sizes = [fb.maxnum(a, size_of(fb, b)) for a, b in zip(sizes, other, strict=True)]
        most = 2.0**40 if sizes[0].type.bits == 32 else 2.0**300
        for row, vectors in zip(rows, found, strict=True):
            panel.set_row(row, vectors)
        largest = sizes[0]
        for size in sizes[1:]:
            largest = fb.maxnum(largest, size)
        with fb.if_(fb.any_lane(fb.fcmp("ogt", largest, most)), likely=False):
            factors = [fb.select(fb.fcmp("ogt", size, most), near_inverse(fb, size), 1.0) for size in sizes]

            def scale(row: Value) -> None:
                panel.set_row(row, tuple(scaled(fb, a, b) for a, b in zip(panel.row(row), factors, strict=True)))

            for row in rows:
                scale(row)
            with fb.loop(*known) as before:
                scale(before)
