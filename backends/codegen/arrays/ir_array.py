"""Arrays in memory as generated code sees them: typed reads and writes at an index, for one or many lanes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod
from typing import TypeAlias

from xlalite.backends.codegen.arrays.index import (
    ZERO,
    Affine,
    Base,
    Index,
    IndexMath,
    Lanes,
    Pattern,
    Position,
    index_key,
    parted,
    remainder_of,
    row_major_strides,
    sum_of,
)
from xlalite.backends.codegen.arrays.interleaving import (
    Columns,
    filled_row,
    load_apart,
    load_columns,
    load_rows,
    load_some_apart,
    load_stretch,
    mask_of_part,
    side_by_side,
)
from xlalite.backends.codegen.arrays.types import Element, Representation, from_memory, representation, to_memory
from xlalite.backends.codegen.llvm import (
    I64,
    FunctionBuilder,
    Type,
    Value,
    constant,
    lane_mask,
    lanes_of_mask,
    vector,
    zero,
)
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType

Rows: TypeAlias = dict[object, Columns]
"""What was loaded in a block in whole rows of a few elements: each vector needs another of their columns."""


@dataclass(frozen=True, slots=True)
class ArrayView:
    """An array at a pointer.

    Attributes:
        pointer: Address of element 0, aligned to the element's part.
        dtype: Element type.
        dims: Sizes.
        strides: Distance of neighbours along each dimension, in elements.
        metadata: LLVM metadata for loads, such as `!invariant.load !0`.
        streams: Whether whole vectors are stored past the caches; a fence must follow.
        ahead: How many bytes beyond a vector that is read or written are asked for, too; 0 for none.
    """

    pointer: Value
    dtype: DType
    dims: tuple[int, ...]
    strides: tuple[Value | int, ...]
    metadata: str = ""
    streams: bool = False
    ahead: int = 0

    @staticmethod
    def row_major(
        pointer: Value,
        dtype: DType,
        dims: tuple[int, ...],
        metadata: str = "",
        *,
        streams: bool = False,
        ahead: int = 0,
    ) -> ArrayView:
        """An array in row-major order."""
        return ArrayView(pointer, dtype, dims, row_major_strides(dims), metadata, streams, ahead)

    def read(self, math: IndexMath, index: Index, mask: Value | None = None, rows: Rows | None = None) -> Element:
        """The elements at an index.

        A position that is the same for all lanes gives one scalar, not a vector. Lanes outside the mask touch no memory
        and read as zero.

        Args:
            math: Arithmetic on positions, where code goes.
            index: Positions of the lanes.
            mask: Lanes that read, if not all.
            rows: What was read in the same block, if nothing there was stored since.
        """
        rows = {} if rows is None else rows
        parts = None if mask is not None else _from_rows(math, self, index, rows)
        if parts is None:
            offset = math.linear(index, self.strides)
            self._ask_ahead(math, offset, will_write=False)
            parts = _load(math, self, offset, mask, rows)
        values = tuple(from_memory(math.fb, self.dtype, part) for part in parts)
        return values[0] if len(values) == 1 else (values[0], values[1])

    def write(self, math: IndexMath, index: Index, element: Element, mask: Value | None = None) -> None:
        """Stores elements at an index whose lanes are all different (or the only one)."""
        self.write_side_by_side(math, index, (element,), mask)

    def write_side_by_side(
        self, math: IndexMath, index: Index, elements: Sequence[Element], mask: Value | None = None
    ) -> None:
        """Stores several elements for each lane, the first at an index, the others behind it."""
        offset = math.linear(index, self.strides)
        parts = [part for one in elements for part in (one if isinstance(one, tuple) else (one,))]
        stored = tuple(to_memory(math.fb, self.dtype, _spread(math, part)) for part in parts)
        self._ask_ahead(math, offset, will_write=True)
        _store(math, self, offset, stored, mask)

    def write_together(self, math: IndexMath, writes: Sequence[tuple[Index, Element, Value | None]]) -> None:
        """Stores elements at several indices, each with its mask; past the caches all whole vectors, or none."""
        values: list[Value] = []
        addresses: list[Value] = []
        for index, element, mask in writes:
            offset, held = math.linear(index, self.strides), representation(self.dtype)
            is_line = math.lanes > 1 and isinstance(offset, Affine) and offset.step == held.parts == 1
            if not self.streams or mask is not None or not is_line or isinstance(element, tuple):
                self.write(math, index, element, mask)
                continue
            values.append(to_memory(math.fb, self.dtype, _spread(math, element)))
            addresses.append(_address(math, self.pointer, held, offset))
        if values:
            store_past_caches(math.fb, values, addresses, self.dtype.size_bytes, alike=False)

    def _ask_ahead(self, math: IndexMath, offset: Position, *, will_write: bool) -> None:
        """Asks for the lines so far beyond a vector."""
        if self.ahead and isinstance(offset, Affine) and offset.step == 1:
            size, held = self.dtype.size_bytes, representation(self.dtype)
            for line in range(0, math.lanes * size, math.fb.module.target.cache_line_bytes):
                place = math.add_constant(offset, (self.ahead + line) // size)
                math.fb.prefetch(_address(math, self.pointer, held, place), write=will_write)


def store_past_caches(
    fb: FunctionBuilder, values: Sequence[Value], addresses: Sequence[Value], align: int, *, alike: bool = True
) -> None:
    """Stores vectors of one type without reading their cache lines first, if all addresses allow that.

    Where they are multiples of a vector apart, the first one is `alike` to all.
    """
    whole = min(values[0].type.size_bytes, fb.module.target.vector_bits // 8)
    asked = [fb.ptrtoint(address, I64) for address in addresses[: 1 if alike else None]]
    place = fb.and_(reduce(fb.or_, asked), whole - 1)
    choice = fb.if_else(fb.icmp("eq", place, 0), likely=True)
    with choice.then():
        for value, address in zip(values, addresses, strict=True):
            fb.store(value, address, whole, metadata=f"!nontemporal {fb.module.metadata('!{i32 1}')}")
    with choice.otherwise():
        for value, address in zip(values, addresses, strict=True):
            fb.store(value, address, align)


def _spread(math: IndexMath, value: Value) -> Value:
    return math.fb.splat(value, math.lanes) if math.lanes > 1 and not value.type.is_vector else value


def _load(math: IndexMath, view: ArrayView, offset: Position, mask: Value | None, rows: Rows) -> tuple[Value, ...]:
    fb, held = math.fb, representation(view.dtype)
    if isinstance(offset, Affine) and offset.step < 0 and mask is not None:
        offset = Pattern(offset.base, tuple(lane * offset.step for lane in range(math.lanes)))
    if not isinstance(offset, Affine):
        around = None if isinstance(offset, Lanes) else _load_around(math, view, offset, mask, rows)
        return around or _gather(math, view.pointer, held, offset, mask)
    if math.lanes == 1 or offset.step == 0:
        return _load_scalar(math, view.pointer, held, offset, view.metadata)
    if offset.step < 0:
        first = Affine(sum_of(offset.base, (math.lanes - 1) * offset.step), -offset.step)
        turned = range(math.lanes - 1, -1, -1)
        return tuple(fb.shuffle(part, None, turned) for part in _load(math, view, first, None, rows))
    if offset.step == 1 and held.parts == 1:
        address = _address(math, view.pointer, held, offset)
        wide = vector(held.memory, math.lanes)
        return (_load_vector(fb, wide, address, mask, held.memory.size_bytes, view.metadata),)
    if not 1 <= offset.step <= (_MAX_STEP if _place_in_row(view, offset) is None else _MAX_COLUMNS):
        return _gather(math, view.pointer, held, offset, mask)
    if mask is None or offset.step == 1 or lanes_of_mask(mask) is not None:
        return _load_columns(math, view, offset, mask, rows)
    # At the borders of an array some lanes are missing, between them none.
    choice = fb.if_else(fb.all_lanes(mask), likely=True)
    with choice.then():
        choice.yield_(*_load_columns(math, view, offset, None, {}))
    with choice.otherwise():
        choice.yield_(*_gather(math, view.pointer, held, offset, mask))
    return choice.results


_MAX_STEP = 4
"""Steps up to this load what lies between too, which is quicker than a gather."""

_MAX_COLUMNS = 16
"""The same of rows that lie one behind the other: their columns are sorted out of what is loaded once."""


def _load_columns(
    math: IndexMath, view: ArrayView, offset: Affine, mask: Value | None, rows: Rows
) -> tuple[Value, ...]:
    """Elements a few apart: a column of an array that consists of such rows, or of what begins with the first one."""
    fb, held, step = math.fb, representation(view.dtype), offset.step
    wide, count = vector(held.memory, math.lanes), step * held.parts
    known = None if mask is None else lanes_of_mask(mask)
    are_first = known is None or known == tuple(range(len(known)))
    number = _place_in_row(view, offset) if are_first else None
    if number is None:
        address = _address(math, view.pointer, held, offset)
        parts = [fb.gep(held.memory, address, part) if part else address for part in range(held.parts)]
        if mask is None:
            return tuple(load_apart(fb, wide, part, count, view.metadata) for part in parts)
        return tuple(load_some_apart(fb, wide, part, count, known or ()) for part in parts)
    first = Affine(sum_of(offset.base, -number), step)
    key = view.pointer.text, held.memory, mask, index_key((first,))
    found = rows.get(key)
    if found is None:
        address = _address(math, view.pointer, held, first)
        found = rows[key] = load_columns(fb, wide, address, count, mask, view.metadata)
    return tuple(found.column(number * held.parts + part) for part in range(held.parts))


def _load_around(
    math: IndexMath, view: ArrayView, offset: Pattern, mask: Value | None, rows: Rows
) -> tuple[Value, ...] | None:
    """Elements picked out of what lies between the first and the last; None if that is too much.

    Lines that lie one behind the other are loaded whole: other elements of theirs may be wanted, too.
    """
    fb, held = math.fb, representation(view.dtype)
    known = tuple(range(math.lanes)) if mask is None else lanes_of_mask(mask)
    if not known:
        return None
    base, line, number = parted(offset.base)
    places = {lane: number + offset.places[lane] for lane in known}
    begin, end = min(places.values()), max(places.values()) + 1
    whole = (begin // line * line, -(-end // line) * line) if line else (begin, end)
    is_whole = view.strides == row_major_strides(view.dims) and line and prod(view.dims) % line == 0
    if is_whole and (whole[1] - whole[0]) * held.parts <= 2 * math.lanes:
        begin, end = whole
    count = (end - begin) * held.parts
    if count > 2 * math.lanes:
        return None
    key = view.pointer.text, held.memory, index_key((Affine(sum_of(base, begin)),)), count
    found = rows.get(key)
    if found is None:
        address = _address(math, view.pointer, held, Affine(sum_of(base, begin)))
        found = rows[key] = load_stretch(fb, vector(held.memory, math.lanes), address, count, view.metadata)
    order = [(places.get(lane, begin) - begin) * held.parts for lane in range(math.lanes)]
    return tuple(found.picked([place + part for place in order]) for part in range(held.parts))


def _from_rows(math: IndexMath, view: ArrayView, index: Index, rows: Rows) -> tuple[Value, ...] | None:
    """Elements of rows of a few, of which each lane has its own; None if they are no such rows.

    A gather takes as long for each element as it takes to load a row: the differences of 60,000 pairs of points out of
    4000 in three dimensions take 34 us of two cores by gathers, 20 so.
    """
    held, count = representation(view.dtype), view.dims[-1] if view.dims else 0
    if not 1 < count <= _MAX_STEP or filled_row(count * held.parts) > math.lanes or view.strides[-1] != 1:
        return None
    place = index[-1]
    if not isinstance(place, Affine) or place.step or not isinstance(place.base, int):
        return None
    if not any(isinstance(one, Lanes) for one in index[:-1]):
        return None
    key = view.pointer.text, held.memory, index_key(index[:-1])
    found = rows.get(key)
    if found is None:
        begin = math.vector(math.scale(math.linear((*index[:-1], ZERO), view.strides), held.parts))
        places = [math.fb.extract(begin, lane) for lane in range(math.lanes)]
        addresses = [math.fb.gep(held.memory, view.pointer, one) for one in places]
        wide = vector(held.memory, math.lanes)
        found = rows[key] = load_rows(math.fb, wide, addresses, count * held.parts, view.metadata)
    return tuple(found.column(place.base * held.parts + part) for part in range(held.parts))


def _place_in_row(view: ArrayView, offset: Affine) -> int | None:
    """How far behind a multiple of its step the first lane is, if an array has whole rows of as many elements."""
    count = prod(view.dims)
    if offset.step == 1:
        return 0
    if not count or count % offset.step or view.strides != row_major_strides(view.dims):
        return None
    return remainder_of(offset.base, offset.step)


def _load_scalar(
    math: IndexMath, pointer: Value, held: Representation, offset: Affine, metadata: str
) -> tuple[Value, ...]:
    fb, align, address = math.fb, held.memory.size_bytes, _address(math, pointer, held, offset)
    if held.parts == 1:
        return (fb.load(held.memory, address, align, metadata=metadata),)
    imaginary = fb.gep(held.memory, address, 1)
    return tuple(fb.load(held.memory, part, align, metadata=metadata) for part in (address, imaginary))


def _address(math: IndexMath, pointer: Value, held: Representation, offset: Position) -> Value:
    """Where the first lane's element is; what holds several parts has them side by side."""
    place = math.scale(offset, held.parts)
    if isinstance(place, Affine):
        return math.address(held.memory, pointer, place.base)
    return math.fb.gep(held.memory, pointer, math.vector(place))


