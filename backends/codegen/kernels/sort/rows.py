"""The rows of a sort: records are made of their elements, and elements written where records have come to be.

Rows of one array whose keys can be turned back into numbers need no positions. Where a comparator takes several numbers
for equal, zeros of both signs and NaNs, their key is that of one of them, and the numbers themselves are written over
it in the order of the row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xlalite.backends.codegen.arrays.index import ZERO, Affine, Index, IndexMath, Lanes, Position
from xlalite.backends.codegen.arrays.ir_array import ArrayView, lanes_below
from xlalite.backends.codegen.elements.elements import ElementEmitter
from xlalite.backends.codegen.kernels.kernel import KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry
from xlalite.backends.codegen.kernels.loop_nest import Range, lanes_between, places_of
from xlalite.backends.codegen.kernels.sort.keys import (
    UNSIGNED,
    ambiguous_keys,
    as_bits,
    bits_of_key,
    key_of_number,
    merged_key,
    read_key,
)
from xlalite.backends.codegen.kernels.sort.merge import ComesBefore, merge_sort
from xlalite.backends.codegen.kernels.sort.network import lanes_set, ordered_lanes
from xlalite.backends.codegen.kernels.sort.records import POSITION, Records
from xlalite.backends.codegen.llvm import I1, I64, FunctionBuilder, Type, Value, vector, widened
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.evaluation.sorting_evaluation import SortKey
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType

_SAMPLE = 256

Step = Callable[[Affine, "Value | None", tuple[Value, ...]], Sequence[Value]]
"""(position, mask, carried values) -> emits the work for a vector and gives what is carried on."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows along a dimension of some arrays.

    Attributes:
        entry: The kernel under construction.
        request: What it computes.
        dims: Sizes of each operand.
        dimension: The one along which rows lie.
        key: What rows are ordered by; None where only the comparator knows.
        stored: The parameter whose numbers are the keys, as they lie in memory; None where keys are computed.
        records: What is sorted.
    """

    entry: KernelEntry
    request: KernelRequest
    dims: tuple[int, ...]
    dimension: int
    key: SortKey | None
    stored: int | None
    records: Records

    @property
    def length(self) -> int:
        """Elements of a row."""
        return self.dims[self.dimension]

    @property
    def lanes(self) -> int:
        """Records of a vector, 2 at least."""
        return max(2, min(self.records.lanes, 1 << max(self.length - 1, 0).bit_length()))

    @property
    def _sort(self) -> HloInstruction:
        return self.request.body.root

    @property
    def _dtype(self) -> DType:
        """The type of the numbers that keys are made of."""
        assert self.key is not None, "only keys are made of numbers"
        return self.key.side.shape.dtype

    @property
    def _ordering(self) -> int:
        """The operand that rows are ordered by."""
        assert self.key is not None, "rows are ordered by keys"
        return int(self.key.side.attrs.number) // 2

    @property
    def _has_positions(self) -> bool:
        return self.key is None or self.records.position_bits > 0

    @property
    def _merges_keys(self) -> bool:
        """Whether different numbers in memory have one key."""
        key = self.key
        return key is not None and self.stored is not None and key.side.shape.dtype.is_floating and not key.is_total

    def sort_row(self, row: Value, buffers: list[Value]) -> None:
        """Emits the sort of a row."""
        fb, lanes, length = self.entry.fb, self.lanes, self.length
        if not self._has_positions and length <= self.records.lanes:
            self._sort_in_register(row, buffers)
            return
        word = self.records.word
        words, positions = (
            ArrayView.row_major(buffers[n], UNSIGNED[b], (length,)) for n, b in ((0, word.bits), (2, 32))
        )

        def keep(at: Affine, mask: Value | None, carried: tuple[Value, ...]) -> list[Value]:
            math = IndexMath(fb, lanes)
            is_merged = carried[0]
            if self.key is not None:
                record, is_merged = self._record(row, at, mask, lanes)
                words.write(math, (at,), record, mask)
            if not self.records.is_joined:
                numbers = math.vector(at)
                positions.write(math, (at,), fb.trunc(numbers, numbers.type.with_scalar(POSITION)), mask)
            return [fb.or_(carried[0], is_merged)]

        (is_merged,) = self._fold([fb.constant(vector(I1, lanes), 0)], keep)
        self._finish(row, buffers, ZERO, length, is_merged)

    def sort_parts(self, row: Value, buffers: list[Value], parts: Range, of: int) -> None:
        """Emits the sort of some of as many parts of a row, whose limits are those of a sorted sample."""
        fb, lanes, word, words = self.entry.fb, self.lanes, self.records.word, buffers[0]
        lowest, highest, is_open = self._limits(row, buffers, parts, of)
        lows, highs, opens = (fb.splat(each, lanes) for each in (lowest, highest, is_open))

        def keep(at: Affine, mask: Value | None, carried: tuple[Value, ...]) -> list[Value]:
            count, before, merged = carried
            record, is_merged = self._record(row, at, mask, lanes)
            is_smaller = fb.icmp("ult", record, lows)
            is_own = fb.and_(fb.not_(is_smaller), fb.or_(fb.icmp("ult", record, highs), opens))
            if mask is not None:
                is_smaller, is_own = fb.and_(is_smaller, mask), fb.and_(is_own, mask)
            fb.store(fb.compress(record, is_own), fb.gep(word, words, count), word.size_bytes)
            count, before = fb.add(count, lanes_set(fb, is_own)), fb.add(before, lanes_set(fb, is_smaller))
            return [count, before, fb.or_(merged, is_merged)]

        zero = fb.constant(I64, 0)
        count, before, is_merged = self._fold([zero, zero, fb.constant(vector(I1, lanes), 0)], keep)
        self._finish(row, buffers, Affine(before), count, is_merged)

    def _sort_in_register(self, row: Value, buffers: list[Value]) -> None:
        fb, lanes = self.entry.fb, self.lanes
        mask = lanes_below(fb, 0, self.length, lanes) if self.length < lanes else None
        record, is_merged = self._record(row, Affine(0, 1), mask, lanes)
        if mask is not None:
            record, is_merged = fb.select(mask, record, -1), fb.and_(is_merged, mask)
        found = ordered_lanes(fb, record)
        self._write_numbers(self._index(row, Affine(0, 1)), found, mask)
        if self._merges_keys:
            with fb.if_(fb.any_lane(is_merged), likely=False):
                fb.store(found, buffers[0], self.records.word.size_bytes)
                self._restore(row, buffers[0], ZERO, fb.constant(I64, self.length))

    def _finish(self, row: Value, buffers: list[Value], before: Affine, count: Value | int, is_merged: Value) -> None:
        """Sorts so many records and writes what they stand for behind so many elements of the row."""
        fb = self.entry.fb
        total = fb.constant(I64, count) if isinstance(count, int) else count
        if self.key is None:
            words = positions = merge_sort(fb, total, (buffers[2], buffers[3]), self._comparison(row))
        else:
            words, positions = self.records.sort(fb, buffers, total)
        self._write(row, words, positions, before, count)
        if self._merges_keys and not self._has_positions:
            with fb.if_(fb.any_lane(is_merged), likely=False):
                self._restore(row, words, before, total)

    def _limits(self, row: Value, buffers: list[Value], parts: Range, of: int) -> tuple[Value, Value, Value]:
        """What the words of some parts begin with, what they lie below, and whether they lie below nothing."""
        fb, word, words = self.entry.fb, self.records.word, buffers[0]
        with fb.loop(0, _SAMPLE) as number:
            record, _ = self._record(row, Affine(fb.mul(number, self.length // _SAMPLE)), None, 1)
            fb.store(record, fb.gep(word, words, number))
        sample, _ = self.records.sort(fb, buffers, fb.constant(I64, _SAMPLE))
        first, end = (fb.constant(I64, each) if isinstance(each, int) else each for each in parts)
        is_open = fb.icmp("eq", end, of)
        low, high = (fb.load(word, fb.gep(word, sample, fb.mul(each, _SAMPLE // of))) for each in (first, end))
        return fb.select(fb.icmp("eq", first, 0), 0, low), high, is_open

    def _fold(self, initial: Sequence[Value], step: Step) -> tuple[Value, ...]:
        """Goes through a row by vectors, the last of which may lack lanes."""
        fb, lanes = self.entry.fb, self.lanes
        full = self.length - self.length % lanes
        with fb.carried_loop(0, full, lanes, initial) as loop:
            loop.yield_(*step(Affine(loop.index, 1), None, loop.values))
        if full == self.length:
            return loop.results
        return tuple(step(Affine(full, 1), lanes_below(fb, full, self.length, lanes), loop.results))

    def _record(self, row: Value, at: Affine, mask: Value | None, lanes: int) -> tuple[Value, Value]:
        """The words of some elements, and where numbers in memory say more than their keys."""
        fb, word = self.entry.fb, self.records.word
        key, is_merged = self._key(self._index(row, at), mask, lanes)
        key = fb.zext(key, word)
        if self._has_positions and self.records.is_joined:
            numbers = IndexMath(fb, lanes).vector(at)
            position = fb.trunc(numbers, numbers.type.with_scalar(word))
            key = fb.or_(fb.shl(key, self.records.position_bits), position)
        return key, is_merged

    def _key(self, index: Index, mask: Value | None, lanes: int) -> tuple[Value, Value]:
        assert self.key is not None, "keys are made where there are some"
        fb, dtype = self.entry.fb, self.key.side.shape.dtype
        emitter, is_merged = self.entry.emitter(lanes, mask), fb.constant(widened(I1, lanes), 0)
        if self.stored is None:
            pairs = [emitter.element(operand, index) for operand in self._sort.operands for _ in range(2)]
            (number,) = emitter.apply(self._sort.called_computations[0], pairs, results=(self.key.side,))
            assert isinstance(number, Value), "keys of complex numbers are no keys"
            key = emitter.spread(key_of_number(fb, dtype, number, is_total=self.key.is_total))
        else:
            key = emitter.spread(read_key(emitter, self.entry.inputs[self.stored], index))
        assert isinstance(key, Value), "a key is one register"
        if self._merges_keys:
            key, is_merged = merged_key(fb, dtype, key)
        return fb.not_(key) if self.key.is_descending else key, is_merged

    def _write(self, row: Value, words: Value, positions: Value, behind: Affine, count: Value | int) -> None:
        """Writes so many elements of the results, those that sorted records stand for."""
        fb, records = self.entry.fb, self.records
        words_view = ArrayView.row_major(words, UNSIGNED[records.word.bits], (records.room,))
        positions_view = ArrayView.row_major(positions, DType.U32, (records.room,))

        def visit(at: Affine, lanes: int, mask: Value | None) -> None:
            math = IndexMath(fb, lanes)
            found = (words_view if records.is_joined else positions_view).read(math, (at,), mask)
            assert isinstance(found, Value), "an integer is one register"
            to = math.add(at, behind)
            if not self._has_positions:
                self._write_numbers(self._index(row, to), found, mask)
                return
            words = found if records.is_joined and self.stored is not None else None
            if records.is_joined:
                found = fb.and_(found, (1 << records.position_bits) - 1)
            found = fb.zext(found, I64)
            self._write_from(row, to, Affine(found) if lanes == 1 else Lanes(found), words, mask)

        lanes_between(fb, (0, count), self.lanes, visit)

    def _write_numbers(self, index: Index, words: Value, mask: Value | None) -> None:
        bits = bits_of_key(self.entry.fb, self._dtype, self._key_of_word(words))
        as_bits(self.entry.outputs[0]).write(IndexMath(self.entry.fb, words.type.lanes), index, bits, mask)

    def _key_of_word(self, words: Value) -> Value:
        assert self.key is not None, "words are made of keys"
        assert self.records.key is not None, "words are made of keys"
        fb, shift = self.entry.fb, self.records.position_bits
        key = fb.trunc(fb.lshr(words, shift) if shift else words, words.type.with_scalar(self.records.key))
        return fb.not_(key) if self.key.is_descending else key

    def _write_from(self, row: Value, to: Position, source: Position, words: Value | None, mask: Value | None) -> None:
        """Writes elements of the operands; those that keys were made of are made of keys again, given their words."""
        lanes = source.vector.type.lanes if isinstance(source, Lanes) else 1
        emitter, index, place = self.entry.emitter(lanes, mask), self._index(row, source), self._index(row, to)
        read = [number for number in range(len(self.entry.outputs)) if number not in self.request.unread]
        if words is not None and self._ordering in read:
            read.remove(self._ordering)
            as_bits(self.entry.outputs[self._ordering]).write(
                emitter.math, place, self._bits(emitter, words, index), mask
            )
        elements = [emitter.element(self._sort.operand(number), index) for number in read]
        for number, element in zip(read, elements, strict=True):
            self.entry.outputs[number].write(emitter.math, place, element, mask)

    def _bits(self, emitter: ElementEmitter, words: Value, source: Index) -> Value:
        """The numbers that keys were made of, as they lie in memory, where their keys do not say all."""
        assert self.stored is not None, "these numbers lie in memory"
        fb, key = self.entry.fb, self._key_of_word(words)
        bits = bits_of_key(fb, self._dtype, key)
        if not self._merges_keys:
            return bits
        is_zero, is_nan = (fb.icmp("eq", key, merged) for merged in ambiguous_keys(self._dtype))
        choice = fb.if_else(fb.any_lane(fb.or_(is_zero, is_nan)), likely=False)
        with choice.then():
            found = as_bits(self.entry.inputs[self.stored]).read(emitter.math, source, emitter.mask)
            assert isinstance(found, Value), "an integer is one register"
            choice.yield_(found)
        with choice.otherwise():
            choice.yield_(bits)
        return choice.results[0]

    def _restore(self, row: Value, words: Value, behind: Affine, count: Value) -> None:
        """Writes zeros and NaNs as they are in the row over what their keys became."""
        assert self.key is not None, "numbers are made of keys"
        assert self.records.key is not None, "numbers are made of keys"
        assert self.stored is not None, "only what lies in memory is more than its key"
        fb, lanes, word = self.entry.fb, self.lanes, self.records.word
        keys = [fb.constant(self.records.key, key) for key in ambiguous_keys(self.key.side.shape.dtype)]
        zero, nan = (fb.zext(fb.not_(key) if self.key.is_descending else key, word) for key in keys)
        math, result = IndexMath(fb, 1), as_bits(self.entry.outputs[0])
        source = as_bits(self.entry.inputs[self.stored])
        with fb.loop(0, 2) as number:
            wanted = fb.select(fb.icmp("eq", number, 0), zero, nan)
            first = _first_not_below(fb, word, words, count, wanted)

            def copy(at: Affine, mask: Value | None, carried: tuple[Value, ...]) -> list[Value]:
                record, _ = self._record(row, at, mask, lanes)
                is_wanted = fb.icmp("eq", record, fb.splat(wanted, lanes))
                is_wanted = is_wanted if mask is None else fb.and_(is_wanted, mask)
                bits = fb.zext(fb.mask_bits(is_wanted), I64)
                with fb.while_loop([bits, *carried]) as left:
                    bits, place = left.values
                    left.continue_while(fb.icmp("ne", bits, 0))
                    position = math.add(Affine(at.base), Affine(fb.cttz(bits)))
                    found = source.read(math, self._index(row, position))
                    result.write(math, self._index(row, Affine(place)), found)
                    left.yield_(fb.and_(bits, fb.sub(bits, 1)), fb.add(place, 1))
                return [left.results[1]]

            is_there = fb.icmp("slt", first, count)
            is_there = fb.and_(is_there, fb.icmp("eq", fb.load(word, fb.gep(word, words, first)), wanted))
            with fb.if_(is_there):
                self._fold([math.vector(math.add(behind, Affine(first)))], copy)

    def _comparison(self, row: Value) -> ComesBefore:
        """The comparator, asked for two positions of a row."""
        fb, sort = self.entry.fb, self._sort

        def comes_before(a: Value, b: Value) -> Value:
            emitter = self.entry.emitter(1)
            places = [self._index(row, Affine(fb.zext(position, I64))) for position in (a, b)]
            sides = [emitter.element(operand, place) for operand in sort.operands for place in places]
            (found,) = emitter.apply(sort.called_computations[0], sides)
            assert isinstance(found, Value), "a truth value is one register"
            return found

        return comes_before

    def _index(self, row: Value, position: Position) -> Index:
        """Where a position of a row lies."""
        before, after = self.dims[: self.dimension], self.dims[self.dimension + 1 :]
        others = places_of(self.entry.fb, row, (*before, *after))
        return (*others[: len(before)], position, *others[len(before) :])


def _first_not_below(fb: FunctionBuilder, word: Type, words: Value, count: Value, limit: Value) -> Value:
    """How many of sorted words are smaller than a limit."""
    with fb.while_loop([fb.constant(I64, 0), count]) as search:
        low, high = search.values
        search.continue_while(fb.icmp("slt", low, high))
        middle = fb.lshr(fb.add(low, high), 1)
        is_below = fb.icmp("ult", fb.load(word, fb.gep(word, words, middle)), limit)
        search.yield_(fb.select(is_below, fb.add(middle, 1), low), fb.select(is_below, high, middle))
    return search.results[0]
