"""Sparse tensors added, transposed and normalised: the functions that users call, under TensorFlow's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.sparse_tensor import SparseTensor, SparseTensorValue
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions.array import concat, gather, reshape, shape
from xlalite.ops.functions.math import abs, add, exp, greater_equal, reduce_prod, reduce_sum, unsorted_segment_sum
from xlalite.ops.functions.segments import unsorted_segment_max
from xlalite.ops.functions.selection import scatter_nd, unique
from xlalite.ops.functions.sparse import as_sparse, sparse_reorder, sparse_retain
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.promotion import cast_to


def sparse_add(a: Any, b: Any, threshold: Any = None, thresh: Any = None) -> SparseTensor | Tensor:
    """The sum of two tensors of which one at least is sparse; sparse if both are.

    The entries of a sparse sum are in row-major order. Those whose magnitude is below `threshold` (or `thresh`, as
    older programs call it) are left out of it; a tensor's sum with a sparse one has no use for a threshold.

    Raises:
        GraphError: neither is sparse.
    """
    if not any(isinstance(each, SparseTensor | SparseTensorValue) for each in (a, b)):
        raise GraphError("sparse_add: one of the two must be a SparseTensor")
    if not all(isinstance(each, SparseTensor | SparseTensorValue) for each in (a, b)):
        sparse, dense = (a, b) if isinstance(a, SparseTensor | SparseTensorValue) else (b, a)
        x = as_sparse(sparse)
        return add(scatter_nd(x.indices, x.values, x.dense_shape), dense)
    left, right = as_sparse(a), as_sparse(b)
    places = concat([left.indices, right.indices], 0)
    steps = _steps(left)
    numbers = unique(reduce_sum(places * steps, [1]))
    values = concat([left.values, cast_to(right.values, left.dtype)], 0)
    total = unsorted_segment_sum(values, numbers.idx, shape(numbers.y)[0])
    found = reshape(numbers.y, [-1, 1]) // steps % left.dense_shape
    added = sparse_reorder(SparseTensor(found, total, left.dense_shape))
    least = threshold if threshold is not None else thresh
    if least is None or (isinstance(least, int | float) and least == 0):
        return added
    return sparse_retain(added, greater_equal(abs(added.values), least))


def sparse_softmax(sp_input: Any, name: str | None = None) -> SparseTensor:
    """The softmax of the entries of each row, the last dimension; what is not there counts as minus infinity."""
    x = as_sparse(sp_input)
    rows = reduce_sum(x.indices * _steps(x), [1]) // x.dense_shape[-1]
    count = reduce_prod(x.dense_shape[:-1])
    largest = node("StopGradient", [unsorted_segment_max(x.values, rows, count)])
    powers = exp(x.values - gather(largest, rows))
    return SparseTensor(x.indices, powers / gather(unsorted_segment_sum(powers, rows, count), rows), x.dense_shape)


def sparse_transpose(sp_input: Any, perm: Any = None, name: str | None = None) -> SparseTensor:
    """The sparse tensor with its dimensions in another order, reversed if none is given.

    The entries are in row-major order again.

    Raises:
        GraphError: no order is given and the rank is not known.
    """
    x = as_sparse(sp_input)
    if perm is None:
        rank = x.dense_shape.shape.as_list()[0]
        if rank is None:
            raise GraphError("sparse_transpose: the rank is not known")
        perm = np.arange(rank)[::-1]
    order = convert_to_tensor(perm)
    return sparse_reorder(SparseTensor(gather(x.indices, order, axis=1), x.values, gather(x.dense_shape, order)))


def _steps(x: SparseTensor) -> Tensor:
    """How far apart neighbours along each dimension are in row-major order."""
    return node("Cumprod", [x.dense_shape, constant(0)], {"exclusive": True, "reverse": True})
