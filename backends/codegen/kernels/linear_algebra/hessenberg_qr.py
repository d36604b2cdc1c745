"""Eigenvalues of upper Hessenberg matrices by QR steps with two implicit shifts (Francis, 1961).

A step is a row of reflections of three neighbouring rows and columns. Each is found from the column that the one before
it has filled, and kept. What is near the diagonal follows at once; the columns behind it a panel at a time, the rows
above it and the vectors when all reflections are known, with two rows or columns staying in registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xlalite.backends.codegen.arrays.index import Affine, IndexMath, Lanes, Position
from xlalite.backends.codegen.arrays.ir_array import ArrayView
from xlalite.backends.codegen.arrays.types import Element, zero_element
from xlalite.backends.codegen.complex_math import emit_complex
from xlalite.backends.codegen.elements.registers import flatten, unflatten
from xlalite.backends.codegen.kernels.linear_algebra.numbers import (
    chosen,
    conjugate,
    from_real,
    minus_product,
    near_inverse,
    negative,
    plus_product,
    product,
    quotient,
    real_part,
    scaled,
    size_of,
    total,
)
from xlalite.backends.codegen.kernels.linear_algebra.panel import Panel
from xlalite.backends.codegen.kernels.linear_algebra.panel_matrix import PanelMatrix
from xlalite.backends.codegen.kernels.linear_algebra.row_reflections import reflector
from xlalite.backends.codegen.llvm import I64, FunctionBuilder, Value
from xlalite.hlo.records import dataclass

_MOST_STEPS = 90
"""For one eigenvalue or two; two to four are usual."""

_STUCK = 10
"""After so many steps in vain the shifts are others than the eigenvalues of the last two rows."""

Three = tuple[Element, Element, Element]


@dataclass(frozen=True, slots=True)
class HessenbergQr:
    """The iteration: a matrix whose largest number is about one becomes triangular.

    A real one keeps blocks [[a, b], [c, a]] with b * c < 0 on its diagonal, one for each pair of eigenvalues.

    Attributes:
        fb: Where code goes.
        matrix: The matrix; below the subdiagonal are zeros.
        kept: Second and third numbers of the vectors of a step's reflections, whose first is one, and taus: [size].
        vectors: The columns of what it is multiplied with, one a row, if there are any.
    """

    fb: FunctionBuilder
    matrix: PanelMatrix
    kept: tuple[ArrayView, ArrayView, ArrayView]
    vectors: PanelMatrix | None

    def run(self) -> Value:
        """Makes it triangular; how many rows are not."""
        fb = self.fb
        last = fb.constant(I64, self.matrix.columns - 1)
        with fb.while_loop((last, fb.constant(I64, 0))) as loop:
            high, steps = loop.values
            is_open = fb.and_(fb.icmp("sge", high, 0), fb.icmp("slt", steps, _MOST_STEPS))
            loop.continue_while(is_open)
            low = self._start_of_block(high)
            size = fb.sub(high, low)
            branch = fb.if_else(fb.icmp("sgt", size, 1))
            with branch.then():
                self._step(low, high, steps)
                branch.yield_(high, fb.add(steps, 1))
            with branch.otherwise():
                with fb.if_(fb.icmp("eq", size, 1)):
                    self._split(low, high)
                branch.yield_(fb.sub(low, 1), fb.constant(I64, 0))
            loop.yield_(*branch.results)
        return fb.add(loop.results[0], 1)

    def _number(self, row: Value, column: Value) -> Element:
        return self.matrix.number(row, column)

    def _write(self, row: Value, column: Value, element: Element) -> None:
        panel, at = self.matrix.place(column)
        panel.write(IndexMath(self.fb, 1), (Affine(row), Affine(at)), element)

    def _start_of_block(self, high: Value) -> Value:
        """The first row of the block that ends with a row; what couples it to the one before becomes zero."""
        fb = self.fb
        with fb.while_loop((high, size_of(fb, self._number(high, high)))) as search:
            row, own = search.values
            search.continue_while(fb.icmp("sgt", row, 0))
            before = fb.sub(row, 1)
            other, beside = (size_of(fb, self._number(each, before)) for each in (before, row))
            least, precision = (2.0**-60, 2.0**-24) if own.type.bits == 32 else (2.0**-400, 2.0**-53)
            limit = fb.fmul(fb.fadd(fb.fadd(own, other), least), precision)
            search.continue_while(fb.fcmp("ogt", beside, limit))
            search.yield_(before, other)
        with fb.if_(fb.icmp("sgt", row, 0)):
            self._write(row, fb.sub(row, 1), zero_element(self.matrix.form.dtype, 1))
        return row

    def _step(self, low: Value, high: Value, steps: Value) -> None:
        """A step on the rows and columns from `low` to `high`, which are at least three."""
        fb, size, width = self.fb, self.matrix.columns, self.matrix.form.width
        start = self._first_column(low, high, steps)
        reach = fb.udiv(fb.smax(fb.sub(low, 1), 0), width)
        with fb.carried_loop(low, high, 1, (reach, *flatten(start))) as loop:
            k, (known, *filled) = loop.index, loop.values
            needed = fb.add(fb.udiv(fb.smin(fb.add(k, 2), size - 1), width), 1)
            with fb.loop(known, needed) as number:
                self._turn(self.matrix.panel(number), low, k)
            column = fb.smax(fb.sub(k, 1), 0)
            beta, vector, tau = self._reflector(unflatten(tuple(filled), start))
            self._keep(k, (*vector, tau))
            with fb.loop(fb.udiv(column, width), needed) as number:
                self._turn(self.matrix.panel(number), k, fb.add(k, 1))
            with fb.if_(fb.icmp("sgt", k, low)):
                zero = zero_element(self.matrix.form.dtype, 1)
                for place, left in ((2, zero), (1, zero), (0, beta)):
                    self._write(fb.smin(fb.add(k, place), high), column, left)
            self._turn_near(k, high)
            rows = [fb.add(k, place) for place in (1, 2, 3)]
            behind = [self._number(fb.smin(row, high), k) for row in rows]
            behind[2] = chosen(fb, fb.icmp("sle", rows[2], high), behind[2], zero_element(self.matrix.form.dtype, 1))
            loop.yield_(needed, *flatten(behind))
        self._turn_rest(low, high, loop.results[0])

    def _first_column(self, low: Value, high: Value, steps: Value) -> Three:
        """What the product of the matrix less either shift has in its first column, but for a factor."""
        fb, dtype = self.fb, self.matrix.form.dtype
        before, second = fb.sub(high, 1), fb.add(low, 1)
        a, b, c, d = (
            self._number(*place) for place in ((before, before), (before, high), (high, before), (high, high))
        )
        own, right, below, next_ = (
            self._number(*place) for place in ((low, low), (low, second), (second, low), (second, second))
        )
        size = fb.fadd(size_of(fb, c), size_of(fb, self._number(before, fb.sub(high, 2))))
        is_stuck = fb.icmp("eq", fb.urem(steps, _STUCK), _STUCK - 1)
        other = total(fb, d, from_real(d, fb.fmul(size, 0.75)))
        x, y, w = d, a, product(fb, b, c)
        if not isinstance(a, tuple):
            x, y, w = self._real_shifts(a, w, d)
        x, y = chosen(fb, is_stuck, other, x), chosen(fb, is_stuck, other, y)
        w = chosen(fb, is_stuck, from_real(d, fb.fmul(fb.fmul(size, size), -0.4375)), w)
        r, s = (total(fb, each, negative(fb, own)) for each in (x, y))
        of_both = total(fb, product(fb, r, s), negative(fb, w))
        first = total(fb, quotient(fb, dtype, of_both, below), right)
        rest = total(fb, total(fb, next_, negative(fb, own)), negative(fb, total(fb, r, s)))
        return first, rest, self._number(fb.add(low, 2), second)

    def _real_shifts(self, a: Element, w: Element, d: Element) -> Three:
        """(x, y, w), the shifts being the roots of (t - x)(t - y) = w: of two real ones that nearer to d, twice."""
        fb = self.fb
        half = scaled(fb, total(fb, a, negative(fb, d)), fb.constant(real_part(a).type, 0.5))
        square = plus_product(fb, w, half, half)
        assert isinstance(half, Value), "it is real"
        assert isinstance(square, Value), "it is real"
        is_real = fb.fcmp("oge", square, 0.0)
        root = fb.sqrt(fb.select(is_real, square, 0.0))
        near = total(fb, d, fb.fsub(half, fb.copysign(root, half)))
        return chosen(fb, is_real, near, d), chosen(fb, is_real, near, a), chosen(fb, is_real, from_real(d, 0.0), w)

    def _reflector(self, numbers: tuple[Element, ...]) -> tuple[Element, tuple[Element, Element], Element]:
        """(what is left of three numbers, the vector behind its first one, tau)."""
        fb, dtype = self.fb, self.matrix.form.dtype
        sizes = [size_of(fb, number) for number in numbers]
        scale = near_inverse(fb, fb.fadd(fb.fadd(sizes[0], sizes[1]), sizes[2]))
        alpha, one, other = (scaled(fb, number, scale) for number in numbers)
        squares = [real_part(product(fb, conjugate(fb, number), number)) for number in (one, other)]
        tau, beta, factor = reflector(fb, dtype, alpha, fb.fadd(squares[0], squares[1]))
        vector = product(fb, one, factor), product(fb, other, factor)
        return from_real(alpha, fb.fdiv(beta, scale)), vector, tau

    def _keep(self, place: Value, reflection: Three) -> None:
        for view, number in zip(self.kept, reflection, strict=True):
            view.write(IndexMath(self.fb, 1), (Affine(place),), number)

    def _reflection(self, place: Value, lanes: int, *, of_columns: bool) -> Three:
        """What is kept of a reflection, in all lanes; its conjugate does to columns what it does to rows."""
        fb, found = self.fb, []
        for view in self.kept:
            number = view.read(IndexMath(fb, 1), (Affine(place),))
            number = conjugate(fb, number) if of_columns else number
            spread = [fb.splat(part, lanes) for part in flatten([number])]
            found.append((spread[0], spread[1]) if len(spread) == 2 else spread[0])
        return found[0], found[1], found[2]

    def _reflected(self, rows: Three, reflection: Three) -> Three:
        """Three rows less v * conj(tau) * v^H * rows."""
        fb, (second, third, tau) = self.fb, reflection
        seen = plus_product(fb, rows[0], conjugate(fb, second), rows[1])
        seen = product(fb, conjugate(fb, tau), plus_product(fb, seen, conjugate(fb, third), rows[2]))
        return (
            total(fb, rows[0], negative(fb, seen)),
            minus_product(fb, rows[1], second, seen),
            minus_product(fb, rows[2], third, seen),
        )

    def _turn(self, panel: Panel, begin: Value, end: Value, *, of_columns: bool = False) -> None:
        """Applies the reflections [begin, end) to the rows of a panel."""
        fb, last = self.fb, panel.form.rows - 1
        kinds = [*panel.row(begin), *panel.row(fb.smin(fb.add(begin, 1), last))]
        count = len(kinds) // 2
        with fb.carried_loop(begin, end, 1, flatten(kinds)) as loop:
            reflection = self._reflection(loop.index, panel.form.lanes, of_columns=of_columns)
            held = unflatten(loop.values, kinds)
            # Behind the last row there is none; the reflection there has nothing as its third number.
            third = panel.row(fb.smin(fb.add(loop.index, 2), last))
            rows = zip(held[:count], held[count:], third, strict=True)
            done, *left = zip(*(self._reflected(each, reflection) for each in rows), strict=True)
            panel.set_row(loop.index, done)
            loop.yield_(*flatten([*left[0], *left[1]]))
        held = unflatten(loop.results, kinds)
        panel.set_row(fb.smin(fb.add(end, 1), last), held[count:])
        panel.set_row(end, held[:count])

    def _turn_near(self, place: Value, high: Value) -> None:
        """Applies a reflection to its columns in the rows below it whose own reflections come next."""
        fb = self.fb
        reflection = self._reflection(place, 1, of_columns=True)
        columns = [place, fb.add(place, 1), fb.smin(fb.add(place, 2), self.matrix.columns - 1)]
        with fb.loop(columns[1], fb.smin(fb.add(place, 4), fb.add(high, 1))) as row:
            one, two, three = (self._number(row, column) for column in columns)
            found = self._reflected((one, two, three), reflection)
            for column, number in reversed(list(zip(columns, found, strict=True))):
                self._write(row, column, number)

    def _turn_rest(self, low: Value, high: Value, reach: Value) -> None:
        """Applies the reflections [low, high) to panels from one on, to the columns above them, and to the vectors."""
        matrices = [self.matrix, *([] if self.vectors is None else [self.vectors])]
        pointers = [*(view.pointer for view in self.kept), *(matrix.pointer for matrix in matrices)]

        def emit(fb: FunctionBuilder, held: Sequence[Value]) -> None:
            second, third, tau = (replace(view, pointer=each) for view, each in zip(self.kept, held, strict=False))
            matrix, *others = (
                PanelMatrix(fb, self.matrix.form, self.matrix.columns, each) for each in held[3 : len(pointers)]
            )
            own = HessenbergQr(fb, matrix, (second, third, tau), *(others or (None,)))
            own._turn_matrices(*held[len(pointers) :])

        key = self.matrix.form, self.matrix.columns, len(matrices)
        self.fb.apart("turn_rest", [*pointers, low, high, reach], emit, key=key)

    def _turn_matrices(self, low: Value, high: Value, reach: Value) -> None:
        with self.matrix.each_panel(reach) as panel:
            self._turn(panel, low, high)
        self._turn_columns(low, high)
        if self.vectors is not None:
            with self.vectors.each_panel() as panel:
                self._turn(panel, low, high, of_columns=True)

    def _turn_columns(self, low: Value, high: Value) -> None:
        """Applies the reflections [low, high) to columns, each in the rows down to its own."""
        fb, form, last = self.fb, self.matrix.form, self.matrix.columns - 1
        math = IndexMath(fb, form.lanes)
        with fb.loop(0, high, form.width) as block:
            rows = [math.vector(Affine(fb.add(block, number * form.lanes), 1)) for number in range(form.vectors)]
            places: list[Position] = [
                Lanes(fb.smin(each, last)) if form.lanes > 1 else Affine(fb.smin(each, last)) for each in rows
            ]

            def column(number: Value, places: list[Position] = places) -> list[Element]:
                panel, at = self.matrix.place(number)
                return [panel.read(math, (place, Affine(at))) for place in places]

            def set_column(number: Value, parts: Sequence[Element], places: list[Position] = places) -> None:
                panel, at = self.matrix.place(number)
                for place, part in zip(places, parts, strict=True):
                    panel.write(math, (place, Affine(at)), part)

            begin = fb.smax(low, block)
            kinds = [*column(begin), *column(fb.smin(fb.add(begin, 1), last))]
            with fb.carried_loop(begin, high, 1, flatten(kinds)) as loop:
                reflection = self._reflection(loop.index, form.lanes, of_columns=True)
                held, third = unflatten(loop.values, kinds), column(fb.smin(fb.add(loop.index, 2), last))
                edge, found = fb.splat(loop.index, form.lanes), []
                for each, row in zip(zip(held, held[form.vectors :], third), rows, strict=True):  # noqa: B905
                    is_above = fb.icmp("sle", row, edge)
                    new = self._reflected(each, reflection)
                    found.append([chosen(fb, is_above, one, other) for one, other in zip(new, each, strict=True)])
                done, *left = zip(*found, strict=True)
                set_column(loop.index, done)
                loop.yield_(*flatten([*left[0], *left[1]]))
            held = unflatten(loop.results, kinds)
            set_column(fb.smin(fb.add(high, 1), last), held[form.vectors :])
            set_column(high, held[: form.vectors])

    def _split(self, low: Value, high: Value) -> None:
        """Makes a block of two rows triangular; one with a pair of complex eigenvalues gets an equal diagonal."""
        fb, dtype = self.fb, self.matrix.form.dtype
        a, b, c, d = (self._number(*place) for place in ((low, low), (low, high), (high, low), (high, high)))
        sizes = [size_of(fb, each) for each in (b, c, total(fb, a, negative(fb, d)))]
        scale = near_inverse(fb, fb.fadd(fb.fadd(sizes[0], sizes[1]), sizes[2]))
        b, c = scaled(fb, b, scale), scaled(fb, c, scale)
        half = scaled(fb, scaled(fb, total(fb, a, negative(fb, d)), scale), fb.constant(scale.type, 0.5))
        if isinstance(half, tuple):
            square = plus_product(fb, product(fb, half, half), b, c)
            assert isinstance(square, tuple), "it is complex"
            root = emit_complex(fb, "sqrt", square)
            assert isinstance(root, tuple), "it is complex"
            is_against = fb.fcmp("olt", real_part(product(fb, conjugate(fb, half), root)), 0.0)
            p, q = self._unit(total(fb, half, chosen(fb, is_against, negative(fb, root), root)), c)
            self._reflect_block(low, high, p, q)
            self._write(high, low, zero_element(dtype, 1))
            return
        assert isinstance(b, Value), "it is real"
        assert isinstance(c, Value), "it is real"
        turn, skew, twice = fb.fadd(b, c), fb.fsub(b, c), fb.fadd(half, half)
        length, far = fb.sqrt(fb.fadd(fb.fmul(turn, turn), fb.fmul(twice, twice))), fb.fabs(skew)
        is_pair = fb.fcmp("ogt", far, length)
        quarter = fb.fmul(fb.fmul(fb.fsub(length, far), fb.fadd(length, far)), 0.25)
        root = fb.sqrt(fb.select(is_pair, 0.0, quarter))
        z = fb.fadd(half, fb.copysign(root, half))
        p, q = self._unit(z, c)
        # The smaller of the angles that make the diagonal equal; its double has the cosine |turn| / length.
        is_done, lean = fb.fcmp("oeq", length, 0.0), fb.copysign(fb.constant(turn.type, 1.0), turn)
        divisor = fb.select(is_done, 1.0, length)
        cosine = fb.select(is_done, 1.0, fb.fdiv(fb.fabs(turn), divisor))
        large = fb.sqrt(fb.fmul(fb.fadd(cosine, 1.0), 0.5))
        small = fb.fdiv(fb.fmul(lean, fb.fdiv(twice, divisor)), fb.fadd(large, large))
        p, q = fb.select(is_pair, fb.fneg(large), p), fb.select(is_pair, small, real_part(q))
        self._reflect_block(low, high, p, q)
        self._reverse(fb.select(fb.or_(is_pair, fb.fcmp("ogt", z, 0.0)), low, high), high)
        half_back, leaning = fb.fdiv(fb.constant(scale.type, 0.5), scale), fb.fmul(lean, length)
        with fb.if_(is_pair):
            assert isinstance(a, Value), "it is real"
            assert isinstance(d, Value), "it is real"
            middle = fb.fadd(a, fb.fmul(fb.fsub(d, a), 0.5))
            self._write(low, low, middle)
            self._write(high, high, middle)
            self._write(low, high, fb.fmul(fb.fadd(leaning, skew), half_back))
        below = fb.fmul(fb.fsub(leaning, skew), half_back)
        self._write(high, low, fb.select(is_pair, below, 0.0))

    def _reverse(self, place: Value, high: Value) -> None:
        """Negates a row, a column down to another row, and a vector: with a reflection that is LAPACK's rotation."""
        fb, zero = self.fb, zero_element(self.matrix.form.dtype, 1)
        for matrix in (self.matrix, *([] if self.vectors is None else [self.vectors])):
            with matrix.each_panel() as panel:
                # Nothing less zero would be a negative zero.
                panel.set_row(place, panel.without(panel.zeros(), from_real(zero, 1.0), panel.row(place)))
        with fb.loop(0, fb.add(high, 1)) as row:
            self._write(row, place, total(fb, zero, negative(fb, self._number(row, place))))

    def _unit(self, z: Element, c: Element) -> tuple[Value, Element]:
        """A multiple of the vector (z, c) of length one, its first number real and not positive."""
        fb = self.fb
        squares = [real_part(product(fb, conjugate(fb, each), each)) for each in (z, c)]
        own, length = fb.sqrt(squares[0]), fb.sqrt(fb.fadd(squares[0], squares[1]))
        is_zero = fb.fcmp("oeq", own, 0.0)
        inverse = fb.fdiv(fb.constant(own.type, -1.0), fb.select(is_zero, 1.0, own))
        phase = chosen(fb, is_zero, from_real(z, -1.0), scaled(fb, conjugate(fb, z), inverse))
        back = fb.fdiv(fb.constant(own.type, 1.0), length)
        return fb.fneg(fb.fmul(own, back)), scaled(fb, product(fb, c, phase), back)

    def _reflect_block(self, low: Value, high: Value, p: Value, q: Element) -> None:
        """Applies the reflection whose matrix begins with the column (p, q)."""
        fb = self.fb
        tau = fb.fsub(fb.constant(p.type, 1.0), p)
        second = scaled(fb, q, fb.fdiv(fb.constant(p.type, -1.0), tau))
        self._keep(low, (second, from_real(q, 0.0), from_real(q, tau)))
        with self.matrix.each_panel(fb.udiv(low, self.matrix.form.width)) as panel:
            self._turn(panel, low, high)
        self._turn_near(low, high)
        self._turn_rest(low, high, fb.constant(I64, self.matrix.panels))
