"""Neural-network functions: what users reach as `xlalite.nn`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import float32
from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.errors import ShapeError
from xlalite.ops.functions.array import (
    concat,
    rank,
    reshape,
    shape,
    squeeze,
    stop_gradient,
    transpose,
    where,
    zeros_like,
)
from xlalite.ops.functions.math import (
    log1p,
    reduce_mean,
    reduce_sum,
    rsqrt,
    sigmoid as sigmoid,
    square,
    squared_difference,
    tanh as tanh,
)
from xlalite.ops.functions.random_ops import random_uniform
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.helpers.node import node, operation
from xlalite.ops.helpers.promotion import cast_to, promote
from xlalite.ops.helpers.shape_rules import normalize_axis


def _activation(op_type: str, summary: str) -> Callable[..., Tensor]:
    def function(features: Any, name: str | None = None) -> Tensor:
        return node(op_type, [convert_to_tensor(features)], None, name)

    function.__doc__ = summary
    function.__name__ = function.__qualname__ = op_type.lower()
    return function


relu = _activation("Relu", "max(x, 0).")
relu6 = _activation("Relu6", "min(max(x, 0), 6).")
elu = _activation("Elu", "x where positive, e^x - 1 elsewhere.")
selu = _activation("Selu", "Elu, scaled to keep mean 0 and variance 1.")
softplus = _activation("Softplus", "log(1 + e^x).")
softsign = _activation("Softsign", "`x / (1 + |x|)`.")


def leaky_relu(features: Any, alpha: float = 0.2, name: str | None = None) -> Tensor:
    """X where positive, alpha x elsewhere."""
    return node("LeakyRelu", [convert_to_tensor(features)], {"alpha": float(alpha)}, name)


def crelu(features: Any, name: str | None = None, axis: int = -1) -> Tensor:
    """The positive parts of x and of -x, one behind the other along `axis`."""
    tensor = convert_to_tensor(features)
    return relu(concat([tensor, -tensor], axis), name or "CRelu")


def swish(features: Any, name: str | None = None) -> Tensor:
    """X sigmoid(x)."""
    tensor = convert_to_tensor(features)
    return node("Mul", [tensor, sigmoid(tensor)], None, name or "swish")


silu = swish


def log_sigmoid(x: Any, name: str | None = None) -> Tensor:
    """log(1 / (1 + e^-x)), without overflow."""
    return node("Neg", [softplus(-convert_to_tensor(x))], None, name or "LogSigmoid")


def relu_layer(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """max(x weights + biases, 0)."""
    return relu(xw_plus_b(x, weights, biases), name or "relu_layer")


def bias_add(value: Any, bias: Any, data_format: str | None = None, name: str | None = None) -> Tensor:
    """`bias` added along the channels: the last dimension, or the second for data formats that begin with NC."""
    operands = promote(value, bias)
    return node("BiasAdd", operands, {"data_format": data_format or "NHWC"}, name)


def l2_loss(t: Any, name: str | None = None) -> Tensor:
    """sum(t^2) / 2."""
    return node("L2Loss", [convert_to_tensor(t)], None, name)


def xw_plus_b(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """X weights + biases."""
    product = node("MatMul", promote(x, weights), {"transpose_a": False, "transpose_b": False})
    return bias_add(product, biases, name=name or "xw_plus_b")


def softmax(logits: Any, axis: int | None = None, name: str | None = None, dim: int | None = None) -> Tensor:
    """e^x / sum(e^x) along a dimension, the last one by default."""
    return _along("Softmax", logits, axis if axis is not None else dim, name)


def log_softmax(logits: Any, axis: int | None = None, name: str | None = None, dim: int | None = None) -> Tensor:
    """The logarithm of softmax along a dimension, the last one by default."""
    return _along("LogSoftmax", logits, axis if axis is not None else dim, name)


def _along(op_type: str, logits: Any, axis: int | None, name: str | None) -> Tensor:
    tensor = convert_to_tensor(logits)
    order = _last_axis_order(tensor, axis)
    if order is None:
        return node(op_type, [tensor], None, name)
    return transpose(node(op_type, [transpose(tensor, order)], None, name), order)


def _last_axis_order(tensor: Tensor, axis: int | None) -> list[int] | None:
    """The exchange of dimension `axis` with the last one; None when it is the last one."""
    if axis is None or axis == -1:
        return None
    rank = tensor.shape.rank
    if rank is None:
        raise ShapeError(f"{tensor.name!r} has unknown rank; only its last dimension can be named")
    along = normalize_axis(axis, rank)
    if along == rank - 1:
        return None
    order = list(range(rank))
    order[along], order[-1] = order[-1], order[along]
    return order


# Cross entropy.


def softmax_cross_entropy_with_logits_v2(
    _sentinel: Any = None,
    labels: Any = None,
    logits: Any = None,
    axis: int | None = None,
    name: str | None = None,
    dim: int | None = None,
) -> Tensor:
    """-sum(labels * log_softmax(logits)) along a dimension; gradients flow to labels too.

    Args:
        _sentinel: Must not be used: pass `labels` and `logits` by name.
        labels: Probabilities of the classes.
        logits: Unscaled log-probabilities, of the same shape.
        axis: The classes' dimension, the last one by default.
        name: Name of the operation.
        dim: Older spelling of `axis`.
    """
    wanted, scores = _check_named(_sentinel, labels, logits, "softmax_cross_entropy_with_logits")
    x, y = convert_to_tensor(scores), convert_to_tensor(wanted)
    # As the labels are converted to the type of the logits, f32 logits keep their precision with f64 labels.
    y = cast_to(y, x.dtype)
    order = _last_axis_order(x, axis if axis is not None else dim)
    if order is not None:
        x, y = transpose(x, order), transpose(y, order)
    leading = None if x.shape.rank == 2 else _leading_sizes(x)
    flat_x, flat_y = (x, y) if leading is None else (_flattened(x), _flattened(y))
    loss = operation("SoftmaxCrossEntropyWithLogits", [flat_x, flat_y], None, name).outputs[0]
    return loss if leading is None else _unflattened(loss, x, leading)


def softmax_cross_entropy_with_logits(
    _sentinel: Any = None,
    labels: Any = None,
    logits: Any = None,
    dim: int = -1,
    name: str | None = None,
    axis: int | None = None,
) -> Tensor:
    """-sum(labels * log_softmax(logits)) along a dimension; gradients do not flow to labels."""
    wanted, scores = _check_named(_sentinel, labels, logits, "softmax_cross_entropy_with_logits")
    return softmax_cross_entropy_with_logits_v2(
        labels=stop_gradient(wanted), logits=scores, axis=dim if axis is None else axis, name=name
    )


def sparse_softmax_cross_entropy_with_logits(
    _sentinel: Any = None, labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """-log_softmax(logits)[label] along the last dimension; labels are class numbers with one dimension less."""
    wanted, scores = _check_named(_sentinel, labels, logits, "sparse_softmax_cross_entropy_with_logits")
    x, y = convert_to_tensor(scores), convert_to_tensor(wanted)
    if None not in (x.shape.rank, y.shape.rank) and y.shape.rank != len(x.shape) - 1:
        raise ShapeError(
            f"sparse_softmax_cross_entropy_with_logits: labels of shape {y.shape} must have one dimension less than "
            f"logits of shape {x.shape}"
        )
    if x.shape.rank == 2:
        return operation("SparseSoftmaxCrossEntropyWithLogits", [x, y], None, name).outputs[0]
    leading = _leading_sizes(x)
    flat_y = reshape(y, [-1])
    loss = operation("SparseSoftmaxCrossEntropyWithLogits", [_flattened(x), flat_y], None, name).outputs[0]
    return _unflattened(loss, x, leading)


def sigmoid_cross_entropy_with_logits(
    _sentinel: Any = None, labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """`max(x, 0) - x z + log(1 + e^-|x|)` for logits x and labels z, which is stable for all x."""
    wanted, scores = _check_named(_sentinel, labels, logits, "sigmoid_cross_entropy_with_logits")
    x, z = promote(scores, wanted)
    decay = log1p(node("Exp", [-node("Abs", [x])]))
    return node("AddV2", [relu(x) - x * z, decay], None, name or "logistic_loss")


def weighted_cross_entropy_with_logits(
    labels: Any = None, logits: Any = None, pos_weight: Any = None, name: str | None = None, targets: Any = None
) -> Tensor:
    """Sigmoid cross entropy in which what should be 1 counts `pos_weight` times."""
    wanted = labels if targets is None else targets
    wanted, scores = _check_named(None, wanted, logits, "weighted_cross_entropy_with_logits")
    x, z = promote(scores, wanted)
    weight = 1 + (cast_to(promote(pos_weight)[0], x.dtype) - 1) * z
    decay = log1p(node("Exp", [-node("Abs", [x])]))
    return node("AddV2", [(1 - z) * x, weight * (decay + relu(-x))], None, name or "logistic_loss")


def log_poisson_loss(targets: Any, log_input: Any, compute_full_loss: bool = False, name: str | None = None) -> Tensor:
    """e^c - z c for logarithms c and counts z; in full, with Stirling's approximation of log(z!)."""
    z, c = promote(targets, log_input)
    with get_default_graph().name_scope(name or "log_poisson_loss"):
        loss: Tensor = node("Exp", [c]) - c * z
        if not compute_full_loss:
            return loss
        stirling = z * node("Log", [z]) - z + 0.5 * node("Log", [z * (2 * np.pi)])
        small = node("LogicalAnd", [z >= 0, z <= 1])
        return node("AddV2", [loss, where(small, zeros_like(z), stirling)])


