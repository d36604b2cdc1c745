"""Operations that read or write windows at many run-time positions: gather, scatter."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Caller, Calls, OpDef, ShapeContext, Trait
from xlalite.hlo.ops.evaluation.gathering_evaluation import IndexMap
from xlalite.hlo.ops.evaluation.run_time_sizes import whole_dimensions
from xlalite.hlo.ops.reduction import check_reducer, scalar_flops
from xlalite.hlo.ops.rules.shapes import (
    array_value,
    check_dimensions,
    dynamic_flags,
    results_shape,
    same_kind,
    value_or_tuple,
)
from xlalite.hlo.records import dataclass
from xlalite.hlo.spelling.attributes import attribute
from xlalite.hlo.spelling.codecs import BOOL, INT, INT_LIST
from xlalite.hlo.types.literal import Value
from xlalite.hlo.types.shape import Shape


@dataclass(frozen=True, slots=True)
class GatherAttrs:
    """How index vectors address the operand and where the windows' dimensions go; XLA's GatherDimensionNumbers."""

    offset_dims: tuple[int, ...] = attribute(INT_LIST, default=(), print_default=True)
    collapsed_slice_dims: tuple[int, ...] = attribute(INT_LIST, default=(), print_default=True)
    start_index_map: tuple[int, ...] = attribute(INT_LIST, default=(), print_default=True)
    operand_batching_dims: tuple[int, ...] = attribute(INT_LIST, default=())
    start_indices_batching_dims: tuple[int, ...] = attribute(INT_LIST, default=())
    index_vector_dim: int = attribute(INT, default=0, print_default=True)
    slice_sizes: tuple[int, ...] = attribute(INT_LIST, default=(), print_default=True)
    indices_are_sorted: bool = attribute(BOOL, default=False)

    @property
    def dropped_dims(self) -> tuple[int, ...]:
        """Operand dimensions that the result does not have."""
        return (*self.collapsed_slice_dims, *self.operand_batching_dims)

    @property
    def index_map(self) -> IndexMap:
        """How index vectors address the operand."""
        return IndexMap(
            self.start_index_map, self.index_vector_dim, self.operand_batching_dims, self.start_indices_batching_dims
        )


@dataclass(frozen=True, slots=True)
class ScatterAttrs:
    """How index vectors address the operands and which update dimensions are windows; XLA's ScatterDimensionNumbers."""

    update_window_dims: tuple[int, ...] = attribute(INT_LIST, default=(), print_default=True)
    inserted_window_dims: tuple[int, ...] = attribute(INT_LIST, default=(), print_default=True)
    scatter_dims_to_operand_dims: tuple[int, ...] = attribute(INT_LIST, default=(), print_default=True)
    input_batching_dims: tuple[int, ...] = attribute(INT_LIST, default=())
    scatter_indices_batching_dims: tuple[int, ...] = attribute(INT_LIST, default=())
    index_vector_dim: int = attribute(INT, default=0, print_default=True)
    indices_are_sorted: bool = attribute(BOOL, default=False)
    unique_indices: bool = attribute(BOOL, default=False)

    @property
    def dropped_dims(self) -> tuple[int, ...]:
        """Operand dimensions that windows do not have."""
        return (*self.inserted_window_dims, *self.input_batching_dims)

    @property
    def index_map(self) -> IndexMap:
        """How index vectors address the operands."""
        return IndexMap(
            self.scatter_dims_to_operand_dims,
            self.index_vector_dim,
            self.input_batching_dims,
            self.scatter_indices_batching_dims,
        )


def _check_sorted(context: ShapeContext, dimensions: Sequence[int], rank: int, what: str) -> None:
    check_dimensions(context, dimensions, rank, what)
    if list(dimensions) != sorted(dimensions):
        raise context.error(f"{what} {list(dimensions)} must be in increasing order")


