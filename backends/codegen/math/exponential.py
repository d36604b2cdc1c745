"""exp, expm1 and the pieces that hyperbolic functions build on.

x = n * ln 2 + r with |r| <= ln 2 / 2, and e**r = 1 + r + r**2 * q(r). Coefficients of q are best approximations on
[-0.34675, 0.34675], made by tests/backends/codegen/math/minimax.py; errors are those of e**r (EXP) or relative to
e**r - 1 (EXPM1).
"""

from xlalite.backends.codegen.llvm import F32, F64, FunctionBuilder, Value
from xlalite.backends.codegen.math import double_double as dd
from xlalite.backends.codegen.math.floating import (
    DOUBLE,
    SINGLE,
    at_least,
    at_most,
    format_of,
    has_avx512,
    power_of_low_bits,
    scale_by_power_of_two,
    scale_with_denormals,
)
from xlalite.backends.codegen.math.polynomial import estrin, horner

LOG2_E = 1.4426950408889634
# ln 2 in two parts. The first has so few bits that its product with any n used here is exact.
LN2_HIGH = {F32: 0.693145751953125, F64: 0.693147180559663}
LN2_LOW = {F32: 1.428606765330187e-06, F64: 2.8235290563031577e-13}

EXP = {
    # error 2^-28.2
    F32: (0.5, 0.1666651964187622, 0.04166640713810921, 0.008368832059204578, 0.0013940274948254228),
    # error 2^-57.9
    F64: (
        0.5000000000000013,
        0.16666666666666677,
        0.0416666666665113,
        0.008333333333320437,
        0.0013888888947976873,
        0.00019841269889728474,
        2.4801489029683954e-05,
        2.7557240304977677e-06,
        2.7631584616181156e-07,
        2.5110442401064317e-08,
    ),
}
EXPM1 = {
    # error 2^-26.0
    F32: (0.4999999701976776, 0.16666540503501892, 0.04166752099990845, 0.008366887457668781, 0.001386311836540699),
    # error 2^-61.5
    F64: (
        0.5,
        0.16666666666666677,
        0.0416666666666666,
        0.00833333333332143,
        0.0013888888888928224,
        0.00019841269886602286,
        2.4801587227894144e-05,
        2.7557243745236682e-06,
        2.755736150985084e-07,
        2.5109196646944515e-08,
        2.0886778401584516e-09,
    ),
}
# Below the first number the result is 0 (or -1), above the second infinity; both keep n within the format's reach.
EXP_RANGE = {F32: (-105.0, 89.0), F64: (-746.0, 710.0)}
_EXP_ZERO = {F32: -104.0, F64: -745.2}
"""Below these the result is 0."""
_EXP_DENORMAL = {F32: -87.34, F64: -708.4}
"""Below these it is too small to be normal."""
EXPM1_LOW = {F32: -20.0, F64: -40.0}


def emit_exp(fb: FunctionBuilder, x: Value) -> Value:
    """e**x; no arithmetic gives results that are too small to be normal, as bells have many far from their middle.

    Intel's processors take 30 times as long for it.
    """
    type_ = x.type.scalar
    if not has_avx512(fb):
        return emit_exp_few_denormals(fb, x)
    low, high = EXP_RANGE[type_]
    found, n = _exp_parts(fb, at_least(fb, at_most(fb, x, high), low))
    return scale_with_denormals(fb, found, n, fb.fcmp("olt", x, _EXP_DENORMAL[type_]))


def emit_exp_few_denormals(fb: FunctionBuilder, x: Value) -> Value:
    """e**x where results that are too small to be normal are few."""
    return exp_up_to(fb, at_most(fb, x, EXP_RANGE[x.type.scalar][1]))


def exp_up_to(fb: FunctionBuilder, x: Value) -> Value:
    """e**x for x at most the upper end of EXP_RANGE, or NaN.

    Where it rounds to 0, as for what a mask hides, nothing is scaled: Intel's processors take 30 times as long for
    numbers that are too small to be normal, also for those that they round to 0.
    """
    if not has_avx512(fb):
        return scale_by_power_of_two(fb, *_exp_parts(fb, at_least(fb, x, EXP_RANGE[x.type.scalar][0])))
    is_seen = fb.fcmp("uge", x, _EXP_ZERO[x.type.scalar])
    return fb.select(is_seen, scale_by_power_of_two(fb, *_exp_parts(fb, x)), 0.0)


