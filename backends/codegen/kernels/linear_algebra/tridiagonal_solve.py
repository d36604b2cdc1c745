"""The kernel of LAPACK's gtsv: tridiagonal systems by elimination, a row with the one below it at a time.

Of two rows the one with the larger first element is kept, so that U has a second diagonal above the main one. Lanes are
right-hand sides; the systems of a batch are split over threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xlalite.backends.codegen.arrays.index import Affine, Index, IndexMath
from xlalite.backends.codegen.arrays.types import Element, representation, zero_element
from xlalite.backends.codegen.complex_math import emit_complex
from xlalite.backends.codegen.elements.registers import flatten, unflatten
from xlalite.backends.codegen.kernels.kernel import Declined, KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry
from xlalite.backends.codegen.kernels.linear_algebra.batched import BatchedKernel
from xlalite.backends.codegen.kernels.linear_algebra.numbers import chosen, is_equal, minus_product, one_like, quotient
from xlalite.backends.codegen.kernels.loop_nest import LaneBody, for_lanes
from xlalite.backends.codegen.llvm import I32, I64, FunctionBuilder, Value
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

        with fb.loop(0, self.size) as row:
            self._copy(entry, batch, row)
        start = fb.constant(I64, 0)
        pair = diagonal.read(math, (*batch, Affine(start))), above_of(start)
        with fb.carried_loop(0, last, 1, (*flatten(pair), start)) as loop:
            (*held, failed), at, under = loop.values, loop.index, fb.add(loop.index, 1)
            upper = (*unflatten(tuple(held), pair), zero)
            place = (*batch, Affine(under))
            lower = below.read(math, place), diagonal.read(math, place), above_of(under)
            swaps = fb.fcmp("olt", _size(fb, upper[0]), _size(fb, lower[0]))
            kept = [chosen(fb, swaps, low, up) for up, low in zip(upper, lower, strict=True)]
            other = [chosen(fb, swaps, up, low) for up, low in zip(upper, lower, strict=True)]
            factor = quotient(fb, rhs.dtype, other[0], _divisor(fb, kept[0]))
            left = [minus_product(fb, a, factor, b) for a, b in zip(other[1:], kept[1:], strict=True)]
            self._write(entry, batch, at, kept)
            self._eliminate(entry, batch, at, swaps, factor)
            loop.yield_(*flatten(left), _first_zero(fb, kept[0], failed, under))
        *held, failed = loop.results
        ends = (*unflatten(tuple(held), pair), zero)
        self._write(entry, batch, fb.constant(I64, last), ends)
        failed = _first_zero(fb, ends[0], failed, fb.constant(I64, self.size))
        infos.write(math, batch, fb.trunc(failed, I32))
        for behind in range(min(self.size, 2)):
            self._substitute(entry, batch, fb.constant(I64, last - behind), behind)
        with fb.loop(2, self.size) as done:
            self._substitute(entry, batch, fb.sub(fb.constant(I64, last), done), 2)

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

    def _eliminate(self, entry: KernelEntry, batch: Index, row: Value, swaps: Value, factor: Element) -> None:
        """Takes a row of the solution, or the one below if they change places, from the other."""
        fb, solution = entry.fb, entry.outputs[3]

        def visit(at: Affine, width: int, mask: Value | None) -> None:
            emitter = entry.emitter(width, mask)
            places = [(*batch, Affine(each), at) for each in (row, fb.add(row, 1))]
            up, low = (emitter.spread(solution.read(emitter.math, place, mask)) for place in places)
            kept, other = chosen(fb, swaps, low, up), chosen(fb, swaps, up, low)
            left = minus_product(fb, other, emitter.spread(factor), kept)
            for place, number in zip(places, (kept, left), strict=True):
                solution.write(emitter.math, place, number, mask)

        self._columns(entry, visit)

    def _substitute(self, entry: KernelEntry, batch: Index, row: Value, known: int) -> None:
        """Computes a row of the solution, given so many below it."""
        fb, (third, first, second, solution, _) = entry.fb, entry.outputs
        math, own = IndexMath(fb, 1), (*batch, Affine(row))
        divisor = _divisor(fb, first.read(math, own))
        factors = [view.read(math, own) for view in (second, third)[:known]]

        def visit(at: Affine, width: int, mask: Value | None) -> None:
            emitter = entry.emitter(width, mask)
            rows = [(*batch, Affine(fb.add(row, number)), at) for number in range(known + 1)]
            left, *below = (emitter.spread(solution.read(emitter.math, place, mask)) for place in rows)
            for factor, one in zip(factors, below, strict=True):
                left = minus_product(fb, left, emitter.spread(factor), one)
            found = quotient(fb, solution.dtype, left, emitter.spread(divisor))
            solution.write(emitter.math, rows[0], found, mask)

        self._columns(entry, visit)

    def _columns(self, entry: KernelEntry, visit: LaneBody) -> None:
        most = self.request.target.lanes(representation(entry.outputs[3].dtype).register.bits)
        for_lanes(entry.fb, self.columns, min(most, 1 << (self.columns - 1).bit_length()), visit)


def _size(fb: FunctionBuilder, element: Element) -> Value:
    """The absolute value."""
    found = emit_complex(fb, "abs", element) if isinstance(element, tuple) else fb.fabs(element)
    assert isinstance(found, Value), "sizes are real"
    return found


def _divisor(fb: FunctionBuilder, element: Element) -> Element:
    """What is divided by for a number on U's diagonal."""
    return chosen(fb, is_equal(fb, element, 0.0), one_like(element), element)


def _first_zero(fb: FunctionBuilder, element: Element, found: Value, number: Value) -> Value:
    """The number of the first zero on U's diagonal, given what was found before."""
    return fb.select(fb.and_(is_equal(fb, element, 0.0), fb.icmp("eq", found, 0)), number, found)