def _check_named(sentinel: Any, labels: Any, logits: Any, function: str) -> tuple[Any, Any]:
    if sentinel is not None:
        raise GraphError(f"{function}: pass labels= and logits= by name; their order is easily mistaken")
    if labels is None or logits is None:
        raise GraphError(f"{function}: both labels and logits are needed")
    return labels, logits


def _leading_sizes(x: Tensor) -> Tensor:
    """The sizes of all dimensions but the last one."""
    return node("Slice", [shape(x), constant([0]), node("ExpandDims", [rank(x) - 1, constant(0)])])


def _flattened(x: Tensor) -> Tensor:
    """`[..., classes]` as `[n, classes]`."""
    dims = x.shape.dims
    classes = None if not dims else dims[-1]
    if classes is not None:
        return reshape(x, [-1, classes])
    sizes = shape(x)
    last = node("Slice", [sizes, node("ExpandDims", [rank(x) - 1, constant(0)]), constant([1])])
    return node("Reshape", [x, node("ConcatV2", [constant([-1]), last, constant(0)])])


def _unflattened(loss: Tensor, x: Tensor, leading: Tensor) -> Tensor:
    result = node("Reshape", [loss, leading])
    if x.shape.dims is not None:
        result.set_shape(x.shape.dims[:-1])
    return result


