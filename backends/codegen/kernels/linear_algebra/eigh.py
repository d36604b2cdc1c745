"""The kernel of LAPACK's syevd: eigenvalues of Hermitian matrices in ascending order, and their vectors.

The matrix is scaled by a power of two, made tridiagonal and then diagonal; the vectors are the rows of a matrix that
turn with it. The matrices of a batch are split over threads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from xlalite.backends.codegen.arrays.index import Affine, Index, IndexMath, Lanes
from xlalite.backends.codegen.arrays.ir_array import ArrayView
from xlalite.backends.codegen.arrays.types import representation
from xlalite.backends.codegen.elements.registers import flatten
from xlalite.backends.codegen.kernels.kernel import KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry
from xlalite.backends.codegen.kernels.linear_algebra.batched import BatchedKernel
from xlalite.backends.codegen.kernels.linear_algebra.block_reflection import BlockReflection, block_bytes
from xlalite.backends.codegen.kernels.linear_algebra.implicit_ql import ImplicitQl, Tridiagonal
from xlalite.backends.codegen.kernels.linear_algebra.numbers import (
    real_part,
)
from xlalite.backends.codegen.kernels.linear_algebra.panel import Panel, PanelForm
from xlalite.backends.codegen.kernels.linear_algebra.panel_matrix import PanelMatrix, matrix_bytes, set_unit
from xlalite.backends.codegen.kernels.linear_algebra.tridiagonal import TridiagonalReduction, read_hermitian
from xlalite.backends.codegen.kernels.scratch import aligned
from xlalite.backends.codegen.llvm import I32, I64, FunctionBuilder, Value
from xlalite.hlo.ops.rules.lapack_calls import lapack_call
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.passes.fusion.kernel_shape import KernelShape

_NOT_FINITE, _NOT_FOUND = -4, 1


def plan_eigh(request: KernelRequest, shape: KernelShape) -> EighKernel:
    """The kernel of a syevd."""
    asked = lapack_call(request.body.root)
    assert asked is not None, "the kind is for such calls only"
    ((size, _),), dtype = asked.sizes, request.body.root.operand(0).shape.dtype
    return EighKernel(
        request,
        asked.batch,
        PanelForm.of(request.target, dtype, size, size),
        PanelForm.of(request.target, dtype, max(size - 1, 1), max(size - 1, 1)),
        is_lower=asked.letter("uplo") == "L",
        has_vectors=asked.letter("mode") == "V",
    )


@dataclass(frozen=True, slots=True)
class EighKernel(BatchedKernel):
    """An eigenvalue decomposition.

    Attributes:
        form: How a matrix lies in scratch memory.
        inner: The same without the first row and column.
        is_lower: Whether the lower triangle is read.
        has_vectors: Whether vectors are asked for; else their place is filled with zeros.
    """

    form: PanelForm
    inner: PanelForm
    is_lower: bool
    has_vectors: bool

    @property
    def _size(self) -> int:
        return self.form.rows

    @property
    def parts(self) -> tuple[int, ...]:
        """The matrix, its vectors, Q, a block, a row, and arrays of `size` + 1: taus, four real ones, an order."""
        size, held = self._size, representation(self.form.dtype)
        arrays = [aligned((size + 1) * each) for each in (held.size_bytes, *(held.register.size_bytes,) * 4, 8)]
        return (
            *(matrix_bytes(self.form, size),) * 2,
            matrix_bytes(self.inner, size),
            block_bytes(self.inner, self.inner),
            matrix_bytes(replace(self.form, rows=1), size),
            *arrays,
        )

    def emit_matrix(self, entry: KernelEntry, parts: Sequence[Value], batch: Index) -> None:
        """Decomposes it."""
        fb, size, form, dtype = entry.fb, self._size, self.form, self.form.dtype
        matrix, vectors = (PanelMatrix(fb, form, size, part) for part in parts[:2])
        diagonal, *others = (ArrayView.row_major(part, dtype.component, (size + 1,)) for part in parts[6:10])
        tridiagonal = Tridiagonal(size, diagonal, others[0], others[1], others[2])
        operand = entry.sources[self.request.body.root.operand(0)]
        read_hermitian(entry, matrix, operand, batch, is_lower=self.is_lower)
        factor, is_finite = matrix.normalise()
        branch = fb.if_else(is_finite, likely=True)
        with branch.then():
            self.apart(fb, "tridiagonal_form", parts, self._reduce)
            if self.has_vectors:
                self.apart(fb, "tridiagonal_vectors", parts, self._start_vectors)
            left = ImplicitQl(fb, tridiagonal, vectors if self.has_vectors else None).run()
            branch.yield_(fb.select(fb.icmp("eq", left, 0), fb.constant(I32, 0), _NOT_FOUND))
        with branch.otherwise():
            branch.yield_(fb.constant(I32, _NOT_FINITE))
        (info,) = branch.results
        entry.outputs[2].write(IndexMath(fb, 1), batch, info)
        self._write(entry, vectors, diagonal, parts[10], batch, factor, fb.icmp("eq", info, 0))

    def _reduce(self, fb: FunctionBuilder, parts: Sequence[Value]) -> None:
        """Makes the matrix tridiagonal."""
        self._reduction(fb, parts).run()

    def _reduction(self, fb: FunctionBuilder, parts: Sequence[Value]) -> TridiagonalReduction:
        size, dtype = self._size, self.form.dtype
        matrix = PanelMatrix(fb, self.form, size, parts[0])
        beside = PanelMatrix(fb, replace(self.form, rows=1), size, parts[4])
        taus = ArrayView.row_major(parts[5], dtype, (size,))
        diagonal, beside_it = (ArrayView.row_major(part, dtype.component, (size + 1,)) for part in parts[6:8])
        return TridiagonalReduction(fb, matrix, beside, taus, diagonal, beside_it)

    def _start_vectors(self, fb: FunctionBuilder, parts: Sequence[Value]) -> None:
        """Makes the rows of the vectors' matrix the columns of Q."""
        vectors = PanelMatrix(fb, self.form, self._size, parts[1])
        if self._size == 1:
            set_unit(vectors)
            return
        q = PanelMatrix(fb, self.inner, self._size - 1, parts[2])
        self._reduction(fb, parts).make_q(q, BlockReflection(fb, self.inner, self.inner, parts[3]))
        vectors.set_transposed(q, 1)

    def _write(
        self,
        entry: KernelEntry,
        vectors: PanelMatrix,
        diagonal: ArrayView,
        order: Value,
        batch: Index,
        factor: Value,
        is_found: Value,
    ) -> None:
        """Writes values and vectors in the order of the values; NaN if they were not found."""
        fb, size, scalars = entry.fb, self._size, IndexMath(entry.fb, 1)
        places = ArrayView.row_major(order, DType.S64, (size + 1,))
        with fb.loop(0, size) as j:
            own = real_part(diagonal.read(scalars, (Affine(j),)))
            with fb.carried_loop(0, size, 1, (fb.constant(I64, 0),)) as count:
                other = real_part(diagonal.read(scalars, (Affine(count.index),)))
                is_before = fb.or_(
                    fb.fcmp("olt", other, own),
                    fb.and_(fb.fcmp("oeq", other, own), fb.icmp("slt", count.index, j)),
                )
                count.yield_(fb.add(count.values[0], fb.zext(is_before, I64)))
            place = Affine(count.results[0])
            places.write(scalars, (place,), j)
            entry.outputs[1].write(scalars, (*batch, place), fb.select(is_found, fb.fdiv(own, factor), math.nan))

        def visit(panel: Panel, row: Value, at: Affine, place: Affine, mask: Value | None) -> None:
            math_, nothing = IndexMath(fb, self.form.lanes), panel.zeros()[0]
            element = nothing
            if self.has_vectors:
                source, column = vectors.place(row)
                number = places.read(math_, (at,), mask)
                assert isinstance(number, Value), "places are whole numbers"
                rows = Lanes(fb.umin(number, size - 1)) if self.form.lanes > 1 else Affine(fb.umin(number, size - 1))
                found = source.read(math_, (rows, Affine(column)), mask)
                parts = [fb.select(is_found, part, math.nan) for part in flatten([found])]
                element = (parts[0], parts[1]) if len(parts) == 2 else parts[0]
            entry.outputs[0].write(math_, (*batch, Affine(row), at), element, mask)

        vectors.for_vectors(visit)
