"""Copies pieces of matrices into the order and the type in which tiles read them, or results are stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

from xlalite.backends.codegen.arrays.ir_array import lanes_below
from xlalite.backends.codegen.arrays.types import representation
from xlalite.backends.codegen.kernels.dot.numbers import Numbers
from xlalite.backends.codegen.kernels.dot.walk import Walk
from xlalite.backends.codegen.kernels.scalars import Scalar, Scalars
from xlalite.backends.codegen.llvm import (
    I64,
    PTR,
    VOID,
    FunctionBuilder,
    Type,
    Value,
    constant,
    vector,
    zero,
)
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType

TERMS_AT_ONCE = 16
"""Terms of which lines are packed for one tile after the other: with 64, what fetches memory ahead loses sight of some,
and [768,1024] by [1024,3072] transposed, of which 64 terms share a place in the nearest cache, takes 5 % longer.
"""

WORDS_AT_ONCE = 64
"""Terms in words, or computed, that are packed for one tile after the other."""

_QUAD_BITS = 128
"""Lines are turned in pieces of this width: wider shuffles cost more to compile than they save."""


@dataclass(frozen=True, slots=True)
class Packing:
    """A copy of source[x, y] to target[y * target_line + x] for x below a width and y below a height.

    Attributes:
        dtype: Element type of the source; None if it is in the type of sums, as the target always is.
        lanes: Lanes of a vector.
        source_x: How x lies in the source.
        source_y: How y lies in the source.
        target_line: Stride of y in the target.
        is_exact: Whether only elements below the width are written; else a line is written in whole vectors, of which
            the part beyond the width has no meaning.
        word: Neighbouring y that become one element of the target; `target_line` is the distance of such groups.
        flips: Whether the sign bits of what is in a word are turned round.
        in_lines: Whether words of one x follow one another: target[x * target_line + y / word].
    """

    dtype: DType | None
    lanes: int
    source_x: Walk
    source_y: Walk
    target_line: int
    is_exact: bool = False
    word: int = 1
    flips: bool = False
    in_lines: bool = False

    @property
    def depth_line(self) -> int:
        """Distance of a word in the target from the next one of the same x."""
        return 1 if self.in_lines else self.target_line

    @property
    def general(self) -> Packing:
        """What functions that pack are made of: all sizes, all strides if one does, or up to three along y."""
        source_y = self.source_y.general_in_runs if self.source_y.run >= self.lanes else self.source_y.general
        return replace(self, source_x=self.source_x.general, source_y=source_y, target_line=0)

    def quad(self, kept: Type) -> int:
        """How many neighbouring y are turned together."""
        return min(max(1, _QUAD_BITS // kept.bits), self.lanes)

    def turns(self, kept: Type) -> bool:
        """Whether runs along y become columns; of words however short, of other elements if a few are neighbours."""
        along, across = self.source_x, self.source_y
        if self.in_lines or not across.is_contiguous or (along.is_single and along.is_contiguous):
            return False
        return self.word > 1 or across.run >= self.quad(kept) > 1

    @property
    def has_planes(self) -> bool:
        """Whether that function is told by three strides how y lies."""
        return len(self.source_y.steps) == 3 and self.source_y.run >= self.lanes

    @property
    def strides(self) -> tuple[int, ...]:
        """The arguments of that function which say where elements lie."""
        steps = self.source_y.steps
        planes = (steps[1][1], steps[1][0]) if self.has_planes else ()
        return self.source_x.stride, self.source_y.stride, self.target_line, self.source_y.run, *planes, steps[0][1]


@dataclass(frozen=True, slots=True)
class Strip:
    """Neighbouring x.

    Attributes:
        x: The first one.
        width: How many, at most as many as lanes.
        places: Addresses of a pointer for each lane: its x at the first y; beyond the width those of the last x.
    """

    x: Value
    width: Value
    places: Value


class Packer:
    """Emits `void pack(ptr source, ptr target, i64 x, i64 y, i64 width, i64 height, i64 dx, i64 dy, i64 line, ...)`.

    The source is that of (0, 0), the target that of the first (x, y) to be copied; dx and dy are the strides in the
    source, where one stride walks through it. Where two walk along y, `..., i64 run, i64 step` are how many y dy walks
    through, and how far apart those are; where three do, `..., i64 runs, i64 plane` say how many such runs follow one
    another, and how far apart those are. The last argument is the function that turns (`turning.py`), if it `turns`.
    """

    def __init__(self, fb: FunctionBuilder, numbers: Numbers, packing: Packing) -> None:
        self._fb = fb
        self._math = Scalars(fb)
        self._numbers = numbers
        self._packing = packing
        self._kept = numbers.kept
        self._memory: Type = numbers.kept if packing.dtype is None else representation(packing.dtype).memory
        self._align = self._memory.size_bytes
        self._first_x, self._first_y, self._width, self._height, dx, dy, self._target_line, run, step = fb.parameters[
            2:11
        ]
        self._x_stride, self._y_stride = (
            dynamic if walk.is_general and not walk.is_contiguous else walk.stride
            for walk, dynamic in ((packing.source_x, dx), (packing.source_y, dy))
        )
        self._plane = fb.parameters[11:13] if packing.has_planes else None
        self._run, self._step = (
            (run, step) if packing.source_y.is_general else (constant(I64, packing.source_y.run), step)
        )

    def emit(self) -> Value | None:
        """Writes the body of the function; gives what it returns."""
        along = self._packing.source_x
        if along.is_single and along.is_contiguous:
            self._copy_lines()
        elif self._packing.turns(self._kept):
            self._copy_strips(self._turn)
        elif along.is_contiguous and along.run >= self._packing.lanes:
            self._copy_vectors()
        else:
            self._copy_strips(self._copy_strip)
        return None

    def _loop(self, start: Value | int, stop: Value | int, step: int = 1) -> AbstractContextManager[Value]:
        """A loop around others that copy."""
        return self._fb.loop(start, stop, step)

    def _taken(self, stored: Value) -> Value:
        dtype = self._packing.dtype
        return stored if dtype is None else self._numbers.take(self._fb, dtype, stored)

    def _at_x(self, pointer: Value, position: Value) -> Value:
        math, walk = self._math, self._packing.source_x
        place = math.multiply(position, self._x_stride) if walk.is_single else walk.place(math, position)
        return math.address(self._memory, pointer, math.value(place))

    def _y_offset(self, number: Scalar) -> Value:
        """Where the y of a number after another one lies, in the same run."""
        return self._math.value(self._math.multiply(number, self._y_stride))

    def _line(self, y: Value, x: Value) -> Value:
        """Where the target's elements from (x, y) on lie."""
        fb = self._fb
        return fb.gep(self._kept, fb.parameters[1], fb.add(fb.mul(y, self._target_line), x))

    def _copy_lines(self) -> None:
        """Lines that are contiguous."""
        fb, packing, lanes = self._fb, self._packing, self._packing.lanes
        source, wide = self._at_x(fb.parameters[0], self._first_x), vector(self._memory, self._packing.lanes)
        with self._places() as (y, offset):
            read = fb.gep(self._memory, source, offset)
            # Of lines from memory, tiles take a part each; those of the next round arrive meanwhile.
            fb.prefetch(fb.gep(self._memory, read, self._y_offset(TERMS_AT_ONCE)))
            with fb.loop(0, self._width, lanes) as x:
                mask = lanes_below(fb, x, self._width, lanes)
                line = fb.masked_load(wide, fb.gep(self._memory, read, x), mask, zero(wide), self._align)
                if packing.is_exact:
                    fb.masked_store(self._taken(line), self._line(y, x), mask, self._kept.size_bytes)
                else:
                    fb.store(self._taken(line), self._line(y, x), self._kept.size_bytes)

    def _copy_element(self, read: Value, write: Value) -> None:
        stored = self._fb.load(self._memory, read, self._align)
        self._fb.store(self._taken(stored), write, self._kept.size_bytes)

    def _copy_strips(self, copy: Callable[[Strip], None]) -> None:
        """Copies as many x at a time as there are lanes."""
        fb, lanes = self._fb, self._packing.lanes
        last = fb.sub(self._width, 1)
        # The places of the lines do not fit into registers beside each other; said so, they are quick to compile.
        places = fb.alloca(PTR, lanes, align=8)
        with self._loop(0, self._width, lanes) as x:
            with fb.loop(0, lanes) as number:
                position = fb.add(self._first_x, fb.smin(fb.add(x, number), last))
                fb.store(self._at_x(fb.parameters[0], position), fb.gep(PTR, places, number), 8)
            copy(Strip(x, fb.smin(fb.sub(self._width, x), lanes), places))

    def _copy_strip(self, strip: Strip) -> None:
        with self._places() as (y, offset):
            self._copy_elements(strip, y, offset)

    def _copy_vectors(self) -> None:
        """Vectors that lie in one run or two, by a read in the run of the first x and one in that of the last."""
        fb, packing = self._fb, self._packing
        lanes, wide, size = packing.lanes, vector(self._memory, packing.lanes), self._kept.size_bytes
        run = constant(I64, packing.source_x.run)
        with fb.loop(0, self._width, lanes) as x:
            first, count = fb.add(self._first_x, x), fb.smin(fb.sub(self._width, x), lanes)
            inside = lanes_below(fb, x, self._width, lanes)
            left = fb.smin(fb.sub(run, fb.urem(first, run)), count)
            in_first = lanes_below(fb, constant(I64, 0), left, lanes)
            in_last = fb.and_(inside, fb.not_(in_first))
            begin = self._at_x(fb.parameters[0], first)
            last = fb.sub(count, 1)
            end = self._at_x(fb.parameters[0], fb.add(first, last))
            end = fb.gep(self._memory, end, fb.neg(last))
            with self._places() as (y, offset):
                line = fb.masked_load(wide, fb.gep(self._memory, begin, offset), in_first, zero(wide), self._align)
                line = fb.masked_load(wide, fb.gep(self._memory, end, offset), in_last, line, self._align)
                if packing.is_exact:
                    fb.masked_store(self._taken(line), self._line(y, x), inside, size)
                else:
                    fb.store(self._taken(line), self._line(y, x), size)

    @contextmanager
    def _places(self) -> Iterator[tuple[Value, Value]]:
        """Every y, and where it lies."""
        fb = self._fb
        with self._runs() as (first, length, origin), fb.loop(0, length) as number:
            yield fb.add(first, number), fb.add(origin, self._y_offset(number))

    def _copy_elements(self, strip: Strip, y: Value, offset: Value) -> None:
        fb, packing = self._fb, self._packing
        # What memory held beyond the width would be multiplied: denormal numbers take a hundred cycles each.
        with fb.loop(0, strip.width if packing.is_exact else packing.lanes) as number:
            place = fb.load(PTR, fb.gep(PTR, strip.places, number), 8)
            self._copy_element(fb.gep(self._memory, place, offset), self._line(y, fb.add(strip.x, number)))

    def _turn(self, strip: Strip) -> None:
        """Has strips of runs turned."""
        fb, turner = self._fb, self._fb.parameters[-1]
        width = strip.width if self._packing.is_exact else constant(I64, self._packing.lanes)
        with self._runs() as (first, length, origin):
            target = self._line(first, strip.x)
            fb.call_pointer(turner, VOID, (strip.places, target, origin, length, self._target_line, width))

    @contextmanager
    def _runs(self) -> Iterator[tuple[Value, Value, Value]]:
        """Every part of y that lies in one run: (first y, number of them, place of the first one)."""
        fb, walk, begin = self._fb, self._packing.source_y, self._first_y
        if walk.is_single:
            yield constant(I64, 0), self._height, self._y_offset(begin)
            return
        end, run = fb.add(begin, self._height), self._run
        with self._loop(fb.udiv(begin, run), fb.udiv(fb.sub(fb.add(end, run), 1), run)) as number:
            start = fb.mul(number, run)
            first = fb.smax(start, begin)
            after = fb.smin(fb.mul(fb.add(number, 1), run), end)
            origin = fb.add(self._place_of_run(number), self._y_offset(fb.sub(first, start)))
            yield fb.sub(first, begin), fb.sub(after, first), origin

    def _place_of_run(self, number: Value) -> Value:
        fb, walk = self._fb, self._packing.source_y
        if not walk.is_general:
            return self._math.value(Walk(walk.steps[:-1]).place(self._math, number))
        if self._plane is None:
            return fb.mul(number, self._step)
        runs, plane = self._plane
        return fb.add(fb.mul(fb.urem(number, runs), self._step), fb.mul(fb.udiv(number, runs), plane))
