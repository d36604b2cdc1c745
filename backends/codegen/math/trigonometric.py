"""sin, cos, tan.

f32 sin and cos reduce by pi, so that one odd polynomial serves both; f64 reduces by pi / 2 to a pair and chooses
between two polynomials. Coefficients are best approximations made by tests/backends/codegen/math/minimax.py; errors are
relative to the function.
"""

from xlalite.backends.codegen.llvm import F32, F64, I32, FunctionBuilder, Value
from xlalite.backends.codegen.math import double_double as dd
from xlalite.backends.codegen.math.argument_reduction import (
    HALF_PI,
    ONE_OVER_PI,
    PI,
    TWO_OVER_PI,
    reduce_by_parts,
    reduce_double,
    reduce_to_pair,
    reduce_to_terms,
    with_large_lanes,
)
from xlalite.backends.codegen.math.floating import DOUBLE, SINGLE, bits_of, float_of, format_of, with_sign_of
from xlalite.backends.codegen.math.polynomial import estrin, horner

# (sin(r) - r) / r**3 in powers of r**2; f32 on [-1.602, 1.602], error 2^-31.0.
_SIN_HALF_TURN = (
    -0.1666666716337204,
    0.008333349600434303,
    -0.00019842898473143578,
    2.7614651116891764e-06,
    -2.52561260793982e-08,
)
# The same for f64 on [-0.793, 0.793], error 2^-61.3.
_SIN = (
    -0.16666666666666666,
    0.008333333333333047,
    -0.00019841269840971987,
    2.7557319080748983e-06,
    -2.5052073087126555e-08,
    1.6054631122373478e-10,
    -7.407186592984342e-13,
)
# (cos(r) - 1 + r**2 / 2) / r**4 in powers of r**2; f64 on [-0.793, 0.793], error 2^-63.2.
_COS = (
    0.04166666666666658,
    -0.0013888888888871024,
    2.480158728758659e-05,
    -2.7557313814288707e-07,
    2.0875651214126775e-09,
    -1.1355963840405186e-11,
)
# (tan(r) - r) / r**3 in powers of r**2; f32 on [-0.793, 0.793], error 2^-29.3.
_TAN = (
    0.3333335220813751,
    0.1333257108926773,
    0.05407097935676575,
    0.02122260071337223,
    0.010995592921972275,
    -0.00011885998537763953,
    0.004481625743210316,
)


def emit_sin(fb: FunctionBuilder, x: Value) -> Value:
    """The sine of an angle in radians."""
    if x.type.scalar is F64:
        return _sine_of_quadrant(fb, x, 0)
    size = fb.fabs(x)
    shifted = fb.mul_add(size, ONE_OVER_PI, SINGLE.rounder)
    n = fb.fsub(shifted, SINGLE.rounder)
    return with_sign_of(fb, _sine_of_half_turns(fb, size, n, bits_of(fb, shifted), 0), x)


def emit_cos(fb: FunctionBuilder, x: Value) -> Value:
    """The cosine of an angle in radians."""
    if x.type.scalar is F64:
        return _sine_of_quadrant(fb, x, 1)
    size = fb.fabs(x)
    # cos x = sin(x + pi / 2): n counts half turns from -1/2 on.
    shifted = fb.fadd(fb.mul_add(size, ONE_OVER_PI, 0.5), SINGLE.rounder)
    n = fb.fsub(fb.fsub(shifted, SINGLE.rounder), 0.5)
    return _sine_of_half_turns(fb, size, n, bits_of(fb, shifted), 1)


def _sine_of_half_turns(fb: FunctionBuilder, size: Value, n: Value, turns: Value, quarters: int) -> Value:
    """The sine of size + quarters * pi / 2 = n * pi + r for an f32 size >= 0; the lowest bit of `turns` is its sign."""

    def adapt(high: Value, quadrant: Value) -> tuple[Value, ...]:
        quadrant = fb.add(quadrant, quarters)
        odd = fb.icmp("ne", fb.and_(quadrant, 1), 0)
        # sin(pi / 2 + r) = sin(pi / 2 - |r|).
        complement = fb.fsub(fb.constant(high.type, HALF_PI[F64][0]), fb.fabs(high))
        folded = fb.fptrunc(fb.select(odd, complement, high), F32)
        return folded, fb.trunc(fb.lshr(quadrant, 1), I32)

    fast = reduce_by_parts(fb, size, n, PI[F32]), turns
    r, turns = with_large_lanes(fb, size, fast, adapt)
    first, *others = _SIN_HALF_TURN
    square, lost = dd.two_product(fb, r, r)
    # sin(r) / r - 1, down to -0.36, with one rounding that counts: no sine may exceed 1.
    small = fb.mul_add(fb.fmul(square, square), horner(fb, square, others), fb.fmul(lost, first))
    result = fb.fma(r, fb.fma(square, first, small), r)
    return float_of(fb, fb.xor(bits_of(fb, result), fb.shl(turns, 31)), SINGLE)


def _sine_of_quadrant(fb: FunctionBuilder, x: Value, quarters: int) -> Value:
    """sin(x + quarters * pi / 2) for f64."""
    high, low, sign = _sine_terms(fb, x, quarters)
    result = fb.fadd(high, low)
    if not quarters:
        # The reduction loses the sign of -0 only; all other sines of 0 do not exist.
        result = fb.select(fb.fcmp("oeq", x, 0.0), x, result)
    return float_of(fb, fb.xor(bits_of(fb, result), sign), format_of(x))


