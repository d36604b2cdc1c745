"""The kernel of LAPACK's gesdd and gesvd: singular values in descending order, and their vectors.

A wide matrix is decomposed as its adjoint. It is scaled by a power of two, made bidiagonal and then diagonal; the
vectors are the rows of two matrices that turn with it. The matrices of a batch are split over threads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from xlalite.backends.codegen.arrays.index import Affine, Index, IndexMath, Lanes, Position
from xlalite.backends.codegen.arrays.ir_array import ArrayView
from xlalite.backends.codegen.arrays.types import Element, representation, zero_element
from xlalite.backends.codegen.elements.registers import flatten
from xlalite.backends.codegen.kernels.kernel import KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry
from xlalite.backends.codegen.kernels.linear_algebra.batched import BatchedKernel
from xlalite.backends.codegen.kernels.linear_algebra.bidiagonal import BidiagonalReduction
from xlalite.backends.codegen.kernels.linear_algebra.bidiagonal_qr import BidiagonalQr, Rotations
from xlalite.backends.codegen.kernels.linear_algebra.block_reflection import BlockReflection, block_bytes
from xlalite.backends.codegen.kernels.linear_algebra.numbers import conjugate, real_part
from xlalite.backends.codegen.kernels.linear_algebra.panel import Panel, PanelForm
from xlalite.backends.codegen.kernels.linear_algebra.panel_matrix import PanelMatrix, matrix_bytes, set_unit
from xlalite.backends.codegen.kernels.loop_nest import for_lanes
from xlalite.backends.codegen.kernels.scratch import aligned
from xlalite.backends.codegen.llvm import I32, I64, Value
from xlalite.hlo.ops.rules.lapack_calls import lapack_call
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.passes.fusion.kernel_shape import KernelShape

_NOT_FINITE, _NOT_FOUND = -4, 1


def plan_svd(request: KernelRequest, shape: KernelShape) -> SvdKernel:
    """The kernel of a gesdd or a gesvd."""
    root, target = request.body.root, request.target
    asked = lapack_call(root)
    assert asked is not None, "the kind is for such calls only"
    ((rows, columns),), dtype = asked.sizes, root.operand(0).shape.dtype
    is_wide = rows < columns
    long, short = max(rows, columns), min(rows, columns)
    vectors = root.shape.elements[2].dims[-1] if not is_wide else root.shape.elements[3].dims[-2]
    return SvdKernel(
        request,
        asked.batch,
        PanelForm.of(target, dtype, long, short),
        PanelForm.of(target, dtype, long, vectors),
        PanelForm.of(target, dtype, vectors, long),
        PanelForm.of(target, dtype, short, short),
        PanelForm.of(target, dtype, max(short - 1, 1), max(short - 1, 1)),
        is_wide=is_wide,
        has_vectors=asked.letter("mode") != "N",
    )


@dataclass(frozen=True, slots=True)
class SvdKernel(BatchedKernel):
    """A singular value decomposition of matrices that are not wide, or of the adjoints of wide ones.

    Attributes:
        form: How a matrix lies in scratch memory.
        of_q: The same for its left vectors before they turn, one a column,
        of_left: while they turn, one a row,
        of_right: for the right ones, one a row,
        inner: and for these without the first row and column.
        is_wide: Whether matrices are decomposed as their adjoints.
        has_vectors: Whether vectors are asked for; else their places are filled with zeros.
    """

    form: PanelForm
    of_q: PanelForm
    of_left: PanelForm
    of_right: PanelForm
    inner: PanelForm
    is_wide: bool
    has_vectors: bool

    @property
    def _rows(self) -> int:
        return self.form.rows

    @property
    def _size(self) -> int:
        return self.of_right.rows

    @property
    def _vectors(self) -> int:
        return self.of_left.rows

    @property
    def parts(self) -> tuple[int, ...]:
        """Matrices, two blocks, a row, and arrays: two of taus, six real ones, an order."""
        size, held = self._size, representation(self.form.dtype)
        arrays = [(size + 1) * each for each in ((held.size_bytes,) * 2 + (held.register.size_bytes,) * 6)]
        return (
            matrix_bytes(self.form, size),
            matrix_bytes(self.of_q, self._vectors),
            matrix_bytes(self.of_left, self._rows),
            matrix_bytes(self.of_right, size),
            matrix_bytes(self.inner, max(size - 1, 1)),
            block_bytes(self.form, self.of_q),
            block_bytes(self.inner, self.inner),
            matrix_bytes(replace(self.form, rows=1), size),
            *map(aligned, (*arrays, 8 * (self._rows + 1))),
        )

    def emit_matrix(self, entry: KernelEntry, parts: Sequence[Value], batch: Index) -> None:
        """Decomposes it."""
        fb, size, dtype = entry.fb, self._size, self.form.dtype
        matrix = PanelMatrix(fb, self.form, size, parts[0])
        left = PanelMatrix(fb, self.of_left, self._rows, parts[2])
        right = PanelMatrix(fb, self.of_right, size, parts[3])
        beside = PanelMatrix(fb, replace(self.form, rows=1), size, parts[7])
        left_taus, taus = (ArrayView.row_major(part, dtype, (size + 1,)) for part in parts[8:10])
        reals = [ArrayView.row_major(part, dtype.component, (size + 1,)) for part in parts[10:16]]
        diagonal, above = reals[:2]
        self._read(entry, matrix, batch)
        factor, is_finite = matrix.normalise()
        branch = fb.if_else(is_finite, likely=True)
        with branch.then():
            reduction = BidiagonalReduction(fb, matrix, beside, taus, diagonal, above, left_taus)
            reduction.run()
            if self.has_vectors:
                self._start_vectors(entry, left, right, reduction, parts)
            turning = (left, right) if self.has_vectors else (None, None)
            missing = BidiagonalQr(
                fb, size, diagonal, above, Rotations(*reals[2:4]), Rotations(*reals[4:6]), *turning
            ).run()
            branch.yield_(fb.select(fb.icmp("eq", missing, 0), fb.constant(I32, 0), _NOT_FOUND))
        with branch.otherwise():
            branch.yield_(fb.constant(I32, _NOT_FINITE))
        (info,) = branch.results
        entry.outputs[4].write(IndexMath(fb, 1), batch, info)
        is_found = fb.icmp("eq", info, 0)
        order = ArrayView.row_major(parts[16], DType.S64, (self._rows + 1,))
        self._write_values(entry, diagonal, order, batch, factor, is_found)
        columns, rows = (right, left) if self.is_wide else (left, right)
        self._write_columns(entry, columns, order, batch, is_found)
        self._write_rows(entry, rows, order, batch, is_found)

    def _read(self, entry: KernelEntry, matrix: PanelMatrix, batch: Index) -> None:
        """Reads the matrix or its adjoint, and copies it to the first result if that is read."""
        fb, source = entry.fb, entry.sources[self.request.body.root.operand(0)]
        is_copied = 0 not in self.request.unread

        def visit(panel: Panel, row: Value, at: Affine, place: Affine, mask: Value | None) -> None:
            emitter = entry.emitter(self.form.lanes, mask)
            index: Index = (*batch, at, Affine(row)) if self.is_wide else (*batch, Affine(row), at)
            element = source(emitter, index)
            if is_copied:
                entry.outputs[0].write(emitter.math, index, element, mask)
            panel.write(emitter.math, (Affine(row), place), conjugate(fb, element) if self.is_wide else element)

        matrix.for_vectors(visit)

    def _start_vectors(
        self,
        entry: KernelEntry,
        left: PanelMatrix,
        right: PanelMatrix,
        reduction: BidiagonalReduction,
        parts: Sequence[Value],
    ) -> None:
        """Makes the rows of `left` and `right` the columns of what the matrix was multiplied with."""
        fb, size = entry.fb, self._size
        q = PanelMatrix(fb, self.of_q, self._vectors, parts[1])
        reduction.make_left_q(q, BlockReflection(fb, self.form, self.of_q, parts[5]), reduction.left_taus)
        left.set_transposed(q, 0)
        if size == 1:
            set_unit(right)
            return
        inner = PanelMatrix(fb, self.inner, size - 1, parts[4])
        reduction.make_q(inner, BlockReflection(fb, self.inner, self.inner, parts[6]))
        right.set_transposed(inner, 1)

    def _write_values(
        self,
        entry: KernelEntry,
        diagonal: ArrayView,
        order: ArrayView,
        batch: Index,
        factor: Value,
        is_found: Value,
    ) -> None:
        """Writes the values, the largest first, and which vectors are theirs; others follow."""
        fb, size, scalars = entry.fb, self._size, IndexMath(entry.fb, 1)
        with fb.loop(0, size) as j:
            own = real_part(diagonal.read(scalars, (Affine(j),)))
            with fb.carried_loop(0, size, 1, (fb.constant(I64, 0),)) as count:
                other = real_part(diagonal.read(scalars, (Affine(count.index),)))
                is_tie = fb.and_(fb.fcmp("oeq", other, own), fb.icmp("slt", count.index, j))
                is_before = fb.or_(fb.fcmp("ogt", other, own), is_tie)
                count.yield_(fb.add(count.values[0], fb.zext(is_before, I64)))
            place = Affine(count.results[0])
            order.write(scalars, (place,), j)
            value = fb.select(is_found, fb.fdiv(own, factor), math.nan)
            entry.outputs[1].write(scalars, (*batch, place), value)
        with fb.loop(size, self._rows) as j:
            order.write(scalars, (Affine(j),), j)

    def _write_columns(
        self, entry: KernelEntry, vectors: PanelMatrix, order: ArrayView, batch: Index, is_found: Value
    ) -> None:
        """Writes vectors that are columns of a result: the left ones."""
        fb, output, lanes = entry.fb, entry.outputs[2], vectors.form.lanes
        rows, columns = output.dims[-2:]

        def visit(row: Value, at: Affine, width: int, mask: Value | None) -> None:
            math_ = IndexMath(fb, width)
            element = zero_element(self.form.dtype, width)
            if self.has_vectors:
                number = order.read(math_, (at,), mask)
                assert isinstance(number, Value), "places are whole numbers"
                number = fb.umin(number, vectors.form.rows - 1)
                place: Position = Lanes(number) if width > 1 else Affine(number)
                panel, column = vectors.place(row)
                element = self._known(entry, panel.read(math_, (place, Affine(column)), mask), is_found)
            output.write(math_, (*batch, Affine(row), at), element, mask)

        with fb.loop(0, rows) as row:
            for_lanes(fb, columns, lanes, lambda at, width, mask: visit(row, at, width, mask))

    def _write_rows(
        self, entry: KernelEntry, vectors: PanelMatrix, order: ArrayView, batch: Index, is_found: Value
    ) -> None:
        """Writes vectors that are rows of a result, conjugated: the right ones."""
        fb, output, lanes, scalars = entry.fb, entry.outputs[3], vectors.form.lanes, IndexMath(entry.fb, 1)
        rows, columns = output.dims[-2:]

        def visit(row: Value, source: Value, at: Affine, width: int, mask: Value | None) -> None:
            math_ = IndexMath(fb, width)
            element = zero_element(self.form.dtype, width)
            if self.has_vectors:
                panel, column = vectors.place(math_.scalar(at.base))
                found = panel.read(math_, (Affine(source), Affine(column, at.step)), mask)
                element = self._known(entry, conjugate(fb, found), is_found)
            output.write(math_, (*batch, Affine(row), at), element, mask)

        with fb.loop(0, rows) as row:
            number = real_part(order.read(scalars, (Affine(row),)))
            source = fb.umin(number, vectors.form.rows - 1)
            for_lanes(fb, columns, lanes, lambda at, width, mask: visit(row, source, at, width, mask))

    def _known(self, entry: KernelEntry, element: Element, is_found: Value) -> Element:
        """The element, or NaN."""
        parts = [entry.fb.select(is_found, part, math.nan) for part in flatten([element])]
        return (parts[0], parts[1]) if len(parts) == 2 else parts[0]
