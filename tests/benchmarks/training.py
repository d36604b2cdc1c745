"""The softmax regression step at MNIST's size, and what a process pays before its first step."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping

import numpy as np
from benchmarks.harness import Contest, Workload, has

import xlalite as xl

BATCH, PIXELS, CLASSES = 100, 784, 10


def workloads() -> list[Workload]:
    """All of them."""
    return [
        Workload("softmax regression step, 100x784", _step),
        Workload("compile a one-kernel module", _compile),
        Workload("process: compile and run a module", _process),
    ]


def _data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    images = rng.random((BATCH, PIXELS), np.float32)
    return images, np.eye(CLASSES)[rng.integers(0, CLASSES, BATCH)]


def _step() -> Contest:
    images, labels = _data()
    contestants: dict[str, Callable[[], object]] = {}
    for name, level in (("xlalite", 1), ("xlalite, JIT off", 0)):
        contestants[name] = _session_step(images, labels, level)
    contestants["xlalite, one module"] = _module_step(images, labels.astype(np.float32))
    if has("jax"):
        contestants["jax"] = _jax_step(images, labels.astype(np.float32))
    return _incomparable(contestants)


def _session_step(images: np.ndarray, labels: np.ndarray, level: int) -> Callable[[], object]:
    graph = xl.Graph()
    with graph.as_default():
        x = xl.placeholder(xl.float32, [None, PIXELS])
        wanted = xl.placeholder(xl.float32, [None, CLASSES])
        w, b = xl.Variable(xl.zeros([PIXELS, CLASSES])), xl.Variable(xl.zeros([CLASSES]))
        logits = xl.matmul(x, w) + b
        loss = xl.reduce_mean(xl.nn.softmax_cross_entropy_with_logits(labels=wanted, logits=logits))
        step = xl.train.GradientDescentOptimizer(0.5).minimize(loss)
        initialize = xl.global_variables_initializer()
    config = xl.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = level
    session = xl.Session(graph=graph, config=config)
    session.run(initialize)
    return lambda: session.run(step, feed_dict={x: images, wanted: labels})


STEP = """HloModule step, input_output_alias={ {0}: (0, {}, must-alias), {1}: (1, {}, must-alias) }
max { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b) }
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY e {
  w = f32[784,10] parameter(0)
  b = f32[10] parameter(1)
  x = f32[100,784] parameter(2)
  y = f32[100,10] parameter(3)
  zero = f32[] constant(0)
  low = f32[] constant(-inf)
  xw = f32[100,10] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  bb = f32[100,10] broadcast(b), dimensions={1}
  logits = f32[100,10] add(xw, bb)
  m = f32[100] reduce(logits, low), dimensions={1}, to_apply=max
  mb = f32[100,10] broadcast(m), dimensions={0}
  s = f32[100,10] subtract(logits, mb)
  e = f32[100,10] exponential(s)
  q = f32[100] reduce(e, zero), dimensions={1}, to_apply=add
  qb = f32[100,10] broadcast(q), dimensions={0}
  p = f32[100,10] divide(e, qb)
  d = f32[100,10] subtract(p, y)
  hundredth = f32[] constant(0.01)
  hb = f32[100,10] broadcast(hundredth), dimensions={}
  g = f32[100,10] multiply(d, hb)
  dw = f32[784,10] dot(x, g), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  db = f32[10] reduce(g, zero), dimensions={0}, to_apply=add
  rate = f32[] constant(0.5)
  rw = f32[784,10] broadcast(rate), dimensions={}
  rb = f32[10] broadcast(rate), dimensions={}
  sw = f32[784,10] multiply(dw, rw)
  sb = f32[10] multiply(db, rb)
  w1 = f32[784,10] subtract(w, sw)
  b1 = f32[10] subtract(b, sb)
  ROOT r = (f32[784,10], f32[10]) tuple(w1, b1)
}
"""


def _module_step(images: np.ndarray, labels: np.ndarray) -> Callable[[], object]:
    executable = xl.compile(xl.hlo.parse(STEP), options=xl.CompileOptions(donate_arguments=True))
    w, b = np.zeros((PIXELS, CLASSES), np.float32), np.zeros(CLASSES, np.float32)
    return lambda: executable(w, b, images, labels)


def _jax_step(images: np.ndarray, labels: np.ndarray) -> Callable[[], object]:
    import jax
    import jax.numpy as jnp

    def loss(parameters: tuple[jax.Array, jax.Array], x: jax.Array, y: jax.Array) -> jax.Array:
        logits = x @ parameters[0] + parameters[1]
        return jnp.mean(-jnp.sum(y * jax.nn.log_softmax(logits), axis=1))

    @jax.jit
    def step(parameters: tuple[jax.Array, jax.Array], x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jax.tree.map(lambda p, g: p - 0.5 * g, parameters, jax.grad(loss)(parameters, x, y))

    state = (jnp.zeros((PIXELS, CLASSES)), jnp.zeros(CLASSES))

    def call() -> None:
        jax.block_until_ready(step(state, images, labels))

    return call


_KERNEL = """HloModule one
ENTRY e {
  x = f32[4096,1024] parameter(0)
  y = f32[4096,1024] exponential(x)
  ROOT r = f32[4096,1024] add(y, x)
}
"""


def _compile() -> Contest:
    module, options = xl.hlo.parse(_KERNEL), xl.CompileOptions(use_cache=False)
    contestants: dict[str, Callable[[], object]] = {"xlalite": lambda: xl.compile(module, options=options)}
    if has("jax"):
        import jax
        import jax.numpy as jnp

        shape = jax.ShapeDtypeStruct((4096, 1024), np.float32)
        contestants["jax"] = lambda: jax.jit(lambda x: jnp.exp(x) + x).lower(shape).compile()
    return _incomparable(contestants)


def _process() -> Contest:
    program = (
        "import numpy, xlalite as xl\n"
        f"m = xl.hlo.parse('''{_KERNEL}''')\n"
        "xl.compile(m)(numpy.ones((4096, 1024), numpy.float32))\n"
    )
    directory = tempfile.mkdtemp(prefix="xlalite-benchmark-")

    def run(**environment: str) -> None:
        subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, **environment})

    return _incomparable(
        {
            "xlalite": lambda: run(XLALITE_CACHE_DIR=directory),
            "xlalite, no cache": lambda: run(XLALITE_CACHE="0"),
        }
    )


def _incomparable(contestants: Mapping[str, Callable[[], object]]) -> Contest:
    """A contest in which calls change their state, or give no arrays."""
    return Contest(contestants, tolerance=None)
