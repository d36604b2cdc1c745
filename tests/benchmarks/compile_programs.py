"""Programs whose compilation is timed: from one operation to networks and random graphs of thousands.

The networks are programs of jax, which lowers them for us.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import large_modules
import numpy as np
from benchmarks.compile_time import size_of
from benchmarks.dense_models import classifier, encoder_layer, normalized
from benchmarks.harness import has
from benchmarks.model_programs import Network, Shape, asked_shapes, take

import xlalite as xl

Make = Callable[[], xl.hlo.HloModule]
Program = Callable[[Any, Network, Any, list[Any]], Any]
"""(jax, network, input, its parameters) -> results."""

_RANDOM = (2000, 5000, 20_000)


def programs() -> dict[str, Make]:
    """Name -> what makes the module."""
    of_networks: tuple[tuple[str, Program, Network, Shape], ...] = (
        ("tiny: add", _forward, lambda jax, x, _: x + x, (64,)),
        ("softmax [256,512]", _forward, lambda jax, x, _: jax.nn.softmax(x), (256, 512)),
        ("layer norm [256,512]", _forward, normalized, (256, 512)),
        ("product [512,512]", _forward, lambda jax, x, parameters: x @ take(parameters, 512, 512), (512, 512)),
        ("MNIST softmax step", _descent, partial(classifier, ()), (100, 784)),
        ("MLP step", _descent, partial(classifier, (512, 512)), (128, 784)),
        ("LeNet step", _descent, _lenet, (100, 28, 28, 1)),
        ("BERT layer", _forward, encoder_layer, (8, 128, 768)),
        ("BERT, 12 layers", _forward, partial(_layers, 12), (1, 128, 768)),
        ("transformer step with Adam, 2 layers", _adam, partial(_layers, 2), (4, 32, 128)),
        ("24 layers, gradient", _gradient, partial(_layers, 24), (4, 32, 128)),
    )
    found: dict[str, Make] = {}
    if has("jax"):
        found = {name: partial(_lowered, program, network, shape) for name, program, network, shape in of_networks}
    return {**found, **{f"random graph of {size}": partial(_random, size) for size in _RANDOM}}


def _lowered(program: Program, network: Network, shape: Shape) -> xl.hlo.HloModule:
    import jax

    shapes = [shape, *asked_shapes(jax, network, shape)[0]]
    arguments = [jax.ShapeDtypeStruct(each, np.float32) for each in shapes]

    def function(x: Any, *parameters: Any) -> Any:
        return program(jax, network, x, list(parameters))

    return xl.hlo.parse(jax.jit(function, keep_unused=True).lower(*arguments).as_text())


def _random(size: int) -> xl.hlo.HloModule:
    return xl.hlo.parse(large_modules.mixed(size_of("mixed", size)))


def _forward(jax: Any, network: Network, x: Any, parameters: list[Any]) -> Any:
    return network(jax, x, iter(parameters))


def _gradient(jax: Any, network: Network, x: Any, parameters: list[Any]) -> Any:
    def loss(parameters: list[Any]) -> Any:
        logits = network(jax, x, iter(parameters))
        labels = jax.numpy.arange(logits.size // logits.shape[-1]).reshape(logits.shape[:-1]) % logits.shape[-1]
        return -(jax.nn.log_softmax(logits) * jax.nn.one_hot(labels, logits.shape[-1])).sum(-1).mean()

    return jax.value_and_grad(loss)(parameters)


def _descent(jax: Any, network: Network, x: Any, parameters: list[Any]) -> Any:
    value, gradients = _gradient(jax, network, x, parameters)
    return value, [p - 0.5 * g for p, g in zip(parameters, gradients, strict=True)]


def _adam(jax: Any, network: Network, x: Any, arrays: list[Any]) -> Any:
    """A step from moments that are all the parameters themselves."""
    value, gradients = _gradient(jax, network, x, arrays)
    firsts = [0.9 * p + 0.1 * g for p, g in zip(arrays, gradients, strict=True)]
    seconds = [0.999 * p + 0.001 * g * g for p, g in zip(arrays, gradients, strict=True)]
    moved = [p - 0.001 * m / (jax.numpy.sqrt(v) + 1e-8) for p, m, v in zip(arrays, firsts, seconds, strict=True)]
    return value, moved, firsts, seconds


def _lenet(jax: Any, x: Any, parameters: Iterator[Any]) -> Any:
    for features in (32, 64):
        kernel = take(parameters, 5, 5, x.shape[-1], features)
        x = jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = jax.nn.relu(x + take(parameters, features))
        x = jax.lax.reduce_window(x, -np.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")
    return classifier((512,), jax, x.reshape(len(x), -1), parameters)


def _layers(count: int, jax: Any, x: Any, parameters: Iterator[Any]) -> Any:
    for _ in range(count):
        x = encoder_layer(jax, x, parameters)
    return x
