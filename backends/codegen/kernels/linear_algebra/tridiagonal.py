"""Hermitian matrices become real tridiagonal ones: Q^H * A * Q, Q being a product of Householder reflections.

A step reflects rows and columns at a time: A - v * w^H - w * v^H. As both triangles are there, a row of A is a column
of it, conjugated, and all that is done to vectors is done to rows.
"""

from __future__ import annotations

from xlalite.backends.codegen.arrays.index import Affine, Index, IndexMath
from xlalite.backends.codegen.arrays.ir_array import ArrayView
from xlalite.backends.codegen.arrays.types import Element, representation
from xlalite.backends.codegen.elements.elements import ElementSource
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry
from xlalite.backends.codegen.kernels.linear_algebra.numbers import (
    chosen,
    conjugate,
    minus_product,
    product,
    real_part,
    scaled,
    total,
)
from xlalite.backends.codegen.kernels.linear_algebra.panel import Panel
from xlalite.backends.codegen.kernels.linear_algebra.panel_matrix import PanelMatrix
from xlalite.backends.codegen.kernels.linear_algebra.row_reflections import RowReflections
from xlalite.backends.codegen.llvm import I64, FunctionBuilder, Value
from xlalite.hlo.records import dataclass


@dataclass(frozen=True, slots=True)
class TridiagonalReduction(RowReflections):
    """The reduction; the diagonals end with zeros.

    Attributes:
        diagonal: [columns + 1] of real numbers.
        off_diagonal: [columns + 1] of real numbers.
    """

    diagonal: ArrayView
    off_diagonal: ArrayView

    def run(self) -> None:
        """Reduces the matrix."""
        fb, size, math = self.fb, self.matrix.columns, IndexMath(self.fb, 1)
        with fb.loop(0, size - 1) as step:
            at, behind = (Affine(step),), fb.add(step, 1)
            self.diagonal.write(math, at, real_part(self.matrix.number(step, step)))
            tau, beta = self.reflection(step, behind)
            self.taus.write(math, at, tau)
            self.off_diagonal.write(math, at, beta)
            self._reflect(step, behind, tau)
        zero = fb.constant(representation(self.matrix.form.dtype).register, 0.0)
        last = real_part(self.matrix.number(math.scalar(size - 1), math.scalar(size - 1)))
        self.diagonal.write(math, (Affine(size - 1),), last)
        self.diagonal.write(math, (Affine(size),), zero)
        self.off_diagonal.write(math, (Affine(size - 1),), zero)

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
            for a, b in zip(found, self.vector(step, each.index, step), strict=True):
                common = fb.fadd(common, fb.reduce(real_part(product(fb, a, conjugate(fb, b))), fb.fadd))
            seen.set_row(row, found)
            each.yield_(common)
        # w^H = conj(tau) * v^H * A - |tau|^2 / 2 * (v^H * A * v) * v^H.
        size_of_tau = real_part(product(fb, conjugate(fb, tau), tau))
        share = fb.fmul(fb.fmul(size_of_tau, each.results[0]), -0.5)
        with fb.loop(first, matrix.panels) as number:
            panel, seen = matrix.panel(number), self.beside.panel(number)
            factor, part, v = panel.spread(conjugate(fb, tau)), fb.splat(share, panel.form.lanes), panel.row(step)
            both = zip(seen.row(row), v, strict=True)
            w = tuple(total(fb, product(fb, factor, a), scaled(fb, b, part)) for a, b in both)
            seen.set_row(row, self.behind(w, panel, number, step))
        with fb.loop(first, matrix.panels) as number:
            panel, seen = matrix.panel(number), self.beside.panel(number)
            v, w = self.vector(step, number, step), seen.row(row)
            with fb.loop(behind, size) as one:
                of_v = panel.spread(conjugate(fb, matrix.number(step, one)))
                of_w = panel.spread(conjugate(fb, self.beside.number(row, one)))
                left = [minus_product(fb, a, of_v, b) for a, b in zip(panel.row(one), w, strict=True)]
                panel.set_row(one, tuple(minus_product(fb, a, of_w, b) for a, b in zip(left, v, strict=True)))


def read_hermitian(
    entry: KernelEntry,
    matrix: PanelMatrix,
    operand: ElementSource,
    batch: Index,
    *,
    is_lower: bool,
    is_flipped: bool = False,
) -> None:
    """Fills both triangles of a matrix from one; rows and columns may count from the end."""
    fb, lanes = entry.fb, matrix.form.lanes

    def visit(panel: Panel, row: Value, at: Affine, place: Affine, mask: Value | None) -> None:
        emitter = entry.emitter(lanes, mask)
        columns, edge = emitter.math.vector(at), fb.splat(row, lanes)
        both = [flipped(fb, each, matrix.columns) if is_flipped else each for each in (Affine(row), at)]
        own, other = operand(emitter, (*batch, *both)), conjugate(fb, operand(emitter, (*batch, *reversed(both))))
        element = chosen(fb, fb.icmp("sle" if is_lower else "sge", columns, edge), own, other)
        is_diagonal = fb.icmp("eq", columns, edge)
        if isinstance(element, tuple):
            element = element[0], fb.select(is_diagonal, 0.0, element[1])
        panel.write(emitter.math, (Affine(row), place), element)

    matrix.for_vectors(visit)


def flipped(fb: FunctionBuilder, position: Affine, size: int) -> Affine:
    """The same position counted from the end."""
    return Affine(fb.sub(fb.constant(I64, size - 1), IndexMath(fb, 1).scalar(position.base)), -position.step)
