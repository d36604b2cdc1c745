"""Window reductions find what the evaluator finds: any window, any combiner, several results."""

import random
from typing import Any

import numpy as np
import pytest

from xlalite.hlo.types.dtype import DType
from xlalite.passes.core.debug_options import DebugOptions

COMBINERS = {
    "add": "ROOT r = $T[] add(a, b)",
    "maximum": "ROOT r = $T[] maximum(a, b)",
    "left": "z = $T[] constant(0)\n  n = pred[] compare(a, z), direction=NE\n  ROOT r = $T[] select(n, a, b)",
}
"""The last is associative and not commutative: the first that is not 0."""


def combiner(name: str, dtype: str) -> str:
    return f"f {{\n  a = $T[] parameter(0)\n  b = $T[] parameter(1)\n  {COMBINERS[name]} }}\n".replace("$T", dtype)


def any_window(chance: random.Random, sizes: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
    """The text of a window that fits, and how many positions it has."""
    fields: list[list[str]] = [[], [], [], [], []]
    positions = []
    for size in sizes:
        if chance.random() < 0.3:
            window, stride, low, high, base, dilation = 1, 1, 0, 0, 1, 1
        else:
            window, stride = chance.choice((1, 2, 3, 5)), chance.choice((1, 1, 2, 3))
            low, high = chance.choice((0, 0, 1, 2, -1)), chance.choice((0, 0, 1, 3, -1))
            base, dilation = chance.choice((1, 1, 1, 2)), chance.choice((1, 1, 2))
        room = low + (size - 1) * base + 1 + high - ((window - 1) * dilation + 1)
        if room < 0:
            low, room = low - room, 0
        positions.append(room // stride + 1)
        for field, text in zip(fields, (window, stride, f"{low}_{high}", base, dilation), strict=True):
            field.append(str(text))
    names = ("size", "stride", "pad", "lhs_dilate", "rhs_dilate")
    return " ".join(f"{name}={'x'.join(field)}" for name, field in zip(names, fields, strict=True)), tuple(positions)


def shape(dtype: str, dims: tuple[int, ...]) -> str:
    return f"{dtype}[{','.join(map(str, dims))}]"


@pytest.mark.parametrize("dtype", ["f32", "s32", "u8", "bf16", "c64"])
@pytest.mark.parametrize("combine", COMBINERS)
def test_windows_of_any_form(check: Any, kernels: Any, rng: np.random.Generator, combine: str, dtype: str) -> None:
    if (combine, dtype) == ("maximum", "c64"):
        return
    chance = random.Random(combine + dtype)
    for dims in ((9,), (5, 7), (3, 20), (2, 6, 5, 3), (2, 1, 33)):
        window, positions = any_window(chance, dims)
        text = f"""HloModule m
{combiner(combine, dtype)}ENTRY e {{
  x = {shape(dtype, dims)} parameter(0)
  s = {dtype}[] parameter(1)
  ROOT w = {shape(dtype, positions)} reduce-window(x, s), window={{{window}}}, to_apply=f }}"""
        values = rng.integers(0, 3, dims)
        module_type = {"f32": np.float32, "s32": np.int32, "u8": np.uint8, "c64": np.complex64}.get(dtype)
        if module_type is None:
            import ml_dtypes

            module_type = ml_dtypes.bfloat16
        executable = check(text, values.astype(module_type), np.asarray(0).astype(module_type), optimize=False)
        assert kernels(executable) == ["loop"], text


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("dims", "window", "positions"),
    [
        ((4, 40, 40, 5), "size=1x3x3x1 stride=1x2x2x1 pad=0_0x1_1x1_1x0_0", (4, 20, 20, 5)),
        ((4, 5, 41, 40), "size=1x1x2x2 stride=1x1x2x2", (4, 5, 20, 20)),
        ((300, 7), "size=30x1", (271, 7)),
        ((6, 90), "size=1x60 pad=0_0x59_0", (6, 90)),
    ],
)
def test_pooling(
    check: Any,
    rng: np.random.Generator,
    dims: tuple[int, ...],
    window: str,
    positions: tuple[int, ...],
    threads: int,
) -> None:
    for combine in ("add", "maximum"):
        text = f"""HloModule m
{combiner(combine, "f32")}ENTRY e {{
  x = {shape("f32", dims)} parameter(0)
  s = f32[] constant(-1)
  ROOT w = {shape("f32", positions)} reduce-window(x, s), window={{{window}}}, to_apply=f }}"""
        check(text, rng.standard_normal(dims).astype(np.float32), num_threads=threads, ulps=32)


def test_several_results(check: Any, kernels: Any, rng: np.random.Generator) -> None:
    """The largest element of each window, and where it stood."""
    text = """HloModule m
f { a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  g = pred[] compare(a, b), direction=GE
  m = f32[] select(g, a, b)
  k = s32[] select(g, i, j)
  ROOT t = (f32[], s32[]) tuple(m, k) }
ENTRY e {
  x = f32[8,21] parameter(0)
  i = s32[8,21] iota(), iota_dimension=1
  n = f32[] constant(-inf)
  z = s32[] constant(-1)
  ROOT w = (f32[8,11], s32[8,11]) reduce-window(x, i, n, z), window={size=1x3 stride=1x2 pad=0_0x1_1}, to_apply=f }"""
    executable = check(text, rng.standard_normal((8, 21)).astype(np.float32))
    assert kernels(executable)[-1] == "loop"


def test_what_comes_before_and_after_shares_the_kernel(check: Any, kernels: Any, rng: np.random.Generator) -> None:
    text = f"""HloModule m
{combiner("maximum", "f32")}ENTRY e {{
  x = f32[2,9,10,5] parameter(0)
  z = f32[] constant(0)
  zeros = f32[2,9,10,5] broadcast(z), dimensions={{}}
  y = f32[2,9,10,5] maximum(x, zeros)
  n = f32[] constant(-inf)
  w = f32[2,5,5,5] reduce-window(y, n), window={{size=1x3x2x1 stride=1x2x2x1 pad=0_0x1_1x0_0x0_0}}, to_apply=f
  ROOT r = f32[2,5,5,5] negate(w) }}"""
    executable = check(text, rng.standard_normal((2, 9, 10, 5)).astype(np.float32))
    assert kernels(executable) == ["loop"]


def test_an_expensive_operand_of_windows_that_overlap_is_computed_once(
    check: Any, kernels: Any, rng: np.random.Generator
) -> None:
    text = f"""HloModule m
{combiner("add", "f32")}ENTRY e {{
  x = f32[40,50] parameter(0)
  y = f32[40,50] tanh(x)
  z = f32[] constant(0)
  ROOT w = f32[36,46] reduce-window(y, z), window={{size=5x5}}, to_apply=f }}"""
    executable = check(text, rng.standard_normal((40, 50)).astype(np.float32), ulps=16)
    assert kernels(executable) == ["loop", "loop"]


@pytest.mark.parametrize("dtype", ["f32", "u8", "c64"])
@pytest.mark.parametrize("step", [2, 3, 4])
def test_windows_over_what_lies_apart(
    check: Any, kernels: Any, rng: np.random.Generator, step: int, dtype: str
) -> None:
    """The gradient of average pooling: the border and the gaps are no elements, however much is cut or added."""
    for length, low, high, window in ((1, 5, 40, 3), (16, 1, 1, 2), (33, 2, 0, 3), (40, -3, -2, 2), (70, 37, 5, 4)):
        padded = low + (length - 1) * step + 1 + high
        result = (2, padded - window + 1)
        text = f"""HloModule m
{combiner("add", dtype)}ENTRY e {{
  g = {shape(dtype, (3, length))} parameter(0)
  border = {dtype}[] parameter(1)
  z = {dtype}[] constant(0)
  p = {shape(dtype, (3, padded))} pad(g, border), padding=0_0x{low}_{high}_{step - 1}
  w = {shape(dtype, result)} reduce-window(p, z), window={{size=2x{window}}}, to_apply=f
  ROOT r = {shape(dtype, result)} add(w, w) }}"""
        numbers = rng.integers(0, 9, (3, length)).astype(DType(dtype).numpy)
        executable = check(text, numbers, np.asarray(5).astype(numbers.dtype))
        assert kernels(executable) == ["loop"]
        for isa in ("AVX2", "SSE2"):
            check(text, numbers, np.asarray(5).astype(numbers.dtype), debug=DebugOptions(cpu_max_isa=isa))
