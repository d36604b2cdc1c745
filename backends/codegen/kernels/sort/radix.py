"""Sorts records of a key and, where wanted, a position by the digits of their keys, the last digit first; stable.

Counting of all digits takes one pass, and so does moving the records by each digit. A digit that all keys share moves
nothing. Few records are put in order one by one instead.
"""

from __future__ import annotations

from dataclasses import dataclass

from xlalite.backends.codegen.arrays.index import Affine, IndexMath
from xlalite.backends.codegen.arrays.ir_array import ArrayView, lanes_below
from xlalite.backends.codegen.kernels.sort.keys import UNSIGNED
from xlalite.backends.codegen.llvm import I8, I32, I64, FunctionBuilder, Type, Value

_RANKS_PER_LANE = 3000
_DIGIT_BITS = 8
_DIGITS = 1 << _DIGIT_BITS

POSITION = I32
"""The type of a position in a row."""


@dataclass(frozen=True, slots=True)
class Records:
    """Arrays of keys, and of positions if records have them, in two buffers each.

    Attributes:
        count: Number of records; known now.
        key: Type of a key.
        keys: The buffer that holds the keys, and one as large.
        positions: The same of the positions; None where keys are all there is.
        lanes: Keys that are compared at once.
    """

    count: int
    key: Type
    lanes: int
    keys: tuple[Value, Value]
    positions: tuple[Value, Value] | None


def counter_bytes(count: int, key: Type, lanes: int) -> int:
    """Memory that sorting needs beside the records."""
    return 0 if _is_short(count, lanes) else key.bits // _DIGIT_BITS * _DIGITS * 4


def _is_short(count: int, lanes: int) -> bool:
    """Whether comparing all with all, many at once, is quicker than to count digits."""
    return count * count <= _RANKS_PER_LANE * lanes


def radix_sort(fb: FunctionBuilder, records: Records, counters: Value) -> tuple[Value, Value | None]:
    """Emits the sort by rising keys: where keys and positions are then."""
    if _is_short(records.count, records.lanes):
        _place_by_rank(fb, records)
        return records.keys[1], records.positions[1] if records.positions is not None else None
    _count_digits(fb, records, counters)
    buffers = [*records.keys, *(records.positions or ())]
    with fb.carried_loop(0, records.key.bits // _DIGIT_BITS, 1, buffers) as loop:
        own = fb.gep(I32, counters, fb.mul(loop.index, _DIGITS))
        source, target, *positions = loop.values
        shift = _resize(fb, fb.mul(loop.index, _DIGIT_BITS), records.key)
        first = _digit(fb, fb.load(records.key, source), shift)
        moves = fb.icmp("ne", fb.load(I32, fb.gep(I32, own, first)), records.count)
        with fb.if_(moves):
            _sum_up(fb, own)
            with fb.loop(0, records.count) as number:
                key = fb.load(records.key, fb.gep(records.key, source, number))
                place = fb.gep(I32, own, _digit(fb, key, shift))
                to = fb.load(I32, place)
                fb.store(fb.add(to, 1), place)
                to = fb.zext(to, I64)
                fb.store(key, fb.gep(records.key, target, to))
                if positions:
                    position = fb.load(POSITION, fb.gep(POSITION, positions[0], number))
                    fb.store(position, fb.gep(POSITION, positions[1], to))
        swapped = [target, source, *reversed(positions)]
        loop.yield_(*(fb.select(moves, a, b) for a, b in zip(swapped, loop.values, strict=True)))
    keys, _, *found = loop.results
    return keys, found[0] if found else None


def _place_by_rank(fb: FunctionBuilder, records: Records) -> None:
    """Moves each record behind as many as have smaller keys, or equal ones and stand before it."""
    (source, target), lanes = records.keys, records.lanes
    math = IndexMath(fb, lanes)
    view = ArrayView.row_major(source, UNSIGNED[records.key.bits], (records.count,))
    full = records.count - records.count % lanes
    numbers = fb.lane_numbers(I32, lanes)
    with fb.loop(0, records.count) as own:
        key = fb.load(records.key, fb.gep(records.key, source, own))
        here, this = fb.splat(key, lanes), fb.splat(fb.trunc(own, I32), lanes)

        def count(begin: Value | int, mask: Value | None) -> Value:
            others = view.read(math, (Affine(begin, 1),), mask)
            assert isinstance(others, Value), "an integer is one register"
            base = fb.constant(I32, begin) if isinstance(begin, int) else fb.trunc(begin, I32)
            is_before = fb.icmp("slt", fb.add(fb.splat(base, lanes), numbers), this)
            smaller = fb.or_(fb.icmp("ult", others, here), fb.and_(fb.icmp("eq", others, here), is_before))
            bits = fb.mask_bits(smaller if mask is None else fb.and_(smaller, mask))
            return _resize(fb, fb.ctpop(bits), I64)

        with fb.carried_loop(0, full, lanes, [fb.constant(I64, 0)]) as loop:
            loop.yield_(fb.add(loop.values[0], count(loop.index, None)))
        (rank,) = loop.results
        if full < records.count:
            rank = fb.add(rank, count(full, lanes_below(fb, full, records.count, lanes)))
        fb.store(key, fb.gep(records.key, target, rank))
        if records.positions is not None:
            position = fb.load(POSITION, fb.gep(POSITION, records.positions[0], own))
            fb.store(position, fb.gep(POSITION, records.positions[1], rank))


def _count_digits(fb: FunctionBuilder, records: Records, counters: Value) -> None:
    fb.memset(counters, 0, counter_bytes(records.count, records.key, records.lanes), align=64)
    with fb.loop(0, records.count) as number:
        key = fb.load(records.key, fb.gep(records.key, records.keys[0], number))
        for digit in range(records.key.bits // _DIGIT_BITS):
            shift = fb.constant(records.key, digit * _DIGIT_BITS)
            place = fb.gep(I32, counters, fb.add(_digit(fb, key, shift), digit * _DIGITS))
            fb.store(fb.add(fb.load(I32, place), 1), place)


def _sum_up(fb: FunctionBuilder, counters: Value) -> None:
    """Replaces each count by the number of records with smaller digits."""
    with fb.carried_loop(0, _DIGITS, 1, [fb.constant(I32, 0)]) as loop:
        place = fb.gep(I32, counters, loop.index)
        count = fb.load(I32, place)
        fb.store(loop.values[0], place)
        loop.yield_(fb.add(loop.values[0], count))


def _digit(fb: FunctionBuilder, key: Value, shift: Value) -> Value:
    shifted = fb.lshr(key, shift) if key.type is not I8 else key
    return _resize(fb, fb.and_(shifted, _DIGITS - 1) if key.type is not I8 else shifted, I64)


def _resize(fb: FunctionBuilder, value: Value, target: Type) -> Value:
    if value.type is target:
        return value
    return fb.zext(value, target) if value.type.bits < target.bits else fb.trunc(value, target)
