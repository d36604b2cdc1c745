"""The column kernel: reductions that leave the minor dimension, many columns at a time.

A block of neighbouring columns has its accumulators in registers while the reduced dimensions are walked, in order from
the initial value on. What elements need once a column is computed before, what follows from the results after that. The
parallel extent is the blocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from xlalite.backends.codegen.arrays.index import Affine, Index, sum_of
from xlalite.backends.codegen.arrays.ir_array import lanes_below
from xlalite.backends.codegen.arrays.types import Element
from xlalite.backends.codegen.elements.elements import ElementSource, always
from xlalite.backends.codegen.elements.registers import Registers, flatten, unflatten
from xlalite.backends.codegen.kernels.accumulation import Accumulation, Accumulations
from xlalite.backends.codegen.kernels.accumulator_sweep import carried_sets
from xlalite.backends.codegen.kernels.column_lines import ColumnLines, takes_lines
from xlalite.backends.codegen.kernels.kernel import Declined, Kernel, KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry, lane_count, open_kernel
from xlalite.backends.codegen.kernels.loop_nest import nested_loops
from xlalite.backends.codegen.kernels.row_plan import hoisted, members_of_pass
from xlalite.backends.codegen.llvm import Function, ModuleBuilder, Value
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.traversal import reachable
from xlalite.hlo.records import dataclass
from xlalite.passes.fusion.domain import Place, reduces_columns
from xlalite.passes.fusion.kernel_shape import KernelShape, result_dims, results_of

_ACCUMULATORS = 8
"""Vectors of accumulators in flight; the rest of the register file holds what is being added."""

_BLOCK_COLUMNS = 128
"""Columns of one unit of the parallel extent; a multiple of every step of vectors."""


_AT_SAME_INDEX = frozenset({"tuple", "get-tuple-element"})


def plan_column(request: KernelRequest, shape: KernelShape) -> ColumnKernel | Declined:
    """The kernel that reduces blocks of columns."""
    body, domain = request.body, shape.domain
    reduces = [instruction for instruction in body.post_order() if instruction.opcode == "reduce"]
    if not domain.columns:
        return Declined("no dimension is reduced")
    if domain.columns[-1] == len(domain.dims) - 1:
        return Declined("the minor dimension is reduced")
    if any(not reduces_columns(reduce, domain) for reduce in reduces):
        return Declined("the reductions take different dimensions away")
    if domain.column_count == 0:
        return Declined("nothing to reduce")
    accumulations = Accumulations(tuple(map(Accumulation.of, reduces)))
    if any(one.opcode == "reduce" for one in reachable(accumulations.arrays, lambda one: one.operands)):
        return Declined("a reduction needs another's result")
    if any(result_dims(result) != domain.row_dims for result in results_of(body)):
        return Declined("a result has not one element a column")
    if any(user.opcode not in _AT_SAME_INDEX and not user.op.is_elementwise for r in reduces for user in r.users):
        return Declined("a reduction is read at another index than its column's")
    return ColumnKernel(request, shape, accumulations)


@dataclass(frozen=True, slots=True)
class ColumnKernel(Kernel):
    """Reductions that leave the minor dimension.

    Attributes:
        shape: What it walks over, and where instructions are read.
        accumulations: The reductions.
    """

    shape: KernelShape
    accumulations: Accumulations

    @property
    def extent(self) -> int:
        """Blocks of columns, once for each index of the outermost kept dimension if there are several."""
        kept = self.shape.domain.row_dims
        return -(-kept[-1] // _BLOCK_COLUMNS) * (kept[0] if len(kept) > 1 else 1)

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """Walks over blocks of columns."""
        entry = open_kernel(module, name, self.request)
        if 0 not in self.shape.domain.row_dims:
            _ColumnEmitter(entry, self).emit()
        entry.fb.ret()
        return entry.function


@dataclass(frozen=True, slots=True)
class _Block:
    """Neighbouring vectors of columns.

    Attributes:
        outer: Index of the kept dimensions in front of them.
        positions: Where each vector starts.
        mask: Columns that there are; None for all.
        known: For each vector, elements that are there already.
        starts: The initial values of each reduction.
    """

    outer: Index
    positions: Sequence[Affine]
    mask: Value | None
    known: Sequence[Mapping[HloInstruction, ElementSource]]
    starts: list[list[Element]]


class _ColumnEmitter:
    def __init__(self, entry: KernelEntry, kernel: ColumnKernel) -> None:
        body, module = kernel.request.body, entry.fb.module
        self._entry = entry
        self._results = results_of(body)
        self._domain = kernel.shape.domain
        self._places = kernel.shape.places
        self._accumulations = kernel.accumulations
        arrays = self._accumulations.arrays
        (self._hoisted,) = hoisted([members_of_pass(arrays, self._places)], self._places)
        most = lane_count(module, body, self._domain.column_dims[-1] * self._domain.dims[-1])
        self._lines = takes_lines(self._domain, self._accumulations, most)
        self._lanes = lanes = most if self._lines else lane_count(module, body, self._domain.dims[-1])
        self._vectors = min(max(1, _ACCUMULATORS // len(arrays)), max(1, _BLOCK_COLUMNS // lanes))

    def emit(self) -> None:
        """The parallel extent counts (outermost kept index, block of columns) pairs."""
        fb, kept = self._entry.fb, self._domain.row_dims
        blocks = -(-kept[-1] // _BLOCK_COLUMNS)
        with fb.loop(self._entry.begin, self._entry.end) as unit:
            outer: Index = ()
            block = unit
            if len(kept) > 1:
                outer = (Affine(fb.udiv(unit, blocks)),)
                block = fb.urem(unit, blocks)
            with nested_loops(fb, kept[1:-1]) as inner:
                if self._lines:
                    self._emit_lines((*outer, *inner))
                else:
                    self._emit_block((*outer, *inner), block)

    def _emit_lines(self, outer: Index) -> None:
        """Reduces and stores all columns, which are few."""
        places = {member: self._places[member] for member in self._hoisted}
        lines = ColumnLines(self._entry, self._domain, self._accumulations, places, self._lanes)
        self._store((*outer, Affine(0, 1)), lines.width, lines.mask, lines.results(outer))

    def _emit_block(self, outer: Index, block: Value) -> None:
        fb, columns = self._entry.fb, self._domain.dims[-1]
        step = self._vectors * self._lanes
        full_blocks_end = columns - columns % step
        start = fb.mul(block, _BLOCK_COLUMNS, "nsw")
        stop = fb.add(start, _BLOCK_COLUMNS, "nsw")
        if full_blocks_end:
            with fb.loop(start, fb.smin(stop, full_blocks_end), step) as at:
                self._emit_columns(outer, at, self._vectors, None)
        if full_blocks_end == columns:
            return
        with fb.if_(fb.icmp("sge", stop, columns)):
            at_tail = full_blocks_end
            whole = (columns - at_tail) // self._lanes
            if whole:
                self._emit_columns(outer, at_tail, whole, None)
            at_tail += whole * self._lanes
            if at_tail < columns:
                self._emit_columns(outer, at_tail, 1, lanes_below(fb, at_tail, columns, self._lanes))

    def _emit_columns(self, outer: Index, start: Value | int, vectors: int, mask: Value | None) -> None:
        """Reduces and stores `vectors` neighbouring vectors of columns."""
        stride = 1 if self._lanes > 1 else 0
        positions = [Affine(sum_of(start, number * self._lanes), stride) for number in range(vectors)]
        known = [self._known((*outer, position), mask) for position in positions]
        starts = self._accumulations.starts(self._entry.emitter(self._lanes))
        block = _Block(outer, positions, mask, known, starts)
        initial = flatten(chain.from_iterable(starts))
        plain = self._entry.emitter(self._lanes, mask)
        for position, registers in zip(positions, self._sweep(block, [initial] * vectors, ()), strict=True):
            parts = self._accumulations.parts(starts, [registers])
            found = [accumulation.rounded(plain, unflatten(mine, like)) for accumulation, like, (mine,) in parts]
            self._store((*outer, position), self._lanes, mask, found)

    def _known(self, index: Index, mask: Value | None) -> dict[HloInstruction, ElementSource]:
        """What is needed once a column, computed here for one vector of columns."""
        emitter = self._entry.emitter(self._lanes, mask)
        return {
            member: always(emitter.element(member, index if self._places[member] is Place.ROW else ()))
            for member in self._hoisted
        }

    def _sweep(self, block: _Block, carried: list[Registers], reduced: Index) -> list[Registers]:
        """Walks the reduced dimensions."""
        if len(reduced) == len(self._domain.columns):
            return [self._take(block, number, registers, reduced) for number, registers in enumerate(carried)]
        size = self._domain.column_dims[len(reduced)]
        return carried_sets(
            self._entry.fb, range(size), carried, lambda at, sets: self._sweep(block, sets, (*reduced, Affine(at)))
        )

    def _take(self, block: _Block, number: int, registers: Registers, reduced: Index) -> Registers:
        emitter = self._entry.emitter(self._lanes, block.mask, block.known[number])
        kept, taken = iter((*block.outer, block.positions[number])), iter(reduced)
        index = tuple(next(taken) if d in self._domain.columns else next(kept) for d in range(len(self._domain.dims)))
        return self._accumulations.take(emitter, registers, index, None)

    def _store(self, index: Index, lanes: int, mask: Value | None, found: Sequence[Sequence[Element]]) -> None:
        """Computes what follows from the results of all reductions in one vector of columns, and stores it."""
        known: dict[HloInstruction, ElementSource] = {}
        elements: Sequence[Element] = ()
        for accumulation, elements in zip(self._accumulations.each, found, strict=True):
            known |= accumulation.sources(elements, always)
        emitter = self._entry.emitter(lanes, mask, known)
        if not self._results[0].shape.is_tuple:
            elements = [emitter.element(result, index) for result in self._results]
        for element, view in zip(elements, self._entry.outputs, strict=True):
            view.write(emitter.math, index, element, mask)