def _exp_parts(fb: FunctionBuilder, bounded: Value) -> tuple[Value, Value]:
    """What e**x is, and the power of two by which it is to be scaled."""
    format_ = format_of(bounded)
    n = fb.fsub(fb.mul_add(bounded, LOG2_E, format_.rounder), format_.rounder)
    start = fb.mul_add(n, -LN2_HIGH[format_.type], bounded)
    if not format_.is_double:
        r = fb.mul_add(n, -LN2_LOW[F32], start)
        tail = fb.mul_add(fb.fmul(r, r), horner(fb, r, EXP[F32]), r)
        return fb.fadd(tail, 1.0), n
    # `start` is exact; its correction joins the small terms.
    correction = fb.fmul(n, -LN2_LOW[F64])
    r = fb.fadd(start, correction)
    tail = fb.mul_add(fb.fmul(r, r), estrin(fb, r, EXP[F64]), correction)
    return fb.fadd(fb.fadd(start, tail), 1.0), n


def exp2_of_pair(fb: FunctionBuilder, x: Value, x_low: Value | None = None) -> Value:
    """2**(x + x_low) for x within 1.1 times the bias."""
    format_ = format_of(x)
    n = fb.fsub(fb.fadd(x, format_.rounder), format_.rounder)
    fraction = fb.fsub(x, n)
    high = fb.fmul(fraction, _LN2[format_.type][0])
    low = fb.fma(fraction, _LN2[format_.type][0], fb.fneg(high))
    low = fb.mul_add(fraction, _LN2[format_.type][1], low)
    if x_low is not None:
        low = fb.mul_add(x_low, _LN2[format_.type][0], low)
    q = horner(fb, high, EXP[format_.type])
    tail = fb.mul_add(fb.fmul(high, high), q, low)
    return scale_by_power_of_two(fb, fb.fadd(fb.fadd(high, tail), 1.0), n)


# ln 2 rounded, and the rest of it.
_LN2 = {F32: (0.6931471824645996, -1.9046542121259336e-09), F64: (0.6931471805599453, 2.3190468138462996e-17)}


def emit_expm1(fb: FunctionBuilder, x: Value) -> Value:
    """e**x - 1, exact to the last place around 0 too.

    e**x - 1 = 2 * (s * p + (s - 1/2)) with p = e**r - 1 and s = 2**(n - 1), which stays finite up to the overflow.
    """
    format_ = format_of(x)
    scalar = format_.type
    bounded = at_least(fb, at_most(fb, x, EXP_RANGE[scalar][1]), EXPM1_LOW[scalar])
    half = _half_expm1(fb, bounded)
    tiny = fb.fcmp("olt", fb.fabs(x), 2.0 ** -(format_.mantissa_bits + 2))
    return fb.select(tiny, x, fb.fadd(half, half))


def _half_expm1(fb: FunctionBuilder, x: Value) -> Value:
    """(e**x - 1) / 2 for an x within the bounds."""
    if x.type.scalar is F64:
        return fb.fadd(*half_expm1_terms(fb, x))
    shifted, start, correction = reduce_by_ln2(fb, x)
    r = fb.fadd(start, correction)
    s = power_of_low_bits(fb, shifted, SINGLE.bias - 1)
    # `start` is exact, so that the large terms are rounded once and the small ones after them.
    tail = fb.mul_add(fb.fmul(r, r), horner(fb, r, EXPM1[F32]), correction)
    return fb.mul_add(s, tail, fb.mul_add(s, start, fb.fsub(s, 0.5)))


def half_expm1_terms(fb: FunctionBuilder, x: Value) -> tuple[Value, Value]:
    """(e**x - 1) / 2 as a sum of a large and a smaller term, for an f64 x within the bounds; to about 2**-58."""
    shifted, start, correction = reduce_by_ln2(fb, x)
    r = fb.fadd(start, correction)
    s = power_of_low_bits(fb, shifted, DOUBLE.bias - 1)
    square = fb.fmul(r, r)
    tail = fb.mul_add(fb.fmul(square, r), estrin(fb, r, EXPM1[F64][1:]), fb.mul_add(square, 0.5, correction))
    base, base_low = dd.fast_two_sum(fb, s, fb.constant(x.type, -0.5))
    high, low = dd.fast_two_sum(fb, base, fb.fmul(s, start))
    return high, fb.mul_add(s, tail, fb.fadd(low, base_low))


