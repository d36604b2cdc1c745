"""Losses of variables: what `get_variable` and layers take as regularizers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.graph_keys import GraphKeys
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions import math as m
from xlalite.ops.functions.nn import l2_loss
from xlalite.ops.helpers.constant import constant, convert_to_tensor

Regularizer = Callable[[Any], "Tensor | None"]


def l1_regularizer(scale: float, scope: str | None = None) -> Regularizer:
    """`scale` times the sum of absolute values; None for a scale of 0."""
    return _scaled("l1_regularizer", scale, scope, lambda weights: m.reduce_sum(m.abs(weights)))


def l2_regularizer(scale: float, scope: str | None = None) -> Regularizer:
    """`scale` times half the sum of squares; None for a scale of 0."""
    return _scaled("l2_regularizer", scale, scope, l2_loss)


def l1_l2_regularizer(scale_l1: float = 1.0, scale_l2: float = 1.0, scope: str | None = None) -> Regularizer:
    """The sum of both."""
    return sum_regularizer([l1_regularizer(scale_l1), l2_regularizer(scale_l2)], scope or "l1_l2_regularizer")


def sum_regularizer(regularizer_list: Iterable[Regularizer | None], scope: str | None = None) -> Regularizer:
    """The sum of several."""
    chosen = [each for each in regularizer_list if each is not None]

    def regularize(weights: Any) -> Tensor | None:
        with get_default_graph().name_scope(scope or "sum_regularizer"):
            losses = [loss for each in chosen if (loss := each(weights)) is not None]
            return m.add_n(losses) if losses else None

    return regularize


def apply_regularization(regularizer: Regularizer, weights_list: Sequence[Any] | None = None) -> Tensor:
    """The loss of several weights, those in the WEIGHTS by default; it joins the REGULARIZATION_LOSSES."""
    graph = get_default_graph()
    weights = graph.get_collection(GraphKeys.WEIGHTS) if weights_list is None else weights_list
    losses = [loss for each in weights if (loss := regularizer(each)) is not None]
    total = m.add_n(losses) if losses else constant(0.0)
    graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, total)
    return total


def _scaled(name: str, scale: float, scope: str | None, measure: Callable[[Any], Tensor]) -> Regularizer:
    if isinstance(scale, int) and not isinstance(scale, bool) and scale != 0:
        raise GraphError(f"{name}: the scale cannot be an integer: {scale}")
    if scale < 0:
        raise GraphError(f"{name}: the scale {scale} must not be negative")

    def regularize(weights: Any) -> Tensor | None:
        if not scale:
            return None
        with get_default_graph().name_scope(scope or name):
            tensor = convert_to_tensor(weights)
            return m.multiply(constant(scale, tensor.dtype, name="scale"), measure(tensor))

    return regularize