def cosine_size_pair(fb: FunctionBuilder, x: Value) -> dd.Pair:
    """The cosine of an f64 angle, or minus it, as a pair to about 2**-60."""
    high, low, _ = _sine_terms(fb, x, 1)
    return dd.fast_two_sum(fb, high, low)


def cosine_and_sine_of_single(fb: FunctionBuilder, x: Value) -> tuple[Value, Value]:
    """Both of an f64 angle of at most 25 bits, to about 2**-51, with one reduction."""
    r, _, quadrant = reduce_to_terms(fb, x)
    square = fb.fmul(r, r)
    sine = fb.fmul(r, fb.mul_add(square, estrin(fb, square, _SIN), 1.0))
    cosine = fb.mul_add(square, fb.mul_add(square, estrin(fb, square, _COS), -0.5), 1.0)
    odd = fb.icmp("ne", fb.and_(quadrant, 1), 0)

    def turned(size: Value, quadrant: Value) -> Value:
        return float_of(fb, fb.xor(bits_of(fb, size), fb.shl(fb.lshr(quadrant, 1), 63)), DOUBLE)

    return turned(fb.select(odd, sine, cosine), fb.add(quadrant, 1)), turned(fb.select(odd, cosine, sine), quadrant)


def _sine_terms(fb: FunctionBuilder, x: Value, quarters: int) -> tuple[Value, Value, Value]:
    """A large and a small term of sin(x + quarters * pi / 2) for f64, and a sign to turn them by, as bits."""
    (r, low), quadrant = reduce_double(fb, x)
    if quarters:
        quadrant = fb.add(quadrant, quarters)
    square = fb.fmul(r, r)
    start, tail = _cosine_parts(fb, r, low, square)
    odd = fb.icmp("ne", fb.and_(quadrant, 1), 0)
    small = fb.select(odd, tail, _sine_tail(fb, r, low, square))
    return fb.select(odd, start, r), small, fb.shl(fb.lshr(quadrant, 1), 63)


def _sine_tail(fb: FunctionBuilder, r: Value, low: Value, square: Value) -> Value:
    """sin(r + low) - r."""
    # sin(r + low) = sin r + low * cos r, and cos r = 1 - r**2 / 2 is near enough.
    correction = fb.mul_add(fb.fmul(square, -0.5), low, low)
    return fb.mul_add(fb.fmul(square, r), estrin(fb, square, _SIN), correction)


def _cosine_parts(fb: FunctionBuilder, r: Value, low: Value, square: Value) -> dd.Pair:
    """cos(r + low) as 1 - r**2 / 2 rounded, and the rest."""
    one = fb.constant(r.type, 1.0)
    half = fb.fmul(square, 0.5)
    start = fb.fsub(one, half)
    lost = fb.fsub(fb.fsub(one, start), half)
    # r * r - square, halved, is what rounding the square lost.
    square_low = fb.fma(r, r, fb.fneg(square))
    rest = fb.fsub(lost, fb.mul_add(r, low, fb.fmul(square_low, 0.5)))
    return start, fb.mul_add(fb.fmul(square, square), estrin(fb, square, _COS), rest)


def emit_tan(fb: FunctionBuilder, x: Value) -> Value:
    """The tangent of an angle in radians."""
    if x.type.scalar is F64:
        return _tangent_double(fb, x)
    size = fb.fabs(x)
    shifted = fb.fma(size, TWO_OVER_PI, SINGLE.rounder)
    n = fb.fsub(shifted, SINGLE.rounder)

    def adapt(high: Value, n: Value) -> tuple[Value, ...]:
        nearest = fb.fptrunc(high, F32)
        return nearest, fb.fptrunc(fb.fsub(high, fb.fpext(nearest, F64)), F32), fb.trunc(n, I32)

    fast = *reduce_to_pair(fb, size, n, HALF_PI[F32]), bits_of(fb, shifted)
    r, low, quadrant = with_large_lanes(fb, size, fast, adapt)
    square = fb.fmul(r, r)
    # tan(r + low) = tan r + low * (1 + tan(r)**2), and r**2 is near enough.
    correction = fb.mul_add(low, square, low)
    tangent = fb.fadd(r, fb.mul_add(fb.fmul(square, r), horner(fb, square, _TAN), correction))
    odd = fb.icmp("ne", fb.and_(quadrant, 1), 0)
    numerator = fb.select(odd, -1.0, tangent)
    return with_sign_of(fb, fb.fdiv(numerator, fb.select(odd, tangent, 1.0)), x)


def _tangent_double(fb: FunctionBuilder, x: Value) -> Value:
    """Sin / cos, or -cos / sin in odd quadrants, as a quotient of pairs."""
    (r, low), quadrant = reduce_double(fb, x)
    square = fb.fmul(r, r)
    sine = dd.fast_two_sum(fb, r, _sine_tail(fb, r, low, square))
    cosine = dd.fast_two_sum(fb, *_cosine_parts(fb, r, low, square))
    odd = fb.icmp("ne", fb.and_(quadrant, 1), 0)
    numerator = tuple(fb.select(odd, fb.fneg(c), s) for s, c in zip(sine, cosine, strict=True))
    denominator = tuple(fb.select(odd, s, c) for s, c in zip(sine, cosine, strict=True))
    result = dd.collapse(fb, dd.divide(fb, (numerator[0], numerator[1]), (denominator[0], denominator[1])))
    return fb.select(fb.fcmp("olt", fb.fabs(x), 2.0**-28), x, result)
