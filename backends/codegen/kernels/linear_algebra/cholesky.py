"""The Cholesky kernel: a few rows of the factor after the other; the matrices of a batch are split over threads.

A block of rows is that of x without what the rows above contribute, divided by the factor of its own small triangle.
Rows are vectors, and those of L^T follow from the lower triangle as those of U from the upper one: with either as u,
u[j, i] = (x[j, i] - sum over k < j of conj(u[k, j]) u[k, i]) / u[j, j].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial

from xlalite.backends.codegen.arrays.index import Affine, Index, IndexMath
from xlalite.backends.codegen.arrays.types import Element
from xlalite.backends.codegen.elements.registers import Registers, flatten, unflatten
from xlalite.backends.codegen.kernels.fork import Fork, fork_of
from xlalite.backends.codegen.kernels.kernel import Kernel, KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry, open_kernel
from xlalite.backends.codegen.kernels.linear_algebra.numbers import chosen, conjugate, minus_product, rounded, scaled
from xlalite.backends.codegen.kernels.linear_algebra.panel import Panel, PanelForm, Row, in_blocks
from xlalite.backends.codegen.kernels.linear_algebra.panel_matrix import PanelMatrix, matrix_bytes
from xlalite.backends.codegen.kernels.loop_nest import for_lanes, places_of
from xlalite.backends.codegen.kernels.scratch import own_slot
from xlalite.backends.codegen.llvm import I32, I64, Function, FunctionBuilder, ModuleBuilder, Value
from xlalite.hlo.ops.rules.lapack_calls import lapack_call
from xlalite.hlo.records import dataclass
from xlalite.passes.fusion.kernel_shape import KernelShape


def plan_cholesky(request: KernelRequest, shape: KernelShape) -> CholeskyKernel:
    """The kernel of a cholesky, or of LAPACK's potrf."""
    root = request.body.root
    (*batch, size, _), dtype = root.operand(0).shape.dims, root.operand(0).shape.dtype
    form, asked = PanelForm.of(request.target, dtype, size, max(size, 1)), None
    if root.opcode == "custom-call":
        asked = lapack_call(root)
    is_lower = root.attrs.lower if asked is None else asked.letter("uplo") == "L"
    return CholeskyKernel(request, tuple(batch), size, form, is_lower=is_lower, is_lapack=asked is not None)


