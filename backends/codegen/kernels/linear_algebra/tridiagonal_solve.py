"""The kernel of LAPACK's gtsv: tridiagonal systems by elimination, a row with the one below it at a time.

Of two rows the one with the larger first element is kept, so that U has a second diagonal above the main one. Lanes are
right-hand sides, which stay in a register where one holds them: what waits for the row before does not wait for memory,
nor for a choice between rows where it can be foretold. The systems of a batch are split over threads.
"""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.backends.codegen.arrays.index import Affine, Index, IndexMath
from xlalite.backends.codegen.arrays.ir_array import ArrayView
from xlalite.backends.codegen.arrays.types import Element, representation, zero_element
from xlalite.backends.codegen.elements.elements import ElementEmitter
from xlalite.backends.codegen.elements.registers import flatten, unflatten
from xlalite.backends.codegen.kernels.kernel import Declined, KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry
from xlalite.backends.codegen.kernels.linear_algebra.batched import BatchedKernel
from xlalite.backends.codegen.kernels.linear_algebra.numbers import (
    chosen,
    conjugate,
    is_equal,
    minus_product,
    one_like,
    product,
    quotient,
    real_part,
    scaled,
    size_of,
)
from xlalite.backends.codegen.kernels.loop_nest import LaneBody, for_lanes
from xlalite.backends.codegen.llvm import I32, I64, FunctionBuilder, Value, lane_mask
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.passes.fusion.kernel_shape import KernelShape


def plan_tridiagonal_solve(request: KernelRequest, shape: KernelShape) -> TridiagonalSolveKernel | Declined:
    """The kernel of a gtsv."""
    if request.in_place:
        return Declined("a result lies in the memory of an operand")
    *batch, size, columns = request.body.root.operand(3).shape.dims
    return TridiagonalSolveKernel(request, tuple(batch), size, columns)


