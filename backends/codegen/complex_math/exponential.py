"""exp, expm1, logistic, and the hyperbolic functions, from which sine, cosine and tangent follow by a quarter turn.

A factor e^a is carried as a number near 1 and a power of two, because a product with a small sine may be finite
where e^a is not. The clamped real part never gives infinity times zero, so that most special values need no care.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from xlalite.backends.codegen.complex_math.parts import (
    Complex,
    choose,
    is_finite,
    is_infinite,
    is_zero,
    rotate,
    rotate_back,
    scaled,
    signed_zero,
)
from xlalite.backends.codegen.llvm import I64, FunctionBuilder, Value
from xlalite.backends.codegen.math import double_double as dd, emit_math
from xlalite.backends.codegen.math.exponential import exp_and_expm1_of_single, exp_pair, expm1_pair
from xlalite.backends.codegen.math.floating import at_least, at_most, with_sign_of
from xlalite.backends.codegen.math.trigonometric import cosine_and_sine_of_single, cosine_size_pair

# e^1500 times the smallest positive number overflows still, and e^-1500 times the largest vanishes.
_LIMIT = 1500.0


def _integer(fb: FunctionBuilder, n: Value) -> Value:
    """A small integral float as an integer; any for NaN."""
    known = fb.select(fb.fcmp("ord", n, n), n, 0.0)
    return fb.fptosi(known, I64)


def exponential_of_pair(fb: FunctionBuilder, a: Value, low: Value | None, cosine: Value, sine: Value) -> Complex:
    """e^(a + low) (cosine + i sine), rounded once after the products."""
    pair, n = exp_pair(fb, at_least(fb, at_most(fb, a, _LIMIT), -_LIMIT), low)
    high, rest = dd.fast_two_sum(fb, fb.constant(a.type, 1.0), pair[0])
    rest = fb.fadd(rest, pair[1])
    exponent = _integer(fb, n)
    # A tiny sine grows before it is multiplied: a product among the denormals would lose bits.
    before = fb.smax(fb.smin(exponent, 1000), 0)
    real, imaginary = (
        scaled(fb, fb.fma(high, part, fb.fmul(rest, part)), fb.sub(exponent, before))
        for part in (scaled(fb, cosine, before), scaled(fb, sine, before))
    )
    return real, imaginary


def exponential(fb: FunctionBuilder, z: Complex) -> Complex:
    """e^a (cos b + i sin b)."""
    a, b = z
    cosine, sine = emit_math(fb, "cosine", b), emit_math(fb, "sine", b)
    return _with_unbounded_angles(fb, z, exponential_of_pair(fb, a, None, cosine, sine))


def exponential_of_single(fb: FunctionBuilder, z: Complex) -> Complex:
    """The same for parts that are f32 numbers, whose products stay in the range of f64."""
    (power, _), (cosine, sine) = exp_and_expm1_of_single(fb, z[0]), cosine_and_sine_of_single(fb, z[1])
    return _with_unbounded_angles(fb, z, (fb.fmul(power, cosine), fb.fmul(power, sine)))


def _with_unbounded_angles(fb: FunctionBuilder, z: Complex, result: Complex) -> Complex:
    """The exponential where a turn by an infinite angle or a NaN does not count, and of real numbers."""
    (a, b), (real, imaginary) = z, result
    turning = fb.not_(is_finite(fb, b))
    vanishes = fb.and_(turning, fb.fcmp("oeq", a, -math.inf))
    real = fb.select(fb.and_(turning, fb.fcmp("oeq", a, math.inf)), math.inf, real)
    real = fb.select(vanishes, 0.0, real)
    imaginary = fb.select(fb.or_(vanishes, is_zero(fb, b)), signed_zero(fb, b), imaginary)
    return real, imaginary


def exponential_minus_one(fb: FunctionBuilder, z: Complex) -> Complex:
    """e^z - 1, accurate near 0: expm1(a) cos b - 2 sin^2(b/2) + i e^a sin b."""
    a, b = z
    real, imaginary = exponential(fb, z)
    half_sine = emit_math(fb, "sine", fb.fmul(b, 0.5))
    cosine = emit_math(fb, "cosine", b)
    shrunk = fb.fmul(fb.fmul(half_sine, half_sine), 2.0)
    near = fb.fma(emit_math(fb, "exponential-minus-one", a), cosine, fb.fneg(shrunk))
    near = fb.select(fb.fcmp("olt", fb.fabs(a), 50.0), near, fb.fsub(real, 1.0))
    return near, imaginary


def exponential_minus_one_of_single(fb: FunctionBuilder, z: Complex) -> Complex:
    """(e^a - 1) - 2 e^a sin^2(b/2) + 2i e^a sin(b/2) cos(b/2) for parts that are f32 numbers."""
    a, b = z
    power, size = exp_and_expm1_of_single(fb, a)
    cosine, sine = cosine_and_sine_of_single(fb, fb.fmul(b, 0.5))
    twice = fb.fmul(fb.fmul(sine, 2.0), power)
    real = fb.mul_add(twice, fb.fneg(sine), size)
    turning = fb.not_(is_finite(fb, b))
    real = fb.select(fb.and_(turning, is_infinite(fb, a)), size, real)
    vanishes = fb.or_(is_zero(fb, b), fb.and_(turning, fb.fcmp("oeq", a, -math.inf)))
    return real, fb.select(vanishes, signed_zero(fb, b), fb.fmul(twice, cosine))


def logistic(fb: FunctionBuilder, z: Complex) -> Complex:
    """1 / (1 + e^-z) by sums of positive terms where nothing cancels.

    With E = e^-|a|, m = 1 - E, C = 2 cos^2(b/2) and D = m^2 + 2 E C = |1 + E cis b|^2 it is (m + E C + i E sin b) / D
    for a >= 0 and (E (C - m) + i E sin b) / D for a < 0. Sums and products are pairs: one by one they would be 5 ulp.
    """
    a, b = z
    below = fb.fneg(fb.fabs(a))
    e, m = emit_math(fb, "exponential", below), fb.fneg(emit_math(fb, "exponential-minus-one", below))
    half = cosine_size_pair(fb, fb.fmul(b, 0.5))
    square, square_low = (fb.fmul(part, 2.0) for part in dd.multiply(fb, half, half))
    turned = dd.multiply(fb, (square, square_low), (e, fb.constant(e.type, 0.0)))
    divisor = dd.add(fb, dd.two_product(fb, m, m), dd.add(fb, turned, turned))
    difference = dd.add_float(fb, (square, square_low), fb.fneg(m))
    negative = dd.multiply(fb, difference, (e, fb.constant(e.type, 0.0)))
    dividend = choose(fb, fb.fcmp("olt", a, 0.0), negative, dd.add_float(fb, turned, m))
    real = dd.collapse(fb, dd.divide(fb, dividend, divisor))
    sine = dd.two_product(fb, e, emit_math(fb, "sine", b))
    return _with_steps(fb, z, (real, dd.collapse(fb, dd.divide(fb, sine, divisor))))


def logistic_of_single(fb: FunctionBuilder, z: Complex) -> Complex:
    """The same for parts that are f32 numbers, without pairs."""
    a, b = z
    e, below = exp_and_expm1_of_single(fb, fb.fneg(fb.fabs(a)))
    cosine, sine = cosine_and_sine_of_single(fb, fb.fmul(b, 0.5))
    twice = fb.fmul(cosine, 2.0)
    square = fb.fmul(twice, cosine)
    turned = fb.fmul(square, e)
    divisor = fb.fadd(fb.mul_add(below, below, turned), turned)
    negative = fb.fmul(e, fb.fadd(square, below))
    dividend = fb.select(fb.fcmp("olt", a, 0.0), negative, fb.fsub(turned, below))
    inverse = fb.fdiv(fb.constant(a.type, 1.0), divisor)
    imaginary = fb.fmul(fb.fmul(fb.fmul(twice, sine), e), inverse)
    return _with_steps(fb, z, (fb.fmul(dividend, inverse), imaginary))


def _with_steps(fb: FunctionBuilder, z: Complex, result: Complex) -> Complex:
    """The logistic function with 0 and 1 at infinities, and that of real numbers."""
    (a, b), (real, imaginary) = z, result
    far = is_infinite(fb, a)
    real = fb.select(far, fb.select(fb.fcmp("ogt", a, 0.0), fb.constant(a.type, 1.0), 0.0), real)
    imaginary = fb.select(fb.or_(is_zero(fb, b), far), signed_zero(fb, b), imaginary)
    return real, imaginary


def _sinh_and_cosh_pairs(fb: FunctionBuilder, size: Value) -> tuple[dd.Pair, dd.Pair, Value]:
    """2^(1-k) sinh, 2^(1-k) cosh of a number that is not negative and the integer k, with e^size - 1 as a pair."""
    m, above = expm1_pair(fb, at_most(fb, size, _LIMIT), 1000.0)
    one = fb.constant(size.type, 1.0)
    power = dd.add_float(fb, m, one)
    sine = dd.add(fb, m, dd.divide(fb, m, power))
    twice = fb.fadd(size, size), fb.constant(size.type, 0.0)
    inverse = dd.divide(fb, (one, twice[1]), power)
    return choose(fb, fb.fcmp("olt", size, 2.0**-28), twice, sine), dd.add(fb, power, inverse), _integer(fb, above)


def _products(fb: FunctionBuilder, z: Complex) -> tuple[Complex, Complex]:
    """(sinh a cos b, cosh a sin b) and (cosh a cos b, sinh a sin b)."""
    a, b = z
    *pairs, exponent = _sinh_and_cosh_pairs(fb, fb.fabs(a))
    sinh, cosh = (fb.fmul(dd.collapse(fb, pair), 0.5) for pair in pairs)
    sinh, cosine, sine = with_sign_of(fb, sinh, a), emit_math(fb, "cosine", b), emit_math(fb, "sine", b)

    def product(size: Value, turn: Value) -> Value:
        return scaled(fb, fb.fmul(size, turn), exponent)

    return (product(sinh, cosine), product(cosh, sine)), (product(cosh, cosine), product(sinh, sine))


def _products_of_single(fb: FunctionBuilder, z: Complex) -> tuple[Complex, Complex]:
    """The same for parts that are f32 numbers."""
    a, b = z
    (power, above), (cosine, sine) = exp_and_expm1_of_single(fb, fb.fabs(a)), cosine_and_sine_of_single(fb, b)
    inverse = fb.fdiv(fb.constant(a.type, 0.5), power)
    sinh = with_sign_of(fb, fb.mul_add(above, inverse, fb.fmul(above, 0.5)), a)
    cosh = fb.mul_add(power, 0.5, inverse)
    return (fb.fmul(sinh, cosine), fb.fmul(cosh, sine)), (fb.fmul(cosh, cosine), fb.fmul(sinh, sine))


_Products: TypeAlias = Callable[[FunctionBuilder, Complex], tuple[Complex, Complex]]


def hyperbolic_sine(fb: FunctionBuilder, z: Complex, products: _Products = _products) -> Complex:
    """Sinh a cos b + i cosh a sin b."""
    a, b = z
    real, imaginary = products(fb, z)[0]
    kept = fb.or_(is_zero(fb, a), fb.and_(is_infinite(fb, a), fb.not_(is_finite(fb, b))))
    return fb.select(kept, a, real), fb.select(is_zero(fb, b), b, imaginary)


def hyperbolic_sine_of_single(fb: FunctionBuilder, z: Complex) -> Complex:
    """The same for parts that are f32 numbers."""
    return hyperbolic_sine(fb, z, _products_of_single)


def hyperbolic_cosine(fb: FunctionBuilder, z: Complex, products: _Products = _products) -> Complex:
    """Cosh a cos b + i sinh a sin b."""
    a, b = z
    real, imaginary = products(fb, z)[1]
    unbounded = fb.and_(is_infinite(fb, a), fb.not_(is_finite(fb, b)))
    either_zero = fb.or_(is_zero(fb, a), is_zero(fb, b))
    return fb.select(unbounded, math.inf, real), fb.select(either_zero, signed_zero(fb, a, b), imaginary)


def hyperbolic_cosine_of_single(fb: FunctionBuilder, z: Complex) -> Complex:
    """The same for parts that are f32 numbers."""
    return hyperbolic_cosine(fb, z, _products_of_single)


def hyperbolic_tangent(fb: FunctionBuilder, z: Complex) -> Complex:
    """The hyperbolic tangent, by tan b, sinh a and cosh a, without cancellation near the poles.

    With t = tan b, s = sinh a, q = 1 + t^2: (q s cosh a + i t) / (1 + q s^2) (Kahan, "Branch cuts for complex
    elementary functions", 1987); beyond |a| = 20, 1 + 4i (t / q) e^(-2 |a|).
    """
    a, b = z
    one = fb.constant(a.type, 1.0)
    size = fb.fabs(a)
    t, (s, c, _) = emit_math(fb, "tan", b), _sinh_and_cosh_pairs(fb, at_most(fb, size, 20.0))
    q = fb.fma(t, t, 1.0)
    # In pairs, for where the quotient is near 1 all roundings count twice; both products are four times theirs.
    weighted = dd.multiply(fb, s, (q, fb.constant(a.type, 0.0)))
    square, dividend = (
        (fb.fmul(high, 0.25), fb.fmul(low, 0.25)) for high, low in (dd.multiply(fb, weighted, x) for x in (s, c))
    )
    divisor = dd.add_float(fb, square, one)
    near = dd.collapse(fb, dd.divide(fb, dividend, divisor))
    decay = emit_math(fb, "exponential", fb.fmul(size, -2.0))
    far_part = fb.fmul(fb.fmul(fb.fdiv(t, q), 4.0), decay)
    far = fb.fcmp("ogt", size, 20.0)
    real = with_sign_of(fb, fb.select(far, one, near), a)
    imaginary = fb.select(far, far_part, fb.fdiv(t, divisor[0]))
    at_infinity = fb.and_(is_infinite(fb, a), fb.not_(is_finite(fb, b)))
    # tan b is unbounded and NaN stands for it; only beside a = 0 is the real part known.
    real = fb.select(is_zero(fb, a), a, fb.select(fb.fcmp("uno", t, a), fb.fadd(t, a), real))
    real = fb.select(at_infinity, with_sign_of(fb, one, a), real)
    imaginary = fb.select(at_infinity, signed_zero(fb, b), imaginary)
    return real, fb.select(is_zero(fb, b), b, imaginary)


def hyperbolic_tangent_of_single(fb: FunctionBuilder, z: Complex) -> Complex:
    """(1 - E^2 + 4i E sin b cos b) / ((1 - E)^2 + 4 E cos^2 b) with E = e^(-2 |a|), for parts that are f32 numbers."""
    a, b = z
    e, below = exp_and_expm1_of_single(fb, fb.fmul(fb.fabs(a), -2.0))
    cosine, sine = cosine_and_sine_of_single(fb, b)
    weighted = fb.fmul(fb.fmul(e, 4.0), cosine)
    inverse = fb.fdiv(fb.constant(a.type, 1.0), fb.mul_add(weighted, cosine, fb.fmul(below, below)))
    real = fb.fmul(fb.fmul(fb.fneg(below), fb.fadd(e, 1.0)), inverse)
    imaginary = fb.fmul(fb.fmul(weighted, sine), inverse)
    at_infinity = fb.and_(is_infinite(fb, a), fb.not_(is_finite(fb, b)))
    real = with_sign_of(fb, fb.select(at_infinity, 1.0, fb.select(is_zero(fb, a), 0.0, real)), a)
    return real, fb.select(fb.or_(at_infinity, is_zero(fb, b)), signed_zero(fb, b), imaginary)


def sine(fb: FunctionBuilder, z: Complex) -> Complex:
    """-i sinh(iz)."""
    return rotate_back(fb, hyperbolic_sine(fb, rotate(fb, z)))


def sine_of_single(fb: FunctionBuilder, z: Complex) -> Complex:
    """The same for parts that are f32 numbers."""
    return rotate_back(fb, hyperbolic_sine_of_single(fb, rotate(fb, z)))


def cosine(fb: FunctionBuilder, z: Complex) -> Complex:
    """cosh(iz)."""
    return hyperbolic_cosine(fb, rotate(fb, z))


def cosine_of_single(fb: FunctionBuilder, z: Complex) -> Complex:
    """The same for parts that are f32 numbers."""
    return hyperbolic_cosine_of_single(fb, rotate(fb, z))


def tangent(fb: FunctionBuilder, z: Complex) -> Complex:
    """-i tanh(iz)."""
    return rotate_back(fb, hyperbolic_tangent(fb, rotate(fb, z)))


def tangent_of_single(fb: FunctionBuilder, z: Complex) -> Complex:
    """The same for parts that are f32 numbers."""
    return rotate_back(fb, hyperbolic_tangent_of_single(fb, rotate(fb, z)))
