"""pow with all special cases of IEEE 754, by 2**(y * log2 |x|) in more precision than the result has.

f32 computes in f64: log2 to 2^-38 and 2**t to 2^-34 leave 10 bits to spare. f64 carries log |x| as a pair.
"""

import math

from xlalite.backends.codegen.llvm import F32, F64, FunctionBuilder, Value, number_of
from xlalite.backends.codegen.math import double_double as dd
from xlalite.backends.codegen.math.exponential import EXP, LN2_HIGH, LN2_LOW, reduce_by_ln2
from xlalite.backends.codegen.math.floating import (
    DOUBLE,
    at_least,
    at_most,
    bits_of,
    float_of,
    format_of,
    has_avx512,
    power_of_low_bits,
    scale_by_power_of_two,
)
from xlalite.backends.codegen.math.logarithm import log_specials, split_normal, split_positive
from xlalite.backends.codegen.math.polynomial import estrin

# log2(1 + f) / f on [-0.2929, 0.4143], error 2^-38.5 of log2(1 + f).
_SHORT_LOG2 = (
    1.442695040886572,
    -0.7213475203275223,
    0.4808983488045052,
    -0.36067379314468095,
    0.28853879555688117,
    -0.24044643299783075,
    0.20610712930317146,
    -0.1804367700558641,
    0.16021657143861148,
    -0.14249833931533623,
    0.13027620392364536,
    -0.1346312507878815,
    0.1325111525860762,
    -0.06973551788938046,
)
# 2**r on [-1/2, 1/2], error 2^-34.5.
_SHORT_EXP2 = (
    0.9999999999616537,
    0.6931471807285922,
    0.24022651198453243,
    0.05550410353128715,
    0.009618027213049057,
    0.0013333922700335698,
    0.00015469304367347704,
    1.5201917734891471e-05,
)
# log((1 + s) / (1 - s)) = 2 s + s**3 * (2/3 + s**2 * p(s**2)) for |s| <= 0.1718; error 2^-71.4 of the logarithm.
_ATANH_TAIL = (
    0.39999999999999974,
    0.28571428571447016,
    0.22222222217081597,
    0.18181818925124066,
    0.15384553195832823,
    0.13336456484604325,
    0.11672040477688597,
    0.12011792109112965,
)
_TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)


def emit_pow(fb: FunctionBuilder, x: Value, y: Value) -> Value:
    """x**y."""
    # A bound on y keeps infinite * 0 out; any y beyond it gives the same result.
    bounded = at_least(fb, at_most(fb, y, 2.0**90), -(2.0**90))
    is_single, known = x.type.scalar is F32, number_of(x)
    if known is not None and 0 < known < math.inf and known != 1:
        return _single_power(fb, math.log2(known), bounded) if is_single else _power(fb, _known_pair(fb, x), bounded)
    size = fb.fabs(x)
    if is_single:
        magnitude = _single_power(fb, _short_log2(fb, size), bounded)
    else:
        magnitude = _power(fb, log_pair(fb, size), bounded)
    return _with_special_cases(fb, x, y, size, magnitude)


def _short_log2(fb: FunctionBuilder, x: Value) -> Value:
    """Log2 x, in f64, for an f32 x >= 0, infinity or NaN."""
    wide = fb.fpext(x, F64)
    parts = split_normal(fb, wide)
    logarithm = fb.mul_add(parts.fraction, estrin(fb, parts.fraction, _SHORT_LOG2), parts.exponent)
    return log_specials(fb, wide, logarithm)


def _single_power(fb: FunctionBuilder, logarithm: Value | float, y: Value) -> Value:
    """2**(y * logarithm) for an f32 y."""
    t = fb.fmul(fb.fpext(y, F64), logarithm)
    t = at_least(fb, at_most(fb, t, 300.0), -300.0)
    shifted = fb.fadd(t, DOUBLE.rounder)
    fraction = fb.fsub(t, fb.fsub(shifted, DOUBLE.rounder))
    power = power_of_low_bits(fb, shifted, DOUBLE.bias)
    return fb.fptrunc(fb.fmul(estrin(fb, fraction, _SHORT_EXP2), power), F32)


def _known_pair(fb: FunctionBuilder, x: Value) -> dd.Pair:
    """Log x as a pair for a positive number that is known now."""
    from decimal import Decimal, localcontext  # which few programs need

    with localcontext(prec=50):
        exact = Decimal(number_of(x) or 1).ln()
        high = float(exact)
        return fb.constant(x.type, high), fb.constant(x.type, float(exact - Decimal(high)))


