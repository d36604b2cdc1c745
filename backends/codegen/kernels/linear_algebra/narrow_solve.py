"""The kernel of triangular systems with few right-hand sides: vectors run along the matrix, which is read once.

Where rows of the matrix lie together, a few unknowns at a time are found from the products of their rows with those
known before; where columns do, what is found is taken from all unknowns behind.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from xlalite.backends.codegen.arrays.index import Affine, Index, IndexMath
from xlalite.backends.codegen.arrays.ir_array import lanes_below
from xlalite.backends.codegen.arrays.types import Element, zero_element
from xlalite.backends.codegen.elements.registers import Registers, flatten, unflatten
from xlalite.backends.codegen.kernels.kernel import Kernel, KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry, open_kernel
from xlalite.backends.codegen.kernels.linear_algebra.numbers import (
    chosen,
    conjugate,
    minus_product,
    negative,
    plus_product,
    quotient,
    rounded,
    total,
)
from xlalite.backends.codegen.kernels.linear_algebra.panel import Panel, PanelForm
from xlalite.backends.codegen.kernels.loop_nest import places_of
from xlalite.backends.codegen.kernels.scratch import own_slot
from xlalite.backends.codegen.llvm import I64, Function, ModuleBuilder, Value, constant
from xlalite.hlo.ops.linear_algebra import Transpose, TriangularSolveAttrs
from xlalite.hlo.records import dataclass

_TOGETHER = 4
"""Unknowns that are found together."""

Span = tuple[Value, Value]
"""The first of some unknowns, and one past the last."""

Grid = list[list[Element]]
"""Numbers of some unknowns, for each right-hand side."""


@dataclass(frozen=True, slots=True)
class NarrowSolveKernel(Kernel):
    """A substitution along the matrix.

    Attributes:
        batch: Sizes of the batch.
        size: Unknowns.
        form: How they lie in scratch memory: right-hand sides are rows, with a vector of room behind them.
    """

    batch: tuple[int, ...]
    size: int
    form: PanelForm

    @property
    def extent(self) -> int:
        """The systems."""
        return math.prod(self.batch)

    @property
    def scratch_bytes(self) -> int:
        """The unknowns."""
        return self.form.size_bytes

    @property
    def _attrs(self) -> TriangularSolveAttrs:
        attrs: TriangularSolveAttrs = self.request.body.root.attrs
        return attrs

    @property
    def _is_transposed(self) -> bool:
        """Whether the matrix that is solved for is the operand's transpose."""
        return (self._attrs.transpose_a is not Transpose.NO_TRANSPOSE) == self._attrs.left_side

    @property
    def _is_lower(self) -> bool:
        """Whether the first unknown is found first."""
        return self._attrs.lower != self._is_transposed

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """Solves the systems [begin, end)."""
        entry = open_kernel(module, name, self.request)
        fb, size, whole = entry.fb, self.size, self.size - self.size % _TOGETHER
        with own_slot(entry, self.scratch_bytes) as slot, fb.loop(entry.begin, entry.end) as number:
            batch, panel = places_of(fb, number, self.batch), Panel(fb, self.form, slot)
            self._read(entry, panel, batch)
            for begin, end, count in ((0, whole, _TOGETHER), (whole, size, 1)):
                with fb.loop(begin, end, count) as at:
                    first = at if self._is_lower else fb.sub(constant(I64, size - count), at)
                    self._solve(entry, panel, batch, first, count)
            self._write(entry, panel, batch)
        fb.ret()
        return entry.function

    def _read(self, entry: KernelEntry, panel: Panel, batch: Index) -> None:
        rhs, emitter = self.request.body.root.operand(1), entry.emitter(1)
        with entry.fb.loop(0, self.size) as at:
            for side in range(self.form.rows):
                element = entry.emitter(1).element(rhs, self._index(batch, at, side))
                panel.write(emitter.math, (Affine(side), Affine(at)), element)

    def _write(self, entry: KernelEntry, panel: Panel, batch: Index) -> None:
        scalars = IndexMath(entry.fb, 1)
        with entry.fb.loop(0, self.size) as at:
            for side in range(self.form.rows):
                element = rounded(entry.fb, self.form.dtype, panel.read(scalars, (Affine(side), Affine(at))))
                entry.outputs[0].write(scalars, self._index(batch, at, side), element)

    def _index(self, batch: Index, unknown: Value, side: int) -> Index:
        place = Affine(unknown), Affine(side)
        return (*batch, *(place if self._attrs.left_side else place[::-1]))

    def _coefficients(
        self, entry: KernelEntry, batch: Index, row: Value, at: Affine, lanes: int, mask: Value | None
    ) -> Element:
        """Numbers of a row of the operand."""
        emitter = entry.emitter(lanes, mask)
        element = emitter.element(self.request.body.root.operand(0), (*batch, Affine(row), at))
        return conjugate(entry.fb, element) if self._attrs.transpose_a is Transpose.ADJOINT else element

    def _solve(self, entry: KernelEntry, panel: Panel, batch: Index, first: Value, count: int) -> None:
        """Finds some unknowns."""
        fb, sides = entry.fb, range(self.form.rows)
        numbers = [fb.add(first, number) for number in range(count)]
        held: Grid = [[panel.number(constant(I64, side), number) for side in sides] for number in numbers]
        behind = fb.add(first, count)
        below, above = (constant(I64, 0), first), (behind, constant(I64, self.size))
        if not self._is_transposed:
            held = self._without_known(entry, panel, batch, numbers, held, below if self._is_lower else above)
        order = list(range(count)) if self._is_lower else list(range(count))[::-1]
        for done, i in enumerate(order):
            for k in order[:done]:
                factor = self._number(entry, batch, numbers[i], numbers[k])
                held[i] = [minus_product(fb, a, factor, b) for a, b in zip(held[i], held[k], strict=True)]
            if not self._attrs.unit_diagonal:
                divisor = self._number(entry, batch, numbers[i], numbers[i])
                held[i] = [quotient(fb, self.form.dtype, a, divisor) for a in held[i]]
            for side in sides:
                panel.write(IndexMath(fb, 1), (Affine(side), Affine(numbers[i])), held[i][side])
        if self._is_transposed:
            self._take_from_others(entry, panel, batch, numbers, held, above if self._is_lower else below)

    def _number(self, entry: KernelEntry, batch: Index, row: Value, column: Value) -> Element:
        """One number of the matrix that is solved for."""
        row, column = (column, row) if self._is_transposed else (row, column)
        return self._coefficients(entry, batch, row, Affine(column), 1, None)

    def _without_known(
        self,
        entry: KernelEntry,
        panel: Panel,
        batch: Index,
        numbers: list[Value],
        held: Grid,
        known: tuple[Value, Value],
    ) -> Grid:
        """Unknowns without what those in a range contribute."""
        fb, lanes, sides = entry.fb, self.form.lanes, self.form.rows
        kinds = [zero_element(self.form.dtype, lanes)] * (len(numbers) * sides)

        def more(at: Value, mask: Value | None, carried: Registers) -> Registers:
            place = Affine(at, 1)
            found = [panel.read(IndexMath(fb, lanes), (Affine(side), place), mask) for side in range(sides)]
            sums, added = unflatten(carried, kinds), list[Element]()
            for number, row in enumerate(numbers):
                taken = self._coefficients(entry, batch, row, place, lanes, mask)
                own = sums[number * sides : (number + 1) * sides]
                added += [plus_product(fb, a, taken, b) for a, b in zip(own, found, strict=True)]
            return flatten(added)

        sums = unflatten(self._along(entry, known, flatten(kinds), more), kinds)
        left: Grid = []
        for number, row in enumerate(held):
            parts = [self._sum(entry, one) for one in sums[number * sides : (number + 1) * sides]]
            left.append([total(fb, a, negative(fb, b)) for a, b in zip(row, parts, strict=True)])
        return left

    def _take_from_others(
        self,
        entry: KernelEntry,
        panel: Panel,
        batch: Index,
        numbers: list[Value],
        held: Grid,
        others: tuple[Value, Value],
    ) -> None:
        """Takes what some unknowns contribute from those in a range."""
        fb, lanes = entry.fb, self.form.lanes
        spread = [[panel.spread(element) for element in row] for row in held]

        def visit(at: Value, mask: Value | None, carried: Registers) -> Registers:
            vectors = IndexMath(fb, lanes)
            taken = [self._coefficients(entry, batch, row, Affine(at, 1), lanes, mask) for row in numbers]
            for side in range(self.form.rows):
                index = (Affine(side), Affine(at, 1))
                old = new = panel.read(vectors, index)
                for factor, row in zip(taken, spread, strict=True):
                    new = minus_product(fb, new, factor, row[side])
                panel.write(vectors, index, new if mask is None else chosen(fb, mask, new, old))
            return carried

        self._along(entry, others, (), visit)

    def _along(
        self,
        entry: KernelEntry,
        span: Span,
        carried: Registers,
        body: Callable[[Value, Value | None, Registers], Registers],
    ) -> Registers:
        """Whole vectors of a range, then what is left, perhaps nothing, with a mask."""
        fb, lanes, (begin, end) = entry.fb, self.form.lanes, span
        whole = fb.sub(end, fb.urem(fb.sub(end, begin), lanes))
        with fb.carried_loop(begin, whole, lanes, carried) as loop:
            loop.yield_(*body(loop.index, None, loop.values))
        return body(whole, lanes_below(fb, whole, end, lanes), loop.results)

    def _sum(self, entry: KernelEntry, element: Element) -> Element:
        """The sum of all lanes."""
        parts = [entry.fb.reduce(part, entry.fb.fadd) for part in flatten([element])]
        return (parts[0], parts[1]) if len(parts) == 2 else parts[0]


def narrow_solve(request: KernelRequest, batch: tuple[int, ...], size: int, sides: int) -> NarrowSolveKernel | None:
    """The kernel for few right-hand sides and enough unknowns; None for others."""
    form = PanelForm.of(request.target, request.body.root.shape.dtype, sides, max(size, 1))
    if not 0 < sides <= _TOGETHER or size < 2 * form.lanes or form.lanes == 1:
        return None
    vectors = -(-size // form.lanes) + 1
    return NarrowSolveKernel(request, batch, size, PanelForm(form.dtype, sides, form.lanes, vectors))
