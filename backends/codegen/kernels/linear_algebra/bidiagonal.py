"""Matrices that are not wide become real upper bidiagonal ones: Q^H * A * P, products of Householder reflections.

Reflections from the left and from the right take turns; those from the left leave their vectors in columns.
"""

from __future__ import annotations

from xlalite.backends.codegen.arrays.index import Affine, IndexMath
from xlalite.backends.codegen.arrays.ir_array import ArrayView
from xlalite.backends.codegen.arrays.types import representation
from xlalite.backends.codegen.kernels.linear_algebra.row_reflections import RowReflections
from xlalite.hlo.records import dataclass


@dataclass(frozen=True, slots=True)
class BidiagonalReduction(RowReflections):
    """The reduction; off_diagonal[k] stands above diagonal[k], the first one being zero.

    Attributes:
        diagonal: [columns + 1] of real numbers.
        off_diagonal: [columns + 1] of real numbers.
        left_taus: Of the reflections from the left.
    """

    diagonal: ArrayView
    off_diagonal: ArrayView
    left_taus: ArrayView

    def run(self) -> None:
        """Reduces the matrix."""
        fb, size, math = self.fb, self.matrix.columns, IndexMath(self.fb, 1)
        zero = fb.constant(representation(self.matrix.form.dtype).register, 0.0)
        self.off_diagonal.write(math, (Affine(0),), zero)
        with fb.loop(0, size) as step:
            at, behind = (Affine(step),), fb.add(step, 1)
            tau, beta = self.reflect_columns(step, step, self.matrix.form.rows)
            self.left_taus.write(math, at, tau)
            self.diagonal.write(math, at, beta)
            with fb.if_(fb.icmp("slt", behind, size)):
                tau, beta = self.reflection(step, behind)
                self.taus.write(math, at, tau)
                self.off_diagonal.write(math, (Affine(behind),), beta)
                rows, first = (behind, self.matrix.form.rows), fb.udiv(behind, self.matrix.form.width)
                self.reflect_rows(rows, first, tau, lambda number: self.vector(step, number, step))
