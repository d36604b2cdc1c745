"""The row kernel: reductions along the minor dimensions with everything around them, row by row.

Reductions that need each other's results take several passes over a row, which stays in the nearest cache; what is
expensive and needed by more than one pass is kept in a scratch row. Softmax, layer norm and cross entropy are one
kernel each. The parallel extent is the outermost row dimension.
"""

from __future__ import annotations

import math
from dataclasses import field
from itertools import chain
from typing import TYPE_CHECKING, ClassVar

from xlalite.backends.codegen.arrays.index import Affine, Index, Position
from xlalite.backends.codegen.arrays.ir_array import ArrayView
from xlalite.backends.codegen.arrays.types import Element, representation
from xlalite.backends.codegen.elements.elements import ElementEmitter, ElementSource
from xlalite.backends.codegen.elements.registers import flatten, unflatten
from xlalite.backends.codegen.kernels.accumulation import Accumulations
from xlalite.backends.codegen.kernels.accumulator_sweep import Registers, Sweep, SweepBody, SweepInOrder
from xlalite.backends.codegen.kernels.ahead import Ahead, ahead_in_order
from xlalite.backends.codegen.kernels.extreme_accumulation import ExtremeAccumulation
from xlalite.backends.codegen.kernels.kernel import Declined, Kernel, KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry, lane_count, open_kernel, read_from
from xlalite.backends.codegen.kernels.loop_nest import places_of, task_loops
from xlalite.backends.codegen.kernels.plain_body import is_plain
from xlalite.backends.codegen.kernels.row_plan import MOST_SETS, RowPlan, plan_passes
from xlalite.backends.codegen.llvm import I64, Function, ModuleBuilder, Value, array
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.decision import Number
from xlalite.passes.fusion.kernel_shape import KernelShape, results_of

if TYPE_CHECKING:
    from xlalite.backends.codegen.elements.known_divisors import KnownDivisor

_FAR_BYTES = 8192
"""What is read is asked for so much earlier. Processors foresee no masked loads, such as those beside padding: the sum
of 16,000,057 f32 takes 1.4 instead of 6.4 ms of one core, that of the rows of [16000,1000] 1.45 instead of 1.65. Nor
do they look beyond a row of which a later pass keeps them busy: softmax of [1000,777] takes 280 us instead of 330.
"""

_MANY_VECTORS = 16
"""Among so many in a row, one that LLVM's passes would have improved is as nothing."""


def plan_row(request: KernelRequest, shape: KernelShape) -> RowKernel | Declined:
    """The kernel that computes row after row."""
    plan = plan_passes(request, shape)
    return plan if isinstance(plan, Declined) else RowKernel(request, plan)


