"""Which devices meet for a collective, and what they fold.

That is known when the code is written, for the header of a program says how many devices there are. What code cannot be
written for is declined, and the evaluator then says what is wrong, or does it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.backends.codegen.kernels.kernel import Declined
from xlalite.hlo.building.create import create
from xlalite.hlo.errors import EvaluationError
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.control_flow import FusionAttrs, FusionKind
from xlalite.hlo.ops.rules.collective_groups import attendance
from xlalite.hlo.ops.slicing import SliceAttrs
from xlalite.hlo.ops.structural import ParameterAttrs
from xlalite.hlo.records import dataclass
from xlalite.hlo.surroundings.devices import LoneDevice
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape

NOBODY = -1


@dataclass(frozen=True, slots=True)
class Meeting:
    """Who meets for a collective.

    Attributes:
        count: How many meet in each group.
        partitions: Partitions of each replica.
        table: For each rank, its place (see `attendance`) and where its group begins, `NOBODY` if there is none; behind
            them the groups.
    """

    count: int
    partitions: int
    table: bytes


def meeting_of(instruction: HloInstruction) -> Meeting | Declined:
    """Who meets, or why that cannot be written down."""
    assert instruction.module is not None, "what is compiled stands in a module"
    config = instruction.module.config
    groups: dict[tuple[int, ...], int] = {}
    places: list[tuple[int, int]] = []
    devices = config.replica_count * config.num_partitions
    for rank in range(devices):
        device = LoneDevice(*divmod(rank, config.num_partitions), config.replica_count, config.num_partitions)
        try:
            ranks, place = attendance(instruction, device)
        except EvaluationError as error:
            return Declined(str(error))
        start = 2 * devices + sum(map(len, groups))
        begin = groups.setdefault(tuple(ranks), start) if ranks else NOBODY
        places.append((NOBODY if place is None else place, begin))
    counts = {len(group) for group in groups}
    if len(counts) > 1:
        return Declined("its groups are of several sizes")
    count = max(counts, default=0)
    if not _fits(instruction, count):
        return Declined(f"its shapes are not those of groups of {count}")
    numbers = [*(number for pair in places for number in pair), *(rank for group in groups for rank in group)]
    return Meeting(count, config.num_partitions, np.array(numbers, np.int64).tobytes())


def results_of(instruction: HloInstruction) -> tuple[Shape, ...]:
    """The shapes of the arrays that a collective gives."""
    return instruction.shape.elements if instruction.shape.is_tuple else (instruction.shape,)


def _fits(instruction: HloInstruction, count: int) -> bool:
    """Whether the shapes are those that so many devices give."""
    given, results = [operand.shape for operand in instruction.operands], results_of(instruction)
    if any(leaf.is_dynamic for shape in (*given, *results) for _, leaf in shape.leaves()):
        return False
    attrs = instruction.attrs
    if instruction.called_computations:
        scalars = [*instruction.called_computations[0].parameters, instruction.called_computations[0].root]
        if any(shape.dtype is not scalar.shape.dtype for shape in given for scalar in scalars):
            return False
    counted = [leaf.dtype for shape in given[2:] for _, leaf in shape.leaves()]
    match instruction.opcode:
        case "all-gather":
            return all(map(_is_multiple, results, given, attrs.dimensions * len(given), [count] * len(given)))
        case "reduce-scatter":
            return all(map(_is_multiple, given, results, attrs.dimensions * len(given), [count] * len(given)))
        case "all-to-all" if not attrs.dimensions:
            return len(given) == len(results) == count
        case "all-to-all":
            return given[0].compatible(results[0]) and given[0].dims[attrs.dimensions[0]] % max(count, 1) == 0
        case "ragged-all-to-all":
            return given[2].dims[0] % max(count, 1) == 0 and all(map(_fills_bytes, counted))
        case "collective-permute" if attrs.slice_sizes:
            return all(map(_fills_bytes, counted))
    return all(map(Shape.compatible, given, results))


def _fills_bytes(dtype: DType) -> bool:
    return dtype.bits == 8 * dtype.numpy.itemsize


def _is_multiple(large: Shape, small: Shape, dimension: int, count: int) -> bool:
    dims = list(small.dims)
    dims[dimension] *= count
    return large.dtype is small.dtype and large.dims == tuple(dims)


def fold(reducer: HloComputation, first: Shape, others: Sequence[Shape], result: Shape) -> HloInstruction:
    """A fusion that combines arrays, the first first; of those that are larger than the result, their beginning."""
    body = HloComputation("fold")
    parts: list[HloInstruction] = []
    for number, shape in enumerate((first, *others)):
        part = body.add(create("parameter", (), ParameterAttrs(number), shape=shape))
        if shape.dims != result.dims:
            zeros, ones = (0,) * shape.rank, (1,) * shape.rank
            part = body.add(create("slice", (part,), SliceAttrs(tuple(zip(zeros, result.dims, ones, strict=True)))))
        parts.append(part)
    value = parts[0]
    for part in parts[1:]:
        value = body.add(create("map", (value, part), called=[reducer]))
    body.set_root(value if len(parts) > 1 else body.add(create("copy", (value,))))
    operands = [create("parameter", (), ParameterAttrs(n), shape=shape) for n, shape in enumerate((first, *others))]
    return create("fusion", operands, FusionAttrs(FusionKind.LOOP), [body])
