"""Functions that say in parts what each device does: `jax.shard_map` among other operations.

Every device computes the rest on whole arrays. It takes its part of them where such a function begins, and the devices
put their parts together where it ends.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.building.create import create
from xlalite.hlo.building.indexing import gather_rows
from xlalite.hlo.building.replacement import replace
from xlalite.hlo.ir.computation import HloComputation
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
_BODY = "xla.sdy.manual_computation_body"


def expand_manual_parts(module: HloModule, program: Program, num_devices: int) -> bool:
    """Makes operations of the calls between which devices have parts; False if how they are cut is not known here."""
    calls = [instruction for instruction in module.instructions() if _target(instruction) in _TEXTS]
    bodies = [each for each in module.computations() if each.name.startswith(_BODY)]
    if any(_target(instruction) in _TEXTS for body in bodies for instruction in _inside(body)):
        return False  # the devices of an inner function would be those of a part of the mesh
    channels = [getattr(instruction.attrs, "channel_id", None) or 0 for instruction in module.instructions()]
    for number, instruction in enumerate(calls, max(channels, default=0) + 1):
        cuts = cuts_in(program, dict(instruction.frontend_attributes).get(_TEXTS[_target(instruction)], ""))
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


def _inside(computation: HloComputation) -> Iterator[HloInstruction]:
    """The instructions of a computation and of those that it calls."""
    for instruction in computation.instructions:
        yield instruction
        for called in instruction.called_computations:
            yield from _inside(called)


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
    """The array of which the devices have parts."""
    b, tiles, rank = value.builder, cut.tiles(whole.rank), whole.rank
    groups = ReplicaGroups((tuple(range(cut.devices)),))
    attrs = AllGatherAttrs(channel_id=channel, replica_groups=groups, dimensions=(0,), use_global_device_ids=True)
    one = b.reshape(value, (1, *value.dims))
    parts = b.op("all-gather", (one,), attrs, shape=value.shape.with_dims((cut.devices, *value.dims)))
    owners = dict[tuple[int, ...], int]()
    for device in range(cut.devices):
        owners.setdefault(tuple(place.start for place in cut.place(device, whole)), device)
    order = np.array([owners[start] for start in sorted(owners)], np.int32)
    chosen = b.reshape(gather_rows(b, parts, b.constant(order), 0), (*tiles, *value.dims))
    return b.reshape(b.transpose(chosen, [at for i in range(rank) for at in (i, rank + i)]), whole.dims)
