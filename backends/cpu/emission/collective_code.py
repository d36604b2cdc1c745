"""Code of collectives: devices meet, each makes its results out of everybody's operands where they lie, and they part.

Nobody's operands are written to before all have met again. Devices combine in the order of their group, so that sums
are the same on all of them, whoever comes first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from xlalite.backends.codegen.kernels.kernel import Declined
from xlalite.backends.codegen.kernels.planner import KernelPlan
from xlalite.backends.codegen.llvm import I8, I32, I64, PTR, FunctionBuilder, Value, constant, integer
from xlalite.backends.cpu.emission.meeting import NOBODY, Meeting, fold, results_of
from xlalite.backends.cpu.native.record import Record
from xlalite.backends.cpu.native.rendezvous import MEET, Context
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.shape import Shape

Planner = Callable[[HloInstruction, "tuple[tuple[int, int], ...]"], KernelPlan | Declined]
Runner = Callable[[HloInstruction, KernelPlan, "Sequence[Value]", "tuple[Value, Value] | None"], None]

_FOLDED_AT_ONCE = 16
"""Arrays that one kernel combines: more would not find room in the registers."""

_SHARED_BYTES = 1 << 16
"""An all-reduce of more is computed once, each device a share of it; of less, by every device for itself."""

_COME, _COMBINED, _PART = 0, 1, 3
_MEETINGS = 4
"""Numbers of a collective's meetings; between the first and the last nobody fails, for others read its operands."""


@dataclass(frozen=True, slots=True)
class CollectiveCode:
    """The code of one collective.

    Attributes:
        fb: Where it is written.
        instruction: The collective.
        meeting: Who meets.
        number: What the meeting is known by.
        operands: Addresses of the arrays among the operands' leaves.
        results: Addresses of the arrays of the result.
        ask_evaluator: Writes what happens instead when devices do not meet, or should not have: gives a status.
        fail: Writes the end of the program if a status is not zero.
        run: Writes the call of a kernel, for a part of its extent if one is given.
        folds: For each operand, the kernels that combine it with those of the others.
    """

    fb: FunctionBuilder
    instruction: HloInstruction
    meeting: Meeting
    number: int
    operands: Sequence[Value]
    results: Sequence[Value]
    ask_evaluator: Callable[[], Value]
    fail: Callable[[Value], None]
    run: Runner
    folds: Sequence[Sequence[tuple[HloInstruction, KernelPlan]]]

    def emit(self) -> None:
        """Writes the code."""
        fb = self.fb
        table = fb.module.constant_bytes(self.meeting.table)
        row = fb.gep(I64, table, fb.shl(rank_of(fb), 1))
        place, begin = fb.load(I64, row), fb.load(I64, fb.gep(I64, row, 1))
        takes_part = fb.if_else(fb.icmp("ne", begin, NOBODY))
        with takes_part.then():
            _Exchange(self, place, fb.gep(I64, table, begin)).emit()
        with takes_part.otherwise():
            self.without_sender()

    def without_sender(self) -> None:
        """The results where nobody sends: zeros, or what is to be updated as it was."""
        if self.updates:
            self.fb.memcpy(self.results[0], self.operands[1], results_of(self.instruction)[0].size_bytes)
            return
        for shape, result in zip(results_of(self.instruction), self.results, strict=True):
            self.fb.memset(result, 0, shape.size_bytes)

    @property
    def updates(self) -> bool:
        """Whether its second operand is the result as it was."""
        attrs = self.instruction.attrs
        return self.instruction.opcode == "ragged-all-to-all" or bool(getattr(attrs, "slice_sizes", ()))


def plan_folds(
    instruction: HloInstruction, meeting: Meeting, plan: Planner
) -> list[list[tuple[HloInstruction, KernelPlan]]] | Declined:
    """The kernels with which a collective combines each of its operands, one after the other."""
    folds: list[list[tuple[HloInstruction, KernelPlan]]] = []
    for reducer in instruction.called_computations:
        for operand, result in zip(instruction.operands, results_of(instruction), strict=True):
            kernels: list[tuple[HloInstruction, KernelPlan]] = []
            given, made = _plain(operand.shape), _plain(result)
            for begin in range(0, meeting.count, _FOLDED_AT_ONCE):
                others = [given] * (min(_FOLDED_AT_ONCE, meeting.count - begin) - (not begin))
                fusion = fold(reducer, made if begin else given, others, made)
                planned = plan(fusion, ((0, 0),) if begin else ())
                if isinstance(planned, Declined):
                    return planned
                kernels.append((fusion, planned))
            folds.append(kernels)
    return folds


