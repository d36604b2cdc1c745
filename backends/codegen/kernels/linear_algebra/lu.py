"""The kernel of LAPACK's getrf: Gaussian elimination that brings the largest element of each column to the diagonal.

Panel by panel: all that the panels before it contribute is taken away, four rows at a time; then its own columns are
eliminated one after the other, and rows change places in all panels. The matrices of a batch are split over threads;
those that share one matrix take what a panel contributes away from all panels behind it, each from some.
"""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.backends.codegen.arrays.index import Affine, Index, IndexMath
from xlalite.backends.codegen.arrays.ir_array import lanes_below
from xlalite.backends.codegen.arrays.types import Element, representation
from xlalite.backends.codegen.elements.registers import Registers
from xlalite.backends.codegen.kernels.fork import Fork, fork_of
from xlalite.backends.codegen.kernels.kernel import KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry
from xlalite.backends.codegen.kernels.linear_algebra.batched import BatchedKernel
from xlalite.backends.codegen.kernels.linear_algebra.numbers import (
    chosen,
    is_equal,
    one_like,
    product,
    quotient,
    scaled,
)
from xlalite.backends.codegen.kernels.linear_algebra.panel import Panel, PanelForm, in_blocks
from xlalite.backends.codegen.kernels.linear_algebra.panel_matrix import PanelMatrix, matrix_bytes
from xlalite.backends.codegen.llvm import F32, I32, I64, FunctionBuilder, Value, widened
from xlalite.hlo.records import dataclass
from xlalite.passes.fusion.kernel_shape import KernelShape


def plan_lu(request: KernelRequest, shape: KernelShape) -> LuKernel:
    """The kernel of a getrf."""
    operand = request.body.root.operand(0).shape
    *batch, rows, columns = operand.dims
    return LuKernel(request, tuple(batch), columns, PanelForm.of(request.target, operand.dtype, rows, columns))


