"""Matrices become upper Hessenberg ones, and LAPACK's gehrd: Q^H * A * Q, Q being a product of Householder reflections.

Each reflection makes zeros below the subdiagonal, where its vector is left. The matrices of a batch are split over
threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xlalite.backends.codegen.arrays.index import Affine, Index, IndexMath
from xlalite.backends.codegen.arrays.ir_array import ArrayView
from xlalite.backends.codegen.arrays.types import representation, zero_element
from xlalite.backends.codegen.kernels.kernel import KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry
from xlalite.backends.codegen.kernels.linear_algebra.batched import BatchedKernel
from xlalite.backends.codegen.kernels.linear_algebra.numbers import chosen, conjugate, from_real, scaled
from xlalite.backends.codegen.kernels.linear_algebra.panel import Panel, PanelForm
from xlalite.backends.codegen.kernels.linear_algebra.panel_matrix import PanelMatrix, matrix_bytes
from xlalite.backends.codegen.kernels.linear_algebra.row_reflections import RowReflections
from xlalite.backends.codegen.kernels.scratch import aligned
from xlalite.backends.codegen.llvm import I32, I64, Value
from xlalite.hlo.ops.rules.lapack_calls import lapack_call
from xlalite.hlo.records import dataclass
from xlalite.passes.fusion.kernel_shape import KernelShape


def plan_hessenberg(request: KernelRequest, shape: KernelShape) -> HessenbergKernel:
    """The kernel of a gehrd."""
    root = request.body.root
    asked = lapack_call(root)
    assert asked is not None, "the kind is for such calls only"
    size = asked.sizes[0][0]
    form = PanelForm.of(request.target, root.operand(0).shape.dtype, size, size)
    return HessenbergKernel(
        request, asked.batch, form, asked.options.get("low", 1) - 1, asked.options.get("high", size)
    )


@dataclass(frozen=True, slots=True)
class HessenbergReduction(RowReflections):
    """The reduction."""

    def run(self, low: Value | int, high: Value | int) -> None:
        """Reduces what stands in the rows and columns [low, high); to their right and above is only multiplied."""
        fb, matrix, scalars = self.fb, self.matrix, IndexMath(self.fb, 1)
        start = fb.constant(I64, low) if isinstance(low, int) else low
        end = fb.constant(I64, high) if isinstance(high, int) else high
        with fb.loop(0, matrix.columns) as step:
            self.taus.write(scalars, (Affine(step),), zero_element(matrix.form.dtype, 1))
        with fb.loop(start, fb.sub(end, 1)) as step:
            top = fb.add(step, 1)
            tau, beta = self.reflect_columns(top, step, end)
            self.taus.write(scalars, (Affine(step),), tau)
            own, at = matrix.place(step)
            own.write(scalars, (Affine(top), Affine(at)), from_real(tau, beta))
            first = fb.udiv(top, matrix.form.width)
            self._stand_vector_up(step, top, end)
            self.reflect_rows((0, end), first, tau, lambda number: self.beside.panel(number).row(fb.constant(I64, 0)))

    def _stand_vector_up(self, step: Value, top: Value, end: Value) -> None:
        """Makes the row beside the matrix the adjoint of the vector in a column."""
        fb, scalars, row = self.fb, IndexMath(self.fb, 1), self.fb.constant(I64, 0)
        one = from_real(self.matrix.number(top, step), 1.0)
        with self.beside.each_panel(fb.udiv(top, self.beside.form.width)) as panel:
            panel.set_row(row, panel.zeros())
        with fb.loop(top, end) as place:
            number = conjugate(fb, self.matrix.number(place, step))
            panel, at = self.beside.place(place)
            panel.write(scalars, (Affine(row), Affine(at)), chosen(fb, fb.icmp("eq", place, top), one, number))


@dataclass(frozen=True, slots=True)
class HessenbergKernel(BatchedKernel):
    """A reduction whose reflections are kept.

    Attributes:
        form: How a matrix lies in scratch memory.
        low: The first row and column that are not triangular already.
        high: One past the last.
    """

    form: PanelForm
    low: int
    high: int

    @property
    def parts(self) -> tuple[int, ...]:
        """The matrix, a row, and taus."""
        size = self.form.rows
        taus = aligned(size * representation(self.form.dtype).size_bytes)
        return matrix_bytes(self.form, size), matrix_bytes(replace(self.form, rows=1), size), taus

    def emit_matrix(self, entry: KernelEntry, parts: Sequence[Value], batch: Index) -> None:
        """Reduces it."""
        fb, size, scalars = entry.fb, self.form.rows, IndexMath(entry.fb, 1)
        matrix = PanelMatrix(fb, self.form, size, parts[0])
        beside = PanelMatrix(fb, replace(self.form, rows=1), size, parts[1])
        taus = ArrayView.row_major(parts[2], self.form.dtype, (size,))
        matrix.read_from(entry, entry.sources[self.request.body.root.operand(0)], batch)
        factor, _ = matrix.normalise()
        HessenbergReduction(fb, matrix, beside, taus).run(self.low, self.high)
        self._write(entry, matrix, batch, factor)
        with fb.loop(0, size - 1) as step:
            entry.outputs[1].write(scalars, (*batch, Affine(step)), taus.read(scalars, (Affine(step),)))
        entry.outputs[2].write(scalars, batch, fb.constant(I32, 0))

    def _write(self, entry: KernelEntry, matrix: PanelMatrix, batch: Index, factor: Value) -> None:
        """Writes the result, in which only the vectors of reflections have not been multiplied."""
        fb, lanes = entry.fb, self.form.lanes
        back = fb.fdiv(fb.constant(factor.type, 1.0), factor)

        def visit(panel: Panel, row: Value, at: Affine, place: Affine, mask: Value | None) -> None:
            math = IndexMath(fb, lanes)
            element, columns = panel.read(math, (Affine(row), place)), math.vector(at)
            is_inside = fb.and_(fb.icmp("sge", columns, self.low), fb.icmp("slt", columns, self.high - 1))
            is_vector = fb.and_(is_inside, fb.icmp("slt", columns, fb.splat(fb.sub(row, 1), lanes)))
            is_vector = fb.and_(is_vector, fb.splat(fb.icmp("slt", row, self.high), lanes))
            element = chosen(fb, is_vector, element, scaled(fb, element, fb.splat(back, lanes)))
            entry.outputs[0].write(math, (*batch, Affine(row), at), element, mask)

        matrix.for_vectors(visit)