def _check_index_map(
    context: ShapeContext, index_map: IndexMap, operand: Shape, indices: Shape, dropped: Sequence[int]
) -> list[int]:
    """The batch sizes; `dropped` are the operand dimensions that windows leave out, besides the batching ones."""
    if not indices.dtype.is_integral:
        raise context.error(f"indices must be integers, found {indices.dtype.value}")
    vector_dim = index_map.index_vector_dim
    if not (0 <= vector_dim <= indices.rank):
        raise context.error(f"index_vector_dim {vector_dim} is not in [0, {indices.rank}]")
    components = indices.dims[vector_dim] if vector_dim < indices.rank else 1
    if components != len(index_map.operand_dims):
        raise context.error(
            f"index vectors have {components} components, {len(index_map.operand_dims)} operand dimensions are "
            "addressed"
        )
    check_dimensions(context, index_map.operand_dims, operand.rank, "addressed dimensions")
    _check_sorted(context, index_map.operand_batching_dims, operand.rank, "batching dimensions of the operand")
    check_dimensions(context, index_map.indices_batching_dims, indices.rank, "batching dimensions of the indices")
    context.require(
        len(index_map.operand_batching_dims) == len(index_map.indices_batching_dims),
        "operand and indices must have as many batching dimensions",
    )
    for a, b in zip(index_map.operand_batching_dims, index_map.indices_batching_dims, strict=True):
        if b == vector_dim:
            raise context.error(f"index_vector_dim {vector_dim} cannot be a batching dimension")
        if operand.dims[a] != indices.dims[b]:
            raise context.error(
                f"batching dimension {a} of the operand is {operand.dims[a]}, dimension {b} of the indices "
                f"is {indices.dims[b]}"
            )
    batching = set(index_map.operand_batching_dims)
    context.require(
        not batching & set(index_map.operand_dims) and not batching & set(dropped),
        "batching dimensions of the operand can be neither addressed nor collapsed",
    )
    return [size for dim, size in enumerate(indices.dims) if dim != vector_dim]


def _gather_shape(context: ShapeContext) -> Shape:
    operand, indices = context.array(0), context.array(1, "start indices")
    attrs: GatherAttrs = context.attrs
    _check_sorted(context, attrs.collapsed_slice_dims, operand.rank, "collapsed_slice_dims")
    batch = _check_index_map(context, attrs.index_map, operand, indices, attrs.collapsed_slice_dims)
    if len(attrs.slice_sizes) != operand.rank:
        raise context.error(f"slice_sizes has {len(attrs.slice_sizes)} entries for an operand of rank {operand.rank}")
    dropped = attrs.dropped_dims
    for dim, size in enumerate(attrs.slice_sizes):
        if not (0 <= size <= operand.dims[dim]):
            raise context.error(f"slice size {size} of dimension {dim} is not in [0, {operand.dims[dim]}]")
        if not (dim not in dropped or size <= 1):
            raise context.error(f"slice size {size} of dimension {dim}, which is dropped, must be 1")
    kept = [size for dim, size in enumerate(attrs.slice_sizes) if dim not in dropped]
    flags = dynamic_flags(operand)
    kept_flags = [
        flags[dim] and size == operand.dims[dim] for dim, size in enumerate(attrs.slice_sizes) if dim not in dropped
    ]
    rank = len(batch) + len(kept)
    if len(attrs.offset_dims) != len(kept):
        raise context.error(f"offset_dims has {len(attrs.offset_dims)} entries, windows keep {len(kept)} dimensions")
    _check_sorted(context, attrs.offset_dims, rank, "offset_dims")
    windows = iter(zip(kept, kept_flags, strict=True))
    batch_flags = [f for dim, f in enumerate(dynamic_flags(indices)) if dim != attrs.index_map.index_vector_dim]
    batches = iter(zip(batch, batch_flags, strict=True))
    both = [next(windows) if dim in attrs.offset_dims else next(batches) for dim in range(rank)]
    return Shape.array(operand.dtype, [size for size, _ in both], dynamic=[flag for _, flag in both])


