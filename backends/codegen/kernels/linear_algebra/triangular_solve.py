"""The kernel of triangular systems: strips of right-hand sides, a panel wide, are solved by forward substitution.

Every form of the operation is op(a) * x = b with a lower triangle once rows are counted from the end for an upper one
and x * op(a) = b is transposed. Strips and matrices of a batch are split over threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from xlalite.backends.codegen.arrays.index import Affine, Index
from xlalite.backends.codegen.arrays.ir_array import lanes_below
from xlalite.backends.codegen.arrays.types import Element
from xlalite.backends.codegen.elements.registers import Registers
from xlalite.backends.codegen.kernels.kernel import Kernel, KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry, open_kernel
from xlalite.backends.codegen.kernels.linear_algebra.narrow_solve import narrow_solve
from xlalite.backends.codegen.kernels.linear_algebra.numbers import conjugate, quotient, rounded
from xlalite.backends.codegen.kernels.linear_algebra.panel import Panel, PanelForm, in_blocks
from xlalite.backends.codegen.kernels.loop_nest import places_of
from xlalite.backends.codegen.kernels.scratch import own_slot
from xlalite.backends.codegen.llvm import I64, Function, ModuleBuilder, Value, constant
from xlalite.hlo.ops.linear_algebra import Transpose, TriangularSolveAttrs
from xlalite.hlo.records import dataclass
from xlalite.passes.fusion.kernel_shape import KernelShape


def plan_triangular_solve(request: KernelRequest, shape: KernelShape) -> Kernel:
    """The kernel of a triangular-solve."""
    root = request.body.root
    attrs: TriangularSolveAttrs = root.attrs
    *batch, rows, columns = root.shape.dims
    if not attrs.left_side:
        rows, columns = columns, rows
    narrow = narrow_solve(request, tuple(batch), rows, columns)
    if narrow is not None:
        return narrow
    form = PanelForm.of(request.target, root.shape.dtype, rows, max(columns, 1))
    return TriangularSolveKernel(request, tuple(batch), columns, form)


@dataclass(frozen=True, slots=True)
class TriangularSolveKernel(Kernel):
    """A substitution.

    Attributes:
        batch: Sizes of the batch.
        columns: Right-hand sides.
        form: How a strip of them lies in scratch memory; its rows are the unknowns.
    """

    batch: tuple[int, ...]
    columns: int
    form: PanelForm

    @property
    def extent(self) -> int:
        """The strips of all matrices."""
        return math.prod(self.batch) * self._strips

    @property
    def scratch_bytes(self) -> int:
        """A strip."""
        return self.form.size_bytes

    @property
    def _strips(self) -> int:
        return -(-self.columns // self.form.width)

    @property
    def _attrs(self) -> TriangularSolveAttrs:
        attrs: TriangularSolveAttrs = self.request.body.root.attrs
        return attrs

    @property
    def _is_transposed(self) -> bool:
        """Whether the matrix that is solved for is the operand's transpose."""
        return (self._attrs.transpose_a is not Transpose.NO_TRANSPOSE) == self._attrs.left_side

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """Solves for the strips [begin, end)."""
        entry = open_kernel(module, name, self.request)
        if self.extent and self.form.rows:
            fb = entry.fb
            with own_slot(entry, self.scratch_bytes) as slot:
                panel = Panel(fb, self.form, slot)
                with fb.loop(entry.begin, entry.end) as unit:
                    batch = places_of(fb, fb.udiv(unit, self._strips), self.batch)
                    begin = fb.mul(fb.urem(unit, self._strips), self.form.width) if self._strips > 1 else 0
                    self._read(entry, panel, batch, begin)
                    in_blocks(fb, self.form, (), partial(self._solve, entry, panel, batch))
                    self._write(entry, panel, batch, begin)
        entry.fb.ret()
        return entry.function

    def _read(self, entry: KernelEntry, panel: Panel, batch: Index, begin: Value | int) -> None:
        rhs = self.request.body.root.operand(1)

        def visit(row: Value, at: Affine, place: Affine, mask: Value | None) -> None:
            emitter = entry.emitter(self.form.lanes, mask)
            element = emitter.element(rhs, self._index(entry, batch, row, at))
            panel.write(emitter.math, (Affine(row), place), element)

        self._for_vectors(entry, panel, begin, visit)

    def _write(self, entry: KernelEntry, panel: Panel, batch: Index, begin: Value | int) -> None:
        (output,) = entry.outputs

        def visit(row: Value, at: Affine, place: Affine, mask: Value | None) -> None:
            emitter = entry.emitter(self.form.lanes, mask)
            element = rounded(entry.fb, self.form.dtype, panel.read(emitter.math, (Affine(row), place)))
            output.write(emitter.math, self._index(entry, batch, row, at), element, mask)

        self._for_vectors(entry, panel, begin, visit)

    def _for_vectors(
        self,
        entry: KernelEntry,
        panel: Panel,
        begin: Value | int,
        visit: Callable[[Value, Affine, Affine, Value | None], None],
    ) -> None:
        """Visits (row, first right-hand side, first column of the panel, mask) for all vectors of a strip."""
        fb, lanes = entry.fb, self.form.lanes
        with fb.loop(0, self.form.rows) as row:
            for number, place in enumerate(panel.columns()):
                # Known now where it can be: of a mask that LLVM finds out, `masked_store` knows nothing.
                at = begin + number * lanes if isinstance(begin, int) else fb.add(begin, number * lanes)
                is_whole = self.columns % self.form.width == 0
                mask = None if is_whole else lanes_below(fb, at, self.columns, lanes)
                visit(row, Affine(at, 1), place, mask)

    def _index(self, entry: KernelEntry, batch: Index, row: Value, column: Affine) -> Index:
        """Where a right-hand side's number lies in the arrays."""
        place = Affine(self._counted(entry, row))
        return (*batch, place, column) if self._attrs.left_side else (*batch, column, place)

    def _counted(self, entry: KernelEntry, row: Value) -> Value:
        """The row of the arrays that is solved for as a row of the panel."""
        is_lower = self._attrs.lower != self._is_transposed
        return row if is_lower else entry.fb.sub(constant(I64, self.form.rows - 1), row)

    def _solve(
        self, entry: KernelEntry, panel: Panel, batch: Index, first: Value, count: int, carried: Registers
    ) -> Registers:
        """Solves for some rows; the ones before them are solved for."""
        fb, matrix, attrs = entry.fb, self.request.body.root.operand(0), self._attrs

        def coefficient(row: Value, column: Value) -> Element:
            place = Affine(self._counted(entry, row)), Affine(self._counted(entry, column))
            place = place[::-1] if self._is_transposed else place
            element = entry.emitter(1).element(matrix, (*batch, *place))
            return conjugate(fb, element) if attrs.transpose_a is Transpose.ADJOINT else element

        numbers = [fb.add(first, number) for number in range(count)]
        rows = panel.eliminate(first, count, lambda number, before: coefficient(numbers[number], before))
        for i, row in enumerate(numbers):
            for k in range(i):
                rows[i] = panel.without(rows[i], coefficient(row, numbers[k]), rows[k])
            if not attrs.unit_diagonal:
                divisor = panel.spread(coefficient(row, row))
                rows[i] = tuple(quotient(fb, self.form.dtype, vector, divisor) for vector in rows[i])
            panel.set_row(row, rows[i])
        return carried
