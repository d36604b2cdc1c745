"""The kernel of LAPACK's geqrf: reflections that make zeros below the diagonal, stored where these are.

Within a panel one reflection comes after the other, in two walks through its rows: one sees what the column has in
common with those behind it, itself among them, the other reflects. The panels behind it are multiplied with all of its
reflections at once. The matrices of a batch are split over threads.
"""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.backends.codegen.arrays.index import Affine, Index, IndexMath
from xlalite.backends.codegen.arrays.types import Element, representation, zero_element
from xlalite.backends.codegen.elements.registers import flatten
from xlalite.backends.codegen.kernels.fork import fork_of
from xlalite.backends.codegen.kernels.kernel import KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry
from xlalite.backends.codegen.kernels.linear_algebra.batched import BatchedKernel
from xlalite.backends.codegen.kernels.linear_algebra.block_reflection import (
    BlockReflection,
    block_bytes,
    product_bytes,
)
from xlalite.backends.codegen.kernels.linear_algebra.numbers import (
    chosen,
    conjugate,
    near_inverse,
    negative,
    one_like,
    product,
    quotient,
    real_part,
    scaled,
    total,
)
from xlalite.backends.codegen.kernels.linear_algebra.panel import Panel, PanelForm, Row
from xlalite.backends.codegen.kernels.linear_algebra.panel_matrix import PanelMatrix, matrix_bytes
from xlalite.backends.codegen.llvm import I1, Value
from xlalite.hlo.records import dataclass
from xlalite.passes.fusion.kernel_shape import KernelShape

_USUAL_SQUARES = 2.0**-40, 2.0**40
"""Squares of the length of a column that is used as it is: its products with others are as exact as these."""


def plan_qr(request: KernelRequest, shape: KernelShape) -> QrKernel:
    """The kernel of a geqrf."""
    operand = request.body.root.operand(0).shape
    *batch, rows, columns = operand.dims
    return QrKernel(request, tuple(batch), columns, PanelForm.of(request.target, operand.dtype, rows, columns))