@dataclass(frozen=True, slots=True)
class RowKernel(Kernel):
    """Reductions along the minor dimensions.

    Attributes:
        plan: The passes over a row.
        counts_rows: Whether the parallel extent is that of all row dimensions.
        stops: Whether a number behind the arguments and the scratch memory says how many columns are needed: all, or a
            multiple of `stop_step`.
    """

    takes_places: ClassVar[bool] = True
    writes_once: ClassVar[bool] = True

    plan: RowPlan
    counts_rows: bool = False
    stops: bool = False

    @property
    def stop_step(self) -> int:
        """How many columns all accumulators take at a time, at most; 0 if it needs all columns."""
        is_any_order = all(level.have_identities for level in self.plan.levels)
        if not is_any_order or len(self.plan.column_dims) > 1:
            return 0
        return MOST_SETS * self.request.target.lanes(8 * results_of(self.request.body)[0].shape.dtype.size_bytes)

    @property
    def extent(self) -> int:
        """The outermost row dimension, or all."""
        row_dims = self.plan.shape.domain.row_dims
        if self.counts_rows:
            return math.prod(row_dims)
        return row_dims[0] if row_dims else 1

    @property
    def figures(self) -> dict[str, Number]:
        """Reductions recognised as extremes with their positions."""
        found = [a for level in self.plan.levels for a in level.each if isinstance(a, ExtremeAccumulation)]
        return {"extremes": "; ".join(f"{a.reduce.name}: {a.extreme}" for a in found)} if found else {}

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """Walks over the rows."""
        body, plan = self.request.body, self.plan
        entry = open_kernel(module, name, self.request, ahead=self._ahead)
        row_dims = plan.shape.domain.row_dims
        if 0 not in row_dims:
            lanes = _row_lanes(module, body, plan)
            entry.fb.is_as_written = not self.stops and is_plain(body) and _has_plain_columns(plan.column_dims, lanes)
            emitter = _RowEmitter(entry, results_of(body), plan, lanes, self._stop(entry))
            if self.counts_rows:
                with entry.fb.loop(entry.begin, entry.end) as row:
                    emitter.emit_row(places_of(entry.fb, row, row_dims))
            else:
                with task_loops(entry, row_dims) as index:
                    emitter.emit_row(index)
        entry.close()
        return entry.function

    @property
    def _ahead(self) -> Ahead:
        plan = self.plan
        is_read_once = len(plan.levels) == 1 and not plan.full_results
        return ahead_in_order(self.request, plan.shape.domain.dims, _FAR_BYTES) if is_read_once else Ahead(_FAR_BYTES)

    def _stop(self, entry: KernelEntry) -> Value | None:
        if not self.stops:
            return None
        number = len(entry.inputs) + len(entry.outputs) + 1
        return entry.fb.load(I64, entry.fb.gep(I64, entry.fb.parameters[0], number), 8)


def _has_plain_columns(column_dims: tuple[int, ...], lanes: int) -> bool:
    """Whether the loops over columns have no masks, or one in many vectors."""
    return len(column_dims) == 1 and (column_dims[0] % lanes == 0 or column_dims[0] >= _MANY_VECTORS * lanes)


def _row_lanes(module: ModuleBuilder, body: HloComputation, plan: RowPlan) -> int:
    columns = max(plan.column_dims[-1], 1)
    lanes = lane_count(module, body, columns)
    if all(level.have_identities for level in plan.levels):
        return lanes
    if len(plan.column_dims) > 1:
        return 1
    # Lanes of other reductions start from elements, so each needs one.
    return min(lanes, 1 << (columns.bit_length() - 1))


@dataclass(slots=True)
class _Row:
    """One row being emitted: what is known so far.

    Attributes:
        index: Which row.
        known: Elements that are there already, besides the parameters.
        divisors: By what all its elements are divided.
        results: The results of the last reduction.
    """

    index: Index
    known: dict[HloInstruction, ElementSource] = field(default_factory=dict)
    divisors: dict[HloInstruction, KnownDivisor] = field(default_factory=dict)
    results: tuple[Element, ...] = ()


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
    accumulations: Accumulations
    kept_now: list[HloInstruction]


