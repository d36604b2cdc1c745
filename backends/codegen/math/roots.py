"""sqrt and rsqrt from the machine's correctly rounded square root, and cbrt by a series."""

from xlalite.backends.codegen.llvm import FunctionBuilder, Value, constant
from xlalite.backends.codegen.math import double_double as dd
from xlalite.backends.codegen.math.exponential import power_of_exponent
from xlalite.backends.codegen.math.floating import avx512_inverse_root, format_of, has_avx512, with_sign_of
from xlalite.backends.codegen.math.logarithm import split_positive
from xlalite.backends.codegen.math.polynomial import horner


def emit_sqrt(fb: FunctionBuilder, x: Value) -> Value:
    """The square root, correctly rounded."""
    return fb.sqrt(x)


def root_for_single(fb: FunctionBuilder, x: Value) -> Value:
    """The square root of an f64 that is rounded to f32 next: of a number with a relative error of 2^-50, or exact.

    By Newton steps from a first guess: 100,000 moduli of c64 take 59 us of one core so, 80 with the machine's root.
    """
    if not has_avx512(fb):
        return fb.sqrt(x)
    guess = avx512_inverse_root(fb, x)
    inverse = fb.fmul(guess, fb.fma(fb.fmul(fb.fmul(x, -0.5), guess), guess, 1.5))
    root = fb.fmul(x, inverse)
    rest = fb.fma(fb.fneg(root), root, x)
    root = fb.fma(fb.fmul(rest, 0.5), inverse, root)
    return fb.select(fb.fcmp("ogt", x, 0.0), root, x)


def inverse_root_for_single(fb: FunctionBuilder, x: Value) -> Value:
    """1 / sqrt(x) with a relative error of 2^-50 of an f64, for what is rounded to f32 next; NaN or infinity of 0."""
    if not has_avx512(fb):
        return fb.fdiv(constant(x.type, 1.0), fb.sqrt(x))
    result = avx512_inverse_root(fb, x)
    for _ in range(2):
        rest = fb.fma(fb.fneg(fb.fmul(x, result)), result, 1.0)
        result = fb.fma(fb.fmul(result, 0.5), rest, result)
    return result


def emit_rsqrt(fb: FunctionBuilder, x: Value) -> Value:
    """1 / sqrt(x), with infinity of the sign of a zero."""
    result = fb.fdiv(constant(x.type, 1.0), fb.sqrt(x))
    if not format_of(x).is_double:
        return result
    # One Newton step with an exact residual 1 - x * result**2; at 0 and infinity there is none.
    root, low = dd.two_product(fb, x, result)
    residual = fb.fma(fb.fneg(low), result, fb.fma(fb.fneg(root), result, 1.0))
    corrected = fb.mul_add(fb.fmul(result, 0.5), residual, result)
    return fb.select(fb.fcmp("one", residual, 0.0), corrected, result)


# z**(-1/3) on [0.3535, 2.8288], relative error 2^-9.6; made by tests/backends/codegen/math/minimax.py.
_INVERSE_CUBE_ROOT = (
    2.1248335842993487,
    -3.0518605329413666,
    3.789930013172667,
    -2.81684214711366,
    1.1984794540690664,
    -0.2688451936933729,
    0.02460363376173477,
)


def emit_cbrt(fb: FunctionBuilder, x: Value) -> Value:
    """The cube root: x = z * 8**k with z in [0.35, 2.83), an inverse root by series, and one corrected product."""
    format_ = format_of(x)
    size = fb.fabs(x)
    parts = split_positive(fb, size)
    thirds = fb.rint(fb.fmul(parts.exponent, 1.0 / 3.0))
    rest = fb.mul_add(thirds, -3.0, parts.exponent)
    mantissa = fb.fadd(parts.fraction, 1.0)
    z = fb.fmul(mantissa, power_of_exponent(fb, rest))
    inverse = horner(fb, z, _INVERSE_CUBE_ROOT)
    # With e = 1 - z * y**3 the root is y * (1 - e)**(-1/3) = y * (1 + e/3 + 2 e**2 / 9 + 14 e**3 / 81 + ...).
    cube = fb.fmul(fb.fmul(inverse, inverse), inverse)
    e = fb.mul_add(fb.fneg(z), cube, 1.0)
    series = (1.0 / 3.0, 2.0 / 9.0, 14.0 / 81.0)[: 3 if format_.is_double else 1]
    inverse = fb.mul_add(inverse, fb.fmul(e, horner(fb, e, series)), inverse)
    square = fb.fmul(inverse, inverse)
    root = fb.fmul(z, square)
    # root - (root**3 - z) / (3 root**2), where 1 / root**2 is the inverse's square.
    root_square, low = dd.two_product(fb, root, root)
    excess = fb.fma(root_square, root, fb.fneg(z))
    excess = fb.mul_add(low, root, excess)
    root = fb.mul_add(fb.fmul(excess, square), -1.0 / 3.0, root)
    result = fb.fmul(root, power_of_exponent(fb, thirds))
    proper = fb.and_(fb.fcmp("ogt", size, 0.0), fb.fcmp("olt", size, float("inf")))
    return with_sign_of(fb, fb.select(proper, result, size), x)
