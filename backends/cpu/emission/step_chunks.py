"""How the steps of a program are divided into native functions of bounded size."""

from __future__ import annotations

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Trait
from xlalite.hlo.ir.traversal import callees_first

_WEIGHT_OF_FUNCTION = 512
_OPERANDS_A_UNIT = 4
_LOOPS_IN_FUNCTION = 8


class StepChunks:
    """Divides computations into runs of instructions; what a loop or branch calls counts with it."""

    def __init__(self, entry: HloComputation) -> None:
        """Divides what an entry computation calls, callees first."""
        self._found: dict[HloComputation, list[list[HloInstruction]]] = {}
        self._weights: dict[HloComputation, int] = {}
        self._depths: dict[HloComputation, int] = {}
        for computation in callees_first([entry]):
            self._divide(computation)

    def of(self, computation: HloComputation) -> list[list[HloInstruction]]:
        """The instructions that need code, in order; those of one run belong into one function."""
        return self._found[computation]

    @property
    def step_count(self) -> int:
        """How many instructions need code."""
        return sum(len(chunk) for chunks in self._found.values() for chunk in chunks)

    @property
    def are_one_function(self) -> bool:
        """Whether all steps belong into one function."""
        return not self.apart and all(len(chunks) == 1 for chunks in self._found.values())

    @property
    def apart(self) -> tuple[HloComputation, ...]:
        """The computations that get a function of their own, callees first, because loops in them are nested deep."""
        return tuple(one for one, depth in self._depths.items() if depth and depth % _LOOPS_IN_FUNCTION == 0)

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
        called = [
            one for i in computation.instructions if i.op.has(Trait.CONTROL_FLOW) for one in i.called_computations
        ]
        depth = self._depths[computation] = max((1 + self._depths[one] for one in called), default=0)
        # A computation in several functions is a call of each where it is used.
        is_apart = len(chunks) > 1 or (depth and depth % _LOOPS_IN_FUNCTION == 0)
        self._weights[computation] = len(chunks) if is_apart else _WEIGHT_OF_FUNCTION - weight

    def _weight(self, instruction: HloInstruction) -> int:
        weight = 1 + len(instruction.operands) // _OPERANDS_A_UNIT
        if instruction.op.has(Trait.CONTROL_FLOW):
            for called in instruction.called_computations:
                weight += self._weights[called]
        return weight
