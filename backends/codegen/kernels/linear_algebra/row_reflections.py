"""Reflections that make zeros in rows or columns of a matrix, behind a place; and the matrix that is their product.

A row is a column of the adjoint: the vector of a reflection is left in the row conjugated, a one at its top.
"""

from __future__ import annotations

from collections.abc import Callable

from xlalite.backends.codegen.arrays.index import Affine, IndexMath, sum_of
from xlalite.backends.codegen.arrays.ir_array import ArrayView, lanes_below
from xlalite.backends.codegen.arrays.types import Element, zero_element
from xlalite.backends.codegen.elements.registers import flatten, unflatten
from xlalite.backends.codegen.kernels.linear_algebra.block_reflection import BlockReflection
from xlalite.backends.codegen.kernels.linear_algebra.numbers import (
    chosen,
    conjugate,
    from_real,
    one_like,
    plus_product,
    product,
    quotient,
    real_part,
    scaled,
    total,
)
from xlalite.backends.codegen.kernels.linear_algebra.panel import Panel, Row
from xlalite.backends.codegen.kernels.linear_algebra.panel_matrix import PanelMatrix, set_unit
from xlalite.backends.codegen.llvm import F64, FunctionBuilder, Type, Value
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType


@dataclass(frozen=True, slots=True)
class RowReflections:
    """A matrix on the way to another form, the largest of whose numbers is about one.

    Attributes:
        fb: Where code goes.
        matrix: The matrix; behind place k + 1 of row k stands the vector of reflection k, conjugated, in the end.
        beside: A row as long as one of the matrix.
        taus: Of the reflections, of the matrix's type.
    """

    fb: FunctionBuilder
    matrix: PanelMatrix
    beside: PanelMatrix
    taus: ArrayView

    def make_q(self, q: PanelMatrix, block: BlockReflection) -> None:
        """Makes the product of reflections without its first row and column, which are those of the unit matrix."""
        fb, width, count = self.fb, q.form.width, self.matrix.columns - 1
        blocks = -(-count // width)
        set_unit(q)
        with fb.loop(0, blocks) as turn:
            first = fb.mul(fb.sub(fb.constant(turn.type, blocks - 1), turn), width)
            taken = fb.smin(fb.sub(fb.constant(first.type, count), first), width)

            def packed(row: Value, place: Affine, first: Value = first, taken: Value = taken) -> Element:
                panel, column = self.matrix.place(fb.add(row, 1))
                mask = lanes_below(fb, place.base, taken, q.form.lanes)
                math, rows = IndexMath(fb, q.form.lanes), Affine(sum_of(first, place.base), 1)
                return conjugate(fb, panel.read(math, (rows, Affine(column)), mask if q.form.lanes > 1 else None))

            def tau(number: Value, first: Value = first) -> Element:
                return self.taus.read(IndexMath(fb, 1), (Affine(fb.add(first, number)),))

            block.take(first, taken, packed, tau)
            with q.each_panel(fb.udiv(first, width)) as panel:
                block.apply(panel, first, taken, adjoint=False)

    def make_left_q(self, q: PanelMatrix, block: BlockReflection, taus: ArrayView) -> None:
        """Makes the first columns of the product of the reflections from the left.

        Their vectors begin at the diagonal; or below it, and what is made has no first row and column, which are those
        of the unit matrix.
        """
        fb, matrix, form = self.fb, self.matrix, block.forms[0]
        below = matrix.form.rows - form.rows
        count = matrix.columns - below
        blocks = -(-count // form.width)
        set_unit(q)
        with fb.loop(0, blocks) as turn:
            first = fb.mul(fb.sub(fb.constant(turn.type, blocks - 1), turn), form.width)
            taken = fb.smin(fb.sub(fb.constant(first.type, count), first), form.width)

            def packed(row: Value, place: Affine, first: Value = first) -> Element:
                panel, column = matrix.place(IndexMath(fb, 1).scalar(sum_of(first, place.base)))
                return panel.read(IndexMath(fb, form.lanes), (Affine(fb.add(row, below)), Affine(column, 1)))

            def tau(number: Value, first: Value = first) -> Element:
                return taus.read(IndexMath(fb, 1), (Affine(fb.add(first, number)),))

            block.take(first, taken, packed, tau)
            with q.each_panel(fb.udiv(first, q.form.width)) as panel:
                block.apply(panel, first, taken, adjoint=False)

    def reflect_columns(self, top: Value, column: Value, end: Value | int) -> tuple[Element, Value]:
        """Makes zeros in a column below a row, up to an end, with a reflection of the columns behind: (tau, beta).

        The vector is left in the place of the zeros.
        """
        fb, matrix, behind = self.fb, self.matrix, self.fb.add(top, 1)
        first, row, scalars = fb.udiv(column, matrix.form.width), fb.constant(top.type, 0), IndexMath(fb, 1)
        with fb.loop(first, matrix.panels) as number:
            panel = matrix.panel(number)
            seen = panel.combination(lambda one: conjugate(fb, matrix.number(one, column)), behind, end)
            self.beside.panel(number).set_row(row, seen)
        below = real_part(self.beside.number(row, column))
        tau, beta, scale = reflector(fb, matrix.form.dtype, matrix.number(top, column), below)
        own, at = matrix.place(column)
        with fb.loop(behind, end) as one:
            own.write(scalars, (Affine(one), Affine(at)), product(fb, own.number(one, at), scale))
        with fb.loop(first, matrix.panels) as number:
            panel = matrix.panel(number)
            factor, other = panel.spread(conjugate(fb, tau)), panel.spread(conjugate(fb, scale))
            held, seen = panel.row(top), self.beside.panel(number).row(row)
            common = tuple(
                product(fb, factor, total(fb, a, product(fb, other, b))) for a, b in zip(held, seen, strict=True)
            )
            common = self.behind(common, panel, number, column)
            panel.set_row(top, panel.without(held, one_like(tau), common))
            with fb.loop(behind, end) as one:
                panel.set_row(one, panel.without(panel.row(one), matrix.number(one, column), common))
        return tau, beta

    def reflect_rows(
        self, rows: tuple[Value | int, Value | int], first: Value, tau: Element, vector: Callable[[Value], Row]
    ) -> None:
        """Row * H for some rows; `vector` gives the adjoint of H's, in the panels from one on."""
        fb, matrix = self.fb, self.matrix
        kinds = matrix.panel(0).zeros()
        with fb.loop(*rows) as one:
            with fb.carried_loop(first, matrix.panels, 1, flatten(kinds)) as each:
                held, row = unflatten(each.values, kinds), matrix.panel(each.index).row(one)
                own = [conjugate(fb, part) for part in vector(each.index)]
                sums = [plus_product(fb, a, b, c) for a, b, c in zip(held, row, own, strict=True)]
                each.yield_(*flatten(sums))
            parts = unflatten(each.results, kinds)
            whole = parts[0]
            for part in parts[1:]:
                whole = total(fb, whole, part)
            dots = [fb.reduce(part, fb.fadd) for part in flatten([whole])]
            factor = product(fb, tau, (dots[0], dots[1]) if len(dots) == 2 else dots[0])
            with fb.loop(first, matrix.panels) as number:
                panel = matrix.panel(number)
                panel.set_row(one, panel.without(panel.row(one), factor, vector(number)))

    def reflection(self, step: Value, behind: Value) -> tuple[Element, Value]:
        """(tau, beta) of what makes zeros behind a place of a row, and beta there; its vector is left in the row."""
        fb, matrix = self.fb, self.matrix
        alpha = conjugate(fb, matrix.number(step, behind))
        real = real_part(alpha).type
        with fb.carried_loop(fb.udiv(behind, matrix.form.width), matrix.panels, 1, (fb.constant(real, 0.0),)) as each:
            panel, found = matrix.panel(each.index), each.values[0]
            for part in self.vector(step, each.index, behind):
                square = real_part(product(fb, conjugate(fb, part), part))
                found = fb.fadd(found, fb.reduce(square, fb.fadd))
            each.yield_(found)
        tau, beta, scale = reflector(fb, matrix.form.dtype, alpha, each.results[0])
        with fb.loop(fb.udiv(behind, matrix.form.width), matrix.panels) as number:
            panel = matrix.panel(number)
            factor, vectors = panel.spread(conjugate(fb, scale)), []
            for place, vector in zip(panel.columns(), panel.row(step), strict=True):
                columns, edge = self.columns(panel, number, place), fb.splat(behind, panel.form.lanes)
                new = chosen(fb, fb.icmp("sgt", columns, edge), product(fb, vector, factor), vector)
                vectors.append(chosen(fb, fb.icmp("eq", columns, edge), one_like(new), new))
            panel.set_row(step, tuple(vectors))
        return tau, beta

    def vector(self, step: Value, number: Value, column: Value) -> Row:
        """What stands in a panel of a row behind a column; zeros elsewhere."""
        panel = self.matrix.panel(number)
        return self.behind(panel.row(step), panel, number, column)

    def behind(self, row: Row, panel: Panel, number: Value, column: Value) -> Row:
        """A row of a panel with zeros up to a column; what is behind the last column of all are zeros."""
        fb, edge, nothing = self.fb, self.fb.splat(column, panel.form.lanes), panel.zeros()[0]
        return tuple(
            chosen(fb, fb.icmp("sgt", self.columns(panel, number, place), edge), part, nothing)
            for place, part in zip(panel.columns(), row, strict=True)
        )

    def columns(self, panel: Panel, number: Value, place: Affine) -> Value:
        """The columns of the matrix that a vector of a panel holds."""
        begin = self.fb.splat(self.fb.mul(number, panel.form.width), panel.form.lanes)
        return self.fb.add(begin, panel.column_numbers(place))


def reflector(fb: FunctionBuilder, dtype: DType, alpha: Element, below: Value) -> tuple[Element, Value, Element]:
    """(tau, beta, what the numbers below alpha are multiplied with), the sum of whose squares is given.

    They are computed in f64 and rounded once: by as much as they do not fit each other a reflection is not orthogonal.
    """
    real, wide = real_part(alpha).type, DType.C128 if dtype.is_complex else DType.F64
    # Squares of what is as small as this are none, and beside one it does not count.
    limit = 2.0**-80 if real.bits == 32 else 2.0**-200
    is_done = fb.fcmp("ole", below, limit)
    if isinstance(alpha, tuple):
        is_done = fb.and_(is_done, fb.fcmp("ole", fb.fmul(alpha[1], alpha[1]), limit))
    own = _as(fb.fpext, alpha, F64)
    square = fb.fadd(fb.fpext(below, F64), real_part(product(fb, conjugate(fb, own), own)))
    length = fb.copysign(fb.sqrt(square), fb.fneg(real_part(own)))
    difference = total(fb, own, from_real(own, fb.fneg(length)))
    tau = scaled(fb, difference, fb.fdiv(fb.constant(F64, -1.0), length))
    factor = quotient(fb, wide, one_like(own), difference)
    nothing = zero_element(dtype, 1)
    beta = fb.select(is_done, real_part(alpha), fb.fptrunc(length, real))
    rest = [chosen(fb, is_done, nothing, _as(fb.fptrunc, each, real)) for each in (tau, factor)]
    return rest[0], beta, rest[1]


def _as(resize: Callable[[Value, Type], Value], element: Element, target: Type) -> Element:
    """An element of another precision."""
    return (
        (resize(element[0], target), resize(element[1], target))
        if isinstance(element, tuple)
        else resize(element, target)
    )
