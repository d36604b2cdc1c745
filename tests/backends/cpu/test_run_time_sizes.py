"""Sizes known only at run time: compiled programs give what the evaluator gives, and what XLA gives."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, Executable, get_backend
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.errors import ArgumentError, EvaluationError, XlaliteError
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ops import OPS
from xlalite.hlo.text import parse
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape
from xlalite.hlo.types.window import Window, WindowDimension
from xlalite.hlo.verification.verifier import verify

FUNCTIONS = """HloModule m
add { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT r = f32[] add(p, q) }
less { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT r = pred[] compare(p, q), direction=LT }
larger { v = f32[] parameter(0)
  i = s32[] parameter(1)
  w = f32[] parameter(2)
  j = s32[] parameter(3)
  above = pred[] compare(v, w), direction=GT
  same = pred[] compare(v, w), direction=EQ
  before = pred[] compare(i, j), direction=LT
  first = pred[] and(same, before)
  left = pred[] or(above, first)
  value = f32[] select(left, v, w)
  place = s32[] select(left, i, j)
  ROOT t = (f32[], s32[]) tuple(value, place) }
negated { p = f32[3,<=5] parameter(0)
  ROOT q = f32[3,<=5] negate(p) }
kept { ROOT p = f32[3,<=5] parameter(0) }
more { s = (s32[], f32[3,<=5]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  three = s32[] constant(3)
  ROOT r = pred[] compare(i, three), direction=LT }
doubled { s = (s32[], f32[3,<=5]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[3,<=5] get-tuple-element(s), index=1
  y = f32[3,<=5] add(x, x)
  ROOT t = (s32[], f32[3,<=5]) tuple(j, y) }
"""
ENTRY = """ENTRY e {
  a = f32[3,5] parameter(0)
  b = f32[3,5] parameter(1)
  n = s32[] parameter(2)
  m = s32[] parameter(3)
  z = f32[] constant(0)
  one = s32[] constant(1)
  x = f32[3,<=5] set-dimension-size(a, n), dimensions={1}
  y = f32[3,<=5] set-dimension-size(b, m), dimensions={1}
"""
# The result `r` and what it needs, from x with n columns and y with m; `=` is before its shape.
CASES = {
    "sum of all": "r = f32[] reduce(x, z), dimensions={0,1}, to_apply=add",
    "sum of rows": "r = f32[3] reduce(x, z), dimensions={1}, to_apply=add",
    "sum of columns": "r = f32[<=5] reduce(x, z), dimensions={0}, to_apply=add",
    "the smaller of two": "r = f32[3,<=5] add(x, y)",
    "one of them static": "r = f32[3,<=5] multiply(b, x)",
    "three operands": "p = pred[3,5] compare(a, b), direction=LT\n  r = f32[3,<=5] select(p, y, x)",
    "a filled array": "f = f32[3,5] broadcast(one_f), dimensions={}\n  r = f32[3,<=5] add(f, x)",
    "reshape": "r = f32[<=15] reshape(x)",
    "reshape and sum": "s = f32[<=15] reshape(x)\n  r = f32[] reduce(s, z), dimensions={0}, to_apply=add",
    "transpose": "r = f32[<=5,3] transpose(x), dimensions={1,0}",
    "broadcast": "r = f32[2,3,<=5] broadcast(x), dimensions={1,2}",
    "concatenate across": "w = f32[3,<=5] set-dimension-size(b, n), dimensions={1}\n"
    "  r = f32[6,<=5] concatenate(x, w), dimensions={0}",
    "concatenate along": "r = f32[3,<=10] concatenate(x, b), dimensions={1}",
    "slice": "r = f32[2,<=5] slice(x), slice={[0:2], [0:5]}",
    "slice behind": "r = f32[3,1] slice(x), slice={[0:3], [2:3]}",
    "place of the largest": "i = s32[3,5] iota(), iota_dimension=1\n"
    "  k = s32[3,<=5] set-dimension-size(i, n), dimensions={1}\n"
    "  l = f32[] constant(-inf)\n  o = s32[] constant(0)\n"
    "  t = (f32[3], s32[3]) reduce(x, k, l, o), dimensions={1}, to_apply=larger\n"
    "  r = s32[3] get-tuple-element(t), index=1",
    "places in columns": "i = s32[3,5] iota(), iota_dimension=0\n"
    "  k = s32[3,<=5] set-dimension-size(i, n), dimensions={1}\n"
    "  l = f32[] constant(-inf)\n  o = s32[] constant(0)\n"
    "  t = (f32[<=5], s32[<=5]) reduce(x, k, l, o), dimensions={0}, to_apply=larger\n"
    "  r = s32[<=5] get-tuple-element(t), index=1",
    "reverse": "r = f32[3,<=5] reverse(x), dimensions={1}",
    "pad": "r = f32[3,<=8] pad(x, z), padding=0_0x1_2",
    "product": "t = f32[<=5,3] transpose(y), dimensions={1,0}\n"
    "  r = f32[3,3] dot(x, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "product of two sizes": "r = f32[<=5,<=5] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
    "sort": "r = f32[3,<=5] sort(x), dimensions={1}, to_apply=less",
    "size": "r = s32[] get-dimension-size(x), dimensions={1}",
    "window": "r = f32[3,<=4] reduce-window(x, z), window={size=1x2}, to_apply=add",
    "dynamic slice": "r = f32[2,<=5] dynamic-slice(x, one, one), dynamic_slice_sizes={2,5}",
    "update": "u = f32[2,1] constant({{7}, {8}})\n  r = f32[3,<=5] dynamic-update-slice(x, u, one, one)",
    "gather": "i = s32[2] constant({0, 2})\n  r = f32[2,<=5] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, "
    "start_index_map={0}, index_vector_dim=1, slice_sizes={1,5}",
    "gather at a few": "i = s32[5] constant({0, 2, 1, 1, 0})\n  k = s32[<=5] set-dimension-size(i, n), dimensions={0}\n"
    "  r = f32[<=5,5] gather(a, k), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
    "index_vector_dim=1, slice_sizes={1,5}",
    "branches": "c = pred[] compare(n, m), direction=LT\n"
    "  r = f32[3,<=5] conditional(c, x, y), true_computation=negated, false_computation=kept",
    "loop": "i = s32[] constant(0)\n  t = (s32[], f32[3,<=5]) tuple(i, x)\n"
    "  w = (s32[], f32[3,<=5]) while(t), condition=more, body=doubled\n"
    "  r = f32[3,<=5] get-tuple-element(w), index=1",
    "back through a size": "k = s32[] get-dimension-size(x), dimensions={1}\n  l = s32[] subtract(k, one)\n"
    "  r = f32[3,<=5] set-dimension-size(x, l), dimensions={1}",
    "two groups": "s = f32[3] reduce(x, z), dimensions={1}, to_apply=add\n  c = f32[3,5] broadcast(s), dimensions={0}\n"
    "  d = f32[3,<=5] set-dimension-size(c, m), dimensions={1}\n"
    "  r = f32[3] reduce(d, z), dimensions={1}, to_apply=add",
}
BEYOND_XLA = {
    "slice of a few": "r = f32[3,2] slice(x), slice={[0:3], [0:3:2]}",
    "cumulative": "r = f32[3,<=5] reduce-window(x, z), window={size=1x5 pad=0_0x4_0}, to_apply=add",
    "dynamic slice of a few": "r = f32[2,2] dynamic-slice(x, one, m), dynamic_slice_sizes={2,2}",
}
"""What makes XLA end the process."""
SIZES = [(3, 4), (5, 2), (1, 5), (2, 2), (0, 3), (4, 0)]
A = (np.arange(15, dtype=np.float32) * 7 % 11).reshape(3, 5)
B = 10 * A[::-1] + 1


def program(case: str) -> str:
    """The module that gives the case's result; where it has run-time sizes, behind it all of them."""
    body = (CASES | BEYOND_XLA)[case].replace("one_f", "f1") + "\n"
    last = body.strip().splitlines()[-1]
    shape = last.split(" = ")[1].split(" ")[0]
    names, shapes = ["r"], [shape]
    for dimension in range(shape.count(",") + 1 if "<=" in shape else 0):
        body += f"  size.{dimension} = s32[] get-dimension-size(r), dimensions={{{dimension}}}\n"
        names.append(f"size.{dimension}")
        shapes.append("s32[]")
    tuples = f"  ROOT result = ({', '.join(shapes)}) tuple({', '.join(names)})\n}}\n"
    return f"{FUNCTIONS}{ENTRY}  f1 = f32[] constant(1)\n  {body}{tuples}"


@pytest.mark.parametrize("optimize", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", [*CASES, *BEYOND_XLA])
def test_compiled_programs_agree_with_the_evaluator(case: str, optimize: bool) -> None:
    module = parse(program(case))
    executable = get_backend("cpu").compile(module, CompileOptions(optimize=optimize))
    for n, m in SIZES:
        found = require_agreement(module, executable, n, m)
        assert not found[1:] or found[0].shape == tuple(found[1:])


def require_agreement(module: HloModule, executable: Executable, n: int, m: int) -> Any:
    """The same values, or the same error; gives what was found."""
    arguments = (A, B, np.int32(n), np.int32(m))
    try:
        expected = evaluate(module, *arguments)
    except EvaluationError as error:
        with pytest.raises(XlaliteError, match=re.escape(str(error))):
            executable(*arguments)
        return ()
    found = executable(*arguments)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, err_msg=str(module))
    return found


@pytest.mark.oracle
@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_evaluator_agrees_with_xla(case: str, run_with_xla: Callable[..., list[np.ndarray]]) -> None:
    text = program(case)
    for n, m in SIZES[:2]:
        arguments = (A, B, np.int32(n), np.int32(m))
        result, *sizes = evaluate(parse(text), *arguments)
        found, *found_sizes = run_with_xla(text, *arguments)
        assert [int(size) for size in found_sizes] == [int(size) for size in sizes]
        # XLA puts the elements one behind the other into the memory of the largest size.
        np.testing.assert_allclose(found.reshape(-1)[: result.size].reshape(result.shape), result)


def compiled(text: str) -> Callable[..., Any]:
    return get_backend("cpu").compile(parse(text), CompileOptions())


NESTED = """HloModule m, input_output_alias={ {0}: (1, {}, may-alias) }
ENTRY e {
  t = (f32[<=4], f32[2]) parameter(0)
  u = f32[2] parameter(1)
  x = f32[<=4] get-tuple-element(t), index=0
  y = f32[2] get-tuple-element(t), index=1
  d = f32[<=4] add(x, x)
  v = f32[2] add(y, u)
  k = token[] after-all()
  i = (f32[<=4], token[]) tuple(d, k)
  ROOT r = (f32[2], (f32[<=4], token[])) tuple(v, i)
}
"""


@pytest.mark.parametrize("size", range(5))
def test_parameters_and_results_have_the_sizes_of_the_call(size: int) -> None:
    x, two = np.arange(size, dtype=np.float32), np.array([1, 2], np.float32)
    v, (d, _) = compiled(NESTED)((x, two), two)
    np.testing.assert_array_equal(d, 2 * x)
    np.testing.assert_array_equal(v, [2, 4])
    np.testing.assert_array_equal(two, [1, 2])


def test_one_array_is_one_result() -> None:
    negate = compiled("HloModule m\nENTRY e {\n  x = bf16[<=3,2] parameter(0)\n  ROOT r = bf16[<=3,2] negate(x)\n}\n")
    x = np.ones((2, 2), negate.program_shape.parameters[0].dtype.numpy)
    np.testing.assert_array_equal(negate(x), -x)
    with pytest.raises(ArgumentError, match=r"argument 0 is bf16\[4,2\]; expected bf16\[<=3,2\]"):
        negate(np.ones((4, 2), x.dtype))
    with pytest.raises(ArgumentError, match=r"argument 0 is f32\[2,2\]; expected"):
        negate(np.ones((2, 2), np.float32))
    with pytest.raises(ArgumentError, match="found 2 arguments, expected 1"):
        negate(x, x)


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
def test_sizes_that_do_not_fit_are_named(backend: str) -> None:
    text = program("slice").replace(
        "f32[2,<=5] slice(x), slice={[0:2], [0:5]}", "f32[3,2] slice(x), slice={[0:3], [1:3]}"
    )
    text = text[: text.index("  size.0")] + "  ROOT t = f32[3,2] copy(r)\n}\n"
    run = get_backend(backend).compile(parse(text), CompileOptions())
    np.testing.assert_array_equal(run(A, B, np.int32(3), np.int32(3)), A[:, 1:3])
    with pytest.raises(XlaliteError, match=r"slice: operands of the run-time sizes \[3, 2\] give \[3, 1\], expected"):
        run(A, B, np.int32(2), np.int32(3))
    with pytest.raises(XlaliteError, match=r"set-dimension-size: size 6 of dimension 1 is not in \[0, 5\]"):
        run(A, B, np.int32(6), np.int32(3))


def test_what_has_known_sizes_is_compiled(kernels: Any, compile_text: Any) -> None:
    text = program("sum of rows").replace(
        "ROOT result = (f32[3]) tuple(r)", "e = f32[3] exponential(r)\n  ROOT t = (f32[3]) tuple(e)"
    )
    found = kernels(compile_text(text))
    # What the evaluator would refuse is the only thing that it is asked for.
    assert sorted(found) == [*["loop"] * (len(found) - 2), "refused", "row"]


STEPS = ("negate", "add", "transpose", "reverse", "pad", "concatenate", "sort", "window", "cut", "dot")


def random_program(chance: random.Random) -> HloModule:
    """A few operations on arrays of which one or two dimensions have run-time sizes, and the sum of what comes out."""
    b = Builder("random")
    given = [b.parameter(Shape.array(DType.F32, (3, 5))) for _ in range(2)]
    sizes = [b.parameter(Shape.array(DType.S32)) for _ in range(2)]
    zero, one = b.constant(0, DType.F32), b.constant(1, DType.S32)
    less = b.subcomputation("less", (zero.shape, zero.shape), lambda inner, p: inner.compare(p[0], p[1], "LT"))
    minor = attrs("set-dimension-size", dimensions=(1,))
    x, y = (b.op("set-dimension-size", pair, minor) for pair in zip(given, sizes, strict=True))
    if chance.random() < 0.4:
        two = b.op("minimum", (sizes[0], b.constant(3, DType.S32)))
        x = b.op("set-dimension-size", (x, two), attrs("set-dimension-size", dimensions=(0,)))

    def step(value: Handle) -> Handle:
        rank = value.shape.rank
        along = chance.randrange(rank)
        kind = chance.choice(STEPS)
        if kind == "add":
            return value + (y if value.shape == y.shape else value)
        if kind == "transpose":
            return b.transpose(value, chance.sample(range(rank), rank))
        if kind == "reverse":
            return b.reverse(value, (along,))
        if kind == "pad":
            low, high, interior = chance.choice((0, 1, -1)), chance.choice((0, 2, -1)), chance.choice((0, 1))
            ends = [(low, high, interior) if d == along else (0, 0, 0) for d in range(rank)]
            return b.pad(value, b.constant(7, DType.F32), ends)
        if kind == "concatenate":
            return b.concatenate((value, -value), along)
        if kind == "sort":
            return b.op("sort", (value,), attrs("sort", dimensions=(along,)), (less,))
        if kind == "window":
            window = Window(
                tuple(WindowDimension(2 if d == along else 1, pad_low=int(d == along)) for d in range(rank))
            )
            return b.op("reduce-window", (value, zero), attrs("reduce-window", window=window), (add,))
        if kind == "cut" and value.shape.dynamic and value.shape.dynamic[along]:
            size = b.op("get-dimension-size", (value,), attrs("get-dimension-size", dimensions=(along,)))
            less_one = b.op("maximum", (size - one, b.constant(0, DType.S32)))
            return b.op("set-dimension-size", (value, less_one), attrs("set-dimension-size", dimensions=(along,)))
        if kind == "dot":
            both = attrs("dot", lhs_contracting_dims=(along,), rhs_contracting_dims=(along,))
            return b.op("dot", (value, value), both)
        return -value

    add = b.scalar_function("add", DType.F32)
    for _ in range(chance.randint(1, 4)):
        following = step(x)
        if following.shape.rank and following.shape.element_count <= 400 and min(following.dims) > 0:
            x = following
    kept = [b.op("get-dimension-size", (x,), attrs("get-dimension-size", dimensions=(d,))) for d in range(x.shape.rank)]
    some = chance.sample(range(x.shape.rank), chance.randint(0, x.shape.rank))
    return b.build_module(b.tuple([b.reduce(x, 0, some, add), x, *kept]))


def attrs(opcode: str, **fields: object) -> object:
    return OPS[opcode].attrs(**fields)


@pytest.mark.parametrize("seed", range(24))
def test_random_programs_agree_with_the_evaluator(seed: int) -> None:
    module = random_program(random.Random(seed))
    verify(module)
    executable = get_backend("cpu").compile(module, CompileOptions(use_cache=False))
    for n, m in ((3, 4), (5, 5), (1, 2), (0, 3), (4, 0)):
        require_agreement(module, executable, n, m)
