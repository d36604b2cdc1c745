"""Estimators whose models are there already: linear ones, networks of dense layers, and both together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xlalite.client.estimator import Estimator
from xlalite.client.estimator_heads import Head, classifier_head, regressor_head
from xlalite.client.estimator_spec import EstimatorSpec, ModeKeys
from xlalite.framework.graph.graph_keys import GraphKeys
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.data.columns import Column
from xlalite.ops.data.feature_layers import input_layer, linear_model
from xlalite.ops.functions.control_flow import group
from xlalite.ops.functions.math import add_n
from xlalite.ops.functions.nn import relu
from xlalite.ops.layers.core import dense, dropout as dropped
from xlalite.ops.layers.normalization import batch_normalization
from xlalite.ops.training.adaptive_optimizers import AdagradOptimizer, FtrlOptimizer, RMSPropOptimizer
from xlalite.ops.training.global_step import get_or_create_global_step
from xlalite.ops.training.optimizer import Optimizer
from xlalite.ops.training.optimizers import AdamOptimizer, GradientDescentOptimizer
from xlalite.ops.training.variable_scope import variable_scope

_LINEAR_RATE = 0.2
_LINEAR_RATE_BESIDE_A_NETWORK = 0.005
_NETWORK_RATE = 0.05
_OPTIMIZERS: Mapping[str, Callable[[float], Optimizer]] = {
    "Adagrad": AdagradOptimizer,
    "Adam": AdamOptimizer,
    "Ftrl": FtrlOptimizer,
    "RMSProp": RMSPropOptimizer,
    "SGD": GradientDescentOptimizer,
}


class _Linear:
    """The linear part of a model."""

    scope = "linear"

    def __init__(self, columns: Sequence[Column], optimizer: Any, largest_rate: float, combiner: str) -> None:
        self._columns, self._optimizer, self._combiner = list(columns), optimizer, combiner
        self._rate = min(largest_rate, 1 / math.sqrt(len(self._columns) or 1))

    def logits(self, features: Mapping[str, Any], units: int, mode: str) -> Tensor:
        """What it adds to the logits."""
        with variable_scope(self.scope):
            return linear_model(features, self._columns, units, self._combiner)

    def optimizer(self) -> Optimizer:
        """What trains it."""
        return _optimizer(self._optimizer, self._rate)


class _Network:
    """The dense layers of a model."""

    scope = "dnn"

    def __init__(
        self,
        columns: Sequence[Column],
        hidden_units: Sequence[int],
        optimizer: Any,
        activation: Any,
        dropout: float | None,
        batch_norm: bool,
    ) -> None:
        if not hidden_units:
            raise ValueError("hidden_units must be defined when dnn_feature_columns is specified.")
        self._columns, self._units, self._optimizer = list(columns), list(hidden_units), optimizer
        self._activation, self._dropout, self._batch_norm = activation, dropout, batch_norm

    def logits(self, features: Mapping[str, Any], units: int, mode: str) -> Tensor:
        """What it adds to the logits."""
        training = mode == ModeKeys.TRAIN
        with variable_scope(self.scope):
            with variable_scope("input_from_feature_columns"):
                net = input_layer(features, self._columns)
            for number, width in enumerate(self._units):
                name = f"hiddenlayer_{number}"
                net = dense(net, width, self._activation, name=name)
                if self._dropout is not None and training:
                    net = dropped(net, self._dropout, training=True)
                if self._batch_norm:
                    with variable_scope(name):
                        net = batch_normalization(net, momentum=0.999, training=training, name=f"batchnorm_{number}")
            logits: Tensor = dense(net, units, name="logits")
            return logits

    def optimizer(self) -> Optimizer:
        """What trains it."""
        return _optimizer(self._optimizer, _NETWORK_RATE)


class _CannedEstimator(Estimator):
    """A model of parts, whose logits are added, and a head, which says what they mean."""

    def __init__(
        self, parts: Sequence[_Linear | _Network], head: Head, model_dir: Any, config: Any, warm_start_from: Any
    ) -> None:
        def model(features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
            given = features if isinstance(features, Mapping) else {"features": features}
            logits = add_n([part.logits(given, head.units, mode) for part in parts])
            return head.spec(given, mode, logits, labels, lambda loss: _train(parts, loss))

        super().__init__(model, model_dir, config, None, warm_start_from)


def _train(parts: Sequence[_Linear | _Network], loss: Tensor) -> Any:
    """Each part is trained by its own optimizer; the step is counted once."""
    graph = loss.graph
    updates = []
    with graph.control_dependencies(graph.get_collection(GraphKeys.UPDATE_OPS)):
        for part in parts:
            variables = graph.get_collection(GraphKeys.TRAINABLE_VARIABLES, f"{part.scope}/")
            updates.append(part.optimizer().minimize(loss, var_list=variables))
        with graph.control_dependencies([group(*updates)]):
            return get_or_create_global_step().assign_add(1, read_value=False)


def _optimizer(given: Any, rate: float) -> Optimizer:
    """An optimizer by its name, by what makes it, or itself."""
    if isinstance(given, str):
        if given not in _OPTIMIZERS:
            raise ValueError(f"Unsupported optimizer name: {given}. Supported names are: {tuple(sorted(_OPTIMIZERS))}")
        return _OPTIMIZERS[given](rate)
    made = given() if callable(given) else given
    if not isinstance(made, Optimizer):
        raise ValueError(f"The given object is not an Optimizer instance. Given: {made}")
    return made


class LinearClassifier(_CannedEstimator):
    """A linear model of classes: logistic for two, softmax for more."""

    def __init__(
        self,
        feature_columns: Sequence[Column],
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        partitioner: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = "weighted_sum",
        sparse_combiner: str = "sum",
    ) -> None:
        parts = [_Linear(feature_columns, optimizer, _LINEAR_RATE, sparse_combiner)]
        head = classifier_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        super().__init__(parts, head, model_dir, config, warm_start_from)


class LinearRegressor(_CannedEstimator):
    """A linear model of numbers, by squared error."""

    def __init__(
        self,
        feature_columns: Sequence[Column],
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        partitioner: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = "weighted_sum",
        sparse_combiner: str = "sum",
    ) -> None:
        parts = [_Linear(feature_columns, optimizer, _LINEAR_RATE, sparse_combiner)]
        head = regressor_head(label_dimension, weight_column, loss_reduction)
        super().__init__(parts, head, model_dir, config, warm_start_from)


class DNNClassifier(_CannedEstimator):
    """Dense layers in front of classes."""

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Sequence[Column],
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: Any = "Adagrad",
        activation_fn: Any = relu,
        dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = "weighted_sum",
        batch_norm: bool = False,
    ) -> None:
        parts = [_Network(feature_columns, hidden_units, optimizer, activation_fn, dropout, batch_norm)]
        head = classifier_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        super().__init__(parts, head, model_dir, config, warm_start_from)


class DNNRegressor(_CannedEstimator):
    """Dense layers in front of numbers, by squared error."""

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Sequence[Column],
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Adagrad",
        activation_fn: Any = relu,
        dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = "weighted_sum",
        batch_norm: bool = False,
    ) -> None:
        parts = [_Network(feature_columns, hidden_units, optimizer, activation_fn, dropout, batch_norm)]
        head = regressor_head(label_dimension, weight_column, loss_reduction)
        super().__init__(parts, head, model_dir, config, warm_start_from)


class DNNLinearCombinedClassifier(_CannedEstimator):
    """A linear model and dense layers, whose logits are added, in front of classes: wide and deep."""

    def __init__(
        self,
        model_dir: Any = None,
        linear_feature_columns: Sequence[Column] | None = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Sequence[Column] | None = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Any = relu,
        dnn_dropout: float | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = "weighted_sum",
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        network = (dnn_hidden_units or (), dnn_optimizer, dnn_activation_fn, dnn_dropout, batch_norm)
        linear = (linear_optimizer, _LINEAR_RATE_BESIDE_A_NETWORK, linear_sparse_combiner)
        head = classifier_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        parts = _both(dnn_feature_columns, network, linear_feature_columns, linear)
        super().__init__(parts, head, model_dir, config, warm_start_from)


class DNNLinearCombinedRegressor(_CannedEstimator):
    """A linear model and dense layers, added, in front of numbers, by squared error."""

    def __init__(
        self,
        model_dir: Any = None,
        linear_feature_columns: Sequence[Column] | None = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Sequence[Column] | None = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Any = relu,
        dnn_dropout: float | None = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = "weighted_sum",
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        network = (dnn_hidden_units or (), dnn_optimizer, dnn_activation_fn, dnn_dropout, batch_norm)
        linear = (linear_optimizer, _LINEAR_RATE_BESIDE_A_NETWORK, linear_sparse_combiner)
        head = regressor_head(label_dimension, weight_column, loss_reduction)
        parts = _both(dnn_feature_columns, network, linear_feature_columns, linear)
        super().__init__(parts, head, model_dir, config, warm_start_from)


def _both(deep: Any, network: tuple[Any, ...], wide: Any, linear: tuple[Any, ...]) -> list[_Linear | _Network]:
    parts: list[_Linear | _Network] = []
    if deep:
        parts.append(_Network(deep, *network))
    if wide:
        parts.append(_Linear(wide, *linear))
    if not parts:
        raise ValueError("Either linear_feature_columns or dnn_feature_columns must be defined.")
    return parts
