"""Sorts words, with positions or without, by digits of theirs, the last digit first; stable.

Counting of all digits takes one pass, and so does moving the words by each digit. A digit that all share moves nothing.
"""

from __future__ import annotations

from xlalite.backends.codegen.llvm import I32, I64, FunctionBuilder, Type, Value
from xlalite.hlo.records import dataclass

_DIGIT_BITS = 8
_DIGITS = 1 << _DIGIT_BITS


@dataclass(frozen=True, slots=True)
class Digits:
    """Which bits of a word are sorted by.

    Attributes:
        word: Its type.
        first: The first bit.
        bits: How many, a multiple of those of a digit.
    """

    word: Type
    first: int
    bits: int

    @property
    def counter_bytes(self) -> int:
        """Memory that sorting needs beside the words."""
        return self.bits // _DIGIT_BITS * _DIGITS * 4

    def digit(self, fb: FunctionBuilder, word: Value, number: Value | int) -> Value:
        """A digit of a word."""
        if isinstance(number, int):
            number = fb.constant(I64, number)
        shift = fb.add(fb.mul(number, _DIGIT_BITS), self.first)
        return fb.zext(fb.and_(fb.lshr(word, fb.trunc(shift, self.word)), _DIGITS - 1), I64)


def radix_sort(
    fb: FunctionBuilder,
    digits: Digits,
    words: tuple[Value, Value],
    positions: tuple[Value, Value] | None,
    counters: Value,
    count: Value,
) -> tuple[Value, Value]:
    """Emits the sort by rising digits of what the first buffers hold: where words and positions are then."""
    word = digits.word
    _count_digits(fb, digits, words[0], counters, count)
    buffers = [*words, *(positions or ())]
    with fb.carried_loop(0, digits.bits // _DIGIT_BITS, 1, buffers) as loop:
        own = fb.gep(I32, counters, fb.mul(loop.index, _DIGITS))
        source, target, *places = loop.values
        first = digits.digit(fb, fb.load(word, source), loop.index)
        moves = fb.icmp("ne", fb.load(I32, fb.gep(I32, own, first)), fb.trunc(count, I32))
        with fb.if_(moves):
            _sum_up(fb, own)
            with fb.loop(0, count) as number:
                found = fb.load(word, fb.gep(word, source, number))
                place = fb.gep(I32, own, digits.digit(fb, found, loop.index))
                to = fb.load(I32, place)
                fb.store(fb.add(to, 1), place)
                to = fb.zext(to, I64)
                fb.store(found, fb.gep(word, target, to))
                if places:
                    fb.store(fb.load(I32, fb.gep(I32, places[0], number)), fb.gep(I32, places[1], to))
        swapped = [target, source, *reversed(places)]
        loop.yield_(*(fb.select(moves, a, b) for a, b in zip(swapped, loop.values, strict=True)))
    found, _, *others = loop.results
    return found, others[0] if others else found


def _count_digits(fb: FunctionBuilder, digits: Digits, words: Value, counters: Value, count: Value) -> None:
    fb.memset(counters, 0, digits.counter_bytes, align=64)
    with fb.loop(0, count) as at:
        word = fb.load(digits.word, fb.gep(digits.word, words, at))
        for number in range(digits.bits // _DIGIT_BITS):
            place = fb.gep(I32, counters, fb.add(digits.digit(fb, word, number), number * _DIGITS))
            fb.store(fb.add(fb.load(I32, place), 1), place)


def _sum_up(fb: FunctionBuilder, counters: Value) -> None:
    """Replaces each count by the number of words with smaller digits."""
    with fb.carried_loop(0, _DIGITS, 1, [fb.constant(I32, 0)]) as loop:
        place = fb.gep(I32, counters, loop.index)
        count = fb.load(I32, place)
        fb.store(loop.values[0], place)
        loop.yield_(fb.add(loop.values[0], count))
