"""The computation of a kernel: a fusion's own, one made around a single instruction, or several made one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xlalite.hlo.building.create import create
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


def joined_body(
    name: str, members: Sequence[HloInstruction], results: Sequence[HloInstruction]
) -> tuple[HloComputation, list[HloInstruction]]:
    """Instructions and the bodies of fusions in one computation, and what they need from outside, by parameter.

    Args:
        name: The computation's.
        members: Operands before users; scalar constants that they need become part of the body.
        results: Which of them it gives; several as a tuple.
    """
    body = HloComputation(name)
    inner: dict[HloInstruction, HloInstruction] = {}
    operands: list[HloInstruction] = []
    for member in members:
        for operand in member.operands:
            if operand in inner:
                continue
            if is_immediate(operand):
                inner[operand] = body.add(operand.clone(()))
                continue
            attrs = ParameterAttrs(len(operands))
            parameter = create(
                "parameter", (), attrs, shape=operand.shape, name=f"param_{len(operands)}.{operand.name}"
            )
            inner[operand] = body.add(parameter)
            operands.append(operand)
        if member.opcode != "fusion":
            inner[member] = body.add(member.clone([inner[operand] for operand in member.operands]))
            continue
        (called,) = member.called_computations
        copies = {parameter: inner[member.operand(parameter.attrs.number)] for parameter in called.parameters}
        for one in called.post_order():
            if one not in copies:
                copies[one] = body.add(one.clone([copies[operand] for operand in one.operands]))
        inner[member] = copies[called.root]
    given = [inner[result] for result in results]
    body.set_root(given[0] if len(given) == 1 else body.add(create("tuple", given)))
    return body, operands
