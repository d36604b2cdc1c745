"""Estimators whose models are there already: what they learn, predict and measure."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlalite as tf

F: Any = np.float32
fc = tf.feature_column
COUNT = 64
RNG = np.random.default_rng(7)
X = RNG.uniform(-1, 1, (COUNT, 2)).astype(F)
KIND = RNG.integers(0, 3, COUNT)
WORDS = np.array(["a", "b", "c"])[KIND]
NUMERIC = fc.numeric_column("x", 2)
KINDS = fc.categorical_column_with_vocabulary_list("kind", ["a", "b", "c"])


def given(labels: Any, epochs: int | None = None, shuffle: bool = True) -> Callable[[], Any]:
    features = {"x": X, "kind": WORDS, "weight": np.where(KIND == 0, 0, 1).astype(F)}
    return tf.estimator.inputs.numpy_input_fn(features, labels, 16, epochs, shuffle)


def predicted(estimator: Any, key: str) -> Any:
    return np.array([each[key] for each in estimator.predict(given(None, 1, False))])


def test_a_linear_regressor_finds_the_line() -> None:
    wanted = (X @ F([2, -1]) + F([0, 1, -1])[KIND] + 0.5)[:, None]
    estimator = tf.estimator.LinearRegressor([NUMERIC, KINDS], optimizer=tf.train.AdamOptimizer(0.1))
    estimator.train(given(wanted), steps=300)
    assert {
        "linear/linear_model/bias_weights",
        "linear/linear_model/kind/weights",
        "linear/linear_model/x/weights",
    } < {*estimator.get_variable_names()}
    np.testing.assert_allclose(predicted(estimator, "predictions"), wanted, atol=0.1)
    results = estimator.evaluate(given(wanted, 1, False))
    assert results["average_loss"] < 0.01
    np.testing.assert_allclose(results["loss"], results["average_loss"] * 16, rtol=1e-4)
    np.testing.assert_allclose(results["label/mean"], wanted.mean(), rtol=1e-4)
    np.testing.assert_allclose(results["prediction/mean"], wanted.mean(), atol=0.05)


def test_a_linear_classifier_of_two_classes_measures_what_tensorflow_does() -> None:
    labels = (X[:, 0] > 0.2).astype(np.int64)
    estimator = tf.estimator.LinearClassifier([NUMERIC])
    estimator.train(given(labels), steps=150)
    results = estimator.evaluate(given(labels, 1, False))
    assert set(results) == {
        *("accuracy", "accuracy_baseline", "auc", "auc_precision_recall", "average_loss", "global_step", "label/mean"),
        *("loss", "precision", "prediction/mean", "recall"),
    }
    share = labels.mean()
    np.testing.assert_allclose(results["label/mean"], share, rtol=1e-5)
    np.testing.assert_allclose(results["accuracy_baseline"], max(share, 1 - share), rtol=1e-5)
    classes = predicted(estimator, "class_ids")[:, 0]
    np.testing.assert_allclose(results["accuracy"], (classes == labels).mean(), rtol=1e-5)
    assert results["accuracy"] > 0.9
    assert results["auc"] > 0.95
    chances, logits = predicted(estimator, "probabilities"), predicted(estimator, "logits")
    np.testing.assert_allclose(chances[:, 1:], 1 / (1 + np.exp(-logits)), rtol=1e-5)
    np.testing.assert_array_equal(predicted(estimator, "classes")[:, 0], np.where(classes, b"1", b"0"))


def test_a_network_learns_what_no_line_divides() -> None:
    names = np.array(["low", "high"])[((X[:, 0] > 0) ^ (X[:, 1] > 0)).astype(int)]
    estimator = tf.estimator.DNNClassifier(
        [24, 8], [NUMERIC], label_vocabulary=["low", "high"], optimizer=lambda: tf.train.AdamOptimizer(0.03)
    )
    estimator.train(given(names), steps=400)
    assert (predicted(estimator, "classes")[:, 0] == np.char.encode(names)).mean() > 0.9
    assert {"dnn/hiddenlayer_0/kernel", "dnn/hiddenlayer_1/bias", "dnn/logits/kernel"} <= {
        *estimator.get_variable_names()
    }


def test_wide_and_deep_models_train_each_part_by_its_own_optimizer() -> None:
    embedded = fc.embedding_column(KINDS, 2)
    estimator = tf.estimator.DNNLinearCombinedClassifier(
        linear_feature_columns=[KINDS],
        dnn_feature_columns=[NUMERIC, embedded],
        dnn_hidden_units=[8],
        n_classes=3,
        dnn_dropout=0.1,
        batch_norm=True,
    )
    estimator.train(given(KIND), steps=200)
    names = estimator.get_variable_names()
    assert "linear/linear_model/kind/weights/Ftrl" in names
    assert "dnn/input_from_feature_columns/input_layer/kind_embedding/embedding_weights/Adagrad" in names
    assert "dnn/hiddenlayer_0/batchnorm_0/moving_mean" in names
    results = estimator.evaluate(given(KIND, 1, False))
    assert results["accuracy"] == 1
    assert results["global_step"] == 200


@pytest.mark.parametrize("kind", ["DNNRegressor", "DNNLinearCombinedRegressor"])
def test_examples_without_weight_are_not_learned(kind: str) -> None:
    wanted = np.where(KIND == 0, 50, 1).astype(F)
    settings = {"weight_column": "weight"}
    if kind == "DNNRegressor":
        estimator = tf.estimator.DNNRegressor([8], [NUMERIC], optimizer="Adam", **settings)
    else:
        estimator = tf.estimator.DNNLinearCombinedRegressor(
            linear_feature_columns=[NUMERIC],
            linear_optimizer="SGD",
            dnn_feature_columns=[NUMERIC],
            dnn_hidden_units=[8],
            **settings,
        )
    estimator.train(given(wanted), steps=300)
    np.testing.assert_allclose(predicted(estimator, "predictions"), 1, atol=0.3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tf.estimator.LinearClassifier([NUMERIC], n_classes=1), "n_classes"),
        (lambda: tf.estimator.LinearClassifier([NUMERIC], label_vocabulary=["a"]), "label_vocabulary"),
        (lambda: tf.estimator.LinearRegressor([NUMERIC], loss_reduction="most"), "loss_reduction"),
        (lambda: tf.estimator.DNNClassifier([], [NUMERIC]), "hidden_units"),
        (lambda: tf.estimator.DNNLinearCombinedRegressor(), "must be defined"),
        (
            lambda: tf.estimator.LinearRegressor([NUMERIC], optimizer="Best").train(given(X[:, 0])),
            "name: Best",
        ),
        (lambda: tf.estimator.LinearRegressor([NUMERIC], optimizer=3).train(given(X[:, 0])), "not an Opt"),
    ],
)
def test_models_that_cannot_be(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
