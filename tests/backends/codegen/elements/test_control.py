"""Functions that branch and loop are applied to elements inside kernels; each element has its own trips."""

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.text import parse

FUNCTIONS = """HloModule m

not_one {
  s = (s32[], (s32[], pred[])) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  ROOT r = pred[] compare(n, one), direction=GT
}

next {
  s = (s32[], (s32[], pred[])) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  p = (s32[], pred[]) get-tuple-element(s), index=1
  c = s32[] get-tuple-element(p), index=0
  f = pred[] get-tuple-element(p), index=1
  one = s32[] constant(1)
  two = s32[] constant(2)
  three = s32[] constant(3)
  odd = s32[] and(n, one)
  is_odd = pred[] compare(odd, one), direction=EQ
  half = s32[] divide(n, two)
  more = s32[] multiply(n, three)
  grown = s32[] add(more, one)
  m = s32[] select(is_odd, grown, half)
  d = s32[] add(c, one)
  g = pred[] not(f)
  q = (s32[], pred[]) tuple(d, g)
  ROOT r = (s32[], (s32[], pred[])) tuple(m, q)
}

trips {
  n = s32[] parameter(0)
  zero = s32[] constant(0)
  no = pred[] constant(false)
  p = (s32[], pred[]) tuple(zero, no)
  s = (s32[], (s32[], pred[])) tuple(n, p)
  l = (s32[], (s32[], pred[])) while(s), condition=not_one, body=next
  e = (s32[], pred[]) get-tuple-element(l), index=1
  ROOT r = s32[] get-tuple-element(e), index=0
}

always {
  n = s32[] parameter(0)
  ROOT r = pred[] constant(true)
}

same {
  ROOT n = s32[] parameter(0)
}

endless {
  n = s32[] parameter(0)
  ROOT r = s32[] while(n), condition=always, body=same
}

trips_of_some {
  n = s32[] parameter(0)
  zero = s32[] constant(0)
  positive = pred[] compare(n, zero), direction=GT
  ROOT r = s32[] conditional(positive, n, n), true_computation=trips, false_computation=same
}

of_three {
  n = s32[] parameter(0)
  four = s32[] constant(4)
  k = s32[] remainder(n, four)
  ROOT r = s32[] conditional(k, n, n, n), branch_computations={same, trips, trips_of_some}
}

never_endless {
  n = s32[] parameter(0)
  big = s32[] constant(1000)
  p = pred[] compare(n, big), direction=GT
  ROOT r = s32[] conditional(p, n, n), true_computation=endless, false_computation=trips_of_some
}

not_zero {
  s = (s32[], s32[]) parameter(0)
  b = s32[] get-tuple-element(s), index=1
  zero = s32[] constant(0)
  ROOT r = pred[] compare(b, zero), direction=NE
}

remainders {
  s = (s32[], s32[]) parameter(0)
  a = s32[] get-tuple-element(s), index=0
  b = s32[] get-tuple-element(s), index=1
  c = s32[] remainder(a, b)
  ROOT r = (s32[], s32[]) tuple(b, c)
}

divisor {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  s = (s32[], s32[]) tuple(a, b)
  w = (s32[], s32[]) while(s), condition=not_zero, body=remainders
  g = s32[] get-tuple-element(w), index=0
  ROOT r = s32[] abs(g)
}

fewer_trips {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  m = s32[] call(a), to_apply=trips_of_some
  n = s32[] map(b), dimensions={}, to_apply=trips_of_some
  ROOT r = pred[] compare(m, n), direction=LT
}

fewer_trips_of_two {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT r = pred[] call(c, d), to_apply=fewer_trips
}

divisor_and_sum {
  a = s32[] parameter(0)
  i = s32[] parameter(1)
  b = s32[] parameter(2)
  j = s32[] parameter(3)
  n = s32[] call(a, b), to_apply=divisor
  k = s32[] add(i, j)
  ROOT r = (s32[], s32[]) tuple(n, k)
}
"""


