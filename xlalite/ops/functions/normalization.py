"""Batch normalisation in one operation, statistics in parts, and local response normalisation."""

from __future__ import annotations

import math
from typing import Any

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import float32
from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions.array import ones_like, shape, squeeze, stop_gradient, zeros
from xlalite.ops.functions.math import cast, reduce_prod, reduce_sum, square, squared_difference
from xlalite.ops.functions.nn import batch_normalization
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.helpers.node import node, operation
from xlalite.ops.helpers.promotion import cast_to, promote

# cuDNN allows no smaller one, and TensorFlow none anywhere for its sake.
_SMALLEST_EPSILON = 1.001e-5


def fused_batch_norm(
    x: Any,
    scale: Any,
    offset: Any,
    mean: Any = None,
    variance: Any = None,
    epsilon: float = 0.001,
    data_format: str = "NHWC",
    is_training: bool = True,
    name: str | None = None,
    exponential_avg_factor: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalised images or volumes, and mean and variance for running averages.

    Args:
        x: Data, with channels last or, for formats such as `NCHW`, second.
        scale: One number for each channel.
        offset: One number for each channel.
        mean: Statistics that are used as they are unless `is_training`, and averaged with new ones if the factor is
            not 1.
        variance: As `mean`.
        epsilon: Added to the variance.
        data_format: `NHWC`, `NCHW`, `NDHWC` or `NCDHW`.
        is_training: Whether statistics are those of the batch.
        name: Name of the operation.
        exponential_avg_factor: Share of the new statistics in what is returned.

    Raises:
        GraphError: statistics are needed and missing.
    """
    data, factors = convert_to_tensor(x), convert_to_tensor(scale)
    if (mean is None or variance is None) and (not is_training or exponential_avg_factor != 1):
        raise GraphError("fused_batch_norm: mean and variance are needed unless all statistics come from the batch")
    none = zeros([0], factors.dtype)
    statistics = [none if each is None else convert_to_tensor(each, factors.dtype) for each in (mean, variance)]
    attrs = {
        "epsilon": max(float(epsilon), _SMALLEST_EPSILON),
        "data_format": data_format,
        "is_training": is_training,
        "exponential_avg_factor": float(exponential_avg_factor),
    }
    inputs = [data, factors, convert_to_tensor(offset, factors.dtype), *statistics]
    result, new_mean, new_variance = operation("FusedBatchNormV3", inputs, attrs, name).outputs[:3]
    return result, new_mean, new_variance


def batch_norm_with_global_normalization(
    t: Any = None,
    m: Any = None,
    v: Any = None,
    beta: Any = None,
    gamma: Any = None,
    variance_epsilon: Any = None,
    scale_after_normalization: bool | None = None,
    name: str | None = None,
    input: Any = None,
    mean: Any = None,
    variance: Any = None,
) -> Tensor:
    """Older form of `batch_normalization`, whose scale `gamma` counts only if asked for."""
    data, centre, spread = (old if new is None else new for old, new in ((t, input), (m, mean), (v, variance)))
    scale = gamma if scale_after_normalization else None
    return batch_normalization(data, centre, spread, beta, scale, variance_epsilon, name)


def local_response_normalization(
    input: Any,
    depth_radius: int = 5,
    bias: float = 1,
    alpha: float = 1,
    beta: float = 0.5,
    name: str | None = None,
) -> Tensor:
    """X / (bias + alpha sum(x^2 over the channels at most `depth_radius` away))^beta."""
    attrs = {"depth_radius": int(depth_radius), "bias": float(bias), "alpha": float(alpha), "beta": float(beta)}
    return node("LRN", [convert_to_tensor(input)], attrs, name)


def sufficient_statistics(
    x: Any,
    axes: Any,
    shift: Any = None,
    keep_dims: bool | None = None,
    name: str | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Number, sum and sum of squares of the elements along `axes`, less `shift`; and the shift."""
    tensor = convert_to_tensor(x)
    keep = bool(keep_dims if keepdims is None else keepdims)
    along = [axes] if isinstance(axes, int) else list(axes)
    with get_default_graph().name_scope(name or "sufficient_statistics"):
        sizes = tensor.shape.dims
        known = None if sizes is None else [sizes[axis] for axis in along]
        if known is not None and None not in known:
            count = constant(math.prod(size or 0 for size in known), tensor.dtype)
        else:
            chosen = node("GatherV2", [shape(tensor), constant(along), constant(0)])
            count = cast(reduce_prod(chosen), tensor.dtype)
        if shift is None:
            return count, reduce_sum(tensor, along, keep), reduce_sum(square(tensor), along, keep), None
        centre = convert_to_tensor(shift, tensor.dtype)
        sums = reduce_sum(tensor - centre, along, keep)
        return count, sums, reduce_sum(squared_difference(tensor, centre), along, keep), centre


def normalize_moments(
    counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Mean and variance from `sufficient_statistics`."""
    with get_default_graph().name_scope(name or "normalize"):
        inverse = node("Reciprocal", [convert_to_tensor(counts)])
        shifted = mean_ss * inverse
        mean: Tensor = shifted if shift is None else shifted + shift
        return mean, variance_ss * inverse - square(shifted)


def weighted_moments(
    x: Any,
    axes: Any,
    frequency_weights: Any,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """Mean and variance along `axes`, each element counted with its weight."""
    keep = bool(keep_dims if keepdims is None else keepdims)
    with get_default_graph().name_scope(name or "weighted_moments"):
        given, weights = promote(x, frequency_weights)
        tensor = cast_to(given, float32) if given.dtype.name == "float16" else given
        weights = cast_to(weights, tensor.dtype) * ones_like(tensor)
        total = reduce_sum(weights, axes, True)
        mean = reduce_sum(weights * tensor, axes, True) / total
        spread = reduce_sum(weights * squared_difference(tensor, stop_gradient(mean)), axes, True) / total
        found = (mean, spread) if keep else (squeeze(mean, axes), squeeze(spread, axes))
        return cast_to(found[0], given.dtype), cast_to(found[1], given.dtype)
