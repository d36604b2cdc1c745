"""The computation of a kernel: a fusion's own, or one made around a single instruction."""

from __future__ import annotations

from dataclasses import dataclass

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops import OPS
from xlalite.hlo.ops.structural import ParameterAttrs
from xlalite.passes.fusion.fusible import is_immediate


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
    body = HloComputation(instruction.name)
    inner: dict[HloInstruction, HloInstruction] = {}
    operands: list[HloInstruction] = []
    for operand in dict.fromkeys(instruction.operands):
        if is_immediate(operand):
            inner[operand] = body.add(operand.clone(()))
            continue
        parameter = HloInstruction(
            OPS["parameter"], operand.shape, attrs=ParameterAttrs(len(operands)), name=operand.name
        )
        inner[operand] = body.add(parameter)
        operands.append(operand)
    root = body.add(instruction.clone([inner[operand] for operand in instruction.operands]))
    body.set_root(root)
    return KernelBody(body, tuple(operands))
