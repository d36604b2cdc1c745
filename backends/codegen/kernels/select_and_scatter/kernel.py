"""The kernel of select-and-scatter, the gradient of pooling: each window gives its source to the element it selects.

A task has lines that no window crosses for itself, and where those are few, rows of them: it fills its part of the
result and then goes through the window positions that reach it, in order. Those that reach the parts of two tasks are
selected from by both. Where the window does not move along the minor dimension, lanes are neighbours there; each lane
remembers the number of the element that it selected, and the source is combined under a mask for each number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from xlalite.backends.codegen.arrays.index import Affine, Index, IndexMath, Position
from xlalite.backends.codegen.arrays.types import Element, zero_element
from xlalite.backends.codegen.elements.elements import ElementEmitter
from xlalite.backends.codegen.elements.region import Region
from xlalite.backends.codegen.elements.registers import Registers, flatten, unflatten
from xlalite.backends.codegen.elements.windows import window_source
from xlalite.backends.codegen.kernels.kernel import Kernel
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry, lane_count, open_kernel
from xlalite.backends.codegen.kernels.loop_nest import Range, for_lanes, places_of
from xlalite.backends.codegen.llvm import I32, Function, FunctionBuilder, ModuleBuilder, Value
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.window import Window
from xlalite.passes.fusion.fusible import SPELT_OUT_AT_MOST

_MANY_LINES = 8
"""Lines that are enough for threads; fewer are divided into rows, whose ends windows must then heed.

