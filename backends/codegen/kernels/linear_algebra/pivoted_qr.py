"""The kernel of LAPACK's geqp3: reflections that make zeros below the diagonal, the longest column always coming next.

Columns that are named go before all others, in their order. The matrices of a batch are split over threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xlalite.backends.codegen.arrays.index import Affine, Index, IndexMath, sum_of
from xlalite.backends.codegen.arrays.ir_array import ArrayView
from xlalite.backends.codegen.arrays.types import representation
from xlalite.backends.codegen.kernels.kernel import KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry
from xlalite.backends.codegen.kernels.linear_algebra.batched import BatchedKernel
from xlalite.backends.codegen.kernels.linear_algebra.numbers import (
    chosen,
    conjugate,
    from_real,
    product,
    real_part,
    scaled,
)
from xlalite.backends.codegen.kernels.linear_algebra.panel import Panel, PanelForm
from xlalite.backends.codegen.kernels.linear_algebra.panel_matrix import PanelMatrix, matrix_bytes
from xlalite.backends.codegen.kernels.linear_algebra.row_reflections import RowReflections
from xlalite.backends.codegen.kernels.scratch import aligned
from xlalite.backends.codegen.llvm import I32, I64, Value
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.passes.fusion.kernel_shape import KernelShape


def plan_pivoted_qr(request: KernelRequest, shape: KernelShape) -> PivotedQrKernel:
    """The kernel of a geqp3."""
    operand = request.body.root.operand(0).shape
    *batch, rows, columns = operand.dims
    form = PanelForm.of(request.target, operand.dtype, rows, columns)
    return PivotedQrKernel(request, tuple(batch), columns, form)


@dataclass(frozen=True, slots=True)
class PivotedQrKernel(BatchedKernel):
    """A factorisation into reflections and a triangle whose diagonal does not grow.

    Attributes:
        columns: Columns of each matrix.
        form: How it lies in scratch memory.
    """

    columns: int
    form: PanelForm

    @property
    def parts(self) -> tuple[int, ...]:
        """The matrix, a row, the numbers of its columns, and squares of their lengths."""
        squares = aligned(self._padded * representation(self.form.dtype).register.size_bytes)
        row = matrix_bytes(replace(self.form, rows=1), self.columns)
        return matrix_bytes(self.form, self.columns), row, aligned(8 * self.columns), squares

    @property
    def _padded(self) -> int:
        return -(-self.columns // self.form.width) * self.form.width

    def emit_matrix(self, entry: KernelEntry, parts: Sequence[Value], batch: Index) -> None:
        """Factors it."""
        fb, rows, dtype, scalars = entry.fb, self.form.rows, self.form.dtype, IndexMath(entry.fb, 1)
        matrix = PanelMatrix(fb, self.form, self.columns, parts[0])
        beside = PanelMatrix(fb, replace(self.form, rows=1), self.columns, parts[1])
        order = ArrayView.row_major(parts[2], DType.S64, (self.columns,))
        squares = ArrayView.row_major(parts[3], dtype.component, (self._padded,))
        taus = entry.outputs[2]
        matrix.read_from(entry, entry.sources[self.request.body.root.operand(0)], batch)
        factor, _ = matrix.normalise()
        reflections = RowReflections(fb, matrix, beside, squares)
        with fb.loop(0, self.columns) as column:
            order.write(scalars, (Affine(column),), column)
        free = self._take_named(entry, matrix, order, batch)
        with fb.loop(0, min(rows, self.columns)) as step:
            with fb.if_(fb.icmp("sge", step, free)):
                self._exchange(matrix, order, step, self._longest(matrix, squares, step))
            tau, beta = reflections.reflect_columns(step, step, rows)
            panel, at = matrix.place(step)
            panel.write(scalars, (Affine(step), Affine(at)), from_real(tau, beta))
            taus.write(scalars, (*batch, Affine(step)), tau)
        self._write(entry, matrix, batch, factor)
        with fb.loop(0, self.columns) as column:
            number = real_part(order.read(scalars, (Affine(column),)))
            entry.outputs[1].write(scalars, (*batch, Affine(column)), fb.trunc(fb.add(number, 1), I32))

    def _take_named(self, entry: KernelEntry, matrix: PanelMatrix, order: ArrayView, batch: Index) -> Value:
        """Brings the columns that are named to the front; how many there are."""
        fb = entry.fb
        named = entry.sources[self.request.body.root.operand(1)]
        with fb.carried_loop(0, self.columns, 1, (fb.constant(I64, 0),)) as loop:
            (free,) = loop.values
            is_named = fb.icmp("ne", real_part(named(entry.emitter(1), (*batch, Affine(loop.index)))), 0)
            with fb.if_(is_named):
                self._exchange(matrix, order, free, loop.index)
            loop.yield_(fb.add(free, fb.zext(is_named, I64)))
        return loop.results[0]

    def _exchange(self, matrix: PanelMatrix, order: ArrayView, one: Value, other: Value) -> None:
        """Exchanges two columns."""
        fb, scalars = matrix.fb, IndexMath(matrix.fb, 1)
        places = [matrix.place(column) for column in (one, other)]
        with fb.if_(fb.icmp("ne", one, other)):
            with fb.loop(0, self.form.rows) as row:
                numbers = [panel.number(row, at) for panel, at in places]
                for (panel, at), number in zip(reversed(places), numbers, strict=True):
                    panel.write(scalars, (Affine(row), Affine(at)), number)
            numbers = [order.read(scalars, (Affine(column),)) for column in (one, other)]
            for column, number in zip((other, one), numbers, strict=True):
                order.write(scalars, (Affine(column),), number)

    def _longest(self, matrix: PanelMatrix, squares: ArrayView, step: Value) -> Value:
        """The first of the longest columns from one on, of the rows from its own on; NaN is longest."""
        fb, form, scalars = matrix.fb, self.form, IndexMath(matrix.fb, 1)
        with fb.loop(fb.udiv(step, form.width), matrix.panels) as number:
            panel = matrix.panel(number)
            nothing = [real_part(part) for part in panel.zeros()]
            with fb.carried_loop(step, form.rows, 1, nothing) as loop:
                own = [real_part(product(fb, conjugate(fb, part), part)) for part in panel.row(loop.index)]
                loop.yield_(*(fb.fadd(a, b) for a, b in zip(loop.values, own, strict=True)))
            for place, part in zip(panel.columns(), loop.results, strict=True):
                at = Affine(sum_of(fb.mul(number, form.width), place.base), 1)
                squares.write(IndexMath(fb, form.lanes), (at,), part)
        first = real_part(squares.read(scalars, (Affine(step),)))
        with fb.carried_loop(fb.add(step, 1), self.columns, 1, (first, step)) as search:
            best, found = search.values
            length = real_part(squares.read(scalars, (Affine(search.index),)))
            is_longer = fb.and_(fb.fcmp("ugt", length, best), fb.fcmp("oeq", best, best))
            search.yield_(fb.select(is_longer, length, best), fb.select(is_longer, search.index, found))
        return search.results[1]

    def _write(self, entry: KernelEntry, matrix: PanelMatrix, batch: Index, factor: Value) -> None:
        """Writes R, and below it the vectors of reflections."""
        fb, lanes = entry.fb, self.form.lanes
        back = fb.fdiv(fb.constant(factor.type, 1.0), factor)

        def visit(panel: Panel, row: Value, at: Affine, place: Affine, mask: Value | None) -> None:
            math = IndexMath(fb, lanes)
            element = panel.read(math, (Affine(row), place))
            is_vector = fb.icmp("slt", math.vector(at), fb.splat(row, lanes))
            element = chosen(fb, is_vector, element, scaled(fb, element, fb.splat(back, lanes)))
            entry.outputs[0].write(math, (*batch, Affine(row), at), element, mask)

        matrix.for_vectors(visit)
