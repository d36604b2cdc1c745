"""The top-k kernel: a row is read once, and what is better than the worst of the best so far is kept.

Kept are keys and positions, in a buffer with room for more than k. When it is full, its records are sorted, the first k
stay, and the last of these is what later elements must beat; elements are compared with it many at once, and few pass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from xlalite.backends.codegen.arrays.index import Affine, Index, Lanes, Position
from xlalite.backends.codegen.arrays.ir_array import ArrayView, lanes_below
from xlalite.backends.codegen.kernels.kernel import Kernel, KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry, open_kernel
from xlalite.backends.codegen.kernels.loop_nest import for_lanes, places_of
from xlalite.backends.codegen.kernels.scratch import PART_ALIGNMENT, aligned, own_slot, parts_of
from xlalite.backends.codegen.kernels.sort.keys import key_of_number, key_type, read_key, stored_keys
from xlalite.backends.codegen.kernels.sort.radix import POSITION, Records, counter_bytes, radix_sort
from xlalite.backends.codegen.llvm import I1, I64, Function, ModuleBuilder, Type, Value, vector
from xlalite.hlo.types.dtype import DType
from xlalite.passes.fusion.kernel_shape import KernelShape


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
        """Two buffers of keys, two of positions, counters, and a vector of keys."""
        return sum(self._buffers)

    @property
    def _key(self) -> Type:
        return key_type(self.dtype)

    @property
    def _lanes(self) -> int:
        return self.request.target.lanes(max(self._key.bits, 32))

    @property
    def _room(self) -> int:
        """Records in the buffer: the best, as many again, and a vector more."""
        return 2 * self.k + 4 * self._lanes

    @property
    def _buffers(self) -> tuple[int, ...]:
        keys = aligned(self._room * self._key.size_bytes)
        positions = aligned(self._room * POSITION.size_bytes)
        return (
            keys,
            keys,
            positions,
            positions,
            aligned(counter_bytes(self._room, self._key, self._lanes)),
            PART_ALIGNMENT,
        )

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """Selects from the rows [begin, end)."""
        entry = open_kernel(module, name, self.request)
        if self.extent and self.k:
            with own_slot(entry, self.scratch_bytes) as slot:
                pointers = parts_of(entry.fb, slot, self._buffers)
                with entry.fb.loop(entry.begin, entry.end) as row:
                    positions = self._select(entry, pointers, row)
                    self._write(entry, positions, row)
        entry.fb.ret()
        return entry.function

    def _select(self, entry: KernelEntry, pointers: list[Value], row: Value) -> Value:
        """Reads a row; where the positions of its first elements are then."""
        fb, lanes, length = entry.fb, self._lanes, self.dims[-1]
        keys, positions = pointers[0], pointers[2]
        last = (length - 1) // lanes * lanes
        zero = fb.constant(I64, 0)
        # Until k elements are known everything is good enough.
        with fb.carried_loop(0, last + 1, lanes, [zero, fb.constant(self._key, 0), fb.constant(I1, 1)]) as loop:
            count, worst, is_open = loop.values
            found = self._keys_at(entry, row, loop.index)
            inside = lanes_below(fb, loop.index, length, lanes)
            better = fb.or_(fb.icmp("ult", found, fb.splat(worst, lanes)), fb.splat(is_open, lanes))
            count = self._append(entry, pointers, count, found, fb.and_(better, inside), loop.index)
            is_full = fb.icmp("sgt", count, self._room - lanes)
            sorts = fb.if_else(fb.or_(is_full, fb.icmp("eq", loop.index, last)))
            with sorts.then():
                self._sort(entry, pointers, count)
                limit = fb.load(self._key, fb.gep(self._key, keys, self.k - 1))
                sorts.yield_(fb.constant(I64, self.k), limit, fb.constant(I1, 0))
            with sorts.otherwise():
                sorts.yield_(count, worst, is_open)
            loop.yield_(*sorts.results)
        return positions

    def _keys_at(self, entry: KernelEntry, row: Value, begin: Value) -> Value:
        fb, lanes, length = entry.fb, self._lanes, self.dims[-1]
        whole = length // lanes * lanes
        mask = lanes_below(fb, begin, length, lanes) if whole < length else None
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
        self, entry: KernelEntry, pointers: list[Value], count: Value, found: Value, mask: Value, begin: Value
    ) -> Value:
        """Puts the keys in some lanes behind the others; how many there are then."""
        fb, keys, positions, spill = entry.fb, pointers[0], pointers[2], pointers[5]
        bits = fb.mask_bits(mask)
        bits = fb.zext(bits, I64) if bits.type is not I64 else bits
        fb.store(found, spill, PART_ALIGNMENT)
        with fb.while_loop([bits, count]) as loop:
            left, place = loop.values
            loop.continue_while(fb.icmp("ne", left, 0))
            lane = fb.cttz(left)
            fb.store(fb.load(self._key, fb.gep(self._key, spill, lane)), fb.gep(self._key, keys, place))
            position = fb.trunc(fb.add(begin, lane), POSITION)
            fb.store(position, fb.gep(POSITION, positions, place))
            loop.yield_(fb.and_(left, fb.sub(left, 1)), fb.add(place, 1))
        return loop.results[1]

    def _sort(self, entry: KernelEntry, pointers: list[Value], count: Value) -> None:
        """Brings the first k records to the front, in order."""
        fb, (keys, keys_b, positions, positions_b, counters, _) = entry.fb, pointers
        with fb.loop(count, self._room) as unused:
            fb.store(fb.constant(self._key, -1), fb.gep(self._key, keys, unused))
            fb.store(fb.constant(POSITION, 0), fb.gep(POSITION, positions, unused))
        records = Records(self._room, self._key, self._lanes, (keys, keys_b), (positions, positions_b))
        sorted_keys, sorted_positions = radix_sort(fb, records, counters)
        assert sorted_positions is not None, "these records have positions"
        fb.memmove(keys, sorted_keys, self.k * self._key.size_bytes, align=PART_ALIGNMENT)
        fb.memmove(positions, sorted_positions, self.k * POSITION.size_bytes, align=PART_ALIGNMENT)

    def _write(self, entry: KernelEntry, positions: Value, row: Value) -> None:
        fb, (values, numbers) = entry.fb, entry.outputs
        view = ArrayView.row_major(positions, DType.S32, (self.k,))

        def visit(at: Affine, width: int, mask: Value | None) -> None:
            emitter, index = entry.emitter(width, mask), self._index(entry, row, at)
            found = view.read(emitter.math, (at,), mask)
            assert isinstance(found, Value), "an integer is one register"
            place = Affine(fb.zext(found, I64)) if width == 1 else Lanes(fb.zext(found, vector(I64, width)))
            source = self._index(entry, row, place)
            values.write(emitter.math, index, emitter.element(self.request.body.root.operand(0), source), mask)
            numbers.write(emitter.math, index, found, mask)

        for_lanes(fb, self.k, self._lanes if self.k > 1 else 1, visit)

    def _index(self, entry: KernelEntry, row: Value, position: Position) -> Index:
        return (*places_of(entry.fb, row, self.dims[:-1]), position)
