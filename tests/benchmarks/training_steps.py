"""Training steps of the example models through `Session.run`, beside the same models in jax.

Both begin with the same weights, and every call trains further: only the first losses are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from benchmarks.harness import OWN, Contest, Workload

import xlalite as tf
from xlalite.examples.attention import block
from xlalite.examples.lenet import lenet
from xlalite.examples.resnet import resnet

Data = Mapping[str, np.ndarray]
Loss = Callable[[Mapping[str, Any], Mapping[str, Any]], Any]
"""jax: weights by name and fed arrays by name to the loss."""

CLASSES, TOKENS, WIDTH, LENGTH, HEADS, BLOCKS = 10, 200, 64, 20, 2, 2
RATE, FIRST, SECOND, EPSILON = 0.001, 0.9, 0.999, 1e-8


def workloads() -> list[Workload]:
    """All of them."""
    return [
        Workload("session: LeNet, training step, 100 digits", partial(_lenet, 100)),
        Workload("session: residual network, training step, 100 digits", partial(_resnet, 100)),
        Workload("session: transformer of 2 blocks, training step, 64 rows", partial(_transformer, 64)),
        Workload("session: GRU, training step, 64 rows", partial(_recurrent, 64)),
    ]


def _lenet(batch: int) -> Contest:
    def model(x: tf.Tensor) -> tf.Tensor:
        return lenet(x, tf.constant(False))

    def logits(jax: Any, w: Mapping[str, Any], x: Any) -> Any:
        for name in ("conv1", "conv2"):
            x = _convolved(jax, x, w[f"{name}/kernel"]) + w[f"{name}/bias"]
            window = (1, 2, 2, 1)
            x = jax.lax.reduce_window(jax.nn.relu(x), -np.inf, jax.lax.max, window, window, "SAME")
        x = jax.nn.relu(x.reshape(len(x), -1) @ w["hidden/kernel"] + w["hidden/bias"])
        return x @ w["logits/kernel"] + w["logits/bias"]

    return _digits(batch, model, logits)


def _resnet(batch: int) -> Contest:
    def model(x: tf.Tensor) -> tf.Tensor:
        return resnet(x, tf.constant(True))

    def logits(jax: Any, w: Mapping[str, Any], x: Any) -> Any:
        def convolved(x: Any, name: str, strides: int = 1) -> Any:
            x = _convolved(jax, x, w[f"{name}/conv2d/kernel"], strides)
            scale, offset = (w[f"{name}/batch_normalization/{part}"] for part in ("gamma", "beta"))
            return (x - x.mean((0, 1, 2))) * jax.lax.rsqrt(x.var((0, 1, 2)) + 1e-3) * scale + offset

        x = jax.nn.relu(convolved(x, "first"))
        for stage in range(2):
            for number in range(2):
                name, strides = f"stage{stage}_block{number}", 2 if stage > 0 and number == 0 else 1
                inner = jax.nn.relu(convolved(x, f"{name}/first", strides))
                inner = convolved(inner, f"{name}/second")
                x = jax.nn.relu((convolved(x, f"{name}/shortcut", 2) if strides > 1 else x) + inner)
        return x.mean((1, 2)) @ w["logits/kernel"] + w["logits/bias"]

    return _digits(batch, model, logits)


def _transformer(batch: int) -> Contest:
    def model(tokens: tf.Tensor) -> tf.Tensor:
        embeddings = tf.get_variable("embeddings", [TOKENS, WIDTH])
        x = tf.gather(embeddings, tokens) + tf.get_variable("places", [LENGTH, WIDTH])
        for number in range(BLOCKS):
            x = block(x, tf.ones([LENGTH, LENGTH]), HEADS, tf.constant(0.0), f"block{number}")
        return tf.tensordot(x, embeddings, [[2], [1]])

    def logits(jax: Any, w: Mapping[str, Any], tokens: Any) -> Any:
        def normalized(x: Any, name: str) -> Any:
            x = (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-6)
            return x * w[f"{name}/scale"] + w[f"{name}/offset"]

        x = w["embeddings"][tokens] + w["places"]
        for name in (f"block{number}" for number in range(BLOCKS)):
            q, k, v = (
                (x @ w[f"{name}/{part}/kernel"]).reshape(-1, LENGTH, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3)
                for part in ("query", "key", "value")
            )
            weights = jax.nn.softmax(q @ k.swapaxes(2, 3) * (HEADS / WIDTH) ** 0.5)
            together = (weights @ v).transpose(0, 2, 1, 3).reshape(x.shape)
            x = normalized(x + together @ w[f"{name}/output/kernel"], f"{name}/after_attention")
            inner = jax.nn.relu(x @ w[f"{name}/inner/kernel"] + w[f"{name}/inner/bias"])
            x = normalized(x + inner @ w[f"{name}/outer/kernel"] + w[f"{name}/outer/bias"], f"{name}/after_dense")
        return x @ w["embeddings"].T

    return _sequences(batch, model, logits)


def _recurrent(batch: int) -> Contest:
    def model(tokens: tf.Tensor) -> tf.Tensor:
        seen = tf.nn.embedding_lookup(tf.get_variable("embeddings", [TOKENS, WIDTH]), tokens)
        outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(WIDTH), seen, dtype=tf.float32)
        return tf.layers.dense(outputs, TOKENS, name="scores")

    def logits(jax: Any, w: Mapping[str, Any], tokens: Any) -> Any:
        cell = "rnn/gru_cell"

        def step(h: Any, x: Any) -> tuple[Any, Any]:
            gates = jax.nn.sigmoid(jax.numpy.hstack([x, h]) @ w[f"{cell}/gates/kernel"] + w[f"{cell}/gates/bias"])
            r, u = jax.numpy.split(gates, 2, 1)
            inner = jax.numpy.hstack([x, r * h]) @ w[f"{cell}/candidate/kernel"] + w[f"{cell}/candidate/bias"]
            h = u * h + (1 - u) * jax.numpy.tanh(inner)
            return h, h

        seen = w["embeddings"][tokens].swapaxes(0, 1)
        _, outputs = jax.lax.scan(step, jax.numpy.zeros(seen.shape[1:]), seen)
        return outputs.swapaxes(0, 1) @ w["scores/kernel"] + w["scores/bias"]

    return _sequences(batch, model, logits)


def _convolved(jax: Any, x: Any, kernel: Any, strides: int = 1) -> Any:
    layout = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, kernel, (strides, strides), "SAME", dimension_numbers=layout)


def _digits(batch: int, model: Callable[[tf.Tensor], tf.Tensor], logits: Callable[..., Any]) -> Contest:
    rng = np.random.default_rng(0)
    return _contest(rng.random((batch, 8, 8, 1), np.float32), rng.integers(0, CLASSES, batch), model, logits)


def _sequences(batch: int, model: Callable[[tf.Tensor], tf.Tensor], logits: Callable[..., Any]) -> Contest:
    rng = np.random.default_rng(0)
    tokens = rng.integers(0, TOKENS, (batch, LENGTH + 1)).astype(np.int32)
    return _contest(np.ascontiguousarray(tokens[:, :-1]), tokens[:, 1:].copy(), model, logits)


def _contest(
    given: np.ndarray, wanted: np.ndarray, model: Callable[[tf.Tensor], tf.Tensor], logits: Callable[..., Any]
) -> Contest:
    wanted = wanted.astype(np.int32)
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(1)
        x = tf.placeholder(tf.as_dtype(given.dtype), [None, *given.shape[1:]])
        labels = tf.placeholder(tf.int32, [None, *wanted.shape[1:]])
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=model(x))
        loss = tf.reduce_mean(each)
        train_step = tf.train.AdamOptimizer(RATE, FIRST, SECOND, EPSILON).minimize(loss)
        initialize, variables = tf.global_variables_initializer(), tf.trainable_variables()
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.ON_1
    session = tf.Session(graph=graph, config=config)
    session.run(initialize)
    names = [variable.op.name for variable in variables]
    weights = dict(zip(names, session.run(variables), strict=True))
    feeds = {x: given, labels: wanted}
    return Contest(
        {OWN: lambda: session.run([train_step, loss], feeds)[1]},
        {"jax": lambda: _jax_step(weights, given, wanted, logits)},
        tolerance=1e-4,
    )


def _jax_step(
    weights: Mapping[str, np.ndarray], given: np.ndarray, wanted: np.ndarray, logits: Callable[..., Any]
) -> Callable[[], object]:
    import jax

    def loss(w: Mapping[str, Any], x: Any, labels: Any) -> Any:
        scores = jax.nn.log_softmax(logits(jax, w, x))
        return -jax.numpy.take_along_axis(scores, labels[..., None], -1).mean()

    def step(state: Any, x: Any, labels: Any) -> tuple[Any, Any]:
        w, first, second, count = state
        value, gradients = jax.value_and_grad(loss)(w, x, labels)
        count = count + 1
        rate = RATE * jax.numpy.sqrt(1 - SECOND**count) / (1 - FIRST**count)
        first = jax.tree.map(lambda m, g: FIRST * m + (1 - FIRST) * g, first, gradients)
        second = jax.tree.map(lambda v, g: SECOND * v + (1 - SECOND) * g * g, second, gradients)
        w = jax.tree.map(lambda p, m, v: p - rate * m / (jax.numpy.sqrt(v) + EPSILON), w, first, second)
        return (w, first, second, count), value

    compiled = jax.jit(step, donate_argnums=0)
    zeros = {name: np.zeros_like(value) for name, value in weights.items()}
    state = jax.device_put((dict(weights), zeros, dict(zeros), np.float32(0)))

    def call() -> object:
        nonlocal state
        state, value = compiled(state, given, wanted)
        return np.asarray(jax.block_until_ready((state, value))[1])

    return call
