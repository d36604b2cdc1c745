"""The kernel of LAPACK's sytrd: Hermitian matrices as tridiagonal ones between reflections, which are kept.

What stands in the upper triangle is the lower one of the matrix whose rows and columns count from the end. The matrices
of a batch are split over threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xlalite.backends.codegen.arrays.index import Affine, Index, IndexMath
from xlalite.backends.codegen.arrays.ir_array import ArrayView
from xlalite.backends.codegen.arrays.types import representation
from xlalite.backends.codegen.kernels.kernel import KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry
from xlalite.backends.codegen.kernels.linear_algebra.batched import BatchedKernel
from xlalite.backends.codegen.kernels.linear_algebra.numbers import chosen, conjugate, from_real, real_part
from xlalite.backends.codegen.kernels.linear_algebra.panel import Panel, PanelForm
from xlalite.backends.codegen.kernels.linear_algebra.panel_matrix import PanelMatrix, matrix_bytes
from xlalite.backends.codegen.kernels.linear_algebra.tridiagonal import TridiagonalReduction, flipped, read_hermitian
from xlalite.backends.codegen.kernels.scratch import aligned
from xlalite.backends.codegen.llvm import I32, Value
from xlalite.hlo.ops.rules.lapack_calls import lapack_call
from xlalite.hlo.records import dataclass
from xlalite.passes.fusion.kernel_shape import KernelShape


def plan_tridiagonal(request: KernelRequest, shape: KernelShape) -> TridiagonalKernel:
    """The kernel of a sytrd."""
    root = request.body.root
    asked = lapack_call(root)
    assert asked is not None, "the kind is for such calls only"
    size = asked.sizes[0][0]
    form = PanelForm.of(request.target, root.operand(0).shape.dtype, size, size)
    return TridiagonalKernel(request, asked.batch, form, is_lower=asked.letter("uplo") == "L")


@dataclass(frozen=True, slots=True)
class TridiagonalKernel(BatchedKernel):
    """A reduction whose reflections are kept.

    Attributes:
        form: How a matrix lies in scratch memory.
        is_lower: Whether the lower triangle is read, and written.
    """

    form: PanelForm
    is_lower: bool

    @property
    def parts(self) -> tuple[int, ...]:
        """The matrix, a row, taus and two diagonals."""
        size, held = self.form.rows, representation(self.form.dtype)
        arrays = [(size + 1) * each for each in (held.size_bytes, *(held.register.size_bytes,) * 2)]
        row = matrix_bytes(replace(self.form, rows=1), size)
        return matrix_bytes(self.form, size), row, *map(aligned, arrays)

    def emit_matrix(self, entry: KernelEntry, parts: Sequence[Value], batch: Index) -> None:
        """Reduces it."""
        fb, size, dtype, scalars = entry.fb, self.form.rows, self.form.dtype, IndexMath(entry.fb, 1)
        matrix = PanelMatrix(fb, self.form, size, parts[0])
        beside = PanelMatrix(fb, replace(self.form, rows=1), size, parts[1])
        taus = ArrayView.row_major(parts[2], dtype, (size + 1,))
        diagonal, below = (ArrayView.row_major(part, dtype.component, (size + 1,)) for part in parts[3:])
        operand = entry.sources[self.request.body.root.operand(0)]
        read_hermitian(entry, matrix, operand, batch, is_lower=True, is_flipped=not self.is_lower)
        factor, _ = matrix.normalise()
        TridiagonalReduction(fb, matrix, beside, taus, diagonal, below).run()
        with fb.loop(0, size) as row:
            for view in (diagonal, below):
                number = real_part(view.read(scalars, (Affine(row),)))
                view.write(scalars, (Affine(row),), fb.fdiv(number, factor))
        self._write(entry, matrix, batch, diagonal, below)
        for view, output, count in zip(
            (diagonal, below, taus), entry.outputs[1:], (size, *(size - 1,) * 2), strict=False
        ):
            with fb.loop(0, count) as row:
                place = Affine(row) if self.is_lower else flipped(fb, Affine(row), count)
                output.write(scalars, (*batch, place), view.read(scalars, (Affine(row),)))
        entry.outputs[4].write(scalars, batch, fb.constant(I32, 0))

    def _write(
        self, entry: KernelEntry, matrix: PanelMatrix, batch: Index, diagonal: ArrayView, below: ArrayView
    ) -> None:
        """Writes the named triangle, the vectors of reflections standing below the diagonals, and copies the other."""
        fb, lanes, size = entry.fb, self.form.lanes, self.form.rows
        operand = entry.sources[self.request.body.root.operand(0)]

        def visit(panel: Panel, row: Value, at: Affine, place: Affine, mask: Value | None) -> None:
            emitter = entry.emitter(lanes, mask)
            math, edge = emitter.math, fb.splat(row, lanes)
            columns = math.vector(at)
            both = [Affine(row), at] if self.is_lower else [flipped(fb, each, size) for each in (Affine(row), at)]
            there, column = matrix.place(row)
            element = operand(emitter, (*batch, *both))
            vectors = conjugate(fb, there.read(math, (at, Affine(column)), mask))
            element = chosen(fb, fb.icmp("slt", columns, edge), vectors, element)
            for view, steps in ((below, 1), (diagonal, 0)):
                number = real_part(view.read(math, (at,), mask))
                is_there = fb.icmp("eq", fb.add(columns, steps), edge)
                element = chosen(fb, is_there, from_real(element, number), element)
            entry.outputs[0].write(math, (*batch, *both), element, mask)

        matrix.for_vectors(visit)
