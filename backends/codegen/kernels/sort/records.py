"""What is sorted: words of a key and, below it, the position that it comes from; or both in arrays of their own.

A key and a position that share a word are sorted as a number, so that no two are equal and order is kept. Words are
sorted by comparison where vectors can be parted or rows are short, else by digits; what fills more than a word by
digits, or by merging where rows are short.
"""

from __future__ import annotations

from xlalite.backends.codegen.kernels.scratch import aligned
from xlalite.backends.codegen.kernels.sort.merge import merge_sort
from xlalite.backends.codegen.kernels.sort.network import network
from xlalite.backends.codegen.kernels.sort.quicksort import can_part, sort_words
from xlalite.backends.codegen.kernels.sort.radix import Digits, radix_sort
from xlalite.backends.codegen.llvm import I32, I64, FunctionBuilder, TargetInfo, Type, Value
from xlalite.hlo.records import dataclass

POSITION = I32
"""The type of a position in a row where it has a word for itself."""

_SHORT = 4096
_SHORT_PAIRS = 256


@dataclass(frozen=True, slots=True)
class Records:
    """Records of a key and perhaps a position.

    Attributes:
        room: How many there are at most.
        key: Type of a key; None where there are only positions, in an array of their own.
        position_bits: Bits that a position takes; 0 where keys are all there is.
        target: What the code is for.
    """

    room: int
    key: Type | None
    position_bits: int
    target: TargetInfo

    @property
    def is_joined(self) -> bool:
        """Whether a word has room for all of a record."""
        return self.key is not None and self._bits <= 64

    @property
    def is_sorted_in_place(self) -> bool:
        """Whether keys are all there is, and end in the buffer that they began in."""
        return self.is_joined and not self.position_bits and not self._counts_digits

    @property
    def word(self) -> Type:
        """The type of what holds a key."""
        return I32 if self._bits <= 32 else I64

    @property
    def lanes(self) -> int:
        """Words of a vector."""
        return self.target.lanes(self.word.bits)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bytes of two buffers of words, two of positions, and of what sorting needs besides."""
        words = aligned((self.room + self.lanes**2) * self.word.size_bytes) if self.key is not None else 0
        positions = 0 if self.is_joined else aligned(self.room * POSITION.size_bytes)
        besides = self._digits.counter_bytes if self._counts_digits else 2 * positions
        return words, words, positions, positions, besides

    @property
    def _bits(self) -> int:
        return self._key_bits + self.position_bits

    @property
    def _key_bits(self) -> int:
        return self.key.bits if self.key is not None else 0

    @property
    def _counts_digits(self) -> bool:
        if self.is_joined:
            return self.room > _SHORT and not can_part(self.target)
        return self.key is not None and self.room > _SHORT_PAIRS

    @property
    def _digits(self) -> Digits:
        return Digits(self.word, self.position_bits if self.is_joined else 0, self._key_bits)

    def sort(self, fb: FunctionBuilder, parts: list[Value], count: Value) -> tuple[Value, Value]:
        """Emits the sort of so many records in the first buffers: where words and positions are then."""
        words, buffer, positions, other_positions, counters = parts
        if self._counts_digits:
            pairs = None if self.is_joined else (positions, other_positions)
            return radix_sort(fb, self._digits, (words, buffer), pairs, counters, count)
        if not self.is_joined:
            self._merge(fb, parts, count)
            return buffer, other_positions
        if can_part(self.target):
            sort_words(fb, self.word, words, buffer, count, self.room)
        else:
            fb.call(network(fb.module, self.word, self.room), words, buffer, count)
        return words, positions

    def _merge(self, fb: FunctionBuilder, parts: list[Value], count: Value) -> None:
        """Moves records into the other buffers, in order."""
        words, other_words, positions, other_positions, numbers = parts
        with fb.loop(0, count) as number:
            fb.store(fb.trunc(number, POSITION), fb.gep(POSITION, numbers, number))

        def comes_before(a: Value, b: Value) -> Value:
            keys = [fb.load(self.word, fb.gep(self.word, words, fb.zext(each, I64))) for each in (a, b)]
            return fb.icmp("ult", *keys)

        order = merge_sort(fb, count, (numbers, fb.gep(POSITION, numbers, self.room)), comes_before)
        with fb.loop(0, count) as to:
            number = fb.zext(fb.load(POSITION, fb.gep(POSITION, order, to)), I64)
            for type_, source, target in ((self.word, words, other_words), (POSITION, positions, other_positions)):
                fb.store(fb.load(type_, fb.gep(type_, source, number)), fb.gep(type_, target, to))
