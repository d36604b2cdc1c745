"""Scalars between kernels: in registers where only the entry needs them, in memory for whoever else does."""

from collections.abc import Callable

import numpy as np
import pytest

from xlalite.backends.base import Executable
from xlalite.backends.cpu.emission import step_chunks
from xlalite.hlo import parse

LOOP = """HloModule loop
{computations}
condition {{
  s = {state} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(7)
  ROOT c = pred[] compare(i, n), direction=LT
}}
body {{
  s = {state} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
{body}
}}
ENTRY main {{
  zero = s32[] constant(0)
{entry}
  l = {state} while(t), condition=condition, body=body
  ROOT r = {result} get-tuple-element(l), index={index}
}}"""

SCALARS = LOOP.format(
    computations="",
    state="(s32[], {t}[], {t}[])",
    body="""  x = {t}[] get-tuple-element(s), index=1
  y = {t}[] get-tuple-element(s), index=2
  z = {t}[] multiply(x, y)
  ROOT r = (s32[], {t}[], {t}[]) tuple(j, z, x)""",
    entry="""  a = {t}[] parameter(0)
  b = {t}[] parameter(1)
  t = (s32[], {t}[], {t}[]) tuple(zero, a, b)""",
    result="{t}[]",
    index=2,
)

KERNELS = LOOP.format(
    computations="add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }",
    state="(s32[], f32[], f32[7,50])",
    body="""  x = f32[] get-tuple-element(s), index=1
  a = f32[7,50] get-tuple-element(s), index=2
  z = s32[] constant(0)
  row = f32[1,50] dynamic-slice(a, i, z), dynamic_slice_sizes={1,50}
  zero = f32[] constant(0)
  total = f32[] reduce(row, zero), dimensions={0,1}, to_apply=add
  y = f32[] add(x, total)
  one_y = f32[1] reshape(y)
  two = f32[1] add(one_y, one_y)
  back = f32[] reshape(two)
  b = f32[7,50] broadcast(back), dimensions={}
  little = f32[] constant(0.001)
  littles = f32[7,50] broadcast(little), dimensions={}
  scaled = f32[7,50] multiply(b, littles)
  c = f32[7,50] add(a, scaled)
  ROOT r = (s32[], f32[], f32[7,50]) tuple(j, y, c)""",
    entry="""  x = f32[] parameter(0)
  a = f32[7,50] parameter(1)
  t = (s32[], f32[], f32[7,50]) tuple(zero, x, a)""",
    result="f32[7,50]",
    index=2,
)

CELLS = LOOP.format(
    computations="",
    state="(s32[], {t}[1], {t}[7], {t}[1,7])",
    body="""  x = {t}[1] get-tuple-element(s), index=1
  a = {t}[7] get-tuple-element(s), index=2
  out = {t}[1,7] get-tuple-element(s), index=3
  one_a = {t}[1] dynamic-slice(a, i), dynamic_slice_sizes={1}
  y = {t}[1] add(x, one_a)
  cell = {t}[1,1] reshape(y)
  n = s32[] constant(7)
  place = s32[] subtract(n, i)
  nil = s32[] constant(0)
  more = {t}[1,7] dynamic-update-slice(out, cell, nil, place)
  ROOT r = (s32[], {t}[1], {t}[7], {t}[1,7]) tuple(j, y, a, more)""",
    entry="""  x = {t}[1] parameter(0)
  a = {t}[7] parameter(1)
  out = {t}[1,7] parameter(2)
  t = (s32[], {t}[1], {t}[7], {t}[1,7]) tuple(zero, x, a, out)""",
    result="{t}[1,7]",
    index=3,
)
"""Each step reads an element of an array and puts one into another, from behind; the first place is clamped."""

BRANCHES = LOOP.format(
    computations="""half { p = s32[] parameter(0)
  two = s32[] constant(2)
  ROOT h = s32[] divide(p, two) }
triple { p = s32[] parameter(0)
  three = s32[] constant(3)
  one = s32[] constant(1)
  q = s32[] multiply(p, three)
  ROOT h = s32[] add(q, one) }""",
    state="(s32[], s32[])",
    body="""  x = s32[] get-tuple-element(s), index=1
  bit = s32[] and(x, one)
  odd = pred[] compare(bit, one), direction=EQ
  y = s32[] conditional(odd, x, x), true_computation=triple, false_computation=half
  ROOT r = (s32[], s32[]) tuple(j, y)""",
    entry="""  a = s32[] parameter(0)
  t = (s32[], s32[]) tuple(zero, a)""",
    result="s32[]",
    index=1,
)


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "s8", "u64"])
def test_scalars_of_loops_have_no_memory(dtype: str, check: Callable[..., Executable]) -> None:
    text = SCALARS.replace("{t}", dtype)
    numpy = parse(text).entry_computation.parameters[0].shape.dtype.numpy
    code = check(text, np.array(3, numpy), np.array(2, numpy), use_cache=False).as_text("llvm")
    assert "alloca" not in code
    assert code.count("store") == 1


