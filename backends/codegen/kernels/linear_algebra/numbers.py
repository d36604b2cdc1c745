"""Arithmetic on numbers of a matrix, alone or in vectors: a complex one is a pair of registers."""

from __future__ import annotations

from xlalite.backends.codegen.arrays.types import Element, round_result
from xlalite.backends.codegen.elements.complex_arithmetic import COMPLEX_RULES, add, multiply
from xlalite.backends.codegen.llvm import FunctionBuilder, Value, constant, integer, zero
from xlalite.hlo.types.dtype import DType


def minus_product(fb: FunctionBuilder, a: Element, b: Element, c: Element) -> Element:
    """A - b * c; b may be real where the others are complex."""
    if isinstance(a, tuple):
        assert isinstance(c, tuple), "both are complex"
        if not isinstance(b, tuple):
            return fb.fsub(a[0], fb.fmul(b, c[0])), fb.fsub(a[1], fb.fmul(b, c[1]))
        real = fb.fadd(fb.fsub(a[0], fb.fmul(b[0], c[0])), fb.fmul(b[1], c[1]))
        return real, fb.fsub(fb.fsub(a[1], fb.fmul(b[0], c[1])), fb.fmul(b[1], c[0]))
    assert isinstance(b, Value), "none of the three is complex"
    assert isinstance(c, Value), "none of the three is complex"
    return fb.fsub(a, fb.fmul(b, c))


def chosen(fb: FunctionBuilder, condition: Value, if_true: Element, if_false: Element) -> Element:
    """One of two elements, lane by lane."""
    if isinstance(if_true, tuple):
        assert isinstance(if_false, tuple), "both are complex"
        return fb.select(condition, if_true[0], if_false[0]), fb.select(condition, if_true[1], if_false[1])
    assert isinstance(if_false, Value), "neither is complex"
    return fb.select(condition, if_true, if_false)


def plus_product(fb: FunctionBuilder, a: Element, b: Element, c: Element) -> Element:
    """A + b * c."""
    return minus_product(fb, a, negative(fb, b), c)


def scaled(fb: FunctionBuilder, element: Element, factor: Value) -> Element:
    """A * b with real b."""
    if isinstance(element, tuple):
        return fb.fmul(element[0], factor), fb.fmul(element[1], factor)
    return fb.fmul(element, factor)


def product(fb: FunctionBuilder, a: Element, b: Element) -> Element:
    """A * b."""
    if isinstance(a, tuple):
        assert isinstance(b, tuple), "both are complex"
        return multiply(fb, a, b)
    assert isinstance(b, Value), "neither is complex"
    return fb.fmul(a, b)


def total(fb: FunctionBuilder, a: Element, b: Element) -> Element:
    """A + b."""
    if isinstance(a, tuple):
        assert isinstance(b, tuple), "both are complex"
        return add(fb, a, b)
    assert isinstance(b, Value), "neither is complex"
    return fb.fadd(a, b)


def negative(fb: FunctionBuilder, element: Element) -> Element:
    """-a."""
    return (fb.fneg(element[0]), fb.fneg(element[1])) if isinstance(element, tuple) else fb.fneg(element)


def one_like(element: Element) -> Element:
    """A one of the kind of an element."""
    return from_real(element, 1.0)


def from_real(like: Element, number: Value | float) -> Element:
    """A real number as one of the kind of an element."""
    part = like[0] if isinstance(like, tuple) else like
    real = number if isinstance(number, Value) else constant(part.type, number)
    return (real, zero(part.type)) if isinstance(like, tuple) else real


def real_part(element: Element) -> Value:
    """A real number itself."""
    return element[0] if isinstance(element, tuple) else element


def size_of(fb: FunctionBuilder, element: Element) -> Value:
    """The absolute value, of a complex number the sum of those of its parts."""
    if isinstance(element, tuple):
        return fb.fadd(fb.fabs(element[0]), fb.fabs(element[1]))
    return fb.fabs(element)


def is_equal(fb: FunctionBuilder, element: Element, number: float) -> Value:
    """Whether an element is a real number."""
    if isinstance(element, tuple):
        return fb.and_(fb.fcmp("oeq", element[0], number), fb.fcmp("oeq", element[1], 0.0))
    return fb.fcmp("oeq", element, number)


def quotient(fb: FunctionBuilder, dtype: DType, dividend: Element, divisor: Element) -> Element:
    """A / b."""
    if isinstance(dividend, tuple):
        assert isinstance(divisor, tuple), "both are complex"
        return COMPLEX_RULES["divide"](fb, dtype, (dividend, divisor))
    assert isinstance(divisor, Value), "neither is complex"
    return fb.fdiv(dividend, divisor)


def conjugate(fb: FunctionBuilder, element: Element) -> Element:
    """The conjugate of a complex number, a real one itself."""
    return (element[0], fb.fneg(element[1])) if isinstance(element, tuple) else element


def rounded(fb: FunctionBuilder, dtype: DType, element: Element) -> Element:
    """A number as one of the matrix's type."""
    return element if isinstance(element, tuple) else round_result(fb, dtype, element)


def near_inverse(fb: FunctionBuilder, number: Value) -> Value:
    """The power of two that brings a positive number, or almost, between one and two."""
    word, mantissa = integer(number.type.bits), 23 if number.type.bits == 32 else 52
    bias = (1 << number.type.bits - mantissa - 2) - 1
    exponent = fb.lshr(fb.bitcast(number, word), mantissa)
    exponent = fb.smin(fb.smax(exponent, 1), 2 * bias - 1)
    return fb.bitcast(fb.shl(fb.add(fb.neg(exponent), 2 * bias), mantissa), number.type)
