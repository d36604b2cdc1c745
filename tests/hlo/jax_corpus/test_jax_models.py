"""Models and their gradients as jax lowers them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp = jax.numpy
lax = jax.lax
pytestmark = pytest.mark.oracle


def mlp(x, w1, b1, w2):
    return jax.nn.softmax(jax.nn.relu(x @ w1 + b1) @ w2)


def mlp_loss(x, w1, b1, w2):
    return -jnp.log(mlp(x, w1, b1, w2)[:, 0]).mean()


def gated(x, w1, w2):
    return jax.nn.gelu(x @ w1) * jax.nn.silu(x @ w1) @ w2 + jax.nn.elu(x).sum()


def convolutional(x, k1, k2, w):
    x = jax.nn.relu(lax.conv_general_dilated(x, k1, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = lax.conv_general_dilated(x, k2, (2, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return x.reshape(x.shape[0], -1) @ w


def separable(x, depthwise, pointwise):
    x = lax.conv_general_dilated(
        x,
        depthwise,
        (1, 1),
        "SAME",
        rhs_dilation=(2, 2),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=3,
    )
    x = lax.conv_general_dilated(x, pointwise, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")


def transposed_convolution(x, k):
    return lax.conv_transpose(x, k, (2, 2), "SAME")


def attention(x, wq, wk, wv):
    q, k, v = (jnp.einsum("btd,hde->bhte", x, w) for w in (wq, wk, wv))
    scores = jnp.einsum("bhte,bhse->bhts", q, k) / np.sqrt(q.shape[-1]).astype(np.float32)
    scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e9)
    return jnp.einsum("bhts,bhse->bthe", jax.nn.softmax(scores), v).reshape(*x.shape[:2], -1)


def rotary_embedding(x):
    half = x.shape[-1] // 2
    angles = jnp.arange(x.shape[1])[:, None] / 10000 ** (jnp.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * jnp.cos(angles) - b * jnp.sin(angles), a * jnp.sin(angles) + b * jnp.cos(angles)], -1)


def lstm(x, w, u, b):
    def step(carry, row):
        h, c = carry
        i, f, g, o = jnp.split(row @ w + h @ u + b, 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zeros = jnp.zeros((x.shape[1], u.shape[0]), x.dtype)
    return lax.scan(step, (zeros, zeros), x)


def layer_norm(x, scale, offset):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + offset


def batch_norm(x, scale, offset):
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    return (x - mean) / jnp.sqrt(variance + 1e-3) * scale + offset, mean, variance


def embedding_loss(table, tokens, targets):
    logits = table[tokens] @ table.T
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], -1).mean()


def adam(x, g, m, v):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return x - 0.01 * (m / (1 - 0.9**3)) / (jnp.sqrt(v / (1 - 0.999**3)) + 1e-8), m, v


def vmapped_distances(x, y):
    return jax.vmap(lambda a: jax.vmap(lambda b: jnp.sqrt(((a - b) ** 2).sum()))(y))(x)


def half_precision(x, w):
    x, w = x.astype(jnp.bfloat16), w.astype(jnp.bfloat16)
    return jnp.tanh(x @ w).astype(jnp.float16) * 2, jnp.dot(x, w, preferred_element_type=jnp.float32)


def quantized(x, w):
    scale = jnp.abs(x).max() / 127
    q = jnp.clip(jnp.round(x / scale), -128, 127).astype(jnp.int8)
    r = jnp.round(w * 16).astype(jnp.int8)
    return lax.dot_general(q, r, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32), q


Sizes = tuple[tuple[int, ...], ...]
DENSE: Sizes = ((6, 5), (5, 8), (8,), (8, 3))
PROJECTIONS: Sizes = ((2, 4, 6), (2, 6, 3), (2, 6, 3), (2, 6, 3))
RECURRENT: Sizes = ((5, 2, 3), (3, 16), (4, 16), (16,))

MODELS: dict[str, tuple[Callable[..., object], Sizes, float]] = {
    "mlp": (mlp, DENSE, 1e-5),
    "gradient_of_mlp": (jax.value_and_grad(mlp_loss, (1, 2, 3)), DENSE, 1e-5),
    "gated": (gated, ((4, 5), (5, 5), (5, 2)), 1e-5),
    "convolutional": (convolutional, ((2, 8, 8, 3), (3, 3, 3, 4), (3, 3, 4, 5), (5, 2)), 1e-5),
    "gradient_of_convolutional": (
        jax.grad(lambda *a: (convolutional(*a) ** 2).sum(), (0, 1, 2, 3)),
        ((2, 8, 8, 3), (3, 3, 3, 4), (3, 3, 4, 5), (5, 2)),
        1e-5,
    ),
    "separable": (separable, ((1, 7, 6, 3), (3, 3, 1, 6), (1, 1, 6, 2)), 1e-5),
    "gradient_of_separable": (
        jax.grad(lambda *a: jnp.sin(separable(*a)).sum(), (0, 1, 2)),
        ((1, 7, 6, 3), (3, 3, 1, 6), (1, 1, 6, 2)),
        1e-5,
    ),
    "transposed_convolution": (transposed_convolution, ((1, 4, 5, 2), (3, 3, 2, 4)), 1e-5),
    "attention": (attention, PROJECTIONS, 1e-5),
    "gradient_of_attention": (jax.grad(lambda *a: (attention(*a) ** 2).sum(), (0, 1, 2, 3)), PROJECTIONS, 1e-5),
    "rotary_embedding": (rotary_embedding, ((2, 5, 8),), 1e-5),
    "lstm": (lstm, RECURRENT, 1e-5),
    "gradient_of_lstm": (jax.grad(lambda *a: lstm(*a)[1].sum(), (1, 2, 3)), RECURRENT, 1e-5),
    "layer_norm": (layer_norm, ((4, 7), (7,), (7,)), 1e-5),
    "gradient_of_layer_norm": (
        jax.grad(lambda *a: jnp.cos(layer_norm(*a)).sum(), (0, 1, 2)),
        ((4, 7), (7,), (7,)),
        1e-5,
    ),
    "batch_norm": (batch_norm, ((2, 3, 4, 5), (5,), (5,)), 1e-5),
    "adam": (adam, ((7,), (7,), (7,), (7,)), 1e-5),
    "distances": (vmapped_distances, ((5, 3), (4, 3)), 1e-5),
    "hessian": (jax.hessian(lambda x: jnp.exp(jnp.sin(x)).prod()), ((4,),), 1e-5),
    "jacobian": (jax.jacfwd(lambda x, w: jnp.tanh(w @ x)), ((4,), (3, 4)), 1e-5),
    "checkpointed": (
        jax.grad(jax.checkpoint(lambda x, w: jnp.sin(jnp.sin(x @ w) @ w).sum())),
        ((3, 4), (4, 4)),
        1e-5,
    ),
    "half_precision": (half_precision, ((4, 6), (6, 5)), 1e-2),
    "quantized": (quantized, ((4, 6), (6, 5)), 0),
}


@pytest.mark.parametrize("name", MODELS)
def test_model_gives_what_jax_computes(name, rng, jax_program):
    function, sizes, tolerance = MODELS[name]
    arguments = tuple(rng.standard_normal(size).astype(np.float32) for size in sizes)
    if name == "adam":
        arguments = (*arguments[:3], np.abs(arguments[3]))
    program = jax_program(function, arguments, tolerance)
    for text in (program.lowered, program.optimized):
        program.check_text(text)
        program.check_evaluator(text)
    program.check_cpu()


def test_gradient_of_embedding_gives_what_jax_computes(rng, jax_program):
    table = rng.standard_normal((11, 4)).astype(np.float32)
    tokens, targets = (rng.integers(0, 11, (2, 5)).astype(np.int32) for _ in range(2))
    program = jax_program(jax.value_and_grad(embedding_loss), (table, tokens, targets), 1e-5)
    for text in (program.lowered, program.optimized):
        program.check_text(text)
        program.check_evaluator(text)
    program.check_cpu()
