"""Column kernels: reductions that leave the minor dimension."""

from typing import Any

import numpy as np
import pytest

FUNCTIONS = """
add { a = $T[] parameter(0)
  b = $T[] parameter(1)
  ROOT r = $T[] add(a, b) }
max { a = $T[] parameter(0)
  b = $T[] parameter(1)
  ROOT r = $T[] maximum(a, b) }
"""
COLUMNS = (1, 2, 3, 7, 8, 15, 16, 17, 33, 63, 64, 100, 127, 128, 129, 200, 256, 300)
NUMPY = {"f32": np.float32, "f64": np.float64, "s8": np.int8, "s32": np.int32, "f16": np.float16}


def reduction(dims: tuple[int, ...], reduced: tuple[int, ...], dtype: str = "f32", function: str = "add") -> str:
    result = [size for d, size in enumerate(dims) if d not in reduced]
    shape, kept = ",".join(map(str, dims)), ",".join(map(str, result))
    start = {"add": "1", "max": "-3"}[function]
    functions = FUNCTIONS.replace("$T", dtype)
    return f"""HloModule m
{functions}
ENTRY e {{ x = {dtype}[{shape}] parameter(0)
  s = {dtype}[] constant({start})
  ROOT r = {dtype}[{kept}] reduce(x, s), dimensions={{{",".join(map(str, reduced))}}}, to_apply={function} }}"""


def numbers(rng: np.random.Generator, dims: tuple[int, ...], dtype: str = "f32") -> np.ndarray:
    return np.asarray(rng.uniform(-9, 9, dims)).astype(NUMPY[dtype])


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_every_column_count(check: Any, kernels: Any, rng: np.random.Generator, columns: int, dtype: str) -> None:
    executable = check(reduction((5, columns), (0,), dtype), numbers(rng, (5, columns), dtype), ulps=8)
    if columns > 1:
        assert kernels(executable) == ["column"]


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("dtype", ["f32", "f64", "s8"])
def test_a_middle_dimension(check: Any, kernels: Any, rng: np.random.Generator, columns: int, dtype: str) -> None:
    executable = check(reduction((3, 4, columns), (1,), dtype), numbers(rng, (3, 4, columns), dtype), ulps=8)
    if columns > 1:
        assert kernels(executable) == ["column"]


@pytest.mark.parametrize(
    ("dims", "reduced"),
    [
        ((2, 3, 4, 5), (0, 2)),
        ((2, 3, 4, 130), (0, 2)),
        ((2, 3, 4, 64), (2,)),
        ((2, 3, 4, 5, 6), (1, 3)),
        ((3, 2, 2, 128), (1, 2)),
        ((2, 3, 4, 5), (0, 3)),
        ((2, 3, 4, 5), (1, 3)),
        ((7, 2, 7), (0, 2)),
    ],
)
@pytest.mark.parametrize("function", ["add", "max"])
def test_several_dimensions(
    check: Any, rng: np.random.Generator, dims: tuple[int, ...], reduced: tuple[int, ...], function: str
) -> None:
    check(reduction(dims, reduced, "f32", function), numbers(rng, dims), ulps=8)


@pytest.mark.parametrize("dims", [(0, 5), (1, 5), (3, 0), (0, 0), (1, 1), (3, 1), (1000, 3), (1001, 1)])
def test_empty_tiny_and_tall(check: Any, rng: np.random.Generator, dims: tuple[int, ...]) -> None:
    check(reduction(dims, (0,)), numbers(rng, dims), ulps=32)


@pytest.mark.parametrize("dims", [(20_000, 3), (9001, 17), (70_001, 1), (123_457,), (3, 50_000), (40, 40, 40)])
def test_reductions_that_are_split(check: Any, rng: np.random.Generator, dims: tuple[int, ...]) -> None:
    """Large operands with few results; sizes that no piece divides."""
    x = rng.integers(-8, 9, dims).astype(np.float32)
    check(reduction(dims, (0,)), x)
    check(reduction(dims, tuple(range(len(dims)))), x)
    check(reduction(dims, (0,), "f32", "max"), x)


@pytest.mark.parametrize("columns", [1, 5, 16, 70, 128, 140])
def test_two_reductions_and_what_follows_share_a_kernel(
    check: Any, kernels: Any, rng: np.random.Generator, columns: int
) -> None:
    text = f"""HloModule m
{FUNCTIONS.replace("$T", "f32")}
ENTRY e {{ x = f32[9,{columns}] parameter(0)
  z = f32[] constant(0)
  q = f32[9,{columns}] multiply(x, x)
  s = f32[{columns}] reduce(x, z), dimensions={{0}}, to_apply=add
  t = f32[{columns}] reduce(q, z), dimensions={{0}}, to_apply=add
  ss = f32[{columns}] multiply(s, s)
  n = f32[] constant(9)
  nb = f32[{columns}] broadcast(n), dimensions={{}}
  m = f32[{columns}] divide(ss, nb)
  ROOT v = f32[{columns}] subtract(t, m) }}"""
    executable = check(text, numbers(rng, (9, columns)), ulps=32)
    if columns > 1:
        assert kernels(executable) == ["column"]


@pytest.mark.parametrize("dims", [(7, 5), (7, 128), (6, 3, 64), (4, 2, 128)])
def test_arg_max_along_columns(check: Any, kernels: Any, rng: np.random.Generator, dims: tuple[int, ...]) -> None:
    along = len(dims) - 2
    shape = ",".join(map(str, dims))
    kept = ",".join(str(size) for d, size in enumerate(dims) if d != along)
    text = f"""HloModule m
pick {{ a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  wins = pred[] compare(a, b), direction=GE
  x = f32[] select(wins, a, b)
  k = s32[] select(wins, i, j)
  ROOT r = (f32[], s32[]) tuple(x, k) }}
ENTRY e {{ x = f32[{shape}] parameter(0)
  i = s32[{shape}] iota(), iota_dimension={along}
  low = f32[] constant(-inf)
  z = s32[] constant(0)
  r = (f32[{kept}], s32[{kept}]) reduce(x, i, low, z), dimensions={{{along}}}, to_apply=pick
  ROOT k = s32[{kept}] get-tuple-element(r), index=1 }}"""
    assert kernels(check(text, numbers(rng, dims)))[-1] == "column"
