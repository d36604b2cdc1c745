"""Matrices that are not wide become real upper bidiagonal ones: Q^H * A * P, products of Householder reflections.

Reflections from the left and from the right take turns; those from the left leave their vectors in columns.
"""

from __future__ import annotations

from dataclasses import dataclass

from xlalite.backends.codegen.arrays.index import Affine, IndexMath
from xlalite.backends.codegen.arrays.ir_array import ArrayView
from xlalite.backends.codegen.arrays.types import Element, representation
from xlalite.backends.codegen.elements.registers import flatten, unflatten
from xlalite.backends.codegen.kernels.linear_algebra.block_reflection import BlockReflection
from xlalite.backends.codegen.kernels.linear_algebra.numbers import (
    conjugate,
    one_like,
    plus_product,
    product,
    real_part,
    total,
)
from xlalite.backends.codegen.kernels.linear_algebra.panel import Panel
from xlalite.backends.codegen.kernels.linear_algebra.panel_matrix import PanelMatrix, set_unit
from xlalite.backends.codegen.kernels.linear_algebra.row_reflections import RowReflections, reflector
from xlalite.backends.codegen.llvm import Value


@dataclass(frozen=True, slots=True)
class BidiagonalReduction(RowReflections):
    """The reduction; off_diagonal[k] stands above diagonal[k], the first one being zero.

    Attributes:
        left_taus: Of the reflections from the left.
    """

    left_taus: ArrayView

    def run(self) -> None:
        """Reduces the matrix."""
        fb, size, math = self.fb, self.matrix.columns, IndexMath(self.fb, 1)
        zero = fb.constant(representation(self.matrix.form.dtype).register, 0.0)
        self.off_diagonal.write(math, (Affine(0),), zero)
        with fb.loop(0, size) as step:
            at, behind = (Affine(step),), fb.add(step, 1)
            tau, beta = self._reflect_columns(step, behind)
            self.left_taus.write(math, at, tau)
            self.diagonal.write(math, at, beta)
            with fb.if_(fb.icmp("slt", behind, size)):
                tau, beta = self.reflection(step, behind)
                self.taus.write(math, at, tau)
                self.off_diagonal.write(math, (Affine(behind),), beta)
                self._reflect_rows(step, behind, tau)

    def make_left_q(self, q: PanelMatrix, block: BlockReflection) -> None:
        """Makes the first columns of Q."""
        fb, width, count = self.fb, self.matrix.form.width, self.matrix.columns
        blocks = -(-count // width)
        set_unit(q)
        with fb.loop(0, blocks) as turn:
            at = fb.sub(fb.constant(turn.type, blocks - 1), turn)
            first = fb.mul(at, width)
            taken, panel = fb.smin(fb.sub(fb.constant(first.type, count), first), width), self.matrix.panel(at)

            def packed(row: Value, place: Affine, panel: Panel = panel) -> Element:
                return panel.read(IndexMath(fb, panel.form.lanes), (Affine(row), place))

            def tau(number: Value, first: Value = first) -> Element:
                return self.left_taus.read(IndexMath(fb, 1), (Affine(fb.add(first, number)),))

            block.take(first, taken, packed, tau)
            with q.each_panel(fb.udiv(first, q.form.width)) as other:
                block.apply(other, first, taken, adjoint=False)

    def _reflect_columns(self, step: Value, behind: Value) -> tuple[Element, Value]:
        """Makes zeros below a diagonal element, where the vector is left; (tau, beta)."""
        fb, matrix, rows = self.fb, self.matrix, self.matrix.form.rows
        first, row, scalars = fb.udiv(step, matrix.form.width), fb.constant(step.type, 0), IndexMath(fb, 1)
        with fb.loop(first, matrix.panels) as number:
            panel = matrix.panel(number)
            seen = panel.combination(lambda one: conjugate(fb, matrix.number(one, step)), behind, rows)
            self.beside.panel(number).set_row(row, seen)
        below = real_part(self.beside.number(row, step))
        tau, beta, scale = reflector(self, matrix.number(step, step), below)
        own, at = matrix.place(step)
        with fb.loop(behind, rows) as one:
            own.write(scalars, (Affine(one), Affine(at)), product(fb, own.number(one, at), scale))
        with fb.loop(first, matrix.panels) as number:
            panel = matrix.panel(number)
            factor, other = panel.spread(conjugate(fb, tau)), panel.spread(conjugate(fb, scale))
            top, seen = panel.row(step), self.beside.panel(number).row(row)
            common = tuple(
                product(fb, factor, total(fb, a, product(fb, other, b))) for a, b in zip(top, seen, strict=True)
            )
            common = self.behind(common, panel, number, step)
            panel.set_row(step, panel.without(top, one_like(tau), common))
            with fb.loop(behind, rows) as one:
                panel.set_row(one, panel.without(panel.row(one), matrix.number(one, step), common))
        return tau, beta

    def _reflect_rows(self, step: Value, behind: Value, tau: Element) -> None:
        """A * H for the rows behind a step."""
        fb, matrix = self.fb, self.matrix
        first, kinds = fb.udiv(behind, matrix.form.width), matrix.panel(0).zeros()
        with fb.loop(behind, matrix.form.rows) as one:
            with fb.carried_loop(first, matrix.panels, 1, flatten(kinds)) as each:
                held, row = unflatten(each.values, kinds), matrix.panel(each.index).row(one)
                vector = [conjugate(fb, part) for part in self.vector(step, each.index, step)]
                sums = [plus_product(fb, a, b, c) for a, b, c in zip(held, row, vector, strict=True)]
                each.yield_(*flatten(sums))
            parts = unflatten(each.results, kinds)
            whole = parts[0]
            for part in parts[1:]:
                whole = total(fb, whole, part)
            dots = [fb.reduce(part, fb.fadd) for part in flatten([whole])]
            factor = product(fb, tau, (dots[0], dots[1]) if len(dots) == 2 else dots[0])
            with fb.loop(first, matrix.panels) as number:
                panel = matrix.panel(number)
                panel.set_row(one, panel.without(panel.row(one), factor, self.vector(step, number, step)))
