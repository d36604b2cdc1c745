"""Small networks of convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmarks.harness import Workload
from benchmarks.model_programs import Network, Shape, model_workloads, take
from benchmarks.torch_models import in_torch


def workloads() -> list[Workload]:
    """All of them."""
    return [*model_workloads(MODELS, in_torch), *model_workloads(FORWARD, in_torch, [False])]


def _layer(
    jax: Any,
    x: Any,
    parameters: Any,
    outputs: int,
    side: int,
    step: int = 1,
    *,
    groups: int = 1,
    apart: int = 1,
    holes: int = 1,
    padding: tuple[int, int] | None = None,
) -> Any:
    """A convolution with a bias, padded to the same size unless said otherwise; channels last, any number of sides."""
    space, inputs = x.ndim - 2, x.shape[-1]
    kernel = take(parameters, *((side,) * space), inputs // groups, outputs)
    total = (side - 1) * apart
    pads = [padding or (total // 2, total - total // 2)] * space
    letters = "HWD"[:space]
    order = (f"N{letters}C", f"{letters}IO", f"N{letters}C")
    found = jax.lax.conv_general_dilated(
        x,
        kernel,
        (step,) * space,
        pads,
        (holes,) * space,
        (apart,) * space,
        dimension_numbers=order,
        feature_group_count=groups,
    )
    return found + take(parameters, outputs)


def _pool(jax: Any, x: Any) -> Any:
    return jax.lax.reduce_window(x, -np.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def _u_net(jax: Any, x: Any, parameters: Any) -> Any:
    relu, before = jax.nn.relu, []
    for features in (16, 32):
        x = relu(_layer(jax, relu(_layer(jax, x, parameters, features, 3)), parameters, features, 3))
        before.append(x)
        x = _pool(jax, x)
    x = relu(_layer(jax, x, parameters, 64, 3))
    for features in (32, 16):
        x = _layer(jax, x, parameters, features, 2, holes=2, padding=(1, 1))
        x = relu(_layer(jax, jax.numpy.concatenate([before.pop(), x], 3), parameters, features, 3))
    return _layer(jax, x, parameters, 4, 1)


def _wave_net(jax: Any, x: Any, parameters: Any) -> Any:
    x, total = _layer(jax, x, parameters, 32, 1), 0
    for number in range(6):
        apart = 2**number
        both = _layer(jax, x, parameters, 64, 2, apart=apart, padding=(apart, 0))
        gated = jax.numpy.tanh(both[..., :32]) * jax.nn.sigmoid(both[..., 32:])
        total = total + _layer(jax, gated, parameters, 64, 1)
        x = x + _layer(jax, gated, parameters, 32, 1)
    return _layer(jax, jax.nn.relu(total), parameters, 64, 1)


def _mobile_net(jax: Any, x: Any, parameters: Any) -> Any:
    def relu6(x: Any) -> Any:
        return jax.numpy.clip(x, 0, 6)

    x = relu6(_layer(jax, x, parameters, 16, 3, 2))
    for outputs, step in ((16, 1), (24, 2), (24, 1), (40, 2)):
        inputs = x.shape[-1]
        y = relu6(_layer(jax, x, parameters, 6 * inputs, 1))
        y = relu6(_layer(jax, y, parameters, 6 * inputs, 3, step, groups=6 * inputs))
        y = _layer(jax, y, parameters, outputs, 1)
        x = x + y if x.shape == y.shape else y
    return _dense(x.mean((1, 2)), parameters, 10)


def _res_next(jax: Any, x: Any, parameters: Any) -> Any:
    for _ in range(2):
        y = jax.nn.relu(_layer(jax, x, parameters, 128, 1))
        y = jax.nn.relu(_layer(jax, y, parameters, 128, 3, groups=32))
        x = jax.nn.relu(x + _layer(jax, y, parameters, x.shape[-1], 1))
    return x


def _res_net(jax: Any, x: Any, parameters: Any) -> Any:
    def normalised(x: Any) -> Any:
        mean, variance = x.mean((0, 1, 2)), jax.numpy.var(x, (0, 1, 2))
        scale, shift = take(parameters, x.shape[-1]), take(parameters, x.shape[-1])
        return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + shift

    y = jax.nn.relu(normalised(_layer(jax, x, parameters, x.shape[-1], 3)))
    return jax.nn.relu(x + normalised(_layer(jax, y, parameters, x.shape[-1], 3)))


def _res_net_18(jax: Any, x: Any, parameters: Any) -> Any:
    """As it runs once it is trained: a normalisation is a factor, and a summand that the layer has."""

    def layer(x: Any, outputs: int, side: int, step: int, around: int) -> Any:
        return _layer(jax, x, parameters, outputs, side, step, padding=(around, around)) * take(parameters, outputs)

    relu = jax.nn.relu
    x = relu(layer(x, 64, 7, 2, 3))
    around = ((0, 0), (1, 1), (1, 1), (0, 0))
    x = jax.lax.reduce_window(x, -np.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), around)
    for outputs, steps in ((64, (1, 1)), (128, (2, 1)), (256, (2, 1)), (512, (2, 1))):
        for step in steps:
            y = layer(relu(layer(x, outputs, 3, step, 1)), outputs, 3, 1, 1)
            x = relu(y + (x if x.shape == y.shape else layer(x, outputs, 1, step, 0)))
    return _dense(x.mean((1, 2)), parameters, 1000)


def _dqn(jax: Any, x: Any, parameters: Any) -> Any:
    for outputs, side, step in ((32, 8, 4), (64, 4, 2), (64, 3, 1)):
        x = jax.nn.relu(_layer(jax, x, parameters, outputs, side, step, padding=(0, 0)))
    return _dense(jax.nn.relu(_dense(x.reshape(x.shape[0], -1), parameters, 512)), parameters, 6)


def _le_net(jax: Any, x: Any, parameters: Any) -> Any:
    for outputs in (32, 64):
        x = _pool(jax, jax.nn.relu(_layer(jax, x, parameters, outputs, 5)))
    return _dense(jax.nn.relu(_dense(x.reshape(x.shape[0], -1), parameters, 256)), parameters, 10)


def _conv_lstm(jax: Any, x: Any, parameters: Any) -> Any:
    """One step; the input's features are those of the image, of the hidden state and of the cell."""
    features = x.shape[-1] // 3
    image, hidden, cell = (x[..., i * features : (i + 1) * features] for i in range(3))
    gates = _layer(jax, image, parameters, 4 * features, 3) + _layer(jax, hidden, parameters, 4 * features, 3)
    i, f, g, o = (gates[..., n * features : (n + 1) * features] for n in range(4))
    sigmoid, tanh = jax.nn.sigmoid, jax.numpy.tanh
    cell = sigmoid(f) * cell + sigmoid(i) * tanh(g)
    return sigmoid(o) * tanh(cell)


def _dense(x: Any, parameters: Any, outputs: int) -> Any:
    return x @ take(parameters, x.shape[-1], outputs) + take(parameters, outputs)


MODELS: tuple[tuple[str, Network, Shape], ...] = (
    ("u-net", _u_net, (2, 64, 64, 3)),
    ("wavenet", _wave_net, (4, 1000, 1)),
    ("mobilenet v2", _mobile_net, (4, 96, 96, 3)),
    ("resnext", _res_next, (4, 28, 28, 256)),
    ("resnet block", _res_net, (8, 28, 28, 64)),
    ("atari dqn", _dqn, (1, 84, 84, 4)),
    ("atari dqn", _dqn, (32, 84, 84, 4)),
    ("lenet", _le_net, (64, 28, 28, 1)),
    ("convlstm step", _conv_lstm, (4, 32, 32, 96)),
)

FORWARD: tuple[tuple[str, Network, Shape], ...] = (("resnet-18", _res_net_18, (8, 224, 224, 3)),)
