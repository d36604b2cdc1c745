"""asinh, acosh, atanh as log(1 + f) with f carried as a pair, so that nothing cancels near 0 or 1.

f64 only: f32 computes in f64 and rounds.
"""

from xlalite.backends.codegen.llvm import FunctionBuilder, Value
from xlalite.backends.codegen.math import double_double as dd
from xlalite.backends.codegen.math.floating import with_sign_of
from xlalite.backends.codegen.math.logarithm import Split, log_of_split, split_normal

# From here on asinh x = acosh x = log(2 x), to the last place; squares would overflow later.
_HUGE = 2.0**30
_TINY = 2.0**-28


def _log_of_one_more(fb: FunctionBuilder, f: dd.Pair) -> Value:
    """log(1 + f) for f >= 0."""
    one_more, lost = dd.two_sum(fb, fb.constant(f[0].type, 1.0), f[0])
    return log_of_split(fb, split_normal(fb, one_more, fb.fadd(lost, f[1])))


def _log_of_twice(fb: FunctionBuilder, x: Value) -> Value:
    """log(2 x) for x >= 1."""
    parts = split_normal(fb, x)
    return log_of_split(fb, Split(fb.fadd(parts.exponent, 1.0), parts.fraction))


def emit_asinh(fb: FunctionBuilder, x: Value) -> Value:
    """log(|x| + sqrt(x**2 + 1)), with f = |x| + x**2 / (1 + sqrt(1 + x**2)), and the sign of x."""
    size = fb.fabs(x)
    huge = fb.fcmp("ogt", size, _HUGE)
    bounded = fb.select(huge, 1.0, size)
    one = fb.constant(x.type, 1.0)
    square = dd.two_product(fb, bounded, bounded)
    root = dd.square_root(fb, dd.add_float(fb, square, one))
    f = dd.add_float(fb, dd.divide(fb, square, dd.add_float(fb, root, one)), bounded)
    result = fb.select(huge, _log_of_twice(fb, size), _log_of_one_more(fb, f))
    # Infinity and NaN are their own results, and so are tiny numbers.
    own = fb.or_(fb.fcmp("olt", size, _TINY), fb.fcmp("ueq", size, float("inf")))
    return with_sign_of(fb, fb.select(own, size, result), x)


def emit_acosh(fb: FunctionBuilder, x: Value) -> Value:
    """log(x + sqrt(x**2 - 1)), with f = (x - 1) + sqrt((x - 1) * (x + 1)); NaN below 1."""
    huge = fb.fcmp("ogt", x, _HUGE)
    bounded = fb.select(huge, 2.0, x)
    below = dd.two_sum(fb, bounded, fb.constant(x.type, -1.0))
    above = dd.two_sum(fb, bounded, fb.constant(x.type, 1.0))
    root = dd.square_root(fb, dd.multiply(fb, below, above))
    result = fb.select(huge, _log_of_twice(fb, x), _log_of_one_more(fb, dd.add(fb, below, root)))
    result = fb.select(fb.fcmp("olt", x, 1.0), float("nan"), result)
    return fb.select(fb.fcmp("ueq", x, float("inf")), x, result)


def emit_atanh(fb: FunctionBuilder, x: Value) -> Value:
    """log(1 + 2 |x| / (1 - |x|)) / 2 with the sign of x; infinite at 1, NaN beyond."""
    size = fb.fabs(x)
    one = fb.constant(x.type, 1.0)
    f = dd.divide(fb, (fb.fadd(size, size), fb.constant(x.type, 0.0)), dd.fast_two_sum(fb, one, fb.fneg(size)))
    result = fb.fmul(_log_of_one_more(fb, f), 0.5)
    result = fb.select(fb.fcmp("olt", size, _TINY), size, result)
    result = fb.select(fb.fcmp("oeq", size, 1.0), float("inf"), result)
    return with_sign_of(fb, fb.select(fb.fcmp("ule", size, 1.0), result, float("nan")), x)
