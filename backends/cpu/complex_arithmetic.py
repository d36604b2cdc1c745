"""Elements of operations on complex numbers, composed of real operations on the pair (real, imaginary)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from xlalite.backends.cpu.elementwise import ComplexRule
from xlalite.backends.cpu.llvm import FunctionBuilder, Value, constant
from xlalite.backends.cpu.math import emit_math
from xlalite.backends.cpu.types import Element
from xlalite.hlo.dtype import DType

Complex: TypeAlias = tuple[Value, Value]
_Operands: TypeAlias = tuple[Complex, ...]


def add(fb: FunctionBuilder, x: Complex, y: Complex) -> Complex:
    """Sum."""
    return fb.fadd(x[0], y[0]), fb.fadd(x[1], y[1])


def subtract(fb: FunctionBuilder, x: Complex, y: Complex) -> Complex:
    """Difference."""
    return fb.fsub(x[0], y[0]), fb.fsub(x[1], y[1])


def multiply(fb: FunctionBuilder, x: Complex, y: Complex) -> Complex:
    """(ac - bd) + (ad + bc)i."""
    a, b = x
    c, d = y
    return (
        fb.fsub(fb.fmul(a, c, ""), fb.fmul(b, d, ""), ""),
        fb.fadd(fb.fmul(a, d, ""), fb.fmul(b, c, ""), ""),
    )


def divide(fb: FunctionBuilder, x: Complex, y: Complex) -> Complex:
    """Smith's algorithm (Communications of the ACM 5, 1962, algorithm 116), which scales by the larger part."""
    c, d = y
    swap = fb.fcmp("ogt", fb.fabs(d), fb.fabs(c))
    large, small = fb.select(swap, d, c), fb.select(swap, c, d)
    ratio = fb.fdiv(small, large)
    denominator = fb.fadd(large, fb.fmul(small, ratio, ""), "")
    a, b = fb.select(swap, x[1], x[0]), fb.select(swap, x[0], x[1])
    real = fb.fdiv(fb.fadd(a, fb.fmul(b, ratio, ""), ""), denominator)
    imaginary = fb.fdiv(fb.fsub(b, fb.fmul(a, ratio, ""), ""), denominator)
    # With swapped parts the imaginary numerator is b*r - a with its sign turned.
    return real, fb.select(swap, fb.fneg(imaginary), imaginary)


def absolute(fb: FunctionBuilder, x: Complex) -> Value:
    """The modulus, without overflow or underflow of the squares; infinite if either part is."""
    a, b = fb.fabs(x[0]), fb.fabs(x[1])
    smaller = fb.fcmp("olt", a, b)
    large, small = fb.select(smaller, b, a), fb.select(smaller, a, b)
    ratio = fb.fdiv(small, large)
    scaled = fb.fmul(large, fb.sqrt(fb.fadd(fb.fmul(ratio, ratio, ""), 1.0, "")), "")
    result = fb.select(fb.fcmp("oeq", large, 0.0), fb.fadd(large, small, ""), scaled)
    infinite = fb.or_(fb.fcmp("oeq", a, math.inf), fb.fcmp("oeq", b, math.inf))
    return fb.select(infinite, math.inf, result)


def exponential(fb: FunctionBuilder, x: Complex) -> Complex:
    """e^a (cos b + i sin b)."""
    scale = emit_math(fb, "exponential", x[0])
    real = fb.fmul(scale, emit_math(fb, "cosine", x[1]), "")
    product = fb.fmul(scale, emit_math(fb, "sine", x[1]), "")
    return real, fb.select(fb.fcmp("oeq", x[1], 0.0), x[1], product)


def logarithm(fb: FunctionBuilder, x: Complex) -> Complex:
    """The logarithm: log |x| + i arg x; near modulus 1, half log1p(|x|^2 - 1) with squares exact in two parts."""
    a, b = fb.fabs(x[0]), fb.fabs(x[1])
    smaller = fb.fcmp("olt", a, b)
    large, small = fb.select(smaller, b, a), fb.select(smaller, a, b)
    squared, small_squared = fb.fmul(large, large, ""), fb.fmul(small, small, "")
    lost = fb.fadd(fb.fma(large, large, fb.fneg(squared)), fb.fma(small, small, fb.fneg(small_squared)), "")
    beyond_one = fb.fadd(fb.fadd(fb.fsub(squared, 1.0, ""), small_squared, ""), lost, "")
    near = fb.fmul(emit_math(fb, "log-plus-one", beyond_one), 0.5, "")
    is_near = fb.fcmp("olt", fb.fabs(beyond_one), 0.5)
    return fb.select(is_near, near, emit_math(fb, "log", absolute(fb, x))), emit_math(fb, "atan2", x[1], x[0])


