"""Rows combined by segment, and counts of numbers: the functions that users call, under TensorFlow's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xlalite.framework.graph import dtypes
from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import as_dtype
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.errors import ShapeError
from xlalite.ops.functions.array import broadcast_to, pad, reshape, shape, stack
from xlalite.ops.functions.math import maximum, minimum, reduce_max, sqrt, unsorted_segment_sum
from xlalite.ops.functions.selection import scatter_nd
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.promotion import cast_to, promote


def _sorted_segments(kind: str, summary: str) -> Callable[..., Tensor]:
    def function(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
        return node(f"Segment{kind}", [convert_to_tensor(data), convert_to_tensor(segment_ids)], None, name)

    function.__doc__ = f"{summary} of the rows of each segment; ids ascend, and the last one says how many rows result."
    function.__name__ = function.__qualname__ = f"segment_{kind.lower()}"
    return function


segment_sum = _sorted_segments("Sum", "The sum")
segment_mean = _sorted_segments("Mean", "The mean")
segment_prod = _sorted_segments("Prod", "The product")
segment_max = _sorted_segments("Max", "The largest elements")
segment_min = _sorted_segments("Min", "The smallest elements")


def _sparse_segments(kind: str, summary: str) -> Callable[..., Tensor]:
    def function(
        data: Any, indices: Any, segment_ids: Any, name: str | None = None, num_segments: Any = None
    ) -> Tensor:
        operands = [convert_to_tensor(value) for value in (data, indices, segment_ids)]
        found = node(f"SparseSegment{kind}", operands, None, name)
        if num_segments is None:
            return found
        # Segments behind the last one that has rows are zeros.
        count = cast_to(convert_to_tensor(num_segments), dtypes.int32)
        rank = found.shape.rank
        if rank is None:
            raise ShapeError("num_segments needs data of known rank")
        return pad(found, [[0, count - shape(found)[0]], *[[0, 0]] * (rank - 1)])

    function.__doc__ = f"{summary} of the rows of `data` at `indices` that belong to each segment; ids ascend."
    function.__name__ = function.__qualname__ = f"sparse_segment_{kind.lower()}"
    return function


sparse_segment_sum = _sparse_segments("Sum", "The sum")
sparse_segment_mean = _sparse_segments("Mean", "The mean")
sparse_segment_sqrt_n = _sparse_segments("SqrtN", "The sum over the square root of the number")


def _unsorted_segments(kind: str, summary: str) -> Callable[..., Tensor]:
    def function(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
        operands = [convert_to_tensor(value) for value in (data, segment_ids, num_segments)]
        return node(f"UnsortedSegment{kind}", operands, None, name)

    function.__doc__ = f"Row i of the result is {summary} of the rows whose id is i; negative ids are left out."
    function.__name__ = function.__qualname__ = f"unsorted_segment_{kind.lower()}"
    return function


unsorted_segment_prod = _unsorted_segments("Prod", "the product")
unsorted_segment_max = _unsorted_segments("Max", "the largest")
unsorted_segment_min = _unsorted_segments("Min", "the smallest")


def unsorted_segment_mean(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
    """Row i of the result is the mean of the rows whose id is i; zeros where there are none."""
    return _total_over(data, segment_ids, num_segments, lambda count: count, name)


def unsorted_segment_sqrt_n(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
    """Row i of the result is the sum of the rows whose id is i over the square root of their number."""
    return _total_over(data, segment_ids, num_segments, sqrt, name)


def _total_over(
    data: Any, segment_ids: Any, num_segments: Any, divisor: Callable[[Tensor], Tensor], name: str | None
) -> Tensor:
    x, ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
    if x.shape.rank is None or ids.shape.rank is None:
        raise ShapeError("the mean of segments needs known ranks")
    ones = cast_to(node("OnesLike", [ids]), x.dtype)
    count = maximum(unsorted_segment_sum(ones, ids, num_segments), 1)
    spread = reshape(divisor(count), [-1, *[1] * (x.shape.rank - ids.shape.rank)])
    return node("RealDiv", [unsorted_segment_sum(x, ids, num_segments), spread], None, name)


def bincount(
    arr: Any,
    weights: Any = None,
    minlength: Any = None,
    maxlength: Any = None,
    dtype: Any = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """How often each number comes, or the sum of its weights; as long as the largest number asks for."""
    numbers = cast_to(convert_to_tensor(arr), dtypes.int32)
    # The largest of nothing is the smallest number there is, which one more leaves below 0.
    size = node("Maximum", [reduce_max(numbers) + 1, constant(0)])
    if minlength is not None:
        size = maximum(size, cast_to(convert_to_tensor(minlength), dtypes.int32))
    if maxlength is not None:
        size = minimum(size, cast_to(convert_to_tensor(maxlength), dtypes.int32))
    given = constant(np.zeros(0, as_dtype(dtype).numpy_dtype)) if weights is None else convert_to_tensor(weights)
    return node("Bincount", [numbers, size, given], None, name)


def confusion_matrix(
    labels: Any,
    predictions: Any,
    num_classes: Any = None,
    dtype: Any = dtypes.int32,
    name: str | None = None,
    weights: Any = None,
) -> Tensor:
    """How often, or with which weight, each class (a row) was taken for each (a column).

    Without a number of classes, there are as many as the largest of both vectors asks for.
    """
    wanted, found = (reshape(cast_to(convert_to_tensor(each), dtypes.int64), [-1]) for each in (labels, predictions))
    with get_default_graph().name_scope(name or "confusion_matrix"):
        if num_classes is None:
            num_classes = maximum(reduce_max(wanted), reduce_max(found)) + 1
        count = cast_to(convert_to_tensor(num_classes), dtypes.int64)
        one = convert_to_tensor(1 if weights is None else weights)
        values = broadcast_to(reshape(cast_to(one, as_dtype(dtype)), [-1]), shape(wanted))
        return scatter_nd(stack([wanted, found], 1), values, stack([count, count]))


def histogram_fixed_width(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """Counts in `nbins` bins of equal width over a range; what lies outside counts in the first or last one."""
    x, limits = promote(values, value_range)
    return node("HistogramFixedWidth", [x, limits, convert_to_tensor(nbins)], {"dtype": as_dtype(dtype)}, name)


def histogram_fixed_width_bins(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """The bin of each element, of `nbins` of equal width over a range; the first or last for what lies outside."""
    x, limits = promote(values, value_range)
    wide = cast_to(x, dtypes.float64)
    low, high = cast_to(limits, dtypes.float64)[0], cast_to(limits, dtypes.float64)[1]
    count = cast_to(convert_to_tensor(nbins), dtypes.float64)
    place = node("Floor", [(wide - low) / (high - low) * count])
    return node("Cast", [maximum(minimum(place, count - 1), 0)], {"dtype": as_dtype(dtype)}, name)
