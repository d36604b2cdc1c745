"""Losses that join the LOSSES collection: what users reach as `xlalite.losses`."""

from __future__ import annotations

from typing import Any, Final

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import float32, int64
from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.graph_keys import GraphKeys
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions.array import ones_like, reshape, squeeze, stop_gradient, zeros_like
from xlalite.ops.functions.math import (
    add_n,
    cast,
    div_no_nan,
    log,
    maximum,
    minimum,
    not_equal,
    reduce_mean,
    reduce_sum,
    square,
    squared_difference,
)
from xlalite.ops.functions.nn import (
    relu,
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits_v2,
    sparse_softmax_cross_entropy_with_logits,
)
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.helpers.promotion import cast_to, promote


class Reduction:
    """How the losses of elements become one number."""

    NONE: Final = "none"
    SUM: Final = "weighted_sum"
    MEAN: Final = "weighted_mean"
    SUM_OVER_BATCH_SIZE: Final = "weighted_sum_over_batch_size"
    SUM_BY_NONZERO_WEIGHTS: Final = "weighted_sum_by_nonzero_weights"
    ALL: Final = (NONE, SUM, MEAN, SUM_OVER_BATCH_SIZE, SUM_BY_NONZERO_WEIGHTS)


def compute_weighted_loss(
    losses: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """Losses times weights (broadcast), reduced, and added to the collection.

    Raises:
        GraphError: the reduction is not one of `Reduction`.
    """
    if reduction not in Reduction.ALL:
        raise GraphError(f"reduction {reduction!r} is not one of {', '.join(Reduction.ALL)}")
    graph = get_default_graph()
    with graph.name_scope(scope or "weighted_loss"):
        values = convert_to_tensor(losses)
        factors = cast_to(promote(weights)[0], values.dtype)
        weighted: Tensor = values * factors
        loss = _reduced(weighted, factors, reduction)
    if loss_collection is not None:
        graph.add_to_collection(loss_collection, loss)
    return loss


def _reduced(weighted: Tensor, weights: Tensor, reduction: str) -> Tensor:
    if reduction == Reduction.NONE:
        return weighted
    total = reduce_sum(weighted)
    if reduction == Reduction.SUM:
        return total
    if reduction == Reduction.SUM_OVER_BATCH_SIZE:
        return reduce_mean(weighted)
    spread = weights * ones_like(weighted)
    if reduction == Reduction.SUM_BY_NONZERO_WEIGHTS:
        spread = cast(not_equal(spread, zeros_like(spread)), weighted.dtype)
    return div_no_nan(total, reduce_sum(spread), name="value")


def sparse_softmax_cross_entropy(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """Cross entropy of class numbers `[batch]` or `[batch, 1]` with logits `[batch, classes]`."""
    scores, numbers = convert_to_tensor(logits), convert_to_tensor(labels)
    if not numbers.dtype.is_integer:
        raise GraphError(f"sparse_softmax_cross_entropy: labels must be integers, found {numbers.dtype.name}")
    with get_default_graph().name_scope(scope or "sparse_softmax_cross_entropy_loss") as opened:
        if numbers.shape.rank is not None and numbers.shape.rank == scores.shape.rank:
            numbers = squeeze(numbers, [-1])
        wide = numbers if numbers.dtype.name in ("int32", "int64") else cast(numbers, int64)
        losses = sparse_softmax_cross_entropy_with_logits(labels=wide, logits=scores, name="xentropy")
        return compute_weighted_loss(losses, weights, opened or None, loss_collection, reduction)


def softmax_cross_entropy(
    onehot_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """Cross entropy of probabilities with logits, both `[batch, classes]`."""
    scores = convert_to_tensor(logits)
    wanted = cast(onehot_labels, scores.dtype)
    with get_default_graph().name_scope(scope or "softmax_cross_entropy_loss") as opened:
        if label_smoothing > 0:
            classes = cast(constant(scores.shape.with_rank_at_least(1)[-1].value or 1), scores.dtype)
            wanted = wanted * (1 - label_smoothing) + label_smoothing / classes
        labels = stop_gradient(wanted)
        losses = softmax_cross_entropy_with_logits_v2(labels=labels, logits=scores, name="xentropy")
        return compute_weighted_loss(losses, weights, opened or None, loss_collection, reduction)


def sigmoid_cross_entropy(
    multi_class_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """Cross entropy of independent probabilities with logits of the same shape."""
    scores = convert_to_tensor(logits)
    with get_default_graph().name_scope(scope or "sigmoid_cross_entropy_loss") as opened:
        wanted = cast(multi_class_labels, scores.dtype)
        losses = sigmoid_cross_entropy_with_logits(labels=wanted, logits=scores, name="xentropy")
        return compute_weighted_loss(losses, weights, opened or None, loss_collection, reduction)


def mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """(predictions - labels)^2."""
    with get_default_graph().name_scope(scope or "mean_squared_error") as opened:
        losses = squared_difference(predictions, labels)
        return compute_weighted_loss(losses, weights, opened or None, loss_collection, reduction)


def absolute_difference(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """`|predictions - labels|`."""
    with get_default_graph().name_scope(scope or "absolute_difference") as opened:
        wanted, found = _of_one_shape(labels, predictions)
        return compute_weighted_loss(abs(found - wanted), weights, opened or None, loss_collection, reduction)


def cosine_distance(
    labels: Any,
    predictions: Any,
    axis: int | None = None,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
    dim: int | None = None,
) -> Tensor:
    """1 - labels * predictions summed along `axis`, for vectors of length 1.

    Raises:
        GraphError: there is no axis.
    """
    along = dim if axis is None else axis
    if along is None:
        raise GraphError("cosine_distance: an axis is needed")
    with get_default_graph().name_scope(scope or "cosine_distance_loss") as opened:
        wanted, found = _of_one_shape(labels, predictions)
        losses = 1 - reduce_sum(found * wanted, along, True)
        return compute_weighted_loss(losses, weights, opened or None, loss_collection, reduction)


def hinge_loss(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """max(0, 1 - (2 labels - 1) * logits), for labels 0 and 1."""
    with get_default_graph().name_scope(scope or "hinge_loss") as opened:
        wanted, found = _of_one_shape(labels, logits)
        losses = relu(1 - (2 * wanted - 1) * found)
        return compute_weighted_loss(losses, weights, opened or None, loss_collection, reduction)


def huber_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    delta: float = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """error^2 / 2 up to an error of `delta`, and linear beyond."""
    with get_default_graph().name_scope(scope or "huber_loss") as opened:
        wanted, found = _of_one_shape(labels, predictions)
        error = abs(found - wanted)
        quadratic = minimum(error, delta)
        losses = 0.5 * quadratic * quadratic + delta * (error - quadratic)
        return compute_weighted_loss(losses, weights, opened or None, loss_collection, reduction)


def log_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    epsilon: float = 1e-7,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """-labels log(predictions + epsilon) - (1 - labels) log(1 - predictions + epsilon)."""
    with get_default_graph().name_scope(scope or "log_loss") as opened:
        wanted, found = _of_one_shape(labels, predictions)
        losses = -wanted * log(found + epsilon) - (1 - wanted) * log(1 - found + epsilon)
        return compute_weighted_loss(losses, weights, opened or None, loss_collection, reduction)


def mean_pairwise_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
) -> Tensor:
    """For each example the mean of ((p_i - p_j) - (l_i - l_j))^2 over all pairs of its elements, summed."""
    with get_default_graph().name_scope(scope or "mean_pairwise_squared_error"):
        wanted, found = _of_one_shape(labels, predictions)
        factors = cast_to(promote(weights)[0], found.dtype)
        difference = found - wanted
        rank = len(difference.shape)
        axes = list(range(1, rank))
        if factors.shape.rank == 1 and rank > 1:
            factors = reshape(factors, [-1] + [1] * (rank - 1))
        present = cast(not_equal(factors * ones_like(difference), 0), found.dtype)
        count = reduce_sum(present, axes, True)
        squares = 2 * div_no_nan(reduce_sum(square(difference), axes, True), maximum(count - 1, 0))
        products = 2 * div_no_nan(square(reduce_sum(difference, axes, True)), maximum(count * (count - 1), 0))
        loss = reduce_sum((squares - products) * factors)
    if loss_collection is not None:
        get_default_graph().add_to_collection(loss_collection, loss)
    return loss


def _of_one_shape(labels: Any, predictions: Any) -> tuple[Tensor, Tensor]:
    """Both as tensors of one floating-point type.

    Raises:
        ShapeError: their shapes differ.
    """
    found = convert_to_tensor(predictions)
    found = found if found.dtype.is_floating else cast(found, float32)
    wanted = cast(labels, found.dtype)
    found.shape.assert_is_compatible_with(wanted.shape)
    return wanted, found


def get_losses(scope: str | None = None, loss_collection: Any = GraphKeys.LOSSES) -> list[Tensor]:
    """The collected losses."""
    return get_default_graph().get_collection(loss_collection, scope)


def get_regularization_losses(scope: str | None = None) -> list[Tensor]:
    """The collected losses of regularisers."""
    return get_default_graph().get_collection(GraphKeys.REGULARIZATION_LOSSES, scope)


def get_regularization_loss(scope: str | None = None, name: str = "total_regularization_loss") -> Tensor:
    """The sum of all regularization losses; 0 when there are none."""
    collected = get_regularization_losses(scope)
    return add_n(collected, name=name) if collected else constant(0.0)


def add_loss(loss: Any, loss_collection: Any = GraphKeys.LOSSES) -> None:
    """Adds a loss to the collection."""
    if loss_collection is not None:
        get_default_graph().add_to_collection(loss_collection, loss)


def get_total_loss(add_regularization_losses: bool = True, name: str = "total_loss") -> Tensor:
    """The sum of all collected losses.

    Raises:
        GraphError: there are none.
    """
    collected = get_losses() + (get_regularization_losses() if add_regularization_losses else [])
    if not collected:
        raise GraphError("get_total_loss: no loss has been added to the graph")
    return add_n(collected, name=name)
