"""Functions written with NumPy: `xl.jit` beside jax's and NumPy itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from harness import Workload, has

import xlalite as xl


def workloads() -> list[Workload]:
    """All of them."""
    return [
        _function("var of columns [4000,256]", (4000, 256), lambda np_: lambda x: np_.var(x, axis=0)),
        _function("var of columns [16000,256]", (16000, 256), lambda np_: lambda x: np_.var(x, axis=0)),
        _function("var of rows [4000,256]", (4000, 256), lambda np_: lambda x: np_.var(x, axis=1)),
        _function("argmax of rows [4000,256]", (4000, 256), lambda np_: lambda x: np_.argmax(x, axis=1)),
        _function("argmax of rows [1000,1000]", (1000, 1000), lambda np_: lambda x: np_.argmax(x, axis=1)),
    ]


def _function(name: str, shape: tuple[int, ...], function: Callable[[Any], Callable[[Any], Any]]) -> Workload:
    def make() -> Mapping[str, Callable[[], object]]:
        x = np.random.default_rng(0).standard_normal(shape, np.float32)
        plain, compiled = function(np), xl.jit(function(np))
        contestants: dict[str, Callable[[], object]] = {"xlalite": lambda: compiled(x), "numpy": lambda: plain(x)}
        if has("jax"):
            import jax
            import jax.numpy as jnp

            traced, device = jax.jit(function(jnp)), jax.device_put(x)
            contestants["jax.jit"] = lambda: traced(device).block_until_ready()
        return contestants

    return Workload(name, make)
