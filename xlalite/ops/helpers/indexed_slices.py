"""What gradients do with rows of tensors: make them of gathers, join them, and turn them into whole tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.indexed_slices import IndexedSlices
from xlalite.framework.graph.op_spec import Gradient
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.promotion import cast_to


def gathered_rows(gradient: Tensor, indices: Tensor, whole: TensorShape, sizes: Tensor) -> IndexedSlices:
    """The gradient of rows that were gathered: what arrived for `indices` of any shape, as a list of rows.

    Args:
        gradient: `indices.shape + whole[1:]`.
        indices: Which rows were taken.
        whole: What is known of the shape that they were taken from.
        sizes: Its sizes as a vector.
    """
    if indices.shape.rank == 1:
        return IndexedSlices(gradient, indices, sizes)
    flat = constant(np.array([-1], np.int32))
    count, row = indices.shape.num_elements(), None if whole.dims is None else whole[1:]
    if count is not None and row is not None and row.is_fully_defined():
        flat_rows = constant(np.array([count, *row.known_dims()], np.int32))
    else:
        number = node("Reshape", [node("Size", [indices], {"out_type": sizes.dtype}), flat])
        inner = node("Slice", [sizes, constant([1], sizes.dtype), constant([-1], sizes.dtype)])
        flat_rows = node("ConcatV2", [number, inner, constant(0)])
    return IndexedSlices(node("Reshape", [gradient, flat_rows]), node("Reshape", [indices, flat]), sizes)


def join_slices(terms: Sequence[IndexedSlices]) -> IndexedSlices:
    """The sum of several tensors that are given by rows: all rows of all of them."""
    values = [term.values for term in terms]
    indices = [term.indices for term in terms]
    wide = max((each.dtype for each in indices), key=lambda dtype: dtype.size)
    joined = [cast_to(each, wide) for each in indices]
    sizes = next((term.dense_shape for term in terms if term.dense_shape is not None), None)
    zero = constant(0)
    return IndexedSlices(node("ConcatV2", [*values, zero]), node("ConcatV2", [*joined, zero]), sizes)


def dense(gradient: Gradient) -> Tensor:
    """A gradient as a whole tensor.

    Raises:
        GraphError: it is rows of a tensor whose sizes are not known.
    """
    if isinstance(gradient, Tensor):
        return gradient
    if gradient.dense_shape is None:
        raise GraphError(f"{gradient!r} has no dense_shape, so it cannot become a tensor")
    count = node("GatherV2", [gradient.dense_shape, constant(0), constant(0)])
    return node("UnsortedSegmentSum", [gradient.values, gradient.indices, count])
