"""Scatters combine every update into its element in the order of the indices, as the evaluator does."""

import random
from typing import Any

import numpy as np
import pytest
import random_windows

from xlalite.hlo.types.dtype import DType

COMBINERS = {
    "add": "ROOT r = $T[] add(a, b)",
    "assign": "ROOT r = $T[] add(b, z)",
    "maximum": "ROOT r = $T[] maximum(a, b)",
    "in order": "d = $T[] subtract(b, a)\n  ROOT r = $T[] add(d, b)",
}


def combiner(name: str, dtype: str) -> str:
    lines = f"a = $T[] parameter(0)\n  b = $T[] parameter(1)\n  z = $T[] constant(0)\n  {COMBINERS[name]}"
    return f"f {{\n  {lines} }}\n".replace("$T", dtype)


def rows(count: int, width: int, combine: str = "add") -> str:
    return f"""HloModule m
{combiner(combine, "f32")}ENTRY e {{
  x = f32[50,{width}] parameter(0)
  i = s32[{count},1] parameter(1)
  u = f32[{count},{width}] parameter(2)
  ROOT s = f32[50,{width}] scatter(x, i, u), update_window_dims={{1}}, inserted_window_dims={{0}},
    scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=f }}"""


@pytest.mark.parametrize("combine", COMBINERS)
@pytest.mark.parametrize("index_type", ["s4", "u4", "s8", "u8", "s32", "u32", "s64", "u64"])
def test_scatters_of_any_attributes(
    check: Any, kernels: Any, rng: np.random.Generator, index_type: str, combine: str
) -> None:
    chance, make = random.Random(index_type + combine), random_windows
    for dtype in (DType.S32, DType.F64, DType.U8, DType.C64):
        if dtype is DType.C64 and combine == "maximum":
            continue
        windows = make.any_windows(chance)
        text = f"""HloModule m
{combiner(combine, dtype.value)}ENTRY e {{
  x = {dtype.value}[{make.sizes(windows.operand)}] parameter(0)
  i = {index_type}[{make.sizes(windows.indices)}] parameter(1)
  u = {dtype.value}[{make.sizes(windows.result)}] parameter(2)
  ROOT s = {dtype.value}[{make.sizes(windows.operand)}] scatter(x, i, u), to_apply=f, {windows.scatter} }}"""
        executable = check(
            text,
            make.numbers(rng, dtype, windows.operand),
            make.positions(rng, DType(index_type), windows.indices),
            make.numbers(rng, dtype, windows.result),
            optimize=False,
        )
        assert kernels(executable) == ["scatter"], text


# Sums of bf16 are rounded at every step here, and once in the evaluator.
@pytest.mark.parametrize(
    ("dtype", "combine"),
    [*((dtype, combine) for dtype in ("f32", "f64", "s8") for combine in COMBINERS), ("bf16", "maximum")],
)
@pytest.mark.parametrize("width", [16, 17, 64, 100, 129])
def test_runs_of_updates_for_one_row(
    check: Any, rng: np.random.Generator, width: int, dtype: str, combine: str
) -> None:
    runs = np.repeat(rng.integers(-2, 52, 800), rng.integers(1, 9, 800))[:1500]
    rows_ = random_windows.numbers(rng, DType(dtype), (50, width))
    updates = random_windows.numbers(rng, DType(dtype), (1500, width))
    text = rows(1500, width, combine).replace("f32", dtype)
    check(text, rows_, runs.astype(np.int32)[:, None], updates, optimize=False)


@pytest.mark.parametrize("combine", COMBINERS)
@pytest.mark.parametrize("width", [6, 16, 100])
def test_one_number_for_a_row(check: Any, rng: np.random.Generator, width: int, combine: str) -> None:
    runs = np.repeat(rng.integers(-2, 52, 800), rng.integers(1, 9, 800))[:1500].astype(np.int32)
    spread = f"v = f32[1500] parameter(2)\n  u = f32[1500,{width}] broadcast(v), dimensions={{0}}"
    text = rows(1500, width, combine).replace(f"u = f32[1500,{width}] parameter(2)", spread)
    rows_, numbers = (random_windows.numbers(rng, DType.F32, dims) for dims in ((50, width), (1500,)))
    check(text, rows_, runs[:, None], numbers)