def _load_vector(
    fb: FunctionBuilder, type_: Type, address: Value, mask: Value | None, align: int, metadata: str
) -> Value:
    if mask is None:
        return fb.load(type_, address, align, metadata=metadata)
    return fb.masked_load(type_, address, mask, zero(type_), align)


def _gather(
    math: IndexMath, pointer: Value, held: Representation, offset: Position, mask: Value | None
) -> tuple[Value, ...]:
    fb, align = math.fb, held.memory.size_bytes
    lanes = math.vector(offset)
    wide = vector(held.memory, math.lanes)
    if held.parts == 2:
        lanes = fb.mul(lanes, 2)
    loaded = []
    for part in range(held.parts):
        addresses = fb.gep(held.memory, pointer, fb.add(lanes, part) if part else lanes)
        loaded.append(fb.gather(wide, addresses, mask, zero(wide), align))
    return tuple(loaded)


def _store(math: IndexMath, view: ArrayView, offset: Position, stored: tuple[Value, ...], mask: Value | None) -> None:
    fb, held = math.fb, representation(view.dtype)
    align, count = held.memory.size_bytes, len(stored)
    if math.lanes == 1:
        address = _address(math, view.pointer, held, offset)
        for part, value in enumerate(stored):
            fb.store(value, fb.gep(held.memory, address, part) if part else address, align)
        return
    if isinstance(offset, Affine) and offset.step * held.parts == count:
        address = _address(math, view.pointer, held, offset)
        vectors = side_by_side(fb, stored)
        places = [fb.gep(held.memory, address, n * math.lanes) if n else address for n in range(count)]
        if mask is not None:
            for number, (value, place) in enumerate(zip(vectors, places, strict=True)):
                covered = mask_of_part(fb, mask, count, number)
                if lanes_of_mask(covered) != ():
                    fb.masked_store(value, place, covered, align)
        elif view.streams:
            store_past_caches(fb, vectors, places, align)
        else:
            for value, place in zip(vectors, places, strict=True):
                fb.store(value, place, align)
        return
    lanes = math.vector(offset)
    if held.parts == 2:
        lanes = fb.mul(lanes, 2)
    for part, value in enumerate(stored):
        fb.scatter(value, fb.gep(held.memory, view.pointer, fb.add(lanes, part) if part else lanes), mask, align)


def lanes_below(fb: FunctionBuilder, base: Base, bound: Value | int, lanes: int) -> Value:
    """The mask of lanes k with base + k < bound."""
    if isinstance(base, int) and isinstance(bound, int):
        return lane_mask(lanes, bound - base)
    numbers = fb.lane_numbers(I64, lanes)
    left = IndexMath(fb, lanes).scalar(base)
    right = constant(I64, bound) if isinstance(bound, int) else bound
    return fb.icmp("slt", numbers, fb.splat(fb.sub(right, left), lanes))