Dividing eight lines of [113,112,64] takes windows of 2x2 a quarter longer.
"""

_Visit = Callable[[Index, int, "Value | None"], None]


@dataclass(frozen=True, slots=True)
class Part:
    """What a task does at once.

    Attributes:
        line: The position along each dimension along which windows do not move, but for that of the lanes.
        rows: Those of the result, along the dimension that is divided.
        windows: The positions along it of the windows that reach them, at least one.
    """

    line: Mapping[int, Position]
    rows: Range
    windows: Range


@dataclass(frozen=True, slots=True)
class SelectAndScatterKernel(Kernel):
    """A selection in each window.

    Attributes:
        dims: Sizes of the operand and of the result.
        positions: Window positions along each dimension.
        window: The window.
        lane_dim: The dimension of the lanes; None for one element at a time.
        lines: Other dimensions along which the window does not move; tasks divide these.
    """

    dims: tuple[int, ...]
    positions: tuple[int, ...]
    window: Window
    lane_dim: int | None
    lines: tuple[int, ...]

    @property
    def extent(self) -> int:
        """The parts of all lines."""
        return self._line_count * self._parts_of_line

    @property
    def shares_between_units(self) -> bool:
        """Whether windows that lie in two parts are selected from by the tasks of both."""
        return self._crosses_parts

    @property
    def divided(self) -> int | None:
        """The first dimension along which windows move and that is not that of the lanes."""
        others = (dim for dim in range(len(self.dims)) if dim not in self.lines and dim != self.lane_dim)
        return next(others, None)

    @property
    def _line_count(self) -> int:
        return math.prod(self.dims[dim] for dim in self.lines)

    @property
    def _parts_of_line(self) -> int:
        if self.divided is None or self._line_count >= _MANY_LINES or 0 in (*self.dims, *self.positions):
            return 1
        return -(-self.dims[self.divided] // self._rows_of_part)

    @property
    def _rows_of_part(self) -> int:
        assert self.divided is not None, "it is asked where there are rows"
        one = self.window.dimensions[self.divided]
        return max(one.size, one.stride)

    @property
    def _crosses_parts(self) -> bool:
        """Whether a window can lie in two parts of a line."""
        if self.divided is None or self._parts_of_line == 1:
            return False
        one = self.window.dimensions[self.divided]
        return one.size > one.stride or one.pad_low % one.stride != 0

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """Fills and scatters, line by line."""
        entry = open_kernel(module, name, self.request)
        lanes = 1 if self.lane_dim is None else lane_count(module, self.request.body, self.dims[self.lane_dim])
        if math.prod(self.dims):
            with self._parts(entry) as part:
                rows, windows = self._ranges(self.dims, part.rows), self._ranges(self.positions, part.windows)
                self._walk(entry.fb, rows, part.line, lanes, lambda *at: self._fill(entry, *at))
                if math.prod(self.positions):
                    self._walk(entry.fb, windows, part.line, lanes, lambda *at: self._scatter(entry, part.rows, *at))
        entry.fb.ret()
        return entry.function

    @contextmanager
    def _parts(self, entry: KernelEntry) -> Iterator[Part]:
        """A loop over the lines of which the task has parts."""
        fb, count, dim = entry.fb, self._parts_of_line, self.divided
        if count == 1 or dim is None:
            sizes = (1, 1) if dim is None else (self.dims[dim], self.positions[dim])
            with fb.loop(entry.begin, entry.end) as number:
                yield Part(self._line(fb, number), (0, sizes[0]), (0, sizes[1]))
            return
        one, size, windows = self.window.dimensions[dim], self.dims[dim], self.positions[dim]

        def behind(row: Value, reach: int) -> Value:
            """How many windows begin so many rows before one."""
            return fb.udiv(fb.smax(fb.add(row, one.pad_low - reach + one.stride), 0), one.stride)

        with fb.loop(fb.udiv(entry.begin, count), fb.udiv(fb.add(entry.end, count - 1), count)) as number:
            before = fb.mul(number, count)
            parts = (fb.smin(fb.smax(fb.sub(each, before), 0), count) for each in (entry.begin, entry.end))
            begin, end = (fb.smin(fb.mul(part, self._rows_of_part), size) for part in parts)
            first = fb.smin(behind(begin, one.size), windows - 1)
            last = fb.smax(fb.smin(behind(end, 1), windows), fb.add(first, 1))
            yield Part(self._line(fb, number), (begin, end), (first, last))

    def _ranges(self, sizes: Sequence[int], divided: Range) -> list[Range]:
        return [divided if dim == self.divided else (0, size) for dim, size in enumerate(sizes)]

    def _line(self, fb: FunctionBuilder, number: Value) -> dict[int, Position]:
        places = places_of(fb, number, [self.dims[dim] for dim in self.lines])
        return dict(zip(self.lines, places, strict=True))

    def _walk(
        self, fb: FunctionBuilder, ranges: Sequence[Range], line: Mapping[int, Position], lanes: int, visit: _Visit
    ) -> None:
        """Loops over the dimensions that are no line's, that of the lanes innermost."""
        moving = [dim for dim in range(len(ranges)) if dim not in line and dim != self.lane_dim]

        def level(dims: Sequence[int], index: Mapping[int, Position]) -> None:
            if dims:
                with fb.loop(*ranges[dims[0]]) as position:
                    level(dims[1:], {**index, dims[0]: Affine(position)})
            elif self.lane_dim is None:
                visit(_in_order(index), 1, None)
            else:
                lane_dim, (_, size) = self.lane_dim, ranges[self.lane_dim]
                assert isinstance(size, int), "tasks do not divide vectors"
                for_lanes(
                    fb,
                    size,
                    lanes,
                    lambda at, width, mask: visit(_in_order({**index, lane_dim: at}), width, mask),
                )

        level(moving, line)

    def _fill(self, entry: KernelEntry, index: Index, width: int, mask: Value | None) -> None:
        emitter = entry.emitter(width, mask)
        initial = emitter.element(self.request.body.root.operand(2), ())
        entry.outputs[0].write(emitter.math, index, initial, mask)

    def _scatter(self, entry: KernelEntry, rows: Range, index: Index, width: int, mask: Value | None) -> None:
        emitter = entry.emitter(width, mask)
        chosen = self._select(emitter, index)
        _, scatter = self.request.body.root.called_computations
        source = emitter.vector(self.request.body.root.operand(1), index)
        result = entry.outputs[0]

        def give(inner: ElementEmitter, offsets: Index, number: Value) -> None:
            # What was chosen lies inside, so no place outside is touched.
            place = tuple(self._places(Region(inner), index, offsets))
            is_chosen = inner.fb.icmp("eq", chosen, number)
            if self.divided is not None and self._crosses_parts:
                is_chosen = inner.fb.and_(is_chosen, self._is_between(inner, place[self.divided], rows))
            with _where(inner, is_chosen, mask) as own:
                current = result.read(own.math, place, own.mask)
                (new,) = own.apply(scatter, [current, source])
                result.write(own.math, place, new, own.mask)

        self._for_offsets(emitter, give)

    def _is_between(self, emitter: ElementEmitter, place: Position, rows: Range) -> Value:
        fb, (begin, end) = emitter.fb, map(IndexMath(emitter.fb, 1).scalar, rows)
        own = fb.icmp("ult", fb.sub(IndexMath(fb, 1).vector(place), begin), fb.sub(end, begin))
        return fb.splat(own, emitter.lanes) if emitter.lanes > 1 else own

    def _select(self, emitter: ElementEmitter, index: Index) -> Value:
        """The number of the element below the window that is selected; -1 where there is none."""
        fb, operand = emitter.fb, self.request.body.root.operand(0)
        select, _ = self.request.body.root.called_computations
        best = emitter.spread(zero_element(operand.shape.dtype, 1))
        kind = (best, _number(fb, -1, emitter.lanes))

        def better(inner: ElementEmitter, offsets: Index, number: Value, carried: Registers) -> Registers:
            best, chosen = unflatten(carried, kind)
            assert isinstance(chosen, Value), "a number is one register"
            inside = Region(inner)
            place = tuple(self._places(inside, index, offsets))
            (value,) = map(inner.spread, inside.read((operand,), place))
            (stays,) = map(inner.spread, inner.apply(select, [best, value]))
            assert isinstance(stays, Value), "a truth value is one register"
            keeps = fb.and_(stays, fb.icmp("sge", chosen, 0))
            new = [chosen_element(fb, keeps, best, value), fb.select(keeps, chosen, number)]
            return flatten(inside.select(a, b) for a, b in zip(new, (best, chosen), strict=True))

        return self._fold_offsets(emitter, flatten(kind), better)[-1]

    def _places(self, inside: Region, index: Index, offsets: Index) -> Iterator[Position]:
        for dim, size, position, offset in zip(self.window.dimensions, self.dims, index, offsets, strict=True):
            yield window_source(inside, dim, size, position, offset)

    def _for_offsets(self, emitter: ElementEmitter, visit: Callable[[ElementEmitter, Index, Value], None]) -> None:
        def step(inner: ElementEmitter, offsets: Index, number: Value, carried: Registers) -> Registers:
            visit(inner.fresh(), offsets, number)
            return carried

        self._fold_offsets(emitter, (), step)

    def _fold_offsets(
        self,
        emitter: ElementEmitter,
        initial: Registers,
        step: Callable[[ElementEmitter, Index, Value, Registers], Registers],
    ) -> Registers:
        """Goes through the elements of the window in order, spelt out if they are few."""
        fb, sizes = emitter.fb, self.window.sizes
        is_loop = math.prod(sizes) > SPELT_OUT_AT_MOST

        def nest(offsets: Index, number: Value | int, carried: Registers, outer: ElementEmitter) -> Registers:
            level = len(offsets)
            if level == len(sizes):
                return step(outer, offsets, _number(fb, number, emitter.lanes), carried)
            size = sizes[level]
            if is_loop and size > 1:
                base = number if isinstance(number, Value) else fb.constant(I32, number)
                with fb.carried_loop(0, size, 1, carried) as loop:
                    own = fb.add(fb.mul(base, size), fb.trunc(loop.index, I32))
                    loop.yield_(*nest((*offsets, Affine(loop.index)), own, loop.values, outer.inner()))
                return loop.results
            for offset in range(size):
                next_one = fb.add(fb.mul(number, size), offset) if isinstance(number, Value) else number * size + offset
                carried = nest((*offsets, Affine(offset)), next_one, carried, outer)
            return carried

        return nest((), 0, initial, emitter)


def _in_order(index: Mapping[int, Position]) -> Index:
    return tuple(index[dim] for dim in range(len(index)))


def _number(fb: FunctionBuilder, number: Value | int, lanes: int) -> Value:
    value = number if isinstance(number, Value) else fb.constant(I32, number)
    return fb.splat(value, lanes) if lanes > 1 else value


def chosen_element(fb: FunctionBuilder, condition: Value, a: Element, b: Element) -> Element:
    """The first of two elements where a condition holds, else the second."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return fb.select(condition, a[0], b[0]), fb.select(condition, a[1], b[1])
    assert isinstance(a, Value), "both have one type"
    assert isinstance(b, Value), "both have one type"
    return fb.select(condition, a, b)


@contextmanager
def _where(emitter: ElementEmitter, condition: Value, mask: Value | None) -> Iterator[ElementEmitter]:
    """An emitter whose work is done only where a condition holds: a branch for one lane, a mask for several."""
    if emitter.lanes == 1:
        with emitter.fb.if_(condition):
            yield emitter.fresh()
    else:
        yield emitter.fresh(condition if mask is None else emitter.fb.and_(condition, mask))