@pytest.mark.parametrize("combine", COMBINERS)
@pytest.mark.parametrize(("count", "width"), [(1, 1), (7, 3), (5, 64), (300, 65), (40, 0), (0, 5), (9000, 2)])
def test_rows_are_equal_on_any_number_of_threads(
    check: Any, rng: np.random.Generator, count: int, width: int, combine: str
) -> None:
    arguments = (
        rng.standard_normal((50, width)).astype(np.float32),
        rng.integers(-5, 55, (count, 1)).astype(np.int32),
        rng.standard_normal((count, width)).astype(np.float32),
    )
    text = rows(count, width, combine)
    one = check(text, *arguments, num_threads=1, ulps=64)(*arguments)
    for threads in (2, 5):
        again = check(text, *arguments, num_threads=threads, ulps=64)(*arguments)
        np.testing.assert_array_equal(again, one)


@pytest.mark.parametrize("combine", COMBINERS)
@pytest.mark.parametrize("dtype", ["f32", "s32", "bf16", "u8", "c64"])
@pytest.mark.parametrize("width", [1, 20])
def test_runs_of_updates_for_one_place(
    check: Any, rng: np.random.Generator, width: int, dtype: str, combine: str
) -> None:
    """Long and short ones, some out of bounds; whether a run is joined does not depend on threads."""
    if dtype == "c64" and combine == "maximum":
        return
    text = rows(3000, width, combine).replace("f32", dtype)
    indices = np.repeat(rng.integers(-2, 52, 3000), rng.integers(1, 60, 3000))[:3000].astype(np.int32)[:, None]
    kind = DType(dtype)
    numbers = rng.standard_normal((3050, width)) if dtype == "f32" else rng.integers(0, 2, (3050, width))
    arguments = (numbers[:50].astype(kind.numpy), indices, numbers[50:].astype(kind.numpy))
    exact = combine in ("assign", "maximum") or dtype != "f32"
    found = [
        check(text, *arguments, num_threads=threads, ulps=0 if exact else 512)(*arguments).tobytes()
        for threads in (1, 2, 5)
    ]
    assert found == found[:1] * 3


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("combine", COMBINERS)
@pytest.mark.parametrize(
    ("operand", "indices", "updates", "attributes"),
    [
        ((4, 50), (4, 133, 1), (4, 133), "{}, input_batching_dims={0}, scatter_indices_batching_dims={0}"),
        ((7, 50), (133, 1), (7, 133), "{0}"),
        ((1, 3, 2, 50), (99, 1), (1, 3, 2, 99), "{0,1,2}"),
        ((3, 50, 20), (3, 70, 1), (3, 70, 20), "{2}, input_batching_dims={0}, scatter_indices_batching_dims={0}"),
        ((3, 50, 3), (70, 1), (3, 70, 3), "{0,2}"),
        ((5, 50), (40, 2, 1), (5, 40, 2), "{0}"),
    ],
)
def test_parts_of_updates_in_front(
    check: Any,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
    operand: tuple[int, ...],
    indices: tuple[int, ...],
    updates: tuple[int, ...],
    attributes: str,
    combine: str,
    threads: int,
) -> None:
    """Batches, and windows that take all of the first dimensions; some updates lie outside."""
    monkeypatch.setattr("xlalite.backends.codegen.kernels.planner.MIN_TASK_NS", 1.0)
    along = operand.index(50)
    text = f"""HloModule m
{combiner(combine, "f32")}ENTRY e {{
  x = f32[{random_windows.sizes(operand)}] parameter(0)
  i = s32[{random_windows.sizes(indices)}] parameter(1)
  u = f32[{random_windows.sizes(updates)}] parameter(2)
  ROOT s = f32[{random_windows.sizes(operand)}] scatter(x, i, u), to_apply=f, inserted_window_dims={{{along}}},
    scatter_dims_to_operand_dims={{{along}}}, index_vector_dim={len(indices) - 1}, update_window_dims={attributes} }}"""
    places = rng.integers(-1, 51, indices).astype(np.int32)
    numbers = (rng.integers(-3, 4, each).astype(np.float32) for each in (operand, updates))
    old, new = numbers
    check(text, old, places, new, num_threads=threads)
    check(text, old, np.sort(places.clip(0, 49) // 7, axis=-2), new, num_threads=threads)


def test_several_arrays_are_updated_together(check: Any, kernels: Any, rng: np.random.Generator) -> None:
    """The second result follows the larger of the first."""
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
  x = f32[9,5] parameter(0)
  y = s32[9,5] parameter(1)
  i = s32[30,1] parameter(2)
  u = f32[30,5] parameter(3)
  v = s32[30,5] parameter(4)
  ROOT s = (f32[9,5], s32[9,5]) scatter(x, y, i, u, v), update_window_dims={1}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f }"""
    executable = check(
        text,
        rng.standard_normal((9, 5)).astype(np.float32),
        rng.integers(0, 99, (9, 5)).astype(np.int32),
        rng.integers(-2, 11, (30, 1)).astype(np.int32),
        rng.standard_normal((30, 5)).astype(np.float32),
        rng.integers(0, 99, (30, 5)).astype(np.int32),
    )
    assert kernels(executable) == ["scatter"]


def test_a_histogram(check: Any, kernels: Any, rng: np.random.Generator) -> None:
    text = """HloModule m
f { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = s32[] add(a, b) }
ENTRY e {
  i = s32[10000] parameter(0)
  z = s32[] constant(0)
  x = s32[256] broadcast(z), dimensions={}
  o = s32[] constant(1)
  u = s32[10000] broadcast(o), dimensions={}
  ROOT s = s32[256] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f }"""
    executable = check(text, rng.integers(-10, 300, 10000).astype(np.int32))
    assert kernels(executable) == ["scatter"]


def test_a_scalar_is_updated_by_all(check: Any, rng: np.random.Generator) -> None:
    text = """HloModule m
f { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = s32[] multiply(a, b) }
ENTRY e {
  x = s32[] parameter(0)
  i = s32[7,0] parameter(1)
  u = s32[7] parameter(2)
  ROOT s = s32[] scatter(x, i, u), update_window_dims={}, inserted_window_dims={}, scatter_dims_to_operand_dims={},
    index_vector_dim=1, to_apply=f }"""
    check(text, np.int32(3), np.zeros((7, 0), np.int32), rng.integers(1, 5, 7).astype(np.int32))


def test_in_a_loop_the_array_is_updated_where_it_lies(check: Any, rng: np.random.Generator) -> None:
    text = """HloModule m
f { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
body { s = (s32[], f32[40,8], f32[3,8]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  x = f32[40,8] get-tuple-element(s), index=1
  u = f32[3,8] get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(n, one)
  t = s32[3] iota(), iota_dimension=0
  b = s32[3] broadcast(n), dimensions={}
  i = s32[3] multiply(t, b)
  y = f32[40,8] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0},
    index_vector_dim=1, to_apply=f
  ROOT r = (s32[], f32[40,8], f32[3,8]) tuple(next, y, u) }
cond { s = (s32[], f32[40,8], f32[3,8]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  k = s32[] constant(25)
  ROOT c = pred[] compare(n, k), direction=LT }
ENTRY e {
  z = s32[] constant(0)
  x = f32[40,8] parameter(0)
  u = f32[3,8] parameter(1)
  t = (s32[], f32[40,8], f32[3,8]) tuple(z, x, u)
  w = (s32[], f32[40,8], f32[3,8]) while(t), condition=cond, body=body
  ROOT g = f32[40,8] get-tuple-element(w), index=1 }"""
    x, u = (rng.standard_normal(dims).astype(np.float32) for dims in ((40, 8), (3, 8)))
    executable = check(text, x, u, ulps=32)
    assert executable.as_text("hlo").count(" copy(") <= 1


@pytest.mark.parametrize("combine", COMBINERS)
def test_scatters_compute_what_they_are_given(check: Any, kernels: Any, rng: np.random.Generator, combine: str) -> None:
    """Zeros, indices and updates of any attributes are computed in the kernel, indices where windows are wide."""
    chance, make, alone = random.Random(combine), random_windows, 0
    for _ in range(12):
        windows = make.any_windows(chance)
        whole, at, part = (make.sizes(dims) for dims in (windows.operand, windows.indices, windows.result))
        text = f"""HloModule m
{combiner(combine, "f32")}ENTRY e {{
  zero = f32[] parameter(0)
  x = f32[{whole}] broadcast(zero), dimensions={{}}
  i = s32[{at}] parameter(1)
  j = s32[{at}] negate(i)
  u = f32[{part}] parameter(2)
  v = f32[{part}] parameter(3)
  w = f32[{part}] multiply(u, v)
  ROOT s = f32[{whole}] scatter(x, j, w), to_apply=f, {windows.scatter} }}"""
        executable = check(
            text,
            np.float32(0.5),
            -make.positions(rng, DType.S32, windows.indices),
            make.numbers(rng, DType.F32, windows.result),
            make.numbers(rng, DType.F32, windows.result),
            ulps=4,
        )
        alone += kernels(executable) == ["scatter"]
    assert alone > 1


@pytest.mark.parametrize("source", ["u", "x"])
def test_a_loop_updates_in_place_what_updates_are_computed_from(
    check: Any, rng: np.random.Generator, source: str
) -> None:
    """Updates that need what they update are computed before the first of them is combined in."""
    text = f"""HloModule m
{combiner("add", "f32")}body {{
  state = (s32[], f32[50,6], f32[50,6], s32[9,1]) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  one = s32[] constant(1)
  next = s32[] add(n, one)
  x = f32[50,6] get-tuple-element(state), index=1
  u = f32[50,6] get-tuple-element(state), index=2
  i = s32[9,1] get-tuple-element(state), index=3
  shift = s32[9,1] broadcast(n), dimensions={{}}
  at = s32[9,1] add(i, shift)
  rows = f32[9,6] slice({source}), slice={{[1:10], [0:6]}}
  weight = f32[] convert(n)
  weights = f32[9,6] broadcast(weight), dimensions={{}}
  part = f32[9,6] multiply(rows, weights)
  new = f32[50,6] scatter(x, at, part), update_window_dims={{1}}, inserted_window_dims={{0}},
    scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=f
  ROOT t = (s32[], f32[50,6], f32[50,6], s32[9,1]) tuple(next, new, u, i)
}}
condition {{
  state = (s32[], f32[50,6], f32[50,6], s32[9,1]) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  limit = s32[] constant(5)
  ROOT less = pred[] compare(n, limit), direction=LT
}}
ENTRY e {{
  zero = s32[] constant(0)
  x = f32[50,6] parameter(0)
  u = f32[50,6] parameter(1)
  i = s32[9,1] parameter(2)
  start = (s32[], f32[50,6], f32[50,6], s32[9,1]) tuple(zero, x, u, i)
  loop = (s32[], f32[50,6], f32[50,6], s32[9,1]) while(start), condition=condition, body=body
  ROOT result = f32[50,6] get-tuple-element(loop), index=1 }}"""
    executable = check(
        text,
        rng.standard_normal((50, 6)).astype(np.float32),
        rng.standard_normal((50, 6)).astype(np.float32),
        rng.integers(-1, 12, (9, 1)).astype(np.int32),
        ulps=4,
    )
    copied = [d.subject[0] for d in executable.decisions() if d.decided_by == "copy-insertion"]
    assert not [name for name in copied if name.startswith("new")]


def test_a_small_update_in_place_is_not_split(compile_text: Any) -> None:
    text = """HloModule m
f { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[9000,64] parameter(0)
  t = f32[9000,64] tanh(x)
  i = s32[2,1] parameter(1)
  u = f32[2,64] parameter(2)
  y = f32[9000,64] scatter(t, i, u), update_window_dims={1}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f
  ROOT s = (f32[9000,64]) tuple(y) }"""
    executable = compile_text(text, num_threads=2)
    (decision,) = [d for d in executable.decisions() if d.verdict == "scatter"]
    assert decision.numbers["tasks"] == 1
