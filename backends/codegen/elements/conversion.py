"""Elements of conversions between element types."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.backends.codegen.arrays.index import Affine, Index
from xlalite.backends.codegen.arrays.types import (
    Element,
    from_memory,
    normalize_integer,
    representation,
    round_result,
    to_memory,
)
from xlalite.backends.codegen.elements.elements import ElementEmitter, ElementRule
from xlalite.backends.codegen.elements.registers import flatten
from xlalite.backends.codegen.llvm import F32, F64, FunctionBuilder, Type, Value, integer, zero
from xlalite.backends.codegen.math.floating import round_to_odd_single
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.types.dtype import DType


def _convert(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> Element:
    operand = instruction.operand(0)
    element = emitter.element(operand, index)
    return convert_element(emitter.fb, element, operand.shape.dtype, instruction.shape.dtype)


def convert_element(fb: FunctionBuilder, element: Element, source: DType, target: DType) -> Element:
    """The element in another type: floats saturate to integers, NaN becomes 0, integers wrap, pred is x != 0."""
    if source is target:
        return element
    if isinstance(element, tuple):
        assert target.is_complex, "the shape rule refuses complex to real"
        part = representation(target).register
        return _resize_float(fb, element[0], part), _resize_float(fb, element[1], part)
    if target.is_complex:
        real = convert_element(fb, element, source, target.component)
        assert isinstance(real, Value), "component types are real"
        return real, zero(real.type)
    if target is DType.PRED:
        return fb.fcmp("une", element, 0.0) if source.is_floating else fb.icmp("ne", element, 0)
    if target.is_integral:
        return _to_integer(fb, element, source, target)
    return _to_float(fb, element, source, target)


def _to_integer(fb: FunctionBuilder, value: Value, source: DType, target: DType) -> Value:
    register = value.type.with_scalar(representation(target).register)
    if source.is_floating:
        return _saturate_narrow(fb, _saturated(fb, value, register, is_signed=target.is_signed), target)
    if source is DType.PRED:
        return normalize_integer(fb, target, fb.zext(value, register))
    if register.bits < value.type.bits:
        return normalize_integer(fb, target, fb.trunc(value, register))
    if register.bits > value.type.bits:
        return (fb.sext if source.is_signed else fb.zext)(value, register)
    return normalize_integer(fb, target, value)


def _saturated(fb: FunctionBuilder, value: Value, register: Type, *, is_signed: bool) -> Value:
    """The nearest integer of a register towards zero, 0 for NaN.

    LLVM's saturating conversions (of version 22) take the lanes of a vector one by one; its plain ones leave open what
    becomes of numbers out of range, which are not used here.
    """
    bits = register.scalar.bits
    low, high = (-(1 << (bits - 1)), 1 << (bits - 1)) if is_signed else (0, 1 << bits)
    converted = (fb.fptosi if is_signed else fb.fptoui)(value, register)
    converted = fb.select(fb.fcmp("oge", value, float(high)), high - 1, converted)
    converted = fb.select(fb.fcmp("olt", value, float(low)), low, converted)
    return fb.select(fb.fcmp("uno", value, value), 0, converted)


def _saturate_narrow(fb: FunctionBuilder, value: Value, target: DType) -> Value:
    if target.bits >= 8:
        return value
    if target.is_unsigned:
        return fb.umin(value, (1 << target.bits) - 1)
    return fb.smax(fb.smin(value, (1 << (target.bits - 1)) - 1), -(1 << (target.bits - 1)))


def _to_float(fb: FunctionBuilder, value: Value, source: DType, target: DType) -> Value:
    held = representation(target)
    register = value.type.with_scalar(held.register)
    if source.is_floating:
        if held.is_narrow_float and value.type.scalar is F64:
            return round_result(fb, target, round_to_odd_single(fb, value))
        return round_result(fb, target, _resize_float(fb, value, held.register))
    if source is DType.PRED:
        number = fb.uitofp(value, register)
        return number if target.bits > 8 else round_result(fb, target, number)
    if held.is_narrow_float and source.bits > 24:
        # Two roundings could differ from one: go through f64 (and its round to odd) first.
        wide = value.type.with_scalar(F64)
        exact = (fb.sitofp if source.is_signed else fb.uitofp)(value, wide)
        return round_result(fb, target, round_to_odd_single(fb, exact))
    return round_result(fb, target, (fb.sitofp if source.is_signed else fb.uitofp)(value, register))


def _resize_float(fb: FunctionBuilder, value: Value, register: object) -> Value:
    target = value.type.with_scalar(F64 if register is F64 else F32)
    if target.bits > value.type.bits:
        return fb.fpext(value, target)
    return fb.fptrunc(value, target) if target.bits < value.type.bits else value


def _bitcast_convert(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> Element:
    """The bits of the operand's element, some of them for a narrower type, or those of several for a wider one."""
    fb, operand = emitter.fb, instruction.operand(0)
    source, target = operand.shape.dtype, instruction.shape.dtype
    if source.bits > target.bits:
        return _part(emitter, operand, target, index)
    if source.bits < target.bits:
        parts = [(*index, Affine(number)) for number in range(target.bits // source.bits)]
        return _joined(fb, emitter.unify([emitter.element(operand, part) for part in parts]), source, target)
    element = emitter.element(operand, index)
    return element if isinstance(element, tuple) else _from_bits(fb, target, _bits(fb, source, element))


def _part(emitter: ElementEmitter, operand: HloInstruction, target: DType, index: Index) -> Element:
    """The part of a wide element that the last position counts, the lowest bits being the first."""
    fb, source, (*place, last) = emitter.fb, operand.shape.dtype, index
    number: Element = emitter.math.vector(last)
    if isinstance(last, Affine) and last.step == 0:
        number = emitter.math.scalar(last.base)
    number, element = emitter.unify((number, emitter.element(operand, tuple(place))))
    assert isinstance(number, Value), "a position is one register"
    if isinstance(element, tuple):
        real, imaginary = (_bits(fb, source.component, part) for part in element)
        word = fb.select(fb.icmp("eq", number, 0), real, imaginary)
        high = fb.lshr(word, target.component.bits)
        return _from_bits(fb, target.component, word), _from_bits(fb, target.component, high)
    word = _bits(fb, source, element)
    return _from_bits(fb, target, fb.lshr(word, fb.mul(fb.trunc(number, word.type), target.bits)))


def _joined(fb: FunctionBuilder, parts: Sequence[Element], source: DType, target: DType) -> Element:
    """A wide element of its parts, the first being the lowest bits."""
    if target.is_complex:
        first, second = (_joined(fb, flatten([part]), source.component, target.component) for part in parts)
        assert isinstance(first, Value), "the parts of a complex number are real"
        assert isinstance(second, Value), "the parts of a complex number are real"
        return first, second
    word: Value | None = None
    for number, part in enumerate(parts):
        assert isinstance(part, Value), "a real number is one register"
        bits = _bits(fb, source, part)
        if source.bits < 8:
            bits = fb.and_(bits, (1 << source.bits) - 1)
        bits = fb.shl(fb.zext(bits, representation(target).word), number * source.bits)
        word = bits if word is None else fb.or_(word, bits)
    assert word is not None, "there are parts"
    return _from_bits(fb, target, word)


def _bits(fb: FunctionBuilder, dtype: DType, value: Value) -> Value:
    """What is stored for a value (one part), as an integer."""
    stored = to_memory(fb, dtype, value)
    return fb.bitcast(stored, stored.type.with_scalar(representation(dtype).word))


def _from_bits(fb: FunctionBuilder, dtype: DType, bits: Value) -> Value:
    """The value (one part) of which the lowest bits are stored."""
    held = representation(dtype)
    if bits.type.bits > held.word.bits:
        bits = fb.trunc(bits, held.word)
    if dtype.bits < 8:
        bits = fb.and_(bits, (1 << dtype.bits) - 1)
    return from_memory(fb, dtype, fb.bitcast(bits, bits.type.with_scalar(held.memory)))


def _reduce_precision(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> Element:
    value = emitter.register(instruction.operand(0), index)
    attrs = instruction.attrs
    reduced = reduce_precision(emitter.fb, value, attrs.exponent_bits, attrs.mantissa_bits)
    return round_result(emitter.fb, instruction.shape.dtype, reduced)


def reduce_precision(fb: FunctionBuilder, value: Value, exponent_bits: int, mantissa_bits: int) -> Value:
    """Rounds to a format with fewer bits: to nearest even, overflow to infinity, small numbers to zero, NaN stays."""
    own_mantissa, own_exponent = (23, 8) if value.type.bits == 32 else (52, 11)
    word = value.type.with_scalar(integer(value.type.bits))
    bits = fb.bitcast(value, word)
    if mantissa_bits < own_mantissa:
        dropped = own_mantissa - mantissa_bits
        last = fb.and_(fb.lshr(bits, dropped), 1)
        rounded = fb.add(fb.add(bits, last), (1 << (dropped - 1)) - 1)
        bits = fb.and_(rounded, -1 << dropped)
    if exponent_bits < own_exponent:
        bits = _limit_exponent(fb, bits, exponent_bits, own_exponent, own_mantissa)
    is_nan = fb.fcmp("uno", value, value)
    return fb.select(is_nan, value, fb.bitcast(bits, value.type))


def _limit_exponent(fb: FunctionBuilder, bits: Value, exponent_bits: int, own_exponent: int, mantissa: int) -> Value:
    bias, narrow_bias = (1 << (own_exponent - 1)) - 1, (1 << (exponent_bits - 1)) - 1
    sign_bit = 1 << (own_exponent + mantissa)
    field = ((1 << own_exponent) - 1) << mantissa
    exponent = fb.and_(bits, field)
    sign = fb.and_(bits, sign_bit)
    overflows = fb.icmp("ugt", exponent, (bias + narrow_bias) << mantissa)
    underflows = fb.icmp("ule", exponent, (bias - narrow_bias) << mantissa)
    bits = fb.select(overflows, fb.or_(sign, field), bits)
    return fb.select(underflows, sign, bits)


def _same(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> Element:
    """The operand's element, for operations that do not change values."""
    return emitter.element(instruction.operand(0), index)


ELEMENT_RULES: dict[str, ElementRule] = {
    "convert": _convert,
    "bitcast-convert": _bitcast_convert,
    "reduce-precision": _reduce_precision,
    "copy": _same,
    "opt-barrier": _same,
}
