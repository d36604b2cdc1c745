"""Quotient, modulus, direction and square roots."""

from __future__ import annotations

import math
from collections.abc import Callable

from xlalite.backends.codegen.complex_math.parts import (
    Complex,
    binary_exponent,
    choose,
    has_infinity,
    is_finite,
    is_infinite,
    is_nan,
    is_origin,
    is_zero,
    modulus_pair,
    scaled,
    signed_zero,
    square_of_modulus,
    unit_scaled,
)
from xlalite.backends.codegen.llvm import FunctionBuilder, Value
from xlalite.backends.codegen.math import double_double as dd
from xlalite.backends.codegen.math.floating import DOUBLE, mended_quotient, power_of_two
from xlalite.backends.codegen.math.roots import inverse_root_for_single, root_for_single


def quotient(fb: FunctionBuilder, x: Complex, y: Complex) -> Complex:
    """(ac + bd + (bc - ad)i) / (c^2 + d^2) of numbers scaled by powers of two, with sums as pairs.

    The dividend is scaled only where products would leave the range: a part far below the other keeps its digits.
    """
    size = binary_exponent(fb, x)
    up = fb.select(fb.icmp("sgt", size, 900), fb.constant(size.type, 200), 0)
    up = fb.select(fb.icmp("slt", size, -700), -300, up)
    shrink = power_of_two(fb, fb.neg(up), DOUBLE)
    a, b = fb.fmul(x[0], shrink), fb.fmul(x[1], shrink)
    (c, d), down = unit_scaled(fb, y)
    norm = square_of_modulus(fb, (c, d))
    exponent = fb.sub(up, down)

    def part(first: tuple[Value, Value], second: tuple[Value, Value]) -> Value:
        total = dd.add(fb, dd.two_product(fb, *first), dd.two_product(fb, *second))
        # A total of zero has the sign that the plain sum gives it.
        exact = dd.collapse(fb, dd.divide(fb, total, norm))
        plain = fb.fadd(fb.fmul(*first), fb.fmul(*second))
        return scaled(fb, fb.select(fb.fcmp("oeq", total[0], 0.0), plain, exact), exponent)

    ordinary = part((a, c), (b, d)), part((b, c), (fb.fneg(a), d))
    return _with_infinities(fb, x, y, ordinary)


def quotient_of_singles(fb: FunctionBuilder, x: Complex, y: Complex) -> Complex:
    """The same for parts that are f32 numbers: products are exact and nothing leaves the range of f64."""
    (a, b), (c, d) = x, y
    norm = fb.fadd(fb.fmul(c, c), fb.fmul(d, d))
    inverse = fb.fdiv(fb.constant(norm.type, 1.0), norm) if fb.module.target.has_fma else None

    def part(total: Value) -> Value:
        if inverse is None:
            return fb.fdiv(total, norm)
        nothing = fb.fmul(total, inverse)  # NaN by a norm of zero
        return fb.select(fb.fcmp("oeq", total, 0.0), nothing, mended_quotient(fb, total, norm, inverse))

    real, imaginary = fb.fadd(fb.fmul(a, c), fb.fmul(b, d)), fb.fsub(fb.fmul(b, c), fb.fmul(a, d))
    ordinary = part(real), part(imaginary)
    return _mended(fb, x, y, ordinary)


def quotient_by_real(fb: FunctionBuilder, x: Complex, y: Complex) -> Complex:
    """The same for a divisor that is real, finite and not 0: each part by it.

    A zero has the sign of the plain sum of products, and what is not finite counts in the other part, too.
    """
    (a, b), (c, d) = x, y

    def part(number: Value, other: Value) -> Value:
        rest = fb.fmul(other, d)
        total = fb.fadd(fb.fmul(number, c), rest)
        return fb.select(is_zero(fb, number), total, fb.fdiv(fb.fadd(number, rest), c))

    return _mended(fb, x, y, (part(a, b), part(b, fb.fneg(a))))


