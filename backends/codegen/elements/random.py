"""Elements of stochastic-convert: rounding to one of two neighbours, the nearer the likelier, by given random bits."""

from __future__ import annotations

from xlalite.backends.codegen.arrays.index import Index
from xlalite.backends.codegen.arrays.types import Element, from_memory, to_memory
from xlalite.backends.codegen.elements.conversion import convert_element
from xlalite.backends.codegen.elements.elements import ElementEmitter, ElementRule
from xlalite.backends.codegen.llvm import I64, FunctionBuilder, Value, integer
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.types.dtype import DType


def _stochastic_convert(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> Element:
    fb, target = emitter.fb, instruction.shape.dtype
    operand, random = instruction.operands
    elements = emitter.unify((emitter.element(operand, index), emitter.element(random, index)))
    wide = convert_element(fb, elements[0], operand.shape.dtype, DType.F64)
    bits = elements[1]
    assert isinstance(wide, Value), "the shape rule lets only real numbers through"
    assert isinstance(bits, Value), "random numbers are integers"
    width = random.shape.dtype.bits
    if width < 64:
        bits = fb.zext(bits, bits.type.with_scalar(I64))
    if target.is_integral:
        return _to_integer(fb, wide, bits, width, target)
    return _to_float(fb, wide, bits, width, target)


def _to_integer(fb: FunctionBuilder, value: Value, bits: Value, width: int, target: DType) -> Element:
    size = fb.fabs(value)
    whole = fb.ftrunc(size)
    away = _goes_away(fb, fb.fsub(size, whole), bits, width)
    rounded = fb.select(away, fb.fadd(whole, 1.0), whole)
    return convert_element(fb, fb.copysign(rounded, value), DType.F64, target)


def _to_float(fb: FunctionBuilder, value: Value, bits: Value, width: int, target: DType) -> Element:
    """The bit patterns of neighbours are neighbours: the one away from zero is the larger by 1."""
    size = fb.fabs(value)
    nearest = to_memory(fb, target, _register(convert_element(fb, value, DType.F64, target)))
    pattern = fb.bitcast(nearest, nearest.type.with_scalar(integer(8 * target.size_bytes)))

    def size_of(some: Value) -> Value:
        register = from_memory(fb, target, fb.bitcast(some, nearest.type))
        return fb.fabs(_register(convert_element(fb, register, target, DType.F64)))

    toward = fb.select(fb.fcmp("ogt", size_of(pattern), size), fb.sub(pattern, 1), pattern)
    away = fb.add(toward, 1)
    low, high = size_of(toward), size_of(away)
    inside = fb.and_(fb.fcmp("olt", low, size), fb.fcmp("olt", size, high))
    inside = fb.and_(inside, fb.fcmp("olt", high, float("inf")))
    fraction = fb.fdiv(fb.fsub(size, low), fb.fsub(high, low))
    chosen = fb.select(_goes_away(fb, fraction, bits, width), away, toward)
    return from_memory(fb, target, fb.bitcast(fb.select(inside, chosen, pattern), nearest.type))


def _goes_away(fb: FunctionBuilder, fraction: Value, bits: Value, width: int) -> Value:
    """Whether random < floor(fraction * 2^width)."""
    threshold = fb.fptoui_sat(fb.fmul(fraction, 2.0**width), bits.type)
    return fb.icmp("ult", bits, threshold)


def _register(element: Element) -> Value:
    assert isinstance(element, Value), "real numbers take one register"
    return element


ELEMENT_RULES: dict[str, ElementRule] = {"stochastic-convert": _stochastic_convert}
