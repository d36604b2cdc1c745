"""Transforms of real lines by complex ones.

A real line of even length 2h is a complex line of length h: even positions are real parts, odd ones imaginary parts.
What was computed for z[k] and z[h - k] is taken apart into the spectrum, and put together out of it for the inverse. A
line of odd length is a complex one with zeros.

Lines lie in lanes (the same element of each at once), or one lies in memory (neighbouring elements at once).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from xlalite.backends.codegen.kernels.fft.butterflies import Complex, multiply
from xlalite.backends.codegen.kernels.fft.passes import Lanes
from xlalite.backends.codegen.kernels.fft.twiddles import interleaved, roots
from xlalite.backends.codegen.llvm import FunctionBuilder, Value, vector, vector_constant

_WHOLE_TABLE = 1 << 14
"""Roots in one table; more of them are products of two, so that tables stay small."""
_FINE = 64


def taken_apart(fb: FunctionBuilder, here: Complex, there: Complex, root: Complex) -> Complex:
    """The spectrum at k, out of z[k], z[h - k] and `exp(-pi i k / h)`."""
    total = fb.fadd(here[0], there[0]), fb.fsub(here[1], there[1])
    rest = multiply(fb, (fb.fsub(here[0], there[0]), fb.fadd(here[1], there[1])), root)
    return fb.fmul(fb.fadd(total[0], rest[1]), 0.5), fb.fmul(fb.fsub(total[1], rest[0]), 0.5)


def put_together(fb: FunctionBuilder, here: Complex, there: Complex, root: Complex) -> Complex:
    """Twice z[k], out of the spectrum at k and h - k and `exp(-pi i k / h)`."""
    total = fb.fadd(here[0], there[0]), fb.fsub(here[1], there[1])
    rest = multiply(fb, (fb.fsub(here[0], there[0]), fb.fadd(here[1], there[1])), (root[0], fb.fneg(root[1])))
    return fb.fsub(total[0], rest[1]), fb.fadd(total[1], rest[0])


def lines_apart(fb: FunctionBuilder, lanes: Lanes, half: int, source: Value, target: Value) -> None:
    """Writes the `half + 1` elements of the spectra of lines."""
    real, imaginary = lanes.load(fb, source, 0)
    zero = fb.constant(lanes.wide, 0.0)
    lanes.store(fb, target, 0, (fb.fadd(real, imaginary), zero))
    lanes.store(fb, target, half, (fb.fsub(real, imaginary), zero))
    table = _table(fb, lanes, half)
    with fb.loop(1, half) as number:
        there = lanes.load(fb, source, fb.sub(fb.constant(number.type, half), number))
        found = taken_apart(fb, lanes.load(fb, source, number), there, lanes.factor(fb, table, number))
        lanes.store(fb, target, number, found)


def lines_together(fb: FunctionBuilder, lanes: Lanes, half: int, source: Value, target: Value) -> None:
    """The inverse; imaginary parts of both ends do not count. Buffers hold imaginary parts first."""
    first, last = lanes.load(fb, source, 0)[1], lanes.load(fb, source, half)[1]
    lanes.store(fb, target, 0, (fb.fsub(first, last), fb.fadd(first, last)))
    table = _table(fb, lanes, half)
    with fb.loop(1, half) as number:
        here = lanes.load(fb, source, number)
        there = lanes.load(fb, source, fb.sub(fb.constant(number.type, half), number))
        real, imaginary = put_together(fb, (here[1], here[0]), (there[1], there[0]), lanes.factor(fb, table, number))
        lanes.store(fb, target, number, (imaginary, real))


def mirror_lines(fb: FunctionBuilder, lanes: Lanes, length: int, buffer: Value) -> None:
    """Completes spectra of lines of odd length. The buffer holds imaginary parts first."""
    lanes.store(fb, buffer, 0, (fb.constant(lanes.wide, 0.0), lanes.load(fb, buffer, 0)[1]))
    with fb.loop(1, length // 2 + 1) as number:
        imaginary, real = lanes.load(fb, buffer, number)
        lanes.store(fb, buffer, fb.sub(fb.constant(number.type, length), number), (fb.fneg(imaginary), real))


def row_apart(fb: FunctionBuilder, lanes: Lanes, half: int, source: Value, target: Value) -> None:
    """Writes the `half + 1` elements of the spectrum of a line that is longer than there are lanes."""
    real, imaginary = _numbers(fb, lanes, source, 0)
    zero = fb.constant(lanes.scalar, 0.0)
    _put(fb, lanes, target, 0, (fb.fadd(real, imaginary), zero))
    _put(fb, lanes, target, half, (fb.fsub(real, imaginary), zero))
    _walk(fb, lanes, half, source, target, taken_apart)


def row_together(fb: FunctionBuilder, lanes: Lanes, half: int, source: Value, target: Value) -> None:
    """The inverse, of twice the numbers; imaginary parts of both ends do not count."""
    first, last = _numbers(fb, lanes, source, 0)[0], _numbers(fb, lanes, source, half)[0]
    _put(fb, lanes, target, 0, (fb.fadd(first, last), fb.fsub(first, last)))
    _walk(fb, lanes, half, source, target, put_together)


def row_with_zeros(fb: FunctionBuilder, lanes: Lanes, length: int, source: Value, target: Value) -> None:
    """Writes a real line as a complex one."""
    with fb.loop(0, length) as number:
        real = fb.load(lanes.scalar, fb.gep(lanes.scalar, source, number))
        _put(fb, lanes, target, number, (real, fb.constant(lanes.scalar, 0.0)))


def real_parts_of_row(fb: FunctionBuilder, lanes: Lanes, length: int, source: Value, target: Value) -> None:
    """Writes the real parts of a line."""
    with fb.loop(0, length) as number:
        fb.store(_numbers(fb, lanes, source, number)[0], fb.gep(lanes.scalar, target, number))


def mirror_row(fb: FunctionBuilder, lanes: Lanes, length: int, source: Value, target: Value) -> None:
    """Writes the complete spectrum of a line of odd length."""
    _put(fb, lanes, target, 0, (_numbers(fb, lanes, source, 0)[0], fb.constant(lanes.scalar, 0.0)))
    with fb.loop(1, length // 2 + 1) as number:
        real, imaginary = _numbers(fb, lanes, source, number)
        _put(fb, lanes, target, number, (real, imaginary))
        _put(fb, lanes, target, fb.sub(fb.constant(number.type, length), number), (real, fb.fneg(imaginary)))


def _walk(
    fb: FunctionBuilder,
    lanes: Lanes,
    half: int,
    source: Value,
    target: Value,
    combine: Callable[[FunctionBuilder, Complex, Complex, Complex], Complex],
) -> None:
    """Combines elements k and half - k for all 0 < k < half; the last ones are done with some before them."""
    side = lanes.count
    pairs, size = vector(lanes.scalar, 2 * side), lanes.scalar.size_bytes
    roots_at = _roots(fb, lanes, half)

    def at(pointer: Value, number: Value) -> Value:
        return fb.gep(lanes.scalar, pointer, fb.mul(number, 2))

    with fb.loop(1, half, side) as number:
        first = fb.smin(number, half - side)
        forwards = fb.load(pairs, at(source, first), size)
        backwards = fb.load(pairs, at(source, fb.sub(fb.constant(first.type, half - side + 1), first)), size)
        here = tuple(fb.shuffle(forwards, None, range(part, 2 * side, 2)) for part in (0, 1))
        there = tuple(fb.shuffle(backwards, None, range(2 * side - 2 + part, -1, -2)) for part in (0, 1))
        real, imaginary = combine(fb, (here[0], here[1]), (there[0], there[1]), roots_at(first))
        order = [lane + part * side for lane in range(side) for part in (0, 1)]
        fb.store(fb.shuffle(real, imaginary, order), at(target, first), size)


def _roots(fb: FunctionBuilder, lanes: Lanes, half: int) -> Callable[[Value], Complex]:
    """`exp(-pi i k / half)` for as many numbers k as lanes, given the first."""
    side = lanes.count
    if half <= _WHOLE_TABLE:
        table, pairs = _table(fb, lanes, half), vector(lanes.scalar, 2 * side)

        def held(first: Value) -> Complex:
            place = fb.gep(lanes.scalar, table, fb.mul(first, 2))
            found = fb.load(pairs, place, lanes.scalar.size_bytes)
            real, imaginary = (fb.shuffle(found, None, range(part, 2 * side, 2)) for part in (0, 1))
            return real, imaginary

        return held
    own = roots(np.arange(side), 2 * half)
    near = tuple(vector_constant(lanes.wide, [float(number) for number in part]) for part in (own.real, own.imag))
    fine = fb.module.constant_bytes(interleaved(roots(np.arange(_FINE), 2 * half), lanes.dtype))
    coarse = fb.module.constant_bytes(interleaved(roots(np.arange(0, half, _FINE), 2 * half), lanes.dtype))

    def product(first: Value) -> Complex:
        one = _numbers(fb, lanes, fine, fb.and_(first, _FINE - 1))
        other = _numbers(fb, lanes, coarse, fb.udiv(first, _FINE))
        real, imaginary = multiply(fb, one, other)
        return multiply(fb, (near[0], near[1]), (fb.splat(real, side), fb.splat(imaginary, side)))

    return product


def _table(fb: FunctionBuilder, lanes: Lanes, half: int) -> Value:
    return fb.module.constant_bytes(interleaved(roots(np.arange(half), 2 * half), lanes.dtype))


def _numbers(fb: FunctionBuilder, lanes: Lanes, pointer: Value, element: Value | int) -> Complex:
    place = fb.gep(lanes.scalar, pointer, fb.mul(element, 2) if isinstance(element, Value) else 2 * element)
    return fb.load(lanes.scalar, place), fb.load(lanes.scalar, fb.gep(lanes.scalar, place, 1))


def _put(fb: FunctionBuilder, lanes: Lanes, pointer: Value, element: Value | int, value: Complex) -> None:
    place = fb.gep(lanes.scalar, pointer, fb.mul(element, 2) if isinstance(element, Value) else 2 * element)
    for part, number in enumerate(value):
        fb.store(number, fb.gep(lanes.scalar, place, part))
