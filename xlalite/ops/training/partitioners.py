"""Partitioners: in how many parts along each dimension a variable lies."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from xlalite.framework.graph.dtypes import as_dtype, string
from xlalite.framework.graph.tensor_shape import TensorShape, as_shape

Partitioner = Callable[..., list[int]]


def fixed_size_partitioner(num_shards: int, axis: int = 0) -> Partitioner:
    """So many parts along a dimension, if it has so many rows."""

    def partition(shape: Any, **unused: Any) -> list[int]:
        return _along(as_shape(shape), axis, num_shards)

    return partition


def variable_axis_size_partitioner(
    max_shard_bytes: int, axis: int = 0, bytes_per_string_element: int = 16, max_shards: int | None = None
) -> Partitioner:
    """As few parts along a dimension as keep each below so many bytes.

    Raises:
        ValueError: one of the numbers is not positive.
    """
    if max_shard_bytes < 1 or bytes_per_string_element < 1 or (max_shards is not None and max_shards < 1):
        raise ValueError("max_shard_bytes, bytes_per_string_element and max_shards must be positive.")

    def partition(shape: Any, dtype: Any, **unused: Any) -> list[int]:
        dims = as_shape(shape)
        row = _bytes(dims, dtype, bytes_per_string_element) / dims.known_dims()[axis]
        rows = max(1, math.floor(max_shard_bytes / row))
        shards = math.ceil(dims.known_dims()[axis] / rows)
        return _along(dims, axis, shards if max_shards is None else min(shards, max_shards))

    return partition


def min_max_variable_partitioner(
    max_partitions: int = 1, axis: int = 0, min_slice_size: int = 256 << 10, bytes_per_string_element: int = 16
) -> Partitioner:
    """As many parts along a dimension as make each at least so many bytes, up to a limit."""

    def partition(shape: Any, dtype: Any, **unused: Any) -> list[int]:
        dims = as_shape(shape)
        shards = math.ceil(_bytes(dims, dtype, bytes_per_string_element) / min_slice_size)
        return _along(dims, axis, min(max_partitions, shards))

    return partition


def _bytes(shape: TensorShape, dtype: Any, of_string: int) -> int:
    type_ = as_dtype(dtype)
    return math.prod(shape.known_dims()) * (of_string if type_ is string else type_.numpy_dtype.itemsize)


def _along(shape: TensorShape, axis: int, count: int) -> list[int]:
    """One part along all dimensions but one.

    Raises:
        ValueError: there is no such dimension.
    """
    dims = shape.known_dims()
    if not -len(dims) <= axis < len(dims):
        raise ValueError(f"A variable of shape {shape} has no dimension {axis} to be partitioned along")
    partitions = [1] * len(dims)
    partitions[axis] = max(1, min(count, dims[axis]))
    return partitions
