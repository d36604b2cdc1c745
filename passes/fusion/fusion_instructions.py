"""Turns planned kernels into fusion instructions."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.hlo.building.create import create
from xlalite.hlo.building.replacement import hand_over_control, remove_dead
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ops import OPS
from xlalite.hlo.ops.control_flow import FusionAttrs
from xlalite.hlo.ops.structural import GetTupleElementAttrs
from xlalite.passes.fusion.group import KernelGroup
from xlalite.passes.fusion.joined_body import joined_body


def fuse(module: HloModule, computation: HloComputation, groups: Sequence[KernelGroup]) -> None:
    """Replaces the members of each group by one fusion instruction; groups are given users first.

    All bodies are made before anything is replaced, and all is replaced before anything goes: what one kernel computes
    for itself another may give.
    """
    planned = []
    for group in groups:
        members = group.in_post_order()
        body, operands = joined_body(f"fused_{group.root.name}", members, group.outputs)
        planned.append((group, members, operands, module.add(body)))
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
