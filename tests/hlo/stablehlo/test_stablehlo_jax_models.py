"""Models, their gradients, exported modules and annotations as jax prints them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.ir.module import InputOutputAlias
from xlalite.hlo.text import parse

jax = pytest.importorskip("jax")
jnp = jax.numpy
lax = jax.lax
pytestmark = pytest.mark.oracle

RNG = np.random.default_rng(3)


def normal(*sizes: int) -> np.ndarray:
    return RNG.normal(size=sizes).astype(np.float32)


def mlp_gradient(x: Any, w1: Any, w2: Any) -> Any:
    def loss(w1: Any, w2: Any) -> Any:
        return -jax.nn.log_softmax(jax.nn.gelu(x @ w1) @ w2)[:, 1].mean()

    return jax.value_and_grad(loss, (0, 1))(w1, w2)


def convolutional_gradient(x: Any, k1: Any, k2: Any) -> Any:
    def loss(k1: Any, k2: Any) -> Any:
        layout = ("NHWC", "HWIO", "NHWC")
        h = jax.nn.relu(lax.conv_general_dilated(x, k1, (1, 1), "SAME", dimension_numbers=layout))
        h = lax.reduce_window(h, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return (lax.conv_general_dilated(h, k2, (2, 2), "VALID", dimension_numbers=layout) ** 2).sum()

    return jax.value_and_grad(loss, (0, 1))(k1, k2)


def attention(x: Any, wq: Any, wk: Any, wv: Any) -> Any:
    q, k, v = (jnp.einsum("btd,hde->bhte", x, w) for w in (wq, wk, wv))
    scores = jnp.einsum("bhte,bhse->bhts", q, k) / 2.0
    scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e9)
    return jnp.einsum("bhts,bhse->bthe", jax.nn.softmax(scores), v)


def layer_norm(x: Any, scale: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale


def batch_norm_gradient(x: Any) -> Any:
    return jax.grad(lambda x: (layer_norm(x.T, 1.0) ** 3).sum())(x)


def recurrent(x: Any, w: Any, u: Any) -> Any:
    def loss(w: Any) -> Any:
        def step(h: Any, xt: Any) -> Any:
            h = jnp.tanh(h @ w + xt @ u)
            return h, h.sum()

        final, sums = lax.scan(step, jnp.zeros((x.shape[1], w.shape[0])), x)
        return final.sum() + sums.mean()

    return jax.value_and_grad(loss)(w)


def newton(x: Any) -> Any:
    def body(state: Any) -> Any:
        y, _ = state
        new = y - (y * y - x) / (2 * y)
        return new, jnp.abs(new - y).max()

    return lax.while_loop(lambda state: state[1] > 1e-6, body, (x, jnp.float32(1)))[0]


def dropout(key: Any, x: Any) -> Any:
    return jnp.where(jax.random.bernoulli(key, 0.8, x.shape), x / 0.8, 0)


def mixture(x: Any, w: Any, experts: Any) -> Any:
    gates = jax.nn.softmax(x @ w)
    values, index = lax.top_k(gates, 2)
    chosen = experts[index]
    return jnp.einsum("nk,nkde,nd->ne", values, chosen, x)


def adam(w: Any, m: Any, v: Any, g: Any, t: Any) -> Any:
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    step = (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return w - 1e-3 * step, m, v


def embedding_gradient(table: Any, index: Any) -> Any:
    return jax.grad(lambda table: (table[index] ** 2).sum())(table)


def mandelbrot(c: Any) -> Any:
    def step(_: Any, state: Any) -> Any:
        z, count = state
        z = z * z + c
        return z, count + (jnp.abs(z) < 2).astype(jnp.int32)

    return lax.fori_loop(0, 8, step, (jnp.zeros_like(c), jnp.zeros(c.shape, jnp.int32)))[1]


def flash_like(q: Any, k: Any, v: Any) -> Any:
    def step(carry: Any, block: Any) -> Any:
        top, total, out = carry
        kb, vb = block
        scores = q @ kb.T
        new = jnp.maximum(top, scores.max(-1))
        weights = jnp.exp(scores - new[:, None])
        fade = jnp.exp(top - new)
        return (new, total * fade + weights.sum(-1), out * fade[:, None] + weights @ vb), None

    start = (jnp.full(q.shape[0], -jnp.inf), jnp.zeros(q.shape[0]), jnp.zeros_like(q))
    (_, total, out), _ = lax.scan(step, start, (k.reshape(2, -1, 4), v.reshape(2, -1, 4)))
    return out / total[:, None]


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], float]] = {
    "mlp_gradient": (mlp_gradient, (normal(5, 6), normal(6, 8), normal(8, 3)), 1e-5),
    "convolutional_gradient": (
        convolutional_gradient,
        (normal(2, 8, 8, 3), normal(3, 3, 3, 4), normal(2, 2, 4, 5)),
        1e-5,
    ),
    "attention": (attention, (normal(2, 6, 8), normal(2, 8, 4), normal(2, 8, 4), normal(2, 8, 4)), 1e-5),
    "layer_norm": (layer_norm, (normal(4, 16), normal(16)), 1e-6),
    "batch_norm_gradient": (batch_norm_gradient, (normal(6, 4),), 1e-5),
    "recurrent": (recurrent, (normal(5, 2, 3), normal(4, 4), normal(3, 4)), 1e-5),
    "newton": (newton, (np.abs(normal(6)) + 0.5,), 1e-6),
    "dropout": (dropout, (np.array([1, 2], np.uint32), normal(4, 6)), 1e-6),
    "mixture": (mixture, (normal(5, 4), normal(4, 3), normal(3, 4, 2)), 1e-5),
    "adam": (adam, (normal(9), normal(9), np.abs(normal(9)), normal(9), np.float32(3)), 1e-6),
    "embedding_gradient": (embedding_gradient, (normal(7, 3), np.array([1, 5, 1, 0], np.int32)), 1e-6),
    "mandelbrot": (mandelbrot, ((normal(8) + 1j * normal(8)).astype(np.complex64),), 0),
    "flash_like": (flash_like, (normal(3, 4), normal(6, 4), normal(6, 4)), 1e-5),
}
COMPILED = ("mlp_gradient", "attention", "recurrent", "newton", "dropout", "mixture", "embedding_gradient")


@pytest.mark.parametrize("name", CASES)
def test_models_evaluate_to_the_values_of_jax(name: str, stablehlo_program: Callable[..., Any]) -> None:
    function, arguments, tolerance = CASES[name]
    program = stablehlo_program(function, arguments, tolerance)
    program.check()
    if name in COMPILED:
        program.check_cpu()


def test_numbers_of_double_width_are_read(stablehlo_program: Callable[..., Any]) -> None:
    def f(x: Any) -> Any:
        s = jax.scipy.special
        return s.gammaln(x), s.erfc(x), s.erfinv(x / 9), s.i1e(x), jnp.arange(3) + x[:3], x.astype(jnp.complex128)

    stablehlo_program(f, (np.array([0.1, 0.9, 2.5, 8.0]),), 1e-14, x64=True).check()


def test_exported_modules_are_read() -> None:
    x = normal(3, 2)
    exported = jax.export.export(jax.jit(lambda x: {"a": jnp.sin(x), "b": x.sum()}))(x)
    a, b = evaluate(parse(exported.mlir_module()), x)
    np.testing.assert_allclose(a, np.sin(x), rtol=1e-6)
    np.testing.assert_allclose(b, x.sum(), rtol=1e-6)


def test_donated_arguments_become_aliases() -> None:
    x = normal(3)
    text = jax.jit(lambda x, y: (y * 2, x + y), donate_argnums=1).lower(x, x).as_text()
    assert parse(text).config.input_output_alias == (InputOutputAlias((0,), 1),)
    text = jax.jit(lambda x: x + 1, donate_argnums=0).lower(x).as_text()
    assert parse(text).config.input_output_alias == (InputOutputAlias((), 0),)


def test_locations_become_metadata() -> None:
    text = jax.jit(lambda x: jnp.tanh(x)).lower(normal(3)).as_text(debug_info=True)
    (tanh,) = [i for i in parse(text).entry_computation.instructions if i.opcode == "tanh"]
    assert tanh.metadata.op_name == "jit(<lambda>)/tanh"
    assert tanh.metadata.source_file == __file__
    assert tanh.metadata.source_line > 100
