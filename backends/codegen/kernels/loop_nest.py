"""Walking over all elements of some sizes, vectors along the minor dimension, split over the parallel extent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from xlalite.backends.codegen.arrays.index import ZERO, Affine, Index
from xlalite.backends.codegen.arrays.ir_array import lanes_below
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry
from xlalite.backends.codegen.kernels.scalars import Scalars
from xlalite.backends.codegen.llvm import I64, FunctionBuilder, Value, constant
from xlalite.passes.fusion.seams import Seams

BLOCK = 2048
"""Elements of one unit of the parallel extent of a one-dimensional nest; a multiple of every lane count."""

LaneBody = Callable[[Affine, int, "Value | None"], None]
"""(position, lanes, mask) -> emits the work for these lanes."""

Range = tuple["Value | int", "Value | int"]
"""[begin, end) along a dimension."""

Visit = Callable[[Index, int, "Value | None"], None]
"""(index, lanes, mask) -> emits the work for these lanes."""


def loop_nest_extent(dims: tuple[int, ...]) -> int:
    """The parallel extent: the outermost dimension that has a size, or blocks of a one-dimensional array."""
    dims = dims[leading_ones(dims) :]
    if not dims:
        return 1
    return -(-dims[0] // BLOCK) if len(dims) == 1 else dims[0]


def leading_ones(dims: Sequence[int]) -> int:
    """How many dimensions in front of the last have one element and another behind them."""
    return next((number for number, size in enumerate(dims[:-1]) if size != 1), max(len(dims) - 1, 0))


def loop_nest(
    entry: KernelEntry,
    dims: tuple[int, ...],
    lanes: int,
    visit: Visit,
    seams: Seams = (),
    phases: Sequence[int] = (),
) -> None:
    """Emits the loops over the entry's part of the extent, each split at the seams of its dimension.

    As many positions as a dimension has phases are taken together, and it is known which is which.
    """
    ones = leading_ones(dims)
    seams, phases = seams or ((),) * len(dims), phases or (1,) * len(dims)
    if ones:
        inner = dims[ones:]
        shifted: Visit = lambda index, width, mask: visit((*(ZERO,) * ones, *index), width, mask)  # noqa: E731
        loop_nest(entry, inner, lanes, shifted, seams[ones:], phases[ones:])
    elif not dims:
        visit((), 1, None)
    elif 0 in dims:
        return
    elif len(dims) == 1:
        for begin, end in _parts(dims[0], seams[0]):
            _line(entry, dims[0], (begin, end), lanes, visit)
    else:
        _boxes(entry, dims, (seams, phases), (), lanes, visit)


def _boxes(
    entry: KernelEntry,
    dims: tuple[int, ...],
    cuts: tuple[Seams, Sequence[int]],
    outer: Index,
    lanes: int,
    visit: Visit,
) -> None:
    fb, dimension, (seams, phases) = entry.fb, len(outer), cuts
    for begin, end in _parts(dims[dimension], seams[dimension]):
        if dimension == len(dims) - 1:
            _between(fb, begin, end, lanes, lambda at, width, mask: visit((*outer, at), width, mask))
            continue
        first: Value | int = begin
        last: Value | int = end
        if not dimension:
            first = fb.smax(entry.begin, begin) if begin else entry.begin
            last = fb.smin(entry.end, end) if end < dims[0] else entry.end
        for position in _positions(fb, (first, last), (begin, end), phases[dimension]):
            _boxes(entry, dims, cuts, (*outer, position), lanes, visit)


def _positions(fb: FunctionBuilder, part: Range, bounds: tuple[int, int], phases: int) -> Iterator[Affine]:
    """A loop over part of what lies between bounds; each of as many positions as there are phases has its code."""
    (first, last), (begin, end) = part, bounds
    if phases == 1:
        with fb.loop(first, last) as position:
            yield Affine(position, 0, (begin, end - 1))
        return
    lowest = begin - begin % phases
    start = fb.sub(first, fb.urem(first, phases)) if isinstance(first, Value) else lowest
    with fb.loop(start, last, phases) as block:
        for phase in range(min(phases, end - lowest)):
            position = fb.add(block, phase)
            inside = fb.and_(fb.icmp("sge", position, first), fb.icmp("slt", position, last))
            with fb.if_(inside):
                yield Affine(position, 0, (lowest + phase, end - 1), phases)


def _parts(size: int, seams: Sequence[int]) -> list[tuple[int, int]]:
    return list(zip((0, *seams), (*seams, size), strict=True))


def _line(entry: KernelEntry, size: int, part: tuple[int, int], lanes: int, visit: Visit) -> None:
    """What of a part of a line is the entry's."""
    fb, (begin, end), step = entry.fb, part, 1 if lanes > 1 else 0
    if size <= BLOCK:
        _between(fb, begin, end, lanes, lambda at, width, mask: visit((at,), width, mask))
        return
    start = fb.mul(entry.begin, BLOCK, "nsw")
    stop = fb.mul(entry.end, BLOCK, "nsw")
    bounds = (begin, end - 1)
    if part == (0, size):
        full = size - size % lanes
        with fb.loop(start, fb.smin(stop, full), lanes) as position:
            visit((Affine(position, step, bounds, lanes),), lanes, None)
        if full < size:
            with fb.if_(fb.icmp("sgt", stop, full)):
                visit((Affine(full, 1),), lanes, lanes_below(fb, full, size, lanes))
        return
    start, stop = fb.smax(start, begin), fb.smin(stop, end)
    left = fb.smax(fb.sub(stop, start), 0)
    rest = fb.add(start, fb.sub(left, fb.urem(left, lanes)))
    with fb.loop(start, rest, lanes) as position:
        visit((Affine(position, step, bounds),), lanes, None)
    if lanes > 1:
        with fb.if_(fb.icmp("slt", rest, stop)):
            visit((Affine(rest, 1, bounds),), lanes, lanes_below(fb, rest, stop, lanes))