def power(fb: FunctionBuilder, x: Complex, y: Complex) -> Complex:
    """e^(y log x); x^0 is 1 and 0^y is 0 for y with a positive real part."""
    one, zero = constant(x[0].type, 1.0), constant(x[0].type, 0.0)
    general = exponential(fb, multiply(fb, y, logarithm(fb, x)))
    base_is_zero = fb.and_(fb.fcmp("oeq", x[0], 0.0), fb.fcmp("oeq", x[1], 0.0))
    exponent_is_zero = fb.and_(fb.fcmp("oeq", y[0], 0.0), fb.fcmp("oeq", y[1], 0.0))
    vanishes = fb.and_(base_is_zero, fb.fcmp("ogt", y[0], 0.0))
    real = fb.select(exponent_is_zero, one, fb.select(vanishes, zero, general[0]))
    imaginary = fb.select(fb.or_(exponent_is_zero, vanishes), zero, general[1])
    return real, imaginary


def square_root(fb: FunctionBuilder, x: Complex) -> Complex:
    """The root with a non-negative real part; the imaginary part has the sign of x's.

    Very large and very small numbers are scaled by an even power of two first.
    """
    bits = x[0].type.bits
    limit, step = (2.0**64, 2.0**32) if bits == 32 else (2.0**512, 2.0**256)
    larger = fb.maxnum(fb.fabs(x[0]), fb.fabs(x[1]))
    huge, tiny = fb.fcmp("ogt", larger, limit), fb.fcmp("olt", larger, 1 / limit)
    one = constant(x[0].type, 1.0)
    scale = fb.select(huge, step**-2, fb.select(tiny, step**2, one))
    back = fb.select(huge, step, fb.select(tiny, 1 / step, one))
    real_part, imaginary_part = fb.fmul(x[0], scale, ""), fb.fmul(x[1], scale, "")
    modulus = absolute(fb, (real_part, imaginary_part))
    half_sum = fb.fmul(fb.fadd(modulus, fb.fabs(real_part), ""), 0.5, "")
    large = fb.sqrt(half_sum)
    small = fb.fdiv(fb.fmul(fb.fabs(imaginary_part), 0.5, ""), large)
    small = fb.select(fb.fcmp("oeq", large, 0.0), 0.0, small)
    small = fb.select(fb.fcmp("oeq", modulus, math.inf), large, small)
    large, small = fb.fmul(large, back, ""), fb.fmul(small, back, "")
    positive = fb.fcmp("oge", x[0], 0.0)
    real = fb.select(positive, large, small)
    imaginary = fb.select(positive, small, large)
    return real, fb.copysign(imaginary, x[1])


def sine(fb: FunctionBuilder, x: Complex) -> Complex:
    """The sine: sin a cosh b + i cos a sinh b."""
    return (
        fb.fmul(emit_math(fb, "sine", x[0]), emit_math(fb, "cosh", x[1]), ""),
        fb.fmul(emit_math(fb, "cosine", x[0]), emit_math(fb, "sinh", x[1]), ""),
    )


def cosine(fb: FunctionBuilder, x: Complex) -> Complex:
    """The cosine: cos a cosh b - i sin a sinh b."""
    return (
        fb.fmul(emit_math(fb, "cosine", x[0]), emit_math(fb, "cosh", x[1]), ""),
        fb.fneg(fb.fmul(emit_math(fb, "sine", x[0]), emit_math(fb, "sinh", x[1]), "")),
    )


def hyperbolic_tangent(fb: FunctionBuilder, x: Complex) -> Complex:
    """The hyperbolic tangent, by tan b and sinh a, without cancellation near the poles.

    With t = tan b, s = sinh a, q = 1 + t^2: (q s sqrt(1 + s^2) + i t) / (1 + q s^2) (Kahan, "Branch cuts for complex
    elementary functions", 1987). Saturated for large |a|.
    """
    one = constant(x[0].type, 1.0)
    t, s = emit_math(fb, "tan", x[1]), emit_math(fb, "sinh", x[0])
    squared = fb.fmul(s, s, "")
    q = fb.fadd(one, fb.fmul(t, t, ""), "")
    denominator = fb.fadd(one, fb.fmul(q, squared, ""), "")
    rho = fb.sqrt(fb.fadd(one, squared, ""))
    real = fb.fdiv(fb.fmul(fb.fmul(q, rho, ""), s, ""), denominator)
    large = fb.fcmp("ogt", fb.fabs(x[0]), 20.0)
    return (
        fb.select(large, fb.copysign(one, x[0]), real),
        fb.select(large, 0.0, fb.fdiv(t, denominator)),
    )


