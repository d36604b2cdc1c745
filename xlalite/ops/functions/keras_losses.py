"""`tf.keras.losses`: losses of predictions, a mean or sum over the last dimension for each example."""

from __future__ import annotations

from typing import Any, Final

from xlalite.framework.graph.dtypes import int64
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions.array import squeeze
from xlalite.ops.functions.math import (
    abs as abs_,
    cast,
    clip_by_value,
    log,
    reduce_mean,
    reduce_sum,
    squared_difference,
)
from xlalite.ops.functions.nn import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits_v2,
    sparse_softmax_cross_entropy_with_logits,
)
from xlalite.ops.helpers.constant import convert_to_tensor

_SMALL: Final = 1e-7
"""How near to 0 and 1 probabilities are taken to be at most."""


def mean_squared_error(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of the squared differences."""
    found = convert_to_tensor(y_pred)
    return reduce_mean(squared_difference(found, cast(y_true, found.dtype)), [-1])


def mean_absolute_error(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of the absolute differences."""
    found = convert_to_tensor(y_pred)
    return reduce_mean(abs_(found - cast(y_true, found.dtype)), [-1])


def binary_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0) -> Tensor:
    """The mean cross entropy of probabilities, or of their logits.

    Probabilities that a sigmoid has made are taken back to logits, which loses nothing.
    """
    found = convert_to_tensor(y_pred)
    wanted = cast(y_true, found.dtype)
    if label_smoothing:
        wanted = wanted * (1 - label_smoothing) + label_smoothing / 2
    logits = found if from_logits else _argument_of("Sigmoid", found)
    if logits is not None:
        return reduce_mean(sigmoid_cross_entropy_with_logits(labels=wanted, logits=logits), [-1])
    chance = clip_by_value(found, _SMALL, 1 - _SMALL)
    return reduce_mean(-(wanted * log(chance + _SMALL) + (1 - wanted) * log(1 - chance + _SMALL)), [-1])


def categorical_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0) -> Tensor:
    """The cross entropy of the probabilities of classes, or of their logits, and those that are wanted."""
    found = convert_to_tensor(y_pred)
    wanted = cast(y_true, found.dtype)
    if label_smoothing:
        wanted = wanted * (1 - label_smoothing) + label_smoothing / cast(found.shape.as_list()[-1], found.dtype)
    logits = found if from_logits else _argument_of("Softmax", found)
    if logits is not None:
        return softmax_cross_entropy_with_logits_v2(labels=wanted, logits=logits)
    chance = clip_by_value(found / reduce_sum(found, [-1], True), _SMALL, 1 - _SMALL)
    return -reduce_sum(wanted * log(chance), [-1])  # type: ignore[no-any-return]  # what operators give


def sparse_categorical_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False) -> Tensor:
    """The same for classes that are wanted by their numbers."""
    found = convert_to_tensor(y_pred)
    logits = found if from_logits else _argument_of("Softmax", found)
    if logits is None:
        logits = log(clip_by_value(found, _SMALL, 1 - _SMALL))
    numbers = cast(y_true, int64)
    if numbers.shape.rank == found.shape.rank:  # examples often come with a last dimension of 1
        numbers = squeeze(numbers, [-1])
    return sparse_softmax_cross_entropy_with_logits(labels=numbers, logits=logits)


def _argument_of(function: str, found: Tensor) -> Tensor | None:
    return found.op.inputs[0] if found.op.type == function else None