@dataclass(frozen=True, slots=True)
class CholeskyKernel(Kernel):
    """A factorisation of positive definite matrices.

    Attributes:
        batch: Sizes of the batch.
        size: Rows and columns of each matrix.
        form: How the factor lies in scratch memory.
        is_lower: Whether the lower triangle is read and given.
        is_lapack: Whether the other triangle, and what is behind a pivot that is not positive, is as in the operand,
            and a second result says where this pivot is.
    """

    batch: tuple[int, ...]
    size: int
    form: PanelForm
    is_lower: bool
    is_lapack: bool

    @property
    def extent(self) -> int:
        """The matrices."""
        return math.prod(self.batch)

    @property
    def forks(self) -> bool:
        """If rows have panels to share."""
        return self._factor_bytes > self.form.size_bytes

    @property
    def scratch_bytes(self) -> int:
        """A factor."""
        return self._factor_bytes - self.shared_bytes

    @property
    def shared_bytes(self) -> int:
        """A factor where threads share the work on it."""
        return 0 if self.request.threads == 1 else self._factor_bytes

    @property
    def _factor_bytes(self) -> int:
        return matrix_bytes(self.form, self.size)

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """Factors the matrices [begin, end)."""
        entry = open_kernel(module, name, self.request)
        if self.extent and self.size:
            fb, fork = entry.fb, fork_of(entry, self)
            memory = own_slot(entry, self.scratch_bytes) if fork is None else nullcontext(fork.shared)
            with memory as slot, fb.loop(entry.begin, entry.end) as number:
                batch, matrix = places_of(fb, number, self.batch), PanelMatrix(fb, self.form, self.size, slot)
                self._clear(entry, slot)
                self._read(entry, matrix, batch)
                (failed,) = in_blocks(fb, self.form, (fb.constant(I64, 0),), partial(self._factor, entry, matrix))
                self._write(entry, matrix, batch, failed)
                if self.is_lapack:
                    entry.outputs[1].write(IndexMath(fb, 1), batch, fb.trunc(failed, I32))
        entry.fb.ret()
        return entry.function

    def _clear(self, entry: KernelEntry, slot: Value) -> None:
        """Lanes that mean nothing, below the diagonal and behind the last column, are computed with, too.

        What other kernels left there could be denormals, with which processors are slow.
        """
        entry.fb.memset(slot, 0, self._factor_bytes, align=64)

    def _read(self, entry: KernelEntry, matrix: PanelMatrix, batch: Index) -> None:
        """Reads the triangle, transposed if it is the lower one."""
        fb, operand = entry.fb, self.request.body.root.operand(0)
        with fb.loop(0, self.size) as column:
            panel, at = matrix.place(column)
            with fb.loop(0, fb.add(column, 1)) as row:
                emitter = entry.emitter(1)
                place = (column, row) if self.is_lower else (row, column)
                element = emitter.element(operand, (*batch, *map(Affine, place)))
                panel.write(emitter.math, (Affine(row), Affine(at)), element)

    def _factor(
        self, entry: KernelEntry, matrix: PanelMatrix, first: Value, count: int, carried: Registers
    ) -> Registers:
        """Computes some rows; the first whose pivot was not positive, counted from 1, or 0."""
        fb, numbers, (failed,) = entry.fb, range(count), carried
        own = fb.udiv(first, self.form.width)
        diagonal, column = matrix.place(first)
        for number, row in enumerate(_eliminated(matrix, diagonal, first, count)):
            diagonal.set_row(fb.add(first, number), row)
        triangle = {(i, j): diagonal.number(fb.add(first, i), fb.add(column, j)) for i in numbers for j in numbers[i:]}
        roots, inverses = list[Value](), list[Value]()
        for i in numbers:
            for k in numbers[:i]:
                factor = conjugate(fb, triangle[k, i])
                for j in numbers[i:]:
                    triangle[i, j] = minus_product(fb, triangle[i, j], factor, triangle[k, j])
            pivot = triangle[i, i]
            pivot = pivot[0] if isinstance(pivot, tuple) else pivot
            stops = fb.not_(fb.fcmp("ogt", pivot, 0.0))
            stops = fb.and_(stops, fb.icmp("eq", failed, 0))
            failed = fb.select(stops, fb.add(first, i + 1), failed)
            roots.append(fb.sqrt(pivot))
            inverses.append(fb.fdiv(fb.constant(pivot.type, 1.0), roots[-1]))
            for j in numbers[i + 1 :]:
                triangle[i, j] = scaled(fb, triangle[i, j], inverses[-1])
        factors = [triangle[k, i] for i in numbers for k in numbers[:i]]
        _divide(diagonal, first, [diagonal.row(fb.add(first, i)) for i in numbers], factors, inverses)
        self._divide_others(matrix, fb.add(own, 1), first, count, (factors, inverses), fork_of(entry, self))
        for i, root in enumerate(roots):
            place = Affine(fb.add(first, i)), Affine(fb.add(column, i))
            real = (root, fb.constant(root.type, 0.0)) if self.form.dtype.is_complex else root
            diagonal.write(entry.emitter(1).math, place, real)
        return (failed,)

    def _divide_others(
        self,
        matrix: PanelMatrix,
        begin: Value,
        first: Value,
        count: int,
        triangle: tuple[list[Element], list[Value]],
        fork: Fork | None,
    ) -> None:
        """Computes the rows in the panels from one on, each a turn of a loop that threads may share."""
        fb, (factors, inverses) = matrix.fb, triangle
        if fork is None:
            with matrix.each_panel(begin) as panel:
                _divide(panel, first, _eliminated(matrix, panel, first, count), factors, inverses)
            return

        def task(inner: FunctionBuilder, words: Sequence[Value], turn: Value, end: Value) -> None:
            pointer, begin, first, *numbers = words
            own = PanelMatrix(inner, self.form, self.size, pointer)
            held = unflatten(tuple(numbers[:-count]), factors), numbers[-count:]
            with inner.loop(inner.add(begin, turn), inner.add(begin, end)) as number:
                panel = own.panel(number)
                _divide(panel, first, _eliminated(own, panel, first, count), *held)

        turns = fb.sub(fb.constant(I64, matrix.panels), begin)
        fork.loop(fb, turns, [matrix.pointer, begin, first, *flatten(factors), *inverses], task, grain=-1)

    def _write(self, entry: KernelEntry, matrix: PanelMatrix, batch: Index, failed: Value) -> None:
        """Writes the triangle and what surrounds it."""
        fb, form, (output, *_) = entry.fb, self.form, entry.outputs
        known = fb.select(fb.icmp("eq", failed, 0), fb.constant(I64, self.size), fb.sub(failed, 1))

        def visit(row: Value, own: Panel | None, at_row: Value, at: Affine, width: int, mask: Value | None) -> None:
            emitter = entry.emitter(width, mask)
            if own is not None:
                element = own.read(emitter.math, (at, Affine(at_row)), mask)
            else:
                panel, column = matrix.place(emitter.math.scalar(at.base))
                element = panel.read(emitter.math, (Affine(row), Affine(column, at.step)), mask)
            columns, edge = emitter.math.vector(at), fb.splat(row, width)
            inside = fb.icmp("sle" if self.is_lower else "sge", columns, edge)
            index = (*batch, Affine(row), at)
            if self.is_lapack:
                step = columns if self.is_lower else edge
                is_known = fb.and_(inside, fb.icmp("slt", step, fb.splat(known, width)))
                result = chosen(fb, is_known, element, emitter.element(self.request.body.root.operand(0), index))
            else:
                result = self._alone(entry, element, inside, failed)
            output.write(emitter.math, index, rounded(fb, form.dtype, result), mask)

        with fb.loop(0, self.size) as row:
            own, at_row = matrix.place(row)
            for_lanes(
                fb,
                self.size,
                form.lanes,
                lambda at, width, mask: visit(row, own if self.is_lower else None, at_row, at, width, mask),
            )

    def _alone(self, entry: KernelEntry, element: Element, inside: Value, failed: Value) -> Element:
        """The element inside of the triangle, else zero; NaN everywhere if the matrix is not positive definite."""
        fb, is_positive = entry.fb, entry.fb.icmp("eq", failed, 0)
        parts = element if isinstance(element, tuple) else (element,)
        found = [fb.select(is_positive, fb.select(inside, part, 0.0), math.nan) for part in parts]
        return (found[0], found[1]) if len(found) == 2 else found[0]


def _eliminated(matrix: PanelMatrix, panel: Panel, first: Value, count: int) -> list[Row]:
    """Rows of a panel without what the rows above contribute."""
    diagonal, column = matrix.place(first)

    def coefficient(number: int, above: Value) -> Element:
        return conjugate(matrix.fb, diagonal.number(above, matrix.fb.add(column, number)))

    return panel.eliminate(first, count, coefficient)


def _divide(panel: Panel, first: Value, rows: list[Row], factors: Sequence[Element], inverses: Sequence[Value]) -> None:
    """Divides rows by the factor of their own triangle, of which are given what is off its diagonal, and inverses."""
    fb, left = panel.fb, iter(factors)
    for i, inverse in enumerate(inverses):
        for k in range(i):
            rows[i] = panel.without(rows[i], conjugate(fb, next(left)), rows[k])
        scale = fb.splat(inverse, panel.form.lanes)
        rows[i] = tuple(scaled(fb, vector, scale) for vector in rows[i])
        panel.set_row(fb.add(first, i), rows[i])
