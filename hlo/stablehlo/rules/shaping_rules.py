"""Operations that move elements: broadcasts, slices, gathers, scatters, sorts."""

from __future__ import annotations

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.ops.gathering import GatherAttrs, ScatterAttrs
from xlalite.hlo.ops.sorting import SortAttrs, TopkAttrs
from xlalite.hlo.stablehlo.reading.syntax import Attribute
from xlalite.hlo.stablehlo.rules.context import ImportRule, OperationContext
from xlalite.hlo.stablehlo.rules.elementwise_rules import twin


def _broadcast_in_dim(context: OperationContext) -> Handle:
    operand = context.operands[0] if context.operands else context.take(1)[0]
    places, dims = context.integers("broadcast_dimensions"), context.result.dims
    if len(places) != operand.shape.rank or any(not 0 <= place < len(dims) for place in places):
        raise context.error(f"dimensions {list(places)} do not fit {operand.shape.text()} -> {context.result.text()}")
    return context.builder.broadcast_in_dim(operand, dims, places)


def _broadcast(context: OperationContext) -> Handle:
    (operand,) = context.take(1)
    sizes = context.integers("broadcast_sizes")
    rank = len(sizes) + operand.shape.rank
    return context.builder.broadcast(operand, (*sizes, *operand.dims), range(len(sizes), rank))


def _reshape(context: OperationContext) -> Handle:
    operand = context.operands[0] if context.operands else context.take(1)[0]
    return context.builder.reshape(operand, context.result.dims)


def _transpose(context: OperationContext) -> Handle:
    (operand,) = context.take(1)
    return context.builder.transpose(operand, context.integers("permutation"))


def _reverse(context: OperationContext) -> Handle:
    (operand,) = context.take(1)
    return context.builder.reverse(operand, context.integers("dimensions"))


def _slice(context: OperationContext) -> Handle:
    starts, limits = context.integers("start_indices"), context.integers("limit_indices")
    strides = context.integers("strides", (1,) * len(starts))
    if not len(starts) == len(limits) == len(strides):
        raise context.error("start_indices, limit_indices and strides differ in length")
    (operand,) = context.take(1)
    return context.builder.slice(operand, starts, limits, strides)


def _dynamic_slice(context: OperationContext) -> Handle:
    operand, *starts = context.operands or context.take(1)
    return context.builder.dynamic_slice(operand, starts, context.integers("slice_sizes"))


def _pad(context: OperationContext) -> Handle:
    amounts = [context.integers(f"edge_padding_{end}") for end in ("low", "high")]
    amounts.append(context.integers("interior_padding", (0,) * len(amounts[0])))
    if len({len(column) for column in amounts}) > 1:
        raise context.error("low, high and interior differ in length")
    padding = tuple((low, high, interior) for low, high, interior in zip(*amounts, strict=True))
    operand, value = context.take(2)
    return context.builder.pad(operand, value, padding)


def _concatenate(context: OperationContext) -> Handle:
    return context.builder.concatenate(context.operands or context.take(1), context.get("dimension", int))


def _numbers(context: OperationContext, structure: dict[str, Attribute], key: str) -> tuple[int, ...]:
    return context.as_integers(structure.get(key), key)


def _index_vector_dim(context: OperationContext, structure: dict[str, Attribute]) -> int:
    value = structure.get("index_vector_dim", 0)
    if not isinstance(value, int):
        raise context.error("index_vector_dim must be an integer")
    return value


def _gather(context: OperationContext) -> Handle:
    numbers = context.get("dimension_numbers", dict)
    attrs = GatherAttrs(
        offset_dims=_numbers(context, numbers, "offset_dims"),
        collapsed_slice_dims=_numbers(context, numbers, "collapsed_slice_dims"),
        start_index_map=_numbers(context, numbers, "start_index_map"),
        operand_batching_dims=_numbers(context, numbers, "operand_batching_dims"),
        start_indices_batching_dims=_numbers(context, numbers, "start_indices_batching_dims"),
        index_vector_dim=_index_vector_dim(context, numbers),
        slice_sizes=context.integers("slice_sizes"),
        indices_are_sorted=context.get("indices_are_sorted", bool, False),
    )
    return context.op("gather", context.take(2), attrs)


def _scatter(context: OperationContext) -> tuple[Handle, ...]:
    numbers = context.get("scatter_dimension_numbers", dict)
    attrs = ScatterAttrs(
        update_window_dims=_numbers(context, numbers, "update_window_dims"),
        inserted_window_dims=_numbers(context, numbers, "inserted_window_dims"),
        scatter_dims_to_operand_dims=_numbers(context, numbers, "scatter_dims_to_operand_dims"),
        input_batching_dims=_numbers(context, numbers, "input_batching_dims"),
        scatter_indices_batching_dims=_numbers(context, numbers, "scatter_indices_batching_dims"),
        index_vector_dim=_index_vector_dim(context, numbers),
        indices_are_sorted=context.get("indices_are_sorted", bool, False),
        unique_indices=context.get("unique_indices", bool, False),
    )
    return context.unpack(context.op("scatter", context.operands, attrs, (context.function(name="update"),)))


def _sort(context: OperationContext) -> tuple[Handle, ...]:
    dimension = context.get("dimension", int, -1)
    if dimension < 0 and context.operands:
        dimension += context.operands[0].shape.rank
    attrs = SortAttrs((dimension,), context.get("is_stable", bool, False))
    return context.unpack(context.op("sort", context.operands, attrs, (context.function(name="comparator"),)))


def _top_k(context: OperationContext) -> tuple[Handle, ...]:
    attrs = TopkAttrs(context.get("k", int), context.operation.attributes.get("largest", True) is not False)
    return context.unpack(context.op("topk", context.take(1), attrs))


def _torch_index_select(context: OperationContext) -> Handle:
    """Rows of a dimension by their numbers; the first `batch_dims` dimensions of both operands belong together."""
    operand, index = context.take(2)
    dimension, batch = context.get("dim", int), context.get("batch_dims", int)
    if not 0 <= batch <= dimension < operand.shape.rank or batch > index.shape.rank:
        raise context.error(f"dimension {dimension} and {batch} batch dimensions do not fit {operand.shape.text()}")
    indexed = index.shape.rank - batch
    rank = operand.shape.rank
    offsets = [i if i < dimension else i + indexed - 1 for i in range(batch, rank) if i != dimension]
    attrs = GatherAttrs(
        offset_dims=tuple(offsets),
        collapsed_slice_dims=(dimension,),
        start_index_map=(dimension,),
        operand_batching_dims=tuple(range(batch)),
        start_indices_batching_dims=tuple(range(batch)),
        index_vector_dim=index.shape.rank,
        slice_sizes=tuple(1 if i < batch or i == dimension else size for i, size in enumerate(operand.dims)),
    )
    return context.op("gather", (operand, index), attrs)


RULES: dict[str, ImportRule] = {
    "broadcast_in_dim": _broadcast_in_dim,
    "dynamic_broadcast_in_dim": _broadcast_in_dim,
    "broadcast": _broadcast,
    "reshape": _reshape,
    "dynamic_reshape": _reshape,
    "transpose": _transpose,
    "reverse": _reverse,
    "slice": _slice,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": twin("dynamic-update-slice"),
    "pad": _pad,
    "concatenate": _concatenate,
    "gather": _gather,
    "scatter": _scatter,
    "sort": _sort,
    "torch_index_select": _torch_index_select,
}

CHLO_RULES: dict[str, ImportRule] = {"top_k": _top_k}
