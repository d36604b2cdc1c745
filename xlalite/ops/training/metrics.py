"""`tf.metrics`: figures over many steps. Each function gives the figure and an operation that adds a batch to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import float32, int64
from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.graph_keys import GraphKeys
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions import math as m
from xlalite.ops.functions.array import broadcast_to, expand_dims, ones_like, reshape, shape, size, squeeze, zeros
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.helpers.promotion import cast_to, promote
from xlalite.ops.training.variable import Variable
from xlalite.ops.training.variable_scope import variable_scope

Metric = tuple[Tensor, Any]
_EPSILON = 1e-7


def metric_variable(sizes: Sequence[int], dtype: Any, validate_shape: bool = True, name: str | None = None) -> Variable:
    """A variable of zeros among the local ones, for a figure."""
    collections = [GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES]
    return Variable(lambda: zeros(sizes, dtype), trainable=False, collections=collections, name=name)


@contextmanager
def _figure(name: str | None, default: str, metrics: Any, updates: Any) -> Iterator[Callable[..., Metric]]:
    """Opens a scope; what it yields puts value and update into collections."""
    with variable_scope(name, default):
        yield lambda value, update: _collected(value, update, metrics, updates)


def _collected(value: Any, update: Any, metrics: Any, updates: Any) -> Metric:
    graph = get_default_graph()
    graph.add_to_collections(metrics, value)
    graph.add_to_collections(updates, update)
    return convert_to_tensor(value), update


def mean(
    values: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The weighted mean of all values so far."""
    with _figure(name, "mean", metrics_collections, updates_collections) as finished:
        return finished(*_running_mean(_number(values), weights))


