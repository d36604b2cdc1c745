"""The kernel of LAPACK's gees: A = Z * T * Z^H, T being triangular but for blocks of pairs of complex eigenvalues.

A matrix is scaled by a power of two, becomes a Hessenberg one and then triangular; the columns of Z are the rows of a
matrix that turn with it. The matrices of a batch are split over threads.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from xlalite.backends.codegen.arrays.index import Affine, Index, IndexMath, Lanes, Position
from xlalite.backends.codegen.arrays.ir_array import ArrayView
from xlalite.backends.codegen.arrays.types import Element, representation, zero_element
from xlalite.backends.codegen.elements.registers import flatten
from xlalite.backends.codegen.kernels.kernel import KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry
from xlalite.backends.codegen.kernels.linear_algebra.balance import Balance
from xlalite.backends.codegen.kernels.linear_algebra.batched import BatchedKernel
from xlalite.backends.codegen.kernels.linear_algebra.block_reflection import BlockReflection, block_bytes
from xlalite.backends.codegen.kernels.linear_algebra.hessenberg import HessenbergReduction
from xlalite.backends.codegen.kernels.linear_algebra.hessenberg_qr import HessenbergQr
from xlalite.backends.codegen.kernels.linear_algebra.numbers import chosen, real_part, scaled
from xlalite.backends.codegen.kernels.linear_algebra.panel import Panel, PanelForm
from xlalite.backends.codegen.kernels.linear_algebra.panel_matrix import PanelMatrix, matrix_bytes, set_unit
from xlalite.backends.codegen.kernels.scratch import aligned
from xlalite.backends.codegen.llvm import I32, I64, FunctionBuilder, Value
from xlalite.hlo.ops.rules.lapack_calls import lapack_call
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.passes.fusion.kernel_shape import KernelShape

_NOT_FINITE, _NOT_FOUND = -4, 1


def plan_schur(request: KernelRequest, shape: KernelShape) -> SchurKernel:
    """The kernel of a gees."""
    root = request.body.root
    asked = lapack_call(root)
    assert asked is not None, "the kind is for such calls only"
    size = asked.sizes[0][0]
    forms = [PanelForm.of(request.target, root.operand(0).shape.dtype, rows, rows) for rows in (size, max(size - 1, 1))]
    return SchurKernel(request, asked.batch, forms[0], forms[1], has_vectors=asked.letter("mode") == "V")


@dataclass(frozen=True, slots=True)
class TriangularisingKernel(BatchedKernel):
    """A kernel that makes matrices triangular.

    Attributes:
        form: How a matrix lies in scratch memory.
        inner: The same without the first row and column.
        has_vectors: Whether what it is multiplied with is needed.
    """

    form: PanelForm
    inner: PanelForm
    has_vectors: bool

    @property
    def _size(self) -> int:
        return self.form.rows

    @property
    def parts(self) -> tuple[int, ...]:
        """The matrix, the columns of Z, Q, a block, a row, and arrays: four of taus, an order, scales, lengths."""
        size = self._size
        return (
            *(matrix_bytes(self.form, size),) * 2,
            matrix_bytes(self.inner, max(size - 1, 1)),
            block_bytes(self.inner, self.inner),
            matrix_bytes(replace(self.form, rows=1), size),
            *(aligned(size * representation(self.form.dtype).size_bytes),) * 4,
            *(aligned(size * 8),) * 3,
        )

    def emit_matrix(self, entry: KernelEntry, parts: Sequence[Value], batch: Index) -> None:
        """Decomposes it."""
        fb = entry.fb
        matrix, vectors = self._matrices(fb, parts)
        matrix.read_from(entry, entry.sources[self.request.body.root.operand(0)], batch)
        factor, is_finite = matrix.normalise()
        Balance(fb, matrix, *self.balance_lines(parts)).start()
        branch = fb.if_else(is_finite, likely=True)
        with branch.then():
            self.apart(fb, "hessenberg_form", parts, self._reduce)
            left = self.apart(fb, "hessenberg_qr", parts, self._triangularise, I64)
            branch.yield_(fb.select(fb.icmp("eq", left, 0), fb.constant(I32, 0), _NOT_FOUND))
        with branch.otherwise():
            branch.yield_(fb.constant(I32, _NOT_FINITE))
        (info,) = branch.results
        entry.outputs[-1].write(IndexMath(fb, 1), batch, info)
        self._write(entry, matrix, vectors, parts, batch, factor, fb.icmp("eq", info, 0))

    def _matrices(self, fb: FunctionBuilder, parts: Sequence[Value]) -> tuple[PanelMatrix, PanelMatrix]:
        matrix, vectors = (PanelMatrix(fb, self.form, self._size, part) for part in parts[:2])
        return matrix, vectors

    def _lines(self, parts: Sequence[Value]) -> list[ArrayView]:
        return [ArrayView.row_major(part, self.form.dtype, (self._size,)) for part in parts[5:9]]

    def _reduce(self, fb: FunctionBuilder, parts: Sequence[Value]) -> None:
        """Balances the matrix and makes it a Hessenberg one."""
        matrix, vectors = self._matrices(fb, parts)
        balance = Balance(fb, matrix, *self.balance_lines(parts))
        low, high = balance.exchange()
        if self.is_scaled:
            balance.scale(low, high)
        beside = PanelMatrix(fb, replace(self.form, rows=1), self._size, parts[4])
        reduction = HessenbergReduction(fb, matrix, beside, self._lines(parts)[0])
        reduction.run(low, high)
        if self.has_vectors:
            self._start_vectors(vectors, reduction, parts)
        _clear_below_subdiagonal(matrix)

    def _triangularise(self, fb: FunctionBuilder, parts: Sequence[Value]) -> Value:
        """Makes the Hessenberg matrix triangular; how many rows are not."""
        matrix, vectors = self._matrices(fb, parts)
        _, second, third, tau = self._lines(parts)
        return HessenbergQr(fb, matrix, (second, third, tau), vectors if self.has_vectors else None).run()

    @property
    def is_scaled(self) -> bool:
        """Whether rows and columns are scaled before, so that the result is not unitarily similar."""
        return False

    def balance_lines(self, parts: Sequence[Value]) -> tuple[ArrayView, ArrayView, ArrayView]:
        """The order of rows, scales and lengths."""
        lines = zip(parts[9:12], (DType.S64, *(self.form.dtype.component,) * 2), strict=True)
        order, scales, lengths = (ArrayView.row_major(part, dtype, (self._size,)) for part, dtype in lines)
        return order, scales, lengths

    @abstractmethod
    def _write(
        self,
        entry: KernelEntry,
        matrix: PanelMatrix,
        vectors: PanelMatrix,
        parts: Sequence[Value],
        batch: Index,
        factor: Value,
        is_found: Value,
    ) -> None:
        """Writes all results but info."""

    def _start_vectors(self, vectors: PanelMatrix, reduction: HessenbergReduction, parts: Sequence[Value]) -> None:
        """Makes the rows of `vectors` the columns of Q."""
        if self._size == 1:
            set_unit(vectors)
            return
        q = PanelMatrix(vectors.fb, self.inner, self._size - 1, parts[2])
        reduction.make_left_q(q, BlockReflection(vectors.fb, self.inner, self.inner, parts[3]), reduction.taus)
        vectors.set_transposed(q, 1)


@dataclass(frozen=True, slots=True)
class SchurKernel(TriangularisingKernel):
    """A Schur decomposition; where vectors are not asked for, their place is filled with zeros."""

    def _write(
        self,
        entry: KernelEntry,
        matrix: PanelMatrix,
        vectors: PanelMatrix,
        parts: Sequence[Value],
        batch: Index,
        factor: Value,
        is_found: Value,
    ) -> None:
        fb, lanes, scalars = entry.fb, self.form.lanes, IndexMath(entry.fb, 1)
        triangle, of_vectors, *values, selected, _ = entry.outputs
        back, order = fb.fdiv(fb.constant(factor.type, 1.0), factor), self.balance_lines(parts)[0]

        def visit(panel: Panel, row: Value, at: Affine, place: Affine, mask: Value | None) -> None:
            math_, index = IndexMath(fb, lanes), (*batch, Affine(row), at)
            element = scaled(fb, panel.read(math_, (Affine(row), place)), fb.splat(back, lanes))
            triangle.write(math_, index, known(fb, element, is_found), mask)
            element = zero_element(self.form.dtype, lanes)
            own = real_part(order.read(scalars, (Affine(row),)))
            if self.has_vectors:
                source, column = vectors.place(row)
                numbers = fb.smin(math_.vector(at), self._size - 1)
                rows: Position = Lanes(numbers) if lanes > 1 else Affine(numbers)
                element = known(fb, source.read(math_, (rows, Affine(column)), mask), is_found)
            of_vectors.write(math_, (*batch, Affine(own), at), element, mask)

        matrix.for_vectors(visit)
        write_eigenvalues(matrix, values, batch, back, is_found)
        selected.write(scalars, batch, fb.constant(I32, 0))


def known(fb: FunctionBuilder, element: Element, is_found: Value) -> Element:
    """The element, or NaN."""
    parts = [fb.select(is_found, part, math.nan) for part in flatten([element])]
    return (parts[0], parts[1]) if len(parts) == 2 else parts[0]


def write_eigenvalues(
    matrix: PanelMatrix, outputs: Sequence[ArrayView], batch: Index, back: Value, is_found: Value
) -> None:
    """Writes the diagonal times a power of two; of a real matrix, imaginary parts go to the second array."""
    fb, scalars = matrix.fb, IndexMath(matrix.fb, 1)
    with fb.loop(0, matrix.columns) as row:
        at = (*batch, Affine(row))
        outputs[0].write(scalars, at, known(fb, scaled(fb, matrix.number(row, row), back), is_found))
        if len(outputs) > 1:
            imaginary = imaginary_part(matrix, row)
            outputs[1].write(scalars, at, known(fb, fb.fmul(imaginary, back), is_found))


def imaginary_part(matrix: PanelMatrix, row: Value) -> Value:
    """That of an eigenvalue of a real matrix: sqrt(|b c|), the positive one of a pair first."""
    fb, last = matrix.fb, matrix.columns - 1
    parts = []
    for first in (row, fb.sub(row, 1)):
        upper, lower = fb.smax(first, 0), fb.smin(fb.add(first, 1), last)
        sizes = [fb.fabs(real_part(matrix.number(*place))) for place in ((upper, lower), (lower, upper))]
        is_there = fb.icmp("ne", upper, lower)
        is_there = fb.and_(is_there, fb.icmp("eq", upper, first))
        parts.append(fb.select(is_there, fb.fmul(fb.sqrt(sizes[0]), fb.sqrt(sizes[1])), 0.0))
    return fb.fsub(parts[0], parts[1])


def _clear_below_subdiagonal(matrix: PanelMatrix) -> None:
    fb, lanes = matrix.fb, matrix.form.lanes

    def visit(panel: Panel, row: Value, at: Affine, place: Affine, mask: Value | None) -> None:
        math_ = IndexMath(fb, lanes)
        is_below = fb.icmp("slt", math_.vector(at), fb.splat(fb.sub(row, 1), lanes))
        element = panel.read(math_, (Affine(row), place))
        panel.write(math_, (Affine(row), place), chosen(fb, is_below, panel.zeros()[0], element))

    matrix.for_vectors(visit)
