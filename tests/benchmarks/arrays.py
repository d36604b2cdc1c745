"""Single kernels on arrays: calls, elementwise functions, reductions, row operations, transposes, products."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from harness import Workload, has

import xlalite as xl

_SCALARS = """
max { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b) }
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
"""

_SOFTMAX = """
  x = f32[4096,1024] parameter(0)
  z = f32[] constant(0)
  low = f32[] constant(-inf)
  m = f32[4096] reduce(x, low), dimensions={1}, to_apply=max
  mb = f32[4096,1024] broadcast(m), dimensions={0}
  s = f32[4096,1024] subtract(x, mb)
  e = f32[4096,1024] exponential(s)
  q = f32[4096] reduce(e, z), dimensions={1}, to_apply=add
  qb = f32[4096,1024] broadcast(q), dimensions={0}
  ROOT r = f32[4096,1024] divide(e, qb)
"""

_LAYER_NORM = """
  x = f32[4096,1024] parameter(0)
  z = f32[] constant(0)
  n = f32[] constant(1024)
  nb = f32[4096] broadcast(n), dimensions={}
  eps = f32[] constant(1e-05)
  epsb = f32[4096] broadcast(eps), dimensions={}
  s = f32[4096] reduce(x, z), dimensions={1}, to_apply=add
  mean = f32[4096] divide(s, nb)
  meanb = f32[4096,1024] broadcast(mean), dimensions={0}
  d = f32[4096,1024] subtract(x, meanb)
  d2 = f32[4096,1024] multiply(d, d)
  v = f32[4096] reduce(d2, z), dimensions={1}, to_apply=add
  var = f32[4096] divide(v, nb)
  vare = f32[4096] add(var, epsb)
  r = f32[4096] rsqrt(vare)
  rb = f32[4096,1024] broadcast(r), dimensions={0}
  ROOT o = f32[4096,1024] multiply(d, rb)
"""


def workloads() -> list[Workload]:
    """All of them."""
    big = (4096, 1024)
    return [
        Workload("call a+b, 8 floats", _small_call, calls=2000),
        _elementwise(
            "x+1 [4096,1024]",
            "  c = f32[] constant(1)\n  cb = f32[4096,1024] broadcast(c), dimensions={}\n"
            "  ROOT r = f32[4096,1024] add(x, cb)",
            lambda np_: lambda x: x + np_.float32(1),
        ),
        *(
            _elementwise(f"{name} [4096,1024]", f"  ROOT r = f32[4096,1024] {opcode}(x)", function)
            for name, opcode, function in (
                ("exp", "exponential", lambda np_: np_.exp),
                ("tanh", "tanh", lambda np_: np_.tanh),
                ("log", "log", lambda np_: np_.log),
                ("sin", "sine", lambda np_: np_.sin),
            )
        ),
        _module("softmax [4096,1024]", _SOFTMAX, [big], lambda jnp: lambda x: _softmax(jnp, x)),
        _module("layer norm [4096,1024]", _LAYER_NORM, [big], lambda jnp: lambda x: _layer_norm(jnp, x)),
        _reduction("sum all [4096,1024]", "0,1", "", None),
        _reduction("sum rows [4096,1024]", "1", "4096", 1),
        _reduction("sum columns [4096,1024]", "0", "1024", 0),
        _module(
            "transpose [4096,4096]",
            "  x = f32[4096,4096] parameter(0)\n  ROOT r = f32[4096,4096] transpose(x), dimensions={1,0}\n",
            [(4096, 4096)],
            lambda jnp: lambda x: jnp.transpose(x).copy(),
        ),
        *(_matmul(size) for size in (64, 256, 1024)),
    ]


def _elementwise(name: str, body: str, function: Callable[[Any], Callable[..., Any]]) -> Workload:
    text = "  x = f32[4096,1024] parameter(0)\n" + body + "\n"
    return _module(name, text, [(4096, 1024)], function)


def _reduction(name: str, dimensions: str, result: str, axis: int | None) -> Workload:
    body = (
        "  x = f32[4096,1024] parameter(0)\n  z = f32[] constant(0)\n"
        f"  ROOT r = f32[{result}] reduce(x, z), dimensions={{{dimensions}}}, to_apply=add\n"
    )
    return _module(name, body, [(4096, 1024)], lambda np_: lambda x: np_.sum(x, axis=axis))


def _matmul(size: int) -> Workload:
    shape = f"f32[{size},{size}]"
    body = (
        f"  x = {shape} parameter(0)\n  y = {shape} parameter(1)\n"
        f"  ROOT r = {shape} dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
    )
    return _module(f"matmul {size}", body, [(size, size)] * 2, lambda np_: np_.matmul, calls=max(1, 20000 // size**2))


def _module(
    name: str,
    body: str,
    shapes: list[tuple[int, ...]],
    function: Callable[[Any], Callable[..., Any]],
    calls: int = 1,
) -> Workload:
    def make() -> Mapping[str, Callable[[], object]]:
        rng = np.random.default_rng(0)
        arguments = [np.abs(rng.standard_normal(shape, np.float32)) + np.float32(0.1) for shape in shapes]
        executable = xl.compile(xl.hlo.parse(f"HloModule bench\n{_SCALARS}\nENTRY e {{\n{body}}}\n"))
        contestants: dict[str, Callable[[], object]] = {"xlalite": lambda: executable(*arguments)}
        if has("jax"):
            import jax
            import jax.numpy as jnp

            compiled, devices = jax.jit(function(jnp)), [jax.device_put(a) for a in arguments]
            contestants["jax.jit"] = lambda: compiled(*devices).block_until_ready()
        plain = function(np)
        contestants["numpy"] = lambda: plain(*arguments)
        return contestants

    return Workload(name, make, calls)


def _small_call() -> Mapping[str, Callable[[], object]]:
    a, b = np.ones(8, np.float32), np.ones(8, np.float32)
    text = "HloModule t\nENTRY e {\n x = f32[8] parameter(0)\n y = f32[8] parameter(1)\n ROOT r = f32[8] add(x, y)\n}\n"
    executable = xl.compile(xl.hlo.parse(text))
    function = executable.function
    contestants: dict[str, Callable[[], object]] = {
        "xlalite": lambda: executable(a, b),
        "xlalite (.function)": lambda: function(a, b),
        "numpy": lambda: a + b,
    }
    if has("jax"):
        import jax

        compiled, x, y = jax.jit(lambda p, q: p + q), jax.device_put(a), jax.device_put(b)
        contestants["jax.jit, device arrays"] = lambda: compiled(x, y).block_until_ready()
        contestants["jax.jit, NumPy arrays"] = lambda: compiled(a, b).block_until_ready()
    return contestants


def _softmax(jnp: Any, x: Any) -> Any:
    e = jnp.exp(x - jnp.max(x, axis=1, keepdims=True))
    return e / jnp.sum(e, axis=1, keepdims=True)


def _layer_norm(jnp: Any, x: Any) -> Any:
    d = x - jnp.mean(x, axis=1, keepdims=True)
    return d / jnp.sqrt(jnp.mean(d * d, axis=1, keepdims=True) + 1e-5)
