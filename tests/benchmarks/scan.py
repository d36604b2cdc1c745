"""Compares everything that jax has with us: `python tests/benchmarks/scan.py [WORD...] [--dtype T] [--gradient]`.

Whatever public function of jax accepts one to three arrays is a program: jax lowers it, both compile it, results are
compared, both are timed in turns. `--batched` maps it over a further dimension, `--gradient` takes the gradient of the
sum of squares of what it gives. Printed are the functions that are behind `--behind` of jax's speed, slowest first,
those whose results differ, those that we refuse, and those that take longer to compile: the other benchmarks say how
quick chosen programs are, this one what nobody had thought of.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.harness import OWN, has, leaves, measure

import xlalite as xl
from xlalite.hlo.types.dtype import DType

ROOMS = (
    "jax.lax",
    "jax.nn",
    "jax.numpy",
    "jax.numpy.fft",
    "jax.numpy.linalg",
    "jax.scipy.linalg",
    "jax.scipy.signal",
    "jax.scipy.special",
    *(f"jax.scipy.stats.{name}" for name in ("beta", "cauchy", "gamma", "laplace", "norm", "poisson", "t")),
)
"""Where functions are looked for; of those that several have, the first."""

AMBIGUOUS = ("eig", "hessenberg", "lstsq", "poly", "qr", "schur", "sqrtm", "svd", "polar")
"""Beginnings of the last parts of names of functions that may have several results; only times are compared."""

MOST_ARRAYS = 3
_LONG = 64
"""Megabytes of results from which on a function makes something else of arrays than others do."""


@dataclass(frozen=True)
class Race:
    """What both needed for the same.

    Attributes:
        own: Our seconds.
        jax: Those of jax.
    """

    own: float
    jax: float

    @property
    def speed(self) -> float:
        """How many times as quick we are."""
        return self.jax / self.own

    def __str__(self) -> str:
        return f"{self.speed:7.2f} {1e6 * self.own:10.1f} us {1e6 * self.jax:10.1f} us"


@dataclass(frozen=True)
class Finding:
    """What became of a function.

    Attributes:
        name: The function, with the number of its arrays.
        call: The time of a call; None if there is a problem.
        compilation: The time of the compilation, likewise.
        problem: Why there is no call, or how results differ.
    """

    name: str
    call: Race | None = None
    compilation: Race | None = None
    problem: str = ""


def main(given: Sequence[str] | None = None) -> int:
    """Gives 1 if anything is refused or differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="look only at functions whose names contain one of them")
    parser.add_argument("--dtype", default="f32", help="element type of all arrays")
    parser.add_argument("--shape", default="200,200", help="sizes of all arrays")
    parser.add_argument("--gradient", action="store_true", help="gradients by the first array")
    parser.add_argument("--batched", action="store_true", help="map over a first dimension of 8")
    parser.add_argument("--seconds", type=float, default=0.1, help="time for each function")
    parser.add_argument("--behind", type=float, default=1.0, help="speed beside jax below which a function is shown")
    chosen = parser.parse_args(given)
    if not has("jax"):
        print("jax is not installed")
        return 0
    import jax

    os.environ["XLALITE_CACHE"] = "0"
    dtype = DType(chosen.dtype)
    jax.config.update("jax_enable_x64", (dtype.component if dtype.is_complex else dtype).bits == 64)
    shape = tuple(int(size) for size in chosen.shape.split(","))
    findings: list[Finding] = []
    # The first compilation of a process imports both compilers.
    compared("nn.softmax", jax.nn.softmax, arrays_of((8, 8), "f32", 1), 0.0)
    for name, function, count in functions(shape, chosen.dtype, chosen.words):
        program = jax.vmap(function) if chosen.batched else function
        arrays = arrays_of((8, *shape) if chosen.batched else shape, chosen.dtype, count)
        finding = compared(
            f"{name} of {count}", gradient_of(program) if chosen.gradient else program, arrays, chosen.seconds
        )
        if finding is not None:
            findings.append(finding)
            if finding.problem:
                print(f"{finding.name:44} {finding.problem}", flush=True)
    races = [(each.name, each.call, each.compilation) for each in findings if each.call and each.compilation]
    for title, found in (
        ("are behind jax", [(call, name) for name, call, _ in races]),
        ("take longer to compile", [(compilation, name) for name, _, compilation in races]),
    ):
        print(f"\n{sum(race.speed < 1 for race, _ in found)} of {len(found)} functions {title}:")
        for race, name in sorted(found, key=lambda one: one[0].speed):
            if race.speed < chosen.behind:
                print(race, name)
    return int(any(each.problem for each in findings))