@dataclass(frozen=True, slots=True)
class LuKernel(BatchedKernel):
    """A factorisation with row exchanges.

    Attributes:
        columns: Columns of each matrix.
        form: How it lies in scratch memory.
    """

    columns: int
    form: PanelForm

    @property
    def parts(self) -> tuple[int]:
        """A matrix."""
        return (matrix_bytes(self.form, self.columns),)

    @property
    def forks(self) -> bool:
        """If there are panels to share."""
        return self.columns > self.form.width

    @property
    def _steps(self) -> int:
        return min(self.form.rows, self.columns)

    def emit_matrix(self, entry: KernelEntry, parts: Sequence[Value], batch: Index) -> None:
        """Factors it."""
        fb, (factors, _, infos) = entry.fb, entry.outputs
        matrix = PanelMatrix(fb, self.form, self.columns, parts[0])
        matrix.read_from(entry, entry.sources[self.request.body.root.operand(0)], batch)
        fork, width = fork_of(entry, self), self.form.width
        with fb.carried_loop(0, matrix.panels, 1, (fb.constant(I64, 0),)) as loop:
            known = fb.smin(fb.mul(loop.index, width), self._steps)
            panel = matrix.panel(loop.index)
            if fork is None:
                with fb.if_(fb.icmp("sgt", known, 0)):
                    self._take_all_away(matrix, loop.index, known)
            loop.yield_(self._factor(entry, matrix, panel, batch, known, loop.values[0]))
            if fork is not None:
                end = fb.smin(fb.add(known, width), self._steps)
                self._take_away_behind(fork, matrix, fb.add(loop.index, 1), known, end)
        matrix.write_to(factors, batch)
        infos.write(IndexMath(fb, 1), batch, fb.trunc(loop.results[0], I32))

    def _take_all_away(self, matrix: PanelMatrix, number: Value, known: Value) -> None:
        """Takes what all rows before one contribute from the others of a panel."""

        def emit(inner: FunctionBuilder, held: Sequence[Value]) -> None:
            own = PanelMatrix(inner, self.form, self.columns, held[0])
            self._take_away(own, own.panel(held[1]), inner.constant(I64, 0), held[2])

        matrix.fb.apart("take_away", [matrix.pointer, number, known], emit)

    def _take_away_behind(self, fork: Fork, matrix: PanelMatrix, behind: Value, begin: Value, end: Value) -> None:
        """Takes what the rows [begin, end) contribute from the panels from one on."""

        def task(inner: FunctionBuilder, words: Sequence[Value], turn: Value, last: Value) -> None:
            pointer, behind, begin, end = words
            own = PanelMatrix(inner, self.form, self.columns, pointer)
            with inner.loop(inner.add(behind, turn), inner.add(behind, last)) as number:
                self._take_away(own, own.panel(number), begin, end)

        fb = matrix.fb
        turns = fb.sub(fb.constant(I64, matrix.panels), behind)
        fork.loop(fb, turns, [matrix.pointer, behind, begin, end], task)

    def _take_away(self, matrix: PanelMatrix, panel: Panel, begin: Value, known: Value) -> None:
        """Takes what the rows [begin, known) contribute from all rows behind them, themselves among these."""
        fb = matrix.fb

        def block(first: Value, count: int, carried: Registers) -> Registers:
            def coefficient(number: int, above: Value) -> Element:
                return matrix.number(fb.add(first, number), above)

            numbers = [fb.add(first, number) for number in range(count)]
            held = [panel.row(number) for number in numbers]
            rows = panel.take_from(held, coefficient, begin, fb.smin(first, known))
            with fb.if_(fb.icmp("slt", first, known)):
                for i in range(count):
                    row = rows[i]
                    for k in range(i):
                        row = panel.without(row, coefficient(i, numbers[k]), panel.row(numbers[k]))
                    panel.set_row(numbers[i], row)
            with fb.if_(fb.icmp("sge", first, known)):
                for number, row in zip(numbers, rows, strict=True):
                    panel.set_row(number, row)
            return carried

        in_blocks(fb, self.form, (), block, begin)

    def _factor(
        self, entry: KernelEntry, matrix: PanelMatrix, panel: Panel, batch: Index, known: Value, info: Value
    ) -> Value:
        """Eliminates the columns of a panel; the first that had no pivot, counted from 1."""
        fb, (_, pivots, _), scalars = entry.fb, entry.outputs, IndexMath(entry.fb, 1)
        with fb.carried_loop(known, fb.smin(fb.add(known, self.form.width), self._steps), 1, (info,)) as loop:
            step, (failed,) = loop.index, loop.values
            at = fb.sub(step, known)
            largest = self._largest(entry, panel, step, at)
            pivots.write(scalars, (*batch, Affine(step)), fb.trunc(fb.add(largest, 1), I32))
            with matrix.each_panel() as other:
                upper, lower = other.row(step), other.row(largest)
                other.set_row(step, lower)
                other.set_row(largest, upper)
            is_zero = self._clear_below(entry, panel, step, at)
            is_first = fb.and_(is_zero, fb.icmp("eq", failed, 0))
            loop.yield_(fb.select(is_first, fb.add(step, 1), failed))
        return loop.results[0]

    def _largest(self, entry: KernelEntry, panel: Panel, step: Value, at: Value) -> Value:
        """The row from `step` on with the largest element, or the first NaN, of a column.

        The bits of numbers that are not negative are in the order of the numbers.
        """
        fb, lanes, rows = entry.fb, self.form.lanes, self.form.rows
        word = widened(representation(self.form.dtype).word, lanes)
        math, none = IndexMath(fb, lanes), fb.constant(word, -1)
        with fb.carried_loop(step, rows, lanes, (none, fb.constant(widened(I64, lanes), 0))) as search:
            mask = lanes_below(fb, search.index, rows, lanes) if lanes > 1 else None
            element = panel.read(math, (Affine(search.index, 1), Affine(at)), mask)
            parts = element if isinstance(element, tuple) else (element,)
            size = fb.fabs(parts[0]) if len(parts) == 1 else fb.fadd(fb.fabs(parts[0]), fb.fabs(parts[1]))
            key = fb.select(fb.fcmp("uno", size, size), (1 << word.bits - 1) - 1, fb.bitcast(size, word))
            key = key if mask is None else fb.select(mask, key, none)
            is_larger = fb.icmp("sgt", key, search.values[0])
            found = fb.select(is_larger, math.vector(Affine(search.index, 1)), search.values[1])
            search.yield_(fb.select(is_larger, key, search.values[0]), found)
        keys, found = search.results
        largest = fb.reduce(keys, fb.smax)
        is_largest = fb.icmp("eq", keys, fb.splat(largest, lanes))
        return fb.reduce(fb.select(is_largest, found, rows), fb.smin)

    def _clear_below(self, entry: KernelEntry, panel: Panel, step: Value, at: Value) -> Value:
        """Divides a column below the diagonal by its pivot and takes the step's row from all below; if it is zero.

        The vectors of a row before the one that the column is in are left alone.
        """
        fb, lanes = entry.fb, self.form.lanes
        pivot = panel.number(step, at)
        is_zero = is_equal(fb, pivot, 0.0)
        scale, inverse = self._inverse(entry, pivot, is_zero)
        vector, edge = fb.udiv(at, lanes), fb.splat(at, lanes)
        for number in range(self.form.vectors):
            with fb.if_(fb.icmp("eq", vector, number)):
                taken = panel.row(step, number)
                columns = panel.column_numbers(panel.columns()[number])
                is_own, is_behind = fb.icmp("eq", columns, edge), fb.icmp("sgt", columns, edge)
                with fb.loop(fb.add(step, 1), self.form.rows) as row:
                    factor = product(fb, scaled(fb, panel.number(row, at), scale), inverse)
                    old = panel.row(row, number)
                    first, *others = panel.without(old, factor, taken)
                    first = chosen(fb, is_own, panel.spread(factor), chosen(fb, is_behind, first, old[0]))
                    panel.set_row(row, (first, *others), number)
        return is_zero

    def _inverse(self, entry: KernelEntry, pivot: Element, is_zero: Value) -> tuple[Value, Element]:
        """(a power of two, what numbers that were multiplied with it are multiplied with instead of being divided).

        Without the first, the inverse of a very small or large pivot would not be a normal number. Where the pivot is
        zero, so are all numbers below it.
        """
        fb, parts = entry.fb, pivot if isinstance(pivot, tuple) else (pivot,)
        size = fb.fabs(parts[0]) if len(parts) == 1 else fb.fadd(fb.fabs(parts[0]), fb.fabs(parts[1]))
        limit = 2.0 ** (60 if size.type is F32 else 500)
        one = fb.constant(size.type, 1.0)
        scale = fb.select(fb.fcmp("olt", size, 1 / limit), limit, one)
        scale = fb.select(fb.fcmp("ogt", size, limit), 1 / limit, scale)
        divisor = chosen(fb, is_zero, one_like(pivot), scaled(fb, pivot, scale))
        return scale, quotient(fb, self.form.dtype, one_like(pivot), divisor)
