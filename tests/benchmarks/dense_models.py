"""Networks of products: perceptrons, and the layer of an encoder as BERT has it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from benchmarks.harness import Workload
from benchmarks.model_programs import Network, Shape, model_workloads, take

_HEAD = 64
"""Features of a head of attention."""


def workloads() -> list[Workload]:
    """All of them."""
    return model_workloads(MODELS)


def classifier(hidden: Sequence[int], jax: Any, x: Any, parameters: Any) -> Any:
    """Layers of so many features, then ten classes."""
    for features in hidden:
        x = jax.nn.relu(_dense(x, parameters, features))
    return _dense(x, parameters, 10)


def encoder_layer(jax: Any, x: Any, parameters: Any) -> Any:
    """Attention and a perceptron, each added to what it reads and normalised."""
    features = x.shape[-1]
    x = normalized(jax, x + _dense(_attention(jax, x, parameters), parameters, features), parameters)
    h = jax.nn.gelu(_dense(x, parameters, 4 * features), approximate=False)
    return normalized(jax, x + _dense(h, parameters, features), parameters)


def _attention(jax: Any, x: Any, parameters: Any) -> Any:
    batch, length, features = x.shape

    def heads() -> Any:
        return _dense(x, parameters, features).reshape(batch, length, features // _HEAD, _HEAD)

    queries, keys, values = heads(), heads(), heads()
    scores = jax.numpy.einsum("bqhd,bkhd->bhqk", queries, keys) * np.float32(_HEAD**-0.5)
    return jax.numpy.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), values).reshape(x.shape)


def normalized(jax: Any, x: Any, parameters: Any) -> Any:
    """Rows without mean and of unit variance, scaled and shifted."""
    scale, shift = take(parameters, x.shape[-1]), take(parameters, x.shape[-1])
    x = x - jax.numpy.mean(x, -1, keepdims=True)
    return x * jax.lax.rsqrt(jax.numpy.mean(x * x, -1, keepdims=True) + np.float32(1e-5)) * scale + shift


def _dense(x: Any, parameters: Any, outputs: int) -> Any:
    return x @ take(parameters, x.shape[-1], outputs) + take(parameters, outputs)


MODELS: tuple[tuple[str, Network, Shape], ...] = (
    ("perceptron of 512, 512, 10", partial(classifier, (512, 512)), (128, 784)),
    ("encoder layer", encoder_layer, (8, 128, 768)),
)
