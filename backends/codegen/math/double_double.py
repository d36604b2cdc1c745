"""Unevaluated sums of two floats (Dekker, Knuth): twice the precision where one ulp needs it.

Every function returns (high, low) with high the rounded sum. Callers switch contraction off; a fused multiply-add
here is always explicit.
"""

from typing import TypeAlias

from xlalite.backends.codegen.llvm import FunctionBuilder, Value

Pair: TypeAlias = tuple[Value, Value]


def fast_two_sum(fb: FunctionBuilder, a: Value, b: Value) -> Pair:
    """`a + b` exactly, for |a| >= |b| or a = 0."""
    high = fb.fadd(a, b)
    return high, fb.fsub(b, fb.fsub(high, a))


def two_sum(fb: FunctionBuilder, a: Value, b: Value) -> Pair:
    """`a + b` exactly."""
    high = fb.fadd(a, b)
    b_part = fb.fsub(high, a)
    a_part = fb.fsub(high, b_part)
    return high, fb.fadd(fb.fsub(a, a_part), fb.fsub(b, b_part))


def two_product(fb: FunctionBuilder, a: Value, b: Value) -> Pair:
    """`a * b` exactly (barring underflow)."""
    high = fb.fmul(a, b)
    return high, fb.product_error(a, b, high)


def add_float(fb: FunctionBuilder, a: Pair, b: Value) -> Pair:
    """`a + b` for a pair and a float."""
    high, low = two_sum(fb, a[0], b)
    return fast_two_sum(fb, high, fb.fadd(low, a[1]))


def add(fb: FunctionBuilder, a: Pair, b: Pair) -> Pair:
    """`a + b`; relative error small unless the sum cancels."""
    high, low = two_sum(fb, a[0], b[0])
    return fast_two_sum(fb, high, fb.fadd(low, fb.fadd(a[1], b[1])))


def multiply(fb: FunctionBuilder, a: Pair, b: Pair) -> Pair:
    """`a * b`."""
    high, low = two_product(fb, a[0], b[0])
    low = fb.mul_add(a[0], b[1], low)
    low = fb.mul_add(a[1], b[0], low)
    return fast_two_sum(fb, high, low)


def divide(fb: FunctionBuilder, a: Pair, b: Pair) -> Pair:
    """`a / b` with one division: the quotient by the reciprocal, and its remainder by the same."""
    from_one = fb.fdiv(fb.constant(b[0].type, 1.0), b[0])
    high = fb.fmul(a[0], from_one)
    remainder = fb.fma(fb.fneg(high), b[0], a[0])
    remainder = fb.fadd(remainder, fb.mul_add(fb.fneg(high), b[1], a[1]))
    return high, fb.fmul(remainder, from_one)


def negate(fb: FunctionBuilder, a: Pair) -> Pair:
    """-a."""
    return fb.fneg(a[0]), fb.fneg(a[1])


def collapse(fb: FunctionBuilder, a: Pair) -> Value:
    """The nearest float."""
    return fb.fadd(a[0], a[1])


def square_root(fb: FunctionBuilder, a: Pair) -> Pair:
    """The square root of a >= 0; of 0 it is 0."""
    high = fb.sqrt(a[0])
    remainder = fb.fadd(fb.fma(fb.fneg(high), high, a[0]), a[1])
    low = fb.fdiv(remainder, fb.fadd(high, high))
    return high, fb.select(fb.fcmp("ogt", high, 0.0), low, 0.0)
