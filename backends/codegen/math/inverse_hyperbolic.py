"""asinh, acosh, atanh: polynomials near 0, and beyond logarithms of numbers carried as pairs.

What rounding takes from a root or a quotient is the low part of a pair, where a rough value of it is enough.
Coefficients are made by tests/backends/codegen/math/minimax.py; errors are relative to the function.
"""

from collections.abc import Mapping, Sequence

from xlalite.backends.codegen.llvm import F32, F64, FunctionBuilder, Type, Value
from xlalite.backends.codegen.math import double_double as dd
from xlalite.backends.codegen.math.floating import rough_inverse, with_sign_of
from xlalite.backends.codegen.math.logarithm import Split, log_of_split, split_normal
from xlalite.backends.codegen.math.polynomial import polynomial

# (asinh(x) / x - 1) / x**2 and (atanh(x) / x - 1) / x**2 in powers of x**2 on [0, 0.5].
_ASINH = {
    # error 2^-29.5
    F32: (-0.1666664332151413, 0.07498641312122345, -0.04438306391239166, 0.028161464259028435, -0.013223769143223763),
    # error 2^-60.4
    F64: (
        -0.1666666666666661,
        0.07499999999984416,
        -0.04464285712783047,
        0.030381943716333584,
        -0.02237213835660012,
        0.01735238692942599,
        -0.013960232007011247,
        0.011512982469758501,
        -0.00953413548841042,
        0.007465579495933114,
        -0.004747478185058837,
        0.001718058487588455,
    ),
}
_ATANH = {
    # error 2^-29.4
    F32: (
        0.33333301544189453,
        0.2000245451927185,
        0.14223742485046387,
        0.11816810071468353,
        0.05158697068691254,
        0.17640410363674164,
    ),
    # error 2^-60.9
    F64: (
        0.3333333333333328,
        0.20000000000018464,
        0.14285714283407788,
        0.11111111256736315,
        0.09090903645297203,
        0.0769243922181541,
        0.06664506463907346,
        0.05907215617986191,
        0.05059652371626897,
        0.05947768385442911,
        -0.005018762902618411,
        0.17419717517009348,
        -0.19509950381454244,
        0.2405078715990752,
    ),
}
_SMALL = 0.5
# From here on asinh x = acosh x = log(2 x), to the last place.
_HUGE = {F32: 2.0**13, F64: 2.0**30}


def _near_zero(fb: FunctionBuilder, x: Value, coefficients: Mapping[Type, Sequence[float]]) -> Value:
    square = fb.fmul(x, x)
    return fb.mul_add(fb.fmul(square, x), polynomial(fb, square, coefficients), x)


def _root(fb: FunctionBuilder, square: dd.Pair) -> dd.Pair:
    """The square root of a pair that is 0 or at least 2**-120."""
    root = fb.sqrt(square[0])
    excess = fb.fadd(fb.fma(fb.fneg(root), root, square[0]), square[1])
    return root, fb.fmul(fb.fmul(excess, 0.5), rough_inverse(fb, root))


def _log_of_pair(fb: FunctionBuilder, x: dd.Pair, huge: Value, twice: Value) -> Value:
    """The logarithm of x, or where it is huge of twice another number."""
    parts = split_normal(fb, fb.select(huge, twice, x[0]), fb.select(huge, 0.0, x[1]))
    exponent = fb.select(huge, fb.fadd(parts.exponent, 1.0), parts.exponent)
    return log_of_split(fb, Split(exponent, parts.fraction, parts.fraction_low))


def emit_asinh(fb: FunctionBuilder, x: Value) -> Value:
    """log(|x| + sqrt(x**2 + 1)) with the sign of x."""
    size = fb.fabs(x)
    huge = fb.fcmp("ogt", size, _HUGE[x.type.scalar])
    square, square_low = dd.two_product(fb, size, size)
    one_more, lost = dd.two_sum(fb, square, fb.constant(x.type, 1.0))
    root, root_low = _root(fb, (one_more, fb.fadd(lost, square_low)))
    total, low = dd.fast_two_sum(fb, root, size)
    result = _log_of_pair(fb, (total, fb.fadd(low, root_low)), huge, size)
    result = fb.select(fb.fcmp("olt", size, _SMALL), _near_zero(fb, size, _ASINH), result)
    # Infinity and NaN are their own results.
    return with_sign_of(fb, fb.select(fb.fcmp("ueq", size, float("inf")), size, result), x)


def emit_acosh(fb: FunctionBuilder, x: Value) -> Value:
    """log(1 + f) with f = (x - 1) + sqrt(x**2 - 1); NaN below 1."""
    huge = fb.fcmp("ogt", x, _HUGE[x.type.scalar])
    square, square_low = dd.two_product(fb, x, x)
    below, lost = dd.fast_two_sum(fb, square, fb.constant(x.type, -1.0))
    root, root_low = _root(fb, dd.fast_two_sum(fb, below, fb.fadd(lost, square_low)))
    f, low = dd.fast_two_sum(fb, root, fb.fsub(x, 1.0))
    one_more, rest = dd.two_sum(fb, f, fb.constant(x.type, 1.0))
    result = _log_of_pair(fb, (one_more, fb.fadd(rest, fb.fadd(low, root_low))), huge, x)
    result = fb.select(fb.fcmp("olt", x, 1.0), float("nan"), result)
    return fb.select(fb.fcmp("ueq", x, float("inf")), x, result)


def emit_atanh(fb: FunctionBuilder, x: Value) -> Value:
    """log((1 + |x|) / (1 - |x|)) / 2 with the sign of x; infinite at 1, NaN beyond."""
    size = fb.fabs(x)
    more, lost = dd.fast_two_sum(fb, fb.constant(x.type, 1.0), size)
    less = fb.fsub(fb.constant(x.type, 1.0), size)
    quotient = fb.fdiv(more, less)
    remainder = fb.fadd(fb.fma(fb.fneg(quotient), less, more), lost)
    parts = split_normal(fb, quotient, fb.fmul(remainder, rough_inverse(fb, less)))
    result = fb.fmul(log_of_split(fb, parts), 0.5)
    result = fb.select(fb.fcmp("olt", size, _SMALL), _near_zero(fb, size, _ATANH), result)
    result = fb.select(fb.fcmp("oeq", size, 1.0), float("inf"), result)
    return with_sign_of(fb, fb.select(fb.fcmp("ule", size, 1.0), result, float("nan")), x)
