"""The column kernel: reductions that leave the minor dimension, many columns at a time.

A block of neighbouring columns has its accumulators in registers while the reduced dimensions are walked, in order from
the initial value on. What elements need once a column is computed before, what follows from the results after that. The
parallel extent is the blocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xlalite.backends.codegen.arrays.index import Affine, Index, Position
from xlalite.backends.codegen.arrays.ir_array import lanes_below
from xlalite.backends.codegen.arrays.types import Element
from xlalite.backends.codegen.elements.elements import ElementEmitter, ElementSource
from xlalite.backends.codegen.elements.registers import Registers, flatten, unflatten
from xlalite.backends.codegen.elements.rules import ELEMENT_RULES
from xlalite.backends.codegen.kernels.accumulation import Accumulation
from xlalite.backends.codegen.kernels.kernel import Declined, Kernel, KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry, lane_count, open_kernel
from xlalite.backends.codegen.kernels.row_plan import hoisted, members_of_pass
from xlalite.backends.codegen.llvm import Function, ModuleBuilder, Value
from xlalite.hlo.ir.instruction import HloInstruction
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
    accumulations = tuple(map(Accumulation.of, reduces))
    if any(_depends_on_reduce(array) for accumulation in accumulations for array in accumulation.arrays):
        return Declined("a reduction needs another's result")
    if any(result_dims(result) != domain.row_dims for result in results_of(body)):
        return Declined("a result has not one element a column")
    if any(user.opcode not in _AT_SAME_INDEX and not user.op.is_elementwise for r in reduces for user in r.users):
        return Declined("a reduction is read at another index than its column's")
    return ColumnKernel(request, shape, accumulations)


def _depends_on_reduce(instruction: HloInstruction) -> bool:
    waiting, seen = [instruction], {instruction}
    while waiting:
        current = waiting.pop()
        if current.opcode == "reduce":
            return True
        new = [operand for operand in current.operands if operand not in seen]
        seen.update(new)
        waiting.extend(new)
    return False


@dataclass(frozen=True, slots=True)
class ColumnKernel(Kernel):
    """Reductions that leave the minor dimension.

    Attributes:
        shape: What it walks over, and where instructions are read.
        accumulations: The reductions.
    """

    shape: KernelShape
    accumulations: tuple[Accumulation, ...]

    @property
    def extent(self) -> int:
        """Blocks of columns, once for each index of the outermost kept dimension if there are several."""
        kept = self.shape.domain.row_dims
        return -(-kept[-1] // _BLOCK_COLUMNS) * (kept[0] if len(kept) > 1 else 1)

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """Walks over blocks of columns."""
        entry = open_kernel(module, name, self.request)
        if 0 not in self.shape.domain.row_dims:
            lanes = lane_count(module, self.request.body, self.shape.domain.dims[-1])
            _ColumnEmitter(entry, self, lanes).emit()
        entry.fb.ret()
        return entry.function


@dataclass(frozen=True, slots=True)
class _Block:
    """Neighbouring vectors of columns.

    Attributes:
        outer: Index of the kept dimensions in front of them.
        positions: Where each vector starts.
        mask: Columns that there are; None for all.
        sources: For each vector, elements that are there already.
    """

    outer: tuple[Position, ...]
    positions: Sequence[Affine]
    mask: Value | None
    sources: Sequence[Mapping[HloInstruction, ElementSource]]


class _ColumnEmitter:
    def __init__(self, entry: KernelEntry, kernel: ColumnKernel, lanes: int) -> None:
        self._entry = entry
        self._body = kernel.request.body
        self._domain = kernel.shape.domain
        self._places = kernel.shape.places
        self._lanes = lanes
        self._accumulations = kernel.accumulations
        arrays = [array for accumulation in self._accumulations for array in accumulation.arrays]
        (self._hoisted,) = hoisted([members_of_pass(arrays, self._places)], self._places)
        self._vectors = min(max(1, _ACCUMULATORS // len(arrays)), max(1, _BLOCK_COLUMNS // lanes))

    def emit(self) -> None:
        """The parallel extent counts (outermost kept index, block of columns) pairs."""
        fb, columns = self._entry.fb, self._domain.dims[-1]
        blocks = -(-columns // _BLOCK_COLUMNS)
        with fb.loop(self._entry.begin, self._entry.end) as unit:
            outer = self._outer(unit, blocks)
            block = fb.urem(unit, blocks) if outer else unit
            self._inner_outer(outer, block)

    def _outer(self, unit: Value, blocks: int) -> tuple[Position, ...]:
        if len(self._domain.rows) == 1:
            return ()
        return (Affine(self._entry.fb.udiv(unit, blocks)),)

    def _inner_outer(self, outer: tuple[Position, ...], block: Value) -> None:
        """Loops over kept dimensions between the outermost and the minor one."""
        kept = self._domain.row_dims
        if len(outer) < len(kept) - 1:
            with self._entry.fb.loop(0, kept[len(outer)]) as position:
                self._inner_outer((*outer, Affine(position)), block)
            return
        self._emit_block(outer, block)

    def _emit_block(self, outer: tuple[Position, ...], block: Value) -> None:
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

    def _emit_columns(self, outer: tuple[Position, ...], start: Value | int, vectors: int, mask: Value | None) -> None:
        """Reduces and stores `vectors` neighbouring vectors of columns."""
        fb = self._entry.fb
        stride = 1 if self._lanes > 1 else 0
        positions = [
            Affine(
                start + number * self._lanes
                if isinstance(start, int)
                else fb.add(start, number * self._lanes, "nsw")
                if number
                else start,
                stride,
            )
            for number in range(vectors)
        ]
        block = _Block(outer, positions, mask, [self._sources((*outer, position), mask) for position in positions])
        starts = [a.starts(self._entry.emitter(self._lanes)) for a in self._accumulations]
        initial = flatten([element for elements in starts for element in elements])
        carried = self._sweep(block, [initial] * vectors, starts, ())
        for number, registers in enumerate(carried):
            self._store(block, number, registers, starts)

    def _sources(self, index: Index, mask: Value | None) -> dict[HloInstruction, ElementSource]:
        """Elements for one vector of columns: those of memory, and what is needed once a column, computed here."""
        emitter = self._entry.emitter(self._lanes, mask)
        sources = dict(self._entry.sources)
        for member in self._hoisted:
            at = index if self._places[member] is Place.ROW else ()
            sources[member] = _always(emitter.element(member, at))
        return sources

    def _sweep(
        self,
        block: _Block,
        carried: list[Registers],
        like: list[list[Element]],
        reduced: tuple[Position, ...],
    ) -> list[Registers]:
        """Walks the reduced dimensions."""
        if len(reduced) == len(self._domain.columns):
            return [self._take(block, number, registers, like, reduced) for number, registers in enumerate(carried)]
        fb, width = self._entry.fb, len(carried[0])
        size = self._domain.dims[self._domain.columns[len(reduced)]]
        with fb.carried_loop(0, size, 1, [r for registers in carried for r in registers]) as loop:
            inside = [loop.values[n * width : (n + 1) * width] for n in range(len(carried))]
            after = self._sweep(block, inside, like, (*reduced, Affine(loop.index)))
            loop.yield_(*(r for registers in after for r in registers))
        return [loop.results[n * width : (n + 1) * width] for n in range(len(carried))]

    def _take(
        self,
        block: _Block,
        number: int,
        registers: Registers,
        like: list[list[Element]],
        reduced: tuple[Position, ...],
    ) -> Registers:
        emitter = ElementEmitter(self._entry.fb, self._lanes, block.sources[number], ELEMENT_RULES, block.mask)
        index = self._full_index(block.outer, reduced, block.positions[number])
        after: list[Value] = []
        offset = 0
        for accumulation, starts in zip(self._accumulations, like, strict=True):
            width = len(flatten(starts))
            elements = accumulation.elements(emitter, index)
            after += accumulation.take(emitter, registers[offset : offset + width], elements, None)
            offset += width
        return tuple(after)

    def _store(self, block: _Block, number: int, registers: Registers, like: list[list[Element]]) -> None:
        """Computes what follows from the results of one vector of columns, and stores it."""
        sources = dict(self._entry.sources)
        index = (*block.outer, block.positions[number])
        plain = self._entry.emitter(self._lanes, block.mask)
        variadic: tuple[Element, ...] = ()
        offset = 0
        for accumulation, starts in zip(self._accumulations, like, strict=True):
            width = len(flatten(starts))
            held = unflatten(registers[offset : offset + width], starts)
            offset += width
            results = accumulation.rounded(plain, held)
            variadic = results
            sources[accumulation.reduce] = _always(results[0])
            for user in accumulation.reduce.users:
                if user.opcode == "get-tuple-element":
                    sources[user] = _always(results[user.attrs.index])
        emitter = ElementEmitter(self._entry.fb, self._lanes, sources, ELEMENT_RULES, block.mask)
        results_wanted = results_of(self._body)
        if results_wanted[0].shape.is_tuple:
            elements = list(variadic)
        else:
            elements = [emitter.element(result, index) for result in results_wanted]
        for element, view in zip(elements, self._entry.outputs, strict=True):
            view.write(emitter.math, index, element, block.mask)

    def _full_index(self, outer: tuple[Position, ...], reduced: tuple[Position, ...], minor: Position) -> Index:
        kept, taken = iter((*outer, minor)), iter(reduced)
        return tuple(next(taken) if d in self._domain.columns else next(kept) for d in range(len(self._domain.dims)))


def _always(element: Element) -> ElementSource:
    return lambda emitter, index: element
