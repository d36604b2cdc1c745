"""Elements of conversions between element types."""

from __future__ import annotations

from xlalite.backends.codegen.arrays.index import Index
from xlalite.backends.codegen.arrays.types import (
    Element,
    normalize_integer,
    representation,
    round_result,
)
from xlalite.backends.codegen.elements.elements import ElementEmitter, ElementRule
from xlalite.backends.codegen.llvm import F32, F64, FunctionBuilder, Type, Value, zero
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.types.dtype import DType


def _convert(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> Element:
    operand = instruction.operand(0)
    element, source, target = emitter.element(operand, index), operand.shape.dtype, instruction.shape.dtype
    if source is DType.F32 and not emitter.rounds(target):
        return element
    return convert_element(emitter.fb, element, source, target)


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
            return round_result(fb, target, _rounded_to_odd(fb, value))
        return round_result(fb, target, _resize_float(fb, value, held.register))
    if source is DType.PRED:
        number = fb.uitofp(value, register)
        return number if target.bits > 8 else round_result(fb, target, number)
    if held.is_narrow_float and source.bits > 24:
        # Two roundings could differ from one: go through f64 (and its round to odd) first.
        wide = value.type.with_scalar(F64)
        exact = (fb.sitofp if source.is_signed else fb.uitofp)(value, wide)
        return round_result(fb, target, _rounded_to_odd(fb, exact))
    return round_result(fb, target, (fb.sitofp if source.is_signed else fb.uitofp)(value, register))


def _rounded_to_odd(fb: FunctionBuilder, value: Value) -> Value:
    from xlalite.backends.codegen.math.floating import round_to_odd_single

    return round_to_odd_single(fb, value)


def _resize_float(fb: FunctionBuilder, value: Value, register: object) -> Value:
    target = value.type.with_scalar(F64 if register is F64 else F32)
    if target.bits > value.type.bits:
        return fb.fpext(value, target)
    return fb.fptrunc(value, target) if target.bits < value.type.bits else value


def _same(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> Element:
    """The operand's element, for operations that do not change values."""
    return emitter.element(instruction.operand(0), index)


ELEMENT_RULES: dict[str, ElementRule] = {
    "convert": _convert,
    "copy": _same,
    "opt-barrier": _same,
}
