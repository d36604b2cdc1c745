"""Everyday functions beside NumPy, `jax.jit` and numba: `PYTHONPATH=tests python -m benchmarks.everyday [NAME...]`.

Each is called at the size that its recipe names. Times are the best of rounds in which all contestants take turns;
those that are not installed, or cannot compile a function, are left out. First calls find no code on the disk,
but a process in which everybody has compiled something before.
"""

from __future__ import annotations

import argparse
import gc
import math
import os
import sys
import time
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.harness import has
from tracing.everyday import finance_and_statistics, learning, numerics, signals_and_images, simulation  # noqa: F401
from tracing.everyday.case import RECIPES, Recipe

import xlalite as xl

PEERS = ("numpy", "jax", "numba")
_ANY = Recipe("any", lambda x: x + 1, lambda rng, size: (rng.random(size),), large=8)


def main() -> int:
    """Prints a line for each function, and how much better the peers are on the whole."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="functions; all that name a size by default")
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--seconds", type=float, default=0.4, help="time for the rounds of a function")
    options = parser.parse_args()
    os.environ["XLALITE_CACHE"] = "0"
    chosen = [each for each in RECIPES.values() if each.large and (not options.names or each.name in options.names)]
    peers = [each for each in options.peers.split(",") if each == "numpy" or has(each)]
    _contestants(_ANY, peers)
    print(
        f"{'function':34}" + "".join(f"{name:>12}" for name in ("xlalite", *peers)) + "   first calls, ms", flush=True
    )
    beside: dict[str, list[float]] = {"numpy": [], "jax and numba": [], "first call, jax": []}
    for recipe in chosen:
        calls, first = _contestants(recipe, peers)
        times = _best_times(calls, options.seconds)
        cells = [f"{1e6 * times[name]:11.1f}u" if name in times else f"{'-':>12}" for name in ("xlalite", *peers)]
        began = "  ".join(f"{name} {1e3 * taken:.0f}" for name, taken in first.items())
        print(f"{recipe.name:34}" + "".join(cells) + "   " + began, flush=True)
        own = times["xlalite"]
        beside["numpy"].append(own / times["numpy"] if "numpy" in times else math.nan)
        others = [times[name] for name in ("jax", "numba") if name in times]
        beside["jax and numba"].append(own / min(others) if others else math.nan)
        beside["first call, jax"].append(first["xlalite"] / first["jax"] if "jax" in first else math.nan)
    for name, ratios in beside.items():
        known = [each for each in ratios if not math.isnan(each)]
        if known:
            mean = math.exp(sum(map(math.log, known)) / len(known))
            slower = [each.name for each, ratio in zip(chosen, ratios, strict=True) if ratio > 1]
            print(f"beside the better of {name}: geometric mean {mean:.2f} over {len(known)}; above 1: {slower}")
    return 0


def _contestants(recipe: Recipe, peers: list[str]) -> tuple[dict[str, Callable[[], object]], dict[str, float]]:
    """Calls by name, warmed up, and how long the first of each took."""
    given = recipe.arguments(recipe.large)
    calls: dict[str, Callable[[], object]] = {}
    first: dict[str, float] = {}
    makers: dict[str, Callable[[Recipe], Callable[..., Any]]] = {
        "xlalite": lambda each: xl.jit(each.function, **(each.options or {})),
        "numpy": lambda each: each.function,
        "jax": _of_jax,
        "numba": _of_numba,
    }
    for name in ("xlalite", *peers):
        copies = [each.copy() if isinstance(each, np.ndarray) else each for each in given]
        try:
            function = makers[name](recipe)
            # Nobody's first call is to look through what others have left.
            gc.collect(1)
            gc.freeze()
            began = time.perf_counter()
            function(*copies)
            taken = time.perf_counter() - began
        except Exception:
            # What a peer cannot compile it says in many ways; ours must.
            if name == "xlalite":
                raise
            continue
        calls[name] = lambda function=function, copies=copies: function(*copies)
        if name != "numpy":
            first[name] = taken
    return calls, first


def _of_jax(recipe: Recipe) -> Callable[..., Any]:
    import jax

    jax.config.update("jax_enable_x64", True)
    own = recipe.function
    assert isinstance(own, types.FunctionType)
    names = {name: jax.numpy if value is np else value for name, value in own.__globals__.items()}
    function = types.FunctionType(own.__code__, names, own.__name__, own.__defaults__, own.__closure__)
    options = {name: value for name, value in (recipe.options or {}).items() if name == "static_argnames"}
    compiled = jax.jit(function, **options)
    return lambda *arguments: jax.block_until_ready(compiled(*arguments))


def _of_numba(recipe: Recipe) -> Callable[..., Any]:
    import numba

    compiled: Callable[..., Any] = numba.njit(recipe.function)
    return compiled


def _best_times(calls: dict[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    best = dict.fromkeys(calls, math.inf)
    end = time.perf_counter() + seconds * len(calls)
    rounds = 0
    while rounds < 3 or time.perf_counter() < end:
        rounds += 1
        for name, call in calls.items():
            # Short calls are timed together.
            count = max(1, min(1000, int(2e-4 / best[name]))) if rounds > 1 else 1
            began = time.perf_counter()
            for _ in range(count):
                call()
            best[name] = min(best[name], (time.perf_counter() - began) / count)
    return best


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(main())