def _gather(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    from xlalite.hlo.ops.evaluation.gathering_evaluation import gather_windows

    attrs: GatherAttrs = instruction.attrs
    return gather_windows(
        array_value(operands[0]),
        array_value(operands[1]),
        attrs.index_map,
        whole_dimensions(instruction.operand(0).shape, attrs.slice_sizes, array_value(operands[0])),
        attrs.dropped_dims,
        attrs.offset_dims,
    )


def _scatter_shape(context: ShapeContext) -> Shape:
    total = len(context.operands)
    context.require(total >= 3 and total % 2 == 1, "takes N operands, the indices and N updates")
    count = total // 2
    operands = [context.array(position) for position in range(count)]
    indices = context.array(count, "indices")
    updates = [context.array(position, "updates") for position in range(count + 1, total)]
    for position, (operand, update) in enumerate(zip(operands, updates, strict=True)):
        if operand.dims != operands[0].dims:
            raise context.error(f"sizes of operands 0 and {position} differ")
        if update.dims != updates[0].dims:
            raise context.error(f"sizes of updates 0 and {position} differ")
        if not same_kind(operand.dtype, update.dtype):
            raise context.error(
                f"operand {position} has element type {operand.dtype.value}, its updates {update.dtype.value}"
            )
    _check_update_sizes(context, operands[0], indices, updates[0])
    check_reducer(context, [Shape.array(operand.dtype) for operand in operands])
    return results_shape(context, operands)


def _check_update_sizes(context: ShapeContext, operand: Shape, indices: Shape, update: Shape) -> None:
    attrs: ScatterAttrs = context.attrs
    _check_sorted(context, attrs.inserted_window_dims, operand.rank, "inserted_window_dims")
    _check_sorted(context, attrs.update_window_dims, update.rank, "update_window_dims")
    batch = _check_index_map(context, attrs.index_map, operand, indices, attrs.inserted_window_dims)
    dropped = attrs.dropped_dims
    kept = [dim for dim in range(operand.rank) if dim not in dropped]
    if len(kept) != len(attrs.update_window_dims):
        raise context.error(
            f"update_window_dims has {len(attrs.update_window_dims)} entries, windows have {len(kept)} dimensions"
        )
    for window_dim, dim in zip(attrs.update_window_dims, kept, strict=True):
        if update.dims[window_dim] > operand.dims[dim]:
            raise context.error(
                f"dimension {window_dim} of the updates is {update.dims[window_dim]}, dimension {dim} of the operand "
                f"is only {operand.dims[dim]}"
            )
    found = [size for dim, size in enumerate(update.dims) if dim not in attrs.update_window_dims]
    if found != batch:
        raise context.error(f"the updates have batch sizes {found}, the indices {batch}")


def _scatter(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    from xlalite.hlo.ops.evaluation.gathering_evaluation import scatter_windows

    attrs: ScatterAttrs = instruction.attrs
    arrays = [array_value(operand) for operand in operands]
    count = len(arrays) // 2
    results = scatter_windows(
        instruction.called_computations[0],
        arrays[:count],
        arrays[count],
        arrays[count + 1 :],
        attrs.index_map,
        attrs.dropped_dims,
        attrs.update_window_dims,
        call,
    )
    return value_or_tuple(results, instruction.shape)


OPS = (
    OpDef(
        "gather",
        "result[batch, offset] = x[clamp(indices[batch]) + offset]",
        2,
        _gather_shape,
        _gather,
        attrs=GatherAttrs,
        traits=Trait.DATA_MOVEMENT,
    ),
    OpDef(
        "scatter",
        "x with x[indices[batch] + offset] = to_apply(x[...], updates[batch, offset]), windows out of bounds skipped",
        None,
        _scatter_shape,
        _scatter,
        attrs=ScatterAttrs,
        calls=Calls(("to_apply",), applies_to_elements=True),
        flops=lambda instruction: instruction.operands[-1].shape.element_count * scalar_flops(instruction),
    ),
)
