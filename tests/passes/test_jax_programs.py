"""What JAX emits, through the whole target-independent pipeline: the evaluator gives the same bits before and after."""

from collections.abc import Callable

import numpy as np
import pytest

from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.text import parse
from xlalite.passes.core.debug_options import DebugOptions
from xlalite.passes.core.instrumentation import Instrumentation
from xlalite.passes.pipelines import target_independent

jax = pytest.importorskip("jax")
jnp = jax.numpy
pytestmark = pytest.mark.oracle


def loss(w1, b1, w2, x, y):
    hidden = jax.nn.relu(x @ w1 + b1)
    return -(jax.nn.log_softmax(hidden @ w2) * y).sum(-1).mean()


def layer_norm(x, g):
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * g


def attention(q, k, v):
    scores = jnp.where(jnp.tril(jnp.ones((4, 4), bool)), jnp.einsum("hqd,hkd->hqk", q, k), -1e9)
    return jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(scores, -1), v)


def scan(x):
    return jax.lax.scan(lambda carry, row: (carry * 0.9 + row, jnp.tanh(carry)), jnp.zeros(3), x)


def rearranged(x):
    return jnp.roll(x, 2, 1), jnp.flip(jnp.pad(x, ((1, 2), (0, 1))), 0), x[::2, 1:].T.reshape(-1)


PROGRAMS: dict[str, tuple[Callable[..., object], tuple[tuple[int, ...], ...], int]] = {
    "gradient of an MLP": (jax.grad(loss, (0, 1, 2)), ((6, 5), (5,), (5, 3), (4, 6), (4, 3)), 70),
    "gradient of a layer norm": (jax.grad(lambda x, g: layer_norm(x, g).sum()), ((3, 4), (4,)), 60),
    "attention": (attention, ((2, 4, 3), (2, 4, 3), (2, 4, 3)), 40),
    "scan": (scan, ((5, 3),), 40),
    "gradient of a scan": (jax.grad(lambda x: scan(x)[1].sum()), ((5, 3),), 80),
    "rearranged": (rearranged, ((4, 5),), 12),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_pipeline_keeps_what_jax_means(name: str, rng: np.random.Generator, assert_same_bits) -> None:
    function, shapes, most_instructions = PROGRAMS[name]
    arguments = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    text = jax.jit(function, keep_unused=True).lower(*arguments).compiler_ir("hlo").as_hlo_text()
    module = parse(text)
    expected = evaluate(module, *arguments)
    pipeline = target_independent(reorder_reductions=False)
    pipeline.run(module, Instrumentation(DebugOptions(check_passes=True)))
    assert_same_bits(expected, evaluate(module, *arguments), text)
    assert sum(map(len, module.computations())) <= most_instructions
