"""Turns planned kernels into fusion instructions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xlalite.hlo.building.create import create
from xlalite.hlo.building.replacement import hand_over_control, remove_dead
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ops import OPS
from xlalite.hlo.ops.control_flow import FusionAttrs
from xlalite.hlo.ops.structural import GetTupleElementAttrs, ParameterAttrs
from xlalite.passes.fusion.group import KernelGroup


def fuse(module: HloModule, computation: HloComputation, groups: Sequence[KernelGroup]) -> None:
    """Replaces the members of each group by one fusion instruction; groups are given users first.

    All bodies are made before anything is replaced, and all is replaced before anything goes: what one kernel computes
    for itself another may give.
    """
    planned = []
    for group in groups:
        members = group.in_post_order()
        operands = _external_operands(members, group)
        planned.append((group, members, operands, module.add(_body(group, members, operands))))
    for group, _, operands, body in planned:
        _fuse_one(computation, group, operands, body)
    for _, members, _, _ in planned:
        for member in reversed(members):
            remove_dead(member)


def _fuse_one(
    computation: HloComputation, group: KernelGroup, operands: Sequence[HloInstruction], body: HloComputation
) -> None:
    fusion = HloInstruction(
        OPS["fusion"],
        body.root.shape,
        operands,
        FusionAttrs(group.kind.fusion_kind),
        (body,),
        name=f"{group.root.name}_fusion",
        metadata=group.root.metadata,
    )
    computation.add(fusion)
    _replace_outputs(computation, group, fusion)


def _body(group: KernelGroup, members: Sequence[HloInstruction], operands: Sequence[HloInstruction]) -> HloComputation:
    body = HloComputation(f"fused_{group.root.name}")
    inner: dict[HloInstruction, HloInstruction] = {}
    for number, operand in enumerate(operands):
        parameter = HloInstruction(
            OPS["parameter"], operand.shape, attrs=ParameterAttrs(number), name=f"param_{number}.{operand.name}"
        )
        inner[operand] = body.add(parameter)
    for member in members:
        inner[member] = body.add(member.clone([inner[operand] for operand in member.operands]))
    if len(group.outputs) == 1:
        body.set_root(inner[group.root])
    else:
        body.set_root(body.add(create("tuple", [inner[output] for output in group.outputs])))
    return body


def _replace_outputs(computation: HloComputation, group: KernelGroup, fusion: HloInstruction) -> None:
    members = group.places
    for number, output in enumerate(group.outputs):
        replacement = fusion
        if len(group.outputs) > 1:
            replacement = computation.add(
                create("get-tuple-element", (fusion,), GetTupleElementAttrs(number), metadata=output.metadata)
            )
        inside = [user for user in output.users if user in members and user is not fusion]
        hand_over_control(output, fusion)
        output.replace_all_uses_with(replacement, except_users=inside)


def _external_operands(members: Iterable[HloInstruction], group: KernelGroup) -> list[HloInstruction]:
    found: dict[HloInstruction, None] = {}
    for member in members:
        for operand in member.operands:
            if operand not in group.places:
                found[operand] = None
    return list(found)
