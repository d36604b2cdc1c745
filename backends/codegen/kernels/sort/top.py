"""The top-k kernel: a row is read once, and what is better than the worst of the best so far is kept.

Kept are keys and positions, in a buffer with room for more than k. When it is full, its records are sorted, the first k
stay, and the last of these is what later elements must beat; elements are compared with it many at once, and few pass.
"""

from __future__ import annotations

import math

from xlalite.backends.codegen.arrays.index import Affine, Index, IndexMath, Lanes, Position
from xlalite.backends.codegen.arrays.ir_array import ArrayView, lanes_below
from xlalite.backends.codegen.kernels.estimate import Work
from xlalite.backends.codegen.kernels.kernel import Kernel, KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry, open_kernel
from xlalite.backends.codegen.kernels.loop_nest import for_lanes, places_of
from xlalite.backends.codegen.kernels.scratch import PART_ALIGNMENT, own_slot, parts_of
from xlalite.backends.codegen.kernels.sort.keys import UNSIGNED, key_of_number, key_type, read_key, stored_keys
from xlalite.backends.codegen.kernels.sort.network import lanes_set
from xlalite.backends.codegen.kernels.sort.quicksort import can_part
from xlalite.backends.codegen.kernels.sort.records import POSITION, Records
from xlalite.backends.codegen.llvm import I1, I64, Function, ModuleBuilder, Value
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.passes.fusion.kernel_shape import KernelShape

_NS_AN_ELEMENT = 1.0
"""Measured 0.6 (50 of 32000) to 2.2 (5 of 1000)."""


def plan_top(request: KernelRequest, shape: KernelShape) -> TopKernel:
    """The kernel of a topk."""
    top = request.body.root
    operand = top.operand(0).shape
    return TopKernel(request, operand.dims, operand.dtype, top.attrs.k, is_largest=top.attrs.largest)


