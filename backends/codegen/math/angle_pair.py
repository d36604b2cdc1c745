"""The angle of a point as a pair of f64 numbers, for functions that multiply it.

It is the arc tangent of a quotient: atan(t) = t + t**3 * p(t**2) on [0, tan(pi / 8)]; larger t <= 1 turn by pi / 4 and
t > 1 swap the operands.
"""

from xlalite.backends.codegen.llvm import F64, FunctionBuilder, Value
from xlalite.backends.codegen.math import double_double as dd
from xlalite.backends.codegen.math.floating import bits_of, with_sign_of
from xlalite.backends.codegen.math.inverse_trigonometric import ATAN
from xlalite.backends.codegen.math.polynomial import estrin

_QUARTER_PI = (0.7853981633974483, 3.061616997868383e-17)
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17)
_PI = (3.141592653589793, 1.2246467991473532e-16)
_TANGENT_OF_EIGHTH = 0.41421356237309503
# Below this the function is its argument, to the last place.
_TINY = 2.0**-28


def _angle(fb: FunctionBuilder, y: dd.Pair, x: dd.Pair) -> dd.Pair:
    """The angle in [0, pi / 2] of a point with finite y >= 0, x >= 0, not both 0."""
    type_ = y[0].type
    steep = fb.fcmp("ogt", y[0], x[0])
    numerator = _choose(fb, steep, x, y)
    denominator = _choose(fb, steep, y, x)
    turned = fb.fcmp("ogt", numerator[0], fb.fmul(denominator[0], _TANGENT_OF_EIGHTH))
    difference = dd.add(fb, numerator, dd.negate(fb, denominator))
    total = dd.add(fb, numerator, denominator)
    quotient, low = dd.divide(fb, _choose(fb, turned, difference, numerator), _choose(fb, turned, total, denominator))
    square = fb.fmul(quotient, quotient)
    tail = fb.fmul(fb.fmul(square, quotient), estrin(fb, square, ATAN[F64]))
    # The derivative of atan is 1 / (1 + t**2): 1 - t**2 is near enough for the low part.
    tail = fb.fadd(tail, fb.mul_add(fb.fneg(square), low, low))
    zeros = fb.constant(type_, 0.0), fb.constant(type_, 0.0)
    quarter = fb.constant(type_, _QUARTER_PI[0]), fb.constant(type_, _QUARTER_PI[1])
    half = fb.constant(type_, _HALF_PI[0]), fb.constant(type_, _HALF_PI[1])
    base = _choose(fb, turned, quarter, zeros)
    high, rest = dd.two_sum(fb, base[0], quotient)
    angle = dd.fast_two_sum(fb, high, fb.fadd(rest, fb.fadd(tail, base[1])))
    complement = dd.add(fb, half, dd.negate(fb, angle))
    return _choose(fb, steep, complement, angle)


def _choose(fb: FunctionBuilder, condition: Value, a: dd.Pair, b: dd.Pair) -> dd.Pair:
    return fb.select(condition, a[0], b[0]), fb.select(condition, a[1], b[1])


def _exact(fb: FunctionBuilder, x: Value) -> dd.Pair:
    return x, fb.constant(x.type, 0.0)


def atan2_pair(fb: FunctionBuilder, y: Value, x: Value) -> dd.Pair:
    """The angle of (x, y) in [-pi, pi], with all special cases of IEEE 754."""
    type_ = x.type
    y_size, x_size = fb.fabs(y), fb.fabs(x)
    larger = fb.select(fb.fcmp("ogt", y_size, x_size), y_size, x_size)
    # Scaling by a power of two keeps products and sums in range; the smaller operand may vanish, as it should, and
    # infinities become 1, zeros stay.
    scale_down = fb.select(fb.fcmp("ogt", larger, 2.0**1000), fb.constant(type_, 2.0**-100), 1.0)
    scale = fb.select(fb.fcmp("olt", larger, 2.0**-900), 2.0**120, scale_down)
    infinite = float("inf")
    some_infinite = fb.fcmp("oeq", larger, infinite)
    y_scaled = fb.select(some_infinite, _one_if_infinite(fb, y_size), fb.fmul(y_size, scale))
    x_scaled = fb.select(some_infinite, _one_if_infinite(fb, x_size), fb.fmul(x_size, scale))
    origin = fb.fcmp("oeq", larger, 0.0)
    x_scaled = fb.select(origin, 1.0, x_scaled)
    angle = _angle(fb, _exact(fb, y_scaled), _exact(fb, x_scaled))
    left = fb.icmp("slt", bits_of(fb, x), 0)
    pi = fb.constant(type_, _PI[0]), fb.constant(type_, _PI[1])
    high, low = _choose(fb, left, dd.add(fb, pi, dd.negate(fb, angle)), angle)
    # Where the quotient is tiny its pair loses bits to underflow; there the angle is the quotient.
    right_tiny = fb.and_(fb.fcmp("olt", y_scaled, fb.fmul(x_scaled, _TINY)), fb.not_(left))
    right_tiny = fb.and_(right_tiny, fb.fcmp("olt", larger, infinite))
    plain = _exact(fb, fb.fdiv(y_size, fb.select(origin, 1.0, x_size)))
    high, low = _choose(fb, right_tiny, plain, (high, low))
    unknown = fb.fcmp("uno", x, y)
    # Both parts have the sign of y, so that a zero keeps it when they are added.
    high, low = fb.select(unknown, float("nan"), high), fb.select(unknown, 0.0, low)
    return with_sign_of(fb, high, y), with_sign_of(fb, low, y)


def _one_if_infinite(fb: FunctionBuilder, size: Value) -> Value:
    return fb.select(fb.fcmp("oeq", size, float("inf")), fb.constant(size.type, 1.0), 0.0)
