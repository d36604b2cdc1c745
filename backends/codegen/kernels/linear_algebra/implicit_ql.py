"""Eigenvalues of a real symmetric tridiagonal matrix by QL steps with implicit shifts (Martin and Wilkinson, 1968).

A step is a row of rotations of neighbouring rows and columns. They are found one after the other, each from the one
before it, and kept; then they are applied to the vectors a panel at a time, with one row staying in registers.

Steps go towards the smaller end of the diagonal. The other way, rotations between numbers far below the shift would
become zero before they reach the end, and the step would not know its shift there.
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

_MOST_STEPS = 30
"""For one eigenvalue, on average; two or three are usual."""


@dataclass(frozen=True, slots=True)
class Tridiagonal:
    """A tridiagonal matrix in memory, whose largest number is about one.

    Attributes:
        size: Its rows.
        diagonal: [size + 1], the last one being zero.
        beside: [size + 1], the last but one being zero; the last one is never read.
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
        with fb.carried_loop(0, size, 1, (fb.constant(I64, 0),) * 2) as each:
            low = each.index
            with fb.while_loop((each.values[0],)) as steps:
                high = self._end_of_block(low)
                is_open = fb.icmp("ne", high, low)
                steps.continue_while(fb.and_(is_open, fb.icmp("slt", steps.values[0], _MOST_STEPS * size)))
                block = self._block(low, high)
                self._step(block)
                if self.vectors is not None:
                    with self.vectors.each_panel() as panel:
                        self._turn(panel, block)
                steps.yield_(fb.add(steps.values[0], 1))
            each.yield_(steps.results[0], fb.add(each.values[1], fb.zext(is_open, I64)))
        return each.results[1]

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

    def _block(self, low: Value, high: Value) -> _Block:
        """The rows from `low` to `high`; a step on them starts at the smaller number."""
        fb, diagonal = self.fb, self.matrix.diagonal
        is_up = fb.fcmp("olt", fb.fabs(self._read(diagonal, high)), fb.fabs(self._read(diagonal, low)))
        start, end = fb.select(is_up, high, low), fb.select(is_up, low, high)
        return _Block(fb, start, end, fb.select(is_up, fb.constant(I64, -1), 1), self.matrix.size)

    def _step(self, block: _Block) -> None:
        """Finds the rotations of a step on the rows of a block."""
        fb, matrix = self.fb, self.matrix
        first, beside = self._read(matrix.diagonal, block.start), self._read(matrix.beside, block.coupling(block.start))
        one, zero = fb.constant(first.type, 1.0), fb.constant(first.type, 0.0)
        second = self._read(matrix.diagonal, fb.add(block.start, block.stride))
        slope = fb.fdiv(fb.fsub(second, first), fb.fadd(beside, beside))
        root = fb.copysign(fb.sqrt(fb.fadd(fb.fmul(slope, slope), 1.0)), slope)
        shifted = fb.fsub(self._read(matrix.diagonal, block.end), first)
        g = fb.fadd(shifted, fb.fdiv(beside, fb.fadd(slope, root)))
        smallest = 2.0**-102 if first.type.bits == 32 else 2.0**-969
        with fb.carried_loop(0, block.rotations, 1, (g, one, one, zero)) as loop:
            g, sine, cosine, p = loop.values
            above, row = block.rows(loop.index)
            beside = self._read(matrix.beside, block.coupling(row))
            f, b = fb.fmul(sine, beside), fb.fmul(cosine, beside)
            square = fb.fadd(fb.fmul(f, f), fb.fmul(g, g))
            length = fb.sqrt(square)
            self._write(matrix.beside, block.coupling(above), length)
            # Squares without all of their digits make no rotation; numbers of that size couple nothing.
            is_zero = fb.fcmp("olt", square, smallest)
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
        self._write(matrix.diagonal, block.start, fb.fsub(self._read(matrix.diagonal, block.start), p))
        self._write(matrix.beside, block.coupling(block.start), g)
        self._write(matrix.beside, block.coupling(block.end), zero)

    def _turn(self, panel: Panel, block: _Block) -> None:
        """Applies the rotations of a step to a panel of vectors."""
        fb, matrix = self.fb, self.matrix
        last = panel.row(block.end)
        with fb.carried_loop(0, block.rotations, 1, flatten(last)) as loop:
            above, row = block.rows(loop.index)
            lanes = panel.form.lanes
            cosine, sine = (fb.splat(self._read(view, row), lanes) for view in (matrix.cosines, matrix.sines))
            below, held = panel.row(row), unflatten(loop.values, last)
            panel.set_row(
                above,
                tuple(total(fb, scaled(fb, a, cosine), scaled(fb, b, sine)) for a, b in zip(held, below, strict=True)),
            )
            back = fb.fneg(sine)
            left = [total(fb, scaled(fb, b, cosine), scaled(fb, a, back)) for a, b in zip(held, below, strict=True)]
            loop.yield_(*flatten(left))
        panel.set_row(block.start, unflatten(loop.results, last))


@dataclass(frozen=True, slots=True)
class _Block:
    """Rows that are coupled, in the direction of a step: the rotations go from the end to the start.

    Attributes:
        fb: Where to emit.
        start: The row whose eigenvalue is sought.
        end: The row at the other end.
        stride: 1, or -1 if the start is the last row.
        size: Rows of the matrix.
    """

    fb: FunctionBuilder
    start: Value
    end: Value
    stride: Value
    size: int

    @property
    def rotations(self) -> Value:
        """How many there are in a step."""
        return self.fb.mul(self.fb.sub(self.end, self.start), self.stride)

    def rows(self, number: Value) -> tuple[Value, Value]:
        """The rows that a rotation turns, from the end on."""
        above = self.fb.sub(self.end, self.fb.mul(number, self.stride))
        return above, self.fb.sub(above, self.stride)

    def coupling(self, row: Value) -> Value:
        """Where the number beside a row and the next one towards the end stands; `size` in front of the first row."""
        fb = self.fb
        return fb.umin(fb.add(row, fb.ashr(fb.sub(self.stride, 1), 1)), self.size)