@dataclass(frozen=True, slots=True)
class TopKernel(Kernel):
    """A selection of the first elements in order.

    Attributes:
        dims: Sizes of the operand.
        dtype: Its type.
        k: How many elements of each row.
        is_largest: Whether the order is a falling one.
    """

    dims: tuple[int, ...]
    dtype: DType
    k: int
    is_largest: bool

    @property
    def extent(self) -> int:
        """The rows."""
        return math.prod(self.dims[:-1])

    @property
    def scratch_bytes(self) -> int:
        """Records in two buffers, counters, and a vector of words."""
        return sum(self._sizes)

    def estimate_ns(self, work: Work) -> float:
        """By elements, each of which is compared with the last of the best."""
        return math.prod(self.dims) * _NS_AN_ELEMENT

    @property
    def _sizes(self) -> tuple[int, ...]:
        return (*self._records.sizes, PART_ALIGNMENT)

    @property
    def _records(self) -> Records:
        """Records in the buffer: the best, as many again, and some vectors more."""
        key, position_bits = key_type(self.dtype), max(self.dims[-1] - 1, 1).bit_length()
        return Records(2 * self.k + 4 * self._lanes, key, position_bits, self.request.target)

    @property
    def _lanes(self) -> int:
        """Keys that are compared at once."""
        return self.request.target.lanes(max(key_type(self.dtype).bits, 32))

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """Selects from the rows [begin, end)."""
        entry = open_kernel(module, name, self.request)
        entry.fb.is_strength_reduced = True
        if self.extent and self.k:
            with own_slot(entry, self.scratch_bytes) as slot:
                pointers = parts_of(entry.fb, slot, self._sizes)
                with entry.fb.loop(entry.begin, entry.end) as row:
                    self._select(entry, pointers, row)
                    self._write(entry, pointers, row)
        entry.fb.ret()
        return entry.function

    def _select(self, entry: KernelEntry, pointers: list[Value], row: Value) -> None:
        """Reads a row; its first elements are in the buffer then."""
        fb, records, length = entry.fb, self._records, self.dims[-1]
        key, lanes = key_type(self.dtype), self._lanes
        last = (length - 1) // lanes * lanes
        zero = fb.constant(I64, 0)
        # Until k elements are known everything is good enough; then what equals the worst comes too late.
        with fb.carried_loop(0, last + 1, lanes, [zero, fb.constant(key, 0), fb.constant(I1, 1)]) as loop:
            count, worst, is_open = loop.values
            inside = lanes_below(fb, loop.index, length, lanes) if length % lanes else None
            found = self._keys_at(entry, row, loop.index, inside)
            better = fb.or_(fb.icmp("ult", found, fb.splat(worst, lanes)), fb.splat(is_open, lanes))
            better = better if inside is None else fb.and_(better, inside)
            appends = fb.if_else(fb.any_lane(better))
            with appends.then():
                appends.yield_(self._append(entry, pointers, count, found, better, loop.index))
            with appends.otherwise():
                appends.yield_(count)
            (count,) = appends.results
            is_full = fb.icmp("sgt", count, records.room - lanes)
            sorts = fb.if_else(fb.or_(is_full, fb.icmp("eq", loop.index, last)), likely=False)
            with sorts.then():
                self._sort(entry, pointers, count)
                limit = fb.load(records.word, fb.gep(records.word, pointers[0], self.k - 1))
                limit = fb.lshr(limit, records.position_bits) if records.is_joined else limit
                sorts.yield_(fb.constant(I64, self.k), fb.trunc(limit, key), fb.constant(I1, 0))
            with sorts.otherwise():
                sorts.yield_(count, worst, is_open)
            loop.yield_(*sorts.results)

    def _keys_at(self, entry: KernelEntry, row: Value, begin: Value, mask: Value | None) -> Value:
        fb, lanes = entry.fb, self._lanes
        emitter = entry.emitter(lanes, mask)
        operand, index = self.request.body.root.operand(0), self._index(entry, row, Affine(begin, 1))
        stored = stored_keys(operand)
        if stored is not None:
            key = read_key(emitter, entry.inputs[stored], index)
        else:
            key = key_of_number(fb, self.dtype, emitter.register(operand, index), is_total=True)
        key = key if key.type.is_vector else fb.splat(key, lanes)
        return fb.not_(key) if self.is_largest else key

    def _append(
        self, entry: KernelEntry, pointers: list[Value], count: Value, keys: Value, mask: Value, begin: Value
    ) -> Value:
        """Puts the keys in some lanes, with their positions, behind the others; how many there are then."""
        fb, records, lanes = entry.fb, self._records, self._records.lanes
        for start in range(0, self._lanes, lanes):
            own, own_mask = (fb.slice_lanes(one, start, lanes) if lanes < self._lanes else one for one in (keys, mask))
            found, first = fb.zext(own, records.word), fb.add(begin, start)
            if records.is_joined:
                numbers = IndexMath(fb, lanes).vector(Affine(first, 1))
                positions = fb.trunc(numbers, numbers.type.with_scalar(records.word))
                found = fb.or_(fb.shl(found, records.position_bits), positions)
            count = self._append_words(entry, pointers, count, found, own_mask, first)
        return count

    def _append_words(
        self, entry: KernelEntry, pointers: list[Value], count: Value, found: Value, mask: Value, begin: Value
    ) -> Value:
        fb, records, (words, _, positions, *_, spill) = entry.fb, self._records, pointers
        word = records.word
        if records.is_joined and can_part(self.request.target):
            fb.store(fb.compress(found, mask), fb.gep(word, words, count), word.size_bytes)
            return fb.add(count, lanes_set(fb, mask))
        fb.store(found, spill, PART_ALIGNMENT)
        with fb.while_loop([fb.zext(fb.mask_bits(mask), I64), count]) as loop:
            left, place = loop.values
            loop.continue_while(fb.icmp("ne", left, 0))
            lane = fb.cttz(left)
            fb.store(fb.load(word, fb.gep(word, spill, lane)), fb.gep(word, words, place))
            if not records.is_joined:
                fb.store(fb.trunc(fb.add(begin, lane), POSITION), fb.gep(POSITION, positions, place))
            loop.yield_(fb.and_(left, fb.sub(left, 1)), fb.add(place, 1))
        return loop.results[1]

    def _sort(self, entry: KernelEntry, pointers: list[Value], count: Value) -> None:
        """Brings the first k records to the front, in order."""
        fb, records, (words, _, positions, *_) = entry.fb, self._records, pointers
        found, places = records.sort(fb, pointers[:-1], count)
        if found is not words:
            fb.memmove(words, found, self.k * records.word.size_bytes, align=PART_ALIGNMENT)
        if places is not positions:
            fb.memmove(positions, places, self.k * POSITION.size_bytes, align=PART_ALIGNMENT)

    def _write(self, entry: KernelEntry, pointers: list[Value], row: Value) -> None:
        fb, records, (values, numbers) = entry.fb, self._records, entry.outputs
        held = UNSIGNED[records.word.bits] if records.is_joined else DType.U32
        view = ArrayView.row_major(pointers[0 if records.is_joined else 2], held, (self.k,))

        def visit(at: Affine, width: int, mask: Value | None) -> None:
            emitter, index = entry.emitter(width, mask), self._index(entry, row, at)
            found = view.read(emitter.math, (at,), mask)
            assert isinstance(found, Value), "an integer is one register"
            if records.is_joined:
                found = fb.and_(found, (1 << records.position_bits) - 1)
            wide = fb.zext(found, I64)
            place = Affine(wide) if width == 1 else Lanes(wide)
            source = self._index(entry, row, place)
            values.write(emitter.math, index, emitter.element(self.request.body.root.operand(0), source), mask)
            numbers.write(emitter.math, index, fb.trunc(found, found.type.with_scalar(POSITION)), mask)

        for_lanes(fb, self.k, records.lanes if self.k > 1 else 1, visit)

    def _index(self, entry: KernelEntry, row: Value, position: Position) -> Index:
        return (*places_of(entry.fb, row, self.dims[:-1]), position)
