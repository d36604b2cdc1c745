"""Communication among replicas and partitions.

On one device each collective is the identity or nearly so, and groups of more than one are refused; `evaluate_spmd`
and `Executable.run_on_devices` run them on many.
"""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Caller, Calls, OpDef, ShapeContext, Trait
from xlalite.hlo.ops.asynchronous import tuple_element
from xlalite.hlo.ops.evaluation.collective_evaluation import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BROADCAST,
    RAGGED_ALL_TO_ALL,
    REDUCE_SCATTER,
    collective_permute,
    collective_permute_start,
    device_number,
    started,
)
from xlalite.hlo.ops.rules.collective_rules import (
    all_gather_shape,
    all_gather_start_shape,
    all_reduce_shape,
    all_to_all_shape,
    element_shape,
    first_array_shape,
    permute_shape,
    permute_start_shape,
    ragged_all_to_all_shape,
    reduce_scatter_shape,
)
from xlalite.hlo.records import dataclass
from xlalite.hlo.spelling.attributes import attribute
from xlalite.hlo.spelling.codecs import BOOL, INT, INT_LIST, INT_LISTS, PAIRS, REPLICA_GROUPS
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Value
from xlalite.hlo.types.replica_groups import ReplicaGroups
from xlalite.hlo.types.shape import Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveAttrs:
    """Who communicates, and how the groups are to be read. A channel makes it a side effect."""

    channel_id: int | None = attribute(INT, default=None)
    replica_groups: ReplicaGroups = attribute(REPLICA_GROUPS, default=ReplicaGroups(), print_default=True)
    constrain_layout: bool = attribute(BOOL, default=False)
    use_global_device_ids: bool = attribute(BOOL, default=False)

    @property
    def has_side_effect(self) -> bool:
        """Whether others in the channel wait for it."""
        return self.channel_id is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class AllGatherAttrs:
    """Who communicates, and along which dimension the pieces are joined."""

    channel_id: int | None = attribute(INT, default=None)
    replica_groups: ReplicaGroups = attribute(REPLICA_GROUPS, default=ReplicaGroups(), print_default=True)
    constrain_layout: bool = attribute(BOOL, default=False)
    dimensions: tuple[int, ...] = attribute(INT_LIST)
    use_global_device_ids: bool = attribute(BOOL, default=False)

    @property
    def has_side_effect(self) -> bool:
        """Whether others in the channel wait for it."""
        return self.channel_id is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReduceScatterAttrs(CollectiveAttrs):
    """Who communicates, and along which dimension the result is cut."""

    dimensions: tuple[int, ...] = attribute(INT_LIST)


@dataclass(frozen=True, slots=True, kw_only=True)
class AllToAllAttrs(CollectiveAttrs):
    """Exchange of pieces of one array along a dimension, or of whole operands when there is none."""

    dimensions: tuple[int, ...] = attribute(INT_LIST, default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectivePermuteAttrs:
    """Who sends to whom; the sizes of the slices that are sent, for the form that updates its output in place."""

    channel_id: int | None = attribute(INT, default=None)
    source_target_pairs: tuple[tuple[int, int], ...] = attribute(PAIRS, default=(), print_default=True)
    slice_sizes: tuple[tuple[int, ...], ...] = attribute(INT_LISTS, default=())

    @property
    def has_side_effect(self) -> bool:
        """Whether others in the channel wait for it."""
        return self.channel_id is not None


def _same_value(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    return operands[0]


def _second_element(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    return tuple_element(operands[0], 1)


def _u32(context: ShapeContext) -> Shape:
    return Shape.array(DType.U32)


_REDUCER = Calls(("to_apply",), applies_to_elements=True)

OPS = (
    OpDef(
        "all-reduce",
        "the operands of all devices of a group combined by to_apply",
        None,
        all_reduce_shape,
        ALL_REDUCE,
        CollectiveAttrs,
        Trait.COLLECTIVE,
        calls=_REDUCER,
    ),
    OpDef(
        "all-reduce-start",
        "begins an all-reduce",
        None,
        all_reduce_shape,
        ALL_REDUCE,
        CollectiveAttrs,
        Trait.COLLECTIVE,
        calls=_REDUCER,
    ),
    OpDef(
        "all-reduce-done",
        "the result of all-reduce-start",
        1,
        lambda context: context.operands[0],
        _same_value,
        traits=Trait.COLLECTIVE,
    ),
    OpDef(
        "all-gather",
        "the operands of all devices of a group one after another along a dimension",
        None,
        all_gather_shape,
        ALL_GATHER,
        AllGatherAttrs,
        Trait.COLLECTIVE,
    ),
    OpDef(
        "all-gather-start",
        "(operands, results) of an all-gather under way",
        None,
        all_gather_start_shape,
        started(ALL_GATHER),
        AllGatherAttrs,
        Trait.COLLECTIVE,
    ),
    OpDef(
        "all-gather-done",
        "the result of all-gather-start",
        1,
        element_shape(1),
        _second_element,
        traits=Trait.COLLECTIVE,
    ),
    OpDef(
        "reduce-scatter",
        "this device's piece of the all-reduce",
        None,
        reduce_scatter_shape,
        REDUCE_SCATTER,
        ReduceScatterAttrs,
        Trait.COLLECTIVE,
        calls=_REDUCER,
    ),
    OpDef(
        "all-to-all",
        "piece i of each device's operand goes to device i",
        None,
        all_to_all_shape,
        ALL_TO_ALL,
        AllToAllAttrs,
        Trait.COLLECTIVE,
    ),
    OpDef(
        "ragged-all-to-all",
        "rows [input_offsets[i], + send_sizes[i]) of each device's operand go to output_offsets[i] of device i",
        6,
        ragged_all_to_all_shape,
        RAGGED_ALL_TO_ALL,
        CollectiveAttrs,
        Trait.COLLECTIVE,
    ),
    OpDef(
        "collective-permute",
        "the operand of the device that sends to this one, or zeros; with slice_sizes its slices, put into operand 1",
        None,
        permute_shape,
        collective_permute,
        CollectivePermuteAttrs,
        Trait.COLLECTIVE,
    ),
    OpDef(
        "collective-permute-start",
        "(operand, result, contexts...) of a collective-permute under way",
        None,
        permute_start_shape,
        collective_permute_start,
        CollectivePermuteAttrs,
        Trait.COLLECTIVE,
    ),
    OpDef(
        "collective-permute-done",
        "the result of collective-permute-start",
        1,
        element_shape(1),
        _second_element,
        traits=Trait.COLLECTIVE,
    ),
    OpDef(
        "collective-broadcast",
        "the operand of the first device of a group",
        None,
        first_array_shape,
        BROADCAST,
        CollectiveAttrs,
        Trait.COLLECTIVE,
    ),
    OpDef("partition-id", "number of this partition", 0, _u32, device_number("partition"), traits=Trait.OF_DEVICE),
    OpDef("replica-id", "number of this replica", 0, _u32, device_number("replica"), traits=Trait.OF_DEVICE),
)
