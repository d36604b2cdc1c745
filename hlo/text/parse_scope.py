"""The names of one computation while it is read."""

from __future__ import annotations

from dataclasses import field

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops import OPS
from xlalite.hlo.ops.structural import GetTupleElementAttrs, ParameterAttrs
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.shape import Shape


@dataclass(slots=True)
class Scope:
    """Names of one computation while it is read.

    Attributes:
        computation: What is read.
        instructions: Instructions by the name that the text gives them.
        elements: Tuple elements that operands like `x#0` asked for.
        generated: Instructions that have no name in the text, by the name they got; they give way to one that has it.
        free_operands: Whether an unknown operand with a shape becomes a parameter (text of a single instruction).
    """

    computation: HloComputation
    instructions: dict[str, HloInstruction] = field(default_factory=dict)
    elements: dict[tuple[HloInstruction, int], HloInstruction] = field(default_factory=dict)
    generated: dict[str, HloInstruction] = field(default_factory=dict)
    free_operands: bool = False

    def add(self, instruction: HloInstruction, name: str) -> HloInstruction:
        """Adds an instruction; a name in the text wins over one that was made up, "" asks for a made-up one."""
        computation = self.computation
        if not name:
            computation.add(instruction)
            self.generated[instruction.name] = instruction
            return instruction
        other = self.generated.pop(name, None)
        if other is not None:
            computation.rename(other, f"{name}.generated")
            self.generated[other.name] = other
        computation.add(instruction)
        self.instructions[name] = instruction
        return instruction

    def element(self, operand: HloInstruction, index: int) -> HloInstruction:
        """The element of a tuple, made on first use.

        Raises:
            ShapeError: The operand has no such element.
        """
        known = self.elements.get((operand, index))
        if known is not None:
            return known
        op, attrs = OPS["get-tuple-element"], GetTupleElementAttrs(index)
        shape = op.infer_shape([operand.shape], attrs)
        element = self.add(HloInstruction(op, shape, [operand], attrs), "")
        self.elements[(operand, index)] = element
        return element

    def free_parameter(self, shape: Shape, name: str) -> HloInstruction:
        """A new parameter with the next number."""
        number = len(self.computation.parameters)
        parameter = HloInstruction(
            OPS["parameter"], shape, (), ParameterAttrs(number), name=name or f"parameter.{number}"
        )
        return self.add(parameter, name)
