"""The Cholesky kernel: a few rows of the factor after the other; the matrices of a batch are split over threads.

A block of rows is that of x without what the rows above contribute, divided by the factor of its own small triangle.
Rows are vectors, and those of L^T follow from the lower triangle as those of U from the upper one: with either as u,
u[j, i] = (x[j, i] - sum over k < j of conj(u[k, j]) u[k, i]) / u[j, j].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

from xlalite.backends.codegen.arrays.index import Affine, Index
from xlalite.backends.codegen.arrays.types import Element, representation
from xlalite.backends.codegen.elements.registers import Registers
from xlalite.backends.codegen.kernels.kernel import Kernel, KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry, open_kernel
from xlalite.backends.codegen.kernels.linear_algebra.panel import (
    Panel,
    PanelForm,
    conjugate,
    in_blocks,
    minus_product,
    rounded,
)
from xlalite.backends.codegen.kernels.loop_nest import for_lanes, places_of
from xlalite.backends.codegen.kernels.scratch import own_slot
from xlalite.backends.codegen.llvm import I1, I8, Function, ModuleBuilder, Value
from xlalite.passes.fusion.kernel_shape import KernelShape


def plan_cholesky(request: KernelRequest, shape: KernelShape) -> CholeskyKernel:
    """The kernel of a cholesky."""
    (*batch, size, _), dtype = request.body.root.shape.dims, request.body.root.shape.dtype
    form = PanelForm.of(request.target, dtype, size, max(size, 1))
    return CholeskyKernel(request, tuple(batch), size, form, is_lower=request.body.root.attrs.lower)


@dataclass(frozen=True, slots=True)
class CholeskyKernel(Kernel):
    """A factorisation of positive definite matrices.

    Attributes:
        batch: Sizes of the batch.
        size: Rows and columns of each matrix.
        form: How the factor lies in scratch memory.
        is_lower: Whether the lower triangle is read and given.
    """

    batch: tuple[int, ...]
    size: int
    form: PanelForm
    is_lower: bool

    @property
    def extent(self) -> int:
        """The matrices."""
        return math.prod(self.batch)

    @property
    def scratch_bytes(self) -> int:
        """A factor."""
        return self._panels * self.form.size_bytes

    @property
    def _panels(self) -> int:
        return -(-self.size // self.form.width)

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """Factors the matrices [begin, end)."""
        entry = open_kernel(module, name, self.request)
        if self.extent and self.size:
            fb = entry.fb
            with own_slot(entry, self.scratch_bytes) as slot, fb.loop(entry.begin, entry.end) as number:
                batch = places_of(fb, number, self.batch)
                self._clear(entry, slot)
                self._read(entry, slot, batch)
                (is_positive,) = in_blocks(fb, self.form, (fb.constant(I1, 1),), partial(self._factor, entry, slot))
                self._write(entry, slot, batch, is_positive)
        entry.fb.ret()
        return entry.function

    def _panel(self, entry: KernelEntry, slot: Value, number: Value) -> Panel:
        fb = entry.fb
        return Panel(fb, self.form, fb.gep(I8, slot, fb.mul(number, self.form.size_bytes)))

    def _place(self, entry: KernelEntry, slot: Value, column: Value) -> tuple[Panel, Value]:
        """The panel of a column, and where it lies in it."""
        fb, width = entry.fb, self.form.width
        return self._panel(entry, slot, fb.udiv(column, width)), fb.urem(column, width)

    def _clear(self, entry: KernelEntry, slot: Value) -> None:
        """Lanes that mean nothing, below the diagonal and behind the last column, are computed with, too.

        What other kernels left there could be denormals, with which processors are slow.
        """
        entry.fb.memset(slot, 0, self.scratch_bytes, align=64)

    def _read(self, entry: KernelEntry, slot: Value, batch: Index) -> None:
        """Reads the triangle, transposed if it is the lower one."""
        fb, operand = entry.fb, self.request.body.root.operand(0)
        with fb.loop(0, self.size) as column:
            panel, at = self._place(entry, slot, column)
            with fb.loop(0, fb.add(column, 1)) as row:
                emitter = entry.emitter(1)
                place = (column, row) if self.is_lower else (row, column)
                element = emitter.element(operand, (*batch, *map(Affine, place)))
                panel.write(emitter.math, (Affine(row), Affine(at)), element)

    def _factor(self, entry: KernelEntry, slot: Value, first: Value, count: int, carried: Registers) -> Registers:
        """Computes some rows; whether no pivot was zero or negative so far. One that is NaN spreads, as in LAPACK."""
        fb, numbers, (is_positive,) = entry.fb, range(count), carried
        own = fb.udiv(first, self.form.width)
        diagonal, column = self._place(entry, slot, first)

        def coefficient(number: int, above: Value) -> Element:
            return conjugate(fb, diagonal.number(above, fb.add(column, number)))

        with fb.loop(own, self._panels) as at:
            panel = self._panel(entry, slot, at)
            for number, row in enumerate(panel.eliminate(first, count, coefficient)):
                panel.set_row(fb.add(first, number), row)
        triangle = {(i, j): diagonal.number(fb.add(first, i), fb.add(column, j)) for i in numbers for j in numbers[i:]}
        roots, inverses = list[Value](), list[Value]()
        for i in numbers:
            for k in numbers[:i]:
                factor = conjugate(fb, triangle[k, i])
                for j in numbers[i:]:
                    triangle[i, j] = minus_product(fb, triangle[i, j], factor, triangle[k, j])
            pivot = triangle[i, i]
            pivot = pivot[0] if isinstance(pivot, tuple) else pivot
            is_positive = fb.and_(is_positive, fb.fcmp("ugt", pivot, 0.0))
            roots.append(fb.sqrt(pivot))
            inverses.append(fb.fdiv(fb.constant(pivot.type, 1.0), roots[-1]))
            for j in numbers[i + 1 :]:
                triangle[i, j] = self._scaled(entry, triangle[i, j], inverses[-1])
        with fb.loop(own, self._panels) as at:
            panel = self._panel(entry, slot, at)
            rows = [panel.row(fb.add(first, i)) for i in numbers]
            for i in numbers:
                for k in numbers[:i]:
                    rows[i] = panel.without(rows[i], conjugate(fb, triangle[k, i]), rows[k])
                scale = fb.splat(inverses[i], self.form.lanes)
                rows[i] = tuple(self._scaled(entry, vector, scale) for vector in rows[i])
                panel.set_row(fb.add(first, i), rows[i])
        for i, root in enumerate(roots):
            place = Affine(fb.add(first, i)), Affine(fb.add(column, i))
            real = (root, fb.constant(root.type, 0.0)) if self.form.dtype.is_complex else root
            diagonal.write(entry.emitter(1).math, place, real)
        return (is_positive,)

    @staticmethod
    def _scaled(entry: KernelEntry, element: Element, factor: Value) -> Element:
        fb = entry.fb
        if isinstance(element, tuple):
            return fb.fmul(element[0], factor), fb.fmul(element[1], factor)
        return fb.fmul(element, factor)

    def _write(self, entry: KernelEntry, slot: Value, batch: Index, is_positive: Value) -> None:
        """Writes the triangle and zeros in the other; NaN everywhere if the matrix is not positive definite."""
        fb, form, (output,) = entry.fb, self.form, entry.outputs
        nan = fb.constant(representation(form.dtype).register, math.nan)

        def visit(row: Value, own: Panel | None, at_row: Value, at: Affine, width: int, mask: Value | None) -> None:
            emitter = entry.emitter(width, mask)
            if own is not None:
                element = own.read(emitter.math, (at, Affine(at_row)), mask)
            else:
                panel, column = self._place(entry, slot, emitter.math.scalar(at.base))
                element = panel.read(emitter.math, (Affine(row), Affine(column, at.step)), mask)
            columns, edge = emitter.math.vector(at), fb.splat(row, width)
            inside = fb.icmp("sle" if self.is_lower else "sge", columns, edge)
            parts = element if isinstance(element, tuple) else (element,)
            chosen = [fb.select(is_positive, fb.select(inside, part, 0.0), fb.splat(nan, width)) for part in parts]
            result: Element = (chosen[0], chosen[1]) if len(chosen) == 2 else chosen[0]
            output.write(emitter.math, (*batch, Affine(row), at), rounded(fb, form.dtype, result), mask)

        with fb.loop(0, self.size) as row:
            own, at_row = self._place(entry, slot, row)
            for_lanes(
                fb,
                self.size,
                form.lanes,
                lambda at, width, mask: visit(row, own if self.is_lower else None, at_row, at, width, mask),
            )
