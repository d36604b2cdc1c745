"""tanh, logistic, sinh, cosh: quotients and sums of exponentials, arranged so that nothing cancels."""

from xlalite.backends.codegen.llvm import F32, F64, FunctionBuilder, Value
from xlalite.backends.codegen.math import double_double as dd
from xlalite.backends.codegen.math.exponential import (
    exp_of_minus_twice,
    exp_pair,
    exp_up_to,
    expm1_pair,
    power_of_exponent,
    reduce_by_ln2,
)
from xlalite.backends.codegen.math.floating import (
    SINGLE,
    at_least,
    at_most,
    power_of_low_bits,
    scale_by_power_of_two,
    with_sign_of,
)
from xlalite.backends.codegen.math.polynomial import horner

# Beyond these, tanh is 1 to the last place.
_TANH_LIMIT = {F32: 9.02, F64: 19.1}
# tanh x = x + x**3 * p(x**2) on [0, 0.55], error 2^-24.7 of tanh.
_TANH_SMALL = (-0.3333294689655304, 0.1332072764635086, -0.052671853452920914, 0.016437489539384842)

# (sinh(r) / r - 1) / r**2 and (cosh(r) - 1) / r**2 in powers of r**2 for |r| <= 0.3468; errors 2^-34.3, 2^-33.2.
_SINH_SHORT = (0.1666666716337204, 0.00833317544311285, 0.00019974067981820554)
_COSH_SHORT = (0.5, 0.041666459292173386, 0.001393544371239841)


def emit_tanh(fb: FunctionBuilder, x: Value) -> Value:
    """-m / (2 + m) with m = expm1(-2 |x|); in f32 a polynomial up to 0.55 and 1 - 2 E / (1 + E) above."""
    size = fb.fabs(x)
    bounded = at_most(fb, size, _TANH_LIMIT[x.type.scalar])
    if x.type.scalar is F64:
        (high, low), _ = expm1_pair(fb, fb.fmul(bounded, -2.0), 0.0)
        minus_m = fb.fneg(high), fb.fneg(low)
        two_more = dd.fast_two_sum(fb, fb.constant(x.type, 2.0), high)
        quotient = dd.collapse(fb, dd.divide(fb, minus_m, (two_more[0], fb.fadd(two_more[1], low))))
        # A pair's low part loses its bits near the bottom of the range, where tanh x = x.
        return with_sign_of(fb, fb.select(fb.fcmp("olt", size, 2.0**-28), size, quotient), x)
    e = exp_of_minus_twice(fb, bounded)
    large = fb.fma(fb.fdiv(e, fb.fadd(e, 1.0)), -2.0, 1.0)
    square = fb.fmul(x, x)
    small = fb.fma(fb.fmul(square, size), horner(fb, square, _TANH_SMALL), size)
    return with_sign_of(fb, fb.select(fb.fcmp("olt", size, 0.55), small, large), x)


def _divide_by_about_one(fb: FunctionBuilder, numerator: Value, divisor: Value, lost: Value) -> Value:
    """`numerator / (divisor + lost)` for a divisor from 1 to 2; exact for 1, where it matters most."""
    quotient = fb.fdiv(numerator, divisor)
    return fb.fma(fb.fneg(quotient), lost, quotient)


def emit_logistic(fb: FunctionBuilder, x: Value) -> Value:
    """1 / (1 + e**-x), as e**x / (1 + e**x) for negative x so that small results keep all their bits."""
    below = fb.fneg(fb.fabs(x))
    negative = fb.fcmp("olt", x, 0.0)
    if x.type.scalar is not F64:
        e = exp_up_to(fb, below)
        divisor, lost = dd.fast_two_sum(fb, fb.constant(x.type, 1.0), e)
        return _divide_by_about_one(fb, fb.select(negative, e, 1.0), divisor, lost)
    return _logistic_double(fb, at_least(fb, below, -760.0), negative)


