"""Functions with loops that are applied to elements become loops over arrays; each element has its own trips."""

from typing import Any

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.text import parse
from xlalite.passes.normalization.element_loop_expander import ElementLoopExpander

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

longer {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  m = s32[] map(b), dimensions={}, to_apply=trips_of_some
  ROOT r = s32[] maximum(a, m)
}

largest_two {
  a = s32[] parameter(0)
  i = s32[] parameter(1)
  b = s32[] parameter(2)
  j = s32[] parameter(3)
  m = s32[] call(b), to_apply=trips_of_some
  n = s32[] maximum(a, m)
  k = s32[] add(i, j)
  ROOT r = (s32[], s32[]) tuple(n, k)
}
"""


def program(root: str, dims: str) -> str:
    return f"{FUNCTIONS}\nENTRY e {{\n  x = s32[{dims}] parameter(0)\n  z = s32[] constant(0)\n  ROOT {root}\n}}\n"


@pytest.mark.parametrize("dims", ["7", "3,5", "0", "1"])
@pytest.mark.parametrize("function", ["trips_of_some", "of_three", "never_endless"])
def test_each_element_has_its_own_trips(function: str, dims: str, transform: Any) -> None:
    numbers = ",".join(map(str, range(dims.count(",") + 1)))
    text = program(f"r = s32[{dims}] map(x), dimensions={{{numbers}}}, to_apply={function}", dims)
    result = transform(ElementLoopExpander(), text)
    assert "map" not in result.opcodes
    x = np.arange(-2, -2 + np.prod(sizes(dims)), dtype=np.int32).reshape(sizes(dims))
    np.testing.assert_array_equal(evaluate(result.module, x), evaluate(parse(text), x))
    assert_native(text, x)


REDUCES = {
    "rows": "r = s32[3] reduce(x, z), dimensions={1}, to_apply=longer",
    "columns": "r = s32[5] reduce(x, z), dimensions={0}, to_apply=longer",
    "all": "r = s32[] reduce(x, z), dimensions={0,1}, to_apply=longer",
    "none": "r = s32[3,5] reduce(x, z), dimensions={}, to_apply=longer",
    "two": "r = (s32[3], s32[3]) reduce(x, x, z, z), dimensions={1}, to_apply=largest_two",
}


@pytest.mark.parametrize("kind", REDUCES)
def test_a_reduce_is_a_scan(kind: str, transform: Any) -> None:
    text = program(REDUCES[kind], "3,5")
    result = transform(ElementLoopExpander(), text)
    assert "scan" in {one.opcode for one in result.module.entry_computation.instructions}
    assert_native(text, np.arange(-3, 12, dtype=np.int32).reshape(3, 5))


@pytest.mark.parametrize(
    "function",
    [
        "f {\n  a = s32[] parameter(0)\n  ROOT r = s32[] negate(a)\n}",
        "f {\n  a = s32[] parameter(0)\n  b = s32[] call(a), to_apply=trips\n"
        '  ROOT r = s32[] custom-call(b), custom_call_target="noise"\n}',
    ],
)
def test_functions_without_loops_and_with_effects_stay(function: str, transform: Any) -> None:
    text = program("r = s32[7] map(x), dimensions={0}, to_apply=f", "7").replace("\nENTRY", f"\n{function}\n\nENTRY")
    result = transform(ElementLoopExpander(), text, evaluated=False)
    assert "map" in {one.opcode for one in result.module.entry_computation.instructions}


def sizes(dims: str) -> tuple[int, ...]:
    return tuple(map(int, dims.split(",")))


def assert_native(text: str, x: np.ndarray) -> None:
    executable = get_backend("cpu").compile(parse(text), CompileOptions(num_threads=2))
    assert not [d for d in executable.decisions() if d.verdict == "evaluated"]
    found, expected = executable(x), evaluate(parse(text), x)
    for one, other in zip(*((v if isinstance(v, tuple) else (v,)) for v in (found, expected)), strict=True):
        np.testing.assert_array_equal(one, other)
