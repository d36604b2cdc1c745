"""Eigenvalues of a real symmetric tridiagonal matrix by QL steps with implicit shifts (Martin and Wilkinson, 1968).

A step is a row of rotations of neighbouring rows and columns. They are found one after the other, each from the one
before it, and kept; then they are applied to the vectors a panel at a time, with one row staying in registers.
"""

from __future__ import annotations

from xlalite.backends.codegen.arrays.index import Affine, IndexMath
from xlalite.backends.codegen.arrays.ir_array import ArrayView
from xlalite.backends.codegen.elements.registers import flatten, unflatten
from xlalite.backends.codegen.kernels.linear_algebra.numbers import scaled, total
from xlalite.backends.codegen.kernels.linear_algebra.panel import Panel
from xlalite.backends.codegen.kernels.linear_algebra.panel_matrix import PanelMatrix
from xlalite.backends.codegen.llvm import I64, FunctionBuilder, Value
from xlalite.hlo.records import dataclass

_MOST_STEPS = 60
"""For one eigenvalue; two or three are usual."""


@dataclass(frozen=True, slots=True)
class Tridiagonal:
    """A tridiagonal matrix in memory, whose largest number is about one.

    Attributes:
        size: Its rows.
        diagonal: [size + 1], the last one being zero.
        beside: [size], the last one being zero.
        cosines: [size], room for the rotations of a step.
        sines: [size].
    """

    size: int
    diagonal: ArrayView
    beside: ArrayView
    cosines: ArrayView
    sines: ArrayView


class ImplicitQl:
    """The iteration; the rows of `vectors`, if there are any, turn with those of the matrix."""

    def __init__(self, fb: FunctionBuilder, matrix: Tridiagonal, vectors: PanelMatrix | None) -> None:
        """Emits into `fb`."""
        self.fb = fb
        self.matrix = matrix
        self.vectors = vectors
        self._math = IndexMath(fb, 1)

    def run(self) -> Value:
        """Makes the matrix diagonal; how many eigenvalues were not found."""
        fb, size = self.fb, self.matrix.size
        with fb.carried_loop(0, size, 1, (fb.constant(I64, 0),)) as each:
            low = each.index
            with fb.while_loop((fb.constant(I64, 0),)) as steps:
                high = self._end_of_block(low)
                is_open = fb.icmp("ne", high, low)
                steps.continue_while(fb.and_(is_open, fb.icmp("slt", steps.values[0], _MOST_STEPS)))
                self._step(low, high)
                if self.vectors is not None:
                    with self.vectors.each_panel() as panel:
                        self._turn(panel, low, high)
                steps.yield_(fb.add(steps.values[0], 1))
            each.yield_(fb.add(each.values[0], fb.zext(is_open, I64)))
        return each.results[0]

    def _read(self, view: ArrayView, place: Value) -> Value:
        found = view.read(self._math, (Affine(place),))
        assert isinstance(found, Value), "the matrix is real"
        return found

    def _write(self, view: ArrayView, place: Value, number: Value) -> None:
        view.write(self._math, (Affine(place),), number)

    def _end_of_block(self, low: Value) -> Value:
        """The first row from `low` on that nothing couples to the next one."""
        fb, matrix = self.fb, self.matrix
        with fb.while_loop((low,)) as search:
            (row,) = search.values
            beside = fb.fabs(self._read(matrix.beside, row))
            around = fb.fadd(
                fb.fabs(self._read(matrix.diagonal, row)), fb.fabs(self._read(matrix.diagonal, fb.add(row, 1)))
            )
            precision = 2.0**-24 if beside.type.bits == 32 else 2.0**-53
            limit = fb.fmul(fb.fadd(around, precision), precision)
            is_coupled = fb.fcmp("ogt", beside, limit)
            search.continue_while(fb.and_(is_coupled, fb.icmp("slt", row, matrix.size - 1)))
            search.yield_(fb.add(row, 1))
        return row

    def _step(self, low: Value, high: Value) -> None:
        """Finds the rotations of a step on the rows from `low` to `high`."""
        fb, matrix = self.fb, self.matrix
        first, beside = self._read(matrix.diagonal, low), self._read(matrix.beside, low)
        one, zero = fb.constant(first.type, 1.0), fb.constant(first.type, 0.0)
        slope = fb.fdiv(fb.fsub(self._read(matrix.diagonal, fb.add(low, 1)), first), fb.fadd(beside, beside))
        root = fb.copysign(fb.sqrt(fb.fadd(fb.fmul(slope, slope), 1.0)), slope)
        shifted = fb.fsub(self._read(matrix.diagonal, high), first)
        g = fb.fadd(shifted, fb.fdiv(beside, fb.fadd(slope, root)))
        with fb.carried_loop(0, fb.sub(high, low), 1, (g, one, one, zero)) as loop:
            g, sine, cosine, p = loop.values
            row = fb.sub(fb.sub(high, 1), loop.index)
            above = fb.add(row, 1)
            beside = self._read(matrix.beside, row)
            f, b = fb.fmul(sine, beside), fb.fmul(cosine, beside)
            length = fb.sqrt(fb.fadd(fb.fmul(f, f), fb.fmul(g, g)))
            self._write(matrix.beside, above, length)
            is_zero = fb.fcmp("oeq", length, 0.0)
            sine = fb.select(is_zero, 0.0, fb.fdiv(f, length))
            cosine = fb.select(is_zero, 1.0, fb.fdiv(g, length))
            g = fb.fsub(self._read(matrix.diagonal, above), p)
            twice = fb.fmul(fb.fadd(cosine, cosine), b)
            r = fb.fadd(fb.fmul(fb.fsub(self._read(matrix.diagonal, row), g), sine), twice)
            p = fb.fmul(sine, r)
            self._write(matrix.diagonal, above, fb.fadd(g, p))
            self._write(matrix.cosines, row, cosine)
            self._write(matrix.sines, row, sine)
            loop.yield_(fb.fsub(fb.fmul(cosine, r), b), sine, cosine, p)
        g, _, _, p = loop.results
        self._write(matrix.diagonal, low, fb.fsub(self._read(matrix.diagonal, low), p))
        self._write(matrix.beside, low, g)
        self._write(matrix.beside, high, zero)

    def _turn(self, panel: Panel, low: Value, high: Value) -> None:
        """Applies the rotations of a step to a panel of vectors."""
        fb, matrix = self.fb, self.matrix
        last = panel.row(high)
        with fb.carried_loop(0, fb.sub(high, low), 1, flatten(last)) as loop:
            row = fb.sub(fb.sub(high, 1), loop.index)
            lanes = panel.form.lanes
            cosine, sine = (fb.splat(self._read(view, row), lanes) for view in (matrix.cosines, matrix.sines))
            below, held = panel.row(row), unflatten(loop.values, last)
            panel.set_row(
                fb.add(row, 1),
                tuple(total(fb, scaled(fb, a, cosine), scaled(fb, b, sine)) for a, b in zip(held, below, strict=True)),
            )
            back = fb.fneg(sine)
            left = [total(fb, scaled(fb, b, cosine), scaled(fb, a, back)) for a, b in zip(held, below, strict=True)]
            loop.yield_(*flatten(left))
        panel.set_row(low, unflatten(loop.results, last))
