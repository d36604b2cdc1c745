"""What a module costs: arithmetic, transcendental functions and bytes, by instruction and in total.

The figures come from the declarations of the operations and from shapes; nothing is measured.
"""

from __future__ import annotations

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ir.op import Trait
from xlalite.hlo.records import dataclass


@dataclass(frozen=True, slots=True)
class Cost:
    """An estimate.

    Attributes:
        flops: Arithmetic operations, transcendental functions not among them.
        transcendentals: Evaluations of transcendental functions.
        bytes_accessed: Bytes of all operands and results that kernels read and write.
    """

    flops: int = 0
    transcendentals: int = 0
    bytes_accessed: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.flops + other.flops,
            self.transcendentals + other.transcendentals,
            self.bytes_accessed + other.bytes_accessed,
        )

    def times(self, count: int) -> Cost:
        """The cost of so many repetitions."""
        return Cost(self.flops * count, self.transcendentals * count, self.bytes_accessed * count)

    def as_dict(self) -> dict[str, float]:
        """The figures under XLA's names."""
        return {
            "flops": float(self.flops),
            "transcendentals": float(self.transcendentals),
            "bytes accessed": float(self.bytes_accessed),
        }


class CostAnalysis:
    """Costs of instructions and computations, remembered while the module does not change.

    A loop whose number of iterations is not known counts as one iteration; a conditional as its most expensive branch.
    """

    __slots__ = ("_computations",)

    def __init__(self) -> None:
        self._computations: dict[HloComputation, Cost] = {}

    def of_computation(self, computation: HloComputation) -> Cost:
        """The cost of one execution."""
        found = self._computations.get(computation)
        if found is None:
            found = Cost()
            for instruction in computation.instructions:
                found += self.of_instruction(instruction)
            self._computations[computation] = found
        return found

    def of_instruction(self, instruction: HloInstruction) -> Cost:
        """The cost of one execution, called computations included."""
        if not instruction.op.computes:
            return Cost()
        called = [self.of_computation(callee) for callee in instruction.called_computations]
        if instruction.opcode == "while":
            from xlalite.passes.analysis.trip_count import trip_count

            count = trip_count(instruction)
            return (called[0] + called[1]).times(1 if count is None else count)
        if instruction.opcode == "conditional":
            return max(called, key=lambda cost: cost.flops + cost.transcendentals + cost.bytes_accessed)
        if instruction.opcode == "call":
            return called[0]
        if instruction.opcode == "fusion":
            return Cost(called[0].flops, called[0].transcendentals, _bytes_accessed(instruction))
        return Cost(*_arithmetic(instruction), _bytes_accessed(instruction))


def cost_analysis(module: HloModule) -> Cost:
    """The cost of one execution of a module."""
    return CostAnalysis().of_computation(module.entry_computation)


def _arithmetic(instruction: HloInstruction) -> tuple[int, int]:
    """(arithmetic operations, transcendental functions)."""
    elements = instruction.shape.element_count if instruction.shape.is_array else 0
    if instruction.op.has(Trait.TRANSCENDENTAL):
        return 0, elements
    if instruction.op.flops is not None:
        return instruction.op.flops(instruction), 0
    return (elements if instruction.op.is_elementwise else 0), 0


def _bytes_accessed(instruction: HloInstruction) -> int:
    return instruction.shape.size_bytes + sum(operand.shape.size_bytes for operand in instruction.operands)