def sign(fb: FunctionBuilder, x: Complex) -> Complex:
    """The unit number x / |x|; 0 for 0."""
    modulus = absolute(fb, x)
    is_zero = fb.fcmp("oeq", modulus, 0.0)
    real, imaginary = (fb.select(is_zero, 0.0, fb.fdiv(part, modulus)) for part in x)
    return real, imaginary


def logistic(fb: FunctionBuilder, x: Complex) -> Complex:
    """1 / (1 + e^-x)."""
    one, zero = constant(x[0].type, 1.0), constant(x[0].type, 0.0)
    shifted = exponential(fb, (fb.fneg(x[0]), fb.fneg(x[1])))
    return divide(fb, (one, zero), (fb.fadd(one, shifted[0], ""), shifted[1]))


def reciprocal_root(fb: FunctionBuilder, x: Complex) -> Complex:
    """1 / sqrt(x)."""
    return divide(fb, (constant(x[0].type, 1.0), constant(x[0].type, 0.0)), square_root(fb, x))


def minus_one(fb: FunctionBuilder, x: Complex) -> Complex:
    """e^x - 1, accurate near 0: expm1(a) cos b - 2 sin^2(b/2) + i e^a sin b."""
    half_sine = emit_math(fb, "sine", fb.fmul(x[1], 0.5, ""))
    shrunk = fb.fmul(fb.fmul(half_sine, half_sine, ""), 2.0, "")
    real = fb.fsub(fb.fmul(emit_math(fb, "exponential-minus-one", x[0]), emit_math(fb, "cosine", x[1]), ""), shrunk, "")
    return real, exponential(fb, x)[1]


def log_plus_one(fb: FunctionBuilder, x: Complex) -> Complex:
    """log(1 + x); the real part is half log1p(2a + a^2 + b^2) near 0."""
    a, b = x
    shifted = (fb.fadd(a, 1.0, ""), b)
    near = fb.fmul(
        emit_math(fb, "log-plus-one", fb.fadd(fb.fmul(a, fb.fadd(a, 2.0, ""), ""), fb.fmul(b, b, ""), "")), 0.5, ""
    )
    far = emit_math(fb, "log", absolute(fb, shifted))
    is_near = fb.and_(fb.fcmp("olt", fb.fabs(a), 0.5), fb.fcmp("olt", fb.fabs(b), 0.5))
    return fb.select(is_near, near, far), emit_math(fb, "atan2", b, shifted[0])


def atan2(fb: FunctionBuilder, y: Complex, x: Complex) -> Complex:
    """-i log((x + iy) / sqrt(x^2 + y^2))."""
    numerator = (fb.fsub(x[0], y[1], ""), fb.fadd(x[1], y[0], ""))
    norm = square_root(fb, add(fb, multiply(fb, x, x), multiply(fb, y, y)))
    real, imaginary = logarithm(fb, divide(fb, numerator, norm))
    return imaginary, fb.fneg(real)


def _unary(function: Callable[[FunctionBuilder, Complex], Element]) -> ComplexRule:
    def rule(fb: FunctionBuilder, dtype: DType, operands: _Operands) -> Element:
        return function(fb, operands[0])

    return rule


def _binary(function: Callable[[FunctionBuilder, Complex, Complex], Element]) -> ComplexRule:
    def rule(fb: FunctionBuilder, dtype: DType, operands: _Operands) -> Element:
        return function(fb, operands[0], operands[1])

    return rule


COMPLEX_BINARY = {
    "add": _binary(add),
    "subtract": _binary(subtract),
    "multiply": _binary(multiply),
    "divide": _binary(divide),
    "power": _binary(power),
    "atan2": _binary(atan2),
}

COMPLEX_UNARY = {
    "abs": _unary(absolute),
    "negate": _unary(lambda fb, x: (fb.fneg(x[0]), fb.fneg(x[1]))),
    "sign": _unary(sign),
    "exponential": _unary(exponential),
    "exponential-minus-one": _unary(minus_one),
    "log": _unary(logarithm),
    "log-plus-one": _unary(log_plus_one),
    "logistic": _unary(logistic),
    "sine": _unary(sine),
    "cosine": _unary(cosine),
    "tan": _unary(lambda fb, x: divide(fb, sine(fb, x), cosine(fb, x))),
    "tanh": _unary(hyperbolic_tangent),
    "sqrt": _unary(square_root),
    "rsqrt": _unary(reciprocal_root),
    "real": _unary(lambda fb, x: x[0]),
    "imag": _unary(lambda fb, x: x[1]),
    "copy": _unary(lambda fb, x: x),
}
