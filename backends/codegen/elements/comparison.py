"""Elements of comparison."""

from __future__ import annotations

from xlalite.backends.codegen.arrays.index import Index
from xlalite.backends.codegen.arrays.types import Element
from xlalite.backends.codegen.elements.elements import ElementEmitter, ElementRule
from xlalite.backends.codegen.elements.elementwise import operand_elements
from xlalite.backends.codegen.llvm import FunctionBuilder, Value, integer
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.comparison import ComparisonType
from xlalite.hlo.types.dtype import DType

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
        lhs, rhs = emitter.as_f16(instruction, (lhs, rhs)) or (lhs, rhs)
        return fb.fcmp(_FLOAT_PREDICATES[direction], lhs, rhs)
    if dtype.is_floating:
        if dtype is DType.F16:  # an f32 has lost whether NaN is quiet
            from xlalite.backends.codegen.arrays.narrow_floats import half_of

            lhs, rhs = half_of(fb, lhs), half_of(fb, rhs)
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


ELEMENT_RULES: dict[str, ElementRule] = {"compare": _compare}
