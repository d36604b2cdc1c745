"""Which computations are the same function, names and metadata aside."""

from __future__ import annotations

from collections.abc import Hashable

from xlalite.hlo.computation import HloComputation
from xlalite.hlo.instruction import HloInstruction


class StructuralIds:
    """Gives equal numbers to computations that do the same; numbers mean something within one object only.

    A number describes the computation as it was when first asked for.
    """

    __slots__ = ("_by_computation", "_by_key")

    def __init__(self) -> None:
        """Knows no computation yet."""
        self._by_computation: dict[HloComputation, int] = {}
        self._by_key: dict[Hashable, int] = {}

    def of(self, computation: HloComputation) -> int:
        """The computation's number."""
        found = self._by_computation.get(computation)
        if found is not None:
            return found
        positions: dict[HloInstruction, int] = {}
        lines: list[Hashable] = []
        for instruction in computation.post_order():
            positions[instruction] = len(lines)
            lines.append(self._line(instruction, positions))
        key = (tuple(lines), positions[computation.root])
        number = self._by_key.setdefault(key, len(self._by_key))
        self._by_computation[computation] = number
        return number

    def callees(self, instruction: HloInstruction) -> tuple[int, ...]:
        """The numbers of the computations that an instruction calls."""
        return tuple(self.of(callee) for callee in instruction.called_computations)

    def _line(self, instruction: HloInstruction, positions: dict[HloInstruction, int]) -> Hashable:
        operands = tuple(positions[operand] for operand in instruction.operands)
        before = tuple(positions[predecessor] for predecessor in instruction.control_predecessors)
        return (
            instruction.opcode,
            instruction.shape,
            instruction.attrs,
            instruction.backend_config,
            operands,
            before,
            self.callees(instruction),
        )
