"""Operations that cut arrays or put them together: slice, pad, concatenate and the slices at run-time positions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Caller, OpDef, Place, ShapeContext, Trait
from xlalite.hlo.ops.evaluation.run_time_sizes import all_operands, whole_dimensions
from xlalite.hlo.ops.rules.shapes import array_index, array_value, check_dimensions, dynamic_flags
from xlalite.hlo.records import dataclass
from xlalite.hlo.spelling.attributes import attribute
from xlalite.hlo.spelling.codecs import INT_LIST, PADDING, SLICE
from xlalite.hlo.types.literal import Array, Value
from xlalite.hlo.types.shape import Shape


@dataclass(frozen=True, slots=True)
class SliceAttrs:
    """One (start, limit, stride) for each dimension."""

    slice: tuple[tuple[int, int, int], ...] = attribute(SLICE)


def _slice_shape(context: ShapeContext) -> Shape:
    operand, ranges = context.array(0), context.attrs.slice
    if len(ranges) != operand.rank:
        raise context.error(f"slice has {len(ranges)} ranges for an operand of rank {operand.rank}")
    sizes = []
    for dimension, (start, limit, stride) in enumerate(ranges):
        if stride <= 0:
            raise context.error(f"the stride of dimension {dimension} must be positive, found {stride}")
        if not (0 <= start <= limit <= operand.dims[dimension]):
            raise context.error(
                f"range [{start}:{limit}] does not lie in dimension {dimension} of size {operand.dims[dimension]}"
            )
        sizes.append(-(-(limit - start) // stride))
    # A dimension that is taken whole keeps its run-time size.
    whole = [entry == (0, size, 1) for entry, size in zip(ranges, operand.dims, strict=True)]
    flags = [flag and kept for flag, kept in zip(dynamic_flags(operand), whole, strict=True)]
    return Shape.array(operand.dtype, sizes, dynamic=flags)


def _slice(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    ranges = [slice(start, limit, stride) for start, limit, stride in instruction.attrs.slice]
    return array_value(operands[0])[array_index(ranges)]


@dataclass(frozen=True, slots=True)
class DynamicSliceAttrs:
    """Sizes of the result."""

    dynamic_slice_sizes: tuple[int, ...] = attribute(INT_LIST)


def _check_starts(context: ShapeContext, first: int, rank: int) -> None:
    """Start indices are one integer scalar a dimension, or (as older programs have it) one vector."""
    starts = [context.array(position, "start index") for position in range(first, len(context.operands))]
    for shape in starts:
        if not shape.dtype.is_integral:
            raise context.error(f"start indices must be integers, found {shape.dtype.value}")
    if len(starts) == 1 and starts[0].rank == 1:
        if starts[0].dims[0] != rank:
            raise context.error(f"{starts[0].dims[0]} start indices for an operand of rank {rank}")
        return
    if len(starts) != rank:
        raise context.error(f"{len(starts)} start indices for an operand of rank {rank}")
    context.require(all(shape.is_scalar for shape in starts), "start indices must be scalars")
    context.require(len({shape.dtype for shape in starts}) <= 1, "start indices must all have the same element type")


def _dynamic_slice_shape(context: ShapeContext) -> Shape:
    context.require(len(context.operands) >= 1, "the operand is missing")
    operand, sizes = context.array(0), context.attrs.dynamic_slice_sizes
    _check_starts(context, 1, operand.rank)
    if len(sizes) != operand.rank:
        raise context.error(f"dynamic_slice_sizes has {len(sizes)} entries for rank {operand.rank}")
    for dimension, size in enumerate(sizes):
        if not (0 <= size <= operand.dims[dimension]):
            raise context.error(f"slice size {size} of dimension {dimension} is not in [0, {operand.dims[dimension]}]")
    whole = [size == extent for size, extent in zip(sizes, operand.dims, strict=True)]
    flags = [flag and kept for flag, kept in zip(dynamic_flags(operand), whole, strict=True)]
    return Shape.array(operand.dtype, sizes, dynamic=flags)


def _window_at(operand: Array, starts: Sequence[Value], sizes: Sequence[int]) -> list[slice]:
    """The window of the given sizes whose start is clamped so that it lies in the operand."""
    arrays = [array_value(start) for start in starts]
    if len(arrays) == 1 and arrays[0].ndim == 1:
        arrays = [np.asarray(start) for start in arrays[0]]
    window = []
    for start, size, extent in zip(arrays, sizes, operand.shape, strict=True):
        clamped = min(max(int(start), 0), extent - size)
        window.append(slice(clamped, clamped + size))
    return window


def _dynamic_slice(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    operand = array_value(operands[0])
    sizes = whole_dimensions(instruction.operand(0).shape, instruction.attrs.dynamic_slice_sizes, operand)
    return operand[array_index(_window_at(operand, operands[1:], sizes))]


def _dynamic_update_slice_shape(context: ShapeContext) -> Shape:
    context.require(len(context.operands) >= 2, "operand and update are needed")
    operand, update = context.array(0), context.array(1, "update")
    if operand.dtype is not update.dtype:
        raise context.error(
            f"the operand's element type is {operand.dtype.value}, the update's is {update.dtype.value}"
        )
    if operand.rank != update.rank:
        raise context.error(f"the operand has rank {operand.rank}, the update has rank {update.rank}")
    for dimension, (size, extent) in enumerate(zip(update.dims, operand.dims, strict=True)):
        if size > extent:
            raise context.error(f"dimension {dimension} of the update is {size}, the operand's is only {extent}")
    _check_starts(context, 2, operand.rank)
    return operand


def _dynamic_update_slice(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    operand, update = array_value(operands[0]), array_value(operands[1])
    result = operand.copy()
    result[array_index(_window_at(operand, operands[2:], update.shape))] = update
    return result


@dataclass(frozen=True, slots=True)
class PadAttrs:
    """One (low, high, interior) for each dimension; low and high may be negative and then cut."""

    padding: tuple[tuple[int, int, int], ...] = attribute(PADDING)


def _pad_shape(context: ShapeContext) -> Shape:
    operand, value, padding = context.array(0), context.array(1, "padding value"), context.attrs.padding
    context.require(value.is_scalar, "the padding value must be a scalar")
    if operand.dtype is not value.dtype:
        raise context.error(
            f"the operand's element type is {operand.dtype.value}, the padding value's is {value.dtype.value}"
        )
    if len(padding) != operand.rank:
        raise context.error(f"padding has {len(padding)} entries for an operand of rank {operand.rank}")
    sizes = []
    for dimension, (low, high, interior) in enumerate(padding):
        if interior < 0:
            raise context.error(f"interior padding of dimension {dimension} is negative: {interior}")
        size = padded_size(operand.dims[dimension], low, high, interior)
        if size < 0:
            raise context.error(f"padding {low}_{high}_{interior} makes dimension {dimension} negative: {size}")
        sizes.append(size)
    return Shape.array(operand.dtype, sizes, dynamic=dynamic_flags(operand))


def padded_size(size: int, low: int, high: int, interior: int) -> int:
    """Size of a padded dimension; negative when more is cut than there is."""
    return low + high + size + max(size - 1, 0) * interior


def _pad(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    return pad_array(array_value(operands[0]), array_value(operands[1]), instruction.attrs.padding)


def pad_array(operand: Array, value: Array, padding: Sequence[tuple[int, int, int]]) -> Array:
    """The operand with `value` between and around its elements, or cut where an edge is negative."""
    sizes = [padded_size(size, *entry) for size, entry in zip(operand.shape, padding, strict=True)]
    result = np.full(sizes, value, dtype=operand.dtype)
    taken, put = [], []
    for size, total, (low, _, interior) in zip(operand.shape, sizes, padding, strict=True):
        step = interior + 1
        first = max(0, -(low // step))  # The first element whose place low + i * step is not negative.
        last = min(size, -((low - total) // step))  # One past the last element whose place lies before `total`.
        start = low + first * step
        taken.append(slice(first, max(first, last)))
        put.append(slice(start, start + (last - first - 1) * step + 1 if last > first else start, step))
    result[array_index(put)] = operand[array_index(taken)]
    return result


@dataclass(frozen=True, slots=True)
class ConcatenateAttrs:
    """The one dimension along which the operands follow each other."""

    dimensions: tuple[int, ...] = attribute(INT_LIST)

    @property
    def dimension(self) -> int:
        """The only entry of `dimensions`."""
        return self.dimensions[0]


def _concatenate_shape(context: ShapeContext) -> Shape:
    context.require(len(context.operands) >= 1, "needs at least one operand")
    first = context.array(0)
    context.require(len(context.attrs.dimensions) == 1, "dimensions must have exactly one entry")
    check_dimensions(context, context.attrs.dimensions, first.rank, "dimensions")
    along: int = context.attrs.dimension
    total = first.dims[along]
    for position in range(1, len(context.operands)):
        other = context.array(position)
        if first.dtype is not other.dtype:
            raise context.error(
                f"element types of operands 0 and {position} differ: {first.dtype.value} and {other.dtype.value}"
            )
        if not (
            first.rank == other.rank
            and all(a == b for dim, (a, b) in enumerate(zip(first.dims, other.dims, strict=True)) if dim != along)
        ):
            raise context.error(f"operands 0 and {position} differ in more than dimension {along}")
        total += other.dims[along]
    flags = [any(column) for column in zip(*map(dynamic_flags, context.operands), strict=True)]
    return Shape.array(first.dtype, (*first.dims[:along], total, *first.dims[along + 1 :]), dynamic=flags)


def _concatenate(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    return np.concatenate([array_value(operand) for operand in operands], axis=instruction.attrs.dimension)


def _dimensions_across(instruction: HloInstruction) -> list[tuple[Place, ...]]:
    along = instruction.attrs.dimension
    return [places for dim, places in enumerate(all_operands(instruction)) if dim != along]


OPS = (
    OpDef(
        "slice",
        "result[i] = x[start + i * stride]",
        1,
        _slice_shape,
        _slice,
        attrs=SliceAttrs,
        traits=Trait.DATA_MOVEMENT,
    ),
    OpDef(
        "dynamic-slice",
        "result[i] = x[clamp(0, start, size(x) - size(result)) + i]",
        None,
        _dynamic_slice_shape,
        _dynamic_slice,
        attrs=DynamicSliceAttrs,
        traits=Trait.DATA_MOVEMENT,
    ),
    OpDef(
        "dynamic-update-slice",
        "x with update written at clamp(0, start, size(x) - size(update))",
        None,
        _dynamic_update_slice_shape,
        _dynamic_update_slice,
        traits=Trait.DATA_MOVEMENT,
    ),
    OpDef(
        "pad",
        "result[low + i * (interior + 1)] = x[i], the padding value elsewhere",
        2,
        _pad_shape,
        _pad,
        attrs=PadAttrs,
        traits=Trait.DATA_MOVEMENT,
    ),
    OpDef(
        "concatenate",
        "the operands one after another along a dimension",
        None,
        _concatenate_shape,
        _concatenate,
        attrs=ConcatenateAttrs,
        traits=Trait.DATA_MOVEMENT,
        aligned=_dimensions_across,
    ),
)
