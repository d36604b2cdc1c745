"""Pieces that all families share: tests of parts, scaling by powers of two, and the modulus as a pair of floats."""

from __future__ import annotations

import math
from typing import TypeAlias

from xlalite.backends.codegen.llvm import FunctionBuilder, Value
from xlalite.backends.codegen.math import double_double as dd
from xlalite.backends.codegen.math.floating import DOUBLE, bits_of, power_of_two, with_sign_of

Complex: TypeAlias = tuple[Value, Value]
"""Real and imaginary part; f64 but where something else is said."""


def rotate(fb: FunctionBuilder, z: Complex) -> Complex:
    """Iz."""
    return fb.fneg(z[1]), z[0]


def rotate_back(fb: FunctionBuilder, z: Complex) -> Complex:
    """-iz."""
    return z[1], fb.fneg(z[0])


def is_zero(fb: FunctionBuilder, x: Value) -> Value:
    """Whether x is a zero of either sign."""
    return fb.fcmp("oeq", x, 0.0)


def is_infinite(fb: FunctionBuilder, x: Value) -> Value:
    """Whether x is an infinity."""
    return fb.fcmp("oeq", fb.fabs(x), math.inf)


def is_finite(fb: FunctionBuilder, x: Value) -> Value:
    """Whether x is neither infinite nor NaN."""
    return fb.fcmp("olt", fb.fabs(x), math.inf)


def is_nan(fb: FunctionBuilder, x: Value) -> Value:
    """Whether x is NaN."""
    return fb.fcmp("uno", x, x)


def has_infinity(fb: FunctionBuilder, z: Complex) -> Value:
    """Whether a part is infinite, which makes a number infinite even if its other part is NaN."""
    return fb.or_(is_infinite(fb, z[0]), is_infinite(fb, z[1]))


def is_origin(fb: FunctionBuilder, z: Complex) -> Value:
    """Whether both parts are zeros."""
    return fb.and_(is_zero(fb, z[0]), is_zero(fb, z[1]))


def signed_zero(fb: FunctionBuilder, *signs: Value) -> Value:
    """A zero whose sign is the product of these signs."""
    result = fb.constant(signs[0].type, 0.0)
    for sign in signs:
        result = with_sign_of(fb, result, sign)
    return result


def binary_exponent(fb: FunctionBuilder, z: Complex) -> Value:
    """The integer k with the larger part of z in [2^k, 2^(k+1)), kept within [-1022, 1022] so that 2^-k is normal."""
    a, b = fb.fabs(z[0]), fb.fabs(z[1])
    larger = fb.select(fb.fcmp("olt", a, b), b, a)
    field = fb.lshr(bits_of(fb, larger), DOUBLE.mantissa_bits)
    return fb.smax(fb.smin(fb.sub(field, DOUBLE.bias), 1022), -1022)


def unit_scaled(fb: FunctionBuilder, z: Complex) -> tuple[Complex, Value]:
    """2^-k z, whose larger part is in [1, 4), and k; of denormals and zero less, of infinities more."""
    k = binary_exponent(fb, z)
    scale = power_of_two(fb, fb.neg(k), DOUBLE)
    return (fb.fmul(z[0], scale), fb.fmul(z[1], scale)), k


def scaled(fb: FunctionBuilder, x: Value, exponent: Value) -> Value:
    """X times two to an integer exponent of at most 3000 in size."""
    for limit in (1000, 1000, 1000):
        step = fb.smax(fb.smin(exponent, limit), -limit)
        x = fb.fmul(x, power_of_two(fb, step, DOUBLE))
        exponent = fb.sub(exponent, step)
    return x


def square_of_modulus(fb: FunctionBuilder, z: Complex) -> dd.Pair:
    """a^2 + b^2 as a pair, for parts whose squares are in range."""
    return dd.add(fb, dd.two_product(fb, z[0], z[0]), dd.two_product(fb, z[1], z[1]))


def modulus_pair(fb: FunctionBuilder, z: Complex) -> dd.Pair:
    """|z| as a pair, for parts whose squares are in range."""
    return dd.square_root(fb, square_of_modulus(fb, z))


def choose(fb: FunctionBuilder, condition: Value, z: Complex, w: Complex) -> Complex:
    """Z where the condition holds, else w."""
    return fb.select(condition, z[0], w[0]), fb.select(condition, z[1], w[1])
