"""atan, atan2, asin, acos.

atan has a polynomial on [0, tan(pi / 8)]; larger t <= 1 turn by pi / 4 and t > 1 swap the operands. asin has one on
[0, 1/2]; beyond, the angle's distance from its end is twice the arc sine of sqrt((1 - x) / 2). What rounding takes from
a root or a quotient joins the small terms, where a rough value of it is enough: results are within 0.9 ulp.
Coefficients are made by tests/backends/codegen/math/minimax.py; errors are relative to the function.
"""

from xlalite.backends.codegen.llvm import F32, F64, FunctionBuilder, Type, Value
from xlalite.backends.codegen.math import double_double as dd
from xlalite.backends.codegen.math.floating import at_least, at_most, bits_of, rough_inverse, with_sign_of
from xlalite.backends.codegen.math.polynomial import polynomial

# (atan(t) / t - 1) / t**2 in powers of t**2 on [0, 0.4147].
ATAN = {
    # error 2^-30.3
    F32: (-0.33333316445350647, 0.19998525083065033, -0.1424429714679718, 0.10598264634609222, -0.06087334081530571),
    # error 2^-61.6
    F64: (
        -0.33333333333333326,
        0.19999999999997112,
        -0.1428571428532037,
        0.11111111084085797,
        -0.09090908000975627,
        0.07692279598021178,
        -0.06666181251528304,
        0.05876586824605135,
        -0.05215668263707591,
        0.0449266685791244,
        -0.033226411060771496,
        0.01494831013662679,
    ),
}
# (asin(s) / s - 1) / s**2 in powers of s**2 on [0, 0.5].
_ASIN = {
    # error 2^-27.6
    F32: (0.16666752099990845, 0.074953094124794, 0.045469168573617935, 0.024184575304389, 0.042158838361501694),
    # error 2^-59.8
    F64: (
        0.1666666666666676,
        0.07499999999970866,
        0.04464285717456161,
        0.030381942709804075,
        0.022372214938235685,
        0.017351612803287963,
        0.013980811977669075,
        0.011398976489822042,
        0.010779919704525381,
        0.003707580088431296,
        0.02170477919922166,
        -0.020995512626461158,
        0.03262652887630957,
    ),
}
_HALF_PI = {F32: (1.5707963705062866, -4.371138828673793e-08), F64: (1.5707963267948966, 6.123233995736766e-17)}
_PI = {F32: (3.1415927410125732, -8.742277657347586e-08), F64: (3.141592653589793, 1.2246467991473532e-16)}
_QUARTER_PI = {F32: (0.7853981852531433, -2.1855694143368964e-08), F64: (0.7853981633974483, 3.061616997868383e-17)}
_THREE_QUARTER_PI = {F32: (2.356194496154785, -5.962440319251527e-09), F64: (2.356194490192345, 9.184850993605148e-17)}
_TANGENT_OF_EIGHTH = 0.41421357
# A power of two by which operands outside of [1, this] are scaled, and a number below all that this leaves.
_SCALE = {F32: (2.0**60, 2.0**-100), F64: (2.0**600, 2.0**-600)}


def _turned(fb: FunctionBuilder, base: dd.Pair, factor: Value, head: Value, tail: Value) -> Value:
    """Base + factor * (head + tail), rounded once but for small terms.

    The factor is 1, 2, -1 or -2, and the base's first part is 0 or larger than the product.
    """
    high = fb.mul_add(factor, head, base[0])
    lost = fb.mul_add(factor, head, fb.fsub(base[0], high))
    return fb.fadd(high, fb.fadd(lost, fb.mul_add(factor, tail, base[1])))


def _choose(fb: FunctionBuilder, condition: Value, a: dd.Pair, b: dd.Pair) -> dd.Pair:
    return fb.select(condition, a[0], b[0]), fb.select(condition, a[1], b[1])


def _pair(fb: FunctionBuilder, x: Value, parts: dict[Type, tuple[float, float]] | None = None) -> dd.Pair:
    high, low = parts[x.type.scalar] if parts else (0.0, 0.0)
    return fb.constant(x.type, high), fb.constant(x.type, low)


def _arc_tangent_parts(fb: FunctionBuilder, smaller: Value, larger: Value) -> tuple[Value, Value, Value]:
    """Whether the arc tangent of smaller / larger is taken from pi / 4 on, and its rest as a large and a small term.

    0 <= smaller <= larger, of which the larger and its square are in the range of normal numbers.
    """
    turned = fb.fcmp("ogt", smaller, fb.fmul(larger, _TANGENT_OF_EIGHTH))
    zero = fb.constant(smaller.type, 0.0)
    difference = dd.fast_two_sum(fb, fb.fneg(larger), smaller)
    numerator = _choose(fb, turned, difference, (smaller, zero))
    denominator = _choose(fb, turned, dd.fast_two_sum(fb, larger, smaller), (larger, zero))
    quotient = fb.fdiv(numerator[0], denominator[0])
    back = fb.fneg(quotient)
    remainder = fb.fma(back, denominator[0], numerator[0])
    remainder = fb.fadd(remainder, fb.mul_add(back, denominator[1], numerator[1]))
    square = fb.fmul(quotient, quotient)
    # The derivative of atan, 1 / (1 + t**2), does not count beside how rough the inverse is.
    low = fb.fmul(remainder, rough_inverse(fb, denominator[0]))
    return turned, quotient, fb.mul_add(fb.fmul(square, quotient), polynomial(fb, square, ATAN), low)