# Regularisation and statistics.


def zero_fraction(value: Any, name: str | None = None) -> Tensor:
    """The share of the elements that are 0."""
    tensor = convert_to_tensor(value)
    with get_default_graph().name_scope(name or "zero_fraction"):
        zeros = node("Equal", [tensor, zeros_like(tensor)])
        return reduce_mean(node("Cast", [zeros], {"dtype": float32}), name="fraction")


def dropout(
    x: Any,
    keep_prob: Any = None,
    noise_shape: Any = None,
    seed: int | None = None,
    name: str | None = None,
    rate: Any = None,
) -> Tensor:
    """Elements set to 0 with probability `rate = 1 - keep_prob`, the others scaled by `1 / keep_prob`.

    Raises:
        GraphError: neither or both of the probabilities are given, or one is outside its range.
    """
    if (keep_prob is None) == (rate is None):
        raise GraphError("dropout: exactly one of keep_prob and rate is needed")
    keep = keep_prob if keep_prob is not None else 1 - rate
    if isinstance(keep, int | float) and not 0 < keep <= 1:
        raise GraphError(f"dropout: keep_prob must be in (0, 1], found {keep}")
    tensor = convert_to_tensor(x)
    with get_default_graph().name_scope(name or "dropout"):
        if isinstance(keep, int | float) and keep == 1:
            return tensor
        sizes = shape(tensor) if noise_shape is None else noise_shape
        kept = cast_to(promote(keep)[0], tensor.dtype)
        drawn = random_uniform(sizes, seed=seed, dtype=tensor.dtype)
        mask = node("Cast", [node("Less", [drawn, kept])], {"dtype": tensor.dtype})
        result: Tensor = tensor / kept * mask
        result.set_shape(tensor.shape)
        return result


def moments(
    x: Any, axes: Any, shift: Any = None, name: str | None = None, keep_dims: bool = False, keepdims: bool | None = None
) -> tuple[Tensor, Tensor]:
    """Mean and variance along `axes`."""
    tensor = convert_to_tensor(x)
    keep = keep_dims if keepdims is None else keepdims
    with get_default_graph().name_scope(name or "moments"):
        mean = reduce_mean(tensor, axes, True, name="mean")
        variance = reduce_mean(squared_difference(tensor, stop_gradient(mean)), axes, True, name="variance")
        return (mean, variance) if keep else (squeeze(mean, axes), squeeze(variance, axes))


def l2_normalize(x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None) -> Tensor:
    """X / sqrt(max(sum(x^2), epsilon)) along `axis`."""
    tensor = convert_to_tensor(x)
    total = reduce_sum(square(tensor), axis if axis is not None else dim, True)
    floor = constant(np.asarray(epsilon), tensor.dtype)
    return node("Mul", [tensor, rsqrt(node("Maximum", [total, floor]))], None, name or "l2_normalize")


def batch_normalization(
    x: Any, mean: Any, variance: Any, offset: Any, scale: Any, variance_epsilon: float, name: str | None = None
) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset; scale and offset may be None."""
    factor = rsqrt(convert_to_tensor(variance) + variance_epsilon)
    factor = factor if scale is None else factor * scale
    shifted = -convert_to_tensor(mean) * factor
    result: Tensor = convert_to_tensor(x) * factor + (shifted if offset is None else shifted + offset)
    return result
