"""Elements of slices, updates, padding and concatenation.

Where an element comes from depends on its position.
"""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.backends.codegen.arrays.index import Affine, Index, Lanes, Position, index_key
from xlalite.backends.codegen.arrays.types import Element, zero_element
from xlalite.backends.codegen.elements.elements import ElementEmitter, ElementRule
from xlalite.backends.codegen.elements.region import Region
from xlalite.backends.codegen.llvm import I64, Value, lane_mask, vector
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.records import dataclass
from xlalite.passes.fusion.seams import Lines, common_source, pieces_of


def _slice(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> Element:
    math = emitter.math
    source = tuple(
        math.add_constant(math.scale(position, stride), start)
        for position, (start, _, stride) in zip(index, instruction.attrs.slice, strict=True)
    )
    return emitter.element(instruction.operand(0), source)


def clamped_starts(
    emitter: ElementEmitter, starts: tuple[HloInstruction, ...], dims: tuple[int, ...], sizes: tuple[int, ...]
) -> tuple[Position, ...]:
    """Start indices of a dynamic slice or update, clamped so that the window of `sizes` lies inside `dims`."""
    return tuple(
        Affine(0) if dim == size else clamped_start(emitter, start, (), dim - size)
        for start, dim, size in zip(starts, dims, sizes, strict=True)
    )


def clamped_start(emitter: ElementEmitter, starts: HloInstruction, index: Index, last: int) -> Position:
    """The start index at `index` of an array of them, clamped into [0, last]; one position where all lanes share it."""
    key = starts, index_key(index), last
    found = emitter.starts.get(key)
    if found is None:
        fb, value = emitter.fb, wide_index(emitter, starts, index)
        is_signed = starts.shape.dtype.is_signed
        clamped = fb.smin(fb.smax(value, 0), last) if is_signed else fb.umin(value, last)
        found = emitter.starts[key] = Lanes(clamped) if value.type.is_vector else Affine(clamped)
    return found


def wide_index(emitter: ElementEmitter, starts: HloInstruction, index: Index) -> Value:
    """The start index at `index` of an array of them in 64 bits, of its own sign; a scalar where all lanes share it."""
    fb, dtype = emitter.fb, starts.shape.dtype
    value = emitter.register(starts, index)
    is_same = not emitter.is_function and all(isinstance(at, Affine) and at.step == 0 for at in index)
    if value.type.is_vector and is_same:
        # What is computed once a row is kept in every lane.
        value = fb.extract(value, 0)
    if dtype.bits == 64:
        return value
    wide = vector(I64, emitter.lanes) if value.type.is_vector else I64
    return (fb.sext if dtype.is_signed else fb.zext)(value, wide)


def _dynamic_slice(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> Element:
    operand, *starts = instruction.operands
    offsets = clamped_starts(emitter, tuple(starts), operand.shape.dims, instruction.shape.dims)
    source = tuple(emitter.math.add(position, offset) for position, offset in zip(index, offsets, strict=True))
    return emitter.element(operand, source)


def _dynamic_update_slice(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> Element:
    operand, update, *starts = instruction.operands
    offsets = clamped_starts(emitter, tuple(starts), operand.shape.dims, update.shape.dims)
    math = emitter.math
    source = tuple(math.add(position, math.scale(offset, -1)) for position, offset in zip(index, offsets, strict=True))
    inside = Region(emitter)
    for position, size, full in zip(source, update.shape.dims, operand.shape.dims, strict=True):
        if size != full:
            inside.require_range(position, size)
    return inside.choose(update, source, lambda: emitter.element(operand, index))


def _pad(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> Element:
    operand, padding_value = instruction.operands
    math = emitter.math
    inside = Region(emitter)
    source: list[Position] = []
    gap = None
    for position, size, (low, high, interior) in zip(index, operand.shape.dims, instruction.attrs.padding, strict=True):
        shifted = math.add_constant(position, -low)
        if interior:
            inside.require_range(shifted, (size - 1) * (interior + 1) + 1)
            known = _gap_between(emitter, shifted, interior + 1)
            if known is not None:
                gap, shifted = known
            else:
                shifted = inside.require_multiple(shifted, interior + 1)
        elif low > 0 or high > 0:
            inside.require_range(shifted, size)
        source.append(shifted)
    if gap is None or inside.is_nowhere:
        return inside.choose(operand, tuple(source), lambda: emitter.element(padding_value, ()))
    outside = emitter.element(padding_value, ())
    found = gap.spread_out(emitter, inside, operand, tuple(source), outside)
    return found if inside.is_everywhere else inside.select(found, outside)


@dataclass(frozen=True, slots=True)
class _Gap:
    """Neighbours of an operand lie `step` lanes apart, the first of them in lane `first`."""

    step: int
    first: int

    def spread_out(
        self, emitter: ElementEmitter, inside: Region, operand: HloInstruction, source: Index, between: Element
    ) -> Element:
        """Elements of the operand, read side by side, with another between them."""
        fb, lanes = emitter.fb, emitter.lanes
        wanted = range(self.first, lanes, self.step)
        mask, packed = lane_mask(lanes, len(wanted)), [*wanted, *[0] * (lanes - len(wanted))]
        if emitter.mask is not None:
            mask = fb.and_(mask, fb.shuffle(emitter.mask, None, packed))
        (found,) = inside.within(emitter.fresh(mask), packed).read((operand,), source)
        places = {lane: number for number, lane in enumerate(wanted)}
        order = [places.get(lane, lanes + lane) for lane in range(lanes)]
        here, there = emitter.spread(found), emitter.spread(between)
        if isinstance(here, tuple) and isinstance(there, tuple):
            return fb.shuffle(here[0], there[0], order), fb.shuffle(here[1], there[1], order)
        assert isinstance(here, Value), "both have one element type"
        assert isinstance(there, Value), "both have one element type"
        return fb.shuffle(here, there, order)


def _gap_between(emitter: ElementEmitter, shifted: Position, step: int) -> tuple[_Gap, Position] | None:
    """Which lanes have elements where `step` lies between two, and the first one's position; None if unknown."""
    math, bounds = emitter.math, emitter.math.bounds(shifted)
    if not isinstance(shifted, Affine) or shifted.step != 1 or emitter.lanes == 1 or bounds is None:
        return None
    remainder = math.remainder_of_base(shifted, step)
    if remainder is None:
        return None
    first, before = -remainder % step, max(0, -(bounds[0] // step))
    start = math.divide(math.add_constant(Affine(shifted.base), first + before * step), step)
    assert isinstance(start, Affine), "one quotient for all lanes"
    start = math.add_constant(start, -before)
    assert isinstance(start, Affine), "one position for all lanes"
    return _Gap(step, first), Affine(start.base, 1)


def _concatenate(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> Element:
    dimension = instruction.attrs.dimension
    math, position = emitter.math, index[dimension]
    source = common_source(instruction)
    if source is not None and isinstance(position, Affine) and (position.step == 0 or emitter.lanes == 1):
        array, parts = source
        places = [
            math.add_constant(math.scale(at, line.stride), line.start) for at, line in zip(index, parts[0], strict=True)
        ]
        places[dimension] = _place_in_source(emitter, instruction, parts, position)
        return emitter.element(array, tuple(places))
    pieces = pieces_of(instruction)

    def from_piece(number: int) -> Element:
        piece, begin = pieces[number]
        local = math.add_constant(position, -begin)
        place = (*index[:dimension], local, *index[dimension + 1 :])
        if len(pieces) == 1:
            return emitter.element(piece, place)
        inside = Region(emitter)
        inside.require_range(local, piece.shape.dims[dimension])
        if number == len(pieces) - 1:
            return inside.choose(piece, place, lambda: zero_element(instruction.shape.dtype, 1))
        return inside.choose(piece, place, lambda: from_piece(number + 1))

    return from_piece(0)


def _place_in_source(
    emitter: ElementEmitter, concatenate: HloInstruction, parts: Sequence[Lines], position: Affine
) -> Position:
    """Where along the concatenated dimension the array that all pieces are parts of has an element."""
    fb, math, dimension = emitter.fb, emitter.math, concatenate.attrs.dimension
    bounds = math.bounds(position) or (0, concatenate.shape.dims[dimension] - 1)
    found: Affine | None = None
    for (piece, begin), lines in reversed(list(zip(pieces_of(concatenate), parts, strict=True))):
        end = begin + piece.shape.dims[dimension]
        if bounds[1] < begin or bounds[0] >= end:
            continue
        line = lines[dimension]
        place = math.add_constant(math.scale(position, line.stride), line.start - begin * line.stride)
        assert isinstance(place, Affine), "an affine position moved and scaled is affine"
        if found is not None:
            is_before = fb.icmp("slt", math.scalar(position.base), end)
            place = Affine(fb.select(is_before, math.scalar(place.base), math.scalar(found.base)))
        found = place
    assert found is not None, "a position lies in one of the pieces"
    return found


ELEMENT_RULES: dict[str, ElementRule] = {
    "slice": _slice,
    "dynamic-slice": _dynamic_slice,
    "dynamic-update-slice": _dynamic_update_slice,
    "pad": _pad,
    "concatenate": _concatenate,
}