@dataclass(frozen=True, slots=True)
class TridiagonalSolveKernel(BatchedKernel):
    """A solution of tridiagonal systems.

    Attributes:
        size: Unknowns.
        columns: Right-hand sides.
    """

    size: int
    columns: int

    @property
    def parts(self) -> tuple[int, ...]:
        """None: all is computed where the results lie."""
        return ()

    def emit_matrix(self, entry: KernelEntry, parts: Sequence[Value], batch: Index) -> None:
        """Solves a system; results are the second diagonal above U's, U's and the one above, the solution and info."""
        fb, infos, last = entry.fb, entry.outputs[4], self.size - 1
        below, diagonal, above, rhs = entry.inputs
        math, zero = IndexMath(fb, 1), zero_element(rhs.dtype, 1)

        def above_of(row: Value) -> Element:
            """The last row has nothing there."""
            held = above.read(math, (*batch, Affine(row)))
            return chosen(fb, fb.icmp("slt", row, last), held, zero)

        start = fb.constant(I64, 0)
        row = diagonal.read(math, (*batch, Affine(start))), above_of(start), *self._begin(entry, batch)
        with fb.carried_loop(0, last, 1, (*flatten(row), start)) as loop:
            (*held, failed), at, under = loop.values, loop.index, fb.add(loop.index, 1)
            first, second, *line = unflatten(tuple(held), row)
            place = (*batch, Affine(under))
            lower = below.read(math, place), diagonal.read(math, place), above_of(under)
            branch = fb.if_else(fb.fcmp("olt", size_of(fb, first), size_of(fb, lower[0])))
            for arm, swaps in ((branch.then, True), (branch.otherwise, False)):
                with arm():
                    kept, other = (first, second, zero), lower
                    if swaps:
                        kept, other = other, kept
                    factor = _divided(entry.emitter(1), rhs.dtype, other[0], kept[0])
                    left = [minus_product(fb, a, factor, b) for a, b in zip(other[1:], kept[1:], strict=True)]
                    self._write(entry, batch, at, kept)
                    left += self._eliminate(entry, batch, at, factor, line, swaps=swaps)
                    branch.yield_(*flatten(left), _first_zero(fb, kept[0], failed, under))
            loop.yield_(*branch.results)
        *held, failed = loop.results
        first, second, *line = unflatten(tuple(held), row)
        self._write(entry, batch, fb.constant(I64, last), (first, second, zero))
        failed = _first_zero(fb, first, failed, fb.constant(I64, self.size))
        infos.write(math, batch, fb.trunc(failed, I32))
        if line:
            self._substitute_line(entry, batch, line[0])
            return
        for behind in range(min(self.size, 2)):
            self._substitute(entry, batch, fb.constant(I64, last - behind), behind)
        with fb.loop(2, self.size) as done:
            self._substitute(entry, batch, fb.sub(fb.constant(I64, last), done), 2)

    @property
    def _lanes(self) -> int:
        most = self.request.target.lanes(representation(self.request.body.root.operand(3).shape.dtype).register.bits)
        return min(most, 1 << (self.columns - 1).bit_length())

    def _begin(self, entry: KernelEntry, batch: Index) -> list[Element]:
        """The first row of the right-hand sides, if a register holds it; else all are copied."""
        if self.columns <= self._lanes:
            return [self._line(entry, entry.inputs[3], batch, entry.fb.constant(I64, 0))]
        with entry.fb.loop(0, self.size) as row:
            self._copy(entry, batch, row)
        return []

    def _line(self, entry: KernelEntry, view: ArrayView, batch: Index, row: Value) -> Element:
        """A row of right-hand sides in a register."""
        lanes = self._lanes
        emitter = entry.emitter(lanes, lane_mask(lanes, self.columns) if self.columns < lanes else None)
        return emitter.spread(view.read(emitter.math, (*batch, Affine(row), Affine(0, 1)), emitter.mask))

    def _set_line(self, entry: KernelEntry, batch: Index, row: Value, line: Element) -> None:
        lanes, place = self._lanes, (*batch, Affine(row), Affine(0, 1))
        mask = lane_mask(lanes, self.columns) if self.columns < lanes else None
        entry.outputs[3].write(IndexMath(entry.fb, lanes), place, line, mask)

    def _substitute_line(self, entry: KernelEntry, batch: Index, line: Element) -> None:
        """Computes the solution from the last row up; what two rows need of it stays in registers."""
        fb, (third, first, second, solution, _) = entry.fb, entry.outputs
        math, emitter = IndexMath(fb, 1), entry.emitter(self._lanes)
        last = fb.constant(I64, self.size - 1)
        self._set_line(entry, batch, last, line)
        kinds = [zero_element(solution.dtype, self._lanes)] * 2
        with fb.carried_loop(0, self.size, 1, flatten(kinds)) as loop:
            row = fb.sub(last, loop.index)
            divisor, one, other = (view.read(math, (*batch, Affine(row))) for view in (first, second, third))
            below, next_ = unflatten(loop.values, kinds)
            left = self._line(entry, solution, batch, row)
            # What has been known longer comes first.
            for factor, known in ((other, next_), (one, below)):
                left = minus_product(fb, left, emitter.spread(factor), known)
            found = _divided(emitter, solution.dtype, left, divisor)
            self._set_line(entry, batch, row, found)
            loop.yield_(*flatten([found, below]))

    def _write(self, entry: KernelEntry, batch: Index, row: Value, numbers: Sequence[Element]) -> None:
        """Writes a row of U from its diagonal on."""
        third, first, second, *_ = entry.outputs
        for view, number in zip((first, second, third), numbers, strict=True):
            view.write(IndexMath(entry.fb, 1), (*batch, Affine(row)), number)

    def _copy(self, entry: KernelEntry, batch: Index, row: Value) -> None:
        def visit(at: Affine, width: int, mask: Value | None) -> None:
            math, place = IndexMath(entry.fb, width), (*batch, Affine(row), at)
            entry.outputs[3].write(math, place, entry.inputs[3].read(math, place, mask), mask)

        self._columns(entry, visit)

    def _eliminate(
        self, entry: KernelEntry, batch: Index, row: Value, factor: Element, line: Sequence[Element], *, swaps: bool
    ) -> list[Element]:
        """Takes a row of the right-hand sides, or the one below if they change places, from the other."""
        fb, solution = entry.fb, entry.outputs[3]
        if line:
            both = [line[0], self._line(entry, entry.inputs[3], batch, fb.add(row, 1))]
            kept, other = reversed(both) if swaps else both
            self._set_line(entry, batch, row, kept)
            return [minus_product(fb, other, entry.emitter(self._lanes).spread(factor), kept)]

        def visit(at: Affine, width: int, mask: Value | None) -> None:
            emitter = entry.emitter(width, mask)
            places = [(*batch, Affine(each), at) for each in (row, fb.add(row, 1))]
            both = [emitter.spread(solution.read(emitter.math, place, mask)) for place in places]
            kept, other = reversed(both) if swaps else both
            left = minus_product(fb, other, emitter.spread(factor), kept)
            for place, number in zip(places, (kept, left), strict=True):
                solution.write(emitter.math, place, number, mask)

        self._columns(entry, visit)
        return []

    def _substitute(self, entry: KernelEntry, batch: Index, row: Value, known: int) -> None:
        """Computes a row of the solution, given so many below it."""
        fb, (third, first, second, solution, _) = entry.fb, entry.outputs
        math, own = IndexMath(fb, 1), (*batch, Affine(row))
        divisor = first.read(math, own)
        factors = [view.read(math, own) for view in (second, third)[:known]]

        def visit(at: Affine, width: int, mask: Value | None) -> None:
            emitter = entry.emitter(width, mask)
            rows = [(*batch, Affine(fb.add(row, number)), at) for number in range(known + 1)]
            left, *below = (emitter.spread(solution.read(emitter.math, place, mask)) for place in rows)
            for factor, one in zip(reversed(factors), reversed(below), strict=True):
                left = minus_product(fb, left, emitter.spread(factor), one)
            found = _divided(emitter, solution.dtype, left, divisor)
            solution.write(emitter.math, rows[0], found, mask)

        self._columns(entry, visit)

    def _columns(self, entry: KernelEntry, visit: LaneBody) -> None:
        for_lanes(entry.fb, self.columns, self._lanes, visit)


