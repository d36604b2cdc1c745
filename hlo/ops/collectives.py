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
from xlalite.hlo.op import Caller, Calls, OpDef, ShapeContext, ShapeRule, Trait
from xlalite.hlo.ops.asynchronous import tuple_element, zero_value
from xlalite.hlo.ops.reduction import check_reducer
from xlalite.hlo.ops.rules import array_value, check_dimensions, elements_of, tuple_unless_one
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
class DimensionalCollectiveAttrs(CollectiveAttrs):
    """A collective along one dimension."""

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


def _arrays(context: ShapeContext) -> list[Shape]:
    context.require(len(context.operands) >= 1, "needs at least one operand")
    shapes = [context.array(position) for position in range(len(context.operands))]
    sizes = {len(group) for group in context.attrs.replica_groups.groups}
    context.require(len(sizes) <= 1, f"groups must have one size, found {sorted(sizes)}")
    return shapes


def _group_size(context: ShapeContext, grown: Shape, result: Shape | None, dimension: int) -> int:
    """Devices in a group; without groups the declared result says how much larger one dimension is than another."""
    groups = context.attrs.replica_groups.groups
    if groups:
        return max(1, len(groups[0]))
    if result is None or not result.is_array or result.rank != grown.rank or not grown.dims[dimension]:
        return 1
    return max(1, result.dims[dimension] // grown.dims[dimension])


def _one_dimension(context: ShapeContext, shapes: Sequence[Shape]) -> int:
    dimensions: tuple[int, ...] = context.attrs.dimensions
    context.require(len(dimensions) == 1, "dimensions must have exactly one entry")
    for position, shape in enumerate(shapes):
        check_dimensions(context, dimensions, shape.rank, f"dimensions, for operand {position},")
    return dimensions[0]


def _resized(shape: Shape, dimension: int, size: int) -> Shape:
    return Shape.array(shape.dtype, (*shape.dims[:dimension], size, *shape.dims[dimension + 1 :]))


def _all_reduce_shape(context: ShapeContext) -> Shape:
    shapes = _arrays(context)
    check_reducer(context, [Shape.array(shape.dtype) for shape in shapes[:1]])
    return tuple_unless_one(shapes)


def _all_gather_shape(context: ShapeContext) -> Shape:
    shapes = _arrays(context)
    dimension = _one_dimension(context, shapes)
    declared = elements_of(context.declared) if context.declared is not None else (None,) * len(shapes)
    return tuple_unless_one(
        [
            _resized(shape, dimension, shape.dims[dimension] * _group_size(context, shape, result, dimension))
            for shape, result in zip(shapes, declared, strict=True)
        ]
    )


def _all_gather_start_shape(context: ShapeContext) -> Shape:
    declared = context.declared
    if declared is not None:
        context.require(
            declared.is_tuple and len(declared.elements) >= 2, "the result shape must be (operands, results)"
        )
        declared = declared.elements[1]
    plain = ShapeContext(context.opcode, context.operands, context.attrs, context.called, declared)
    return Shape.tuple([tuple_unless_one(context.operands), _all_gather_shape(plain)])


def _reduce_scatter_shape(context: ShapeContext) -> Shape:
    shapes = _arrays(context)
    dimension = _one_dimension(context, shapes)
    check_reducer(context, [Shape.array(shape.dtype) for shape in shapes[:1]])
    declared = elements_of(context.declared) if context.declared is not None else tuple(shapes)
    results = []
    for position, (shape, result) in enumerate(zip(shapes, declared, strict=True)):
        count = _group_size(context, result, shape, dimension)
        size = shape.dims[dimension]
        context.require(
            size % count == 0,
            f"dimension {dimension} of operand {position} is {size}, not divisible by {count} devices",
        )
        results.append(_resized(shape, dimension, size // count))
    return tuple_unless_one(results)


def _all_to_all_shape(context: ShapeContext) -> Shape:
    shapes = _arrays(context)
    if not context.attrs.dimensions:
        for position, shape in enumerate(shapes):
            context.require(shape.compatible(shapes[0]), f"operands 0 and {position} differ")
        return Shape.tuple(shapes) if context.declared is None or context.declared.is_tuple else shapes[0]
    dimension = _one_dimension(context, shapes)
    context.require(len(shapes) == 1, "takes one operand when a dimension is given")
    groups = context.attrs.replica_groups.groups
    count = len(groups[0]) if groups else 1
    size = shapes[0].dims[dimension]
    context.require(
        count == 0 or size % count == 0, f"dimension {dimension} is {size}, not divisible by {count} devices"
    )
    return shapes[0]


def _ragged_all_to_all_shape(context: ShapeContext) -> Shape:
    operand, output = context.array(0), context.array(1, "output")
    context.require(
        operand.dtype is output.dtype and operand.rank == output.rank >= 1 and operand.dims[1:] == output.dims[1:],
        "operand and output may differ in their first dimension only",
    )
    for position in range(2, 6):
        shape = context.array(position)
        context.require(
            shape.rank == 1 and shape.dtype.is_integral and shape.dims == context.operands[2].dims,
            f"operand {position} must be a vector of offsets or sizes, found {shape.text()}",
        )
    return output


def _first_array_shape(context: ShapeContext) -> Shape:
    context.require(len(context.operands) >= 1, "needs at least one operand")
    return tuple_unless_one([context.array(position) for position in range(len(context.operands))])


def _permute_start_shape(context: ShapeContext) -> Shape:
    shape = _first_array_shape(context)
    inferred = Shape.tuple([shape, shape, Shape.array(DType.U32), Shape.array(DType.U32)])
    declared = context.declared
    if declared is None:
        return inferred
    context.require(
        declared.is_tuple and len(declared.elements) >= 2 and all(a.compatible(shape) for a in declared.elements[:2]),
        f"the declared shape {declared.text()} must start with operand and result",
    )
    return declared


def _element_shape(index: int) -> ShapeRule:
    def rule(context: ShapeContext) -> Shape:
        operand = context.operands[0]
        context.require(operand.is_tuple and len(operand.elements) > index, "the operand must be the -start operation")
        return operand.elements[index]

    return rule


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
        _all_reduce_shape,
        _alone,
        CollectiveAttrs,
        Trait.COLLECTIVE,
        calls=_REDUCER,
    ),
    OpDef(
        "all-reduce-start",
        "begins an all-reduce",
        None,
        _all_reduce_shape,
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
        _all_gather_shape,
        _alone,
        DimensionalCollectiveAttrs,
        Trait.COLLECTIVE,
    ),
    OpDef(
        "all-gather-start",
        "(operands, results) of an all-gather under way",
        None,
        _all_gather_start_shape,
        _all_gather_start,
        DimensionalCollectiveAttrs,
        Trait.COLLECTIVE,
    ),
    OpDef(
        "all-gather-done",
        "the result of all-gather-start",
        1,
        _element_shape(1),
        _second_element,
        traits=Trait.COLLECTIVE,
    ),
    OpDef(
        "reduce-scatter",
        "this device's piece of the all-reduce",
        None,
        _reduce_scatter_shape,
        _alone,
        DimensionalCollectiveAttrs,
        Trait.COLLECTIVE,
        calls=_REDUCER,
    ),
    OpDef(
        "all-to-all",
        "piece i of each device's operand goes to device i",
        None,
        _all_to_all_shape,
        _alone,
        AllToAllAttrs,
        Trait.COLLECTIVE,
    ),
    OpDef(
        "ragged-all-to-all",
        "rows [input_offsets[i], + send_sizes[i]) of each device's operand go to output_offsets[i] of device i",
        6,
        _ragged_all_to_all_shape,
        _ragged_all_to_all,
        CollectiveAttrs,
        Trait.COLLECTIVE,
    ),
    OpDef(
        "collective-permute",
        "the operand of the device that sends to this one, or zeros",
        None,
        _first_array_shape,
        _collective_permute,
        CollectivePermuteAttrs,
        Trait.COLLECTIVE,
    ),
    OpDef(
        "collective-permute-start",
        "(operand, result, contexts...) of a collective-permute under way",
        None,
        _permute_start_shape,
        _collective_permute_start,
        CollectivePermuteAttrs,
        Trait.COLLECTIVE,
    ),
    OpDef(
        "collective-permute-done",
        "the result of collective-permute-start",
        1,
        _element_shape(1),
        _second_element,
        traits=Trait.COLLECTIVE,
    ),
    OpDef(
        "collective-broadcast",
        "the operand of the first device of a group",
        None,
        _first_array_shape,
        _alone,
        CollectiveAttrs,
        Trait.COLLECTIVE,
    ),
    OpDef("partition-id", "number of this partition", 0, _u32, _device_number, traits=Trait.COLLECTIVE),
    OpDef("replica-id", "number of this replica", 0, _u32, _device_number, traits=Trait.COLLECTIVE),
)
