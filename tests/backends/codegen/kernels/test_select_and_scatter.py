"""The gradient of pooling: windows of any form give their sources to what they select, as in the evaluator."""

import random
from typing import Any

import numpy as np
import pytest

from xlalite.hlo.types.dtype import DType
from xlalite.passes.core.debug_options import DebugOptions


def select_and_scatter(
    dtype: str, dims: tuple[int, ...], positions: tuple[int, ...], window: str, how: str, give: str = "add(a, b)"
) -> str:
    operand, source = (f"{dtype}[{','.join(map(str, sizes))}]" for sizes in (dims, positions))
    return f"""HloModule m
chosen {{ a = {dtype}[] parameter(0)
  b = {dtype}[] parameter(1)
  ROOT c = pred[] compare(a, b), direction={how} }}
given {{ a = {dtype}[] parameter(0)
  b = {dtype}[] parameter(1)
  ROOT c = {dtype}[] {give} }}
ENTRY e {{
  x = {operand} parameter(0)
  s = {source} parameter(1)
  i = {dtype}[] parameter(2)
  ROOT r = {operand} select-and-scatter(x, s, i), window={{{window}}}, select=chosen, scatter=given }}"""


def any_window(chance: random.Random, sizes: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
    fields: list[list[str]] = [[], [], []]
    positions = []
    for size in sizes:
        window, stride, low, high = 1, 1, 0, 0
        if chance.random() < 0.6:
            window, stride = chance.choice((1, 2, 3, 5)), chance.choice((1, 1, 2, 3))
            low, high = chance.choice((0, 0, 1, 2, -1)), chance.choice((0, 0, 1, 3, -1))
        room = low + size + high - window
        if room < 0:
            low, room = low - room, 0
        positions.append(room // stride + 1)
        for field, text in zip(fields, (window, stride, f"{low}_{high}"), strict=True):
            field.append(str(text))
    names = ("size", "stride", "pad")
    return " ".join(f"{name}={'x'.join(field)}" for name, field in zip(names, fields, strict=True)), tuple(positions)


@pytest.mark.parametrize("how", ["GE", "LT", "EQ"])
@pytest.mark.parametrize("dtype", ["f32", "s32", "u8", "bf16", "f64"])
def test_windows_of_any_form(check: Any, kernels: Any, rng: np.random.Generator, dtype: str, how: str) -> None:
    """Few different numbers, so that many are equal."""
    chance, numpy_type = random.Random(dtype + how), DType(dtype).numpy
    for dims in ((9,), (5, 7), (3, 20), (2, 6, 5, 3), (2, 5, 5, 33), (2, 2, 8, 8)):
        window, positions = any_window(chance, dims)
        text = select_and_scatter(dtype, dims, positions, window, how)
        arguments = [rng.integers(0, 3, sizes).astype(numpy_type) for sizes in (dims, positions)]
        executable = check(text, *arguments, np.asarray(1).astype(numpy_type), optimize=False)
        assert kernels(executable) == ["select and scatter"], text


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(
    ("dims", "window", "positions"),
    [
        ((6, 20, 20, 17), "size=1x3x3x1 stride=1x2x2x1 pad=0_0x0_1x0_1x0_0", (6, 10, 10, 17)),
        ((6, 5, 20, 20), "size=1x1x2x2 stride=1x1x2x2", (6, 5, 10, 10)),
        ((3, 30, 8), "size=1x20x1 stride=1x3x1", (3, 4, 8)),
        ((2, 3, 20, 37), "size=1x1x3x3 stride=1x1x2x2 pad=0_0x0_0x1_1x1_1", (2, 3, 10, 19)),
        ((2, 23, 70), "size=1x3x5 stride=1x2x2 pad=0_0x-1_-2x-3_0", (2, 9, 32)),
        ((2, 2), "size=3x1 stride=3x1 pad=0_0x1_0", (0, 3)),
        ((3, 9, 9, 41), "size=1x2x3x2 stride=1x2x1x4 pad=0_0x1_0x0_2x3_1", (3, 5, 9, 11)),
        ((67,), "size=3 stride=1 pad=2_0", (67,)),
        ((4, 7, 1), "size=1x1x3 stride=2x1x1 pad=-1_0x0_1x1_1", (2, 8, 1)),
        ((1, 30, 33), "size=1x3x1 stride=1x1x2", (1, 28, 17)),
        ((41, 50), "size=5x5 pad=2_2x2_2", (41, 50)),
        ((1, 60, 9, 20), "size=1x3x3x1 stride=1x2x2x1 pad=0_0x0_1x0_0x0_0", (1, 30, 4, 20)),
        ((2, 53, 70), "size=1x7x9 stride=1x3x4 pad=0_0x-9_2x3_0", (2, 14, 17)),
        ((90, 33), "size=3x2 stride=7x1 pad=-40_-20x0_0", (4, 32)),
        ((2, 41, 5, 16), "size=1x2x2x1 stride=1x3x2x1 pad=0_0x3_0x0_0x0_0", (2, 15, 2, 16)),
        ((2, 41, 5, 16), "size=1x2x2x1 stride=1x2x2x1 pad=0_0x1_0x0_0x0_0", (2, 21, 2, 16)),
        ((300,), "size=21 stride=1 pad=20_0", (300,)),
        ((64, 40), "size=60x1 stride=1x1", (5, 40)),
        ((64, 6), "size=4x1 stride=3x1 pad=5_7x0_0", (25, 6)),
    ],
)
def test_pooling(
    check: Any,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
    dims: tuple[int, ...],
    window: str,
    positions: tuple[int, ...],
    threads: int,
) -> None:
    monkeypatch.setattr("xlalite.backends.codegen.kernels.planner.MIN_TASK_NS", 1.0)
    text = select_and_scatter("f32", dims, positions, window, "GE")
    arguments = [rng.standard_normal(sizes).astype(np.float32) for sizes in (dims, positions)]
    check(text, *arguments, np.float32(0), num_threads=threads, ulps=16)
    for isa in ("AVX2", "SSE2"):
        check(text, *arguments, np.float32(0), num_threads=threads, ulps=16, debug=DebugOptions(cpu_max_isa=isa))


@pytest.mark.parametrize("dtype", ["f32", "u8", "c64"])
def test_sources_come_in_the_order_of_the_windows(check: Any, rng: np.random.Generator, dtype: str) -> None:
    """What an element holds is subtracted from each source that it is given."""
    for dims, window, positions in (
        ((3, 21, 37), "size=1x3x3 stride=1x2x2 pad=0_0x1_1x1_1", (3, 11, 19)),
        ((9, 40), "size=5x4 stride=1x1", (5, 37)),
        ((9, 40), "size=5x4 stride=2x4 pad=1_2x-2_3", (4, 10)),
        ((9, 6, 17), "size=3x2x1 stride=1x1x1", (7, 5, 17)),
    ):
        how = "EQ" if dtype == "c64" else "GE"
        text = select_and_scatter(dtype, dims, positions, window, how, "subtract(b, a)")
        arguments = [rng.integers(0, 4, sizes).astype(DType(dtype).numpy) for sizes in (dims, positions)]
        check(text, *arguments, np.asarray(3).astype(DType(dtype).numpy))


def test_a_source_without_elements_needs_no_scratch_memory(check: Any, rng: np.random.Generator) -> None:
    text = select_and_scatter("f32", (2, 7), (0, 7), "size=3x3 stride=3x1 pad=-1_0x2_0", "GE")
    arguments = rng.standard_normal((2, 7), np.float32), np.zeros((0, 7), np.float32), np.float32(2)
    assert "atomicrmw" not in check(text, *arguments, use_cache=False).as_text("llvm")