def _logistic_double(fb: FunctionBuilder, below: Value, negative: Value) -> Value:
    """E / (1 + E) where negative, 1 / (1 + E) elsewhere, with E = e**below as a pair."""
    pair, n = exp_pair(fb, below)
    one = fb.constant(below.type, 1.0)
    high, low = dd.fast_two_sum(fb, one, pair[0])
    low = fb.fadd(low, pair[1])
    s = power_of_exponent(fb, at_least(fb, n, -1000.0))
    total, rest = dd.fast_two_sum(fb, one, fb.fmul(s, high))
    divisor = total, fb.fma(s, low, rest)
    numerator = fb.select(negative, high, one), fb.select(negative, low, 0.0)
    quotient = dd.collapse(fb, dd.divide(fb, numerator, divisor))
    return scale_by_power_of_two(fb, quotient, fb.select(negative, n, 0.0))


def emit_sinh(fb: FunctionBuilder, x: Value) -> Value:
    """(m + m / (1 + m)) / 2 for |x| with m = expm1(|x|), of f64."""
    size = fb.fabs(x)
    m, above = expm1_pair(fb, at_most(fb, size, 720.0), 1000.0)
    one_more = dd.add_float(fb, m, fb.constant(x.type, 1.0))
    ratio = dd.divide(fb, m, one_more)
    total = dd.add(fb, m, ratio)
    half = fb.fmul(dd.collapse(fb, total), 0.5)
    result = fb.fmul(half, power_of_exponent(fb, above))
    return with_sign_of(fb, fb.select(fb.fcmp("olt", size, 2.0**-28), size, result), x)


def emit_cosh(fb: FunctionBuilder, x: Value) -> Value:
    """(E + 1 / E) / 2 with E = e**|x|, of f64."""
    m, above = expm1_pair(fb, at_most(fb, fb.fabs(x), 720.0), 1000.0)
    one = fb.constant(x.type, 1.0)
    power = dd.add_float(fb, m, one)
    inverse = dd.divide(fb, (one, fb.constant(x.type, 0.0)), power)
    half = fb.fmul(dd.collapse(fb, dd.add(fb, power, inverse)), 0.5)
    return fb.fmul(half, power_of_exponent(fb, above))


def emit_sinh_single(fb: FunctionBuilder, x: Value) -> Value:
    """sinh(n ln 2 + r) = sinh(n ln 2) cosh r + cosh(n ln 2) sinh r, of f32."""
    size = fb.fabs(x)
    # A quarter of a denormal loses bits.
    tiny = fb.fcmp("olt", size, 2.0**-12)
    return with_sign_of(fb, fb.select(tiny, size, _by_addition(fb, size, -1.0)), x)


def emit_cosh_single(fb: FunctionBuilder, x: Value) -> Value:
    """cosh(n ln 2 + r) = cosh(n ln 2) cosh r + sinh(n ln 2) sinh r, of f32."""
    return _by_addition(fb, fb.fabs(x), 1.0)


def _by_addition(fb: FunctionBuilder, size: Value, sign: float) -> Value:
    """(e**size + sign * e**-size) / 2; what is larger than a quarter of the result is a pair."""
    shifted, start, correction = reduce_by_ln2(fb, at_most(fb, size, 89.5))
    # A quarter of the two powers, which stays in range up to the overflow; beyond 2**-30 the second does not count.
    growing = power_of_low_bits(fb, shifted, SINGLE.bias - 2)
    n = at_most(fb, fb.fsub(shifted, SINGLE.rounder), 30.0)
    shrinking = power_of_low_bits(fb, fb.fsub(fb.constant(n.type, SINGLE.rounder), n), SINGLE.bias - 2)
    signed = fb.fmul(shrinking, sign)
    base, base_low = dd.fast_two_sum(fb, growing, signed)
    other = fb.fsub(growing, signed)
    r = fb.fadd(start, correction)
    square = fb.fmul(r, r)
    sine_tail = fb.fma(fb.fmul(square, r), horner(fb, square, _SINH_SHORT), correction)
    cosine_tail = fb.fmul(square, horner(fb, square, _COSH_SHORT))
    product, product_low = dd.two_product(fb, other, start)
    high, low = dd.fast_two_sum(fb, base, product)
    rest = fb.fma(base, cosine_tail, fb.fma(other, sine_tail, fb.fadd(product_low, base_low)))
    total = fb.fadd(high, fb.fadd(low, rest))
    return fb.fadd(total, total)