def functions(
    shape: tuple[int, ...], dtype: str, words: Sequence[str] = ()
) -> Iterator[tuple[str, Callable[..., Any], int]]:
    """(name, function, number of arrays) of all that accept so many arrays of a shape, and of no fewer."""
    import jax

    known: set[int] = set()
    for room in ROOMS:
        module = importlib.import_module(room)
        for name in sorted(vars(module)):
            function, full = getattr(module, name), f"{room.removeprefix('jax.')}.{name}"
            is_of_jax = callable(function) and str(getattr(function, "__module__", "")).startswith("jax")
            if name.startswith("_") or not is_of_jax or isinstance(function, type) or id(function) in known:
                continue
            known.add(id(function))
            if words and not any(word in full for word in words):
                continue
            for count in range(1, MOST_ARRAYS + 1):
                if _accepts(function, [jax.ShapeDtypeStruct(shape, DType(dtype).numpy)] * count):
                    yield full, function, count
                    break


def arrays_of(shape: tuple[int, ...], dtype: str, count: int) -> list[np.ndarray]:
    """Numbers between 0 and 1, where most functions are defined; of integers, small positive ones."""
    rng, numpy_type = np.random.default_rng(0), DType(dtype).numpy
    if DType(dtype).is_integral or dtype == "pred":
        return [rng.integers(1, 2 if dtype == "pred" else 8, shape).astype(numpy_type) for _ in range(count)]
    return [(0.05 + 0.9 * rng.random(shape)).astype(numpy_type) for _ in range(count)]


def gradient_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """The gradient, by the first array, of half of the sum of squares of what a function gives in floating point."""
    import jax

    def total(*arrays: Any) -> Any:
        results = [each for each in jax.tree.leaves(function(*arrays)) if jax.numpy.issubdtype(each.dtype, np.inexact)]
        wide = [abs(each.astype(jax.numpy.promote_types(each.dtype, np.float32))) for each in results]
        return 0.5 * sum(((each * each).sum() for each in wide), jax.numpy.float32(0))

    return jax.grad(total)


def compared(name: str, function: Callable[..., Any], arrays: Sequence[np.ndarray], seconds: float) -> Finding | None:
    """Both beside each other; None if jax cannot."""
    import jax

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            lowered = jax.jit(function, keep_unused=True).lower(*arrays)
            compiled, their_compilation = _timed(lowered.compile)
            devices = [jax.device_put(each) for each in arrays]
            theirs = jax.tree.leaves(jax.block_until_ready(compiled(*devices)))
        except Exception:
            return None
        try:
            module = xl.hlo.parse(lowered.as_text())
            own, own_compilation = _timed(lambda: xl.compile(module))
            ours = leaves(own(*arrays))
        except Exception as refusal:  # whatever it is, the others are looked at, too
            return Finding(name, problem=f"{type(refusal).__name__}: {' '.join(str(refusal).split())[:140]}")
        is_clear = not name.rsplit(".", 1)[1].startswith(AMBIGUOUS)
        problem = difference(ours, leaves(theirs), map(_precision, theirs)) if is_clear else ""
        if problem:
            return Finding(name, problem=problem)
        calls = {OWN: lambda: own(*arrays), "jax": lambda: jax.block_until_ready(compiled(*devices))}
        times = measure(calls, seconds)
    return Finding(name, Race(times[OWN].best, times["jax"].best), Race(own_compilation, their_compilation))


def difference(ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray], precisions: Iterable[float]) -> str:
    """How results differ by more than half of the digits of their types, in words; nothing if they do not."""
    for number, (a, b, precision) in enumerate(zip(ours, theirs, precisions, strict=True)):
        with np.errstate(invalid="ignore"):
            apart = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0, np.abs(a - b))
            scale = np.max(np.abs(b), where=np.isfinite(b), initial=1e-30)
        if not (largest := np.max(apart, initial=0)) <= precision**0.5 * scale:
            return f"result {number} differs by {largest:.3g}, largest element {scale:.3g}"
    return ""


def _timed(make: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    return make(), time.perf_counter() - start


def _precision(array: Any) -> float:
    import jax

    return float(jax.numpy.finfo(array.dtype).eps) if jax.numpy.issubdtype(array.dtype, np.inexact) else 0.0


def _accepts(function: Callable[..., Any], arrays: Sequence[Any]) -> bool:
    """Whether a function makes arrays of arrays, and none that are far larger."""
    import jax

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            results = jax.tree.leaves(jax.eval_shape(function, *arrays))
        except Exception:
            return False
    if not results or not all(isinstance(each, jax.ShapeDtypeStruct) for each in results):
        return False
    return sum(each.size * each.dtype.itemsize for each in results) <= _LONG << 20


if __name__ == "__main__":
    sys.exit(main())
