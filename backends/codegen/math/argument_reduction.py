"""Reduction of angles modulo pi / 2, right for every finite number.

Up to a limit, Cody and Waite: x - n * c with c = pi / 2 (or pi) in three parts. The first step is exact by a fused
multiply-add, because x and n * c1 are multiples of one small power of two and their difference is below 2.

Beyond, Payne and Hanek: x is an integer times 2**e, and of the bits of 2 / pi only a window of 192 matters, because
the bits above it give whole turns. That is integer code for one number at a time, and stands behind a branch that is
taken only when some lane needs it. Between the two lies what f32 reduces in f64, all lanes at once.
"""

import sys
from collections.abc import Callable

from xlalite.backends.codegen.llvm import (
    F32,
    F64,
    I64,
    I128,
    Function,
    FunctionBuilder,
    ModuleBuilder,
    Type,
    Value,
    struct,
    zero,
)
from xlalite.backends.codegen.math import double_double as dd
from xlalite.backends.codegen.math.floating import DOUBLE, bits_of, power_of_two

TWO_OVER_PI = 0.6366197723675814
ONE_OVER_PI = 0.3183098861837907
# pi / 2 and pi in three parts.
HALF_PI = {
    F32: (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
    F64: (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
}
PI = {F32: (3.1415927410125732, -8.742277657347586e-08, -3.4302490200117637e-15)}
# Largest |x| for the three-part reduction.
LIMIT = {F32: 131072.0, F64: 2.0**30}
# Largest f32 |x| whose remainder f64 gives to 2^-37: no f32 comes nearer to a multiple of pi / 2 than 2^-30, and what
# rounding x - n * c1 loses is then below 2^-67.
_LIMIT_BY_DOUBLES = 2.0**40


def reduce_by_parts(fb: FunctionBuilder, x: Value, n: Value, parts: tuple[float, float, float]) -> Value:
    """X - n * (the constant in three parts) for |x| up to LIMIT."""
    for part in parts:
        x = fb.fma(n, -part, x)
    return x


def reduce_to_pair(fb: FunctionBuilder, x: Value, n: Value, parts: tuple[float, float, float]) -> dd.Pair:
    """X - n * (the constant in three parts) as a pair, for |x| up to LIMIT."""
    first, second, third = parts
    start = fb.fma(n, -first, x)
    high = fb.fma(n, -second, start)
    # What the second step lost. `step` alone is not exact where it cancels nearly all of `start`.
    step = fb.fsub(start, high)
    step_low = fb.fsub(fb.fsub(start, step), high)
    low = fb.fadd(fb.fma(n, -second, step), step_low)
    return high, fb.fma(n, -third, low)


def reduce_double(fb: FunctionBuilder, x: Value) -> tuple[dd.Pair, Value]:
    """The pair r in [-pi/4, pi/4] and an integer n, of which two bits count, with x = n * pi / 2 + r, for any f64 x."""
    high, low, quadrant = reduce_to_terms(fb, x)
    return dd.fast_two_sum(fb, high, low), quadrant


def reduce_to_terms(fb: FunctionBuilder, x: Value) -> tuple[Value, Value, Value]:
    """The same with r as a sum of two terms; of f32 numbers the larger one has all digits but the last."""
    shifted = fb.fma(x, TWO_OVER_PI, DOUBLE.rounder)
    n = fb.fsub(shifted, DOUBLE.rounder)
    high, low = reduce_to_pair(fb, x, n, HALF_PI[F64])
    quadrant = bits_of(fb, shifted)
    beyond = fb.fcmp("ogt", fb.fabs(x), LIMIT[F64])
    branch = fb.if_else(fb.any_lane(beyond), likely=False)
    with branch.then():
        exact = _reduce_exactly(fb, x, LIMIT[F64])
        fast = (high, low, quadrant)
        branch.yield_(*[fb.select(beyond, new, old) for new, old in zip(exact, fast, strict=True)])
    with branch.otherwise():
        branch.yield_(high, low, quadrant)
    high, low, quadrant = branch.results
    return high, low, quadrant


def with_large_lanes(
    fb: FunctionBuilder, x: Value, fast: tuple[Value, ...], adapt: Callable[[Value, Value], tuple[Value, ...]]
) -> tuple[Value, ...]:
    """f32: the parts of the fast reduction, computed anew in the lanes beyond LIMIT.

    `adapt` makes them from the exact reduction's remainder by pi / 2 (f64) and its integer (i64).
    """
    beyond = fb.fcmp("ogt", fb.fabs(x), LIMIT[F32])
    branch = fb.if_else(fb.any_lane(beyond), likely=False)
    with branch.then():
        high, _, quadrant = _reduce_exactly(fb, fb.fpext(x, F64), _LIMIT_BY_DOUBLES)
        exact = adapt(high, quadrant)
        branch.yield_(*[fb.select(beyond, new, old) for new, old in zip(exact, fast, strict=True)])
    with branch.otherwise():
        branch.yield_(*fast)
    return branch.results


def _reduce_exactly(fb: FunctionBuilder, x: Value, limit: float) -> tuple[Value, Value, Value]:
    """Remainder (high, low) and quadrant of f64 lanes, to a fraction of f32's precision of those up to the limit."""
    function = _exact_reduction(fb.module)
    if x.type.is_vector:
        key = ("math", "exact reduction", x.type, limit)
        function = fb.module.define_once(key, lambda: _define_lane_by_lane(fb.module, x.type, limit, function))
    parts = fb.call(function, x)
    return fb.extract_value(parts, 0), fb.extract_value(parts, 1), fb.extract_value(parts, 2)


def _define_lane_by_lane(module: ModuleBuilder, type_: Type, limit: float, function: Function) -> Function:
    """The reduction of one number, called for each lane beyond the limit; of the others by two parts of pi / 2."""
    result_types = (type_, type_, type_.with_scalar(I64))
    result_type = struct(*result_types)
    fb = module.function(
        module.unique_name(f"xlalite.reduce_exactly.{type_.mangled}"),
        result_type,
        (type_,),
        attributes=("nounwind", "willreturn", "noinline", "cold"),
        linkage="internal",
        contract=False,
    )
    (x,) = fb.parameters
    shifted = fb.fma(x, TWO_OVER_PI, DOUBLE.rounder)
    first, second, _ = HALF_PI[F64]
    n = fb.fsub(shifted, DOUBLE.rounder)
    by_parts = fb.fma(n, -second, fb.fma(n, -first, x))
    numbers, *columns = (fb.alloca(part, align=64) for part in (type_, *result_types))
    start = (x, by_parts, zero(type_), bits_of(fb, shifted))
    for pointer, value in zip((numbers, *columns), start, strict=True):
        fb.store(value, pointer, align=64)
    with fb.if_(fb.any_lane(fb.fcmp("ogt", fb.fabs(x), limit))), fb.loop(0, type_.lanes) as lane:
        number = fb.load(F64, fb.gep(F64, numbers, lane))
        with fb.if_(fb.fcmp("ogt", fb.fabs(number), limit)):
            parts = fb.call(function, number)
            for position, pointer in enumerate(columns):
                fb.store(fb.extract_value(parts, position), fb.gep(I64, pointer, lane))
    result = zero(result_type)
    for position, (part, pointer) in enumerate(zip(result_types, columns, strict=True)):
        result = fb.insert_value(result, fb.load(part, pointer, align=64), position)
    fb.ret(result)
    return fb.function


_WORDS = 21


def _two_over_pi_bits() -> bytes:
    """64 zero bits, then the leading bits of 2 / pi, as 64-bit words from the most significant on.

    A constant of nature as text would be 1,300 digits; it takes 30 integer operations to compute: pi by Machin's
    formula 16 atan(1/5) - 4 atan(1/239) in fixed point.
    """
    bits = 64 * (_WORDS - 1)
    guard = bits + 64
    pi = 16 * _inverse_tangent_of_inverse(5, guard) - 4 * _inverse_tangent_of_inverse(239, guard)
    fraction = (2 << (guard + bits)) // pi
    return b"".join(
        (fraction >> (64 * (_WORDS - 1 - position)) & (2**64 - 1)).to_bytes(8, sys.byteorder)
        for position in range(_WORDS)
    )


def _inverse_tangent_of_inverse(n: int, bits: int) -> int:
    """atan(1 / n) * 2**bits, a little below."""
    power = (1 << bits) // n
    total, divisor = 0, 1
    while power:
        total += power // divisor if divisor % 4 == 1 else -(power // divisor)
        power //= n * n
        divisor += 2
    return total


def _exact_reduction(module: ModuleBuilder) -> Function:
    """The internal function `(f64 x) -> {high, low, quadrant}` for |x| >= 2**17, infinite or NaN."""
    return module.define_once(("math", "exact reduction"), lambda: _define_exact_reduction(module))


def _define_exact_reduction(module: ModuleBuilder) -> Function:
    result_type = struct(F64, F64, I64)
    fb = module.function(
        module.unique_name("xlalite.reduce_exactly"),
        result_type,
        (F64,),
        attributes=("nounwind", "willreturn", "noinline", "cold"),
        linkage="internal",
        contract=False,
    )
    (x,) = fb.parameters
    bits = bits_of(fb, x)
    biased = fb.and_(fb.lshr(bits, 52), 0x7FF)
    # x = mantissa * 2**(biased - 1075). Bit j of 2 / pi then weighs 2**(biased - 1075 - j), and whole turns, weights
    # from 4 up, fall away: the window starts at bit biased - 1076, counted from 1, behind 64 zero bits.
    first = fb.add(biased, 64 - 1077)
    table = module.constant_bytes(_two_over_pi_bits())
    word, shift = fb.lshr(first, 6), fb.and_(first, 63)
    words = [fb.load(I64, fb.gep(I64, table, fb.add(word, k)), align=8) for k in range(4)]
    top, middle, bottom = (fb.fshl(words[k], words[k + 1], shift) for k in range(3))
    mantissa = fb.or_(fb.and_(bits, (1 << 52) - 1), 1 << 52)
    wide = fb.zext(mantissa, I128)
    # The product's 192 low bits: two bits of quadrant, then the fraction of one.
    low_product = fb.lshr(fb.mul(wide, fb.zext(bottom, I128)), 64)
    upper_window = fb.or_(fb.shl(fb.zext(top, I128), 64), fb.zext(middle, I128))
    product = fb.add(fb.mul(upper_window, wide), low_product)
    quadrant = fb.trunc(fb.lshr(product, 126), I64)
    fraction = fb.shl(product, 2)
    # A fraction from one half up belongs to the next quadrant, as a negative number.
    negative = fb.icmp("slt", fraction, 0)
    quadrant = fb.add(quadrant, fb.zext(negative, I64))
    magnitude = fb.select(negative, fb.neg(fraction), fraction)
    zeros = fb.ctlz(magnitude)
    normal = fb.shl(magnitude, fb.and_(zeros, 127))
    high_bits = fb.trunc(fb.lshr(normal, 75), I64)
    low_bits = fb.and_(fb.trunc(fb.lshr(normal, 22), I64), (1 << 53) - 1)
    unit = power_of_two(fb, fb.sub(fb.constant(I64, -53), fb.trunc(zeros, I64)), DOUBLE)
    high = fb.fmul(fb.uitofp(high_bits, F64), unit)
    low = fb.fmul(fb.fmul(fb.uitofp(low_bits, F64), 2.0**-53), unit)
    first_part, second_part, _ = HALF_PI[F64]
    pi_pair = fb.constant(F64, first_part), fb.constant(F64, second_part)
    high, low = dd.multiply(fb, (high, low), pi_pair)
    # The sign of the fraction and that of x; minus x is in quadrant minus n.
    positive = fb.icmp("sge", bits, 0)
    flip = fb.xor(negative, fb.not_(positive))
    high = fb.select(flip, fb.fneg(high), high)
    low = fb.select(flip, fb.fneg(low), low)
    quadrant = fb.select(positive, quadrant, fb.neg(quadrant))
    high = fb.select(fb.icmp("eq", biased, 0x7FF), float("nan"), high)
    result = fb.insert_value(zero(result_type), high, 0)
    result = fb.insert_value(result, low, 1)
    fb.ret(fb.insert_value(result, quadrant, 2))
    return fb.function
