"""Elements made of the bits of others."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.backends.codegen.arrays.index import Affine, Index
from xlalite.backends.codegen.arrays.types import Element, from_memory, representation, round_result, to_memory
from xlalite.backends.codegen.elements.elements import ElementEmitter, ElementRule
from xlalite.backends.codegen.elements.registers import flatten
from xlalite.backends.codegen.llvm import FunctionBuilder, Value, integer
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.types.dtype import DType


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


ELEMENT_RULES: dict[str, ElementRule] = {
    "bitcast-convert": _bitcast_convert,
    "reduce-precision": _reduce_precision,
}
