"""Packs narrow numbers as words for rows of registers of matrices: those of an x follow one another.

A line is filled up with zeros to whole rows of 16 words.
"""

from __future__ import annotations

from xlalite.backends.codegen.arrays.ir_array import lanes_below
from xlalite.backends.codegen.kernels.dot.packing import Strip
from xlalite.backends.codegen.kernels.dot.word_packing import WordPacker
from xlalite.backends.codegen.kernels.dot.words import MATRIX, SQUARE
from xlalite.backends.codegen.kernels.lane_exchange import exchanged, fenced
from xlalite.backends.codegen.llvm import I32, Value, vector, zero


class LinePacker(WordPacker):
    """As `WordPacker`, but the line of x is `target[x * line:]`, and has room for 16 words behind the last one."""

    def _copy(self) -> None:
        fb, along, across = self._fb, self._packing.source_x, self._packing.source_y
        if across.is_contiguous and across.is_single:
            self._copy_rows()
            return
        # Rows at the end of other runs than the first begin anywhere.
        count = fb.udiv(fb.add(self._height, self._packing.word - 1), self._packing.word)
        with fb.loop(0, self._width) as x:
            end = self._line(x, count)
            fb.store(zero(vector(I32, MATRIX)), end, I32.size_bytes)
        if across.is_contiguous:
            self._copy_rows()
        elif along.is_single and along.is_contiguous:
            self._copy_strips(self._turn_lines)
        else:
            self._copy_strips(self._copy_strip)

    def _word_line(self, y: Value, x: Value) -> Value:
        return self._line(x, self._fb.udiv(y, self._packing.word))

    def _copy_rows(self) -> None:
        """Whole rows of registers at a time; behind the end of a run are zeros."""
        fb, memory = self._fb, self._memory
        count, packing = MATRIX * self._packing.word, self._packing
        wide = vector(memory, count)
        # Where there are several runs, each has whole words.
        in_words = packing.dtype is not None and self._numbers.is_part(packing.dtype) and not packing.source_y.is_single
        with self._loop(0, self._width) as x, self._runs() as (first, length, origin):
            source = fb.gep(memory, self._at_x(fb.parameters[0], fb.add(self._first_x, x)), origin)
            whole = fb.sub(length, fb.urem(length, count))
            with self._loop(0, whole, count) as y:
                stored = fb.load(wide, fb.gep(memory, source, y), self._align)
                self._store_row(stored, fb.add(first, y), x)
            with self._loop(whole, length, count) as y:
                place = fb.gep(memory, source, y)
                stored = self._rest_in_words(place, y, length) if in_words else self._rest(place, y, length)
                self._store_row(stored, fb.add(first, y), x)

    def _rest(self, place: Value, y: Value, length: Value) -> Value:
        """What is left of a run, then zeros."""
        count = MATRIX * self._packing.word
        mask, wide = lanes_below(self._fb, y, length, count), vector(self._memory, count)
        return self._fb.masked_load(wide, place, mask, zero(wide), self._align)

    def _rest_in_words(self, place: Value, y: Value, length: Value) -> Value:
        """The same of whole words."""
        fb, word, words = self._fb, self._packing.word, vector(I32, MATRIX)
        mask = lanes_below(fb, fb.udiv(y, word), fb.udiv(length, word), MATRIX)
        found = fb.masked_load(words, place, mask, zero(words), self._align)
        return fb.bitcast(found, vector(self._memory, MATRIX * word))

    def _store_row(self, stored: Value, y: Value, x: Value) -> None:
        words = self._fb.bitcast(self._parts(stored), vector(I32, MATRIX))
        self._fb.store(self._finished(words), self._word_line(y, x), I32.size_bytes)

    def _turn_lines(self, strip: Strip) -> None:
        """Four words of neighbouring x at a time, each from as many lines as it has terms."""
        fb, memory, lanes, word = self._fb, self._memory, self._packing.lanes, self._packing.word
        wide = vector(memory, lanes)
        below = lanes_below(fb, strip.x, self._width, lanes)
        source = self._at_x(fb.parameters[0], fb.add(self._first_x, strip.x))
        last = fb.sub(strip.width, 1)
        with self._runs() as (first, length, origin), self._loop(0, length, SQUARE * word) as y:
            lines = []
            for number in range(0, SQUARE * word, word):
                stored = []
                for term in range(number, number + word):
                    position = fb.add(y, term)
                    mask = fb.and_(below, fb.splat(fb.icmp("slt", position, length), lanes))
                    place = fb.gep(memory, source, fb.add(origin, self._y_offset(position)))
                    stored.append(fb.masked_load(wide, place, mask, zero(wide), self._align))
                lines.append(fenced(fb, self._words(stored)))
            turned = exchanged(fb, lines)
            # Lanes behind the last x have its line, before it has it.
            for lane in reversed(range(lanes)):
                begin = lane - lane % SQUARE
                words = fb.shuffle(turned[lane % SQUARE], turned[lane % SQUARE], range(begin, begin + SQUARE))
                x = fb.add(strip.x, fb.smin(last, lane))
                fb.store(words, self._word_line(fb.add(first, y), x), I32.size_bytes)
