"""Elements of binary elementwise operations; LLVM's undefined cases are guarded as XLA defines them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from xlalite.backends.codegen.arrays.index import Index
from xlalite.backends.codegen.arrays.types import Element, round_result
from xlalite.backends.codegen.elements.elements import ElementEmitter, ElementRule
from xlalite.backends.codegen.elements.elementwise import RealRule, operand_elements, real_rule
from xlalite.backends.codegen.elements.registers import Registers
from xlalite.backends.codegen.llvm import F32, F64, I32, FunctionBuilder, Value, constant, integer, number_of, vector
from xlalite.backends.codegen.math import emit_math
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.types.dtype import DType

if TYPE_CHECKING:
    from xlalite.backends.codegen.elements.known_divisors import KnownDivisor


def _add(fb: FunctionBuilder, dtype: DType, operands: Registers) -> Value:
    x, y = operands
    if dtype.is_floating:
        return fb.fadd(x, y)
    return fb.or_(x, y) if dtype is DType.PRED else fb.add(x, y)


def _subtract(fb: FunctionBuilder, dtype: DType, operands: Registers) -> Value:
    x, y = operands
    return fb.fsub(x, y) if dtype.is_floating else fb.sub(x, y)


def _multiply(fb: FunctionBuilder, dtype: DType, operands: Registers) -> Value:
    x, y = operands
    if dtype.is_floating:
        return _not_vanished(fb, dtype, fb.fmul(x, y))
    return fb.and_(x, y) if dtype is DType.PRED else fb.mul(x, y)


def _not_vanished(fb: FunctionBuilder, dtype: DType, result: Value) -> Value:
    """The result; where it fell below f32's range in a type that has no zero, a number that rounds to its least one."""
    if dtype is not DType.F8E8M0FNU:
        return result
    return fb.select(fb.fcmp("oeq", result, 0.0), 2.0**-149, result)


def _divide(fb: FunctionBuilder, dtype: DType, operands: Registers) -> Value:
    """X / 0 is -1 (all ones when unsigned); INT_MIN / -1 is INT_MIN."""
    x, y = operands
    if dtype.is_floating:
        return _not_vanished(fb, dtype, fb.fdiv(x, y))
    if number_of(y):
        return _quotient_by_known(fb, dtype, x, y)
    zero = fb.icmp("eq", y, 0)
    return fb.select(zero, constant(x.type, -1), _quotient(fb, dtype, x, y, zero))


