"""Packs narrow numbers as words of several terms each, which instructions multiply and add at once.

The last word of a dimension is filled up with zeros; what the other operand has beside them does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from xlalite.backends.codegen.arrays.ir_array import lanes_below
from xlalite.backends.codegen.kernels.dot.packing import Packer, Strip
from xlalite.backends.codegen.kernels.dot.turning import joined
from xlalite.backends.codegen.kernels.dot.words import MATRIX, exponent_of, least_exponents
from xlalite.backends.codegen.kernels.lane_exchange import exchanged
from xlalite.backends.codegen.llvm import I16, I32, I64, PTR, Type, Value, constant, vector, zero

_SIGNS = 0x80808080 - (1 << 32)
"""What turns s8 into u8 less 128, and u8 into s8 plus 128, in all bytes of a word."""
SQUARE = 4
"""Words of a line that are turned at a time."""


class WordPacker(Packer):
    """Emits `void pack(ptr source, ptr target, i64 x, i64 y, i64 width, i64 height)`; y and the height count terms.

    The first y is a multiple of a word's terms, and a walk along y has whole words in each run or only one run. Of bf16
    the result is an i32, the least exponent among the terms that are not zero.
    """

    def emit(self) -> Value | None:
        """Whole words, then what is left of a word."""
        fb = self._fb
        self._least_of_vectors: Value | None = None
        if self._numbers.widened is None:
            self._copy()
            return None
        self._parts_of_vector = type_ = vector(I16, self._packing.word * self._packing.lanes)
        self._least = fb.alloca(type_, align=4)
        fb.store(constant(type_, -1), self._least, 4)
        self._copy()
        least = fb.load(type_, self._least, 4)
        return exponent_of(fb, fb.intrinsic("vector.reduce.umin", I16, (least,), (type_,)))

    def _copy(self) -> None:
        packing = self._packing
        if packing.source_x.is_single and packing.source_x.is_contiguous:
            self._copy_lines()
        else:
            self._copy_strips(self._turn if packing.source_y.is_contiguous else self._copy_strip)
        if not self._copies_rests:
            self._copy_rests()
            if self._numbers.in_matrices:
                self._fill_matrix()

    @property
    def _copies_rests(self) -> bool:
        """Whether lines are copied with what is left of a word, and with zeros behind it that fill a matrix."""
        along, across = self._packing.source_x, self._packing.source_y
        return self._numbers.in_matrices and along.is_single and along.is_contiguous and across.is_single

    def _finished(self, words: Value) -> Value:
        """Words as they are stored; of bf16, after a look at their exponents."""
        fb = self._fb
        if self._packing.flips:
            return fb.xor(words, _SIGNS)
        if self._numbers.widened is None:
            return words
        if self._least_of_vectors is not None:
            self._least_of_vectors = least_exponents(fb, words, self._least_of_vectors)
        else:
            before = fb.load(self._parts_of_vector, self._least, 4)
            fb.store(least_exponents(fb, fb.splat(words, self._packing.lanes), before), self._least, 4)
        return words

    @contextmanager
    def _loop(self, start: Value | int, stop: Value | int, step: int) -> Iterator[Value]:
        """A loop over vectors; the least exponents of them stay in a register."""
        fb, before = self._fb, self._least_of_vectors
        if self._numbers.widened is None:
            with fb.loop(start, stop, step) as index:
                yield index
            return
        initial = fb.load(self._parts_of_vector, self._least, 4) if before is None else before
        with fb.carried_loop(start, stop, step, [initial]) as loop:
            self._least_of_vectors = loop.values[0]
            yield loop.index
            loop.yield_(self._least_of_vectors)
        (self._least_of_vectors,) = loop.results
        if before is None:
            fb.store(self._least_of_vectors, self._least, 4)
            self._least_of_vectors = None

    def _word_line(self, y: Value, x: Value) -> Value:
        return self._line(self._fb.udiv(y, self._packing.word), x)

    def _parts(self, stored: Value) -> Value:
        """Loaded elements as parts of words."""
        assert self._packing.dtype is not None, "operands are packed from their own type"
        return self._numbers.take_part(self._fb, self._packing.dtype, stored)

    def _words(self, stored: Sequence[Value]) -> Value:
        """Loaded elements, or vectors of them, put together."""
        fb = self._fb
        if self._numbers.in_matrices and stored[0].type.is_vector:
            return self._finished(self._interleaved([self._parts(one) for one in stored]))
        words = zero(stored[0].type.with_scalar(I32))
        for number, one in enumerate(stored):
            part = self._parts(one)
            words = fb.or_(words, fb.shl(fb.zext(part, words.type), part.type.scalar.bits * number))
        return self._finished(words)

    def _interleaved(self, parts: list[Value]) -> Value:
        """Vectors of parts as words, by one exchange of lanes that machines with registers of matrices have."""
        fb, word, lanes = self._fb, len(parts), self._packing.lanes
        while len(parts) > 1:
            parts = [fb.concat(*pair) for pair in zip(parts[::2], parts[1::2], strict=True)]
        order = [part * lanes + lane for lane in range(lanes) for part in range(word)]
        return fb.bitcast(fb.shuffle(parts[0], parts[0], order), vector(I32, lanes))

    def _line_of_words(self, place: Value, type_: Type) -> Value:
        """Words of neighbouring terms, or one."""
        fb, count = self._fb, type_.lanes * self._packing.word
        stored = fb.load(vector(self._memory, count), place, self._align)
        return fb.bitcast(self._parts(stored), type_)

    def _copy_lines(self) -> None:
        """Vectors of neighbouring x, the last of which may have fewer lanes.

        For registers of matrices those that all are whole ones come first; the last word may have fewer terms.
        """
        fb, packing = self._fb, self._packing
        word = packing.word
        source = self._at_x(fb.parameters[0], self._first_x)
        with self._runs() as (first, length, origin):
            whole = fb.sub(length, fb.urem(length, word))
            if not self._numbers.in_matrices:
                self._copy_words(source, origin, first, (0, whole), whole)
                return
            is_even = fb.icmp("eq", fb.urem(self._width, packing.lanes), 0)
            begin = fb.select(is_even, whole, constant(I64, 0))
            self._copy_words(source, origin, first, (0, begin), None)
            rows = MATRIX * word
            end = fb.and_(fb.add(length, rows - 1), -rows) if self._copies_rests else whole
            self._copy_words(source, origin, first, (begin, end), length)

    def _copy_words(
        self, source: Value, origin: Value, first: Value, words: tuple[Value | int, Value], length: Value | None
    ) -> None:
        """Words of a run from a term to another one, below its length; all vectors are whole ones if that is None."""
        fb, packing, lanes, memory = self._fb, self._packing, self._packing.lanes, self._memory
        wide, word = vector(memory, lanes), packing.word
        with self._loop(*words, word) as y:
            are_there: list[Value | None] = [None] * word
            if length is not None and self._copies_rests:
                are_there = [fb.splat(fb.icmp("slt", fb.add(y, term), length), lanes) for term in range(word)]
            with self._loop(0, self._width, lanes) as x:
                place = fb.gep(memory, source, fb.add(fb.add(origin, self._y_offset(y)), x), inbounds=False)
                below = None if length is None else lanes_below(fb, x, self._width, lanes)
                stored = []
                for term, is_there in enumerate(are_there):
                    line = fb.gep(memory, place, self._y_offset(term), inbounds=False)
                    if below is None:
                        stored.append(fb.load(wide, line, self._align))
                        continue
                    mask = below if is_there is None else fb.and_(below, is_there)
                    stored.append(fb.masked_load(wide, line, mask, zero(wide), self._align))
                fb.store(self._words(stored), self._word_line(fb.add(first, y), x), I32.size_bytes)

    def _turn(self, strip: Strip) -> None:
        """Four words of all lines at a time, then one by one."""
        fb, packing = self._fb, self._packing
        word, memory = packing.word, self._memory
        step = SQUARE * word
        with self._runs() as (first, length, origin):
            whole = fb.sub(length, fb.urem(length, step))
            with self._loop(0, whole, step) as y:
                pieces, offset = [], fb.add(origin, y)
                for lane in range(packing.lanes):
                    place = fb.gep(memory, fb.load(PTR, fb.gep(PTR, strip.places, lane), 8), offset)
                    pieces.append(self._line_of_words(place, vector(I32, SQUARE)))
                write = self._word_line(fb.add(first, y), strip.x)
                for line in exchanged(fb, joined(fb, pieces, SQUARE)):
                    fb.store(self._finished(line), write, I32.size_bytes)
                    write = fb.gep(I32, write, self._target_line)
            with fb.loop(whole, fb.sub(length, fb.urem(length, word)), word) as y, fb.loop(0, strip.width) as number:
                place = fb.gep(memory, fb.load(PTR, fb.gep(PTR, strip.places, number), 8), fb.add(origin, y))
                write = self._word_line(fb.add(first, y), fb.add(strip.x, number))
                fb.store(self._finished(self._line_of_words(place, I32)), write, I32.size_bytes)

    def _copy_strip(self, strip: Strip) -> None:
        fb, word, memory = self._fb, self._packing.word, self._memory
        with (
            self._runs() as (first, length, origin),
            fb.loop(0, fb.sub(length, fb.urem(length, word)), word) as y,
            fb.loop(0, strip.width) as number,
        ):
            place = fb.load(PTR, fb.gep(PTR, strip.places, number), 8)
            place = fb.gep(memory, place, fb.add(origin, self._y_offset(y)))
            stored = [fb.load(memory, fb.gep(memory, place, self._y_offset(t)), self._align) for t in range(word)]
            write = self._word_line(fb.add(first, y), fb.add(strip.x, number))
            fb.store(self._words(stored), write, I32.size_bytes)

    def _copy_rests(self) -> None:
        """What is left of a word, of every x."""
        fb, word = self._fb, self._packing.word
        if self._packing.source_y.is_single:
            rest = fb.urem(self._height, word)
            with fb.if_(fb.icmp("ne", rest, 0)), fb.loop(0, self._width) as x:
                self._copy_rest(x, fb.sub(self._height, rest), rest)

    def _fill_matrix(self) -> None:
        """Zeros behind the last word of columns, up to what a register of matrices holds."""
        fb, word, lanes = self._fb, self._packing.word, self._packing.lanes
        count = fb.udiv(fb.add(self._height, word - 1), word)
        with fb.loop(count, fb.and_(fb.add(count, MATRIX - 1), -MATRIX)) as line, fb.loop(0, self._width, lanes) as x:
            fb.store(zero(vector(I32, lanes)), self._line(line, x), I32.size_bytes)

    def _copy_rest(self, x: Value, y: Value, rest: Value) -> None:
        fb = self._fb
        place = self._at_x(fb.parameters[0], fb.add(self._first_x, x))
        place = fb.gep(self._memory, place, self._y_offset(fb.add(self._first_y, y)))
        write = self._word_line(y, x)
        with fb.carried_loop(0, rest, 1, [zero(I32)]) as loop:
            stored = fb.load(self._memory, fb.gep(self._memory, place, self._y_offset(loop.index)), self._align)
            part = self._parts(stored)
            shift = fb.trunc(fb.mul(loop.index, part.type.bits), I32)
            loop.yield_(fb.or_(loop.values[0], fb.shl(fb.zext(part, I32), shift)))
        fb.store(self._finished(loop.results[0]), write, I32.size_bytes)