def program(root: str, dims: str) -> str:
    return f"{FUNCTIONS}\nENTRY e {{\n  x = s32[{dims}] parameter(0)\n  z = s32[] constant(0)\n  ROOT {root}\n}}\n"


@pytest.mark.parametrize("dims", ["7", "3,5", "0", "1", "300"])
@pytest.mark.parametrize("function", ["trips_of_some", "of_three", "never_endless"])
def test_each_element_has_its_own_trips(function: str, dims: str) -> None:
    numbers = ",".join(map(str, range(dims.count(",") + 1)))
    text = program(f"r = s32[{dims}] map(x), dimensions={{{numbers}}}, to_apply={function}", dims)
    assert_native(text, np.arange(-2, -2 + np.prod(sizes(dims)), dtype=np.int32).reshape(sizes(dims)))


OTHERS = {
    "rows": "r = s32[3] reduce(f, z), dimensions={1}, to_apply=divisor",
    "columns": "r = s32[40] reduce(f, z), dimensions={0}, to_apply=divisor",
    "all": "r = s32[] reduce(f, z), dimensions={0,1}, to_apply=divisor",
    "none": "r = s32[3,40] reduce(x, z), dimensions={}, to_apply=divisor",
    "two": "r = (s32[3], s32[3]) reduce(f, x, z, z), dimensions={1}, to_apply=divisor_and_sum",
    "windows": "r = s32[3,39] reduce-window(f, z), window={size=2x2 pad=1_0x0_0}, to_apply=divisor",
    "cumulative": "r = s32[3,40] reduce-window(f, z), window={size=1x40 pad=0_0x39_0}, to_apply=divisor",
    "sort": "r = s32[3,40] sort(x), dimensions={1}, to_apply=fewer_trips",
    "sort of two": "r = (s32[3,40], s32[3,40]) sort(x, x), dimensions={0}, to_apply=fewer_trips_of_two",
    "scatter": """r = s32[3,40] scatter(f, i, u), update_window_dims={1}, inserted_window_dims={0},
  scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=divisor""",
    "select-and-scatter": "r = s32[3,40] select-and-scatter(x, s, z), window={size=1x2 stride=1x2}, "
    "select=fewer_trips, scatter=divisor",
    "map of a map": "r = s32[3,40] map(m), dimensions={0,1}, to_apply=trips_of_some",
}


@pytest.mark.parametrize("kind", OTHERS)
def test_all_that_applies_functions_to_elements_takes_loops(kind: str) -> None:
    before = """i = s32[4,1] constant({{0},{2},{0},{1}})
  six = s32[] constant(6)
  sixes = s32[3,40] broadcast(six), dimensions={}
  f = s32[3,40] multiply(x, sixes)
  w = s32[3,40] negate(f)
  c = s32[2,40] slice(w), slice={[0:2], [0:40]}
  u = s32[4,40] concatenate(c, c), dimensions={0}
  s = s32[3,20] slice(w), slice={[0:3], [0:40:2]}
  m = s32[3,40] map(x), dimensions={0,1}, to_apply=of_three
  """
    x = np.random.default_rng(0).permutation(np.arange(-20, 100, dtype=np.int32)).reshape(3, 40)
    head, root = program(OTHERS[kind], "3,40").rsplit("ROOT ", 1)
    assert_native(f"{head}{before}ROOT {root}", x)


@pytest.mark.parametrize("dtype", ["bf16", "c64", "f64", "pred"])
def test_loops_of_every_kind_of_register(dtype: str) -> None:
    function = """goes_on {
  s = (s32[], T[]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  ten = s32[] constant(10)
  ROOT r = pred[] compare(n, ten), direction=LT
}
step {
  s = (s32[], T[]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  x = T[] get-tuple-element(s), index=1
  three = s32[] constant(3)
  d = s32[] add(n, three)
  y = T[] OP(x, x)
  ROOT r = (s32[], T[]) tuple(d, y)
}
f {
  a = T[] parameter(0)
  zero = s32[] constant(0)
  s = (s32[], T[]) tuple(zero, a)
  w = (s32[], T[]) while(s), condition=goes_on, body=step
  ROOT r = T[] get-tuple-element(w), index=1
}
ENTRY e {
  x = T[37] parameter(0)
  ROOT r = T[37] map(x), dimensions={0}, to_apply=f
}
"""
    text = "HloModule m\n" + function.replace("T[", f"{dtype}[").replace("OP(", "xor(" if dtype == "pred" else "add(")
    assert_native(text, np.arange(37).astype(parse(text).entry_computation.root.shape.dtype.numpy))


