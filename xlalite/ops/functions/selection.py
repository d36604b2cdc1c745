"""Elements chosen by index vectors, by masks and by value: the functions that users call, under TensorFlow's names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xlalite.framework.graph import dtypes
from xlalite.framework.graph.dtypes import as_dtype
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.errors import ShapeError
from xlalite.ops.functions.array import concat, expand_dims, gather, reshape, shape, squeeze, transpose
from xlalite.ops.functions.math import range as number_range, reduce_max, reduce_prod
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.helpers.node import node, operation
from xlalite.ops.helpers.promotion import cast_to, promote
from xlalite.ops.helpers.shape_rules import normalize_axis
from xlalite.ops.helpers.sizes import as_size_vector

# Index vectors.


def gather_nd(params: Any, indices: Any, name: str | None = None, batch_dims: int = 0) -> Tensor:
    """The slices of `params` at the index vectors in the last dimension of `indices`."""
    table, places = convert_to_tensor(params), convert_to_tensor(indices)
    if batch_dims:
        places = concat([*_batch_positions(places, batch_dims), places], -1)
    return node("GatherNd", [table, places], None, name)


def batch_gather(params: Any, indices: Any, name: str | None = None) -> Tensor:
    """For each batch the rows of `params` at `indices`, whose last dimension lists them.

    Raises:
        ShapeError: the rank of the indices is not known.
    """
    places = convert_to_tensor(indices)
    if not places.shape.rank:
        raise ShapeError(f"batch_gather: indices {places.name!r} have shape {places.shape}; expected a known rank >= 1")
    return gather_with_batches(convert_to_tensor(params), places, places.shape.rank - 1, places.shape.rank - 1, name)


def gather_with_batches(params: Tensor, indices: Tensor, axis: int, batch_dims: int, name: str | None) -> Tensor:
    """`params` at `indices` along `axis`, where the first `batch_dims` dimensions of both belong together."""
    if params.shape.rank is None or indices.shape.rank is None:
        raise ShapeError("gather with batch_dims needs known ranks")
    batches = batch_dims + indices.shape.rank if batch_dims < 0 else batch_dims
    along = normalize_axis(axis, params.shape.rank)
    order = [*range(batches), along, *(i for i in range(batches, params.shape.rank) if i != along)]
    moved = transpose(params, order) if order != sorted(order) else params
    vectors = concat([*_batch_positions(expand_dims(indices, -1), batches), expand_dims(indices, -1)], -1)
    taken = node("GatherNd", [moved, vectors], None, name)
    inner = indices.shape.rank - batches
    # What lay between the batches and the axis goes before the dimensions of the indices again.
    between = along - batches
    first = batches + inner
    back = [*range(batches), *range(first, first + between), *range(batches, first)]
    back += range(first + between, taken.shape.rank or 0)
    return transpose(taken, back) if back != sorted(back) else taken


def _batch_positions(vectors: Tensor, batches: int) -> list[Tensor]:
    """For each batch dimension its position, at the sizes of the index vectors but for one number in each."""
    if vectors.shape.rank is None:
        raise ShapeError("batch_dims need indices of known rank")
    sizes = shape(vectors)
    kept = concat([sizes[:-1], constant([1], sizes.dtype)], 0)
    found = []
    for axis in range(batches):
        positions = number_range(cast_to(sizes[axis], vectors.dtype))
        spread = reshape(positions, [-1 if i == axis else 1 for i in range(vectors.shape.rank)])
        found.append(node("BroadcastTo", [spread, kept]))
    return found


def scatter_nd(indices: Any, updates: Any, shape: Any, name: str | None = None) -> Tensor:
    """Zeros of `shape`, with the updates added at the index vectors in the last dimension of `indices`."""
    operands = [convert_to_tensor(indices), convert_to_tensor(updates), as_size_vector(shape)]
    return node("ScatterNd", operands, None, name)


def _tensor_scatter(op_type: str, summary: str) -> Callable[..., Tensor]:
    def function(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Tensor:
        whole, given = promote(tensor, updates)
        return node(op_type, [whole, convert_to_tensor(indices), given], None, name)

    function.__doc__ = f"`tensor` with {summary} at the index vectors in the last dimension of `indices`."
    function.__name__ = function.__qualname__ = op_type
    return function


tensor_scatter_nd_update = _tensor_scatter("TensorScatterUpdate", "the updates put")
tensor_scatter_nd_add = _tensor_scatter("TensorScatterAdd", "the updates added")
tensor_scatter_nd_sub = _tensor_scatter("TensorScatterSub", "the updates subtracted")
tensor_scatter_nd_max = _tensor_scatter("TensorScatterMax", "the larger one of element and update")
tensor_scatter_nd_min = _tensor_scatter("TensorScatterMin", "the smaller one of element and update")


# Masks.


def boolean_mask(tensor: Any, mask: Any, name: str = "boolean_mask", axis: int | None = None) -> Tensor:
    """The elements of `tensor` where the mask, which covers some dimensions from `axis` on, is true.

    Raises:
        ShapeError: the mask is a scalar, or its rank is not known, or it does not fit.
    """
    x, chosen = convert_to_tensor(tensor), convert_to_tensor(mask)
    first = 0 if axis is None else axis
    if not chosen.shape.rank:
        raise ShapeError(f"boolean_mask: the mask has shape {chosen.shape}; expected a known rank of at least 1")
    if x.shape.rank is not None:
        first = normalize_axis(first, x.shape.rank)
    x.shape[first : first + chosen.shape.rank].assert_is_compatible_with(chosen.shape)
    sizes = shape(x)
    middle = reduce_prod(sizes[first : first + chosen.shape.rank], [0])
    flat = reshape(x, concat([sizes[:first], expand_dims(middle, 0), sizes[first + chosen.shape.rank :]], 0))
    if x.shape.dims is not None:
        flat.set_shape([*x.shape.dims[:first], None, *x.shape.dims[first + chosen.shape.rank :]])
    places = squeeze(node("Where", [reshape(chosen, [-1])]), [1])
    return gather(flat, places, axis=first, name=name)


def sequence_mask(lengths: Any, maxlen: Any = None, dtype: Any = dtypes.bool_, name: str | None = None) -> Tensor:
    """For each length so many trues, and falses up to `maxlen` (the largest length by default), in a new dimension."""
    counts = convert_to_tensor(lengths)
    limit = reduce_max(counts) if maxlen is None else cast_to(convert_to_tensor(maxlen), counts.dtype)
    limit = limit if maxlen is not None else node("Maximum", [limit, constant(0, counts.dtype)])
    mask = node("Less", [number_range(limit), expand_dims(counts, -1)], None, name or "SequenceMask")
    return cast_to(mask, as_dtype(dtype))


# Values.


class Unique(NamedTuple):
    """What `unique` gives.

    Attributes:
        y: Each value once, in the order in which it comes first.
        idx: For each element its place in `y`.
    """

    y: Tensor
    idx: Tensor


class UniqueWithCounts(NamedTuple):
    """What `unique_with_counts` gives.

    Attributes:
        y: Each value once, in the order in which it comes first.
        idx: For each element its place in `y`.
        count: How often each value comes.
    """

    y: Tensor
    idx: Tensor
    count: Tensor  # type: ignore[assignment]  # the name is TensorFlow's


class ListDiff(NamedTuple):
    """What `setdiff1d` gives.

    Attributes:
        out: The elements of the first list that are not in the second.
        idx: Their positions.
    """

    out: Tensor
    idx: Tensor


def unique(x: Any, out_idx: Any = dtypes.int32, name: str | None = None) -> Unique:
    """The distinct elements of a vector."""
    return Unique(*operation("Unique", [convert_to_tensor(x)], {"out_idx": as_dtype(out_idx)}, name).outputs)


def unique_with_counts(x: Any, out_idx: Any = dtypes.int32, name: str | None = None) -> UniqueWithCounts:
    """The distinct elements of a vector, and how often each comes."""
    attrs = {"out_idx": as_dtype(out_idx)}
    return UniqueWithCounts(*operation("UniqueWithCounts", [convert_to_tensor(x)], attrs, name).outputs)


def setdiff1d(x: Any, y: Any, index_dtype: Any = dtypes.int32, name: str | None = None) -> ListDiff:
    """The elements of `x` that are not in `y`."""
    return ListDiff(*operation("ListDiff", promote(x, y), {"out_idx": as_dtype(index_dtype)}, name).outputs)


def listdiff(x: Any, y: Any, out_idx: Any = dtypes.int32, name: str | None = None) -> ListDiff:
    """The same as `setdiff1d`."""
    return setdiff1d(x, y, out_idx, name)


def dynamic_partition(data: Any, partitions: Any, num_partitions: int, name: str | None = None) -> list[Tensor]:
    """The rows of `data` in `num_partitions` lists."""
    operands = [convert_to_tensor(data), convert_to_tensor(partitions)]
    return list(operation("DynamicPartition", operands, {"num_partitions": int(num_partitions)}, name).outputs)


def dynamic_stitch(indices: Sequence[Any], data: Sequence[Any], name: str | None = None) -> Tensor:
    """The rows of all data where the indices say; of rows for one place the last stays."""
    places = [convert_to_tensor(each) for each in indices]
    return node("DynamicStitch", [*places, *promote(*data)], {"N": len(places)}, name)


def parallel_stack(values: Sequence[Any], name: str = "parallel_stack") -> Tensor:
    """Tensors side by side along a new first dimension."""
    return node("Pack", promote(*values), {"axis": 0}, name)


def sparse_mask(a: Any, mask_indices: Any, name: str | None = None) -> Any:
    """The rows of an `IndexedSlices` whose indices are not in `mask_indices`."""
    kept = setdiff1d(a.indices, mask_indices)
    return type(a)(gather(a.values, kept.idx, name=name), kept.out, a.dense_shape)


def unravel_index(indices: Any, dims: Any, name: str | None = None) -> Tensor:
    """Positions in row-major order as multi-indices, one row for each dimension of `dims`."""
    places, sizes = promote(convert_to_tensor(indices), as_size_vector(dims))
    steps = node("Cumprod", [sizes, constant(0)], {"exclusive": True, "reverse": True})
    if places.shape.rank == 0:
        return node("FloorMod", [node("FloorDiv", [places, steps]), sizes], None, name)
    return node("FloorMod", [node("FloorDiv", [expand_dims(places, 0), expand_dims(steps, 1)]), expand_dims(sizes, 1)])
