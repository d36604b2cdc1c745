"""Packs small integers as words of four terms each, which instructions multiply and add at once.

The last word of a dimension is filled up with zeros; what the other operand has beside them does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.backends.codegen.arrays.ir_array import lanes_below
from xlalite.backends.codegen.kernels.dot.numbers import WORD
from xlalite.backends.codegen.kernels.dot.packing import Packer, Packing, Strip
from xlalite.backends.codegen.kernels.lane_exchange import exchanged
from xlalite.backends.codegen.llvm import I8, I32, PTR, Value, vector, zero

_SIGNS = 0x80808080 - (1 << 32)
"""What turns s8 into u8 less 128, and u8 into s8 plus 128, in all bytes of a word."""


class WordPacker(Packer):
    """Emits `void pack(ptr source, ptr target, i64 x, i64 y, i64 width, i64 height)`; y and the height count terms.

    The first y is a multiple of a word's terms, and a walk along y has whole words in each run or only one run.
    """

    @staticmethod
    def can_take(packing: Packing) -> bool:
        """Whether no word lies in two runs."""
        return packing.source_y.is_single or packing.source_y.run % WORD == 0

    def emit(self) -> None:
        """Whole words, then what is left of a word."""
        fb, packing = self._fb, self._packing
        if packing.source_x.is_single and packing.source_x.is_contiguous:
            self._copy_lines()
        else:
            self._copy_strips(self._turn if packing.source_y.is_contiguous else self._copy_strip)
        if packing.source_y.is_single:
            rest = fb.urem(self._height, WORD)
            with fb.if_(fb.icmp("ne", rest, 0)), fb.loop(0, self._width) as x:
                self._copy_rest(x, fb.sub(self._height, rest), rest)

    def _flipped(self, words: Value) -> Value:
        return self._fb.xor(words, _SIGNS) if self._packing.flips else words

    def _word_line(self, y: Value, x: Value) -> Value:
        return self._line(self._fb.udiv(y, WORD), x)

    def _words(self, parts: Sequence[Value]) -> Value:
        """Bytes, or vectors of bytes, put together."""
        fb = self._fb
        words = zero(parts[0].type.with_scalar(I32))
        for number, part in enumerate(parts):
            words = fb.or_(words, fb.shl(fb.zext(part, words.type), 8 * number))
        return self._flipped(words)

    def _copy_lines(self) -> None:
        fb, packing, lanes = self._fb, self._packing, self._packing.lanes
        wide = vector(I8, lanes)
        source = self._at(fb.parameters[0], packing.source_x, self._first_x)
        with self._runs() as (first, length):
            origin = self._math.value(packing.source_y.place(self._math, fb.add(self._first_y, first)))
            with fb.loop(0, fb.sub(length, fb.urem(length, WORD)), WORD) as y, fb.loop(0, self._width, lanes) as x:
                mask = lanes_below(fb, x, self._width, lanes)
                place = fb.add(fb.add(origin, fb.mul(y, packing.source_y.stride)), x)
                parts = [
                    fb.masked_load(
                        wide, fb.gep(I8, fb.gep(I8, source, place), t * packing.source_y.stride), mask, zero(wide), 1
                    )
                    for t in range(WORD)
                ]
                fb.store(self._words(parts), self._word_line(fb.add(first, y), x), I32.size_bytes)

    def _turn(self, strip: Strip) -> None:
        """Four words of all lines at a time, then one by one."""
        fb, packing, lanes = self._fb, self._packing, self._packing.lanes
        step = 4 * WORD
        with self._runs() as (first, length):
            origin = self._math.value(packing.source_y.place(self._math, fb.add(self._first_y, first)))
            whole = fb.sub(length, fb.urem(length, step))
            with fb.loop(0, whole, step) as y:
                pieces = []
                for lane in range(lanes):
                    place = fb.gep(I8, fb.load(PTR, fb.gep(PTR, strip.places, lane), 8), fb.add(origin, y))
                    pieces.append(fb.load(vector(I32, 4), place, 1))
                for row, line in enumerate(exchanged(fb, self._joined(pieces, 4))):
                    write = self._word_line(fb.add(fb.add(first, y), row * WORD), strip.x)
                    fb.store(self._flipped(line), write, I32.size_bytes)
            with fb.loop(whole, fb.sub(length, fb.urem(length, WORD)), WORD) as y, fb.loop(0, strip.width) as number:
                place = fb.gep(I8, fb.load(PTR, fb.gep(PTR, strip.places, number), 8), fb.add(origin, y))
                write = self._word_line(fb.add(first, y), fb.add(strip.x, number))
                fb.store(self._flipped(fb.load(I32, place, 1)), write, I32.size_bytes)

    def _copy_strip(self, strip: Strip) -> None:
        fb, stride = self._fb, self._packing.source_y.stride
        with self._runs() as (first, length):
            origin = self._math.value(self._packing.source_y.place(self._math, fb.add(self._first_y, first)))
            with fb.loop(0, fb.sub(length, fb.urem(length, WORD)), WORD) as y, fb.loop(0, strip.width) as number:
                place = fb.gep(
                    I8, fb.load(PTR, fb.gep(PTR, strip.places, number), 8), fb.add(origin, fb.mul(y, stride))
                )
                parts = [fb.load(I8, fb.gep(I8, place, t * stride), 1) for t in range(WORD)]
                write = self._word_line(fb.add(first, y), fb.add(strip.x, number))
                fb.store(self._words(parts), write, I32.size_bytes)

    def _copy_rest(self, x: Value, y: Value, rest: Value) -> None:
        fb, packing = self._fb, self._packing
        place = self._at(fb.parameters[0], packing.source_x, fb.add(self._first_x, x))
        place = self._at(place, packing.source_y, fb.add(self._first_y, y))
        write = self._word_line(y, x)
        with fb.carried_loop(0, rest, 1, [zero(I32)]) as loop:
            byte = fb.zext(fb.load(I8, fb.gep(I8, place, fb.mul(loop.index, packing.source_y.stride)), 1), I32)
            shift = fb.trunc(fb.mul(loop.index, 8), I32)
            loop.yield_(fb.or_(loop.values[0], fb.shl(byte, shift)))
        fb.store(self._flipped(loop.results[0]), write, I32.size_bytes)
