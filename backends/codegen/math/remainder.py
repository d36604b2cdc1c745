"""The floating-point remainder (C's fmod), exact as its definition demands."""

from xlalite.backends.codegen.llvm import FunctionBuilder, Value
from xlalite.backends.codegen.math.floating import format_of, with_sign_of


def emit_remainder(fb: FunctionBuilder, x: Value, y: Value) -> Value:
    """X - trunc(x / y) * y with the sign of x.

    While the quotient is below 2**mantissa_bits one multiply-add is exact: the rounded quotient is right or one too
    large. Lanes with larger quotients, zero divisors or infinite operands send the vector to the C library.
    """
    format_ = format_of(x)
    dividend, divisor = fb.fabs(x), fb.fabs(y)
    quotient = fb.ftrunc(fb.fdiv(dividend, divisor))
    rest = fb.fma(fb.fneg(quotient), divisor, dividend)
    rest = fb.select(fb.fcmp("olt", rest, 0.0), fb.fadd(rest, divisor), rest)
    rest = fb.select(fb.fcmp("olt", dividend, divisor), dividend, rest)
    result = with_sign_of(fb, rest, x)
    hard = fb.fcmp("uge", quotient, 2.0**format_.mantissa_bits)
    branch = fb.if_else(fb.any_lane(hard), likely=False)
    with branch.then():
        branch.yield_(fb.frem(x, y))
    with branch.otherwise():
        branch.yield_(result)
    return branch.results[0]