def _mended(fb: FunctionBuilder, x: Complex, y: Complex, ordinary: Complex) -> Complex:
    """The ordinary quotient; where Annex G differs, one of its parts at least is NaN."""
    return _where_undefined(fb, ordinary, lambda: _with_infinities(fb, x, y, ordinary))


def _where_undefined(fb: FunctionBuilder, ordinary: Complex, mended: Callable[[], Complex]) -> Complex:
    """What stands for a number where a part of it is NaN in any lane."""
    branch = fb.if_else(fb.any_lane(fb.fcmp("uno", *ordinary)), likely=False)
    with branch.then():
        branch.yield_(*mended())
    with branch.otherwise():
        branch.yield_(*ordinary)
    real, imaginary = branch.results
    return real, imaginary


def _with_infinities(fb: FunctionBuilder, x: Complex, y: Complex, result: Complex) -> Complex:
    """The quotient with Annex G's zero divisors, infinite dividends and infinite divisors put in."""
    (a, b), (c, d) = x, y

    def unit(part: Value) -> Value:
        """1 for infinity and 0 for the rest, with the sign kept."""
        one = fb.select(is_infinite(fb, part), fb.constant(part.type, 1.0), 0.0)
        return fb.copysign(one, part)

    def product(factor: float, a: Value, b: Value, c: Value, d: Value) -> Complex:
        real = fb.fadd(fb.fmul(a, c), fb.fmul(b, d))
        return fb.fmul(real, factor), fb.fmul(fb.fsub(fb.fmul(b, c), fb.fmul(a, d)), factor)

    finite_x = fb.and_(is_finite(fb, a), is_finite(fb, b))
    finite_y = fb.and_(is_finite(fb, c), is_finite(fb, d))
    by_zero = fb.and_(is_origin(fb, y), fb.not_(fb.and_(is_nan(fb, a), is_nan(fb, b))))
    unbounded = fb.copysign(fb.constant(c.type, math.inf), c)
    infinite = product(math.inf, unit(a), unit(b), c, d)
    # Scaled, because zero times a sum that overflowed would be NaN.
    vanishing = product(0.0, *unit_scaled(fb, x)[0], unit(c), unit(d))
    result = choose(fb, fb.and_(has_infinity(fb, x), finite_y), infinite, result)
    result = choose(fb, fb.and_(finite_x, has_infinity(fb, y)), vanishing, result)
    return choose(fb, by_zero, (fb.fmul(unbounded, a), fb.fmul(unbounded, b)), result)


def absolute(fb: FunctionBuilder, z: Complex) -> Value:
    """The modulus; infinite if either part is, even if the other is NaN."""
    near_one, k = unit_scaled(fb, z)
    size = fb.fmul(dd.collapse(fb, modulus_pair(fb, near_one)), power_of_two(fb, k, DOUBLE))
    return fb.select(has_infinity(fb, z), math.inf, size)


def absolute_of_single(fb: FunctionBuilder, z: Complex) -> Value:
    """The same for parts that are f32 numbers, whose squares are exact."""
    size = root_for_single(fb, fb.fadd(fb.fmul(z[0], z[0]), fb.fmul(z[1], z[1])))
    return fb.select(has_infinity(fb, z), math.inf, size)


def direction(fb: FunctionBuilder, z: Complex) -> Complex:
    """The unit number z / |z|; a zero is itself, and an infinite part beside a finite one is 1 beside 0."""
    near_one, _ = unit_scaled(fb, z)
    modulus = modulus_pair(fb, near_one)
    zero = fb.constant(z[0].type, 0.0)
    ordinary = tuple(dd.collapse(fb, dd.divide(fb, (part, zero), modulus)) for part in near_one)
    # A pair's low part loses its bits near the bottom of the range.
    ordinary = tuple(
        fb.select(fb.fcmp("olt", fb.fabs(part), 2.0**-900), fb.fdiv(part, modulus[0]), exact)
        for part, exact in zip(near_one, ordinary, strict=True)
    )
    return _with_limits(fb, z, (ordinary[0], ordinary[1]))


