"""Elements that depend on chance.

stochastic-convert rounds to one of two neighbours, the nearer the likelier, by given random bits. What draws new random
numbers moves the counter of the process on.
"""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.backends.codegen.arrays.index import Index
from xlalite.backends.codegen.arrays.types import Element, from_memory, to_memory
from xlalite.backends.codegen.elements.conversion import convert_element
from xlalite.backends.codegen.elements.elements import ElementEmitter, ElementRule
from xlalite.backends.codegen.elements.random_state import RANDOM_STATE
from xlalite.backends.codegen.llvm import I64, I128, FunctionBuilder, Value, constant, integer
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


def counter_before(fb: FunctionBuilder, delta: int) -> Value:
    """The counter, which moves on: whoever comes at the same time gets other numbers."""
    return fb.atomic_rmw("add", fb.module.external_bytes(RANDOM_STATE, 16), constant(I128, delta))


def _random_state(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> Element:
    """A word of the counter; each lane has a counter of its own."""
    words = emitter.leaves.get(instruction)
    if words is None:
        words = emitter.leaves[instruction] = _counters(emitter, instruction.attrs.delta)
    is_low = emitter.fb.icmp("eq", emitter.math.vector(index[0]), 0)
    low, high = map(_register, words)
    return emitter.fb.select(is_low, low, high)


def _counters(emitter: ElementEmitter, delta: int) -> tuple[Value, Value]:
    fb, lanes = emitter.fb, emitter.lanes
    before = counter_before(fb, lanes * delta)
    numbers = [fb.add(before, lane * delta) for lane in range(lanes)]
    low = [fb.trunc(number, I64) for number in numbers]
    high = [fb.trunc(fb.lshr(number, 64), I64) for number in numbers]
    if lanes == 1:
        return low[0], high[0]
    return _gathered(fb, low), _gathered(fb, high)


def _gathered(fb: FunctionBuilder, scalars: Sequence[Value]) -> Value:
    vector = fb.splat(scalars[0], len(scalars))
    for lane, scalar in enumerate(scalars):
        vector = fb.insert(vector, scalar, lane)
    return vector


ELEMENT_RULES: dict[str, ElementRule] = {
    "stochastic-convert": _stochastic_convert,
    "rng-get-and-update-state": _random_state,
}
