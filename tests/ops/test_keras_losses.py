"""The losses of `tf.keras`, beside their formulas."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlalite as tf
from xlalite.ops.helpers.constant import convert_to_tensor

F: Any = np.float32
LOGITS = F([[0.5, -1, 2], [3, 0, -2]])
CHANCES = F([[0.2, 1, 0.7], [0, 0.5, 0.1]])
WANTED = F([[0, 1, 0], [1, 0, 0]])
losses = tf.keras.losses


def softmax(x: Any) -> Any:
    return np.exp(x) / np.exp(x).sum(-1, keepdims=True)


def binary(wanted: Any, chances: Any) -> Any:
    chances = np.clip(chances, 1e-7, 1 - 1e-7)
    return -(wanted * np.log(chances + 1e-7) + (1 - wanted) * np.log(1 - chances + 1e-7)).mean(-1)


def several(wanted: Any, chances: Any) -> Any:
    return -(wanted * np.log(np.clip(chances, 1e-7, 1))).sum(-1)


SIGMOIDS = 1 / (1 + np.exp(-LOGITS))


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: losses.mse(WANTED, LOGITS), ((WANTED - LOGITS) ** 2).mean(-1)),
        (lambda: losses.mae(WANTED.astype(int), LOGITS), np.abs(WANTED - LOGITS).mean(-1)),
        (lambda: losses.binary_crossentropy(WANTED, CHANCES), binary(WANTED, CHANCES)),
        (lambda: losses.binary_crossentropy(WANTED, LOGITS, from_logits=True), binary(WANTED, SIGMOIDS)),
        (lambda: losses.binary_crossentropy(WANTED, tf.sigmoid(LOGITS)), binary(WANTED, SIGMOIDS)),
        (
            lambda: losses.binary_crossentropy(WANTED, CHANCES, label_smoothing=0.2),
            binary(WANTED * F(0.8) + F(0.1), CHANCES),
        ),
        (
            lambda: losses.categorical_crossentropy(WANTED, CHANCES),
            several(WANTED, CHANCES / CHANCES.sum(-1, keepdims=True)),
        ),
        (lambda: losses.categorical_crossentropy(WANTED, tf.nn.softmax(LOGITS)), several(WANTED, softmax(LOGITS))),
        (
            lambda: losses.categorical_crossentropy(WANTED, LOGITS, True, 0.3),
            several(WANTED * F(0.7) + F(0.1), softmax(LOGITS)),
        ),
        (
            lambda: losses.sparse_categorical_crossentropy([[1], [0]], softmax(LOGITS)),
            several(WANTED, softmax(LOGITS)),
        ),
        (
            lambda: losses.sparse_categorical_crossentropy([1, 0], LOGITS, from_logits=True),
            several(WANTED, softmax(LOGITS)),
        ),
    ],
)
def test_values(graph: Any, make: Callable[[], Any], expected: Any) -> None:
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(make()), expected, rtol=2e-5)


@pytest.mark.parametrize("loss", [losses.binary_crossentropy, losses.categorical_crossentropy])
def test_gradients_are_the_differences(graph: Any, loss: Any) -> None:
    at = np.array([[0.2, 0.3, 0.4], [0.6, 0.5, 0.1]])
    x = convert_to_tensor(at)
    slope = tf.gradients(tf.reduce_sum(loss(WANTED.astype(np.float64), x)), x)[0]
    fed = tf.placeholder(tf.float64, [2, 3])
    total = tf.reduce_sum(loss(WANTED.astype(np.float64), fed))
    with tf.Session() as session:
        found = session.run(slope)
        for place in np.ndindex(2, 3):
            change = np.zeros_like(at)
            change[place] = 1e-6
            near = (session.run(total, {fed: at + change}) - session.run(total, {fed: at - change})) / 2e-6
            np.testing.assert_allclose(found[place], near, rtol=1e-5, atol=1e-6)
