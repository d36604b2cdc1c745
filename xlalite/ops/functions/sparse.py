"""Sparse tensors: the functions that users call, under TensorFlow's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xlalite.framework.graph import dtypes
from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.sparse_tensor import SparseTensor as SparseTensorParts, SparseTensorValue
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import ShapeLike, as_shape
from xlalite.framework.meaning.static_value import constant_value_as_shape
from xlalite.ops.functions.array import (
    concat,
    expand_dims,
    gather,
    placeholder,
    reshape,
    shape,
    transpose,
    where,
    where_v2,
)
from xlalite.ops.functions.embedding import embedding_lookup
from xlalite.ops.functions.math import (
    cast,
    conj,
    div_no_nan,
    divide,
    logical_and,
    not_equal,
    reduce_prod,
    reduce_sum,
    sqrt,
    square,
    unsorted_segment_sum,
)
from xlalite.ops.functions.segments import segment_sum
from xlalite.ops.functions.selection import gather_nd
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.helpers.node import node, operation
from xlalite.ops.helpers.promotion import cast_to, promote


def SparseTensor(indices: Any, values: Any, dense_shape: Any) -> SparseTensorParts:
    """A tensor with `values[i]` at `indices[i]` and zeros elsewhere; arrays and lists become constants."""
    places = _int64(indices)
    if isinstance(indices, list | tuple | np.ndarray) and not len(indices):
        places = constant(np.zeros((0, len(dense_shape)), np.int64))
    return SparseTensorParts(places, convert_to_tensor(values), _int64(dense_shape))


def _int64(value: Any) -> Tensor:
    return cast_to(convert_to_tensor(value), dtypes.int64)


def as_sparse(value: Any) -> SparseTensorParts:
    """A sparse tensor, or what is fed for one as constants.

    Raises:
        TypeError: it is neither.
    """
    if isinstance(value, SparseTensorValue):
        return SparseTensor(*value)
    if not isinstance(value, SparseTensorParts):
        raise TypeError(f"expected a SparseTensor, found {value!r}")
    return value


def sparse_placeholder(dtype: Any, shape: ShapeLike | Tensor = None, name: str | None = None) -> SparseTensorParts:
    """A sparse tensor to be fed, as a `SparseTensorValue` or a tuple (indices, values, dense_shape)."""
    known = constant_value_as_shape(shape) if isinstance(shape, Tensor) else as_shape(shape)
    prefix = name or "sparse"
    rank = known.rank
    sizes = (
        constant(np.array(known.known_dims(), np.int64), name=f"{prefix}/shape")
        if known.is_fully_defined()
        else placeholder(dtypes.int64, [rank], f"{prefix}/shape")
    )
    return SparseTensorParts(
        placeholder(dtypes.int64, [None, rank], f"{prefix}/indices"),
        placeholder(dtype, [None], f"{prefix}/values"),
        sizes,
    )


def sparse_to_dense(
    sparse_indices: Any,
    output_shape: Any,
    sparse_values: Any,
    default_value: Any = 0,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    """A tensor with the values at the indices, a scalar, vector or matrix of them, and the default elsewhere."""
    places, sizes = convert_to_tensor(sparse_indices), convert_to_tensor(output_shape)
    return node("SparseToDense", [places, sizes, *promote(sparse_values, default_value)], None, name)


def sparse_tensor_to_dense(
    sp_input: Any, default_value: Any = 0, validate_indices: bool = True, name: str | None = None
) -> Tensor:
    """The tensor that a sparse one stands for, with another default than zero if asked."""
    x = as_sparse(sp_input)
    default = cast_to(promote(default_value)[0], x.dtype) if x.dtype is not dtypes.string else default_value
    return sparse_to_dense(x.indices, x.dense_shape, x.values, default, validate_indices, name)


def sparse_tensor_dense_matmul(
    sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None
) -> Tensor:
    """The product of a sparse matrix and a matrix."""
    a, dense = as_sparse(sp_a), convert_to_tensor(b)
    rows, columns = (1, 0) if adjoint_a else (0, 1)
    with get_default_graph().name_scope(name or "SparseTensorDenseMatMul"):
        values = conj(a.values) if adjoint_a and a.dtype.is_complex else a.values
        other = transpose(dense, [1, 0], conjugate=True) if adjoint_b else dense
        products = expand_dims(values, 1) * gather(other, a.indices[:, columns])
        return unsorted_segment_sum(products, a.indices[:, rows], a.dense_shape[rows])


def sparse_retain(sp_input: Any, to_retain: Any) -> SparseTensorParts:
    """The sparse tensor with some of its values: those for which the vector is true."""
    x = as_sparse(sp_input)
    kept = reshape(where(convert_to_tensor(to_retain)), [-1])
    return SparseTensorParts(gather(x.indices, kept), gather(x.values, kept), x.dense_shape)


def sparse_reduce_sum(sp_input: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """The sum of the values, along dimensions or of all."""
    x = as_sparse(sp_input)
    if axis is None and not keepdims:
        return reduce_sum(x.values, name=name)
    return reduce_sum(sparse_tensor_to_dense(x), axis, keepdims, name)


def sparse_from_dense(tensor: Any, name: str | None = None) -> SparseTensorParts:
    """The elements of a tensor that are not zero."""
    x = convert_to_tensor(tensor)
    with get_default_graph().name_scope(name or "dense_to_sparse"):
        return elements_unlike(x, node("ZerosLike", [x]))


def elements_unlike(x: Tensor, value: Tensor) -> SparseTensorParts:
    """The elements of a tensor that are not those of another one."""
    places = where(not_equal(x, value))
    return SparseTensorParts(places, gather_nd(x, places), shape(x, out_type=dtypes.int64))


def sparse_reorder(sp_input: Any, name: str | None = None) -> SparseTensorParts:
    """The values in row-major order of their indices."""
    x = as_sparse(sp_input)
    steps = node("Cumprod", [x.dense_shape, constant(0)], {"exclusive": True, "reverse": True})
    flat = reduce_sum(x.indices * steps, [1])
    count = shape(flat)[0]
    order = operation("_SortRows", [flat, count], {"largest": False}).outputs[1]
    return SparseTensorParts(gather(x.indices, order), gather(x.values, order), x.dense_shape)


def sparse_reshape(sp_input: Any, shape: Any, name: str | None = None) -> SparseTensorParts:
    """The same values with other sizes, one of which may be -1."""
    x = as_sparse(sp_input)
    wanted = _int64(shape)
    count = reduce_prod(x.dense_shape)
    known = reduce_prod(node("SelectV2", [wanted < 0, node("OnesLike", [wanted]), wanted]))
    sizes = node("SelectV2", [wanted < 0, count // known, wanted])
    old = node("Cumprod", [x.dense_shape, constant(0)], {"exclusive": True, "reverse": True})
    new = node("Cumprod", [sizes, constant(0)], {"exclusive": True, "reverse": True})
    flat = reduce_sum(x.indices * old, [1], True)
    return SparseTensorParts(flat // new % sizes, x.values, sizes)


def sparse_concat(axis: int, sp_inputs: Any, name: str | None = None) -> SparseTensorParts:
    """Sparse tensors one behind the other along a dimension, in row-major order."""
    parts = [as_sparse(each) for each in sp_inputs]
    starts, total = [], constant(0, dtypes.int64)
    for part in parts:
        starts.append(total)
        total = total + part.dense_shape[axis]
    rank = parts[0].dense_shape.shape.as_list()[0]
    if rank is None:
        raise GraphError("sparse_concat: the rank is not known")
    unit = constant(np.eye(rank, dtype=np.int64)[axis])
    places = concat([part.indices + unit * start for part, start in zip(parts, starts, strict=True)], 0)
    sizes = parts[0].dense_shape + unit * (total - parts[0].dense_shape[axis])
    return sparse_reorder(SparseTensorParts(places, concat([part.values for part in parts], 0), sizes))


def sparse_merge(
    sp_ids: Any, sp_values: Any, vocab_size: Any, name: str | None = None, already_sorted: bool = False
) -> SparseTensorParts:
    """The values of one sparse tensor, at the numbers of another instead of their last indices.

    Args:
        sp_ids: The numbers, or several sparse tensors of them, one for each new dimension.
        sp_values: The values, as many and in the same order.
        vocab_size: The size of the new dimension, or sizes.
        name: Name of the operations.
        already_sorted: Whether the result is in row-major order without being sorted.
    """
    several = isinstance(sp_ids, list | tuple) and not isinstance(sp_ids, SparseTensorValue)
    ids = [as_sparse(each) for each in (sp_ids if several else [sp_ids])]
    sizes = list(vocab_size) if isinstance(vocab_size, list | tuple) else [vocab_size]
    if len(ids) != len(sizes):
        raise GraphError(f"sparse_merge: {len(ids)} tensors of ids, but {len(sizes)} sizes")
    with get_default_graph().name_scope(name or "SparseMerge"):
        columns = [expand_dims(_int64(each.values), 1) for each in ids]
        places = concat([ids[0].indices[:, :-1], *columns], 1)
        shape = concat([ids[0].dense_shape[:-1], *(reshape(_int64(size), [1]) for size in sizes)], 0)
        merged = SparseTensorParts(places, as_sparse(sp_values).values, shape)
        return merged if already_sorted else sparse_reorder(merged)


def embedding_lookup_sparse(
    params: Any,
    sp_ids: Any,
    sp_weights: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    combiner: str | None = None,
    max_norm: Any = None,
) -> Tensor:
    """For each row of ids the rows of a table, combined: their sum, mean, or sum over the norm of the weights.

    Raises:
        GraphError: the combiner is not one of these.
    """
    ids = as_sparse(sp_ids)
    weights = None if sp_weights is None else as_sparse(sp_weights).values
    with get_default_graph().name_scope(name or "embedding_lookup_sparse"):
        segments = cast(ids.indices[:, 0], dtypes.int32)

        def summed(values: Tensor) -> Tensor:
            return segment_sum(values, segments)

        rows = embedding_lookup(params, ids.values, partition_strategy, max_norm=max_norm)
        return _combined(rows, ids, weights, combiner or "mean", summed, divide)


def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str = "mean",
    default_id: int | None = None,
    name: str | None = None,
    partition_strategy: str = "div",
    max_norm: Any = None,
) -> Tensor:
    """As `embedding_lookup_sparse`, for ids that may be negative, which are left out, and for rows without any.

    Args:
        embedding_weights: The table, or its parts.
        sparse_ids: The ids, along the last dimension.
        sparse_weights: Their weights; those that are not positive are left out, unless the combiner is `sum`.
        combiner: `sum`, `mean` or `sqrtn`.
        default_id: What rows without ids get the table's row of; zeros by default.
        name: Name of the operations.
        partition_strategy: How the rows lie in the parts.
        max_norm: Rows that are longer are scaled down to this length.
    """
    with get_default_graph().name_scope(name or "embedding_lookup"):
        given = as_sparse(sparse_ids)
        outer = given.dense_shape[:-1]
        count = reduce_prod(outer)
        flat = sparse_reshape(given, concat([reshape(count, [1]), given.dense_shape[-1:]], 0))
        valid = flat.values >= constant(0, flat.dtype)
        weights = None if sparse_weights is None else as_sparse(sparse_weights).values
        if weights is not None and combiner != "sum":
            valid = logical_and(valid, weights > constant(0, weights.dtype))
        kept = reshape(where(valid), [-1])
        ids = SparseTensorParts(gather(flat.indices, kept), gather(flat.values, kept), flat.dense_shape)
        if weights is not None:
            weights = gather(weights, kept)

        def summed(values: Tensor) -> Tensor:
            return unsorted_segment_sum(values, ids.indices[:, 0], count)

        found = embedding_lookup(embedding_weights, ids.values, partition_strategy, max_norm=max_norm)
        rows = _combined(found, ids, weights, combiner, summed, div_no_nan)
        if default_id is not None:
            held = summed(node("OnesLike", [ids.values]))
            default = embedding_lookup(embedding_weights, [default_id], partition_strategy, max_norm=max_norm)
            rows = where_v2(reshape(held > constant(0, held.dtype), [-1, *[1] * (len(rows.shape) - 1)]), rows, default)
        return reshape(rows, concat([outer, cast(shape(rows)[1:], dtypes.int64)], 0))


def _combined(
    rows: Tensor,
    ids: SparseTensorParts,
    given_weights: Tensor | None,
    combiner: str,
    summed: Callable[[Tensor], Tensor],
    divided: Callable[[Tensor, Tensor], Tensor],
) -> Tensor:
    """The weighted rows as the combiner has them, summed and divided as the caller says."""
    if combiner not in ("sum", "mean", "sqrtn"):
        raise GraphError(f"embedding_lookup_sparse: combiner {combiner!r} is not one of sum, mean, sqrtn")
    if rows.shape.rank is None:
        raise GraphError("embedding_lookup_sparse: the rank of the table is not known")
    weights = node("OnesLike", [cast(ids.values, rows.dtype)])
    if given_weights is not None:
        weights = cast_to(given_weights, rows.dtype)
    behind = [-1, *[1] * (rows.shape.rank - 1)]
    total = summed(rows * reshape(weights, behind))
    if combiner == "sum":
        return total
    divisor = summed(weights) if combiner == "mean" else sqrt(summed(square(weights)))
    return divided(total, reshape(divisor, behind))
