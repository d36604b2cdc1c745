"""The floating-point remainder (C's fmod), exact as its definition demands."""

from xlalite.backends.codegen.llvm import FunctionBuilder, Value, constant
from xlalite.backends.codegen.math.floating import format_of, with_sign_of


def emit_remainder(fb: FunctionBuilder, x: Value, y: Value) -> Value:
    """X - trunc(x / y) * y with the sign of x.

    While the quotient is below 2**mantissa_bits one step is exact. A lane with a larger quotient, a zero divisor or an
    infinite operand sends the vector to several steps.
    """
    dividend, divisor = fb.fabs(x), fb.fabs(y)
    rest = _rest(fb, dividend, divisor)
    hard = fb.fcmp("uge", fb.fdiv(dividend, divisor), 2.0 ** format_of(x).mantissa_bits)
    branch = fb.if_else(fb.any_lane(hard), likely=False)
    with branch.then():
        branch.yield_(_rest_in_steps(fb, dividend, divisor))
    with branch.otherwise():
        branch.yield_(rest)
    return with_sign_of(fb, branch.results[0], x)


def _rest(fb: FunctionBuilder, dividend: Value, divisor: Value) -> Value:
    """The rest by one multiply-add, which is exact: the rounded quotient is right or one too large."""
    quotient = fb.ftrunc(fb.fdiv(dividend, divisor))
    rest = fb.fma(fb.fneg(quotient), divisor, dividend)
    rest = fb.select(fb.fcmp("olt", rest, 0.0), fb.fadd(rest, divisor), rest)
    return fb.select(fb.fcmp("olt", dividend, divisor), dividend, rest)


def _rest_in_steps(fb: FunctionBuilder, dividend: Value, divisor: Value) -> Value:
    """Rests by the divisor times 2**(k * width), from the largest k that is needed down to 0; NaN as fmod has it."""
    width = format_of(dividend).mantissa_bits - 1
    is_number = fb.fcmp("olt", dividend, float("inf"))
    divides = fb.and_(fb.fcmp("ogt", divisor, 0.0), fb.fcmp("olt", divisor, float("inf")))
    rest, least = fb.select(is_number, dividend, 0.0), fb.select(divides, divisor, 1.0)
    with fb.while_loop([least]) as loop:
        (scaled,) = loop.values
        larger = fb.fmul(scaled, 2.0**width)
        fits = fb.fcmp("ole", larger, rest)
        loop.continue_while(fb.any_lane(fits))
        loop.yield_(fb.select(fits, larger, scaled))
    (scaled,) = loop.results
    rest = _rest(fb, rest, scaled)
    with fb.while_loop([scaled, rest]) as loop:
        scaled, rest = loop.values
        is_scaled = fb.fcmp("ogt", scaled, least)
        loop.continue_while(fb.any_lane(is_scaled))
        scaled = fb.select(is_scaled, fb.fmul(scaled, 2.0**-width), scaled)
        loop.yield_(scaled, _rest(fb, rest, scaled))
    rest = fb.select(fb.fcmp("olt", dividend, divisor), dividend, loop.results[1])
    return fb.select(fb.and_(is_number, fb.fcmp("ogt", divisor, 0.0)), rest, constant(rest.type, float("nan")))
