"""The chain kernel: products, rows made of their results, and products of those, block of rows after block of rows.

Attention is one: scores, their softmax, and the product with the values. Its gradient is another, in which two products
make rows, and three are made of these. What lies between the products is never whole in memory: a task keeps a block of
it in scratch memory, which stays in the second cache. Each part is the kernel that would compute it alone: a part
writes, and the next one reads, at the places that the block would have in the whole array, whose address is chosen so
that these places are in the scratch memory.

A product that has the rows on its left gives the block's rows of its result. One that sums over rows adds what the
block gives to all of its result; then all blocks of a product are one task's, in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from xlalite.backends.codegen.kernels.chain_zeros import RowZeros
from xlalite.backends.codegen.kernels.dot.kernel import DotKernel
from xlalite.backends.codegen.kernels.estimate import Work
from xlalite.backends.codegen.kernels.kernel import Kernel
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry, open_kernel
from xlalite.backends.codegen.kernels.row import RowKernel
from xlalite.backends.codegen.kernels.scalars import Scalar, Scalars
from xlalite.backends.codegen.kernels.scratch import (
    HEADER_BYTES,
    aligned,
    open_slots,
    own_slot,
    parts_of,
    scratch_area_bytes,
)
from xlalite.backends.codegen.llvm import I8, I64, PTR, VOID, Function, FunctionBuilder, ModuleBuilder, Value, constant
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.decision import Number
from xlalite.passes.fusion.kernel_shape import results_of


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a chain.

    Attributes:
        operands: The instructions of the chain's body that are its parameters.
        results: Those that it gives.
        work: What it does for all blocks.
        kernel: What computes it.
    """

    operands: tuple[HloInstruction, ...]
    results: tuple[HloInstruction, ...]
    work: Work
    kernel: Kernel


@dataclass(frozen=True, slots=True)
class Head(Part):
    """A product that rows are made of.

    Attributes:
        ahead: How far beyond its own number a row's columns are read; None if all are. The others are not computed.
    """

    kernel: DotKernel
    ahead: int | None


@dataclass(frozen=True, slots=True)
class Rows(Part):
    """What is made of the results of the heads."""

    kernel: RowKernel


@dataclass(frozen=True, slots=True)
class Tail(Part):
    """A product of the rows.

    Attributes:
        handed: Which of the rows' results.
        sums_rows: Whether it sums over rows, block after block, instead of columns.
        zeros: What leaves out columns of zeros; None if there are none to be expected.
    """

    kernel: DotKernel
    handed: HloInstruction
    sums_rows: bool
    zeros: RowZeros | None


@dataclass(frozen=True, slots=True)
class _Call:
    """A part as the kernel calls it.

    Attributes:
        part: Which.
        functions: What computes it, and the same with fewer terms.
        pointers: Its table of addresses.
    """

    part: Head | Rows | Tail
    functions: Sequence[Function]
    pointers: Value

    def emit(self, fb: FunctionBuilder, function: Value, begin: Scalar, end: Scalar) -> None:
        numbers = Scalars(fb)
        fb.call_pointer(function, VOID, (self.pointers, numbers.value(begin), numbers.value(end)))


@dataclass(frozen=True, slots=True)
class _Block:
    """A block of rows.

    Attributes:
        product: The number of the products that it is of.
        number: Which block of these.
        row: Its first row in them.
        height: How many it has.
        begin: Its first row of all.
        end: The row behind its last one.
    """

    product: Scalar
    number: Scalar
    row: Scalar
    height: Scalar
    begin: Scalar
    end: Scalar


