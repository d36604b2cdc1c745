"""Keeping gradients within bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.indexed_slices import IndexedSlices
from xlalite.framework.graph.op_spec import Gradient
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions.array import identity, ones_like, size, where_v2
from xlalite.ops.functions.math import greater, maximum, reduce_sum, sqrt, square
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.promotion import cast_to, promote


def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """`t` scaled down so that its Euclidean norm (along `axes`) is at most `clip_norm`."""
    tensor = convert_to_tensor(t)
    with get_default_graph().name_scope(name or "clip_by_norm"):
        limit = cast_to(promote(clip_norm)[0], tensor.dtype)
        total = reduce_sum(square(tensor), axes, True)
        positive = greater(total, 0)
        # The derivative of sqrt is infinite at 0, so zeros take another way.
        norm = where_v2(positive, sqrt(where_v2(positive, total, ones_like(total))), total)
        return identity(tensor * limit / maximum(norm, limit))


def clip_by_average_norm(t: Any, clip_norm: Any, name: str | None = None) -> Tensor:
    """`t` scaled down so that its Euclidean norm, divided by the number of elements, is at most `clip_norm`."""
    tensor = convert_to_tensor(t)
    with get_default_graph().name_scope(name or "clip_by_average_norm"):
        limit = cast_to(promote(clip_norm)[0], tensor.dtype)
        average = sqrt(reduce_sum(square(tensor))) / cast_to(size(tensor), tensor.dtype)
        return identity(tensor * limit / maximum(average, limit))


def global_norm(t_list: Sequence[Any], name: str | None = None) -> Tensor:
    """Sqrt of the sum of squares of all elements of all tensors; None entries are left out.

    Raises:
        GraphError: there is no tensor.
    """
    tensors = [t.values if isinstance(t, IndexedSlices) else convert_to_tensor(t) for t in t_list if t is not None]
    if not tensors:
        raise GraphError("global_norm: there is no tensor")
    with get_default_graph().name_scope(name or "global_norm"):
        halves = promote(*(node("L2Loss", [tensor]) for tensor in tensors))
        total = halves[0] if len(halves) == 1 else node("AddN", halves)
        return sqrt(total * 2)


def clip_by_global_norm(
    t_list: Sequence[Any], clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list[Gradient | None], Tensor]:
    """Tensors scaled down together so that their common norm is at most `clip_norm`; also gives the norm before.

    An infinite or NaN norm makes all results NaN rather than hiding the trouble.
    """
    with get_default_graph().name_scope(name or "clip_by_global_norm"):
        norm = global_norm(t_list) if use_norm is None else convert_to_tensor(use_norm)
        limit = cast_to(promote(clip_norm)[0], norm.dtype)
        ratio = limit / maximum(norm, limit)
        # norm - norm is 0 for finite norms and NaN otherwise.
        scale = ratio + (norm - norm)
        clipped = [None if t is None else _scaled(t, scale) for t in t_list]
        return clipped, norm


def _scaled(value: Any, scale: Tensor) -> Gradient:
    if isinstance(value, IndexedSlices):
        rows = value.values * cast_to(scale, value.dtype)
        return IndexedSlices(rows, value.indices, value.dense_shape)
    tensor = convert_to_tensor(value)
    result: Tensor = tensor * cast_to(scale, tensor.dtype)
    return result
