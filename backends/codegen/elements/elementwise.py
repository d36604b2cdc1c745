"""The frame of elementwise rules: operands at the same index, brought to a common number of lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from xlalite.backends.codegen.arrays.index import Index
from xlalite.backends.codegen.arrays.types import Element, round_result
from xlalite.backends.codegen.elements.elements import ElementEmitter, ElementRule
from xlalite.backends.codegen.elements.registers import Registers
from xlalite.backends.codegen.llvm import FunctionBuilder, Value
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.types.dtype import DType

RealRule: TypeAlias = Callable[[FunctionBuilder, DType, Registers], Value]
"""(builder, element type of the first operand, operand registers) -> result register."""

ComplexRule: TypeAlias = Callable[[FunctionBuilder, DType, tuple[tuple[Value, Value], ...]], Element]


def operand_elements(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> tuple[Element, ...]:
    """The operands' elements at the index; a scalar operand of an array operation is read at no index."""
    rank = instruction.shape.rank
    return emitter.unify(
        [emitter.element(operand, index if operand.shape.rank == rank else ()) for operand in instruction.operands]
    )


def real_rule(compute: RealRule, *, exact: bool = False) -> ElementRule:
    """A rule that computes registers from registers, and complex numbers as `complex_arithmetic` does.

    Args:
        compute: The operation on one register an operand.
        exact: The result of representable operands is representable, so nothing needs rounding.
    """

    def rule(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> Element:
        elements = operand_elements(emitter, instruction, index)
        dtype = instruction.operands[0].shape.dtype
        if isinstance(elements[0], tuple):
            from xlalite.backends.codegen.elements.complex_arithmetic import COMPLEX_RULES

            return COMPLEX_RULES[instruction.opcode](
                emitter.fb, dtype, tuple(e for e in elements if isinstance(e, tuple))
            )
        registers = tuple(e for e in elements if isinstance(e, Value))
        halves = emitter.as_f16(instruction, registers)
        if halves:
            with emitter.fb.contraction(False):
                return emitter.value_of_half(compute(emitter.fb, dtype, halves))
        result = compute(emitter.fb, dtype, registers)
        return result if exact else round_result(emitter.fb, instruction.shape.dtype, result)

    return rule
