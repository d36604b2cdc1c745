"""Functions that say in parts what each device does: `jax.shard_map` among other operations.

Every device computes the rest on whole arrays. It takes its part of them where such a function begins, and the devices
put their parts together where it ends.
"""

from __future__ import annotations

import re

import numpy as np

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.building.create import create
from xlalite.hlo.building.indexing import gather_rows
from xlalite.hlo.building.replacement import replace
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ops.collectives import AllGatherAttrs
from xlalite.hlo.ops.control_flow import CallAttrs
from xlalite.hlo.stablehlo.reading.syntax import Program
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.replica_groups import ReplicaGroups
from xlalite.hlo.types.shape import Shape
from xlalite.interop.jax.shardings import Cut, cuts_in

_CUT, _JOIN = "xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape"
_TEXTS = {_CUT: "xla.sdy.in_shardings", _JOIN: "xla.sdy.out_shardings"}


def expand_manual_parts(module: HloModule, program: Program, num_devices: int) -> bool:
    """Makes operations of the calls between which devices have parts; False if how they are cut is not known here."""
    calls = [instruction for instruction in module.instructions() if _target(instruction) in _TEXTS]
    channels = [getattr(instruction.attrs, "channel_id", None) or 0 for instruction in module.instructions()]
    for number, instruction in enumerate(calls, max(channels, default=0) + 1):
        texts = dict(instruction.frontend_attributes)
        manual = set(re.findall(r'"([^"]+)"', texts.get("xla.sdy.manual_axes", "")))
        cuts = [cut.along(manual) for cut in cuts_in(program, texts.get(_TEXTS[_target(instruction)], ""))]
        results = instruction.shape.elements if instruction.shape.is_tuple else (instruction.shape,)
        builder, made = Builder(instruction.name, module), list[Handle]()
        if len(cuts) != len(instruction.operands):
            return False
        for operand, result, cut in zip(instruction.operands, results, cuts, strict=True):
            value, is_cut = builder.parameter(operand.shape), _target(instruction) == _CUT
            whole, part = (operand.shape, result) if is_cut else (result, operand.shape)
            if cut.is_cut and not (cut.devices == num_devices and cut.is_even(whole) and cut.part(whole) == part):
                return False
            make = _part if is_cut else _whole
            made.append(make(value, cut, whole, number) if cut.is_cut else value)
        computation = builder.build(builder.tuple(made) if instruction.shape.is_tuple else made[0])
        replace(instruction, create("call", instruction.operands, CallAttrs(), (computation,)))
    return True


def _target(instruction: HloInstruction) -> str:
    return instruction.attrs.custom_call_target if instruction.opcode == "custom-call" else ""


def _part(value: Handle, cut: Cut, whole: Shape, channel: int) -> Handle:
    """What this device has of an array."""
    b, part = value.builder, cut.part(whole)
    places = [cut.place(device, whole) for device in range(cut.devices)]
    device = b.convert(b.op("partition-id"), DType.S32)
    starts = []
    for dimension in range(whole.rank):
        table = b.constant(np.array([place[dimension].start for place in places], np.int32))
        starts.append(b.reshape(b.dynamic_slice(table, (device,), (1,)), ()))
    return b.dynamic_slice(value, starts, part.dims)


def _whole(value: Handle, cut: Cut, whole: Shape, channel: int) -> Handle:
    """The array of which the devices have parts: those together that differ in no other axis of the mesh."""
    b, tiles, rank = value.builder, cut.tiles(whole.rank), whole.rank
    groups = cut.groups()
    attrs = AllGatherAttrs(
        channel_id=channel, replica_groups=ReplicaGroups(groups), dimensions=(0,), use_global_device_ids=True
    )
    one = b.reshape(value, (1, *value.dims))
    parts = b.op("all-gather", (one,), attrs, shape=value.shape.with_dims((len(groups[0]), *value.dims)))
    starts = [tuple(place.start for place in cut.place(device, whole)) for device in groups[0]]
    order = np.array(sorted(range(len(starts)), key=lambda number: starts[number]), np.int32)
    chosen = b.reshape(gather_rows(b, parts, b.constant(order), 0), (*tiles, *value.dims))
    return b.reshape(b.transpose(chosen, [at for i in range(rank) for at in (i, rank + i)]), whole.dims)
