"""Elements of comparison, selection and clamping."""

from __future__ import annotations

from xlalite.backends.codegen.arrays.index import Index
from xlalite.backends.codegen.arrays.types import Element
from xlalite.backends.codegen.elements.elements import ElementEmitter, Rule
from xlalite.backends.codegen.elements.elementwise import operand_elements
from xlalite.backends.codegen.elements.elementwise_binary import maximum, minimum
from xlalite.backends.codegen.llvm import FunctionBuilder, Value, integer
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.comparison import ComparisonType

_FLOAT_PREDICATES = {"EQ": "oeq", "NE": "une", "LT": "olt", "LE": "ole", "GT": "ogt", "GE": "oge"}


def _compare(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> Element:
    lhs, rhs = operand_elements(emitter, instruction, index)
    fb, direction = emitter.fb, instruction.attrs.direction.value
    dtype = instruction.operands[0].shape.dtype
    if isinstance(lhs, tuple) and isinstance(rhs, tuple):
        equal = fb.and_(fb.fcmp("oeq", lhs[0], rhs[0]), fb.fcmp("oeq", lhs[1], rhs[1]))
        return equal if direction == "EQ" else fb.not_(equal)
    assert isinstance(lhs, Value), "both operands have one element type"
    assert isinstance(rhs, Value), "both operands have one element type"
    if dtype.is_floating and instruction.attrs.type is not ComparisonType.TOTALORDER:
        return fb.fcmp(_FLOAT_PREDICATES[direction], lhs, rhs)
    if dtype.is_floating:
        lhs, rhs = total_order_key(fb, lhs), total_order_key(fb, rhs)
    return fb.icmp(integer_predicate(direction, signed=dtype.is_signed or dtype.is_floating), lhs, rhs)


def integer_predicate(direction: str, *, signed: bool) -> str:
    """LLVM's name of an integer comparison."""
    if direction in ("EQ", "NE"):
        return direction.lower()
    return ("s" if signed else "u") + direction.lower()


def total_order_key(fb: FunctionBuilder, value: Value) -> Value:
    """Signed integers in the total order -NaN < -inf < ... < -0 < +0 < ... < inf < NaN."""
    bits = fb.bitcast(value, value.type.with_scalar(integer(value.type.bits)))
    flipped = fb.xor(bits, fb.lshr(fb.ashr(bits, value.type.bits - 1), 1))
    return flipped


def _select(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> Element:
    condition, on_true, on_false = operand_elements(emitter, instruction, index)
    assert isinstance(condition, Value), "the condition is pred"
    fb = emitter.fb
    if isinstance(on_true, tuple) and isinstance(on_false, tuple):
        return fb.select(condition, on_true[0], on_false[0]), fb.select(condition, on_true[1], on_false[1])
    assert isinstance(on_true, Value), "both values have one element type"
    assert isinstance(on_false, Value), "both values have one element type"
    return fb.select(condition, on_true, on_false)


def _clamp(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> Element:
    low, value, high = operand_elements(emitter, instruction, index)
    assert isinstance(low, Value), "complex numbers have no order"
    assert isinstance(value, Value), "complex numbers have no order"
    assert isinstance(high, Value), "complex numbers have no order"
    fb, dtype = emitter.fb, instruction.shape.dtype
    return minimum(fb, dtype, (maximum(fb, dtype, (value, low)), high))


RULES: dict[str, Rule] = {"compare": _compare, "select": _select, "clamp": _clamp}
