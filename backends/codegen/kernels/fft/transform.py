"""The code of a Fourier transform: the lines of one dimension after the other, as many at once as there are lanes.

The last dimension is the first of a forward transform and the last of the inverse of a real one; the others are
transformed where they lie. Lines beside each other are lanes as they are; lines one after the other are transposed on
the way, and a long line becomes a matrix whose columns and rows are lines (`plan`). Where the kernel forks, groups of
lines are what threads share out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import fields, replace

import numpy as np

from xlalite.backends.codegen.kernels.fft import real
from xlalite.backends.codegen.kernels.fft.butterflies import Complex, multiply
from xlalite.backends.codegen.kernels.fft.moves import (
    Lines,
    load_columns,
    load_rows,
    multiply_line,
    store_columns,
    store_rows,
    store_turned,
)
from xlalite.backends.codegen.kernels.fft.passes import Lanes, transform_lines
from xlalite.backends.codegen.kernels.fft.plan import LinePlan, SplitPlan
from xlalite.backends.codegen.kernels.fft.twiddles import chirp, turns
from xlalite.backends.codegen.kernels.fork import Fork
from xlalite.backends.codegen.kernels.scratch import aligned, parts_of, slot_in
from xlalite.backends.codegen.llvm import I64, PTR, VOID, FunctionBuilder, Value
from xlalite.hlo.ops.fourier import FftType
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.literal import Array

_WHOLE_TABLE = 1 << 14
"""Elements of a line from which the factors of a split are products of two, so that tables stay small."""
_FINE = 32
"""Rows of the finer of the two tables; a multiple of every lane count."""

_OF_GROUP = 3
"""Areas that a group of lines has for itself."""

_Bounds = tuple[Value, Value]
_Body = Callable[["Transform", Sequence[Value], Value, Value | int], None]
"""(code of the function that it is for, what it was given, first line, lines) -> emits the work for a group."""


@dataclass(frozen=True, slots=True)
class Dimensions:
    """The dimensions of a transform, and how each is computed.

    Attributes:
        lanes: How lines lie in lanes.
        kind: Which transform.
        lengths: Sizes of the signal.
        across: How the dimensions but the last are transformed.
        along: How the last one is, or its complex line of half the length.
    """

    lanes: Lanes
    kind: FftType
    lengths: tuple[int, ...]
    across: tuple[LinePlan, ...]
    along: LinePlan | SplitPlan

    @property
    def unit(self) -> int:
        """Transforms that are computed at once."""
        return self.lanes.count if len(self.lengths) == 1 and isinstance(self.along, LinePlan) else 1

    @property
    def is_inverse(self) -> bool:
        """Whether results are divided by their number."""
        return self.kind in (FftType.IFFT, FftType.IRFFT)

    @property
    def is_halved(self) -> bool:
        """Whether a real line is a complex one of half the length."""
        return self.kind.is_real and self.lengths[-1] % 2 == 0

    @property
    def width(self) -> int:
        """Complex elements of a row: of the signal, or of its spectrum if the signal is real."""
        return self.lengths[-1] // 2 + 1 if self.kind.is_real else self.lengths[-1]

    @property
    def signal(self) -> tuple[int, int]:
        """Numbers of an element of a row of the signal, and how many of these there are."""
        if self.is_halved:
            return 2, self.lengths[-1] // 2
        return (1 if self.kind.is_real else 2), self.lengths[-1]

    @property
    def area_bytes(self) -> tuple[int, ...]:
        """What `Areas` need: the first ones are those of a group of lines, what comes behind is for all."""
        side, element = self.lanes.count, self.lanes.element_bytes()
        split = isinstance(self.along, SplitPlan)
        plans = [*self.across]
        plans += [self.along.rows, self.along.columns] if isinstance(self.along, SplitPlan) else [self.along]
        longest = max(*(plan.size for plan in plans), 0 if split else self.width)
        buffer = _whole(longest, side) * element
        turned = 0
        if isinstance(self.along, SplitPlan):
            turned = _whole(self.along.columns.length, side) * -(-self.along.rows.length // side) * element
        number = 2 * self.lanes.scalar.size_bytes
        row = self.lengths[-1] * number if split and self.kind.is_real else 0
        line = self.along.size * number if isinstance(self.along, SplitPlan) and self.along.is_convolution else 0
        is_kept = self.kind is FftType.IRFFT and len(self.lengths) > 1
        spectrum = math.prod(self.lengths[:-1]) * self.width * number if is_kept else 0
        other_row = row if not self.is_halved else 0
        return buffer, buffer, side * element, turned, row, other_row, line, line, spectrum

    @property
    def shared_bytes(self) -> int:
        """What of it is for all groups of lines."""
        return sum(map(aligned, self.area_bytes[_OF_GROUP:]))


@dataclass(frozen=True, slots=True)
class Areas:
    """Memory of a running kernel.

    Attributes:
        buffer: Lines in lanes.
        other: As much.
        tile: A block of elements.
        turned: What lies between the two halves of a split line.
        row: A complex line.
        other_row: As much.
        line: What a line is convolved in.
        other_line: As much.
        spectrum: What lies between the dimensions across and the last one.
    """

    buffer: Value
    other: Value
    tile: Value
    turned: Value
    row: Value
    other_row: Value
    line: Value
    other_line: Value
    spectrum: Value


@dataclass(frozen=True, slots=True)
class Transform:
    """The code of a kernel.

    Attributes:
        fb: Where it goes.
        dimensions: What it computes.
        areas: Its memory; of a kernel that forks, sizes and the addresses of what is for all.
        fork: What it forks with, if it does.
    """

    fb: FunctionBuilder
    dimensions: Dimensions
    areas: Areas
    fork: Fork | None = None

    @staticmethod
    def of(
        fb: FunctionBuilder, dimensions: Dimensions, slot: Value, shared: Value | None, fork: Fork | None
    ) -> Transform:
        """The code with its areas in some memory, those for all perhaps elsewhere."""
        sizes = tuple(map(aligned, dimensions.area_bytes))
        if shared is None:
            return Transform(fb, dimensions, Areas(*parts_of(fb, slot, sizes)), fork)
        own, others = parts_of(fb, slot, sizes[:_OF_GROUP]), parts_of(fb, shared, sizes[_OF_GROUP:])
        return Transform(fb, dimensions, Areas(*own, *others), fork)

    def emit(self, source: Value, target: Value, batch: int, bounds: _Bounds) -> None:
        """Computes the units inside the bounds."""
        fb, own = self.fb, self.dimensions
        if own.unit > 1:
            self._rows(source, target, batch, bounds)
            return
        rows = math.prod(own.lengths[:-1])
        parts, count = own.signal
        sizes = [parts * count * rows, 2 * own.width * rows]
        with fb.loop(*bounds) as number:
            places = (source, target) if own.kind is not FftType.IRFFT else (target, source)
            signal, spectrum = (
                fb.gep(own.lanes.scalar, place, fb.mul(number, size)) for place, size in zip(places, sizes, strict=True)
            )
            if own.kind is FftType.IRFFT:
                self._rows(self._across(spectrum, self.areas.spectrum), signal, rows, None)
            else:
                self._rows(signal, spectrum, rows, None)
                self._across(spectrum, spectrum)

    def _at(self, pointer: Value, element: Value) -> Value:
        return self.fb.gep(self.dimensions.lanes.scalar, pointer, self.fb.mul(element, 2))

    def _scale(self, dimension: int) -> float:
        return 1 / self.dimensions.lengths[dimension] if self.dimensions.is_inverse else 1.0

    def _groups(self, count: int, bounds: _Bounds | None, held: Sequence[Value], body: _Body) -> None:
        """Calls the body with (first line, lines), which are as many as lanes but perhaps at the end."""
        fb, side = self.fb, self.dimensions.lanes.count
        if bounds is None and self.fork is not None:
            self._fork(count, held, body)
            return
        begin, end = (0, -(-count // side)) if bounds is None else bounds
        with fb.loop(begin, end) as group:
            first = fb.mul(group, side)
            lines = (
                fb.smin(fb.sub(fb.constant(I64, count), first), side)
                if count > side and count % side
                else min(count, side)
            )
            body(self, held, first, lines)

    def _fork(self, count: int, held: Sequence[Value], body: _Body) -> None:
        """Shares the groups out."""
        fork, own = self.fork, self.dimensions
        assert fork is not None, "the caller asked"
        slot_bytes = sum(map(aligned, own.area_bytes[:_OF_GROUP]))

        def task(inner: FunctionBuilder, words: Sequence[Value], begin: Value, end: Value) -> None:
            area, shared, *given = words
            with slot_in(inner, area, slot_bytes) as slot:
                Transform.of(inner, own, slot, shared, None)._groups(count, (begin, end), given, body)

        fork.loop(self.fb, -(-count // own.lanes.count), [fork.area, fork.shared, *held], task)

    # The last dimension

    def _rows(self, source: Value, target: Value, count: int, bounds: _Bounds | None) -> None:
        """Transforms rows; bounds are groups of them."""
        fb, own = self.fb, self.dimensions
        signal, spectrum = own.signal, (2, own.width)
        (from_parts, from_length), (to_parts, to_length) = (
            (spectrum, signal) if own.kind is FftType.IRFFT else (signal, spectrum)
        )

        def place(fb: FunctionBuilder, pointer: Value, number: Value, size: int) -> Value:
            return fb.gep(own.lanes.scalar, pointer, fb.mul(number, size))

        if isinstance(own.along, SplitPlan):
            with fb.loop(0, count) as row:
                origin = place(fb, source, row, from_parts * from_length)
                self._split_row(own.along, origin, place(fb, target, row, to_parts * to_length))
            return
        plan = own.along

        def group(code: Transform, held: Sequence[Value], first: Value, lines: Value | int) -> None:
            fb, areas = code.fb, code.areas
            sizes = from_parts * from_length, to_parts * to_length
            origin, to = (place(fb, pointer, first, size) for pointer, size in zip(held, sizes, strict=True))
            read = Lines(origin, from_length, from_length, lines, own.is_inverse, 1.0, from_parts)
            load_rows(fb, own.lanes, read, areas.buffer, areas.tile)
            found = code._lines(plan)
            written = Lines(to, to_length, to_length, lines, own.is_inverse, self._scale(-1), to_parts)
            store_rows(fb, own.lanes, written, found, areas.tile)

        self._groups(count, bounds, (source, target), group)

    def _lines(self, plan: LinePlan) -> Value:
        """Transforms what is in the first buffer; where it is then."""
        fb, own = self.fb, self.dimensions
        source, other = self.areas.buffer, self.areas.other
        if own.kind is FftType.IRFFT and own.is_halved:
            real.lines_together(fb, own.lanes, plan.length, source, other)
            source, other = other, source
        elif own.kind is FftType.IRFFT:
            real.mirror_lines(fb, own.lanes, plan.length, source)
        found = transform_lines(fb, own.lanes, plan, (source, other), source)
        if own.kind is not FftType.RFFT or not own.is_halved:
            return found
        other = self.areas.other if found is self.areas.buffer else self.areas.buffer
        real.lines_apart(fb, own.lanes, plan.length, found, other)
        return other

    def _split_row(self, plan: SplitPlan, source: Value, target: Value) -> None:
        """Transforms a line of its own."""
        fb, own, row, other = self.fb, self.dimensions, self.areas.row, self.areas.other_row
        lanes, length = own.lanes, own.lengths[-1]
        match own.kind, own.is_halved:
            case FftType.RFFT, True:
                self._whole_line(plan, source, row)
                real.row_apart(fb, lanes, length // 2, row, target)
            case FftType.IRFFT, True:
                real.row_together(fb, lanes, length // 2, source, row)
                self._whole_line(plan, row, target)
            case FftType.RFFT, False:
                real.row_with_zeros(fb, lanes, length, source, row)
                self._whole_line(plan, row, other)
                fb.memmove(target, other, own.width * 2 * lanes.scalar.size_bytes, align=lanes.scalar.size_bytes)
            case FftType.IRFFT, False:
                real.mirror_row(fb, lanes, length, source, row)
                self._whole_line(plan, row, other)
                real.real_parts_of_row(fb, lanes, length, other, target)
            case _:
                self._whole_line(plan, source, target)

    def _whole_line(self, plan: SplitPlan, source: Value, target: Value) -> None:
        """Transforms a complex line, perhaps by a convolution (`passes.transform_lines`)."""
        fb, own, (line, other) = self.fb, self.dimensions, (self.areas.line, self.areas.other_line)
        lanes, swaps, scale = own.lanes, own.is_inverse, self._scale(-1)
        if not plan.is_convolution:
            self._split(plan, source, target, swaps=swaps, scale=scale)
            return
        turns_of_line, kernel = (fb.module.constant_bytes(data) for data in chirp(plan, lanes.dtype))

        def at(pointer: Value, length: int, *, swaps: bool, scale: float = 1.0) -> Lines:
            return Lines(pointer, length, length, 1, swaps, scale)

        number = 2 * lanes.scalar.size_bytes
        rest = fb.gep(lanes.scalar, line, 2 * plan.length)
        fb.memset(rest, 0, (plan.size - plan.length) * number, align=lanes.scalar.size_bytes)
        origin, start = at(source, plan.length, swaps=swaps), at(line, plan.length, swaps=False)
        multiply_line(fb, lanes, origin, start, turns_of_line)
        split = self._split_function(plan)
        split(line, other)
        once, back = at(other, plan.size, swaps=False), at(line, plan.size, swaps=True)
        multiply_line(fb, lanes, once, back, kernel)
        split(line, other)
        twice, found = at(other, plan.length, swaps=True), at(target, plan.length, swaps=swaps, scale=scale)
        multiply_line(fb, lanes, twice, found, turns_of_line)

    def _split_function(self, plan: SplitPlan) -> Callable[[Value, Value], None]:
        """(source, target) -> emits a call of a function that transforms a line."""
        fb, own = self.fb, self.dimensions
        areas = [getattr(self.areas, area.name) for area in fields(Areas)]
        forks = [getattr(self.fork, part.name) for part in fields(Fork)] if self.fork is not None else []
        inner = fb.module.function(
            fb.module.unique_name("fft_split"), VOID, (PTR,) * (2 + len(areas) + len(forks)), linkage="internal"
        )
        origin, to, *held = inner.parameters
        fork = Fork(*held[len(areas) :]) if forks else None
        Transform(inner, own, Areas(*held[: len(areas)]), fork)._split(plan, origin, to, swaps=False, scale=1.0)
        inner.ret()

        def call(source: Value, target: Value) -> None:
            fb.call(inner.function, source, target, *areas, *forks)

        return call

    def _split(self, plan: SplitPlan, source: Value, target: Value, *, swaps: bool, scale: float) -> None:
        lanes = self.dimensions.lanes
        rows, columns = plan.rows.length, plan.columns.length
        registers = -(-rows // lanes.count)

        def down(code: Transform, held: Sequence[Value], first: Value, lines: Value | int) -> None:
            fb, areas, factors = code.fb, code.areas, code._factors(rows, columns)
            load_columns(fb, lanes, Lines(code._at(held[0], first), rows, columns, lines, swaps), areas.buffer)
            found = transform_lines(fb, lanes, plan.rows, (areas.buffer, areas.other), areas.buffer)
            place = lanes.at(fb, areas.turned, fb.mul(first, registers))
            register = fb.udiv(first, lanes.count)
            store_turned(fb, lanes, rows, found, place, areas.tile, lambda row: factors(register, row))

        def across(code: Transform, held: Sequence[Value], first: Value, lines: Value | int) -> None:
            fb, areas = code.fb, code.areas
            place = lanes.at(fb, areas.turned, fb.udiv(first, lanes.count))
            found = transform_lines(fb, lanes, plan.columns, (areas.buffer, areas.other), place, registers)
            written = Lines(code._at(held[0], first), columns, rows, lines, swaps, scale)
            store_columns(fb, lanes, written, found)

        self._groups(columns, None, (source,), down)
        self._groups(rows, None, (target,), across)

    def _factors(self, rows: int, columns: int) -> Callable[[Value, Value], Complex]:
        """(register of columns, row) -> what elements are multiplied by between the halves."""
        fb, lanes = self.fb, self.dimensions.lanes
        registers = -(-columns // lanes.count)
        whole = _whole(rows, lanes.count)

        def table(numbers: Array) -> Callable[[Value, Value], Complex]:
            held = fb.module.constant_bytes(turns(numbers, columns, rows * columns, lanes.count, lanes.dtype))
            return lambda register, row: lanes.load(fb, held, fb.add(fb.mul(row, registers), register))

        if whole * columns <= _WHOLE_TABLE:
            return table(np.arange(whole))
        fine, coarse = table(np.arange(_FINE)), table(np.arange(0, whole, _FINE))
        return lambda register, row: multiply(
            fb, fine(register, fb.and_(row, _FINE - 1)), coarse(register, fb.udiv(row, _FINE))
        )

    # The others

    def _across(self, source: Value, target: Value) -> Value:
        """Transforms the dimensions but the last; where the result lies, the source if there is nothing to do."""
        for dimension in reversed(range(len(self.dimensions.lengths) - 1)):
            if self.dimensions.lengths[dimension] > 1:
                self._columns(source, target, dimension)
                source = target
        return source

    def _columns(self, source: Value, target: Value, dimension: int) -> None:
        fb, own = self.fb, self.dimensions
        plan, inner = own.across[dimension], math.prod((*own.lengths[dimension + 1 : -1], own.width))

        def group(code: Transform, held: Sequence[Value], first: Value, lines: Value | int) -> None:
            fb, areas = code.fb, code.areas
            origin, to = (code._at(pointer, first) for pointer in held)
            read = Lines(origin, plan.length, inner, lines, own.is_inverse)
            load_columns(fb, own.lanes, read, areas.buffer)
            found = transform_lines(fb, own.lanes, plan, (areas.buffer, areas.other), areas.buffer)
            store_columns(fb, own.lanes, replace(read, place=to, scale=self._scale(dimension)), found)

        with fb.loop(0, math.prod(own.lengths[:dimension])) as outer:
            start = fb.mul(outer, plan.length * inner)
            self._groups(inner, None, (self._at(source, start), self._at(target, start)), group)


def _whole(count: int, unit: int) -> int:
    return -(-count // unit) * unit
