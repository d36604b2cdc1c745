"""Gathers read their operand in place, inside loops and row kernels, and find what the evaluator finds."""

import random
from typing import Any

import numpy as np
import pytest

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


def lists(numbers: list[int]) -> str:
    return "{" + ",".join(map(str, numbers)) + "}"


def any_gather(chance: random.Random, dtype: str, index_type: str) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    """A gather of any attributes, the sizes of its operand and of its indices."""
    operand = [chance.choice((1, 3, 4, 17)) for _ in range(chance.randint(1, 4))]
    roles = [chance.choice(("collapsed", "window", "window", "batching")) for _ in operand]
    windows = [1 if role != "window" else chance.randint(1, size) for role, size in zip(roles, operand, strict=True)]
    addressed = [d for d, role in enumerate(roles) if role != "batching" and chance.random() < 0.7]
    chance.shuffle(addressed)
    batch = [chance.choice((1, 2, 5, 19)) for _ in range(chance.randint(0, 2))]
    batching = [d for d, role in enumerate(roles) if role == "batching"]
    positions = list(range(len(batch) + len(batching)))
    chance.shuffle(positions)
    taken = positions[: len(batching)]
    rest = iter(batch)
    sizes = [operand[batching[taken.index(p)]] if p in taken else next(rest) for p in range(len(positions))]
    vector_dim = chance.randint(0, len(sizes))
    indices = list(sizes)
    along = list(taken)
    if len(addressed) != 1 or vector_dim < len(sizes) or chance.random() < 0.5:
        indices.insert(vector_dim, len(addressed))
        along = [p + (p >= vector_dim) for p in taken]
    kept = [windows[d] for d, role in enumerate(roles) if role == "window"]
    offset = sorted(chance.sample(range(len(sizes) + len(kept)), len(kept)))
    inner, outer = iter(kept), iter(sizes)
    result = [next(inner) if d in offset else next(outer) for d in range(len(sizes) + len(kept))]
    shape = ",".join(map(str, result))
    text = f"""HloModule m
ENTRY e {{
  x = {dtype}[{",".join(map(str, operand))}] parameter(0)
  i = {index_type}[{",".join(map(str, indices))}] parameter(1)
  ROOT g = {dtype}[{shape}] gather(x, i), offset_dims={lists(offset)}, start_index_map={lists(addressed)},
    collapsed_slice_dims={lists([d for d, role in enumerate(roles) if role == "collapsed"])},
    operand_batching_dims={lists(batching)}, start_indices_batching_dims={lists(along)},
    index_vector_dim={vector_dim}, slice_sizes={lists(windows)} }}"""
    return text, tuple(operand), tuple(indices)


def numbers(rng: np.random.Generator, dtype: DType, sizes: tuple[int, ...]) -> np.ndarray:
    return rng.integers(0, 100, sizes).astype(dtype.numpy)


def positions(rng: np.random.Generator, dtype: DType, sizes: tuple[int, ...]) -> np.ndarray:
    """Mostly in bounds, some beyond both ends, some as far as the type goes."""
    near = rng.integers(0 if not dtype.is_signed else -3, 7, sizes)
    lowest = -(2 ** (dtype.bits - 1)) if dtype.is_signed else 0
    far = rng.choice(np.array([lowest, lowest + 2**dtype.bits - 1], object), sizes)
    return np.where(rng.random(sizes) < 0.1, far, near.astype(object)).astype(dtype.numpy)


@pytest.mark.parametrize("index_type", ["s4", "u4", "s8", "u8", "s32", "u32", "s64", "u64"])
def test_gathers_of_any_attributes(check: Any, kernels: Any, rng: np.random.Generator, index_type: str) -> None:
    chance = random.Random(index_type)
    for dtype in (DType.F32, DType.S8, DType.C64, DType.BF16, DType.PRED):
        text, operand, indices = any_gather(chance, dtype.value, index_type)
        index = positions(rng, DType(index_type), indices)
        executable = check(text, numbers(rng, dtype, operand), index, optimize=False)
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
