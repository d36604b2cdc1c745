"""The row kernel: reductions along the minor dimensions with everything around them, row by row.

Reductions that need each other's results take several passes over a row, which stays in the nearest cache; what is
expensive and needed by more than one pass is kept in a scratch row. Softmax, layer norm and cross entropy are one
kernel each. The parallel extent is the outermost row dimension.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xlalite.backends.codegen.arrays.index import Affine, Index, Position
from xlalite.backends.codegen.arrays.ir_array import ArrayView
from xlalite.backends.codegen.arrays.types import Element, representation
from xlalite.backends.codegen.elements.elements import ElementEmitter, ElementSource
from xlalite.backends.codegen.elements.registers import flatten, unflatten
from xlalite.backends.codegen.kernels.accumulation import Accumulation
from xlalite.backends.codegen.kernels.accumulator_sweep import Registers, Sweep, SweepBody, SweepInOrder
from xlalite.backends.codegen.kernels.extreme_accumulation import ExtremeAccumulation
from xlalite.backends.codegen.kernels.kernel import Declined, Kernel, KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry, lane_count, open_kernel, read_from
from xlalite.backends.codegen.kernels.row_plan import RowPlan, plan_passes
from xlalite.backends.codegen.llvm import Function, ModuleBuilder, Value, array
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.types.decision import Number
from xlalite.passes.fusion.kernel_shape import KernelShape, results_of


def plan_row(request: KernelRequest, shape: KernelShape) -> RowKernel | Declined:
    """The kernel that computes row after row."""
    plan = plan_passes(request, shape)
    return plan if isinstance(plan, Declined) else RowKernel(request, plan)


@dataclass(frozen=True, slots=True)
class RowKernel(Kernel):
    """Reductions along the minor dimensions.

    Attributes:
        plan: The passes over a row.
    """

    takes_places: ClassVar[bool] = True

    plan: RowPlan

    @property
    def extent(self) -> int:
        """The outermost row dimension."""
        row_dims = self.plan.shape.domain.row_dims
        return row_dims[0] if row_dims else 1

    @property
    def figures(self) -> dict[str, Number]:
        """Reductions recognised as extremes with their positions."""
        found = [a for a in self.plan.accumulations if isinstance(a, ExtremeAccumulation)]
        return {"extremes": "; ".join(f"{a.reduce.name}: {a.extreme}" for a in found)} if found else {}

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """Walks over the rows."""
        body, plan = self.request.body, self.plan
        entry = open_kernel(module, name, self.request)
        row_dims = plan.shape.domain.row_dims
        if 0 not in row_dims:
            lanes = _row_lanes(module, body, plan, plan.column_dims[-1])
            _for_rows(entry, row_dims, _RowEmitter(entry, body, plan, lanes))
        entry.fb.ret()
        return entry.function


def _row_lanes(module: ModuleBuilder, body: HloComputation, plan: RowPlan, columns: int) -> int:
    lanes = lane_count(module, body, max(columns, 1))
    if all(accumulation.monoids is not None for accumulation in plan.accumulations):
        return lanes
    if len(plan.column_dims) > 1:
        return 1
    # Lanes of other reductions start from elements, so each needs one.
    return min(lanes, 1 << (max(columns, 1).bit_length() - 1))


def _for_rows(entry: KernelEntry, dims: tuple[int, ...], kernel: _RowEmitter) -> None:
    fb = entry.fb

    def nest(outer: tuple[Position, ...]) -> None:
        if len(outer) == len(dims):
            kernel.emit_row(outer)
            return
        with fb.loop(0, dims[len(outer)]) as position:
            nest((*outer, Affine(position)))

    if not dims:
        kernel.emit_row(())
        return
    with fb.loop(entry.begin, entry.end) as position:
        nest((Affine(position),))


@dataclass(slots=True)
class _Row:
    """One row being emitted: what is known so far.

    Attributes:
        index: Which row.
        sources: Elements that are there already.
        variadic: The results of a reduction of several arrays, once it is done.
    """

    index: Index
    sources: dict[HloInstruction, ElementSource]
    variadic: tuple[Element, ...] = ()


@dataclass(frozen=True, slots=True)
class _Pass:
    """One pass over a row.

    Attributes:
        row: The row.
        level: Which pass.
        accumulations: The reductions.
        kept_now: What is stored on the way for later passes.
    """

    row: _Row
    level: int
    accumulations: tuple[Accumulation, ...]
    kept_now: list[HloInstruction]


class _RowEmitter:
    """Emits rows of one kernel."""

    def __init__(self, entry: KernelEntry, body: HloComputation, plan: RowPlan, lanes: int) -> None:
        self._entry = entry
        self._plan = plan
        self._lanes = lanes
        self._results = results_of(body)
        self._scratch = {member: self._scratch_row(member) for member in plan.kept}

    def emit_row(self, index: Index) -> None:
        row = _Row(index, dict(self._entry.sources))
        for level, accumulations in enumerate(self._plan.levels):
            self._hoist(row, level)
            self._reduce(row, level, accumulations)
        self._hoist(row, len(self._plan.levels))
        self._store(row)

    def _emitter(self, row: _Row, lanes: int, mask: Value | None = None) -> ElementEmitter:
        entry = self._entry.emitter(lanes, mask)
        return ElementEmitter(entry.fb, lanes, row.sources, entry.rules, mask)

    def _scratch_row(self, member: HloInstruction) -> ArrayView:
        held = representation(member.shape.dtype)
        count = self._plan.shape.domain.column_count * held.parts
        pointer = self._entry.fb.alloca(array(held.memory, count), align=64)
        return ArrayView.row_major(pointer, member.shape.dtype, self._plan.column_dims)

    def _hoist(self, row: _Row, level: int) -> None:
        """Computes once what the coming pass needs once a row, and spreads it over the lanes."""
        scalar = self._emitter(row, 1)
        found: dict[HloInstruction, ElementSource] = {}
        for member in self._plan.hoisted[level]:
            element = scalar.element(member, self._plan.row_index(member, row.index))
            wide = self._emitter(row, self._lanes).spread(element)
            found[member] = _once_a_row(element, wide, self._lanes)
        row.sources.update(found)

    def _reduce(self, row: _Row, level: int, accumulations: tuple[Accumulation, ...]) -> None:
        kept_now = [member for member, computed_in in self._plan.kept.items() if computed_in == level]
        reduction = _Pass(row, level, accumulations, kept_now)
        if all(accumulation.monoids is not None for accumulation in accumulations):
            results = self._reduce_in_any_order(reduction)
        elif all(accumulation.is_any_order for accumulation in accumulations):
            results = self._reduce_by_position(reduction)
        elif self._lanes > 1:
            results = self._reduce_runs(reduction)
        else:
            results = self._reduce_one_by_one(reduction)
        for accumulation, of_one in zip(accumulations, results, strict=True):
            self._publish(row, accumulation.reduce, of_one)
        row.sources.update({member: self._read_scratch(member) for member in kept_now})

    def _reduce_in_any_order(self, reduction: _Pass) -> list[tuple[Element, ...]]:
        """Known monoids: lanes start from the identity and take every so-many-th column."""
        plan = self._plan
        sets = plan.accumulator_sets(reduction.level, self._lanes)
        wide = self._emitter(reduction.row, self._lanes)
        starts = [list(map(wide.spread, a.identities)) for a in reduction.accumulations]
        sweep = Sweep(plan.column_dims, self._lanes, sets)
        swept = sweep.run(self._entry.fb, [_registers(starts)] * sets, self._taking(reduction, self._lanes))
        return self._joined(reduction, starts, swept, in_order=False)

    def _reduce_by_position(self, reduction: _Pass) -> list[tuple[Element, ...]]:
        """Extremes with their positions: lanes start from the first columns and take every so-many-th."""
        plan, lanes = self._plan, self._lanes
        sets = plan.accumulator_sets(reduction.level, lanes)
        stride = 1 if lanes > 1 else 0
        firsts = [self._elements(reduction, lanes, (Affine(number * lanes, stride),)) for number in range(sets)]
        sweep = Sweep(plan.column_dims, lanes, sets, sets * lanes)
        initial = [_registers(elements) for elements in firsts]
        swept = sweep.run(self._entry.fb, initial, self._taking(reduction, lanes))
        return self._joined(reduction, firsts[0], swept, in_order=False)

    def _reduce_runs(self, reduction: _Pass) -> list[tuple[Element, ...]]:
        """Other reductions of one dimension: each lane takes a run of columns; runs come together in order."""
        (size,) = self._plan.column_dims
        fb = self._entry.fb
        sweep = SweepInOrder(size, self._lanes, self._plan.accumulator_sets(reduction.level, self._lanes))
        firsts = [self._elements(reduction, self._lanes, (sweep.position(n, 0, fb),)) for n in range(sweep.sets)]
        swept = sweep.run(fb, [_registers(elements) for elements in firsts], self._taking(reduction, self._lanes))
        return self._joined(reduction, firsts[0], swept, in_order=True)

    def _reduce_one_by_one(self, reduction: _Pass) -> list[tuple[Element, ...]]:
        """Column after column, from the initial values on."""
        scalar = self._emitter(reduction.row, 1)
        starts = [a.starts(scalar) for a in reduction.accumulations]
        sweep = Sweep(self._plan.column_dims, 1, 1)
        swept = sweep.run(self._entry.fb, [_registers(starts)], self._taking(reduction, 1))
        parts = _by_accumulation(reduction, starts, swept)
        return [a.rounded(scalar, unflatten(mine, like)) for a, like, (mine,) in parts]

    def _joined(
        self, reduction: _Pass, like: list[list[Element]], swept: Sequence[Registers], *, in_order: bool
    ) -> list[tuple[Element, ...]]:
        """The results out of all sets of accumulators, elements being like the given ones."""
        scalar = self._emitter(reduction.row, 1)
        results = []
        for accumulation, kinds, mine in _by_accumulation(reduction, like, swept):
            joined = accumulation.join(scalar, mine, kinds, in_order=in_order)
            results.append(accumulation.results(scalar, joined, kinds))
        return results

    def _taking(self, reduction: _Pass, lanes: int) -> SweepBody:
        """Takes the elements at a column index into the accumulators."""

        def take(columns: tuple[Position, ...], mask: Value | None, registers: Registers) -> Registers:
            emitter = self._emitter(reduction.row, lanes, mask)
            index = (*reduction.row.index, *columns)
            after: list[Value] = []
            for accumulation in reduction.accumulations:
                elements = accumulation.elements(emitter, index)
                mine = registers[len(after) : len(after) + len(flatten(elements))]
                after += accumulation.take(emitter, mine, elements, mask)
            self._keep(emitter, reduction.kept_now, index, mask)
            return tuple(after)

        return take

    def _elements(self, reduction: _Pass, lanes: int, columns: tuple[Position, ...]) -> list[list[Element]]:
        """The elements at a column index, for each reduction."""
        emitter = self._emitter(reduction.row, lanes)
        index = (*reduction.row.index, *columns)
        elements = [accumulation.elements(emitter, index) for accumulation in reduction.accumulations]
        self._keep(emitter, reduction.kept_now, index, None)
        return elements

    def _keep(self, emitter: ElementEmitter, members: list[HloInstruction], index: Index, mask: Value | None) -> None:
        """Stores members that later passes need again."""
        columns = index[len(index) - len(self._plan.column_dims) :]
        for member in members:
            self._scratch[member].write(emitter.math, columns, emitter.element(member, index), mask)

    def _publish(self, row: _Row, reduce: HloInstruction, results: tuple[Element, ...]) -> None:
        """Makes a reduction's results known to what follows."""
        wide = self._emitter(row, self._lanes)
        if reduce.shape.is_tuple:
            row.sources[reduce] = _once_a_row(results[0], results[0], 1)
            row.variadic = results
        else:
            row.sources[reduce] = _once_a_row(results[0], wide.spread(results[0]), self._lanes)
        for user in reduce.users:
            if user.opcode == "get-tuple-element":
                element = results[user.attrs.index]
                row.sources[user] = _once_a_row(element, wide.spread(element), self._lanes)

    def _store(self, row: _Row) -> None:
        plan, entry = self._plan, self._entry
        full = [(r, v) for r, v in zip(self._results, entry.outputs, strict=False) if r in plan.full_results]
        scalar = self._emitter(row, 1)
        if self._results[0].shape.is_tuple:
            for element, view in zip(row.variadic, entry.outputs, strict=True):
                view.write(scalar.math, row.index, element)
            return
        for result, view in zip(self._results, entry.outputs, strict=True):
            if result not in plan.full_results:
                view.write(scalar.math, row.index, scalar.element(result, row.index))
        if not full:
            return

        def store(columns: tuple[Position, ...], mask: Value | None, registers: Registers) -> Registers:
            emitter = self._emitter(row, self._lanes, mask)
            index = (*row.index, *columns)
            elements = [(emitter.element(result, index), view) for result, view in full]
            for element, view in elements:
                view.write(emitter.math, index, element, mask)
            return registers

        Sweep(plan.column_dims, self._lanes, 1).run(entry.fb, [()], store)

    def _read_scratch(self, member: HloInstruction) -> ElementSource:
        read = read_from(self._scratch[member])
        skipped = len(self._plan.shape.domain.dims) - len(self._plan.column_dims)
        return lambda emitter, index: read(emitter, index[skipped:])


def _registers(elements: list[list[Element]]) -> Registers:
    return tuple(register for of_one in elements for register in flatten(of_one))


def _by_accumulation(
    reduction: _Pass, elements: list[list[Element]], sets: Sequence[Registers]
) -> Iterator[tuple[Accumulation, list[Element], list[Registers]]]:
    """Each reduction with elements of the kinds that it holds, and its part of each set of accumulators."""
    offset = 0
    for accumulation, like in zip(reduction.accumulations, elements, strict=True):
        width = len(flatten(like))
        yield accumulation, like, [registers[offset : offset + width] for registers in sets]
        offset += width


def _once_a_row(element: Element, wide: Element, lanes: int) -> ElementSource:
    return lambda emitter, index: wide if emitter.lanes == lanes and lanes > 1 else element
