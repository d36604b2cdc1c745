"""The inverse trigonometric and hyperbolic functions.

asin and acos after Hull, Fairgrieve and Tang, "Implementing the complex arcsine and arccosine functions using exception
handling" (ACM TOMS 23, 1997), whose cancellations go away in sums of positive terms; the others turn the plane.
"""

from __future__ import annotations

import math

from xlalite.backends.codegen.complex_math.algebraic import absolute
from xlalite.backends.codegen.complex_math.logarithm import log_of_modulus
from xlalite.backends.codegen.complex_math.parts import (
    Complex,
    has_infinity,
    is_nan,
    is_zero,
    rotate,
    rotate_back,
    scaled,
    square_of_modulus,
    unit_scaled,
)
from xlalite.backends.codegen.llvm import FunctionBuilder, Value
from xlalite.backends.codegen.math import emit_math

# From here on 1 does not count beside the square of the larger part.
_HUGE = 2.0**400
# From here down squares may underflow; above, one root of a product has fewer roundings than a product of roots.
_TINY = 2.0**-400


def _is_huge(fb: FunctionBuilder, z: Complex) -> Value:
    return fb.or_(fb.fcmp("ogt", fb.fabs(z[0]), _HUGE), fb.fcmp("ogt", fb.fabs(z[1]), _HUGE))


def _cosine_and_height(fb: FunctionBuilder, z: Complex) -> tuple[Value, Value]:
    """sqrt(A^2 - a^2) and the size of the imaginary part of asin z, with A half the sum of the distances from +-1.

    The angle of (a, the first) is the real part of acos, that of (the first, a) of asin.
    """
    x, y = fb.fabs(z[0]), fb.fabs(z[1])
    more, less, beyond = fb.fadd(x, 1.0), fb.fsub(fb.constant(x.type, 1.0), x), fb.fsub(x, 1.0)
    far, near = absolute(fb, (more, y)), absolute(fb, (beyond, y))
    half_sum = fb.fmul(fb.fadd(far, near), 0.5)
    reach = fb.fadd(half_sum, x)
    outer = fb.fcmp("ogt", x, 1.0)
    # A - x and A - 1 as sums of positive terms; y is taken out of the root where its square could underflow.
    to_far, to_near = fb.fdiv(y, fb.fadd(far, more)), fb.fadd(near, fb.fabs(beyond))
    ratio = fb.fdiv(y, to_near)
    inside = fb.sqrt(fb.fmul(fb.fmul(reach, fb.fma(y, to_far, to_near)), 0.5))
    steepness = fb.fadd(fb.fdiv(reach, fb.fadd(far, more)), fb.fdiv(reach, to_near))
    outside = fb.fmul(y, fb.sqrt(fb.fmul(steepness, 0.5)))
    cosine = fb.select(outer, outside, inside)
    slope = fb.fmul(fb.fadd(to_far, ratio), 0.5)
    # x < 1: A - 1 = y * slope. x >= 1: A - 1 = (y * to_far + near + (x - 1)) / 2.
    steep = fb.fmul(slope, fb.fadd(half_sum, 1.0))
    apart = fb.fmul(fb.sqrt(y), fb.sqrt(steep))
    rising = fb.select(fb.fcmp("olt", y, _TINY), apart, fb.sqrt(fb.fmul(y, steep)))
    below = emit_math(fb, "log-plus-one", fb.fma(y, slope, rising))
    twice = fb.fma(y, to_far, to_near)
    root = fb.sqrt(fb.fmul(twice, fb.fmul(fb.fadd(half_sum, 1.0), 0.5)))
    above = emit_math(fb, "log-plus-one", fb.fma(twice, 0.5, root))
    height = fb.select(fb.fcmp("olt", less, 0.0), above, fb.select(is_zero(fb, less), above, below))
    height = fb.select(fb.and_(is_zero(fb, y), fb.fcmp("ole", x, 1.0)), 0.0, height)
    huge = _is_huge(fb, z)
    height = fb.select(huge, fb.fadd(log_of_modulus(fb, z), math.log(2.0)), height)
    return fb.select(huge, y, cosine), height


def arc_sine(fb: FunctionBuilder, z: Complex) -> Complex:
    """The inverse sine."""
    a, b = z
    cosine, height = _cosine_and_height(fb, z)
    real = fb.select(is_zero(fb, a), a, emit_math(fb, "atan2", a, cosine))
    return real, fb.copysign(height, b)


def arc_cosine(fb: FunctionBuilder, z: Complex) -> Complex:
    """The inverse cosine."""
    a, b = z
    cosine, height = _cosine_and_height(fb, z)
    real = emit_math(fb, "atan2", cosine, a)
    real = fb.select(fb.and_(is_zero(fb, a), is_nan(fb, b)), math.pi / 2, real)
    return real, fb.fneg(fb.copysign(height, b))


def inverse_hyperbolic_sine(fb: FunctionBuilder, z: Complex) -> Complex:
    """-i asin(iz)."""
    return rotate_back(fb, arc_sine(fb, rotate(fb, z)))


def inverse_hyperbolic_cosine(fb: FunctionBuilder, z: Complex) -> Complex:
    """The inverse cosine turned by a quarter, towards the right half of the plane."""
    real, imaginary = arc_cosine(fb, z)
    return fb.fabs(imaginary), fb.copysign(real, z[1])


def inverse_hyperbolic_tangent(fb: FunctionBuilder, z: Complex) -> Complex:
    """log1p(4a / ((1 - a)^2 + b^2)) / 4 + i arg((1 - a)(1 + a) - b^2 + 2bi) / 2 for a >= 0, and odd."""
    a, b = z
    x, y = fb.fabs(a), fb.fabs(b)
    one = fb.constant(a.type, 1.0)
    less, more = fb.fsub(one, x), fb.fadd(x, 1.0)
    norm = fb.fma(less, less, fb.fmul(y, y))
    real = fb.fmul(emit_math(fb, "log-plus-one", fb.fdiv(fb.fmul(x, 4.0), norm)), 0.25)
    # Beside 1 the square of y may underflow; there the modulus of 1 + z is 2.
    at_one = fb.and_(is_zero(fb, less), fb.fcmp("olt", y, 2.0**-60))
    real = fb.select(at_one, fb.fmul(fb.fsub(fb.constant(a.type, math.log(2.0)), emit_math(fb, "log", y)), 0.5), real)
    angle = fb.fmul(emit_math(fb, "atan2", fb.fadd(y, y), fb.fma(less, more, fb.fneg(fb.fmul(y, y)))), 0.5)
    huge = _is_huge(fb, z)
    near_one, k = unit_scaled(fb, (x, y))
    inverse = scaled(fb, fb.fdiv(near_one[0], square_of_modulus(fb, near_one)[0]), fb.neg(k))
    real = fb.select(huge, fb.select(has_infinity(fb, z), 0.0, inverse), real)
    undefined = fb.and_(fb.fcmp("uno", a, b), fb.fcmp("une", y, math.inf))
    angle = fb.select(huge, fb.select(undefined, math.nan, fb.constant(a.type, math.pi / 2)), angle)
    real = fb.select(is_zero(fb, a), a, fb.copysign(real, a))
    return real, fb.copysign(angle, b)


def arc_tangent(fb: FunctionBuilder, z: Complex) -> Complex:
    """-i atanh(iz)."""
    return rotate_back(fb, inverse_hyperbolic_tangent(fb, rotate(fb, z)))
