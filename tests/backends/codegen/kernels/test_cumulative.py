"""Running sums and the like are linear in the length, along any dimension and in both directions."""

from typing import Any

import numpy as np
import pytest

from xlalite.hlo.types.dtype import DType


def cumulative(dtype: str, dims: tuple[int, ...], dimension: int, operation: str, *, backward: bool) -> str:
    size = dims[dimension]
    sizes = "x".join(str(size if d == dimension else 1) for d in range(len(dims)))
    pads = (0, size - 1) if backward else (size - 1, 0)
    padding = "x".join("{}_{}".format(*pads) if d == dimension else "0_0" for d in range(len(dims)))
    shape = f"{dtype}[{','.join(map(str, dims))}]"
    window = f"size={sizes} pad={padding}" if size > 1 else f"size={sizes}"
    return f"""HloModule m
f {{ a = {dtype}[] parameter(0)
  b = {dtype}[] parameter(1)
  {operation.replace("$T", dtype)} }}
ENTRY e {{
  x = {shape} parameter(0)
  s = {dtype}[] parameter(1)
  ROOT w = {shape} reduce-window(x, s), window={{{window}}}, to_apply=f }}"""


ADD, MULTIPLY, MAXIMUM = (f"ROOT r = $T[] {name}(a, b)" for name in ("add", "multiply", "maximum"))
LAST_THAT_IS_NOT_0 = """z = $T[] constant(0)
  n = pred[] compare(b, z), direction=NE
  ROOT r = $T[] select(n, b, a)"""


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("length", [2, 3, 15, 16, 17, 64, 100])
def test_lines_of_any_length(check: Any, kernels: Any, rng: np.random.Generator, length: int, backward: bool) -> None:
    places = [((length,), 0), ((3, length), 1), ((length, 5), 0), ((2, length, 70), 1), ((2, 3, length, 2, 2), 2)]
    for dims, dimension in places:
        for operation in (ADD, MAXIMUM):
            text = cumulative("s32", dims, dimension, operation, backward=backward)
            values = rng.integers(-100, 100, dims).astype(np.int32)
            executable = check(text, values, np.int32(7), optimize=False)
            assert kernels(executable) == ["cumulative"]


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "f16", "u8", "s64", "c64", "pred"])
def test_every_type(check: Any, rng: np.random.Generator, dtype: str) -> None:
    for dims, dimension in (((4, 40), 1), ((40, 67), 0)):
        for backward in (False, True):
            for operation in (ADD,) if dtype == "c64" else (ADD, MULTIPLY, MAXIMUM):
                text = cumulative(dtype, dims, dimension, operation, backward=backward)
                values = rng.integers(1, 3, dims).astype(DType(dtype).numpy)
                check(text, values, np.asarray(1).astype(values.dtype), ulps=16)


def test_an_order_that_matters_is_kept(check: Any, kernels: Any, rng: np.random.Generator) -> None:
    for dims, dimension in (((3, 50), 1), ((50, 20), 0)):
        text = cumulative("s32", dims, dimension, LAST_THAT_IS_NOT_0, backward=False)
        values = rng.integers(-1, 2, dims).astype(np.int32)
        assert kernels(check(text, values, np.int32(9))) == ["cumulative"]
        text = cumulative("s32", dims, dimension, LAST_THAT_IS_NOT_0, backward=True)
        assert kernels(check(text, values, np.int32(9))) == ["loop"]


def test_results_are_equal_on_any_number_of_threads(check: Any, rng: np.random.Generator) -> None:
    for dims, dimension in (((300, 500), 1), ((500, 1000), 0)):
        text = cumulative("f32", dims, dimension, ADD, backward=False)
        values = rng.standard_normal(dims).astype(np.float32)
        one = check(text, values, np.float32(0), num_threads=1, ulps=64)(values, np.float32(0))
        np.testing.assert_array_equal(
            check(text, values, np.float32(0), num_threads=3, ulps=64)(values, np.float32(0)), one
        )


def test_a_window_that_is_shorter_is_no_accumulation(check: Any, kernels: Any, rng: np.random.Generator) -> None:
    text = cumulative("f32", (4, 40), 1, ADD, backward=False).replace("pad=0_0x39_0", "pad=0_0x38_1")
    executable = check(text, rng.standard_normal((4, 40)).astype(np.float32), np.float32(0), ulps=16)
    assert kernels(executable) == ["loop"]


def test_what_computes_the_elements_shares_the_kernel(check: Any, kernels: Any, rng: np.random.Generator) -> None:
    for backward in (False, True):
        text = cumulative("f32", (30, 70), 1, ADD, backward=backward)
        text = text.replace("reduce-window(x,", "reduce-window(y,").replace("  s =", "  y = f32[30,70] tanh(x)\n  s =")
        executable = check(text, rng.standard_normal((30, 70)).astype(np.float32), np.float32(0), ulps=64)
        assert kernels(executable) == ["cumulative"]


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "f16"])
@pytest.mark.parametrize("operation", ["maximum", "minimum"])
def test_extremes_of_special_numbers(check: Any, rng: np.random.Generator, dtype: str, operation: str) -> None:
    """A NaN of either sign is kept from where it occurs, and zeros are told apart."""
    kind = DType(dtype).numpy
    sign = 1 if operation == "minimum" else -1
    infinity = sign * np.inf
    rising = (np.linspace(3, -3, 70) * sign).astype(kind)
    lines = [rng.choice(np.array([0.0, -0.0, 1e-40, 2, -2, np.inf, -np.inf]), 70).astype(kind) for _ in range(3)]
    for at, nan in ((0, np.nan), (33, -np.nan), (69, np.nan)):
        lines.append(rising.copy())
        lines[-1][at] = nan
    x = np.stack([*lines, np.full(70, -0.0, kind), np.where(np.arange(70) < 40, -0.0, 0.0).astype(kind)])
    for backward in (False, True):
        text = cumulative(dtype, x.shape, 1, f"ROOT r = $T[] {operation}(a, b)", backward=backward)
        found = check(text, x, np.asarray(infinity, kind))(x, np.asarray(infinity, kind))
        minus = {("maximum", True): 0, ("minimum", False): 70}.get((operation, backward), 40)
        np.testing.assert_array_equal(np.signbit(found[-1]), np.arange(70) < minus)
