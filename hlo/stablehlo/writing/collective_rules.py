"""Operations that devices do together."""

from __future__ import annotations

from typing import Any

from xlalite.hlo.stablehlo.reading.syntax import Dense
from xlalite.hlo.stablehlo.writing.exporter import NOTHING, Attributes, ExportContext, ExportRule, Leaf, Tree, grouped
from xlalite.hlo.stablehlo.writing.simple_rules import integers
from xlalite.hlo.stablehlo.writing.structure_rules import element
from xlalite.hlo.types.shape import Shape

_DEVICE_TO_DEVICE = 1


def _meeting(context: ExportContext, *, ids: bool = True) -> Attributes:
    """Who meets whom, on which channel."""
    attrs: Any = context.instruction.attrs
    found: Attributes = {"replica_groups": _groups(attrs.replica_groups.groups)}
    if ids and attrs.use_global_device_ids:
        found["use_global_device_ids"] = True
    return {**found, **_channel(attrs)}


def _channel(attrs: Any) -> Attributes:
    if attrs.channel_id is None:
        return {}
    return {"channel_handle": {"handle": attrs.channel_id, "type": _DEVICE_TO_DEVICE}}


def _groups(groups: tuple[tuple[int, ...], ...]) -> Dense:
    widest = max(map(len, groups), default=0)
    return integers([(*group, *(-1,) * (widest - len(group))) for group in groups], rank=2)


def _one_by_one(context: ExportContext, name: str, attributes: Attributes, shape: Shape) -> Tree:
    """An operation that takes one operand, for each of them."""
    shapes = [leaf for _, leaf in shape.leaves()]
    found: list[Leaf] = []
    for operand, result in zip(context.arrays, shapes, strict=True):
        regions = [context.block.region(computation) for computation in context.called]
        found.extend(context.block.emit(name, [operand], [result.without_layout()], dict(attributes), regions))
    return grouped(iter(found), shape)


def _all_reduce(context: ExportContext) -> Tree:
    return context.op("all_reduce", _meeting(context))


def _gathered(context: ExportContext, shape: Shape) -> Tree:
    dimension = context.instruction.attrs.dimensions[0]
    return context.op("all_gather", {"all_gather_dim": dimension, **_meeting(context)}, shape=shape)


def _all_gather(context: ExportContext) -> Tree:
    return _gathered(context, context.instruction.shape)


def _all_gather_start(context: ExportContext) -> Tree:
    parts = context.instruction.shape.elements
    operands = context.operands if len(context.operands) > 1 else context.operands[0]
    return operands, _gathered(context, parts[1])


def _reduce_scatter(context: ExportContext) -> Tree:
    attributes: Attributes = {"scatter_dimension": context.instruction.attrs.dimensions[0], **_meeting(context)}
    return _one_by_one(context, "reduce_scatter", attributes, context.instruction.shape)


def _all_to_all(context: ExportContext) -> Tree:
    """An array is cut along a dimension; without one there is an operand for each device, and they are joined first."""
    attrs, block = context.instruction.attrs, context.block
    groups = attrs.replica_groups.groups or (tuple(range(_devices(context))),)
    attributes: Attributes = {"replica_groups": _groups(groups), "split_count": len(groups[0]), **_channel(attrs)}
    if attrs.dimensions:
        places: Attributes = {"split_dimension": attrs.dimensions[0], "concat_dimension": attrs.dimensions[0]}
        return _one_by_one(context, "all_to_all", attributes | places, context.instruction.shape)
    shape = context.arrays[0].shape
    piece, whole = shape.with_dims((1, *shape.dims)), shape.with_dims((len(context.arrays), *shape.dims))
    rows = [block.one("reshape", [operand], piece) for operand in context.arrays]
    joined = block.one("concatenate", rows, whole, {"dimension": 0})
    exchanged = block.one("all_to_all", [joined], whole, attributes | {"split_dimension": 0, "concat_dimension": 0})
    found: list[Leaf] = []
    for number in range(len(rows)):
        starts, limits = (number,) + (0,) * shape.rank, (number + 1, *shape.dims)
        cut = {"start_indices": starts, "limit_indices": limits, "strides": (1,) * (shape.rank + 1)}
        found.append(block.one("reshape", [block.one("slice", [exchanged], piece, {**cut})], shape))
    return grouped(iter(found), context.instruction.shape)


def _devices(context: ExportContext) -> int:
    """How many devices there are when no groups are named."""
    config = context.block.export.module.config
    return config.replica_count if config.num_partitions == 1 else config.num_partitions


def _permuted(context: ExportContext, shape: Shape) -> Tree:
    attrs = context.instruction.attrs
    if attrs.slice_sizes:
        raise context.error("an update in place cannot be said")
    pairs: Attributes = {"source_target_pairs": integers(attrs.source_target_pairs, rank=2), **_channel(attrs)}
    return _one_by_one(context, "collective_permute", pairs, shape)


def _collective_permute(context: ExportContext) -> Tree:
    return _permuted(context, context.instruction.shape)


def _collective_permute_start(context: ExportContext) -> Tree:
    operand, result, *contexts = context.instruction.shape.elements
    if any(shape.element_count != 1 for shape in contexts) or operand.is_tuple:
        raise context.error("this form cannot be said")
    return (context.operands[0], _permuted(context, result), *(NOTHING for _ in contexts))


def _collective_broadcast(context: ExportContext) -> Tree:
    return _one_by_one(context, "collective_broadcast", _meeting(context, ids=False), context.instruction.shape)


def _second(context: ExportContext) -> Tree:
    return element(context.operands[0], 1)


def _operand(context: ExportContext) -> Tree:
    return context.operands[0]


RULES: dict[str, ExportRule] = {
    "all-reduce": _all_reduce,
    "all-reduce-start": _all_reduce,
    "all-reduce-done": _operand,
    "all-gather": _all_gather,
    "all-gather-start": _all_gather_start,
    "all-gather-done": _second,
    "reduce-scatter": _reduce_scatter,
    "all-to-all": _all_to_all,
    "collective-permute": _collective_permute,
    "collective-permute-start": _collective_permute_start,
    "collective-permute-done": _second,
    "collective-broadcast": _collective_broadcast,
}
