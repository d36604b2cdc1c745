"""Operations that devices do together."""

from __future__ import annotations

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.ops.collectives import (
    AllGatherAttrs,
    AllToAllAttrs,
    CollectiveAttrs,
    CollectivePermuteAttrs,
    ReduceScatterAttrs,
)
from xlalite.hlo.stablehlo.rules.context import ImportRule, OperationContext
from xlalite.hlo.stablehlo.rules.control_rules import channel_id
from xlalite.hlo.stablehlo.rules.elementwise_rules import twin
from xlalite.hlo.types.replica_groups import ReplicaGroups


def _groups(context: OperationContext) -> ReplicaGroups:
    """The groups; rows are filled up with -1."""
    if not context.has("replica_groups"):
        return ReplicaGroups()
    matrix = context.matrix(context.attribute("replica_groups"), "replica_groups")
    if not matrix.size:
        return ReplicaGroups()
    if matrix.ndim != 2:
        raise context.error("replica_groups must be a matrix")
    return ReplicaGroups(tuple(tuple(int(device) for device in row if device >= 0) for row in matrix))


def _all_reduce(context: OperationContext) -> tuple[Handle, ...]:
    attrs = CollectiveAttrs(
        channel_id=channel_id(context),
        replica_groups=_groups(context),
        use_global_device_ids=context.get("use_global_device_ids", bool, False),
    )
    return context.unpack(context.op("all-reduce", context.operands, attrs, (context.function(name="reducer"),)))


def _reduce_scatter(context: OperationContext) -> tuple[Handle, ...]:
    attrs = ReduceScatterAttrs(
        channel_id=channel_id(context),
        replica_groups=_groups(context),
        use_global_device_ids=context.get("use_global_device_ids", bool, False),
        dimensions=(context.get("scatter_dimension", int),),
    )
    return context.unpack(context.op("reduce-scatter", context.operands, attrs, (context.function(name="reducer"),)))


def _all_gather(context: OperationContext) -> tuple[Handle, ...]:
    attrs = AllGatherAttrs(
        channel_id=channel_id(context),
        replica_groups=_groups(context),
        use_global_device_ids=context.get("use_global_device_ids", bool, False),
        dimensions=(context.get("all_gather_dim", int),),
    )
    return context.unpack(context.op("all-gather", context.operands, attrs))


def _all_to_all(context: OperationContext) -> tuple[Handle, ...]:
    return tuple(_exchanged(context, operand) for operand in context.operands)


def _exchanged(context: OperationContext, operand: Handle) -> Handle:
    """HLO's operation exchanges along one dimension; the pieces then move to the dimension they are joined along."""
    split, join = context.get("split_dimension", int), context.get("concat_dimension", int)
    count, rank = context.get("split_count", int), operand.shape.rank
    if not (0 <= split < rank and 0 <= join < rank and count > 0):
        raise context.error(f"dimensions {split} and {join} do not fit {operand.shape.text()}")
    if operand.dims[split] % count:
        raise context.error(f"size {operand.dims[split]} cannot be split into {count} pieces")
    attrs = AllToAllAttrs(channel_id=channel_id(context), replica_groups=_groups(context), dimensions=(split,))
    builder = context.builder
    exchanged = builder.op("all-to-all", (operand,), attrs, shape=operand.shape)
    if split == join or count == 1:
        return exchanged
    pieces = [*operand.dims[:split], count, operand.dims[split] // count, *operand.dims[split + 1 :]]
    cut = builder.reshape(exchanged, pieces)
    order = [place for place in range(rank + 1) if place != split]
    order.insert(join, split)
    result = list(operand.dims)
    result[split] //= count
    result[join] *= count
    return builder.reshape(builder.transpose(cut, order), result)


def _collective_permute(context: OperationContext) -> tuple[Handle, ...]:
    matrix = context.matrix(context.attribute("source_target_pairs"), "source_target_pairs")
    if matrix.size and (matrix.ndim != 2 or matrix.shape[1] != 2):
        raise context.error("source_target_pairs must be pairs")
    pairs = tuple((int(source), int(target)) for source, target in matrix.reshape(-1, 2))
    attrs = CollectivePermuteAttrs(channel_id=channel_id(context), source_target_pairs=pairs)
    return context.unpack(context.op("collective-permute", context.operands, attrs))


def _collective_broadcast(context: OperationContext) -> tuple[Handle, ...]:
    attrs = CollectiveAttrs(channel_id=channel_id(context), replica_groups=_groups(context))
    return context.unpack(context.op("collective-broadcast", context.operands, attrs))


RULES: dict[str, ImportRule] = {
    "all_reduce": _all_reduce,
    "reduce_scatter": _reduce_scatter,
    "all_gather": _all_gather,
    "all_to_all": _all_to_all,
    "collective_permute": _collective_permute,
    "collective_broadcast": _collective_broadcast,
    "partition_id": twin("partition-id"),
    "replica_id": twin("replica-id"),
}