def _divided(emitter: ElementEmitter, dtype: DType, dividend: Element, number: Element) -> Element:
    """Lanes divided by a number on U's diagonal; by one if it is zero."""
    fb = emitter.fb
    divisor = chosen(fb, is_equal(fb, number, 0.0), one_like(number), number)
    if not isinstance(divisor, tuple):
        return quotient(fb, dtype, dividend, emitter.spread(divisor))
    # The squares of numbers of usual size are such, too, so that one division does.
    size, limit = size_of(fb, divisor), 2.0 ** (50 if dtype is DType.C64 else 400)
    branch = fb.if_else(fb.and_(fb.fcmp("ogt", size, 1 / limit), fb.fcmp("olt", size, limit)), likely=True)
    with branch.then():
        square = real_part(product(fb, conjugate(fb, divisor), divisor))
        inverse = scaled(fb, conjugate(fb, divisor), fb.fdiv(fb.constant(square.type, 1.0), square))
        branch.yield_(*flatten([product(fb, dividend, emitter.spread(inverse))]))
    with branch.otherwise():
        branch.yield_(*flatten([quotient(fb, dtype, dividend, emitter.spread(divisor))]))
    return unflatten(branch.results, [dividend])[0]


def _first_zero(fb: FunctionBuilder, element: Element, found: Value, number: Value) -> Value:
    """The number of the first zero on U's diagonal, given what was found before."""
    return fb.select(fb.and_(is_equal(fb, element, 0.0), fb.icmp("eq", found, 0)), number, found)
