"""tanh, logistic, sinh, cosh: quotients and sums of exponentials, arranged so that nothing cancels."""

from xlalite.backends.codegen.llvm import F32, F64, FunctionBuilder, Value
from xlalite.backends.codegen.math import double_double as dd
from xlalite.backends.codegen.math.exponential import (
    exp_of_minus_twice,
    exp_pair,
    exp_up_to,
    half_expm1_terms,
    power_of_exponent,
    reduce_by_ln2,
)
from xlalite.backends.codegen.math.floating import (
    at_least,
    at_most,
    format_of,
    power_of_low_bits,
    rough_inverse,
    scale_by_power_of_two,
    with_sign_of,
)
from xlalite.backends.codegen.math.polynomial import horner, polynomial

# Beyond these, tanh is 1 to the last place.
_TANH_LIMIT = {F32: 9.02, F64: 19.1}
# tanh x = x + x**3 * p(x**2) on [0, 0.55], error 2^-24.7 of tanh.
_TANH_SMALL = (-0.3333294689655304, 0.1332072764635086, -0.052671853452920914, 0.016437489539384842)

# (sinh(r) / r - 1) / r**2 and (cosh(r) - 1) / r**2 in powers of r**2 for |r| <= 0.3468.
_SINH_SHORT = {
    # error 2^-34.3
    F32: (0.1666666716337204, 0.00833317544311285, 0.00019974067981820554),
    # error 2^-61.6
    F64: (
        0.16666666666666677,
        0.008333333333321424,
        0.00019841269886634172,
        2.7557243705517948e-06,
        2.5109211651586594e-08,
    ),
}
_COSH_SHORT = {
    # error 2^-33.2
    F32: (0.5, 0.041666459292173386, 0.001393544371239841),
    # error 2^-58.0
    F64: (
        0.5000000000000012,
        0.041666666666519095,
        0.001388888894618222,
        2.4801490704858737e-05,
        2.763103673750374e-07,
    ),
}
# Where sinh and cosh are infinite, and from where on e**-x does not count beside e**x, in powers of two.
_OVERFLOW = {F32: 89.5, F64: 710.5}
_FAR = {F32: 30.0, F64: 60.0}


def emit_tanh(fb: FunctionBuilder, x: Value) -> Value:
    """In f32 a polynomial up to 0.55 and 1 - 2 E / (1 + E) with E = e**(-2 |x|) above, in f64 h / (h + 1).

    There h = (e**(2 |x|) - 1) / 2 is a pair, and so is the divisor; the quotient is corrected once.
    """
    size = fb.fabs(x)
    bounded = at_most(fb, size, _TANH_LIMIT[x.type.scalar])
    if x.type.scalar is F64:
        high, low = dd.fast_two_sum(fb, *half_expm1_terms(fb, fb.fadd(bounded, bounded)))
        divisor, lost = dd.two_sum(fb, high, fb.constant(x.type, 1.0))
        quotient = fb.fdiv(high, divisor)
        back = fb.fneg(quotient)
        remainder = fb.fadd(fb.fma(back, divisor, high), fb.mul_add(back, fb.fadd(lost, low), low))
        quotient = fb.mul_add(remainder, rough_inverse(fb, divisor), quotient)
        # A quotient of denormals loses bits, and there tanh x = x.
        return with_sign_of(fb, fb.select(fb.fcmp("olt", size, 2.0**-28), size, quotient), x)
    e = exp_of_minus_twice(fb, bounded)
    large = fb.mul_add(fb.fdiv(e, fb.fadd(e, 1.0)), -2.0, 1.0)
    square = fb.fmul(x, x)
    small = fb.mul_add(fb.fmul(square, size), horner(fb, square, _TANH_SMALL), size)
    return with_sign_of(fb, fb.select(fb.fcmp("olt", size, 0.55), small, large), x)


def _divide_by_about_one(fb: FunctionBuilder, numerator: Value, divisor: Value, lost: Value) -> Value:
    """`numerator / (divisor + lost)` for a divisor from 1 to 2; exact for 1, where it matters most."""
    quotient = fb.fdiv(numerator, divisor)
    return fb.mul_add(fb.fneg(quotient), lost, quotient)


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
    divisor = total, fb.mul_add(s, low, rest)
    numerator = fb.select(negative, high, one), fb.select(negative, low, 0.0)
    quotient = dd.collapse(fb, dd.divide(fb, numerator, divisor))
    return scale_by_power_of_two(fb, quotient, fb.select(negative, n, 0.0))


def emit_sinh(fb: FunctionBuilder, x: Value) -> Value:
    """sinh(n ln 2 + r) = sinh(n ln 2) cosh r + cosh(n ln 2) sinh r."""
    size = fb.fabs(x)
    # A quarter of a denormal loses bits.
    tiny = fb.fcmp("olt", size, 2.0**-28)
    return with_sign_of(fb, fb.select(tiny, size, _by_addition(fb, size, -1.0)), x)


def emit_cosh(fb: FunctionBuilder, x: Value) -> Value:
    """cosh(n ln 2 + r) = cosh(n ln 2) cosh r + sinh(n ln 2) sinh r."""
    return _by_addition(fb, fb.fabs(x), 1.0)


def _by_addition(fb: FunctionBuilder, size: Value, sign: float) -> Value:
    """(e**size + sign * e**-size) / 2; what is larger than a quarter of the result is a pair."""
    format_ = format_of(size)
    shifted, start, correction = reduce_by_ln2(fb, at_most(fb, size, _OVERFLOW[format_.type]))
    # A quarter of the two powers, which stays in range up to the overflow.
    growing = power_of_low_bits(fb, shifted, format_.bias - 2)
    n = at_most(fb, fb.fsub(shifted, format_.rounder), _FAR[format_.type])
    shrinking = power_of_low_bits(fb, fb.fsub(fb.constant(n.type, format_.rounder), n), format_.bias - 2)
    signed = fb.fmul(shrinking, sign)
    base, base_low = dd.fast_two_sum(fb, growing, signed)
    other = fb.fsub(growing, signed)
    r = fb.fadd(start, correction)
    square = fb.fmul(r, r)
    sine_tail = fb.mul_add(fb.fmul(square, r), polynomial(fb, square, _SINH_SHORT), correction)
    cosine_tail = fb.fmul(square, polynomial(fb, square, _COSH_SHORT))
    product, product_low = dd.two_product(fb, other, start)
    high, low = dd.fast_two_sum(fb, base, product)
    rest = fb.mul_add(base, cosine_tail, fb.mul_add(other, sine_tail, fb.fadd(product_low, base_low)))
    total = fb.fadd(high, fb.fadd(low, rest))
    return fb.fadd(total, total)
