"""Heads of estimators: what logits mean, how they are learned and measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xlalite.client.estimator_spec import EstimatorSpec, ModeKeys, PredictOutput
from xlalite.framework.graph.dtypes import float32, int64, string
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions import losses
from xlalite.ops.functions.array import concat, expand_dims, gather, reshape, zeros_like
from xlalite.ops.functions.lookup import index_table_from_tensor
from xlalite.ops.functions.math import argmax, cast, maximum, sigmoid, square
from xlalite.ops.functions.nn import (
    sigmoid_cross_entropy_with_logits,
    softmax,
    sparse_softmax_cross_entropy_with_logits,
)
from xlalite.ops.functions.strings import as_string
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.training import metrics, summary

_SERVING = "serving_default"


class Head:
    """What all heads share.

    Attributes:
        units: How many logits there are for an example.
    """

    def __init__(self, units: int, weight_column: Any, reduction: str) -> None:
        if reduction not in losses.Reduction.ALL or reduction == losses.Reduction.NONE:
            raise ValueError(f"Invalid loss_reduction: {reduction}")
        self.units = units
        self._weight_column, self._reduction = weight_column, reduction

    def predictions(self, logits: Tensor) -> dict[str, Tensor]:
        """What is predicted, by name."""
        raise NotImplementedError

    def labels(self, given: Any) -> Tensor:
        """The labels as numbers, of two dimensions."""
        raise NotImplementedError

    def losses(self, labels: Tensor, logits: Tensor) -> Tensor:
        """The loss of each example."""
        raise NotImplementedError

    def measured(self, labels: Tensor, found: Mapping[str, Tensor], weights: Any) -> dict[str, Any]:
        """The metrics besides the loss."""
        raise NotImplementedError

    def spec(
        self, features: Mapping[str, Any], mode: str, logits: Tensor, labels: Any, train: Callable[[Tensor], Any]
    ) -> EstimatorSpec:
        """What the estimator needs in a mode."""
        found = self.predictions(logits)
        if mode == ModeKeys.PREDICT:
            outputs = {_SERVING: PredictOutput(found), "predict": PredictOutput(found)}
            return EstimatorSpec(mode, predictions=found, export_outputs=outputs)
        numbers = self.labels(labels)
        weights: Any = 1.0
        if self._weight_column is not None:
            key = self._weight_column if isinstance(self._weight_column, str) else self._weight_column.key
            weights = reshape(cast(features[key], float32), [-1, 1])
        each = self.losses(numbers, logits)
        loss = losses.compute_weighted_loss(each, weights, reduction=self._reduction)
        if mode == ModeKeys.TRAIN:
            summary.scalar("loss", loss)
            return EstimatorSpec(mode, predictions=found, loss=loss, train_op=train(loss))
        measured = {"average_loss": metrics.mean(each, weights), **self.measured(numbers, found, weights)}
        return EstimatorSpec(mode, predictions=found, loss=loss, eval_metric_ops=measured)


class _Classes(Head):
    """Classes by numbers, or by the words of a list."""

    def __init__(self, units: int, count: int, weights: Any, words: Sequence[str] | None, reduction: str) -> None:
        super().__init__(units, weights, reduction)
        if words is not None and len(words) != count:
            raise ValueError(f"label_vocabulary must have {count} words, found {len(words)}")
        self._words = None if words is None else list(words)

    def labels(self, given: Any) -> Tensor:
        """The numbers of the classes."""
        labels = convert_to_tensor(given)
        if labels.shape.rank == 1:
            labels = expand_dims(labels, -1)
        if self._words is not None:
            found: Tensor = index_table_from_tensor(constant(self._words)).lookup(labels)
            return found
        return labels

    def names(self, numbers: Tensor) -> Tensor:
        """How classes are called."""
        return as_string(numbers) if self._words is None else gather(constant(self._words, string), numbers)


class _TwoClasses(_Classes):
    """The second of two classes, by one logit."""

    def __init__(self, weights: Any, words: Sequence[str] | None, reduction: str) -> None:
        super().__init__(1, 2, weights, words, reduction)

    def predictions(self, logits: Tensor) -> dict[str, Tensor]:
        """The probability, and the class that is likelier."""
        both = concat([zeros_like(logits), logits], -1)
        numbers = expand_dims(argmax(both, -1), -1)
        return {
            "logits": logits,
            "logistic": sigmoid(logits),
            "probabilities": softmax(both),
            "class_ids": numbers,
            "classes": self.names(numbers),
        }

    def losses(self, labels: Tensor, logits: Tensor) -> Tensor:
        """The cross entropies."""
        return sigmoid_cross_entropy_with_logits(labels=cast(labels, float32), logits=logits)

    def measured(self, labels: Tensor, found: Mapping[str, Tensor], weights: Any) -> dict[str, Any]:
        """How often it is right, and what always saying the same would give."""
        logistic, wanted = found["logistic"], cast(labels, float32)
        mean, update = metrics.mean(wanted, weights)
        return {
            "accuracy": metrics.accuracy(labels, found["class_ids"], _rows(weights)),
            "precision": metrics.precision(labels, found["class_ids"], _rows(weights)),
            "recall": metrics.recall(labels, found["class_ids"], _rows(weights)),
            "prediction/mean": metrics.mean(logistic, weights),
            "label/mean": (mean, update),
            "accuracy_baseline": (maximum(mean, 1 - mean), maximum(update, 1 - update)),
            "auc": metrics.auc(wanted, logistic, _rows(weights)),
            "auc_precision_recall": metrics.auc(wanted, logistic, _rows(weights), curve="PR"),
        }


class _ManyClasses(_Classes):
    """One of several classes, each by a logit of its own."""

    def predictions(self, logits: Tensor) -> dict[str, Tensor]:
        """The probabilities, and the likeliest class."""
        numbers = expand_dims(argmax(logits, -1), -1)
        return {
            "logits": logits,
            "probabilities": softmax(logits),
            "class_ids": numbers,
            "classes": self.names(numbers),
        }

    def losses(self, labels: Tensor, logits: Tensor) -> Tensor:
        """The cross entropies."""
        numbers = reshape(cast(labels, int64), [-1])
        return expand_dims(sparse_softmax_cross_entropy_with_logits(labels=numbers, logits=logits), -1)

    def measured(self, labels: Tensor, found: Mapping[str, Tensor], weights: Any) -> dict[str, Any]:
        """How often it is right."""
        return {"accuracy": metrics.accuracy(labels, found["class_ids"], _rows(weights))}


class _Numbers(Head):
    """Numbers as they are."""

    def predictions(self, logits: Tensor) -> dict[str, Tensor]:
        """The numbers."""
        return {"predictions": logits}

    def labels(self, given: Any) -> Tensor:
        """The numbers that are wanted."""
        return reshape(cast(convert_to_tensor(given), float32), [-1, self.units])

    def losses(self, labels: Tensor, logits: Tensor) -> Tensor:
        """The squared differences."""
        return square(labels - logits)

    def measured(self, labels: Tensor, found: Mapping[str, Tensor], weights: Any) -> dict[str, Any]:
        """Whether they are right in the mean."""
        return {
            "prediction/mean": metrics.mean(found["predictions"], weights),
            "label/mean": metrics.mean(labels, weights),
        }


def _rows(weights: Any) -> Any:
    return weights if isinstance(weights, Tensor) else None


def classifier_head(count: int, weight_column: Any, words: Sequence[str] | None, reduction: str) -> Head:
    """The head of two classes or more.

    Raises:
        ValueError: there is one class, or none.
    """
    if count < 2:
        raise ValueError(f"n_classes must be 2 or more, found {count}")
    if count == 2:
        return _TwoClasses(weight_column, words, reduction)
    return _ManyClasses(count, count, weight_column, words, reduction)


def regressor_head(dimension: int, weight_column: Any, reduction: str) -> Head:
    """The head of numbers."""
    return _Numbers(dimension, weight_column, reduction)
