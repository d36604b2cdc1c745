"""Arrays in memory as generated code sees them: typed reads and writes at an index, for one or many lanes."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.backends.codegen.arrays.index import Affine, Base, Index, IndexMath, Position, row_major_strides
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
        ahead: How many bytes beyond a vector that is read are asked for, too; 0 for none.
    """

    pointer: Value
    dtype: DType
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    metadata: str = ""
    streams: bool = False
    ahead: int = 0

    @staticmethod
    def row_major(pointer: Value, dtype: DType, dims: tuple[int, ...], metadata: str = "") -> ArrayView:
        """An array in row-major order."""
        return ArrayView(pointer, dtype, dims, row_major_strides(dims), metadata)

    def read(self, math: IndexMath, index: Index, mask: Value | None = None) -> Element:
        """The elements at an index.

        A position that is the same for all lanes gives one scalar, not a vector. Lanes outside the mask touch no memory
        and read as zero.
        """
        offset = math.linear(index, self.strides)
        held = representation(self.dtype)
        if self.ahead and isinstance(offset, Affine) and offset.step == 1:
            ahead = math.add_constant(offset, self.ahead // self.dtype.size_bytes)
            math.fb.prefetch(_address(math, self.pointer, held, ahead))
        parts = _load(math, self.pointer, held, offset, mask, self.metadata)
        values = tuple(from_memory(math.fb, self.dtype, part) for part in parts)
        return values[0] if len(values) == 1 else (values[0], values[1])

    def write(self, math: IndexMath, index: Index, element: Element, mask: Value | None = None) -> None:
        """Stores elements at an index whose lanes are all different (or the only one)."""
        offset = math.linear(index, self.strides)
        held = representation(self.dtype)
        parts = element if isinstance(element, tuple) else (element,)
        stored = tuple(to_memory(math.fb, self.dtype, _spread(math, part)) for part in parts)
        _store(math, self.pointer, held, offset, stored, mask, streams=self.streams)


def store_past_caches(fb: FunctionBuilder, values: Sequence[Value], addresses: Sequence[Value], align: int) -> None:
    """Stores vectors of one type, multiples of their size apart, without reading their cache lines first.

    Where the first address does not allow that, none allows it.
    """
    whole = min(values[0].type.size_bytes, fb.module.target.vector_bits // 8)
    place = fb.and_(fb.ptrtoint(addresses[0], I64), whole - 1)
    choice = fb.if_else(fb.icmp("eq", place, 0), likely=True)
    with choice.then():
        for value, address in zip(values, addresses, strict=True):
            fb.store(value, address, whole, metadata=f"!nontemporal {fb.module.metadata('!{i32 1}')}")
    with choice.otherwise():
        for value, address in zip(values, addresses, strict=True):
            fb.store(value, address, align)


def _spread(math: IndexMath, value: Value) -> Value:
    return math.fb.splat(value, math.lanes) if math.lanes > 1 and not value.type.is_vector else value


def _load(
    math: IndexMath, pointer: Value, held: Representation, offset: Position, mask: Value | None, metadata: str
) -> tuple[Value, ...]:
    fb = math.fb
    if isinstance(offset, Affine) and (math.lanes == 1 or offset.step == 0):
        return _load_scalar(math, pointer, held, offset, metadata)
    align = held.memory.size_bytes
    if isinstance(offset, Affine) and offset.step == 1:
        if held.parts == 1:
            address = _address(math, pointer, held, offset)
            return (_load_vector(fb, vector(held.memory, math.lanes), address, mask, align, metadata),)
        if mask is None:
            address = _address(math, pointer, held, offset)
            pairs = fb.load(vector(held.memory, 2 * math.lanes), address, align, metadata=metadata)
            return tuple(fb.shuffle(pairs, None, range(part, 2 * math.lanes, 2)) for part in (0, 1))
    if isinstance(offset, Affine) and offset.step == -1 and mask is None and held.parts == 1:
        address = _address(math, pointer, held, math.add_constant(Affine(offset.base), 1 - math.lanes))
        loaded = fb.load(vector(held.memory, math.lanes), address, align, metadata=metadata)
        return (fb.shuffle(loaded, None, range(math.lanes - 1, -1, -1)),)
    if isinstance(offset, Affine) and 2 <= offset.step <= _MAX_STEP and held.parts == 1:
        if mask is None:
            return (_load_every(math, pointer, held, offset, metadata),)
        known = lanes_of_mask(mask)
        if known is not None and known == tuple(range(len(known))):
            return (_load_every_first(math, pointer, held, offset, len(known)),)
        if known is not None:
            return _gather(math, pointer, held, offset, mask)
        # At the borders of an array some lanes are missing, between them none.
        choice = fb.if_else(fb.all_lanes(mask), likely=True)
        with choice.then():
            choice.yield_(_load_every(math, pointer, held, offset, metadata))
        with choice.otherwise():
            choice.yield_(*_gather(math, pointer, held, offset, mask))
        return choice.results
    return _gather(math, pointer, held, offset, mask)


_MAX_STEP = 4
"""Steps up to this load what lies between too, which is quicker than a gather."""


def _load_every(math: IndexMath, pointer: Value, held: Representation, offset: Affine, metadata: str) -> Value:
    """Every step-th element out of as many vectors as the step; none reaches beyond the last element wanted."""
    fb, lanes, step = math.fb, math.lanes, offset.step
    first = _address(math, pointer, held, offset)
    last_start = (lanes - 1) * step + 1 - lanes
    found: Value | None = None
    for number in range(step):
        start = min(number * lanes, last_start)
        address = fb.gep(held.memory, first, start) if start else first
        loaded = fb.load(vector(held.memory, lanes), address, held.memory.size_bytes, metadata=metadata)
        wanted = [lane * step - start for lane in range(lanes)]
        if found is None:
            found = fb.shuffle(loaded, None, [min(position, lanes - 1) for position in wanted])
            continue
        found = fb.shuffle(
            found, loaded, [lanes + position if 0 <= position < lanes else lane for lane, position in enumerate(wanted)]
        )
    assert found is not None, "a step is at least 2"
    return found


def _load_every_first(math: IndexMath, pointer: Value, held: Representation, offset: Affine, count: int) -> Value:
    """So many lanes of `_load_every`, zero in the others; nothing behind the last one is read."""
    fb, lanes, step = math.fb, math.lanes, offset.step
    wide = vector(held.memory, lanes)
    first, found, needed = _address(math, pointer, held, offset), zero(wide), (count - 1) * step + 1
    for start in range(0, needed, lanes):
        mask = lane_mask(lanes, min(lanes, needed - start))
        loaded = fb.masked_load(wide, fb.gep(held.memory, first, start), mask, zero(wide), held.memory.size_bytes)
        places = [lane * step - start if lane < count else -1 for lane in range(lanes)]
        order = [lanes + place if 0 <= place < lanes else lane for lane, place in enumerate(places)]
        found = fb.shuffle(found, loaded, order)
    return found


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
    return math.fb.gep(held.memory, pointer, place.vector)


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


def _store(
    math: IndexMath,
    pointer: Value,
    held: Representation,
    offset: Position,
    stored: tuple[Value, ...],
    mask: Value | None,
    *,
    streams: bool,
) -> None:
    fb, align = math.fb, held.memory.size_bytes
    if math.lanes == 1:
        address = _address(math, pointer, held, offset)
        for part, value in enumerate(stored):
            fb.store(value, fb.gep(held.memory, address, part) if part else address, align)
        return
    if isinstance(offset, Affine) and offset.step == 1:
        if held.parts == 1:
            address = _address(math, pointer, held, offset)
            if mask is not None:
                fb.masked_store(stored[0], address, mask, align)
            elif streams:
                store_past_caches(fb, stored, (address,), align)
            else:
                fb.store(stored[0], address, align)
            return
        if mask is None:
            address = _address(math, pointer, held, offset)
            order = [lane + part * math.lanes for lane in range(math.lanes) for part in (0, 1)]
            fb.store(fb.shuffle(stored[0], stored[1], order), address, align)
            return
    lanes = math.vector(offset)
    if held.parts == 2:
        lanes = fb.mul(lanes, 2)
    for part, value in enumerate(stored):
        fb.scatter(value, fb.gep(held.memory, pointer, fb.add(lanes, part) if part else lanes), mask, align)


def lanes_below(fb: FunctionBuilder, base: Base, bound: Value | int, lanes: int) -> Value:
    """The mask of lanes k with base + k < bound."""
    if isinstance(base, int) and isinstance(bound, int):
        return lane_mask(lanes, bound - base)
    numbers = fb.lane_numbers(I64, lanes)
    left = IndexMath(fb, lanes).scalar(base)
    right = constant(I64, bound) if isinstance(bound, int) else bound
    return fb.icmp("slt", numbers, fb.splat(fb.sub(right, left), lanes))
