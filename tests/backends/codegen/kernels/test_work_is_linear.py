"""What kernels compute grows with the number of elements, however reductions depend on one another.

The work is what the plan says the chosen kernels evaluate, elements that are evaluated again counted again; the slow
test holds the clock against it.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlalite as xl

Array = np.ndarray[Any, np.dtype[Any]]
Program = Callable[[Any], Any]


def variance(x: Any, axis: int) -> Any:
    return ((x - x.mean(axis, keepdims=True)) ** 2).mean(axis)


def softmax(x: Any, axis: int) -> Any:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def normalised(x: Any, axes: int | tuple[int, ...]) -> Any:
    centred = x - x.mean(axes, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axes, keepdims=True) + 1e-5)


def images(x: Any) -> Any:
    return x.reshape(-1, 4, 4, x.shape[1] // 16)


def in_a_loop(x: Any) -> Any:
    def centred(y: Any) -> Any:
        moved = y - xl.reduce_mean(y, 0)
        return y - xl.reduce_mean(moved * moved, 0)

    return xl.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, centred(y)), (0, x))[1]


def lines_against_lines(x: Any) -> Any:
    together = x[:, :8, None] + x[:, None, 8:16]
    return np.where(together.max((1, 2))[:, None, None] > 1, x.reshape(-1, 8, 8), 0)


def stencils(x: Any) -> Any:
    for _ in range(8):
        x = x[:-1] + x[1:]
    return x


def spread_chain(x: Any) -> Any:
    row = x[0]
    for _ in range(30):
        row = row * row * 0.5 + 0.25
    return x * row


PROGRAMS: dict[str, Program] = {
    "variance of rows": lambda x: variance(x, 1),
    "variance of columns": lambda x: variance(x, 0),
    "variance of variances": lambda x: variance(variance(x.reshape(x.shape[0], 8, -1), 0), 0),
    "variance of the rest": lambda x: variance(x - variance(x, 0), 0),
    "two statistics": lambda x: ((x - x.mean(0) - variance(x, 0)) ** 3).mean(0),
    "softmax of rows": lambda x: softmax(x, 1),
    "softmax of columns": lambda x: softmax(x, 0),
    "layer norm": lambda x: normalised(x, 1),
    "layer norm over leading dimensions": lambda x: normalised(x, 0),
    "batch norm, channels last": lambda x: normalised(images(x), (0, 1, 2)),
    "batch norm, channels first": lambda x: normalised(images(x), (0, 2, 3)),
    "rows, then columns": lambda x: (x - x.mean(1, keepdims=True).mean(0, keepdims=True)).sum(0),
    "variance of all": lambda x: ((x - x.mean()) ** 2).mean(),
    "turned round": lambda x: variance(x.T, 1),
    "through a transpose": lambda x: ((x - x.mean(0)).T * x.sum(0)[:, None]).sum(0),
    "through a reshape": lambda x: variance(np.reshape(x - x.mean(0), (x.shape[0] // 2, -1)), 0),
    "flattened": lambda x: (np.reshape(x - x.mean(0), (-1,)) ** 2).sum(),
    "through a concatenation": lambda x: np.concatenate([x - x.mean(0), x * x.sum(1, keepdims=True)], 0).sum(0),
    "an outer product": lambda x: (np.exp(x[:, 0])[:, None] * np.exp(x[0])[None, :]).sum(0),
    "a row's statistic in columns": lambda x: (x / x.sum(1, keepdims=True)).sum(0),
    "a column's statistic in rows": lambda x: (x / x.sum(0, keepdims=True)).sum(1),
    "to and fro": lambda x: (x + (x + x.sum(0)).sum(1, keepdims=True)).sum(0),
    "maxima": lambda x: (x - (x * x.max(0)).max(0)).max(0),
    "a long chain on one row": spread_chain,
    "lines against lines": lines_against_lines,
    "stencil of stencils": stencils,
    "in a loop": in_a_loop,
}
FLOPS_AN_ELEMENT = 40
"""More than any of the programs needs: 26 for the stencils, of which a kernel may do some again."""


def work(program: Program, x: Array) -> float:
    """Scalar operations of all kernels in one run, once for each that a loop calls."""
    function = xl.jit(program)
    function(x)
    decisions = function.executable(x).decisions()
    return float(sum(d.numbers["flops"] for d in decisions if "flops" in d.numbers))


@pytest.mark.parametrize("name", PROGRAMS)
def test_work_grows_with_the_elements(name: str, rng: np.random.Generator) -> None:
    small = rng.random((256, 64)).astype(np.float32)
    large = rng.random((1024, 64)).astype(np.float32)
    once, four_times = (work(PROGRAMS[name], x) for x in (small, large))
    assert 0 < once <= FLOPS_AN_ELEMENT * small.size
    assert four_times <= 4.2 * once


REDUCED_AGAIN = """HloModule t
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
f { x = f32[100,8] parameter(0)
  z = f32[] constant(0)
  s = f32[8] reduce(x, z), dimensions={0}, to_apply=add
  b = f32[100,8] broadcast(s), dimensions={1}
  d = f32[100,8] subtract(x, b)
  ROOT r = f32[8] reduce(d, z), dimensions={0}, to_apply=add }
ENTRY e { x = f32[100,8] parameter(0)
  ROOT r = f32[8] fusion(x), kind=kInput, calls=f }
"""


def test_the_work_of_a_kernel_counts_what_it_computes_again(compile_text: Any) -> None:
    """Fused by somebody else: each of 100 rows would need the sum of all 100."""
    kept = compile_text(REDUCED_AGAIN, optimize=False)
    apart = compile_text(REDUCED_AGAIN)
    flops = [sum(d.numbers.get("flops", 0) for d in e.decisions()) for e in (kept, apart)]
    assert flops[0] > 100 * 100 * 8
    assert flops[1] < 4 * 100 * 8


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_time_grows_with_the_elements(name: str, rng: np.random.Generator) -> None:
    """Sixteen times the rows, caches and noise allowed for; quadratic work would take 256 times as long."""
    times = [seconds(PROGRAMS[name], rng.random((rows, 64)).astype(np.float32)) for rows in (256, 4096)]
    assert times[1] <= 4 * 16 * times[0]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_variance_of_columns_is_as_fast_as_in_numpy(dtype: type, rng: np.random.Generator) -> None:
    x = rng.random((4000, 256)).astype(dtype)
    ours = seconds(PROGRAMS["variance of columns"], x)
    assert ours <= 2 * best_of(lambda: np.var(x, axis=0))


def seconds(program: Program, x: Array) -> float:
    function = xl.jit(program)
    return best_of(lambda: function(x))


def best_of(call: Callable[[], object]) -> float:
    call()
    best = float("inf")
    for _ in range(20):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best