def emit_atan(fb: FunctionBuilder, x: Value) -> Value:
    """The angle whose tangent is x."""
    # Any larger number has the same arc tangent.
    size = at_most(fb, fb.fabs(x), 2.0**60)
    one = fb.constant(x.type, 1.0)
    steep = fb.fcmp("ogt", size, one)
    turned, head, tail = _arc_tangent_parts(fb, fb.select(steep, one, size), fb.select(steep, size, one))
    base = _choose(fb, steep, _pair(fb, x, _HALF_PI), _pair(fb, x))
    base = _choose(fb, turned, _pair(fb, x, _QUARTER_PI), base)
    return with_sign_of(fb, _turned(fb, base, fb.select(steep, -1.0, one), head, tail), x)


def emit_atan2(fb: FunctionBuilder, y: Value, x: Value) -> Value:
    """The angle of the point (x, y) in [-pi, pi], with all special cases of IEEE 754."""
    y_size, x_size = fb.fabs(y), fb.fabs(x)
    steep = fb.fcmp("ogt", y_size, x_size)
    larger, smaller = fb.select(steep, y_size, x_size), fb.select(steep, x_size, y_size)
    # Scaled by a power of two, sums and remainders stay in range; what vanishes beside a large number may.
    one = fb.constant(x.type, 1.0)
    up, least = _SCALE[x.type.scalar]
    scale = fb.select(fb.fcmp("ogt", larger, up), 1.0 / up, fb.select(fb.fcmp("olt", larger, 1.0), up, one))
    infinite = float("inf")
    scale = fb.select(fb.fcmp("oeq", larger, infinite), 0.0, scale)
    # Two infinite operands are equal, one is beyond any other.
    numerator = fb.select(fb.fcmp("oeq", smaller, infinite), one, fb.fmul(smaller, scale))
    denominator = fb.select(fb.fcmp("oeq", larger, infinite), one, at_least(fb, fb.fmul(larger, scale), least))
    turned, head, tail = _arc_tangent_parts(fb, numerator, denominator)
    left = fb.icmp("slt", bits_of(fb, x), 0)
    flat = _choose(fb, left, _pair(fb, x, _PI), _pair(fb, x))
    diagonal = _choose(fb, left, _pair(fb, x, _THREE_QUARTER_PI), _pair(fb, x, _QUARTER_PI))
    base = _choose(fb, turned, diagonal, _choose(fb, steep, _pair(fb, x, _HALF_PI), flat))
    factor = fb.select(fb.xor(steep, left), -1.0, one)
    return with_sign_of(fb, _turned(fb, base, factor, head, tail), y)


def _arc_sine_parts(fb: FunctionBuilder, size: Value) -> tuple[Value, Value, Value]:
    """Whether size is beyond 1/2, and the head and tail of its arc sine, or of that of sqrt((1 - size) / 2)."""
    beyond = fb.fcmp("ogt", size, 0.5)
    half = fb.mul_add(size, -0.5, 0.5)
    root = fb.sqrt(half)
    lost = fb.fmul(fb.fmul(fb.fma(fb.fneg(root), root, half), 0.5), rough_inverse(fb, root))
    head, low = fb.select(beyond, root, size), fb.select(beyond, lost, 0.0)
    square = fb.select(beyond, half, fb.fmul(size, size))
    return beyond, head, fb.mul_add(fb.fmul(square, head), polynomial(fb, square, _ASIN), low)


def emit_asin(fb: FunctionBuilder, x: Value) -> Value:
    """The angle in [-pi / 2, pi / 2] whose sine is x; NaN beyond [-1, 1]."""
    beyond, head, tail = _arc_sine_parts(fb, fb.fabs(x))
    base = _choose(fb, beyond, _pair(fb, x, _HALF_PI), _pair(fb, x))
    factor = fb.select(beyond, fb.constant(x.type, -2.0), 1.0)
    return with_sign_of(fb, _turned(fb, base, factor, head, tail), x)


def emit_acos(fb: FunctionBuilder, x: Value) -> Value:
    """The angle in [0, pi] whose cosine is x; NaN beyond [-1, 1]."""
    beyond, head, tail = _arc_sine_parts(fb, fb.fabs(x))
    left = fb.icmp("slt", bits_of(fb, x), 0)
    end = _choose(fb, left, _pair(fb, x, _PI), _pair(fb, x))
    base = _choose(fb, beyond, end, _pair(fb, x, _HALF_PI))
    factor = with_sign_of(fb, fb.select(beyond, fb.constant(x.type, 2.0), -1.0), x)
    return _turned(fb, base, factor, head, tail)
