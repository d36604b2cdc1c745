"""Lines between arrays of complex numbers and the buffers of `passes`.

Lines of an array lie beside each other (columns: lanes are neighbours in memory) or one after the other (rows: blocks
of as many elements as lanes are transposed in registers; what fills no block goes through a tile).
"""

from __future__ import annotations

from collections.abc import Callable

from xlalite.backends.codegen.arrays.ir_array import lanes_below
from xlalite.backends.codegen.kernels.fft.butterflies import Complex, multiply
from xlalite.backends.codegen.kernels.fft.passes import Lanes
from xlalite.backends.codegen.kernels.lane_exchange import exchanged
from xlalite.backends.codegen.llvm import (
    I64,
    PTR,
    VOID,
    FunctionBuilder,
    Value,
    lane_mask,
    vector,
    zero,
)
from xlalite.hlo.records import dataclass


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines in an array, as many as fill lanes or fewer.

    Attributes:
        place: Address of the first element of the first line.
        length: Elements of a line.
        step: How many elements neighbours are apart: of a line if lines lie beside each other, else the lines.
        count: How many lines.
        swaps: Whether the array has imaginary parts where buffers have real ones; makes a transform its inverse.
        scale: What elements are multiplied by where they are written.
        parts: Numbers of an element in memory; one where elements are real and imaginary parts not kept.
    """

    place: Value
    length: int
    step: int
    count: Value | int
    swaps: bool
    scale: float = 1.0
    parts: int = 2


def load_columns(fb: FunctionBuilder, lanes: Lanes, lines: Lines, buffer: Value) -> None:
    """Reads lines that lie beside each other."""
    with fb.loop(0, lines.length) as number:
        place = fb.gep(lanes.scalar, lines.place, fb.mul(number, 2 * lines.step))
        lanes.store(fb, buffer, number, _read(fb, lanes, lines, place, lines.count))


def store_columns(fb: FunctionBuilder, lanes: Lanes, lines: Lines, buffer: Value) -> None:
    """Writes lines that lie beside each other."""
    with fb.loop(0, lines.length) as number:
        place = fb.gep(lanes.scalar, lines.place, fb.mul(number, 2 * lines.step))
        _write(fb, lanes, lines, place, lines.count, lanes.load(fb, buffer, number))


def load_rows(fb: FunctionBuilder, lanes: Lanes, lines: Lines, buffer: Value, tile: Value) -> None:
    """Reads lines that lie one after the other; the tile has room for as many elements as lanes."""
    side = lanes.count

    def block(first: Value | int, size: int) -> None:
        with fb.loop(0, lines.count) as row:
            for part, numbers in enumerate(_read(fb, lanes, lines, _place(fb, lanes, lines, row, first), size)):
                fb.store(numbers, fb.gep(lanes.wide, tile, fb.add(row, part * side)))
        _exchange(fb, lanes, (lanes.at(fb, buffer, first), 1, 2), (tile, side, 1))

    _blocks(fb, lines.length, side, block)


def store_rows(fb: FunctionBuilder, lanes: Lanes, lines: Lines, buffer: Value, tile: Value) -> None:
    """Writes lines that lie one after the other."""
    side = lanes.count

    def block(first: Value | int, size: int) -> None:
        _exchange(fb, lanes, (tile, side, 1), (lanes.at(fb, buffer, first), 1, 2))
        with fb.loop(0, lines.count) as row:
            real, imaginary = (
                fb.load(lanes.wide, fb.gep(lanes.wide, tile, fb.add(row, part * side))) for part in (0, 1)
            )
            _write(fb, lanes, lines, _place(fb, lanes, lines, row, first), size, (real, imaginary))

    _blocks(fb, lines.length, side, block)


def store_turned(
    fb: FunctionBuilder,
    lanes: Lanes,
    length: int,
    buffer: Value,
    target: Value,
    tile: Value,
    factor: Callable[[Value], Complex],
) -> None:
    """Writes lines to where their elements are neighbours in lanes, each multiplied by a factor of its own.

    Lines follow each other in the target, in whole registers; the factor of elements is found by their number.
    """
    side = lanes.count
    registers = -(-length // side)
    with fb.loop(0, registers) as block:
        first = fb.mul(block, side)
        with fb.loop(0, side) as behind:
            number = fb.add(first, behind)
            found = multiply(fb, lanes.load(fb, buffer, number), factor(number))
            for part, numbers in enumerate(found):
                fb.store(numbers, fb.gep(lanes.wide, tile, fb.add(behind, part * side)))
        _exchange(fb, lanes, (lanes.at(fb, target, block), 1, 2 * registers), (tile, side, 1))


def multiply_line(fb: FunctionBuilder, lanes: Lanes, source: Lines, target: Lines, table: Value) -> None:
    """Writes a line that lies in memory, each element multiplied by one of a table."""
    factors = Lines(table, source.length, source.step, 1, swaps=False)

    def block(first: Value | int, size: int) -> None:
        zero = fb.constant(I64, 0)
        places = [_place(fb, lanes, lines, zero, first) for lines in (source, factors, target)]
        one, other = (
            _read(fb, lanes, lines, place, size) for lines, place in zip((source, factors), places, strict=False)
        )
        _write(fb, lanes, target, places[2], size, multiply(fb, one, other))

    _blocks(fb, source.length, lanes.count, block)


def _blocks(fb: FunctionBuilder, length: int, side: int, block: Callable[[Value | int, int], None]) -> None:
    """Goes through a line by blocks of elements; the last ones are done with some before them, done twice."""
    if length < side:
        block(0, length)
        return
    with fb.loop(0, length, side) as first:
        block(fb.smin(first, length - side) if length % side else first, side)


def _exchange(
    fb: FunctionBuilder, lanes: Lanes, target: tuple[Value, int, int], source: tuple[Value, int, int]
) -> None:
    """Transposes a square of real and one of imaginary parts.

    Both are given by address, and how many registers imaginary parts are from real ones, and lines from each other.
    """
    side = lanes.count

    def build(inner: FunctionBuilder) -> None:
        inner.is_as_written = True
        to, to_part, to_line, origin, part, line = inner.parameters
        with inner.loop(0, 2) as number:
            at = inner.gep(lanes.wide, origin, inner.mul(number, part))
            place = inner.gep(lanes.wide, to, inner.mul(number, to_part))
            lines = [inner.load(lanes.wide, inner.gep(lanes.wide, at, inner.mul(line, row))) for row in range(side)]
            for row, found in enumerate(exchanged(inner, lines)):
                inner.store(found, inner.gep(lanes.wide, place, inner.mul(to_line, row)))
        inner.ret()

    types, attributes = (PTR, I64, I64, PTR, I64, I64), ("noalias", "", "", "noalias readonly", "", "")
    function = fb.module.shared_function(("fft exchange", lanes.wide), "fft_exchange", VOID, types, attributes, build)
    fb.call(function, *target, *source)


def _place(fb: FunctionBuilder, lanes: Lanes, lines: Lines, row: Value, element: Value | int) -> Value:
    """Where an element lies of lines that lie one after the other."""
    return fb.gep(lanes.scalar, lines.place, fb.mul(fb.add(fb.mul(row, lines.step), element), lines.parts))


def _read(fb: FunctionBuilder, lanes: Lanes, lines: Lines, place: Value, count: Value | int) -> Complex:
    """Elements that are neighbours in memory, as many as lanes or fewer."""
    numbers, size = vector(lanes.scalar, lines.parts * lanes.count), lanes.scalar.size_bytes
    mask = _mask(fb, lanes, lines, count)
    found = fb.load(numbers, place, size) if mask is None else fb.masked_load(numbers, place, mask, zero(numbers), size)
    if lines.parts == 1:
        return found, zero(numbers)
    real, imaginary = (fb.shuffle(found, None, range(part, 2 * lanes.count, 2)) for part in (0, 1))
    return (imaginary, real) if lines.swaps else (real, imaginary)


def _write(fb: FunctionBuilder, lanes: Lanes, lines: Lines, place: Value, count: Value | int, element: Complex) -> None:
    real, imaginary = reversed(element) if lines.swaps else element
    if lines.scale != 1.0:
        real, imaginary = fb.fmul(real, lines.scale), fb.fmul(imaginary, lines.scale)
    order = [lane + part * lanes.count for lane in range(lanes.count) for part in (0, 1)]
    numbers, size = fb.shuffle(real, imaginary, order) if lines.parts == 2 else real, lanes.scalar.size_bytes
    mask = _mask(fb, lanes, lines, count)
    if mask is None:
        fb.store(numbers, place, size)
    else:
        fb.masked_store(numbers, place, mask, size)


def _mask(fb: FunctionBuilder, lanes: Lanes, lines: Lines, count: Value | int) -> Value | None:
    """Which numbers of so many elements there are; None if all."""
    numbers = lines.parts * lanes.count
    if isinstance(count, int):
        return lane_mask(numbers, lines.parts * count) if count < lanes.count else None
    return lanes_below(fb, 0, fb.mul(count, lines.parts), numbers)