def _quotient_of_elements(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> Element:
    x, y = instruction.operands
    known = emitter.divisors.get(y)
    if known is None or known.lanes != emitter.lanes:
        known = _known_constant(emitter, instruction, index)
    if known is None:
        return _DIVIDE(emitter, instruction, index)
    dividend = emitter.vector(x, index)
    assert isinstance(dividend, Value), "divisors that are known are real"
    is_usual = x.opcode == "convert" and x.operand(0).shape.dtype.is_integral and x.operand(0).shape.dtype.bits <= 16
    return round_result(emitter.fb, instruction.shape.dtype, known.quotient(emitter.fb, dividend, is_usual=is_usual))


def _known_constant(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> KnownDivisor | None:
    """What is known of a constant by which vectors are divided; None if it is none, or they had better be divided."""
    divisor, fb = instruction.operand(1), emitter.fb
    if emitter.lanes == 1 or not divisor.shape.dtype.is_floating or not fb.module.target.has_fma:
        return None
    element = emitter.element(divisor, index if divisor.shape.rank == instruction.shape.rank else ())
    number = number_of(element) if isinstance(element, Value) else None
    if not number:
        return None
    from xlalite.backends.codegen.elements.known_divisors import KnownDivisor

    assert isinstance(element, Value), "a number is a value"
    return KnownDivisor.of_number(fb, vector(element.type.scalar, emitter.lanes), float(number))


def _remainder(fb: FunctionBuilder, dtype: DType, operands: Registers) -> Value:
    """The dividend for a zero divisor; 0 for INT_MIN rem -1."""
    x, y = operands
    if dtype.is_floating:
        return emit_math(fb, "remainder", x, y)
    if number_of(y):
        return fb.sub(x, fb.mul(_quotient_by_known(fb, dtype, x, y), y))
    zero = fb.icmp("eq", y, 0)
    return fb.select(zero, x, fb.sub(x, fb.mul(_quotient(fb, dtype, x, y, zero), y)))


def _quotient(fb: FunctionBuilder, dtype: DType, x: Value, y: Value, zero: Value) -> Value:
    """X / y towards zero, wrapped; anything where the divisor is zero.

    Machines divide no vectors of integers. Those of up to 32 bits go by floats of so many digits that rounding the
    quotient never reaches the next integer.
    """
    by_floats = x.type.is_vector and dtype.bits <= 32
    if by_floats:
        widen, shorten = (fb.sitofp, fb.fptosi) if dtype.is_signed else (fb.uitofp, fb.fptoui)
        floating = F32 if dtype.bits <= 16 else F64
        quotient = fb.trunc(shorten(fb.fdiv(widen(x, floating), widen(y, floating)), I32), x.type)
    if dtype.is_unsigned:
        return quotient if by_floats else fb.udiv(x, fb.select(zero, 1, y))
    minus_one = fb.icmp("eq", y, -1)
    if not by_floats:
        quotient = fb.sdiv(x, fb.select(fb.or_(zero, minus_one), 1, y))
    return fb.select(minus_one, fb.neg(x), quotient)


def _quotient_by_known(fb: FunctionBuilder, dtype: DType, x: Value, y: Value) -> Value:
    """X divided by a number other than 0 that is known now, towards zero, wrapped.

    The quotient of vectors is a product with a float that is no less than the divisor's inverse: multiples do not fall
    short of their quotient, and what it is too large by never reaches the next integer.
    """
    divisor = int(number_of(y) or 0)
    if dtype.is_unsigned:
        divisor %= 1 << dtype.bits
    if divisor == -1:
        return fb.neg(x)
    if not x.type.is_vector or dtype.bits > 32:
        return fb.sdiv(x, y) if dtype.is_signed else fb.udiv(x, y)
    floating, single = (F32, np.float32) if dtype.bits <= 16 else (F64, np.float64)
    inverse = single(1) / single(abs(divisor))
    numerator, denominator = inverse.as_integer_ratio()
    if numerator * abs(divisor) < denominator:
        inverse = np.nextafter(inverse, single(1))
    signed = math.copysign(float(inverse), divisor)
    widen, shorten = (fb.sitofp, fb.fptosi) if dtype.is_signed else (fb.uitofp, fb.fptoui)
    return fb.trunc(shorten(fb.fmul(widen(x, floating), signed), I32), x.type)


def _shift(kind: str) -> RealRule:
    """Amounts are unsigned; at or over the width they give 0, or the sign for arithmetic right shifts."""

    def compute(fb: FunctionBuilder, dtype: DType, operands: Registers) -> Value:
        x, amount = operands
        if dtype.bits < 8 and dtype.is_signed:
            amount = fb.and_(amount, (1 << dtype.bits) - 1)
        over = fb.icmp("uge", amount, dtype.bits)
        if kind == "arithmetic":
            if dtype.bits < 8 and dtype.is_unsigned:
                x = fb.ashr(fb.shl(x, 8 - dtype.bits), 8 - dtype.bits)
            return fb.ashr(x, fb.select(over, dtype.bits - 1, amount))
        safe = fb.select(over, 0, amount)
        if kind == "left":
            shifted = fb.shl(x, safe)
        else:
            shifted = fb.lshr(fb.and_(x, (1 << dtype.bits) - 1) if dtype.bits < 8 else x, safe)
        return fb.select(over, 0, shifted)

    return compute


def maximum(fb: FunctionBuilder, dtype: DType, operands: Registers) -> Value:
    """The larger value; NaN if either is; +0 is larger than -0."""
    if dtype.is_floating:
        return fb.maximum(*operands)
    if dtype is DType.PRED:
        return fb.or_(operands[0], operands[1])
    return (fb.smax if dtype.is_signed else fb.umax)(*operands)


def minimum(fb: FunctionBuilder, dtype: DType, operands: Registers) -> Value:
    """The smaller value; NaN if either is; -0 is smaller than +0."""
    if dtype.is_floating:
        return fb.minimum(*operands)
    if dtype is DType.PRED:
        return fb.and_(operands[0], operands[1])
    return (fb.smin if dtype.is_signed else fb.umin)(*operands)


def _complex(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> Element:
    real, imaginary = operand_elements(emitter, instruction, index)
    assert isinstance(real, Value), "the shape rule lets only real parts through"
    assert isinstance(imaginary, Value), "the shape rule lets only real parts through"
    return real, imaginary


def _mulhi(fb: FunctionBuilder, dtype: DType, operands: Registers) -> Value:
    x, y = operands
    wide = x.type.with_scalar(integer(2 * max(dtype.bits, 8)))
    extend = fb.sext if dtype.is_signed else fb.zext
    product = fb.mul(extend(x, wide), extend(y, wide))
    return fb.trunc(fb.lshr(product, dtype.bits), x.type)


def _atan2(fb: FunctionBuilder, dtype: DType, operands: Registers) -> Value:
    return _not_vanished(fb, dtype, emit_math(fb, "atan2", *operands))


def _power(fb: FunctionBuilder, dtype: DType, operands: Registers) -> Value:
    if dtype.is_floating:
        return _not_vanished(fb, dtype, emit_math(fb, "power", *operands))
    return integer_power(fb, dtype, *operands)


def integer_power(fb: FunctionBuilder, dtype: DType, base: Value, exponent: Value) -> Value:
    """Square and multiply over all exponent bits; a negative exponent gives 1 for base 1, +-1 for base -1, else 0."""
    one = constant(base.type, 1)
    result, square = one, base
    for bit in range(dtype.bits - 1 if dtype.is_signed else dtype.bits):
        taken = fb.icmp("ne", fb.and_(exponent, 1 << bit), 0)
        result = fb.select(taken, fb.mul(result, square), result)
        square = fb.mul(square, square)
    if not dtype.is_signed:
        return result
    odd = fb.icmp("ne", fb.and_(exponent, 1), 0)
    of_minus_one = fb.select(odd, constant(base.type, -1), one)
    inverse = fb.select(fb.icmp("eq", base, -1), of_minus_one, 0)
    inverse = fb.select(fb.icmp("eq", base, 1), one, inverse)
    return fb.select(fb.icmp("slt", exponent, 0), inverse, result)


_DIVIDE = real_rule(_divide)

ELEMENT_RULES: dict[str, ElementRule] = {
    "add": real_rule(_add),
    "subtract": real_rule(_subtract),
    "multiply": real_rule(_multiply),
    "divide": _quotient_of_elements,
    "remainder": real_rule(_remainder),
    "maximum": real_rule(maximum, exact=True),
    "minimum": real_rule(minimum, exact=True),
    "mulhi": real_rule(_mulhi),
    "complex": _complex,
    "power": real_rule(_power),
    "atan2": real_rule(_atan2),
    "and": real_rule(lambda fb, dtype, xs: fb.and_(xs[0], xs[1]), exact=True),
    "or": real_rule(lambda fb, dtype, xs: fb.or_(xs[0], xs[1]), exact=True),
    "xor": real_rule(lambda fb, dtype, xs: fb.xor(xs[0], xs[1]), exact=True),
    "shift-left": real_rule(_shift("left")),
    "shift-right-logical": real_rule(_shift("logical")),
    "shift-right-arithmetic": real_rule(_shift("arithmetic")),
}