@dataclass(frozen=True, slots=True)
class QrKernel(BatchedKernel):
    """A factorisation into reflections and a triangle.

    Attributes:
        columns: Columns of each matrix.
        form: How it lies in scratch memory.
    """

    columns: int
    form: PanelForm

    @property
    def parts(self) -> tuple[int, int]:
        """A matrix and a block of reflections."""
        return matrix_bytes(self.form, self.columns), block_bytes(self.form, self.form)

    @property
    def task_bytes(self) -> int:
        """What one panel is multiplied with."""
        return product_bytes(self.form, self.form)

    @property
    def _steps(self) -> int:
        return min(self.form.rows, self.columns)

    def emit_matrix(self, entry: KernelEntry, parts: Sequence[Value], batch: Index) -> None:
        """Factors it."""
        fb, width = entry.fb, self.form.width
        matrix = PanelMatrix(fb, self.form, self.columns, parts[0])
        matrix.read_from(entry, entry.sources[self.request.body.root.operand(0)], batch)
        block = BlockReflection(fb, self.form, self.form, parts[1])
        with fb.loop(0, -(-self._steps // width)) as at:
            panel, first = matrix.panel(at), fb.mul(at, width)
            count = fb.smin(fb.sub(fb.constant(first.type, self._steps), first), width)
            self._factor(entry, panel, batch, first, count)
            if matrix.panels > 1:
                with fb.if_(fb.icmp("slt", at, matrix.panels - 1)):
                    self._reflect_others(entry, matrix, block, batch, at, count)
        matrix.write_to(entry.outputs[0], batch)

    def _reflect_others(
        self, entry: KernelEntry, matrix: PanelMatrix, block: BlockReflection, batch: Index, at: Value, count: Value
    ) -> None:
        """Multiplies the panels behind a factored one with the adjoint of its reflections."""
        fb, panel, first = entry.fb, matrix.panel(at), entry.fb.mul(at, self.form.width)

        def packed(row: Value, place: Affine) -> Element:
            return panel.read(IndexMath(fb, self.form.lanes), (Affine(row), place))

        def tau(number: Value) -> Element:
            return entry.outputs[1].read(IndexMath(fb, 1), (*batch, Affine(fb.add(first, number))))

        block.take(first, count, packed, tau)
        block.apply_to(matrix, fb.add(at, 1), first, count, fork_of(entry, self), adjoint=True)

    def _factor(self, entry: KernelEntry, panel: Panel, batch: Index, first: Value, count: Value) -> None:
        """Makes zeros in the columns of a panel, vector by vector of its rows."""
        fb, lanes = entry.fb, self.form.lanes
        for number in range(self.form.vectors):
            begin, end = (fb.smin(count, (number + more) * lanes) for more in (0, 1))
            with fb.loop(begin, end) as at:
                tau = self._reflect(entry, panel, fb.add(first, at), at, number)
                entry.outputs[1].write(IndexMath(fb, 1), (*batch, Affine(fb.add(first, at))), tau)

    def _reflect(self, entry: KernelEntry, panel: Panel, step: Value, at: Value, number: int) -> Element:
        """Makes zeros below a diagonal element; the tau of what did it.

        Args:
            entry: The kernel.
            panel: Where the column lies.
            step: The row of the diagonal element.
            at: The column.
            number: The vector that it is in; those before it are left alone.
        """
        fb, dtype, lanes, real = entry.fb, self.form.dtype, self.form.lanes, representation(self.form.dtype).register
        least, most = _USUAL_SQUARES
        one = fb.constant(real, 1.0)
        with fb.while_loop((one, fb.constant(I1, 1))) as trial:
            alpha = panel.number(step, at)
            seen = panel.combination(
                lambda row: conjugate(fb, panel.number(row, at)), fb.add(step, 1), self.form.rows, number
            )
            below = fb.extract(real_part(seen[0]), fb.sub(at, number * lanes)) if lanes > 1 else real_part(seen[0])
            square = fb.fadd(below, real_part(product(fb, conjugate(fb, alpha), alpha)))
            is_usual = fb.and_(fb.fcmp("oge", square, least), fb.fcmp("ole", square, most))
            trial.continue_while(fb.and_(trial.values[1], fb.not_(is_usual)))
            trial.yield_(self._normalise(entry, panel, step, at), fb.constant(I1, 0))
        is_done = fb.fcmp("oeq", below, 0.0)
        if isinstance(alpha, tuple):
            is_done = fb.and_(is_done, fb.fcmp("oeq", alpha[1], 0.0))
        length = fb.copysign(fb.sqrt(square), fb.fneg(real_part(alpha)))
        beta = fb.select(is_done, real_part(alpha), length)
        nothing = zero_element(dtype, 1)
        # tau = (beta - alpha) / beta; the vector is the column over alpha - beta, with a one at its top.
        difference = (fb.fsub(alpha[0], beta), alpha[1]) if isinstance(alpha, tuple) else fb.fsub(alpha, beta)
        inverse = fb.fdiv(one, beta)
        tau = chosen(fb, is_done, nothing, scaled(fb, negative(fb, difference), inverse))
        scale = chosen(fb, is_done, nothing, quotient(fb, dtype, one_like(alpha), difference))
        diagonal = fb.fdiv(beta, trial.values[0])
        self._reflect_rows(entry, panel, (step, at, number), is_done, tau, scale, diagonal, seen)
        return tau

    def _normalise(self, entry: KernelEntry, panel: Panel, step: Value, at: Value) -> Value:
        """Multiplies a column with the power of two that brings its largest number near to one, and gives that."""
        fb, real, scalars = entry.fb, representation(self.form.dtype).register, IndexMath(entry.fb, 1)
        with fb.carried_loop(step, self.form.rows, 1, (fb.constant(real, 0.0),)) as loop:
            largest = loop.values[0]
            for part in flatten([panel.number(loop.index, at)]):
                largest = fb.maxnum(largest, fb.fabs(part))
            loop.yield_(largest)
        factor = near_inverse(fb, loop.results[0])
        with fb.loop(step, self.form.rows) as row:
            element = scaled(fb, panel.number(row, at), factor)
            panel.write(scalars, (Affine(row), Affine(at)), element)
        return factor

    def _reflect_rows(
        self,
        entry: KernelEntry,
        panel: Panel,
        place: tuple[Value, Value, int],
        is_done: Value,
        tau: Element,
        scale: Element,
        diagonal: Value,
        seen: Row,
    ) -> None:
        """Takes v * conj(tau) * v^H * row from the rows of the columns behind, and stores v below the diagonal."""
        fb, lanes = entry.fb, self.form.lanes
        step, at, number = place
        columns, edge = panel.column_numbers(panel.columns()[number]), fb.splat(at, lanes)
        is_own, is_behind = fb.icmp("eq", columns, edge), fb.icmp("sgt", columns, edge)
        factor, own = panel.spread(conjugate(fb, tau)), panel.spread(conjugate(fb, scale))
        top = panel.row(step, number)
        common = [product(fb, factor, total(fb, a, product(fb, own, b))) for a, b in zip(top, seen, strict=True)]
        common = [chosen(fb, fb.splat(is_done, lanes), zero_element(self.form.dtype, lanes), one) for one in common]

        def reflect(row: Value, old: Row, below: Element, stored: Element) -> None:
            first, *others = panel.without(old, below, tuple(common))
            first = chosen(fb, is_own, panel.spread(stored), chosen(fb, is_behind, first, old[0]))
            panel.set_row(row, (first, *others), number)

        unit = one_like(tau)
        reflect(step, top, unit, (diagonal, fb.constant(diagonal.type, 0.0)) if isinstance(tau, tuple) else diagonal)
        with fb.loop(fb.add(step, 1), self.form.rows) as row:
            below = product(fb, panel.number(row, at), scale)
            reflect(row, panel.row(row, number), below, below)