def rank_of(fb: FunctionBuilder) -> Value:
    """The rank of the device that the code runs on."""
    return Record(fb, Context, fb.parameters[3]).load("rank")


@dataclass(frozen=True, slots=True)
class _Exchange:
    """What a device does that takes part: its place, its group, and the tables of addresses of those who came."""

    code: CollectiveCode
    place: Value
    ranks: Value

    def emit(self) -> None:
        code, fb = self.code, self.code.fb
        own = fb.alloca(PTR, len(code.operands) + len(code.results), align=8)
        tables = fb.alloca(PTR, max(code.meeting.count, 1), align=8)
        for number, address in enumerate((*code.operands, *code.results)):
            fb.store(address, fb.gep(PTR, own, number), 8)
        came = fb.if_else(self._meet(_COME, own, tables), likely=True)
        with came.then():
            status = self._combine(own, tables)
            self._meet(_PART, own, tables)
            came.yield_(status)
        with came.otherwise():
            came.yield_(code.ask_evaluator())
        code.fail(*came.results)

    def _meet(self, phase: int, own: Value, tables: Value) -> Value:
        fb, number = self.code.fb, _MEETINGS * self.code.number + phase
        meet = fb.module.declare(MEET, I32, (PTR, I64, I64, PTR, PTR, PTR))
        status = fb.call(meet, fb.parameters[3], number, self.code.meeting.count, self.ranks, own, tables)
        return fb.icmp("eq", status, 0)

    def _combine(self, own: Value, tables: Value) -> Value:
        """Makes the results; gives a status."""
        match self.code.instruction.opcode:
            case "all-reduce":
                self._all_reduce(own, tables)
            case "reduce-scatter":
                self._reduce_scatter(tables)
            case "all-gather":
                self._all_gather(tables)
            case "all-to-all":
                self._all_to_all(tables)
            case "ragged-all-to-all":
                return self._ragged_all_to_all(tables)
            case "collective-broadcast":
                self._copy_operands(self._table(tables, 0))
            case "collective-permute":
                self._permute(tables)
        return constant(I32, 0)

    def _table(self, tables: Value, place: Value | int) -> Value:
        return self.code.fb.load(PTR, self.code.fb.gep(PTR, tables, place))

    def _array(self, table: Value, number: Value | int) -> Value:
        return self.code.fb.load(PTR, self.code.fb.gep(PTR, table, number))

    def _all_reduce(self, own: Value, tables: Value) -> None:
        code, fb, count = self.code, self.code.fb, self.code.meeting.count
        shapes = results_of(code.instruction)
        is_shared = sum(shape.size_bytes for shape in shapes) > _SHARED_BYTES and count > 1
        is_shared &= all(len({plan.kernel.extent for _, plan in kernels}) == 1 for kernels in code.folds)
        first = self._table(tables, 0)
        for number, (shape, kernels) in enumerate(zip(shapes, code.folds, strict=True)):
            target = self._array(first, len(code.operands) + number) if is_shared else code.results[number]
            self._fold(number, kernels, tables, target, shape, is_shared=is_shared)
        if not is_shared:
            return
        self._meet(_COMBINED, own, tables)
        with fb.if_(fb.icmp("ne", self.place, 0)):
            for number, shape in enumerate(shapes):
                fb.memcpy(code.results[number], self._array(first, len(code.operands) + number), shape.size_bytes)

    def _reduce_scatter(self, tables: Value) -> None:
        """The kernels read the beginning of what they get; so they get the operands from this device's piece on."""
        for number, (shape, kernels) in enumerate(zip(results_of(self.code.instruction), self.code.folds, strict=True)):
            self._fold(number, kernels, tables, self.code.results[number], shape, is_shared=False)

    def _fold(
        self,
        number: int,
        kernels: Sequence[tuple[HloInstruction, KernelPlan]],
        tables: Value,
        target: Value,
        shape: Shape,
        *,
        is_shared: bool,
    ) -> None:
        code, fb = self.code, self.code.fb
        offset = None
        if code.instruction.opcode == "reduce-scatter":
            offset = fb.mul(self.place, _block_bytes(shape, code.instruction.attrs.dimensions[0]))
        arrays = []
        for member in range(code.meeting.count):
            array = self._array(self._table(tables, member), number)
            arrays.append(array if offset is None else fb.gep(I8, array, offset))
        taken = 0
        for position, (fusion, plan) in enumerate(kernels):
            inputs = len(fusion.operands) - bool(position)
            pointers = [*([target] if position else []), *arrays[taken : taken + inputs], target]
            taken += inputs
            part = None
            if is_shared:
                extent = plan.kernel.extent
                begin, end = (
                    fb.udiv(fb.mul(one, extent), code.meeting.count) for one in (self.place, fb.add(self.place, 1))
                )
                part = begin, end
            code.run(fusion, plan, pointers, part)

    def _all_gather(self, tables: Value) -> None:
        fb, count = self.code.fb, self.code.meeting.count
        (dimension,) = self.code.instruction.attrs.dimensions
        with fb.loop(0, count) as member:
            table = self._table(tables, member)
            for number, operand in enumerate(self.code.instruction.operands):
                block = _block_bytes(operand.shape, dimension)
                target = fb.gep(I8, self.code.results[number], fb.mul(member, block))
                blocks = math.prod(operand.shape.dims[:dimension])
                _copy_blocks(fb, target, count * block, self._array(table, number), block, blocks, block)

    def _all_to_all(self, tables: Value) -> None:
        fb, count, dimensions = self.code.fb, self.code.meeting.count, self.code.instruction.attrs.dimensions
        (shape, *_) = (operand.shape for operand in self.code.instruction.operands)
        if not dimensions:
            for sender, result in enumerate(self.code.results):
                fb.memcpy(result, self._array(self._table(tables, sender), self.place), shape.size_bytes)
            return
        block = _block_bytes(shape, dimensions[0])
        piece, blocks = block // count, math.prod(shape.dims[: dimensions[0]])
        with fb.loop(0, count) as member:
            source = fb.gep(I8, self._array(self._table(tables, member), 0), fb.mul(self.place, piece))
            target = fb.gep(I8, self.code.results[0], fb.mul(member, piece))
            _copy_blocks(fb, target, block, source, block, blocks, piece)

    def _copy_operands(self, table: Value) -> None:
        for number, operand in enumerate(self.code.instruction.operands):
            self.code.fb.memcpy(self.code.results[number], self._array(table, number), operand.shape.size_bytes)

    def _permute(self, tables: Value) -> None:
        has_sender = self.code.fb.if_else(self.code.fb.icmp("ne", self.place, NOBODY))
        with has_sender.then():
            sender = self._table(tables, self.place)
            if self.code.updates:
                self.code.without_sender()
                self._put_slices(sender)
            else:
                self._copy_operands(sender)
        with has_sender.otherwise():
            self.code.without_sender()

    def _put_slices(self, sender: Value) -> None:
        """Slices of the sender's input, from the sender's starts to this device's."""
        code, fb = self.code, self.code.fb
        source, output, taken_from, put_to = (operand.shape for operand in code.instruction.operands)
        from_types, to_types = ([leaf for _, leaf in starts.leaves()] for starts in (taken_from, put_to))
        for number, sizes in enumerate(code.instruction.attrs.slice_sizes):
            before = number * source.rank
            theirs = [self._array(sender, 2 + before + dim) for dim in range(source.rank)]
            ours = code.operands[2 + len(from_types) + before :]
            begin = self._corner(source, sizes, theirs, from_types[before:])
            end = self._corner(output, sizes, ours, to_types[before:])
            origin = fb.gep(I8, self._array(sender, 0), begin)
            _copy_box(fb, fb.gep(I8, code.results[0], end), output, origin, source, sizes)

    def _corner(self, array: Shape, sizes: Sequence[int], starts: Sequence[Value], types: Sequence[Shape]) -> Value:
        """Where a slice begins, in bytes, moved so that it lies inside."""
        fb, place = self.code.fb, constant(I64, 0)
        for dim, size in enumerate(sizes):
            start = _as_i64(fb, starts[dim], types[dim])
            last = array.dims[dim] - size
            start = fb.smax(fb.smin(start, last), 0) if types[dim].dtype.is_signed else fb.umin(start, last)
            place = fb.add(place, fb.mul(start, _block_bytes(array, dim + 1)))
        return place

    def _ragged_all_to_all(self, tables: Value) -> Value:
        """The offsets of device i are in blocks, one for each receiver; block i of everybody is about what i gets."""
        code, fb, count = self.code, self.code.fb, self.code.meeting.count
        given, output, starts, sizes, targets, _ = (operand.shape for operand in code.instruction.operands)
        row, block = _block_bytes(output, 1), starts.dims[0] // max(count, 1)
        fails = fb.alloca(I32)
        fb.store(constant(I32, 0), fails)
        code.without_sender()
        with fb.loop(0, count) as member, fb.loop(0, block) as number:
            table = self._table(tables, member)
            at = fb.add(fb.mul(self.place, block), number)
            start, size, target = (
                _as_i64(fb, fb.gep(I8, self._array(table, position), fb.mul(at, shape.dtype.numpy.itemsize)), shape)
                for position, shape in ((2, starts), (3, sizes), (4, targets))
            )
            is_inside = fb.icmp("sge", fb.smin(fb.smin(start, target), size), 0)
            for first, rows in ((start, given.dims[0]), (target, output.dims[0])):
                is_inside = fb.and_(is_inside, fb.icmp("sle", size, fb.sub(constant(I64, rows), first)))
            moves = fb.if_else(is_inside)
            with moves.then():
                source = fb.gep(I8, self._array(table, 0), fb.mul(start, row))
                fb.memcpy(fb.gep(I8, code.results[0], fb.mul(target, row)), source, fb.mul(size, row))
            with moves.otherwise():
                fb.store(constant(I32, 1), fails)
        failed = fb.if_else(fb.icmp("ne", fb.load(I32, fails), 0), likely=False)
        with failed.then():
            failed.yield_(code.ask_evaluator())
        with failed.otherwise():
            failed.yield_(constant(I32, 0))
        return failed.results[0]