def direction_of_single(fb: FunctionBuilder, z: Complex) -> Complex:
    """The same for parts that are f32 numbers, whose squares are exact; a part is NaN where there is no direction."""
    inverse = inverse_root_for_single(fb, fb.fadd(fb.fmul(z[0], z[0]), fb.fmul(z[1], z[1])))
    ordinary = fb.fmul(z[0], inverse), fb.fmul(z[1], inverse)
    return _where_undefined(fb, ordinary, lambda: _with_limits(fb, z, ordinary))


def _with_limits(fb: FunctionBuilder, z: Complex, result: Complex) -> Complex:
    """The direction with those of zero, of one infinite part and of NaN put in."""
    result = choose(fb, is_origin(fb, z), z, result)
    limits = tuple(fb.copysign(fb.select(is_infinite(fb, part), fb.constant(part.type, 1.0), 0.0), part) for part in z)
    one_infinite = fb.xor(is_infinite(fb, z[0]), is_infinite(fb, z[1]))
    none_nan = fb.fcmp("ord", z[0], z[1])
    result = choose(fb, fb.and_(one_infinite, none_nan), (limits[0], limits[1]), result)
    return choose(fb, none_nan, result, (fb.fadd(z[0], z[1]), fb.fadd(z[0], z[1])))


def _half_angle(fb: FunctionBuilder, z: Complex) -> tuple[dd.Pair, Complex, Value]:
    """sqrt((|w| + |re w|) / 2) of w = 2^-k z for an even k, as a pair; w; and k / 2."""
    exponent = fb.ashr(unit_scaled(fb, z)[1], 1)
    scale = power_of_two(fb, fb.mul(exponent, -2), DOUBLE)
    w = fb.fmul(z[0], scale), fb.fmul(z[1], scale)
    half_sum = dd.add_float(fb, modulus_pair(fb, w), fb.fabs(w[0]))
    return dd.square_root(fb, (fb.fmul(half_sum[0], 0.5), fb.fmul(half_sum[1], 0.5))), w, exponent


def square_root(fb: FunctionBuilder, z: Complex) -> Complex:
    """The root with a non-negative real part; the imaginary part has the sign of z's."""
    a, b = z
    pair, _, exponent = _half_angle(fb, z)
    large = fb.fmul(dd.collapse(fb, pair), power_of_two(fb, exponent, DOUBLE))
    large = fb.select(is_infinite(fb, a), math.inf, large)
    small = fb.fdiv(fb.fabs(b), fb.fmul(large, 2.0))
    small = fb.select(is_origin(fb, z), 0.0, small)
    right = fb.fcmp("oge", a, 0.0)
    real, imaginary = fb.select(right, large, small), fb.select(right, small, large)
    real = fb.select(is_infinite(fb, b), math.inf, real)
    return real, fb.copysign(fb.select(is_infinite(fb, b), math.inf, imaginary), b)


def reciprocal_root(fb: FunctionBuilder, z: Complex) -> Complex:
    """The root's inverse conj(sqrt z) / |z|; infinite at 0, where the direction is open, and 0 at infinity."""
    a, b = z
    large, w, exponent = _half_angle(fb, z)
    modulus = modulus_pair(fb, w)
    down = fb.neg(exponent)
    over_large = dd.divide(fb, large, modulus)
    half = fb.fdiv(fb.fmul(fb.fabs(w[1]), 0.5), fb.fmul(dd.collapse(fb, large), modulus[0]))
    right = fb.fcmp("oge", a, 0.0)
    first, second = dd.collapse(fb, over_large), half
    real = scaled(fb, fb.select(right, first, second), down)
    imaginary = fb.fneg(fb.copysign(scaled(fb, fb.select(right, second, first), down), b))
    infinite, origin = has_infinity(fb, z), is_origin(fb, z)
    real = fb.select(infinite, 0.0, fb.select(origin, math.inf, real))
    imaginary = fb.select(infinite, fb.fneg(signed_zero(fb, b)), fb.select(origin, math.nan, imaginary))
    return real, imaginary
