"""How much work a program is: floating-point operations, transcendental functions, bytes read and written.

Loops count once unless the module says how often they run; bytes count each array once where a kernel reads or writes
it, so values inside a fusion cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from xlalite.hlo.computation import HloComputation
from xlalite.hlo.instruction import HloInstruction
from xlalite.hlo.module import HloModule
from xlalite.hlo.op import Trait


@dataclass(frozen=True, slots=True)
class Cost:
    """Work; costs add."""

    flops: int = 0
    transcendentals: int = 0
    bytes_accessed: int = 0

    def __add__(self, other: Cost) -> Cost:
        """The work of both."""
        return Cost(
            self.flops + other.flops,
            self.transcendentals + other.transcendentals,
            self.bytes_accessed + other.bytes_accessed,
        )

    def times(self, count: int) -> Cost:
        """The work of doing it `count` times."""
        return Cost(self.flops * count, self.transcendentals * count, self.bytes_accessed * count)

    def as_dict(self) -> dict[str, float]:
        """Under the names that XLA uses."""
        return {
            "flops": float(self.flops),
            "transcendentals": float(self.transcendentals),
            "bytes accessed": float(self.bytes_accessed),
        }


_MOVES_NOTHING = frozenset(
    {
        "parameter",
        "constant",
        "tuple",
        "get-tuple-element",
        "bitcast",
        "reshape",
        "opt-barrier",
        "after-all",
        "add-dependency",
    }
)


def cost_analysis(module: HloModule) -> Cost:
    """The work of one run of a module."""
    return _program_cost(module.entry_computation)


def computation_cost(computation: HloComputation) -> Cost:
    """The work of one run of a kernel's computation: arithmetic inside, bytes of parameters and results only."""
    arithmetic = sum((_arithmetic(instruction) for instruction in computation.instructions), Cost())
    moved = sum(parameter.shape.size_bytes for parameter in computation.parameters)
    return arithmetic + Cost(bytes_accessed=moved + computation.root.shape.size_bytes)


def instruction_cost(instruction: HloInstruction) -> Cost:
    """The work of one instruction of a program, everything that it calls included."""
    if instruction.opcode in _MOVES_NOTHING:
        return Cost()
    if instruction.opcode == "fusion":
        return computation_cost(instruction.called_computations[0])
    if instruction.opcode in ("while", "call"):
        return sum((_program_cost(called) for called in instruction.called_computations), Cost())
    if instruction.opcode == "conditional":
        branches = [_program_cost(called) for called in instruction.called_computations]
        return max(branches, key=lambda cost: (cost.flops, cost.bytes_accessed))
    moved = sum(operand.shape.size_bytes for operand in instruction.operands) + instruction.shape.size_bytes
    return _arithmetic(instruction) + Cost(bytes_accessed=moved)


def _program_cost(computation: HloComputation) -> Cost:
    return sum((instruction_cost(instruction) for instruction in computation.instructions), Cost())


def _arithmetic(instruction: HloInstruction) -> Cost:
    elements = instruction.shape.element_count if instruction.shape.is_array else 0
    if instruction.op.has(Trait.TRANSCENDENTAL):
        return Cost(transcendentals=elements)
    if instruction.op.flops is not None:
        return Cost(flops=instruction.op.flops(instruction))
    if instruction.op.is_elementwise and not instruction.op.has(Trait.DATA_MOVEMENT):
        return Cost(flops=elements)
    return Cost()
