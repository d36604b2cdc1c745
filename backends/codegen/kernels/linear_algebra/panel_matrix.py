"""Matrices in scratch memory: their panels, one behind the other, each row after row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from xlalite.backends.codegen.arrays.index import Affine, Index, IndexMath, sum_of
from xlalite.backends.codegen.arrays.ir_array import ArrayView, lanes_below
from xlalite.backends.codegen.arrays.types import Element, representation
from xlalite.backends.codegen.elements.elements import ElementSource
from xlalite.backends.codegen.elements.registers import flatten
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry
from xlalite.backends.codegen.kernels.linear_algebra.numbers import chosen, near_inverse, one_like, scaled
from xlalite.backends.codegen.kernels.linear_algebra.panel import Panel, PanelForm
from xlalite.backends.codegen.llvm import I8, I64, FunctionBuilder, Value, constant

VisitVectors = Callable[[Panel, Value, Affine, Affine, "Value | None"], None]
"""(panel, row, first column of the matrix, first column in the panel, mask) -> emits the work for a vector."""


class PanelMatrix:
    """A matrix at an address. Lanes behind the last column are computed with and mean nothing."""

    def __init__(self, fb: FunctionBuilder, form: PanelForm, columns: int, pointer: Value) -> None:
        """Emits into `fb`."""
        self.fb = fb
        self.form = form
        self.columns = columns
        self.pointer = pointer

    @property
    def panels(self) -> int:
        """How many panels there are."""
        return panel_count(self.form, self.columns)

    def panel(self, number: Value | int) -> Panel:
        """A panel."""
        position = constant(I64, number) if isinstance(number, int) else number
        return Panel(self.fb, self.form, self.fb.gep(I8, self.pointer, self.fb.mul(position, self.form.size_bytes)))

    def place(self, column: Value) -> tuple[Panel, Value]:
        """The panel of a column, and where it lies in it."""
        width = self.form.width
        return self.panel(self.fb.udiv(column, width)), self.fb.urem(column, width)

    def number(self, row: Value, column: Value) -> Element:
        """One number."""
        panel, at = self.place(column)
        return panel.number(row, at)

    @contextmanager
    def each_panel(self, first: Value | int = 0) -> Iterator[Panel]:
        """A loop over the panels from one on."""
        with self.fb.loop(first, self.panels) as number:
            yield self.panel(number)

    def read_from(self, entry: KernelEntry, source: ElementSource, batch: Index) -> None:
        """Fills it with a matrix; zeros follow the last column."""

        def visit(panel: Panel, row: Value, at: Affine, place: Affine, mask: Value | None) -> None:
            emitter = entry.emitter(self.form.lanes, mask)
            panel.write(emitter.math, (Affine(row), place), source(emitter, (*batch, Affine(row), at)))

        self.for_vectors(visit)

    def write_to(self, output: ArrayView, batch: Index) -> None:
        """Writes it into an array."""

        def visit(panel: Panel, row: Value, at: Affine, place: Affine, mask: Value | None) -> None:
            math = IndexMath(self.fb, self.form.lanes)
            output.write(math, (*batch, Affine(row), at), panel.read(math, (Affine(row), place)), mask)

        self.for_vectors(visit)

    def normalise(self) -> tuple[Value, Value]:
        """Multiplies all with the power of two that brings the largest number near to one: (it, whether all is finite).

        Zero times what is not finite is NaN.
        """
        fb, rows = self.fb, self.form.rows
        zero = fb.constant(representation(self.form.dtype).register, 0.0)
        with fb.carried_loop(0, rows, 1, (zero, zero)) as each:
            with fb.carried_loop(0, self.panels, 1, each.values) as loop:
                largest, strange = loop.values
                for part in flatten(self.panel(loop.index).row(each.index)):
                    largest = fb.maxnum(largest, fb.reduce(fb.fabs(part), fb.maxnum))
                    strange = fb.fadd(strange, fb.reduce(fb.fmul(part, 0.0), fb.fadd))
                loop.yield_(largest, strange)
            each.yield_(*loop.results)
        factor = near_inverse(fb, each.results[0])
        with fb.loop(0, rows) as row, self.each_panel() as panel:
            scale = fb.splat(factor, self.form.lanes)
            panel.set_row(row, tuple(scaled(fb, vector, scale) for vector in panel.row(row)))
        return factor, fb.fcmp("oeq", each.results[1], 0.0)

    def set_transposed(self, source: PanelMatrix, ones: int) -> None:
        """Makes it another one, transposed, behind so many rows and columns of the unit matrix."""
        fb, lanes = self.fb, self.form.lanes

        def visit(panel: Panel, row: Value, at: Affine, place: Affine, mask: Value | None) -> None:
            math = IndexMath(fb, lanes)
            columns, own, nothing = math.vector(at), fb.splat(row, lanes), panel.zeros()[0]
            inside = fb.and_(fb.icmp("sge", columns, ones), fb.icmp("slt", columns, self.columns))
            inside = fb.and_(inside, fb.icmp("sge", own, ones))
            is_one = fb.and_(fb.icmp("eq", columns, own), fb.icmp("slt", columns, ones))
            there, column = source.place(fb.smax(fb.sub(row, ones), 0))
            element = there.read(math, (math.add_constant(at, -ones), Affine(column)), inside)
            element = chosen(fb, inside, element, chosen(fb, is_one, one_like(nothing), nothing))
            panel.write(math, (Affine(row), place), element)

        self.for_vectors(visit)

    def for_vectors(self, visit: VisitVectors) -> None:
        """Visits all vectors, row by row."""
        fb, lanes, width = self.fb, self.form.lanes, self.form.width
        with fb.loop(0, self.form.rows) as row, fb.loop(0, self.panels) as number:
            panel, begin = self.panel(number), fb.mul(number, width)
            for place in panel.columns():
                at = IndexMath(fb, lanes).scalar(sum_of(begin, place.base))
                mask = None if self.columns % width == 0 else lanes_below(fb, at, self.columns, lanes)
                visit(panel, row, Affine(at, 1), place, mask)


def set_unit(matrix: PanelMatrix) -> None:
    """Makes a matrix the unit matrix."""

    def visit(panel: Panel, row: Value, at: Affine, place: Affine, mask: Value | None) -> None:
        fb, math = matrix.fb, IndexMath(matrix.fb, matrix.form.lanes)
        nothing = panel.zeros()[0]
        is_diagonal = fb.icmp("eq", math.vector(at), math.vector(Affine(row)))
        panel.write(math, (Affine(row), place), chosen(fb, is_diagonal, one_like(nothing), nothing))

    matrix.for_vectors(visit)


def panel_count(form: PanelForm, columns: int) -> int:
    """Panels of a matrix of so many columns."""
    return -(-columns // form.width)


def matrix_bytes(form: PanelForm, columns: int) -> int:
    """Bytes of its panels."""
    return panel_count(form, columns) * form.size_bytes
