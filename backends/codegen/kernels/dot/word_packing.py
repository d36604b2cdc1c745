"""Packs narrow numbers as words of several terms each, which instructions multiply and add at once.

The last word of a dimension is filled up with zeros; what the other operand has beside them does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from xlalite.backends.codegen.kernels.dot.packing import Packer, Strip
from xlalite.backends.codegen.kernels.dot.words import MATRIX, SIGNS, exponent_of, least_exponents
from xlalite.backends.codegen.llvm import I16, I32, I64, PTR, VOID, Value, constant, vector, zero


class WordPacker(Packer):
    """Emits `void pack(ptr source, ptr target, i64 x, i64 y, i64 width, i64 height)`; y and the height count terms.

    The first y is a multiple of a word's terms, and a walk along y has whole words in each run or only one run. Of bf16
    the result is an i32, the least exponent among the terms that are not zero.
    """

    def emit(self) -> Value | None:
        """Copies everything, and tells of the least exponent."""
        fb, numbers = self._fb, self._numbers
        self._least: Value | None = None
        if numbers.widened is None:
            self._copy()
            return None
        turns = self._packing.turns(self._kept)
        self._least = constant(I32 if turns else vector(I16, self._packing.word * self._packing.lanes), -1)
        self._copy()
        return self._least if turns else exponent_of(fb, self._least)

    def _copy(self) -> None:
        packing = self._packing
        if packing.source_x.is_single and packing.source_x.is_contiguous:
            self._copy_lines()
        else:
            self._copy_strips(self._turn if packing.turns(self._kept) else self._copy_strip)
        if self._numbers.in_matrices and not self._fills_matrix:
            self._fill_matrix()

    @property
    def _fills_matrix(self) -> bool:
        """Whether lines are copied with zeros behind them that fill a matrix."""
        along, across = self._packing.source_x, self._packing.source_y
        return self._numbers.in_matrices and along.is_single and along.is_contiguous and across.is_single

    def _finished(self, words: Value) -> Value:
        """Words as they are stored; of bf16, after a look at their exponents."""
        fb = self._fb
        if self._packing.flips:
            return fb.xor(words, SIGNS)
        if self._least is not None:
            seen = words if words.type.is_vector else fb.splat(words, self._packing.lanes)
            self._least = least_exponents(fb, seen, self._least)
        return words

    @contextmanager
    def _loop(self, start: Value | int, stop: Value | int, step: int = 1) -> Iterator[Value]:
        """A loop over vectors; the least exponents of them stay in a register."""
        if self._least is None:
            with super()._loop(start, stop, step) as index:
                yield index
            return
        with self._fb.carried_loop(start, stop, step, [self._least]) as loop:
            (self._least,) = loop.values
            yield loop.index
            loop.yield_(self._least)
        (self._least,) = loop.results

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

    def _copy_lines(self) -> None:
        """Vectors of neighbouring x, the last of which may have fewer lanes; the last word may have fewer terms.

        For registers of matrices those that all are whole ones come first.
        """
        fb, packing = self._fb, self._packing
        word = packing.word
        source = self._at_x(fb.parameters[0], self._first_x)
        with self._runs() as (first, length, origin):
            if not self._numbers.in_matrices:
                self._copy_words(source, origin, first, (0, length), length)
                return
            whole = fb.sub(length, fb.urem(length, word))
            is_even = fb.icmp("eq", fb.urem(self._width, packing.lanes), 0)
            begin = fb.select(is_even, whole, constant(I64, 0))
            self._copy_words(source, origin, first, (0, begin), None)
            rows = MATRIX * word
            end = fb.and_(fb.add(length, rows - 1), -rows) if self._fills_matrix else whole
            self._copy_words(source, origin, first, (begin, end), length)

    def _copy_words(
        self, source: Value, origin: Value, first: Value, words: tuple[Value | int, Value], length: Value | None
    ) -> None:
        """Words of a run from a term to another one, below its length; all vectors are whole ones if that is None."""
        fb, packing, lanes, memory = self._fb, self._packing, self._packing.lanes, self._memory
        wide, word = vector(memory, lanes), packing.word
        with self._loop(*words, word) as y:
            are_there: list[Value | None] = [None] * word
            if length is not None and packing.source_y.is_single:
                terms = range(0 if self._fills_matrix else 1, word)
                are_there[terms.start :] = [fb.splat(fb.icmp("slt", fb.add(y, term), length), lanes) for term in terms]
            with self._loop(0, self._width, lanes) as x:
                place = fb.gep(memory, source, fb.add(fb.add(origin, self._y_offset(y)), x), inbounds=False)
                # Of 32 bits, LLVM compares all lanes at once.
                left = fb.splat(fb.trunc(fb.sub(self._width, x), I32), lanes)
                below = None if length is None else fb.icmp("slt", fb.lane_numbers(I32, lanes), left)
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
        """Has strips of runs turned."""
        fb, turner = self._fb, self._fb.parameters[-1]
        with self._runs() as (first, length, origin):
            target = self._word_line(first, strip.x)
            result = VOID if self._least is None else I32
            found = fb.call_pointer(turner, result, (strip.places, target, origin, length, self._target_line))
            if self._least is not None:
                self._least = fb.umin(found, self._least)

    def _copy_strip(self, strip: Strip) -> None:
        """One word after the other."""
        fb, word, memory = self._fb, self._packing.word, self._memory
        with (
            self._runs() as (first, length, origin),
            self._loop(0, length, word) as y,
            self._loop(0, strip.width) as number,
        ):
            place = fb.load(PTR, fb.gep(PTR, strip.places, number), 8)
            place, stored = fb.gep(memory, place, fb.add(origin, self._y_offset(y))), []
            for term in range(word):
                offset = self._y_offset(term)
                if term == 0 or not self._packing.source_y.is_single:
                    stored.append(fb.load(memory, fb.gep(memory, place, offset), self._align))
                    continue
                is_there = fb.icmp("slt", fb.add(y, term), length)
                known = fb.gep(memory, place, fb.select(is_there, offset, constant(I64, 0)))
                stored.append(fb.select(is_there, fb.load(memory, known, self._align), zero(memory)))
            write = self._word_line(fb.add(first, y), fb.add(strip.x, number))
            fb.store(self._words(stored), write, I32.size_bytes)

    def _fill_matrix(self) -> None:
        """Zeros behind the last word of columns, up to what a register of matrices holds."""
        fb, word, lanes = self._fb, self._packing.word, self._packing.lanes
        count = fb.udiv(fb.add(self._height, word - 1), word)
        with fb.loop(count, fb.and_(fb.add(count, MATRIX - 1), -MATRIX)) as line, fb.loop(0, self._width, lanes) as x:
            fb.store(zero(vector(I32, lanes)), self._line(line, x), I32.size_bytes)
