"""log, log1p and the pieces that inverse hyperbolic functions and pow build on.

x = 2**e * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)). f32: log(1 + f) = f - f**2 / 2 + f**3 * p(f). f64: with
s = f / (2 + f) it is 2 atanh(s) = f - h + s * (h + s**2 * p(s**2)), h = f**2 / 2, where a short p and a division are
faster than a long p. Coefficients are made by tests/backends/codegen/math/minimax.py; errors are relative to the
logarithm.
"""

from xlalite.backends.codegen.llvm import F32, F64, FunctionBuilder, Value
from xlalite.backends.codegen.math import double_double as dd
from xlalite.backends.codegen.math.exponential import LN2_HIGH, LN2_LOW
from xlalite.backends.codegen.math.floating import (
    avx512_exponent,
    avx512_mantissa,
    bits_of,
    float_of,
    format_of,
    has_avx512,
)
from xlalite.backends.codegen.math.polynomial import estrin, horner
from xlalite.hlo.records import dataclass

# p for f32 on [-0.2929, 0.4143], error 2^-27.3.
LOG = (
    0.3333333134651184,
    -0.250008225440979,
    0.2000124752521515,
    -0.16623301804065704,
    0.14201343059539795,
    -0.1316048949956894,
    0.1276445835828781,
    -0.07636884599924088,
)
# (log((1 + s) / (1 - s)) / s - 2) / s**2 in powers of s**2 for |s| <= 0.1718, error 2^-59.4.
_ATANH = (
    0.6666666666666735,
    0.3999999999940911,
    0.28571428743789046,
    0.22222198413786734,
    0.181835733796184,
    0.15313800126706162,
    0.14798635494307222,
)
# sqrt(1/2) as a bit pattern, and exactly twice that number.
_ROOT_HALF_BITS = {F32: 0x3F3504F3, F64: 0x3FE6A09E667F3BCD}
_ROOT_TWO = {F32: 1.4142135381698608, F64: 1.4142135623730951}


@dataclass(frozen=True, slots=True)
class Split:
    """x = 2**exponent * (1 + fraction), the fraction with an optional low part.

    Attributes:
        exponent: e as a float.
        fraction: f in [sqrt(1/2) - 1, sqrt(2) - 1).
        fraction_low: what rounding took from f.
    """

    exponent: Value
    fraction: Value
    fraction_low: Value | None = None


def split_normal(fb: FunctionBuilder, x: Value, low: Value | None = None) -> Split:
    """The parts of `x + low` for a positive normal x, |low| below an ulp of x."""
    format_ = format_of(x)
    bits = bits_of(fb, x)
    # Subtracting the pattern of sqrt(1/2) makes the exponent field count from there.
    offset = fb.sub(bits, _ROOT_HALF_BITS[format_.type])
    number = fb.ashr(offset, format_.mantissa_bits)
    exponent_bits = fb.shl(number, format_.mantissa_bits)
    mantissa = float_of(fb, fb.sub(bits, exponent_bits), format_)
    exponent = fb.sitofp(number, format_.type)
    fraction = fb.fsub(mantissa, 1.0)
    if low is None:
        return Split(exponent, fraction)
    # 2**-e as a pattern; where it would be 0 or denormal, low does not count.
    one = format_.bias << format_.mantissa_bits
    inverse = float_of(fb, fb.smax(fb.sub(fb.constant(bits.type, one), exponent_bits), 0), format_)
    high, rest = dd.two_sum(fb, fraction, fb.fmul(low, inverse))
    return Split(exponent, high, rest)


def split_positive(fb: FunctionBuilder, x: Value) -> Split:
    """The parts of any positive finite x, denormals included.

    Other numbers: with AVX-512 the exponent is infinite for infinity and 0 and the fraction NaN for negative numbers,
    which plain sums carry on to the result; elsewhere the parts mean nothing and `log_specials` must follow.
    """
    format_ = format_of(x)
    if has_avx512(fb):
        exponent, mantissa = avx512_exponent(fb, x), avx512_mantissa(fb, x)
        upper = fb.fcmp("oge", mantissa, _ROOT_TWO[format_.type])
        mantissa = fb.select(upper, fb.fmul(mantissa, 0.5), mantissa)
        return Split(fb.select(upper, fb.fadd(exponent, 1.0), exponent), fb.fsub(mantissa, 1.0))
    denormal = fb.fcmp("olt", x, format_.smallest_normal)
    lift = 2.0**format_.mantissa_bits
    parts = split_normal(fb, fb.select(denormal, fb.fmul(x, lift), x))
    lowered = fb.fsub(parts.exponent, float(format_.mantissa_bits))
    return Split(fb.select(denormal, lowered, parts.exponent), parts.fraction)


def log_of_split(fb: FunctionBuilder, parts: Split) -> Value:
    """The logarithm of the number with these parts."""
    scalar = parts.fraction.type.scalar
    rest = _log_rest(fb, parts)
    rest = fb.mul_add(parts.exponent, LN2_LOW[scalar], rest)
    if scalar is F64 or parts.fraction_low is not None:
        # One place for the sum's rounding error: the large terms are added exactly.
        high, low = dd.fast_two_sum(fb, fb.fmul(parts.exponent, LN2_HIGH[scalar]), parts.fraction)
        finite = fb.fcmp("olt", fb.fabs(parts.exponent), float("inf"))
        return fb.fadd(high, fb.fadd(fb.select(finite, low, 0.0), rest))
    return fb.mul_add(parts.exponent, LN2_HIGH[scalar], fb.fadd(parts.fraction, rest))


def _log_rest(fb: FunctionBuilder, parts: Split) -> Value:
    """log(1 + f) - f."""
    f = parts.fraction
    if f.type.scalar is F64:
        s = fb.fdiv(f, fb.fadd(f, 2.0))
        square, half = fb.fmul(s, s), fb.fmul(fb.fmul(f, f), 0.5)
        rest = fb.mul_add(s, fb.mul_add(square, estrin(fb, square, _ATANH), half), fb.fneg(half))
    else:
        rest = fb.fmul(fb.fmul(f, f), fb.mul_add(f, horner(fb, f, LOG), -0.5))
    if parts.fraction_low is not None:
        rest = fb.fadd(rest, fb.mul_add(fb.fneg(f), parts.fraction_low, parts.fraction_low))
    return rest


def log_specials(fb: FunctionBuilder, x: Value, result: Value) -> Value:
    """The result with log's values at 0, infinity, negative numbers and NaN put in."""
    result = fb.select(fb.fcmp("olt", x, float("inf")), result, x)
    result = fb.select(fb.fcmp("olt", x, 0.0), float("nan"), result)
    return fb.select(fb.fcmp("oeq", x, 0.0), float("-inf"), result)


def emit_log(fb: FunctionBuilder, x: Value) -> Value:
    """The natural logarithm."""
    result = log_of_split(fb, split_positive(fb, x))
    return result if has_avx512(fb) else log_specials(fb, x, result)


def emit_log1p(fb: FunctionBuilder, x: Value) -> Value:
    """log(1 + x), exact to the last place around 0 too."""
    one_more, lost = dd.two_sum(fb, x, fb.constant(x.type, 1.0))
    result = log_of_split(fb, split_normal(fb, one_more, lost))
    result = log_specials(fb, one_more, result)
    tiny = fb.fcmp("olt", fb.fabs(x), 2.0 ** -(format_of(x).mantissa_bits + 2))
    return fb.select(tiny, x, result)
