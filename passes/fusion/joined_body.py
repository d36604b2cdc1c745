"""Instructions made one computation: what a fusion computes."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.hlo.building.create import create
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.structural import ParameterAttrs
from xlalite.passes.fusion.fusible import is_immediate


def joined_body(
    name: str, members: Sequence[HloInstruction], results: Sequence[HloInstruction]
) -> tuple[HloComputation, list[HloInstruction]]:
    """Instructions and the bodies of fusions in one computation, and what they need from outside, by parameter.

    Args:
        name: The computation's.
        members: Operands before users; scalar constants that they need become part of the body. Where elements of the
            tuple that a fusion gives are members, too, there will be no tuple.
        results: Which of them it gives; several as a tuple.
    """
    body = HloComputation(name)
    inside = set(members)
    needed = dict.fromkeys(operand for member in members for operand in member.operands if operand not in inside)
    operands = [operand for operand in needed if not is_immediate(operand)]
    inner: dict[HloInstruction, HloInstruction] = {}
    for number, operand in enumerate(operands):
        label = f"param_{number}.{operand.name}"
        inner[operand] = body.add(create("parameter", (), ParameterAttrs(number), shape=operand.shape, name=label))
    inner |= {operand: body.add(operand.clone(())) for operand in needed if is_immediate(operand)}
    split = {member.operand(0) for member in members if member.opcode == "get-tuple-element"} & inside
    elements: dict[HloInstruction, list[HloInstruction]] = {}
    for member in members:
        if member.opcode == "get-tuple-element" and member.operand(0) in elements:
            inner[member] = elements[member.operand(0)][member.attrs.index]
            continue
        if member.opcode != "fusion":
            inner[member] = body.add(member.clone([inner[operand] for operand in member.operands]))
            continue
        (called,) = member.called_computations
        copies = {parameter: inner[member.operand(parameter.attrs.number)] for parameter in called.parameters}
        elements_of = called.root.operands if member in split else ()
        for one in called.post_order():
            if one not in copies and not (elements_of and one is called.root):
                copies[one] = body.add(one.clone([copies[operand] for operand in one.operands]))
        if elements_of:
            elements[member] = [copies[one] for one in elements_of]
        else:
            inner[member] = copies[called.root]
    given = [inner[result] for result in results]
    body.set_root(given[0] if len(given) == 1 else body.add(create("tuple", given)))
    return body, operands
