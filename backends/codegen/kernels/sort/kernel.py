"""The sort kernel: each row is brought into order in memory of its own and written back.

A comparator that compares the same function of both sides is an order of keys, which are sorted by their digits. Rows
of one array whose keys can be turned back into numbers are sorted without positions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from xlalite.backends.codegen.arrays.index import Affine, Index, Lanes, Position
from xlalite.backends.codegen.arrays.ir_array import ArrayView
from xlalite.backends.codegen.kernels.estimate import Work
from xlalite.backends.codegen.kernels.kernel import Declined, Kernel, KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry, lane_count, open_kernel
from xlalite.backends.codegen.kernels.loop_nest import for_lanes, places_of
from xlalite.backends.codegen.kernels.scratch import aligned, own_slot, parts_of
from xlalite.backends.codegen.kernels.sort.keys import (
    UNSIGNED,
    as_bits,
    bits_of_key,
    key_of_number,
    key_type,
    read_key,
    stored_keys,
)
from xlalite.backends.codegen.kernels.sort.merge import ComesBefore, merge_sort
from xlalite.backends.codegen.kernels.sort.radix import POSITION, Records, counter_bytes, radix_sort
from xlalite.backends.codegen.llvm import I64, Function, FunctionBuilder, ModuleBuilder, Type, Value, vector
from xlalite.hlo.ops.evaluation.sorting_evaluation import SortKey, sort_key
from xlalite.hlo.types.dtype import DType
from xlalite.passes.fusion.kernel_shape import KernelShape

_NS_A_RECORD = 8.0
"""What a record costs about, by digits; a comparison of a merge costs about as much."""


def plan_sort(request: KernelRequest, shape: KernelShape) -> SortKernel | Declined:
    """The kernel that sorts rows."""
    sort = request.body.root
    dimension: int = sort.attrs.dimension
    if shape.domain.dims[dimension] >= 1 << (POSITION.bits - 1):
        return Declined("rows are longer than positions count")
    key = sort_key(sort.called_computations[0])
    if key is None:
        return SortKernel(request, shape.domain.dims, dimension, None, None)
    stored: int | None = None
    if key.side.opcode == "parameter" and (key.is_total or not key.side.shape.dtype.is_floating):
        stored = stored_keys(sort.operand(key.side.attrs.number // 2))
    return SortKernel(request, shape.domain.dims, dimension, key, stored)


@dataclass(frozen=True, slots=True)
class SortKernel(Kernel):
    """A sort of rows.

    Attributes:
        dims: Sizes of each operand.
        dimension: The one along which rows lie.
        key: What rows are ordered by; None where only the comparator knows.
        stored: The parameter whose numbers are the keys, as they lie in memory; None where keys are computed.
    """

    dims: tuple[int, ...]
    dimension: int
    key: SortKey | None
    stored: int | None

    @property
    def extent(self) -> int:
        """The rows."""
        return math.prod(size for dim, size in enumerate(self.dims) if dim != self.dimension)

    @property
    def scratch_bytes(self) -> int:
        """Keys and positions in two buffers each, and counters."""
        return sum(self._buffers)

    @property
    def is_reversible(self) -> bool:
        """Whether the keys say all there is to know of the elements."""
        return self.stored is not None and len(self.request.body.root.operands) == 1

    @property
    def _length(self) -> int:
        return self.dims[self.dimension]

    def _lanes(self, key: Type) -> int:
        return self.request.target.lanes(key.bits)

    @property
    def _buffers(self) -> tuple[int, ...]:
        """Bytes of two buffers of keys, two of positions, and of counters."""
        key = key_type(self.key.side.shape.dtype) if self.key is not None else None
        keys = aligned(self._length * key.size_bytes) if key is not None else 0
        positions = 0 if self.is_reversible else aligned(self._length * POSITION.size_bytes)
        counters = counter_bytes(self._length, key, self._lanes(key)) if key is not None else 0
        return keys, keys, positions, positions, aligned(counters)

    def estimate_ns(self, work: Work) -> float:
        """By the digits of keys, or by comparisons."""
        rounds = 1.0 if self.key is not None else max(1.0, math.log2(max(self._length, 2)) / 2)
        return math.prod(self.dims) * _NS_A_RECORD * rounds

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """Sorts the rows [begin, end)."""
        entry = open_kernel(module, name, self.request)
        if math.prod(self.dims):
            with own_slot(entry, self.scratch_bytes) as slot, entry.fb.loop(entry.begin, entry.end) as row:
                self._sort_row(module, entry, slot, row)
        entry.fb.ret()
        return entry.function

    def _sort_row(self, module: ModuleBuilder, entry: KernelEntry, slot: Value, row: Value) -> None:
        fb, length = entry.fb, self._length
        lanes = lane_count(module, self.request.body, length)
        keys_a, keys_b, positions_a, positions_b, counters = parts_of(fb, slot, self._buffers)
        if not self.is_reversible:
            self._number(entry, positions_a, lanes)
        if self.key is None:
            found = merge_sort(fb, length, (positions_a, positions_b), self._comparison(entry, row))
            self._write_at(entry, row, found, lanes)
            return
        self._write_keys(entry, row, keys_a, lanes)
        key = key_type(self.key.side.shape.dtype)
        records = Records(
            length,
            key,
            self._lanes(key),
            (keys_a, keys_b),
            None if self.is_reversible else (positions_a, positions_b),
        )
        keys, positions = radix_sort(fb, records, counters)
        if positions is None:
            self._write_numbers(entry, row, keys, lanes)
        else:
            self._write_at(entry, row, positions, lanes)

    def _index(self, fb: FunctionBuilder, row: Value, position: Position) -> Index:
        """Where a position of a row lies."""
        before, behind = self.dims[: self.dimension], self.dims[self.dimension + 1 :]
        others = places_of(fb, row, (*before, *behind))
        return (*others[: len(before)], position, *others[len(before) :])

    def _number(self, entry: KernelEntry, positions: Value, lanes: int) -> None:
        fb, view = entry.fb, self._positions(positions)

        def visit(at: Affine, width: int, mask: Value | None) -> None:
            math = entry.emitter(width).math
            numbers = math.vector(at)
            view.write(math, (at,), fb.trunc(numbers, numbers.type.with_scalar(POSITION)), mask)

        for_lanes(fb, self._length, lanes, visit)

    def _positions(self, pointer: Value) -> ArrayView:
        return ArrayView.row_major(pointer, DType.U32, (self._length,))

    def _write_keys(self, entry: KernelEntry, row: Value, keys: Value, lanes: int) -> None:
        assert self.key is not None, "keys are written where there are some"
        fb, key, sort = entry.fb, self.key, self.request.body.root
        dtype = key.side.shape.dtype
        unsigned = UNSIGNED[key_type(dtype).bits]
        view = ArrayView.row_major(keys, unsigned, (self._length,))

        def visit(at: Affine, width: int, mask: Value | None) -> None:
            emitter, index = entry.emitter(width, mask), self._index(fb, row, at)
            if self.stored is not None:
                found = read_key(emitter, entry.inputs[self.stored], index)
            else:
                pairs = [emitter.element(operand, index) for operand in sort.operands for _ in range(2)]
                (number,) = emitter.apply(sort.called_computations[0], pairs, results=(key.side,))
                assert isinstance(number, Value), "keys of complex numbers are no keys"
                found = key_of_number(fb, dtype, number, is_total=key.is_total)
            view.write(emitter.math, (at,), fb.not_(found) if key.is_descending else found, mask)

        for_lanes(fb, self._length, lanes, visit)

    def _write_numbers(self, entry: KernelEntry, row: Value, keys: Value, lanes: int) -> None:
        assert self.key is not None, "numbers are made of keys"
        fb, dtype, is_descending = entry.fb, self.key.side.shape.dtype, self.key.is_descending
        unsigned = UNSIGNED[key_type(dtype).bits]
        view = ArrayView.row_major(keys, unsigned, (self._length,))
        result = as_bits(entry.outputs[0])

        def visit(at: Affine, width: int, mask: Value | None) -> None:
            math = entry.emitter(width).math
            key = view.read(math, (at,), mask)
            assert isinstance(key, Value), "an integer is one register"
            bits = bits_of_key(fb, dtype, fb.not_(key) if is_descending else key)
            result.write(math, self._index(fb, row, at), bits, mask)

        for_lanes(fb, self._length, lanes, visit)

    def _write_at(self, entry: KernelEntry, row: Value, positions: Value, lanes: int) -> None:
        """Each element of the results is the operands' at the position that has come to be there."""
        fb, view = entry.fb, self._positions(positions)

        def visit(at: Affine, width: int, mask: Value | None) -> None:
            emitter = entry.emitter(width, mask)
            found = view.read(emitter.math, (at,), mask)
            assert isinstance(found, Value), "an integer is one register"
            place = Affine(fb.zext(found, I64)) if width == 1 else Lanes(fb.zext(found, vector(I64, width)))
            source = self._index(fb, row, place)
            elements = [emitter.element(operand, source) for operand in self.request.body.root.operands]
            for output, element in zip(entry.outputs, elements, strict=True):
                output.write(emitter.math, self._index(fb, row, at), element, mask)

        for_lanes(fb, self._length, lanes, visit)

    def _comparison(self, entry: KernelEntry, row: Value) -> ComesBefore:
        """The comparator, asked for two positions of a row."""
        fb, sort = entry.fb, self.request.body.root

        def comes_before(a: Value, b: Value) -> Value:
            emitter = entry.emitter(1)
            places = [self._index(fb, row, Affine(fb.zext(position, I64))) for position in (a, b)]
            sides = [emitter.element(operand, place) for operand in sort.operands for place in places]
            (found,) = emitter.apply(sort.called_computations[0], sides)
            assert isinstance(found, Value), "a truth value is one register"
            return found

        return comes_before