def _power(fb: FunctionBuilder, logarithm: dd.Pair, y: Value) -> Value:
    """e**(y * logarithm) for an f64 y."""
    high, low = logarithm
    product, rest = dd.two_product(fb, high, y)
    rest = fb.mul_add(low, y, rest)
    bounded = at_least(fb, at_most(fb, product, 800.0), -800.0)
    # Beyond the bounds, and at infinities, the low part is no number or does not count.
    inside = fb.fcmp("oeq", bounded, product)
    shifted, start, correction = reduce_by_ln2(fb, bounded)
    correction = fb.fadd(correction, fb.select(inside, rest, 0.0))
    r = fb.fadd(start, correction)
    tail = fb.mul_add(fb.fmul(r, r), estrin(fb, r, EXP[F64]), correction)
    total, lost = dd.fast_two_sum(fb, fb.constant(y.type, 1.0), start)
    return scale_by_power_of_two(fb, fb.fadd(total, fb.fadd(lost, tail)), fb.fsub(shifted, DOUBLE.rounder))


def log_pair(fb: FunctionBuilder, x: Value) -> dd.Pair:
    """Log x for an f64 x >= 0 as a pair with a relative error of about 2^-65; -inf for 0, infinity and NaN pass.

    2 s + s**3 * factor with s = f / (2 + f), each number with the low part that the largest later products show.
    """
    parts = split_positive(fb, x)
    f = parts.fraction
    zero = fb.constant(x.type, 0.0)
    s, s_low = dd.divide(fb, (f, zero), dd.fast_two_sum(fb, fb.constant(x.type, 2.0), f))
    square, square_low = dd.two_product(fb, s, s)
    square_low = fb.mul_add(fb.fadd(s, s), s_low, square_low)
    tail = fb.fmul(square, estrin(fb, square, _ATANH_TAIL))
    factor, factor_low = dd.fast_two_sum(fb, fb.constant(x.type, _TWO_THIRDS[0]), tail)
    factor_low = fb.fadd(factor_low, _TWO_THIRDS[1])
    ratio, ratio_low = _product(fb, (square, square_low), (factor, factor_low))
    cubic, cubic_low = _product(fb, (s, s_low), (ratio, ratio_low))
    high, low = dd.fast_two_sum(fb, fb.fadd(s, s), cubic)
    low = fb.fadd(low, fb.mul_add(s_low, 2.0, cubic_low))
    base = fb.fmul(parts.exponent, LN2_HIGH[F64])
    total, rest = dd.fast_two_sum(fb, base, high)
    high, low = dd.fast_two_sum(fb, total, fb.fadd(rest, fb.mul_add(parts.exponent, LN2_LOW[F64], low)))
    if not has_avx512(fb):
        high = log_specials(fb, x, high)
        proper = fb.and_(fb.fcmp("one", x, 0.0), fb.fcmp("olt", x, float("inf")))
        return high, fb.select(proper, low, 0.0)
    finite = fb.fcmp("olt", fb.fabs(base), float("inf"))
    return fb.select(finite, high, base), fb.select(finite, low, 0.0)


def _product(fb: FunctionBuilder, a: dd.Pair, b: dd.Pair) -> dd.Pair:
    """`a * b` as a sum that is not in order."""
    high, low = dd.two_product(fb, a[0], b[0])
    return high, fb.mul_add(a[0], b[1], fb.mul_add(a[1], b[0], low))


def _with_special_cases(fb: FunctionBuilder, x: Value, y: Value, size: Value, magnitude: Value) -> Value:
    """The magnitude |x|**y with its sign, and the cases that the product y * log |x| cannot express."""
    format_ = format_of(x)
    integral = fb.fcmp("oeq", fb.rint(y), y)
    half = fb.fmul(y, 0.5)
    odd = fb.and_(integral, fb.fcmp("one", fb.rint(half), half))
    sign_bit = 1 << (format_.bits_type.bits - 1)
    sign = fb.and_(bits_of(fb, x), fb.select(odd, fb.constant(bits_of(fb, x).type, sign_bit), 0))
    result = float_of(fb, fb.or_(bits_of(fb, magnitude), sign), format_)
    negative = fb.and_(fb.fcmp("olt", x, 0.0), fb.fcmp("olt", size, float("inf")))
    undefined = fb.and_(negative, fb.not_(integral))
    result = fb.select(undefined, float("nan"), result)
    one = fb.or_(fb.fcmp("oeq", y, 0.0), fb.fcmp("oeq", x, 1.0))
    return fb.select(one, 1.0, result)
