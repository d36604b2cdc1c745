"""HLO that jax prints comes back identical: as lowered, and as XLA:CPU leaves it after all its passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from xlalite.hlo.text import parse
from xlalite.hlo.verification.verifier import verify

jax = pytest.importorskip("jax")
jnp = jax.numpy
lax = jax.lax

pytestmark = pytest.mark.oracle

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "softmax": jax.nn.softmax,
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "gradient": jax.grad(lambda x: jnp.tanh(x @ x.T).sum()),
    "sort": lambda x: jnp.sort(x, axis=0),
    "argsort": jnp.argsort,
    "top_k": lambda x: lax.top_k(x, 2),
    "fft": lambda x: jnp.fft.rfft(x).real,
    "cumsum": lambda x: jnp.cumsum(x, axis=1),
    "gather": lambda x: x[jnp.array([0, 2])],
    "scatter": lambda x: x.at[jnp.array([0, 2])].add(1.0),
    "convolution": lambda x: lax.conv_general_dilated(x[None, None], jnp.ones((1, 1, 3, 3)), (2, 1), "SAME"),
    "fori_loop": lambda x: lax.fori_loop(0, 10, lambda i, s: s * 2.0, x),
    "scan": lambda x: lax.scan(lambda c, a: (c + a, c * a), x[0], x),
    "cond": lambda x: lax.cond(x.sum() > 0, lambda a: a + 1, lambda a: a * 2, x),
    "switch": lambda x: lax.switch(x[0, 0].astype(int), [lambda a: a + 1, lambda a: a * 2, lambda a: -a], x),
    "random": lambda x: jax.random.normal(jax.random.key(0), (3,)) + x[0, :3],
    "max_pool": jax.grad(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID").sum()),
    "cholesky": lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(4)),
    "pad": lambda x: lax.pad(x, 0.0, ((1, 2, 1), (0, -1, 0))),
    "dynamic_slices": lambda x: lax.dynamic_update_slice(x, lax.dynamic_slice(x, (1, 2), (2, 2)), (0, 1)),
    "bfloat16": lambda x: (x.astype(jnp.bfloat16) @ x.T.astype(jnp.bfloat16)).astype(jnp.float32),
    "bitcast": lambda x: lax.bitcast_convert_type(x, jnp.int32),
    "argmax": lambda x: jnp.argmax(x, 1),
    "complex": lambda x: jnp.abs(x + 1j * x) * jnp.array([1 + 2j, 3, 4, 5, 6, 7]),
    "rng_bit_generator": lambda x: lax.rng_bit_generator(jnp.zeros(4, jnp.uint32), (3,))[1],
    "two_results": lambda x: lax.reduce((x, x), (0.0, 1.0), lambda a, b: (a[0] + b[0], a[1] * b[1]), (0,)),
    "barrier": lambda x: lax.optimization_barrier((x, x)),
}
ARGUMENT = np.ones((4, 6), np.float32)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_lowered_functions_come_back_identical(name: str) -> None:
    text = jax.jit(FUNCTIONS[name]).lower(ARGUMENT).compiler_ir("hlo").as_hlo_text()
    module = parse(text)
    verify(module)
    assert module.to_string("short_parsable") == text


@pytest.mark.parametrize("name", ["softmax", "scan", "max_pool", "cholesky", "random"])
def test_compiled_functions_come_back_identical(name: str) -> None:
    compiled = jax.jit(FUNCTIONS[name]).lower(ARGUMENT).compile()
    text = compiled.runtime_executable().hlo_modules()[0].to_string()
    module = parse(text)
    verify(module)
    assert str(module) == text
