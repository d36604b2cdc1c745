"""log, log1p, power and atan2: the logarithm of a modulus whose square is carried as a pair, and an angle.

Near modulus 1 the logarithm is about |z|^2 - 1, which cancels; there its terms, exact as pairs, are added exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from xlalite.backends.codegen.complex_math.exponential import exponential_of_pair
from xlalite.backends.codegen.complex_math.parts import (
    Complex,
    binary_exponent,
    choose,
    has_infinity,
    is_finite,
    is_nan,
    is_origin,
    is_zero,
    signed_zero,
    square_of_modulus,
    unit_scaled,
)
from xlalite.backends.codegen.llvm import F64, FunctionBuilder, Value
from xlalite.backends.codegen.math import double_double as dd, emit_math
from xlalite.backends.codegen.math.angle_pair import atan2_pair
from xlalite.backends.codegen.math.exponential import LN2_HIGH, LN2_LOW, exp_and_expm1_of_single
from xlalite.backends.codegen.math.floating import DOUBLE, bits_of, power_of_two, with_sign_of
from xlalite.backends.codegen.math.logarithm import Split, log_of_split, split_normal
from xlalite.backends.codegen.math.power import log_pair
from xlalite.backends.codegen.math.trigonometric import cosine_and_sine_of_single


def log_of_modulus(fb: FunctionBuilder, z: Complex, low: Value | None = None) -> Value:
    """The logarithm of |a + low + bi| with `low` below an ulp of a; -inf at 0, infinite where a part is."""
    w, k = unit_scaled(fb, z)
    w_low = None if low is None else fb.fmul(low, power_of_two(fb, fb.neg(k), DOUBLE))
    square = square_of_modulus(fb, w)
    if w_low is not None:
        square = dd.add_float(fb, square, fb.fmul(fb.fmul(w[0], w_low), 2.0))
    split = split_normal(fb, *square)
    assert split.fraction_low is not None, "a pair was split"
    number = fb.fadd(split.exponent, fb.fmul(fb.sitofp(k, F64), 2.0))
    beyond = _beyond_one(fb, z, low)
    near = fb.fcmp("olt", fb.fabs(beyond[0]), 0.25)
    parts = Split(
        fb.select(near, 0.0, number),
        fb.select(near, beyond[0], split.fraction),
        fb.select(near, beyond[1], split.fraction_low),
    )
    result = fb.fmul(log_of_split(fb, parts), 0.5)
    # Below this log(1 + f) is f; the square of a tiny f would underflow and its low part is lost.
    result = fb.select(fb.fcmp("olt", fb.fabs(beyond[0]), 2.0**-60), fb.fmul(beyond[0], 0.5), result)
    result = fb.select(is_origin(fb, z), -math.inf, result)
    return fb.select(has_infinity(fb, z), math.inf, fb.select(fb.fcmp("uno", z[0], z[1]), math.nan, result))


def _beyond_one(fb: FunctionBuilder, z: Complex, low: Value | None) -> dd.Pair:
    """(a + low)^2 + b^2 - 1 as a pair; right where it is below 1/2."""
    a, b = fb.fabs(z[0]), fb.fabs(z[1])
    swapped = fb.fcmp("olt", a, b)
    large, small = fb.select(swapped, b, a), fb.select(swapped, a, b)
    first, second = dd.two_product(fb, large, large), dd.two_product(fb, small, small)
    terms = [second[0], first[1], second[1]]
    if low is not None:
        cross = dd.two_product(fb, fb.fadd(z[0], z[0]), low)
        terms = [second[0], cross[0], first[1], second[1], cross[1], fb.fmul(low, low)]
    total, lost = dd.two_sum(fb, first[0], fb.constant(a.type, -1.0))
    for term in terms:
        total, rest = dd.two_sum(fb, total, term)
        lost = fb.fadd(lost, rest)
    return dd.two_sum(fb, total, lost)


def logarithm(fb: FunctionBuilder, z: Complex) -> Complex:
    """The logarithm log |z| + i arg z."""
    return log_of_modulus(fb, z), emit_math(fb, "atan2", z[1], z[0])


def logarithm_plus_one(fb: FunctionBuilder, z: Complex) -> Complex:
    """log(1 + z), with 1 + a as a pair; a zero is itself."""
    shifted, low = dd.two_sum(fb, z[0], fb.constant(z[0].type, 1.0))
    low = fb.select(is_finite(fb, z[0]), low, 0.0)
    result = log_of_modulus(fb, (shifted, z[1]), low), emit_math(fb, "atan2", z[1], shifted)
    return choose(fb, is_origin(fb, z), z, result)


_Exponential: TypeAlias = Callable[[FunctionBuilder, dd.Pair, dd.Pair], Complex]


def power(fb: FunctionBuilder, z: Complex, w: Complex, exponential: _Exponential | None = None) -> Complex:
    """e^(w log z) with the logarithm and the product as pairs.

    z^0 = 1^w = 1, 0^w = 0 where w has a positive real part, and a zero part of w or of the angle takes no part even
    beside an infinity: a positive number to a real power is a real number.
    """
    c, d = w
    size, angle = _log_modulus_pair(fb, z), atan2_pair(fb, z[1], z[0])
    growth = _sum(fb, _product(fb, c, size), _negated(fb, _product(fb, d, angle)))
    turn = _sum(fb, _product(fb, c, angle), _product(fb, d, size))
    result = (exponential or _exponential)(fb, growth, turn)
    turning = fb.not_(is_finite(fb, turn[0]))
    vanishes = fb.and_(turning, fb.fcmp("oeq", growth[0], -math.inf))
    unbounded = fb.and_(turning, fb.fcmp("oeq", growth[0], math.inf))
    real = fb.select(unbounded, math.inf, fb.select(vanishes, 0.0, result[0]))
    imaginary = fb.select(vanishes, 0.0, fb.select(is_zero(fb, turn[0]), turn[0], result[1]))
    one, zero = fb.constant(c.type, 1.0), fb.constant(c.type, 0.0)
    at_origin = is_origin(fb, z)
    nothing = fb.and_(at_origin, fb.fcmp("ogt", c, 0.0))
    undefined = fb.and_(at_origin, fb.not_(nothing))
    not_a_number = fb.constant(c.type, math.nan)
    z_is_one = fb.and_(fb.fcmp("oeq", z[0], 1.0), is_zero(fb, z[1]))
    result = choose(fb, nothing, (zero, zero), (real, imaginary))
    result = choose(fb, undefined, (not_a_number, not_a_number), result)
    return choose(fb, fb.or_(is_origin(fb, w), z_is_one), (one, zero), result)


def power_of_singles(fb: FunctionBuilder, z: Complex, w: Complex) -> Complex:
    """The same for parts that are f32 numbers, whose exponentials need no pairs."""

    def exponential(fb: FunctionBuilder, growth: dd.Pair, turn: dd.Pair) -> Complex:
        cosine, sine = _turned(fb, cosine_and_sine_of_single(fb, turn[0]), turn[1])
        size, _ = exp_and_expm1_of_single(fb, growth[0])
        return fb.fmul(size, cosine), fb.fmul(size, sine)

    return power(fb, z, w, exponential)


def _exponential(fb: FunctionBuilder, growth: dd.Pair, turn: dd.Pair) -> Complex:
    """e^(growth + turn i)."""
    angle = emit_math(fb, "cosine", turn[0]), emit_math(fb, "sine", turn[0])
    return exponential_of_pair(fb, *growth, *_turned(fb, angle, turn[1]))


def _turned(fb: FunctionBuilder, angle: tuple[Value, Value], low: Value) -> tuple[Value, Value]:
    """Cosine and sine of an angle that is larger by a small one."""
    cosine, sine = angle
    low = fb.select(fb.fcmp("olt", fb.fabs(low), 2.0**-27), low, 0.0)
    return fb.fma(fb.fneg(low), sine, cosine), fb.fma(low, cosine, sine)


def _log_modulus_pair(fb: FunctionBuilder, z: Complex) -> dd.Pair:
    """The logarithm of |z| as a pair, to about 2^-64."""
    near_one, k = unit_scaled(fb, z)
    square = square_of_modulus(fb, near_one)
    high, low = log_pair(fb, square[0])
    low = fb.fadd(low, fb.fdiv(square[1], square[0]))
    number = fb.sitofp(k, F64)
    base = dd.two_sum(fb, fb.fmul(number, LN2_HIGH[F64]), fb.fmul(number, LN2_LOW[F64]))
    total = dd.add(fb, base, (fb.fmul(high, 0.5), fb.fmul(low, 0.5)))
    zero = fb.constant(z[0].type, 0.0)
    total = choose(fb, is_origin(fb, z), (fb.constant(z[0].type, -math.inf), zero), total)
    return choose(fb, has_infinity(fb, z), (fb.constant(z[0].type, math.inf), zero), total)


def _product(fb: FunctionBuilder, factor: Value, x: dd.Pair) -> dd.Pair:
    """The product; zero where either is, and without a low part where it is infinite or near to it."""
    high = fb.fmul(factor, x[0])
    low = fb.fma(factor, x[1], fb.fma(factor, x[0], fb.fneg(high)))
    low = fb.select(fb.fcmp("olt", fb.fabs(high), 2.0**1000), low, 0.0)
    nothing = fb.or_(is_zero(fb, factor), is_zero(fb, x[0]))
    return fb.select(nothing, signed_zero(fb, factor, x[0]), high), fb.select(nothing, 0.0, low)


def _sum(fb: FunctionBuilder, x: dd.Pair, y: dd.Pair) -> dd.Pair:
    """The sum, without a low part where it is infinite or near to it."""
    plain = fb.fadd(x[0], y[0])
    high, low = dd.add(fb, x, y)
    ordinary = fb.fcmp("olt", fb.fabs(plain), 2.0**1000)
    # Adding low parts turns -0 into +0.
    high = fb.select(is_zero(fb, high), plain, high)
    return fb.select(ordinary, high, plain), fb.select(ordinary, low, 0.0)


def _negated(fb: FunctionBuilder, x: dd.Pair) -> dd.Pair:
    return fb.fneg(x[0]), fb.fneg(x[1])


def atan2(fb: FunctionBuilder, y: Complex, x: Complex) -> Complex:
    """-i log((x + iy) / sqrt(x^2 + y^2)).

    With u = x + iy and v = x - iy, so that x^2 + y^2 = uv, the imaginary part is log |v/u| / 2 and the real part
    arg(u/v) / 2, but for the half turns by which the root's angle differs from the mean of the angles of u and v.
    """
    x, y = _scaled_together(fb, x, y)
    u = fb.fsub(x[0], y[1]), fb.fadd(x[1], y[0])
    v = fb.fadd(x[0], y[1]), fb.fsub(x[1], y[0])
    # |u|^2 - |v|^2 = 4p and u/v is a positive multiple of |x|^2 - |y|^2 + 2iq.
    p = _sum_of_products(fb, x[1], y[0], fb.fneg(x[0]), y[1])
    q = _sum_of_products(fb, x[0], y[0], x[1], y[1])
    nearer = choose(fb, fb.fcmp("ogt", p, 0.0), v, u)
    square = fb.fma(nearer[0], nearer[0], fb.fmul(nearer[1], nearer[1]))
    ratio = fb.fdiv(fb.fmul(fb.fabs(p), 4.0), square)
    shorter = fb.fmul(emit_math(fb, "log-plus-one", ratio), -0.25)
    far = fb.fmul(fb.fsub(log_of_modulus(fb, v), log_of_modulus(fb, u)), 0.5)
    imaginary = fb.select(fb.fcmp("olt", square, 2.0**-20), far, with_sign_of(fb, shorter, p))
    of_u, of_v = emit_math(fb, "atan2", u[1], u[0]), emit_math(fb, "atan2", v[1], v[0])
    total, real = fb.fadd(of_u, of_v), fb.fmul(fb.fsub(of_u, of_v), 0.5)
    # Where x^2 + y^2 is nearly a negative number, the sign of its imaginary part tells on which side it lies.
    side = _sum_of_products(fb, x[0], x[1], y[0], y[1])
    x_square, y_square = square_of_modulus(fb, x)[0], square_of_modulus(fb, y)[0]
    larger = choose(fb, fb.fcmp("ogt", x_square, y_square), x, y)
    side = fb.select(is_zero(fb, side), fb.fmul(*larger), side)
    beside = fb.fcmp("olt", fb.fabs(fb.fsub(fb.fabs(total), math.pi)), 0.5)
    crossed = fb.icmp("slt", fb.xor(bits_of(fb, side), bits_of(fb, total)), 0)
    turned = fb.or_(fb.and_(beside, crossed), fb.and_(fb.not_(beside), fb.fcmp("ogt", fb.fabs(total), math.pi)))
    half_turn = fb.constant(q.type, math.pi)
    real = fb.fadd(real, fb.copysign(fb.select(turned, half_turn, 0.0), total))
    excess = fb.select(fb.fcmp("ogt", fb.fabs(real), math.pi), fb.constant(q.type, 2 * math.pi), 0.0)
    real = fb.fsub(real, fb.copysign(excess, real))
    # Where y is small beside x the angles of u and v are nearly equal, and their difference is taken before the angle.
    # So it is beside a half turn, where rounding may lose the side.
    small = fb.fmul(emit_math(fb, "atan2", fb.fmul(q, 2.0), fb.fsub(x_square, y_square)), 0.5)
    turn = fb.select(fb.fcmp("ogt", fb.fabs(fb.fsub(real, small)), 1.0), half_turn, 0.0)
    small = fb.fsub(small, fb.copysign(turn, small))
    at_cut = fb.and_(fb.fcmp("ogt", fb.fabs(real), 2.5), fb.fcmp("ogt", square, 2.0**-20))
    real = fb.select(fb.or_(at_cut, fb.fcmp("olt", y_square, fb.fmul(x_square, 0.25))), small, real)
    return fb.select(is_nan(fb, imaginary), math.nan, real), imaginary


def _scaled_together(fb: FunctionBuilder, x: Complex, y: Complex) -> tuple[Complex, Complex]:
    """Both numbers times one power of two that brings the largest part near 1."""
    k = fb.smax(binary_exponent(fb, x), binary_exponent(fb, y))
    scale = power_of_two(fb, fb.neg(k), DOUBLE)
    return (fb.fmul(x[0], scale), fb.fmul(x[1], scale)), (fb.fmul(y[0], scale), fb.fmul(y[1], scale))


def _sum_of_products(fb: FunctionBuilder, a: Value, b: Value, c: Value, d: Value) -> Value:
    """The sum ab + cd without loss where it cancels; a zero has the sign that the plain sum gives it."""
    exact = dd.collapse(fb, dd.add(fb, dd.two_product(fb, a, b), dd.two_product(fb, c, d)))
    return fb.select(is_zero(fb, exact), fb.fadd(fb.fmul(a, b), fb.fmul(c, d)), exact)