def places_of(
    fb: FunctionBuilder, number: Value, dims: Sequence[int], numbers: Scalars | None = None
) -> tuple[Affine, ...]:
    """The place along each of some dimensions that a number counts, the last dimension first."""
    places: list[Affine] = []
    numbers = numbers or Scalars(fb)
    for size in reversed(dims):
        if size > 1:
            divisor = numbers.value(size)
            places.append(Affine(fb.urem(number, divisor)))
            number = fb.udiv(number, divisor)
        else:
            places.append(ZERO)
    return tuple(reversed(places))


@contextmanager
def each_place(entry: KernelEntry, dims: Sequence[int]) -> Iterator[tuple[Affine, ...]]:
    """A loop over the entry's part of the extent, and the place along each of some dimensions that divide it.

    Where sizes are known only when the kernel runs, places are counted: divisions take as long as a few vectors.
    """
    fb, numbers = entry.fb, entry.numbers
    if numbers.simplifies:
        with fb.loop(entry.begin, entry.end) as number:
            yield places_of(fb, number, dims)
        return
    first = places_of(fb, entry.begin, dims, numbers)
    begins = [place.base for place in first if isinstance(place.base, Value)]
    with fb.carried_loop(entry.begin, entry.end, 1, begins) as loop:
        values = iter(loop.values)
        yield tuple(Affine(next(values)) if size > 1 else ZERO for size in dims)
        after, carry = [], constant(I64, 1)
        sizes = [numbers.value(size) for size in dims if size > 1]
        for place, size in zip(reversed(loop.values), reversed(sizes), strict=True):
            moved = fb.add(place, carry)
            is_behind = fb.icmp("eq", moved, size)
            after.append(fb.select(is_behind, constant(I64, 0), moved))
            carry = fb.zext(is_behind, I64)
        loop.yield_(*reversed(after))


@contextmanager
def task_loops(entry: KernelEntry, dims: Sequence[int]) -> Iterator[Index]:
    """Loops over the task's part of the first of some dimensions and over the others; the index in the innermost."""
    if not dims:
        yield ()
        return
    with entry.fb.loop(entry.begin, entry.end) as first, nested_loops(entry.fb, dims[1:]) as others:
        yield (Affine(first), *others)


@contextmanager
def nested_loops(fb: FunctionBuilder, dims: Sequence[int]) -> Iterator[Index]:
    """Loops over some dimensions, one inside the other; the index in the innermost."""
    with ExitStack() as loops:
        yield tuple(Affine(loops.enter_context(fb.loop(0, size))) for size in dims)


def for_lanes(fb: FunctionBuilder, extent: int, lanes: int, body: LaneBody) -> None:
    """Runs the body over [0, extent): a loop of full vectors, then one masked vector for the rest."""
    _between(fb, 0, extent, lanes, body)


def _between(fb: FunctionBuilder, begin: int, end: int, lanes: int, body: LaneBody) -> None:
    size = end - begin
    if begin or size == 1:
        lanes = min(lanes, 1 << max(size - 1, 0).bit_length())
    full = end - size % lanes
    bounds = (begin, end - 1)
    if lanes == 1:
        with fb.loop(begin, end) as position:
            body(Affine(position, 0, bounds), 1, None)
        return
    if full - begin == lanes:
        body(Affine(begin, 1), lanes, None)
    elif full > begin:
        with fb.loop(begin, full, lanes) as position:
            body(Affine(position, 1, bounds, lanes), lanes, None)
    if end > full:
        body(Affine(full, 1, (full, end - 1)), lanes, lanes_below(fb, full, end, lanes))


def lanes_between(fb: FunctionBuilder, bounds: Range, lanes: int, body: LaneBody) -> None:
    """Runs the body over [begin, end), from 0 on where the end is known now; else single elements follow vectors."""
    begin, end = bounds
    if isinstance(end, int):
        for_lanes(fb, end, lanes, body)
        return
    full = fb.constant(end.type, begin) if isinstance(begin, int) else begin
    if lanes > 1:
        start, full = full, fb.add(full, fb.and_(fb.smax(fb.sub(end, full), 0), -lanes))
        with fb.loop(start, full, lanes) as position:
            body(Affine(position, 1), lanes, None)
    with fb.loop(full, end) as position:
        body(Affine(position), 1, None)
