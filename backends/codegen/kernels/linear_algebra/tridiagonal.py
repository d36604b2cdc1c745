"""Hermitian matrices become real tridiagonal ones: Q^H * A * Q, Q being a product of Householder reflections.

A step reflects rows and columns at a time: A - v * w^H - w * v^H. As both triangles are there, a row of A is a column
of it, conjugated, and all that is done to vectors is done to rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from xlalite.backends.codegen.arrays.index import Affine, IndexMath
from xlalite.backends.codegen.arrays.ir_array import ArrayView, lanes_below
from xlalite.backends.codegen.arrays.types import Element, representation, zero_element
from xlalite.backends.codegen.kernels.linear_algebra.block_reflection import BlockReflection
from xlalite.backends.codegen.kernels.linear_algebra.numbers import (
    chosen,
    conjugate,
    minus_product,
    one_like,
    product,
    quotient,
    real_part,
    scaled,
    total,
)
from xlalite.backends.codegen.kernels.linear_algebra.panel import Panel
from xlalite.backends.codegen.kernels.linear_algebra.panel_matrix import PanelMatrix, set_unit
from xlalite.backends.codegen.llvm import FunctionBuilder, Value


@dataclass(frozen=True, slots=True)
class Reduction:
    """A matrix on the way, the largest of whose numbers is about one.

    Attributes:
        fb: Where code goes.
        matrix: A; in the end row k holds the conjugated vector of reflection k behind its diagonal.
        beside: A row as long as one of the matrix.
        taus: [size], of the matrix's type.
        diagonal: [size + 1] of real numbers; the last one becomes zero.
        off_diagonal: [size] of real numbers; the last one becomes zero.
    """

    fb: FunctionBuilder
    matrix: PanelMatrix
    beside: PanelMatrix
    taus: ArrayView
    diagonal: ArrayView
    off_diagonal: ArrayView

    def run(self) -> None:
        """Reduces the matrix."""
        fb, size, math = self.fb, self.matrix.columns, IndexMath(self.fb, 1)
        with fb.loop(0, size - 1) as step:
            at, behind = (Affine(step),), fb.add(step, 1)
            self.diagonal.write(math, at, real_part(self.matrix.number(step, step)))
            tau, beta = self._reflection(step, behind)
            self.taus.write(math, at, tau)
            self.off_diagonal.write(math, at, beta)
            self._reflect(step, behind, tau)
        real = representation(self.matrix.form.dtype).register
        last = real_part(self.matrix.number(math.scalar(size - 1), math.scalar(size - 1)))
        self.diagonal.write(math, (Affine(size - 1),), last)
        self.diagonal.write(math, (Affine(size),), fb.constant(real, 0.0))
        self.off_diagonal.write(math, (Affine(size - 1),), fb.constant(real, 0.0))

    def make_q(self, q: PanelMatrix, block: BlockReflection) -> None:
        """Makes Q without its first row and column, which are those of the unit matrix."""
        fb, width, count = self.fb, q.form.width, self.matrix.columns - 1
        blocks = -(-count // width)
        set_unit(q)
        with fb.loop(0, blocks) as turn:
            first = fb.mul(fb.sub(fb.constant(turn.type, blocks - 1), turn), width)
            taken = fb.smin(fb.sub(fb.constant(first.type, count), first), width)

            def packed(row: Value, place: Affine, first: Value = first, taken: Value = taken) -> Element:
                panel, column = self.matrix.place(fb.add(row, 1))
                mask = lanes_below(fb, place.base, taken, q.form.lanes)
                math, rows = IndexMath(fb, q.form.lanes), Affine(fb.add(first, place.base), 1)
                return conjugate(fb, panel.read(math, (rows, Affine(column)), mask if q.form.lanes > 1 else None))

            def tau(number: Value, first: Value = first) -> Element:
                return self.taus.read(IndexMath(fb, 1), (Affine(fb.add(first, number)),))

            block.take(first, taken, packed, tau)
            with q.each_panel(fb.udiv(first, width)) as panel:
                block.apply(panel, first, taken, adjoint=False)

    def _reflection(self, step: Value, behind: Value) -> tuple[Element, Value]:
        """(tau, beta) of what makes a column zero below its subdiagonal; its vector is left in the step's row."""
        fb, matrix = self.fb, self.matrix
        alpha = conjugate(fb, matrix.number(step, behind))
        real = real_part(alpha).type
        with fb.carried_loop(fb.udiv(behind, matrix.form.width), matrix.panels, 1, (fb.constant(real, 0.0),)) as each:
            panel, found = matrix.panel(each.index), each.values[0]
            for place, vector in zip(panel.columns(), panel.row(step), strict=True):
                parts = vector if isinstance(vector, tuple) else (vector,)
                is_below = self._is_behind(panel, each.index, place, behind)
                for part in parts:
                    square = fb.select(is_below, fb.fmul(part, part), 0.0)
                    found = fb.fadd(found, fb.reduce(square, fb.fadd))
            each.yield_(found)
        (below,) = each.results
        square = fb.fadd(below, real_part(product(fb, conjugate(fb, alpha), alpha)))
        # Squares of what is as small as this are none, and beside one it does not count.
        limit = 2.0**-80 if real.bits == 32 else 2.0**-200
        is_done = fb.fcmp("ole", below, limit)
        if isinstance(alpha, tuple):
            is_done = fb.and_(is_done, fb.fcmp("ole", fb.fmul(alpha[1], alpha[1]), limit))
        length = fb.copysign(fb.sqrt(square), fb.fneg(real_part(alpha)))
        beta = fb.select(is_done, real_part(alpha), length)
        nothing = zero_element(matrix.form.dtype, 1)
        difference = (fb.fsub(alpha[0], beta), alpha[1]) if isinstance(alpha, tuple) else fb.fsub(alpha, beta)
        rest = scaled(fb, difference, fb.fdiv(fb.constant(real, -1.0), beta))
        tau = chosen(fb, is_done, nothing, rest)
        scale = chosen(fb, is_done, nothing, quotient(fb, matrix.form.dtype, one_like(alpha), difference))
        self._store_vector(step, behind, conjugate(fb, scale))
        return tau, beta

    def _store_vector(self, step: Value, behind: Value, scale: Element) -> None:
        """Makes the step's row the conjugated vector: zeros, a one, and what was there times a number."""
        fb, matrix = self.fb, self.matrix
        with fb.loop(0, matrix.panels) as number:
            panel = matrix.panel(number)
            factor, vectors = panel.spread(scale), []
            for place, vector in zip(panel.columns(), panel.row(step), strict=True):
                own = self._is_behind(panel, number, place, behind)
                is_one = fb.icmp("eq", self._columns(panel, number, place), fb.splat(behind, panel.form.lanes))
                kept = chosen(fb, own, product(fb, vector, factor), zero_element(panel.form.dtype, panel.form.lanes))
                vectors.append(chosen(fb, is_one, one_like(kept), kept))
            panel.set_row(step, tuple(vectors))

    def _reflect(self, step: Value, behind: Value, tau: Element) -> None:
        """H^H * A * H for the rows and columns behind a step."""
        fb, matrix, size = self.fb, self.matrix, self.matrix.columns
        real, first = real_part(tau).type, fb.udiv(behind, matrix.form.width)
        row = fb.constant(step.type, 0)
        with fb.carried_loop(first, matrix.panels, 1, (fb.constant(real, 0.0),)) as each:
            panel, seen = matrix.panel(each.index), self.beside.panel(each.index)
            # v^H * A, and what it has in common with v, which is real.
            found = panel.combination(lambda one: matrix.number(step, one), behind, size)
            common = each.values[0]
            for a, b in zip(found, panel.row(step), strict=True):
                common = fb.fadd(common, fb.reduce(real_part(product(fb, a, conjugate(fb, b))), fb.fadd))
            seen.set_row(row, found)
            each.yield_(common)
        # w^H = conj(tau) * v^H * A - |tau|^2 / 2 * (v^H * A * v) * v^H.
        size_of_tau = real_part(product(fb, conjugate(fb, tau), tau))
        share = fb.fmul(fb.fmul(size_of_tau, each.results[0]), -0.5)
        with fb.loop(first, matrix.panels) as number:
            panel, seen = matrix.panel(number), self.beside.panel(number)
            factor, part = panel.spread(conjugate(fb, tau)), fb.splat(share, panel.form.lanes)
            vectors = []
            for place, a, b in zip(panel.columns(), seen.row(row), panel.row(step), strict=True):
                own = self._is_behind(panel, number, place, fb.sub(behind, 1))
                both = total(fb, product(fb, factor, a), scaled(fb, b, part))
                vectors.append(chosen(fb, own, both, zero_element(panel.form.dtype, panel.form.lanes)))
            seen.set_row(row, tuple(vectors))
        with fb.loop(first, matrix.panels) as number:
            panel, seen = matrix.panel(number), self.beside.panel(number)
            v, w = panel.row(step), seen.row(row)
            with fb.loop(behind, size) as one:
                of_v = panel.spread(conjugate(fb, matrix.number(step, one)))
                of_w = panel.spread(conjugate(fb, self.beside.number(row, one)))
                left = [minus_product(fb, a, of_v, b) for a, b in zip(panel.row(one), w, strict=True)]
                panel.set_row(one, tuple(minus_product(fb, a, of_w, b) for a, b in zip(left, v, strict=True)))

    def _columns(self, panel: Panel, number: Value, place: Affine) -> Value:
        begin = self.fb.splat(self.fb.mul(number, panel.form.width), panel.form.lanes)
        return self.fb.add(begin, panel.column_numbers(place))

    def _is_behind(self, panel: Panel, number: Value, place: Affine, column: Value) -> Value:
        """Which lanes are columns behind one; those behind the last column of all hold zeros."""
        return self.fb.icmp("sgt", self._columns(panel, number, place), self.fb.splat(column, panel.form.lanes))
