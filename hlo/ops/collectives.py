"""Communication among replicas and partitions.

The evaluator runs one replica of one partition, for which each collective is the identity or nearly so; groups of more
than one device are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from xlalite.hlo.attributes import attribute
from xlalite.hlo.codecs import BOOL, INT, INT_LIST, PAIRS, REPLICA_GROUPS
from xlalite.hlo.dtype import DType
from xlalite.hlo.errors import EvaluationError
from xlalite.hlo.instruction import HloInstruction
from xlalite.hlo.literal import Value
from xlalite.hlo.op import Caller, Calls, OpDef, ShapeContext, Trait
from xlalite.hlo.ops.asynchronous import tuple_element, zero_value
from xlalite.hlo.ops.collective_rules import (
    all_gather_shape,
    all_gather_start_shape,
    all_reduce_shape,
    all_to_all_shape,
    element_shape,
    first_array_shape,
    permute_start_shape,
    ragged_all_to_all_shape,
    reduce_scatter_shape,
)
from xlalite.hlo.ops.rules import array_value
from xlalite.hlo.replica_groups import ReplicaGroups
from xlalite.hlo.shape import Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveAttrs:
    """Who communicates, and how the groups are to be read. A channel makes it a side effect."""

    channel_id: int = attribute(INT, default=0)
    replica_groups: ReplicaGroups = attribute(REPLICA_GROUPS, default=ReplicaGroups(), print_default=True)
    constrain_layout: bool = attribute(BOOL, default=False)
    use_global_device_ids: bool = attribute(BOOL, default=False)

    @property
    def has_side_effect(self) -> bool:
        """Whether others in the channel wait for it."""
        return self.channel_id != 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AllGatherAttrs:
    """Who communicates, and along which dimension the pieces are joined."""

    channel_id: int = attribute(INT, default=0)
    replica_groups: ReplicaGroups = attribute(REPLICA_GROUPS, default=ReplicaGroups(), print_default=True)
    constrain_layout: bool = attribute(BOOL, default=False)
    dimensions: tuple[int, ...] = attribute(INT_LIST)
    use_global_device_ids: bool = attribute(BOOL, default=False)

    @property
    def has_side_effect(self) -> bool:
        """Whether others in the channel wait for it."""
        return self.channel_id != 0


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
    """Who sends to whom."""

    channel_id: int = attribute(INT, default=0)
    source_target_pairs: tuple[tuple[int, int], ...] = attribute(PAIRS, default=(), print_default=True)

    @property
    def has_side_effect(self) -> bool:
        """Whether others in the channel wait for it."""
        return self.channel_id != 0


def _require_alone(instruction: HloInstruction) -> None:
    """Refuses to run what would wait for other devices."""
    module = instruction.module
    devices = module.config.replica_count * module.config.num_partitions if module is not None else 1
    groups = getattr(instruction.attrs, "replica_groups", ReplicaGroups()).groups
    largest = max((len(group) for group in groups), default=devices)
    if largest > 1:
        raise EvaluationError(f"{instruction.opcode} (%{instruction.name}) needs {largest} devices, one is there")


def _alone(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    _require_alone(instruction)
    return tuple(operands) if instruction.shape.is_tuple else operands[0]


def _all_gather_start(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    _require_alone(instruction)
    value = tuple(operands) if len(operands) > 1 else operands[0]
    return value, value


def _ragged_all_to_all(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    """Slice i goes to device i; the only device keeps what is addressed to it."""
    _require_alone(instruction)
    operand, output, starts, sizes, targets, _ = (array_value(value) for value in operands)
    result = output.copy()
    for start, size, target in zip(starts, sizes, targets, strict=True):
        result[int(target) : int(target) + int(size)] = operand[int(start) : int(start) + int(size)]
    return result


def _permuted(instruction: HloInstruction, operands: Sequence[Value]) -> list[Value]:
    pairs = instruction.attrs.source_target_pairs
    if any(pair != (0, 0) for pair in pairs):
        raise EvaluationError(
            f"{instruction.opcode} (%{instruction.name}) needs more than the one device that is there"
        )
    # A device that nobody sends to receives zeros.
    return [value if pairs else zero_value(o.shape) for value, o in zip(operands, instruction.operands, strict=True)]


def _collective_permute(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    results = _permuted(instruction, operands)
    return tuple(results) if instruction.shape.is_tuple else results[0]


def _collective_permute_start(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    results = _permuted(instruction, operands)
    pair: tuple[Value, Value] = (tuple(operands), tuple(results)) if len(operands) > 1 else (operands[0], results[0])
    return (*pair, *(zero_value(element) for element in instruction.shape.elements[2:]))


def _same_value(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    return operands[0]


def _second_element(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    return tuple_element(operands[0], 1)


def _device_number(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    return np.zeros((), np.uint32)


def _u32(context: ShapeContext) -> Shape:
    return Shape.array(DType.U32)


_REDUCER = Calls(("to_apply",), applies_to_elements=True)

OPS = (
    OpDef(
        "all-reduce",
        "the operands of all devices of a group combined by to_apply",
        None,
        all_reduce_shape,
        _alone,
        CollectiveAttrs,
        Trait.COLLECTIVE,
        calls=_REDUCER,
    ),
    OpDef(
        "all-reduce-start",
        "begins an all-reduce",
        None,
        all_reduce_shape,
        _alone,
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
        _alone,
        AllGatherAttrs,
        Trait.COLLECTIVE,
    ),
    OpDef(
        "all-gather-start",
        "(operands, results) of an all-gather under way",
        None,
        all_gather_start_shape,
        _all_gather_start,
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
        _alone,
        ReduceScatterAttrs,
        Trait.COLLECTIVE,
        calls=_REDUCER,
    ),
    OpDef(
        "all-to-all",
        "piece i of each device's operand goes to device i",
        None,
        all_to_all_shape,
        _alone,
        AllToAllAttrs,
        Trait.COLLECTIVE,
    ),
    OpDef(
        "ragged-all-to-all",
        "rows [input_offsets[i], + send_sizes[i]) of each device's operand go to output_offsets[i] of device i",
        6,
        ragged_all_to_all_shape,
        _ragged_all_to_all,
        CollectiveAttrs,
        Trait.COLLECTIVE,
    ),
    OpDef(
        "collective-permute",
        "the operand of the device that sends to this one, or zeros",
        None,
        first_array_shape,
        _collective_permute,
        CollectivePermuteAttrs,
        Trait.COLLECTIVE,
    ),
    OpDef(
        "collective-permute-start",
        "(operand, result, contexts...) of a collective-permute under way",
        None,
        permute_start_shape,
        _collective_permute_start,
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
        _alone,
        CollectiveAttrs,
        Trait.COLLECTIVE,
    ),
    OpDef("partition-id", "number of this partition", 0, _u32, _device_number, traits=Trait.COLLECTIVE),
    OpDef("replica-id", "number of this replica", 0, _u32, _device_number, traits=Trait.COLLECTIVE),
)