def _plain(shape: Shape) -> Shape:
    return Shape.array(shape.dtype, shape.dims)


def _block_bytes(shape: Shape, dimension: int) -> int:
    """Bytes of the elements that differ in this dimension or later ones only."""
    return math.prod(shape.dims[dimension:]) * shape.dtype.numpy.itemsize


def _as_i64(fb: FunctionBuilder, address: Value, shape: Shape) -> Value:
    """An integer in memory."""
    size = shape.dtype.numpy.itemsize
    value = fb.load(integer(8 * size), address, 1)
    if size == I64.size_bytes:
        return value
    return fb.sext(value, I64) if shape.dtype.is_signed else fb.zext(value, I64)


def _copy_blocks(
    fb: FunctionBuilder, target: Value, target_step: int, source: Value, source_step: int, blocks: int, size: int
) -> None:
    """Copies so many blocks of bytes that lie apart."""
    if blocks == 1:
        fb.memcpy(target, source, size)
    elif size:
        with fb.loop(0, blocks) as number:
            at = fb.gep(I8, target, fb.mul(number, target_step))
            fb.memcpy(at, fb.gep(I8, source, fb.mul(number, source_step)), size)


def _copy_box(
    fb: FunctionBuilder, target: Value, target_array: Shape, source: Value, source_array: Shape, sizes: Sequence[int]
) -> None:
    """Copies a box of elements from one array to another."""

    def copy(dim: int, to: Value, origin: Value) -> None:
        if dim >= len(sizes) - 1:
            fb.memcpy(to, origin, math.prod(sizes[dim:]) * target_array.dtype.numpy.itemsize)
            return
        with fb.loop(0, sizes[dim]) as number:
            step = partial(fb.mul, number)
            inner = fb.gep(I8, to, step(_block_bytes(target_array, dim + 1)))
            copy(dim + 1, inner, fb.gep(I8, origin, step(_block_bytes(source_array, dim + 1))))

    if math.prod(sizes):
        copy(0, target, source)