class _RowEmitter:
    """Emits rows of one kernel."""

    def __init__(
        self,
        entry: KernelEntry,
        results: tuple[HloInstruction, ...],
        plan: RowPlan,
        lanes: int,
        stop: Value | None,
    ) -> None:
        self._entry = entry
        self._stop = stop
        self._plan = plan
        self._lanes = lanes
        self._results = results
        self._scratch = {member: self._scratch_row(member) for member in plan.kept}

    def emit_row(self, index: Index) -> None:
        row = _Row(index)
        for level, accumulations in enumerate(self._plan.levels):
            self._hoist(row, level)
            self._reduce(row, level, accumulations)
        self._hoist(row, len(self._plan.levels))
        self._store(row)

    def _emitter(self, row: _Row, lanes: int, mask: Value | None = None) -> ElementEmitter:
        emitter = self._entry.emitter(lanes, mask, row.known)
        if mask is None:
            emitter.divisors = row.divisors
        return emitter

    def _scratch_row(self, member: HloInstruction) -> ArrayView:
        held = representation(member.shape.dtype)
        count = self._plan.shape.domain.column_count * held.parts
        pointer = self._entry.fb.alloca(array(held.memory, count), align=64)
        return ArrayView.row_major(pointer, member.shape.dtype, self._plan.column_dims)

    def _hoist(self, row: _Row, level: int) -> None:
        """Computes once what the coming pass needs once a row, and spreads it over the lanes."""
        scalar = self._emitter(row, 1)
        row.known |= {
            member: self._once_a_row(row, scalar.element(member, self._plan.row_index(member, row.index)))
            for member in self._plan.hoisted[level]
        }
        if self._plan.divisors[level] and self._lanes > 1:
            self._find_reciprocals(row, level)

    def _find_reciprocals(self, row: _Row, level: int) -> None:
        """Computes the reciprocals of what the coming pass divides the row by."""
        from xlalite.backends.codegen.elements.known_divisors import KnownDivisor

        for divisor in self._plan.divisors[level]:
            (member,) = divisor.operands
            number = self._emitter(row, 1).register(member, self._plan.row_index(member, row.index))
            row.divisors[divisor] = KnownDivisor.of(self._entry.fb, number, self._lanes)

    def _once_a_row(self, row: _Row, element: Element) -> ElementSource:
        """One element for all columns, spread over the lanes here."""
        wide, lanes = self._emitter(row, self._lanes).spread(element), self._lanes
        return lambda emitter, index: wide if emitter.lanes == lanes and lanes > 1 else element

    def _reduce(self, row: _Row, level: int, accumulations: Accumulations) -> None:
        kept_now = [member for member, computed_in in self._plan.kept.items() if computed_in == level]
        reduction = _Pass(row, level, accumulations, kept_now)
        if accumulations.have_identities:
            results = self._reduce_in_any_order(reduction)
        elif accumulations.are_any_order:
            results = self._reduce_by_position(reduction)
        elif self._lanes > 1:
            results = self._reduce_runs(reduction)
        else:
            results = self._reduce_one_by_one(reduction)
        for accumulation, of_one in zip(accumulations.each, results, strict=True):
            row.known |= accumulation.sources(of_one, lambda element: self._once_a_row(row, element))
            row.results = of_one
        row.known |= {member: self._read_scratch(member) for member in kept_now}

    def _reduce_in_any_order(self, reduction: _Pass) -> list[tuple[Element, ...]]:
        """Known monoids: lanes start from the identity and take every so-many-th column."""
        plan, lanes = self._plan, self._lanes
        sets, rotates = plan.accumulator_sets(reduction.level, lanes), plan.takes_long(reduction.level)
        wide = self._emitter(reduction.row, lanes)
        starts = [list(map(wide.spread, a.identities)) for a in reduction.accumulations.each]
        sweep = Sweep(plan.column_dims, lanes, sets, stop=self._stop, rotates=rotates)
        return self._swept(reduction, sweep, [starts] * sets)

    def _reduce_by_position(self, reduction: _Pass) -> list[tuple[Element, ...]]:
        """Extremes with their positions: lanes start from the first columns and take every so-many-th."""
        lanes, sets = self._lanes, self._plan.accumulator_sets(reduction.level, self._lanes)
        stride = 1 if lanes > 1 else 0
        firsts = [self._elements(reduction, Affine(number * lanes, stride)) for number in range(sets)]
        return self._swept(reduction, Sweep(self._plan.column_dims, lanes, sets, sets * lanes), firsts)

    def _reduce_runs(self, reduction: _Pass) -> list[tuple[Element, ...]]:
        """Other reductions of one dimension: each lane takes a run of columns; runs come together in order."""
        (size,) = self._plan.column_dims
        sweep = SweepInOrder(size, self._lanes, self._plan.accumulator_sets(reduction.level, self._lanes))
        firsts = [self._elements(reduction, sweep.position(n, 0, self._entry.fb)) for n in range(sweep.sets)]
        return self._swept(reduction, sweep, firsts)

    def _reduce_one_by_one(self, reduction: _Pass) -> list[tuple[Element, ...]]:
        """Column after column, from the initial values on."""
        scalar = self._emitter(reduction.row, 1)
        starts = reduction.accumulations.starts(scalar)
        sweep = Sweep(self._plan.column_dims, 1, 1)
        swept = sweep.run(self._entry.fb, [_registers(starts)], self._taking(reduction, 1))
        parts = reduction.accumulations.parts(starts, swept)
        return [a.rounded(scalar, unflatten(mine, like)) for a, like, (mine,) in parts]

    def _swept(
        self, reduction: _Pass, sweep: Sweep | SweepInOrder, firsts: list[list[list[Element]]]
    ) -> list[tuple[Element, ...]]:
        """The results out of all sets of accumulators, which start from some elements."""
        initial = [_registers(elements) for elements in firsts]
        swept = sweep.run(self._entry.fb, initial, self._taking(reduction, self._lanes))
        scalar = self._emitter(reduction.row, 1)
        results = []
        for accumulation, like, mine in reduction.accumulations.parts(firsts[0], swept):
            joined = accumulation.join(scalar, mine, like, in_order=isinstance(sweep, SweepInOrder))
            results.append(accumulation.results(scalar, joined, like))
        return results

    def _taking(self, reduction: _Pass, lanes: int) -> SweepBody:
        """Takes the elements at a column index into the accumulators."""

        def take(columns: tuple[Position, ...], mask: Value | None, registers: Registers) -> Registers:
            emitter = self._emitter(reduction.row, lanes, mask)
            index = (*reduction.row.index, *columns)
            after = reduction.accumulations.take(emitter, registers, index, mask)
            self._keep(emitter, reduction.kept_now, index, mask)
            return after

        return take

    def _elements(self, reduction: _Pass, column: Position) -> list[list[Element]]:
        """The elements at a column, for each reduction."""
        emitter = self._emitter(reduction.row, self._lanes)
        index = (*reduction.row.index, column)
        elements = reduction.accumulations.elements(emitter, index)
        self._keep(emitter, reduction.kept_now, index, None)
        return elements

    def _keep(self, emitter: ElementEmitter, members: list[HloInstruction], index: Index, mask: Value | None) -> None:
        """Stores members that later passes need again."""
        columns = index[len(index) - len(self._plan.column_dims) :]
        for member in members:
            self._scratch[member].write(emitter.math, columns, emitter.element(member, index), mask)

    def _read_scratch(self, member: HloInstruction) -> ElementSource:
        read = read_from(self._scratch[member])
        skipped = len(self._plan.shape.domain.row_dims)
        return lambda emitter, index: read(emitter, index[skipped:])

    def _store(self, row: _Row) -> None:
        """Writes what there is once a row, then, in a last pass, what there is for each column."""
        plan, outputs = self._plan, self._entry.outputs
        scalar = self._emitter(row, 1)
        if self._results[0].shape.is_tuple:
            for element, view in zip(row.results, outputs, strict=True):
                view.write(scalar.math, row.index, element)
            return
        full = [(r, view) for r, view in zip(self._results, outputs, strict=True) if r in plan.full_results]
        for result, view in zip(self._results, outputs, strict=True):
            if result not in plan.full_results:
                view.write(scalar.math, row.index, scalar.element(result, row.index))

        def store(columns: tuple[Position, ...], mask: Value | None, registers: Registers) -> Registers:
            emitter = self._emitter(row, self._lanes, mask)
            index = (*row.index, *columns)
            elements = [(emitter.element(result, index), view) for result, view in full]
            for element, view in elements:
                view.write(emitter.math, index, element, mask)
            return registers

        if full:
            Sweep(plan.column_dims, self._lanes, 1, stop=self._stop).run(self._entry.fb, [()], store)


def _registers(elements: list[list[Element]]) -> Registers:
    return flatten(chain.from_iterable(elements))