def exp_and_expm1_of_single(fb: FunctionBuilder, x: Value) -> tuple[Value, Value]:
    """e**x and e**x - 1 of an f64 x of at most 25 bits, to about 2**-51; as if of 700 beyond that."""
    shifted, start, correction = reduce_by_ln2(fb, at_least(fb, at_most(fb, x, 700.0), -700.0))
    r = fb.fadd(start, correction)
    s = power_of_low_bits(fb, shifted, DOUBLE.bias)
    product = fb.fmul(s, fb.fmul(r, fb.mul_add(r, estrin(fb, r, EXPM1[F64]), 1.0)))
    # A difference, so that of -0 it is -0.
    return fb.fadd(s, product), fb.fsub(product, fb.fsub(fb.constant(x.type, 1.0), s))


def reduce_by_ln2(fb: FunctionBuilder, x: Value) -> tuple[Value, Value, Value]:
    """The n in the low bits of the first, and r as a sum of an exact part and a small one, with x = n ln 2 + r."""
    format_ = format_of(x)
    shifted = fb.mul_add(x, LOG2_E, format_.rounder)
    n = fb.fsub(shifted, format_.rounder)
    return shifted, fb.mul_add(n, -LN2_HIGH[format_.type], x), fb.fmul(n, -LN2_LOW[format_.type])


# (e**(-2 r) - 1) / r, error 2^-28.2 relative to e**(-2 r) on |r| <= 0.1735.
_EXP_MINUS_TWO = (
    -2.0,
    2.0,
    -1.3333215713500977,
    0.6666623950004578,
    -0.26780280470848083,
    0.08922205120325089,
)


def exp_of_minus_twice(fb: FunctionBuilder, x: Value) -> Value:
    """e**(-2 x) for an f32 x in [0, 40] or NaN; large x lose some of the last bits."""
    shifted = fb.mul_add(x, -2.0 * LOG2_E, SINGLE.rounder)
    n = fb.fsub(shifted, SINGLE.rounder)
    r = fb.fma(n, 0.5 * _LN2[F32][0], x)
    power = fb.mul_add(r, horner(fb, r, _EXP_MINUS_TWO), 1.0)
    return fb.fmul(power, power_of_low_bits(fb, shifted, SINGLE.bias))


def exp_pair(fb: FunctionBuilder, x: Value, low: Value | None = None) -> tuple[dd.Pair, Value]:
    """A pair p and an integral float n with e**(x + low) = 2**n * (1 + p).

    f64 only, for |x| <= 2000 and |low| below an ulp of x; the pair's error is about 2**-58 relative to it.
    """
    n = fb.fsub(fb.mul_add(x, LOG2_E, DOUBLE.rounder), DOUBLE.rounder)
    start = fb.mul_add(n, -LN2_HIGH[F64], x)
    # n * LN2_LOW is below 2**-30: its rounding error does not count.
    r, r_low = dd.fast_two_sum(fb, start, fb.fmul(n, -LN2_LOW[F64]))
    if low is not None:
        r, r_low = dd.two_sum(fb, r, fb.fadd(r_low, low))
    square, square_low = dd.two_product(fb, r, r)
    cubic = fb.fmul(fb.fmul(square, r), estrin(fb, r, EXPM1[F64][1:]))
    sum_, sum_low = dd.fast_two_sum(fb, r, fb.fmul(square, 0.5))
    rest = fb.fadd(fb.mul_add(square_low, 0.5, sum_low), fb.mul_add(r, r_low, r_low))
    return dd.fast_two_sum(fb, sum_, fb.fadd(cubic, rest)), n


def expm1_pair(fb: FunctionBuilder, x: Value, largest: float) -> tuple[dd.Pair, Value]:
    """A pair m and an integral float k >= 0 with e**x - 1 = 2**k * m + (2**k - 1), where k > 0 only beyond 2**largest.

    f64 only. Callers choose `largest` so high that 2**k - 1 does not count beside 2**k * m.
    """
    pair, n = exp_pair(fb, x)
    bounded = at_most(fb, n, largest)
    s = power_of_exponent(fb, bounded)
    start, start_low = dd.two_sum(fb, s, fb.constant(s.type, -1.0))
    high, low = dd.two_sum(fb, start, fb.fmul(s, pair[0]))
    rest = fb.mul_add(s, pair[1], fb.fadd(low, start_low))
    return dd.fast_two_sum(fb, high, rest), fb.fsub(n, bounded)


def power_of_exponent(fb: FunctionBuilder, n: Value) -> Value:
    """2**n for an integral float n that gives a normal number."""
    format_ = format_of(n)
    shifted = fb.fadd(n, format_.rounder)
    return power_of_low_bits(fb, shifted, format_.bias)
