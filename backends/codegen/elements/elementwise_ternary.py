"""Elements of selection and clamping."""

from __future__ import annotations

from xlalite.backends.codegen.arrays.index import Index
from xlalite.backends.codegen.arrays.types import Element, select_value
from xlalite.backends.codegen.elements.elements import ElementEmitter, ElementRule
from xlalite.backends.codegen.elements.elementwise import operand_elements
from xlalite.backends.codegen.elements.elementwise_binary import maximum, minimum
from xlalite.backends.codegen.llvm import Value
from xlalite.hlo.ir.instruction import HloInstruction


def _select(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> Element:
    condition, on_true, on_false = operand_elements(emitter, instruction, index)
    assert isinstance(condition, Value), "the condition is pred"
    fb, dtype = emitter.fb, instruction.shape.dtype
    if isinstance(on_true, tuple) and isinstance(on_false, tuple):
        return fb.select(condition, on_true[0], on_false[0]), fb.select(condition, on_true[1], on_false[1])
    assert isinstance(on_true, Value), "both values have one element type"
    assert isinstance(on_false, Value), "both values have one element type"
    return select_value(fb, dtype, condition, on_true, on_false)


def _clamp(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> Element:
    low, value, high = operand_elements(emitter, instruction, index)
    assert isinstance(low, Value), "complex numbers have no order"
    assert isinstance(value, Value), "complex numbers have no order"
    assert isinstance(high, Value), "complex numbers have no order"
    fb, dtype = emitter.fb, instruction.shape.dtype
    halves = emitter.as_f16(instruction, (low, value, high))
    low, value, high = halves or (low, value, high)
    result = minimum(fb, dtype, (maximum(fb, dtype, (value, low)), high))
    return emitter.value_of_half(result) if halves else result


ELEMENT_RULES: dict[str, ElementRule] = {"select": _select, "clamp": _clamp}
