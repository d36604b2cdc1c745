"""The computation of a kernel: a fusion's own, or one made around a single instruction."""

from __future__ import annotations

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.records import dataclass
from xlalite.passes.fusion.joined_body import joined_body


@dataclass(frozen=True, slots=True)
class KernelBody:
    """A kernel's computation and the instructions whose arrays are its parameters, by number."""

    computation: HloComputation
    operands: tuple[HloInstruction, ...]


def kernel_body(instruction: HloInstruction) -> KernelBody:
    """The body of the kernel that computes an instruction.

    Scalar constants become part of the body. An operand that stands twice becomes one parameter.
    """
    if instruction.opcode == "fusion":
        return KernelBody(instruction.called_computations[0], instruction.operands)
    body, operands = joined_body(instruction.name, (instruction,), (instruction,))
    return KernelBody(body, tuple(operands))