@dataclass(frozen=True, slots=True)
class ChainKernel(Kernel):
    """Products with rows between them.

    Attributes:
        heads: What rows are made of.
        between: The rows.
        tails: What is made of rows.
        windows: The number of the window in scratch memory of each array that is handed on and is no result.
        line_bytes: Bytes of a row in each window.
        batch: Number of products.
        m: Rows of each.
        rows: Rows of a block; the last block of a product may have fewer.
        kept: How far beyond its own number a row may have other columns than zeros; None if these are looked for.
    """

    heads: tuple[Head, ...]
    between: Rows
    tails: tuple[Tail, ...]
    windows: Mapping[HloInstruction, int]
    line_bytes: tuple[int, ...]
    batch: int
    m: int
    rows: int
    kept: int | None

    @property
    def extent(self) -> int:
        """Blocks of rows, or products where something is summed over rows."""
        return self.batch if self._sums_rows else self.batch * self._blocks

    @property
    def scratch_bytes(self) -> int:
        """What is handed on in a block, and the scratch memory of the products."""
        return sum(self._sizes)

    @property
    def figures(self) -> dict[str, Number]:
        """What the parts do, the size of a block, and how the products are computed."""
        flops = sum(part.work.flops + part.work.transcendentals for part in self._parts)
        figures: dict[str, Number] = {"flops": round(flops), "rows": self.rows, "scratch_bytes": self.scratch_bytes}
        ahead = [head.ahead for head in self.heads if head.ahead is not None]
        figures |= {"ahead": max(ahead)} if ahead else {}
        depths = max((len(tail.zeros.shorter) for tail in self.tails if tail.zeros is not None), default=0)
        figures |= {"depths": depths + 1} if depths else {}
        plans = [head.kernel.plan for head in self.heads] + [tail.kernel.plan for tail in self.tails]
        kept = sum(plan.kept_parts > 0 for plan in plans)
        figures |= {"kept": kept} if kept else {}
        for title, parts in (("first", self.heads), ("rows", (self.between,)), ("second", self.tails)):
            for number, part in enumerate(parts):
                name = title if number == 0 else f"{title}_{number + 1}"
                figures |= {f"{name}_{key}": figure for key, figure in part.kernel.figures.items()}
        return figures

    def estimate_ns(self, work: Work) -> float:
        """What the parts take."""
        return sum(part.kernel.estimate_ns(part.work) for part in self._parts)

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """Walks over blocks."""
        functions = [
            [kernel.emit(module, module.unique_name(f"{name}.part")) for kernel in _kernels(part)]
            for part in self._parts
        ]
        entry = open_kernel(module, name, self.request)
        with own_slot(entry, self.scratch_bytes) as slot:
            memory = parts_of(entry.fb, slot, self._sizes)
            windows, areas = memory[: len(self.line_bytes)], memory[len(self.line_bytes) :]
            calls = [
                _Call(part, own, self._arguments(entry, part, area))
                for part, own, area in zip(self._parts, functions, areas, strict=True)
            ]
            with entry.fb.loop(entry.begin, entry.end) as unit:
                for block in self._blocks_of(entry, unit):
                    self._emit_block(entry, calls, windows, block)
        entry.close()
        return entry.function

    @property
    def _parts(self) -> tuple[Head | Rows | Tail, ...]:
        return *self.heads, self.between, *self.tails

    @property
    def _sums_rows(self) -> bool:
        return any(tail.sums_rows for tail in self.tails)

    @property
    def _blocks(self) -> int:
        """Blocks of one product."""
        return -(-self.m // self.rows)

    @property
    def _sizes(self) -> list[int]:
        windows = [self.rows * line for line in self.line_bytes]
        areas = [max(kernel.scratch_bytes for kernel in _kernels(part)) for part in self._parts]
        return [aligned(size) for size in (*windows, *(scratch_area_bytes(area, 1) for area in areas))]

    def _blocks_of(self, entry: KernelEntry, unit: Value) -> Iterator[_Block]:
        """The block of a unit of work, or, in a loop, all those of a product."""
        numbers = Scalars(entry.fb)

        def block(product: Scalar, number: Scalar) -> _Block:
            row = numbers.multiply(number, self.rows)
            begin, height = numbers.add(numbers.multiply(product, self.m), row), numbers.piece(row, self.rows, self.m)
            return _Block(product, number, row, height, begin, numbers.add(begin, height))

        if not self._sums_rows:
            yield block(numbers.divide(unit, self._blocks), numbers.remainder(unit, self._blocks))
            return
        with entry.fb.loop(0, self._blocks) as number:
            yield block(unit, number)

    def _emit_block(self, entry: KernelEntry, calls: Sequence[_Call], windows: Sequence[Value], block: _Block) -> None:
        fb = entry.fb
        for call in calls:
            self._hand_on(fb, call, windows, block)
        kept = self._known_columns(entry, block)
        for call in calls:
            part = call.part
            if isinstance(part, Rows):
                if self.kept is not None:
                    (columns,) = kept.values()
                    fb.store(columns, fb.gep(I64, call.pointers, len(part.operands) + len(part.results) + 1), 8)
                call.emit(fb, call.functions[0], block.begin, block.end)
            elif isinstance(part, Head):
                self._emit_pieces(fb, call, call.functions[0], block, self._columns_read(fb, part, block))
            else:
                function = self._shortest(entry, call, part, block, kept)
                if part.sums_rows:
                    step = Scalars(fb).add(Scalars(fb).multiply(block.product, self._blocks), block.number)
                    call.emit(fb, function, step, Scalars(fb).add(step, 1))
                else:
                    self._emit_pieces(fb, call, function, block, part.kernel.plan.column_units)

    def _emit_pieces(
        self, fb: FunctionBuilder, call: _Call, function: Value, block: _Block, count: Value | int
    ) -> None:
        """The first pieces of columns of a product, of a block of rows."""
        numbers = Scalars(fb)
        assert not isinstance(call.part, Rows), "a product"
        with fb.loop(0, count) as column:
            piece = numbers.add(numbers.multiply(block.product, call.part.kernel.plan.column_units), column)
            piece = numbers.add(numbers.multiply(piece, self._blocks), block.number)
            call.emit(fb, function, piece, numbers.add(piece, 1))

    def _columns_read(self, fb: FunctionBuilder, head: Head, block: _Block) -> Value | int:
        """How many pieces of columns of a product are read of a block."""
        plan = head.kernel.plan
        if head.ahead is None:
            return plan.column_units
        read = fb.add(Scalars(fb).value(block.row), self.rows + head.ahead)
        read = fb.smin(fb.smax(read, 0), plan.view.n)
        return fb.udiv(fb.add(read, plan.unit_columns - 1), plan.unit_columns)

    def _known_columns(self, entry: KernelEntry, block: _Block) -> dict[HloInstruction, Value]:
        """How many columns of a block's rows are needed, if that is known before they are computed."""
        if self.kept is None:
            return {}
        (tail,) = self.tails
        assert tail.zeros is not None, "zeros are expected"
        kept = tail.zeros.known(entry.fb, Scalars(entry.fb).add(block.row, self.rows - 1 + self.kept))
        return {tail.handed: self._if_finite(entry, tail, tail.zeros, block, kept)}

    def _shortest(
        self, entry: KernelEntry, call: _Call, tail: Tail, block: _Block, kept: dict[HloInstruction, Value]
    ) -> Value:
        """What computes a product of a block's rows with no more columns than needed."""
        fb, zeros, function = entry.fb, tail.zeros, call.functions[0]
        if zeros is None:
            return function
        if tail.handed not in kept:
            rows = fb.load(PTR, fb.gep(PTR, call.pointers, tail.operands.index(tail.handed)), 8)
            kept[tail.handed] = zeros.found(fb, rows, tail.handed.shape.dtype, block.begin, block.end)
        needed = kept[tail.handed]
        if self.kept is None:
            needed = self._if_finite(entry, tail, zeros, block, needed)
        if tail.sums_rows:
            # What the first block gives is not added, but stored.
            is_first = fb.icmp("eq", Scalars(fb).value(block.number), 0)
            needed = fb.select(is_first, zeros.columns, needed)
        chosen: Value = function
        for size, shorter in reversed([*zip(zeros.shorter, call.functions[1:], strict=True)]):
            chosen = fb.select(fb.icmp("sle", needed, size), shorter, chosen)
        return chosen

    def _if_finite(self, entry: KernelEntry, tail: Tail, zeros: RowZeros, block: _Block, kept: Value) -> Value:
        number = tail.kernel.request.body.parameters.index(zeros.values)
        values = entry.inputs[self.request.body.parameters.index(tail.operands[number])].pointer
        rows = block.row, Scalars(entry.fb).add(block.row, block.height)
        return zeros.if_finite(entry.fb, values, block.product, rows, kept)

    def _arguments(self, entry: KernelEntry, part: Head | Rows | Tail, area: Value) -> Value:
        """The addresses that a part is given, but for those of windows."""
        fb, parameters, results = entry.fb, self.request.body.parameters, results_of(self.request.body)
        arrays = (*part.operands, *part.results)
        pointers = fb.alloca(PTR, len(arrays) + 2, align=8)
        for number, array in enumerate(arrays):
            if array not in self.windows:
                is_result = array in results
                view = entry.outputs[results.index(array)] if is_result else entry.inputs[parameters.index(array)]
                fb.store(view.pointer, fb.gep(PTR, pointers, number), 8)
        fb.store(area, fb.gep(PTR, pointers, len(arrays)), 8)
        open_slots(fb, area, 1)
        if isinstance(part.kernel, DotKernel):
            words = fb.gep(I8, area, HEADER_BYTES + part.kernel.layout.kept_offset)
            for number in range(part.kernel.plan.kept_parts):
                fb.store(constant(I64, -1), fb.gep(I64, words, number), 8)
        return pointers

    def _hand_on(self, fb: FunctionBuilder, call: _Call, windows: Sequence[Value], block: _Block) -> None:
        """Tells a part where arrays would begin of which a block lies in a window."""
        numbers = Scalars(fb)
        for number, array in enumerate((*call.part.operands, *call.part.results)):
            if array in self.windows:
                window = self.windows[array]
                before = numbers.value(numbers.multiply(block.begin, self.line_bytes[window]))
                place = fb.gep(I8, windows[window], fb.sub(constant(I64, 0), before), inbounds=False)
                fb.store(place, fb.gep(PTR, call.pointers, number), 8)


def _kernels(part: Head | Rows | Tail) -> Sequence[Kernel]:
    """What computes a part, and the same with fewer terms."""
    zeros = part.zeros if isinstance(part, Tail) else None
    return part.kernel, *(zeros.shorter.values() if zeros is not None else ())