@pytest.mark.parametrize("dtype", ["f32", "s4", "bf16", "u64", "c64", "c128"])
def test_elements_of_arrays_need_no_kernels(dtype: str, check: Callable[..., Executable]) -> None:
    text = CELLS.replace("{t}", dtype)
    numpy = parse(text).entry_computation.parameters[0].shape.dtype.numpy
    arrays = np.array([1], numpy), np.arange(7).astype(numpy), np.full((1, 7), 3, numpy)
    code = check(text, *arrays, use_cache=False).as_text("llvm")
    assert "kernel.copy.out" in code
    assert "kernel.y" not in code
    assert "kernel.more" not in code


def test_arrays_of_one_element_have_any_rank(check: Callable[..., Executable]) -> None:
    constants = "a = f32[1,1] constant({{3}})\n b = s8[1] constant({5})"
    check(f"HloModule m\nENTRY e {{\n {constants}\n ROOT r = (f32[1,1], s8[1]) tuple(a, b)\n}}")


@pytest.mark.parametrize("dtype", ["pred", "s4", "c64", "c128", "f8e5m2"])
def test_scalars_of_any_type(dtype: str, check: Callable[..., Executable]) -> None:
    text = SCALARS.replace("{t}", dtype).replace("multiply(x, y)", "and(x, y)" if dtype == "pred" else "add(x, y)")
    numpy = parse(text).entry_computation.parameters[0].shape.dtype.numpy
    check(text, np.array(1, numpy), np.array(2, numpy))


@pytest.mark.parametrize("threads", [1, 2])
def test_kernels_and_the_entry_see_the_same_scalars(
    threads: int, check: Callable[..., Executable], rng: np.random.Generator
) -> None:
    a = rng.standard_normal((7, 50)).astype(np.float32)
    check(KERNELS, np.array(0.5, np.float32), a, ulps=100, num_threads=threads)


@pytest.mark.parametrize("start", [27, -5, 0])
def test_branches_and_the_loop_see_the_same_scalars(start: int, check: Callable[..., Executable]) -> None:
    check(BRANCHES, np.array(start, np.int32))


def test_inner_loops_and_the_outer_one_see_the_same_scalars(check: Callable[..., Executable]) -> None:
    state = "(s32[], s32[], s32[])"
    outer = f"""outer {{
  s = {state} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = s32[] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  t = (s32[], s32[]) tuple(i, x)
  l = (s32[], s32[]) while(t), condition=condition, body=body
  y = s32[] get-tuple-element(l), index=1
  ROOT r = {state} tuple(j, y, x)
}}
outer_condition {{
  s = {state} parameter(0)
  x = s32[] get-tuple-element(s), index=1
  y = s32[] get-tuple-element(s), index=2
  sum = s32[] add(x, y)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(900)
  five = s32[] constant(5)
  small = pred[] compare(sum, n), direction=LT
  early = pred[] compare(i, five), direction=LT
  ROOT c = pred[] and(small, early)
}}
ENTRY main {{
  zero = s32[] constant(0)
  a = s32[] parameter(0)
  o = {state} tuple(zero, a, a)
  p = {state} while(o), condition=outer_condition, body=outer
  x = s32[] get-tuple-element(p), index=1
  y = s32[] get-tuple-element(p), index=2
  ROOT r = (s32[], s32[], s32[]) tuple(y, x, x)
}}"""
    for start in (27, 1000):
        check(BRANCHES.split("ENTRY")[0] + outer, np.array(start, np.int32))


def test_programs_of_several_functions_keep_scalars_in_memory(
    check: Callable[..., Executable], rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_chunks, "_WEIGHT_OF_FUNCTION", 2)
    a = rng.standard_normal((7, 50)).astype(np.float32)
    executable = check(KERNELS, np.array(0.5, np.float32), a, ulps=100, use_cache=False)
    assert "@part" in executable.as_text("llvm")