def test_functions_look_numbers_up_in_tables() -> None:
    text = """HloModule m
f {
  a = s32[] parameter(0)
  t = s32[2,3] constant({{10, 11, 12}, {20, 21, 22}})
  zero = s32[] constant(0)
  d = s32[1,1] dynamic-slice(t, zero, a), dynamic_slice_sizes={1,1}
  ROOT r = s32[] reshape(d)
}
before {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  t = u8[8] constant({3, 1, 2, 0, 7, 6, 4, 5})
  i = s32[1] reshape(a)
  j = s32[1] reshape(b)
  x = u8[] gather(t, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=0,
    slice_sizes={1}
  y = u8[] gather(t, j), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=0,
    slice_sizes={1}
  ROOT r = pred[] compare(x, y), direction=LT
}
ENTRY e {
  x = s32[37] parameter(0)
  m = s32[37] map(x), dimensions={0}, to_apply=f
  s = s32[37] sort(x), dimensions={0}, to_apply=before
  ROOT r = (s32[37], s32[37]) tuple(m, s)
}
"""
    assert_native(text, np.random.default_rng(0).integers(-2, 12, 37, np.int32))


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16"])
def test_functions_draw_random_numbers(dtype: str) -> None:
    text = """HloModule m
f {
  a = T[] parameter(0)
  b = T[] parameter(1)
  zero = T[] constant(0)
  one = T[] constant(1)
  u = T[] rng(zero, one), distribution=rng_uniform
  ROOT r = T[] add(a, u)
}
g {
  a = T[] parameter(0)
  b = T[] parameter(1)
  zero = T[] constant(0)
  one = T[] constant(1)
  n = T[] rng(zero, one), distribution=rng_normal
  z = T[] multiply(n, zero)
  c = T[] add(b, z)
  ROOT r = T[] add(a, c)
}
ENTRY e {
  x = T[1000] parameter(0)
  zero = T[] constant(0)
  m = T[1000] map(x, x), dimensions={0}, to_apply=f
  n = T[1000] map(x, x), dimensions={0}, to_apply=f
  s = T[] reduce(x, zero), dimensions={0}, to_apply=g
  ROOT r = (T[1000], T[1000], T[]) tuple(m, n, s)
}
""".replace("T[", f"{dtype}[")
    module = parse(text)
    executable = get_backend("cpu").compile(module, CompileOptions(num_threads=2))
    assert not [d for d in executable.decisions() if d.verdict == "evaluated"]
    first, second, total = executable(np.zeros(1000, module.entry_computation.parameters[0].shape.dtype.numpy))
    assert not total
    for numbers in (first, second):
        found = numbers.astype(np.float64)
        assert found.min() >= 0
        assert found.max() < 1
        assert abs(found.mean() - 0.5) < 0.05
        assert len(np.unique(found)) > (100 if dtype == "bf16" else 990)
    assert np.mean(first == second) < 0.05


def sizes(dims: str) -> tuple[int, ...]:
    return tuple(map(int, dims.split(",")))


def assert_native(text: str, x: np.ndarray) -> None:
    executable = get_backend("cpu").compile(parse(text), CompileOptions(num_threads=2))
    assert not [d for d in executable.decisions() if d.verdict == "evaluated"]
    found, expected = executable(x), evaluate(parse(text), x)
    for one, other in zip(*((v if isinstance(v, tuple) else (v,)) for v in (found, expected)), strict=True):
        np.testing.assert_array_equal(one, other)