def mean_tensor(
    values: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The weighted mean of each element so far."""
    numbers = _number(values)
    with _figure(name, "mean", metrics_collections, updates_collections) as finished:
        dims = numbers.shape.known_dims()
        total, count = metric_variable(dims, float32, name="total_tensor"), metric_variable(dims, float32, name="count")
        weighed = ones_like(numbers) if weights is None else _spread(weights, numbers)
        new = (total.assign_add(numbers * weighed), count.assign_add(weighed))
        return finished(m.div_no_nan(total.value(), count.value()), m.div_no_nan(*map(convert_to_tensor, new)))


def accuracy(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """How often predictions equal labels."""
    found, wanted = _aligned(predictions, labels)
    with _figure(name, "accuracy", metrics_collections, updates_collections) as finished:
        return finished(*_running_mean(m.cast(m.equal(found, cast_to(wanted, found.dtype)), float32), weights))


def _mean_of(default: str, measure: Callable[[Tensor, Tensor], Tensor], summary: str) -> Callable[..., Metric]:
    def metric(
        labels: Any,
        predictions: Any,
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> Metric:
        found, wanted = (_number(each) for each in _aligned(predictions, labels))
        with _figure(name, default, metrics_collections, updates_collections) as finished:
            return finished(*_running_mean(measure(found, wanted), weights))

    metric.__name__ = metric.__qualname__ = default
    metric.__doc__ = summary
    return metric


mean_absolute_error = _mean_of(
    "mean_absolute_error", lambda found, wanted: m.abs(m.subtract(found, wanted)), "The mean of absolute differences."
)
mean_squared_error = _mean_of(
    "mean_squared_error", lambda found, wanted: m.squared_difference(found, wanted), "The mean of squared differences."
)


def root_mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The root of the mean of squared differences."""
    value, update = mean_squared_error(labels, predictions, weights, None, None, name or "root_mean_squared_error")
    return _collected(m.sqrt(value), m.sqrt(update), metrics_collections, updates_collections)


def mean_relative_error(labels: Any, predictions: Any, normalizer: Any, weights: Any = None, **others: Any) -> Metric:
    """The mean of absolute differences divided by the normalizer; 0 where that is 0."""
    found, wanted = (_number(each) for each in _aligned(predictions, labels))
    errors = m.div_no_nan(m.abs(m.subtract(wanted, found)), _number(normalizer))
    return mean(errors, weights, **{"name": "mean_relative_error", **others})


def mean_cosine_distance(
    labels: Any,
    predictions: Any,
    dim: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """One minus the mean product of labels and predictions, which have length 1 along `dim`."""
    found, wanted = (_number(each) for each in _aligned(predictions, labels))
    products = m.reduce_sum(m.multiply(found, wanted), axis=[dim], keepdims=True)
    value, update = mean(products, weights, None, None, name or "mean_cosine_distance")
    return _collected(m.subtract(1.0, value), m.subtract(1.0, update), metrics_collections, updates_collections)


def percentage_below(values: Any, threshold: Any, weights: Any = None, **others: Any) -> Metric:
    """Which part of the values is less than the threshold."""
    below = m.cast(m.less(convert_to_tensor(values), threshold), float32)
    return mean(below, weights, **{"name": "percentage_below_threshold", **others})


# Counts of right and wrong decisions.


def _counted(default: str, wanted: bool, found: bool) -> Callable[..., Metric]:
    def metric(
        labels: Any,
        predictions: Any,
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> Metric:
        with _figure(name, default, metrics_collections, updates_collections) as finished:
            return finished(*_count_of(labels, predictions, weights, wanted, found))

    metric.__name__ = metric.__qualname__ = default
    metric.__doc__ = f"How many are {'' if wanted else 'not '}so and {'' if found else 'not '}predicted to be."
    return metric


true_positives = _counted("true_positives", True, True)
false_positives = _counted("false_positives", False, True)
true_negatives = _counted("true_negatives", False, False)
false_negatives = _counted("false_negatives", True, False)


def _ratio(default: str, other: tuple[bool, bool], summary: str) -> Callable[..., Metric]:
    """True positives, divided by these and other decisions."""

    def metric(
        labels: Any,
        predictions: Any,
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> Metric:
        with _figure(name, default, metrics_collections, updates_collections) as finished:
            right = _count_of(labels, predictions, weights, True, True)
            wrong = _count_of(labels, predictions, weights, *other)
            values = [m.div_no_nan(r, m.add(r, w)) for r, w in zip(right, wrong, strict=True)]
            return finished(*values)

    metric.__name__ = metric.__qualname__ = default
    metric.__doc__ = summary
    return metric


precision = _ratio("precision", (False, True), "Which part of what is predicted is so.")
recall = _ratio("recall", (True, False), "Which part of what is so is predicted.")


def _at_thresholds(
    labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any
) -> dict[str, tuple[Tensor, Tensor]]:
    """The four counts of decisions for each threshold: so far, and after the batch."""
    found, wanted = _aligned(predictions, labels)
    flat, truth = reshape(_number(found), [1, -1]), reshape(m.cast(wanted, "bool"), [1, -1])
    limits = reshape(constant(np.asarray(thresholds, np.float32)), [-1, 1])
    decided = m.greater(flat, limits)
    weighed = None if weights is None else reshape(_spread(weights, found), [1, -1])
    counts = {}
    for name, positive, so in (("tp", True, True), ("fn", False, True), ("tn", False, False), ("fp", True, False)):
        chosen = m.logical_and(decided if positive else m.logical_not(decided), truth if so else m.logical_not(truth))
        numbers = m.cast(chosen, float32)
        total = metric_variable([len(thresholds)], float32, name=f"{'true' if positive == so else 'false'}_{name[1]}")
        batch = m.reduce_sum(numbers if weighed is None else numbers * weighed, 1)
        counts[name] = (total.value(), convert_to_tensor(total.assign_add(batch)))
    return counts


def auc(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    curve: str = "ROC",
    name: str | None = None,
    summation_method: str = "trapezoidal",
    thresholds: Sequence[float] | None = None,
) -> Metric:
    """The area under the ROC or PR curve, from counts at evenly spread thresholds.

    Raises:
        GraphError: the curve is not one of ROC and PR.
    """
    if curve not in ("ROC", "PR"):
        raise GraphError(f"auc: curve {curve!r} is not one of ROC, PR")
    inner = np.arange(1, num_thresholds - 1) / (num_thresholds - 1) if thresholds is None else np.sort(thresholds)
    limits = [-_EPSILON, *inner.tolist(), 1 + _EPSILON]
    with _figure(name, "auc", metrics_collections, updates_collections) as finished:
        counts = _at_thresholds(labels, predictions, limits, weights)
        areas = [_area({key: pair[after] for key, pair in counts.items()}, curve, summation_method) for after in (0, 1)]
        return finished(*areas)


def _area(counts: dict[str, Tensor], curve: str, method: str) -> Tensor:
    tp, fn, tn, fp = (counts[key] for key in ("tp", "fn", "tn", "fp"))
    epsilon = 1e-6
    hits = (tp + epsilon) / (tp + fn + epsilon)
    if curve == "ROC":
        x, y = fp / (fp + tn + epsilon), hits
    else:
        x, y = hits, (tp + epsilon) / (tp + fp + epsilon)
    heights: dict[str, Callable[[], Tensor]] = {
        "trapezoidal": lambda: m.divide(y[:-1] + y[1:], 2),
        "minoring": lambda: m.minimum(y[:-1], y[1:]),
        "majoring": lambda: m.maximum(y[:-1], y[1:]),
    }
    if method not in heights:
        raise GraphError(f"auc: summation_method {method!r} is not one of {', '.join(heights)}")
    return m.reduce_sum((x[:-1] - x[1:]) * heights[method]())


def precision_at_thresholds(
    labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any = None, **others: Any
) -> Metric:
    """The precision of deciding by each threshold."""
    return _rate_at_thresholds("precision_at_thresholds", "fp", labels, predictions, thresholds, weights, **others)


def recall_at_thresholds(
    labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any = None, **others: Any
) -> Metric:
    """The recall of deciding by each threshold."""
    return _rate_at_thresholds("recall_at_thresholds", "fn", labels, predictions, thresholds, weights, **others)


def _rate_at_thresholds(
    default: str,
    other: str,
    labels: Any,
    predictions: Any,
    thresholds: Sequence[float],
    weights: Any,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    with _figure(name, default, metrics_collections, updates_collections) as finished:
        counts = _at_thresholds(labels, predictions, thresholds, weights)
        rates = [counts["tp"][i] / (counts["tp"][i] + counts[other][i] + _EPSILON) for i in (0, 1)]
        return finished(*rates)


def mean_iou(
    labels: Any,
    predictions: Any,
    num_classes: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The mean over classes of intersection over union, leaving out classes that never come."""
    with _figure(name, "mean_iou", metrics_collections, updates_collections) as finished:

        def figure(counts: Tensor) -> Tensor:
            rows, columns, both = m.reduce_sum(counts, 1), m.reduce_sum(counts, 0), _diagonal(counts, num_classes)
            union = m.subtract(m.add(rows, columns), both)
            there = m.reduce_sum(m.cast(m.greater(union, 0), float32))
            return m.div_no_nan(m.reduce_sum(m.div_no_nan(both, union)), there)

        return finished(*map(figure, _running_confusions(labels, predictions, num_classes, weights)))


def mean_per_class_accuracy(
    labels: Any,
    predictions: Any,
    num_classes: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The mean over classes of how often each is recognised."""
    with _figure(name, "mean_accuracy", metrics_collections, updates_collections) as finished:

        def figure(counts: Tensor) -> Tensor:
            return m.reduce_mean(m.div_no_nan(_diagonal(counts, num_classes), m.reduce_sum(counts, 1)))

        return finished(*map(figure, _running_confusions(labels, predictions, num_classes, weights)))


def _running_confusions(labels: Any, predictions: Any, count: int, weights: Any) -> tuple[Tensor, Tensor]:
    """How often each class (a row) was taken for each (a column): so far, and after the batch."""
    wanted, found = (reshape(cast_to(convert_to_tensor(each), int64), [-1]) for each in (labels, predictions))
    classes = constant(np.arange(count, dtype=np.int64))
    rows = m.cast(m.equal(expand_dims(wanted, 1), classes), float32)
    columns = m.cast(m.equal(expand_dims(found, 1), classes), float32)
    if weights is not None:
        rows = rows * reshape(_number(weights), [-1, 1])
    matrix = metric_variable([count, count], float32, name="total_confusion_matrix")
    update = matrix.assign_add(m.matmul(rows, columns, transpose_a=True))
    return matrix.value(), convert_to_tensor(update)


def _diagonal(matrix: Tensor, count: int) -> Tensor:
    return m.reduce_sum(matrix * constant(np.eye(count, dtype=np.float32)), 0)


# What all share.


def _number(value: Any) -> Tensor:
    return cast_to(promote(value)[0], float32)


def _spread(weights: Any, like: Tensor) -> Tensor:
    """Weights at the sizes of what they weigh; they may lack a last dimension of size 1."""
    given = _number(weights)
    if given.shape.rank is not None and like.shape.rank is not None and given.shape.rank == like.shape.rank + 1:
        given = squeeze(given, [-1])
    elif given.shape.rank is not None and like.shape.rank is not None and 0 < given.shape.rank == like.shape.rank - 1:
        given = expand_dims(given, -1)
    return broadcast_to(given, shape(like))


def _aligned(predictions: Any, labels: Any) -> tuple[Tensor, Tensor]:
    """Both without a last dimension of size 1 that only one of them has."""
    found, wanted = convert_to_tensor(predictions), convert_to_tensor(labels)
    if found.shape.rank is None or wanted.shape.rank is None:
        return found, wanted
    if found.shape.rank == wanted.shape.rank + 1 and found.shape.dims is not None and found.shape.dims[-1] == 1:
        return squeeze(found, [-1]), wanted
    if wanted.shape.rank == found.shape.rank + 1 and wanted.shape.dims is not None and wanted.shape.dims[-1] == 1:
        return found, squeeze(wanted, [-1])
    return found, wanted


def _running_mean(values: Tensor, weights: Any) -> tuple[Tensor, Tensor]:
    total, count = metric_variable([], float32, name="total"), metric_variable([], float32, name="count")
    if weights is None:
        added, number = m.reduce_sum(values), m.cast(size(values), float32)
    else:
        weighed = _spread(weights, values)
        added, number = m.reduce_sum(values * weighed), m.reduce_sum(weighed)
    with get_default_graph().control_dependencies([values]):
        updates = (total.assign_add(added), count.assign_add(number))
    return m.div_no_nan(total.value(), count.value()), m.div_no_nan(*map(convert_to_tensor, updates))


def _count_of(labels: Any, predictions: Any, weights: Any, wanted: bool, found: bool) -> tuple[Tensor, Tensor]:
    given, truth = (m.cast(each, "bool") for each in _aligned(predictions, labels))
    chosen = m.logical_and(truth if wanted else m.logical_not(truth), given if found else m.logical_not(given))
    numbers = m.cast(chosen, float32)
    name = f"{'true' if wanted == found else 'false'}_{'positives' if found else 'negatives'}"
    count = metric_variable([], float32, name=f"{name}/count")
    batch = m.reduce_sum(numbers if weights is None else numbers * _spread(weights, numbers))
    return count.value(), convert_to_tensor(count.assign_add(batch))
