"""Reductions of arrays that lie on one another: which are done element by element, and that they are the same."""

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.hlo import evaluate, parse
from xlalite.hlo.ir.module import HloModule
from xlalite.passes.pipelines import simplification

FUNCTIONS = """
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
narrow { a = bf16[] parameter(0)  b = bf16[] parameter(1)  ROOT r = bf16[] add(a, b) }
largest { a = bf16[] parameter(0)  b = bf16[] parameter(1)  ROOT r = bf16[] maximum(a, b) }
later {
  v = f32[] parameter(0)
  p = s32[] parameter(1)
  w = f32[] parameter(2)
  q = s32[] parameter(3)
  more = pred[] compare(w, v), direction=GE
  value = f32[] select(more, w, v)
  place = s32[] select(more, q, p)
  ROOT r = (f32[], s32[]) tuple(value, place)
}
"""

STACKS = {
    "the outermost": "c = f32[3,4,5] concatenate(x, y, x), dimensions={0} | f32[4,5] reduce(c, z), dimensions={0}",
    "the minor": """v = f32[4,5,1] reshape(x)
        w = f32[4,5,1] reshape(y)
        c = f32[4,5,2] concatenate(v, w), dimensions={2} | f32[4,5] reduce(c, z), dimensions={2}""",
    "what is computed of all": """c = f32[2,4,5] concatenate(x, y), dimensions={0}
        m = f32[4,5] reshape(x)
        n = f32[2,4,5] broadcast(m), dimensions={1,2}
        i = f32[2,4,5] iota(), iota_dimension=0
        d = f32[2,4,5] subtract(c, n)
        s = f32[2,4,5] multiply(d, d)
        t = f32[2,4,5] multiply(s, i) | f32[4,5] reduce(t, z), dimensions={0}""",
    "scalars": """v = f32[1,1,1] slice(x), slice={[0:1],[0:1],[0:1]}
        w = f32[1] reshape(v)
        c = f32[2] concatenate(w, w), dimensions={0} | f32[] reduce(c, z), dimensions={0}""",
    "nothing": """v = f32[1,0,5] slice(x), slice={[0:1],[2:2],[0:5]}
        c = f32[2,0,5] concatenate(v, v), dimensions={0} | f32[0,5] reduce(c, z), dimensions={0}""",
}

OTHERS = {
    "pieces of several": "c = f32[6,4,5] concatenate(u, u, u), dimensions={0} | f32[4,5] reduce(c, z), dimensions={0}",
    "another dimension": "c = f32[1,8,5] concatenate(x, y), dimensions={1} | f32[1,8] reduce(c, z), dimensions={2}",
    "two dimensions": "c = f32[2,4,5] concatenate(x, y), dimensions={0} | f32[4] reduce(c, z), dimensions={0,2}",
    "what others use as well": """c = f32[2,4,5] concatenate(x, y), dimensions={0}
        s = f32[2,4,5] sine(c)
        n = f32[2,4,5] negate(s)
        r = f32[4,5] reduce(s, z), dimensions={0}, to_apply=add
        q = f32[4,5] reduce(n, z), dimensions={0}, to_apply=add
        o = f32[1,4,5] slice(s), slice={[0:1],[0:4],[0:5]}
        k = f32[4,5] reshape(o)
        h = f32[4,5] add(r, q)
        g = f32[4,5] add(h, k)
        e = f32[1,4,5] reshape(g) | f32[4,5] reduce(e, z), dimensions={0}""",
}


def module_of(body: str) -> HloModule:
    lines, _, result = body.partition(" | ")
    return parse(f"""HloModule m{FUNCTIONS}
ENTRY e {{
  x = f32[1,4,5] parameter(0)
  y = f32[1,4,5] parameter(1)
  u = f32[2,4,5] parameter(2)
  z = f32[] constant(3)
  {lines}
  ROOT root = {result}, to_apply=add
}}""")


def given(module: HloModule) -> list[np.ndarray]:
    chance = np.random.default_rng(0)
    return [chance.standard_normal(p.shape.dims).astype(np.float32) for p in module.entry_computation.parameters]


def reduces(module: HloModule) -> int:
    simplification().run(module)
    return sum(one.opcode == "reduce" for one in module.entry_computation.instructions)


@pytest.mark.parametrize("body", STACKS.values(), ids=STACKS)
def test_stacks_are_reduced_element_by_element(body: str) -> None:
    module = module_of(body)
    arrays = given(module)
    expected = np.asarray(evaluate(module, *arrays))
    executable = get_backend("cpu").compile(module, CompileOptions(use_cache=False))
    assert reduces(module) == 0
    np.testing.assert_allclose(np.asarray(evaluate(module, *arrays)), expected, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(executable(*arrays)), expected, rtol=1e-6)


@pytest.mark.parametrize("body", OTHERS.values(), ids=OTHERS)
def test_others_are_not(body: str) -> None:
    assert reduces(module_of(body)) > 0


def test_places_of_the_largest() -> None:
    module = parse(f"""HloModule m{FUNCTIONS}
ENTRY e {{
  x = f32[1,9] parameter(0)
  y = f32[1,9] parameter(1)
  c = f32[3,9] concatenate(x, y, x), dimensions={{0}}
  i = s32[3,9] iota(), iota_dimension=0
  z = f32[] constant(-inf)
  n = s32[] constant(-1)
  ROOT r = (f32[9], s32[9]) reduce(c, i, z, n), dimensions={{0}}, to_apply=later
}}""")
    x = np.array([[1, 2, 3, np.nan, 5, -np.inf, 0, -0.0, 9]], np.float32)
    y = np.array([[2, 1, 3, 4, np.nan, -np.inf, -0.0, 0, np.inf]], np.float32)
    values, places = evaluate(module, x, y)
    assert reduces(module) == 0
    found = evaluate(module, x, y)
    np.testing.assert_array_equal(found[0], values)
    np.testing.assert_array_equal(found[1], places)


@pytest.mark.parametrize(("function", "count"), [("narrow", 1), ("largest", 0)])
def test_sums_of_a_narrow_type_are_rounded_once(function: str, count: int) -> None:
    module = parse(f"""HloModule m{FUNCTIONS}
ENTRY e {{
  x = bf16[1,9] parameter(0)
  c = bf16[4,9] concatenate(x, x, x, x), dimensions={{0}}
  z = bf16[] constant(1)
  ROOT r = bf16[9] reduce(c, z), dimensions={{0}}, to_apply={function}
}}""")
    assert reduces(module) == count
