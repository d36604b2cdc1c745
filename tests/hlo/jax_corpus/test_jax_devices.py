"""Programs that jax partitioned for a mesh of eight devices give the same on simulated ones.

The number of devices is fixed when jax starts, so another process compiles and runs the programs.
"""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.hlo.text import parse
from xlalite.hlo.verification.verifier import verify

pytest.importorskip("jax")
pytestmark = pytest.mark.oracle

PROGRAM = """
import pickle, sys
import jax, jax.numpy as jnp, numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from jaxlib import _hlo

jax.config.update("jax_num_cpu_devices", 8)
mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("a", "b"))
x, w = (np.random.default_rng(0).standard_normal(n).astype(np.float32) for n in ((16, 8), (8, 16)))
ring = [(k, (k + 1) % 4) for k in range(4)]
both = P("a", "b")

def on_mesh(f, given, wanted):
    return jax.jit(jax.shard_map(f, mesh=mesh, in_specs=given, out_specs=wanted, check_vma=False)), (x,)

def train(x, w):
    return jax.grad(lambda w: (jnp.tanh(x @ w) ** 2).sum())(w)

shardings = [NamedSharding(mesh, P("a", "b")), NamedSharding(mesh, P("b", "a"))]
programs = {
    "psum": on_mesh(lambda a: lax.psum(a, "a"), both, P(None, "b")),
    "pmax": on_mesh(lambda a: lax.pmax(a, ("a", "b")), both, P()),
    "all_gather": on_mesh(lambda a: lax.all_gather(a, "b", axis=1, tiled=True), both, P("a")),
    "psum_scatter": on_mesh(lambda a: lax.psum_scatter(a, "a", tiled=True), P(None, "b"), both),
    "all_to_all": on_mesh(lambda a: lax.all_to_all(a, "b", 1, 0, tiled=True), P("a"), P(("a", "b"))),
    "ppermute": on_mesh(lambda a: lax.ppermute(a, "a", ring[:3]), both, both),
    "axis_index": on_mesh(lambda a: a + lax.axis_index("a") * 10 + lax.axis_index("b"), both, both),
    "ring": on_mesh(lambda a: lax.fori_loop(0, 4, lambda i, c: lax.ppermute(c, "a", ring) * 2 + a, a), both, both),
    "partitioned": (jax.jit(train, in_shardings=shardings, out_shardings=shardings[1]), (x, w)),
}
options = _hlo.HloPrintOptions()
options.print_large_constants = True

def shards(array):
    return [np.asarray(shard.data) for shard in sorted(array.addressable_shards, key=lambda shard: shard.device.id)]

found = {}
for name, (function, arguments) in programs.items():
    compiled = function.lower(*arguments).compile()
    placed = [jax.device_put(a, s) for a, s in zip(arguments, compiled.input_shardings[0])]
    text = compiled.runtime_executable().hlo_modules()[0].to_string(options)
    found[name] = (text, [shards(a) for a in placed], shards(compiled(*placed)))
pickle.dump(found, sys.stdout.buffer)
"""


@pytest.fixture(scope="module")
def partitioned() -> dict[str, tuple[str, list[list[np.ndarray]], list[np.ndarray]]]:
    """HLO text, the pieces of each argument and the pieces of the result, by device."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return pickle.loads(done.stdout)


@pytest.mark.parametrize(
    ("name", "opcode"),
    [
        ("psum", "all-reduce"),
        ("pmax", "all-reduce"),
        ("all_gather", "all-gather"),
        ("psum_scatter", "reduce-scatter"),
        ("all_to_all", "all-to-all"),
        ("ppermute", "collective-permute"),
        ("axis_index", "partition-id"),
        ("ring", "collective-permute"),
        ("partitioned", "all-reduce"),
    ],
)
def test_simulated_devices_compute_what_jax_computes_on_a_mesh(name, opcode, partitioned) -> None:
    text, arguments, results = partitioned[name]
    module = parse(text)
    verify(module)
    assert opcode in {instruction.opcode for instruction in module.instructions()}
    given = [[pieces[rank] for pieces in arguments] for rank in range(8)]
    for name in ("interpreter", "cpu"):
        found = get_backend(name).compile(module, CompileOptions()).run_on_devices(given)
        for piece, expected in zip(found, results, strict=True):
            np.testing.assert_allclose(piece, expected, rtol=1e-5, atol=1e-5)
