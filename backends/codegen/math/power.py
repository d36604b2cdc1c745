"""pow with all special cases of IEEE 754, by 2**(y * log2 |x|) in more precision than the result has.

f32 computes in f64: log2 to 2^-38 and 2**t to 2^-34 leave 10 bits to spare. f64 carries log |x| as a pair.
"""

from xlalite.backends.codegen.llvm import F32, F64, FunctionBuilder, Value
from xlalite.backends.codegen.math import double_double as dd
from xlalite.backends.codegen.math.exponential import LN2_HIGH, LN2_LOW, exp_pair
from xlalite.backends.codegen.math.floating import (
    DOUBLE,
    at_least,
    at_most,
    bits_of,
    float_of,
    format_of,
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
    size = fb.fabs(x)
    magnitude = (_pow_single if x.type.scalar is F32 else _pow_double)(fb, size, bounded)
    return _with_special_cases(fb, x, y, size, magnitude)


def _pow_single(fb: FunctionBuilder, size: Value, y: Value) -> Value:
    """size**y for an f32 size >= 0, infinity or NaN."""
    wide = fb.fpext(size, F64)
    parts = split_normal(fb, wide)
    logarithm = fb.fma(parts.fraction, estrin(fb, parts.fraction, _SHORT_LOG2), parts.exponent)
    logarithm = log_specials(fb, wide, logarithm)
    t = fb.fmul(logarithm, fb.fpext(y, F64))
    t = at_least(fb, at_most(fb, t, 300.0), -300.0)
    shifted = fb.fadd(t, DOUBLE.rounder)
    fraction = fb.fsub(t, fb.fsub(shifted, DOUBLE.rounder))
    power = power_of_low_bits(fb, shifted, DOUBLE.bias)
    return fb.fptrunc(fb.fmul(estrin(fb, fraction, _SHORT_EXP2), power), F32)


def _pow_double(fb: FunctionBuilder, size: Value, y: Value) -> Value:
    """size**y for an f64 size >= 0, infinity or NaN."""
    high, low = log_pair(fb, size)
    product, rest = dd.two_product(fb, high, y)
    rest = fb.fma(low, y, rest)
    bounded = at_least(fb, at_most(fb, product, 800.0), -800.0)
    # Beyond the bounds, and at infinities, the low part is no number or does not count.
    inside = fb.fcmp("oeq", bounded, product)
    pair, n = exp_pair(fb, bounded, fb.select(inside, rest, 0.0))
    total = fb.fadd(fb.constant(size.type, 1.0), fb.fadd(pair[0], pair[1]))
    return scale_by_power_of_two(fb, total, n)


def log_pair(fb: FunctionBuilder, x: Value) -> dd.Pair:
    """Log x for an f64 x >= 0 as a pair with a relative error of about 2^-65; -inf for 0, infinity and NaN pass."""
    parts = split_positive(fb, x)
    f = parts.fraction
    divisor = dd.fast_two_sum(fb, fb.constant(x.type, 2.0), f)
    s = dd.divide(fb, (f, fb.constant(x.type, 0.0)), divisor)
    square = dd.multiply(fb, s, s)
    tail = fb.fmul(square[0], estrin(fb, square[0], _ATANH_TAIL))
    factor, factor_low = dd.fast_two_sum(fb, fb.constant(x.type, _TWO_THIRDS[0]), tail)
    factor_low = fb.fadd(factor_low, _TWO_THIRDS[1])
    cubic = dd.multiply(fb, dd.multiply(fb, square, s), (factor, factor_low))
    doubled = fb.fadd(s[0], s[0]), fb.fadd(s[1], s[1])
    fraction_log = dd.add(fb, doubled, cubic)
    base = fb.fmul(parts.exponent, LN2_HIGH[F64])
    base_low = fb.fmul(parts.exponent, LN2_LOW[F64])
    high, low = dd.two_sum(fb, base, fraction_log[0])
    second, second_low = dd.two_sum(fb, base_low, fraction_log[1])
    low = fb.fadd(low, second)
    high, low = dd.fast_two_sum(fb, high, low)
    low = fb.fadd(low, second_low)
    finite = fb.fcmp("one", x, 0.0)
    proper = fb.and_(finite, fb.fcmp("olt", x, float("inf")))
    return log_specials(fb, x, high), fb.select(proper, low, 0.0)


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
