"""Gathers read their operand in place, inside loops and row kernels, and find what the evaluator finds."""

import random
from typing import Any

import numpy as np
import pytest
import random_windows

from xlalite.hlo.types.dtype import DType

ROWS = "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,%d}"
"""Rows of a table, one for each index vector of one component."""


def rows(lines: str, count: int, width: int, dtype: str = "f32") -> str:
    return f"""HloModule m
ENTRY e {{
  table = {dtype}[50,{width}] parameter(0)
  at = s32[{count},1] parameter(1)
  g = {dtype}[{count},{width}] gather(table, at), {ROWS % width}
  {lines} }}"""


@pytest.mark.parametrize("index_type", ["s4", "u4", "s8", "u8", "s32", "u32", "s64", "u64"])
def test_gathers_of_any_attributes(check: Any, kernels: Any, rng: np.random.Generator, index_type: str) -> None:
    chance, make = random.Random(index_type), random_windows
    for dtype in (DType.F32, DType.S8, DType.C64, DType.BF16, DType.PRED):
        windows = make.any_windows(chance)
        text = f"""HloModule m
ENTRY e {{
  x = {dtype.value}[{make.sizes(windows.operand)}] parameter(0)
  i = {index_type}[{make.sizes(windows.indices)}] parameter(1)
  ROOT g = {dtype.value}[{make.sizes(windows.result)}] gather(x, i), {windows.gather} }}"""
        index = make.positions(rng, DType(index_type), windows.indices)
        executable = check(text, make.numbers(rng, dtype, windows.operand), index, optimize=False)
        assert kernels(executable) == ["loop"], text


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("count", "width"), [(1, 1), (7, 3), (5, 64), (300, 65), (40, 0), (0, 5)])
def test_rows_of_a_table(check: Any, rng: np.random.Generator, count: int, width: int, threads: int) -> None:
    table = rng.standard_normal((50, width)).astype(np.float32)
    at = rng.integers(-5, 55, (count, 1)).astype(np.int32)
    check(rows("ROOT r = add(g, g)", count, width), table, at, num_threads=threads)


def test_a_dropped_dimension_without_elements_gives_zeros(check: Any) -> None:
    text = """HloModule m
ENTRY e {
  x = f32[0,3] parameter(0)
  i = s32[4,1] parameter(1)
  ROOT g = f32[4,3] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1,
    slice_sizes={0,3} }"""
    check(text, np.zeros((0, 3), np.float32), np.zeros((4, 1), np.int32))


def test_what_computes_the_indices_and_reads_the_rows_shares_the_kernel(
    check: Any, kernels: Any, rng: np.random.Generator
) -> None:
    text = """HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY e {
  table = f32[50,33] parameter(0)
  given = s32[6] parameter(1)
  zero = s32[] constant(0)
  zeros = s32[6] broadcast(zero), dimensions={}
  size = s32[] constant(50)
  sizes = s32[6] broadcast(size), dimensions={}
  negative = pred[6] compare(given, zeros), direction=LT
  wrapped = s32[6] add(given, sizes)
  chosen = s32[6] select(negative, wrapped, given)
  at = s32[6,1] reshape(chosen)
  g = f32[6,33] gather(table, at), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1,
    slice_sizes={1,33}
  e = f32[6,33] exponential(g)
  z = f32[] constant(0)
  s = f32[6] reduce(e, z), dimensions={1}, to_apply=add
  b = f32[6,33] broadcast(s), dimensions={0}
  ROOT r = f32[6,33] divide(e, b) }"""
    table = rng.standard_normal((50, 33)).astype(np.float32)
    executable = check(text, table, np.array([-1, 3, 0, 49, -50, 7], np.int32), ulps=8)
    assert kernels(executable) == ["row"]


def test_an_expensive_table_is_not_computed_again_for_each_row(check: Any, kernels: Any, rng: Any) -> None:
    text = rows("ROOT r = negate(g)", 400, 16).replace("gather(table, at)", "gather(t, at)")
    text = text.replace("  at =", "  t = f32[50,16] tanh(table)\n  at =")
    table = rng.standard_normal((50, 16)).astype(np.float32)
    executable = check(text, table, rng.integers(0, 50, (400, 1)).astype(np.int32), ulps=4)
    assert kernels(executable) == ["loop", "loop"]
