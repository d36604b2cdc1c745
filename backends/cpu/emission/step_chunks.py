"""How the steps of a program are divided into native functions of bounded size."""

from __future__ import annotations

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Trait

_WEIGHT_OF_FUNCTION = 512
_OPERANDS_A_UNIT = 4


class StepChunks:
    """Divides computations into runs of instructions; what a loop or branch calls counts with it."""

    def __init__(self) -> None:
        self._found: dict[HloComputation, list[list[HloInstruction]]] = {}
        self._weights: dict[HloComputation, int] = {}

    def of(self, computation: HloComputation) -> list[list[HloInstruction]]:
        """The instructions that need code, in order; those of one run belong into one function."""
        found = self._found.get(computation)
        if found is None:
            self._divide(computation)
            found = self._found[computation]
        return found

    def _divide(self, computation: HloComputation) -> None:
        chunks: list[list[HloInstruction]] = [[]]
        weight = _WEIGHT_OF_FUNCTION
        for instruction in computation.instructions:
            if not instruction.op.computes:
                continue
            needed = self._weight(instruction)
            if weight < needed and chunks[-1]:
                chunks.append([])
                weight = _WEIGHT_OF_FUNCTION
            chunks[-1].append(instruction)
            weight -= needed
        self._found[computation] = chunks
        # A computation in several functions is a call of each where it is used.
        self._weights[computation] = _WEIGHT_OF_FUNCTION - weight if len(chunks) == 1 else len(chunks)

    def _weight(self, instruction: HloInstruction) -> int:
        weight = 1 + len(instruction.operands) // _OPERANDS_A_UNIT
        if instruction.op.has(Trait.CONTROL_FLOW):
            for called in instruction.called_computations:
                self.of(called)
                weight += self._weights[called]
        return weight
