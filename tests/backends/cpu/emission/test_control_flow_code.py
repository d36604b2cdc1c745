"""Loops, branches and calls as native control flow, and the memory they share."""

from typing import Any

import numpy as np
import pytest

COUNT = """HloModule count
condition { p = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant($N)
  ROOT r = pred[] compare(i, n), direction=LT }
body { p = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[4] get-tuple-element(p), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[4] add(x, x)
  ROOT r = (s32[], f32[4]) tuple(j, y) }
ENTRY e { i = s32[] parameter(0)
  x = f32[4] parameter(1)
  t = (s32[], f32[4]) tuple(i, x)
  ROOT r = (s32[], f32[4]) while(t), condition=condition, body=body }"""

X = np.array([1, -2, 3, 0.5], np.float32)


@pytest.mark.parametrize("start", [0, 3, 4, 9])
@pytest.mark.parametrize("optimize", [True, False])
def test_loop_trips(check: Any, start: int, optimize: bool) -> None:
    check(COUNT.replace("$N", "4"), np.int32(start), X, optimize=optimize)


FLAG = """HloModule flag
condition { p = (s32[], pred[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  goes_on = pred[] get-tuple-element(p), index=1
  n = s32[] constant(2)
  c = pred[] compare(i, n), direction=LT
  ROOT r = pred[] and(c, goes_on) }
body { p = (s32[], pred[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  yes = pred[] constant(true)
  ROOT r = (s32[], pred[]) tuple(j, yes) }
ENTRY e { i = s32[] parameter(0)
  q = pred[] parameter(1)
  t = (s32[], pred[]) tuple(i, q)
  ROOT r = (s32[], pred[]) while(t), condition=condition, body=body }"""


@pytest.mark.parametrize("start", [0, 2])
@pytest.mark.parametrize("goes_on", [True, False])
@pytest.mark.parametrize("optimize", [True, False])
def test_a_condition_does_not_overwrite_state_that_the_body_never_reads(
    check: Any, start: int, goes_on: bool, optimize: bool
) -> None:
    check(FLAG, np.int32(start), np.bool_(goes_on), optimize=optimize)


SWAP = """HloModule swap
condition { p = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT r = pred[] compare(i, n), direction=LT }
body { p = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[4] get-tuple-element(p), index=1
  y = f32[4] get-tuple-element(p), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT r = (s32[], f32[4], f32[4]) tuple(j, y, x) }
ENTRY e { x = f32[4] parameter(0)
  z = s32[] constant(0)
  y = f32[4] negate(x)
  t = (s32[], f32[4], f32[4]) tuple(z, x, y)
  ROOT r = (s32[], f32[4], f32[4]) while(t), condition=condition, body=body }"""


@pytest.mark.parametrize("optimize", [True, False])
def test_a_body_that_swaps_its_state(check: Any, optimize: bool) -> None:
    check(SWAP, X, optimize=optimize)


ROTATE = """HloModule rotate
condition { p = (s32[], f32[4], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(4)
  ROOT r = pred[] compare(i, n), direction=LT }
body { p = (s32[], f32[4], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[4] get-tuple-element(p), index=1
  y = f32[4] get-tuple-element(p), index=2
  z = f32[4] get-tuple-element(p), index=3
  one = s32[] constant(1)
  j = s32[] add(i, one)
  s = f32[4] add(x, z)
  ROOT r = (s32[], f32[4], f32[4], f32[4]) tuple(j, y, s, y) }
ENTRY e { x = f32[4] parameter(0)
  z = s32[] constant(0)
  t = (s32[], f32[4], f32[4], f32[4]) tuple(z, x, x, x)
  ROOT r = (s32[], f32[4], f32[4], f32[4]) while(t), condition=condition, body=body }"""


@pytest.mark.parametrize("optimize", [True, False])
def test_a_body_that_returns_one_value_twice(check: Any, optimize: bool) -> None:
    check(ROTATE, X, optimize=optimize)


NESTED = """HloModule nested
inner_condition { p = (s32[], f32[4], s32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] get-tuple-element(p), index=2
  ROOT r = pred[] compare(i, n), direction=LT }
inner_body { p = (s32[], f32[4], s32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[4] get-tuple-element(p), index=1
  n = s32[] get-tuple-element(p), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  f = f32[] convert(j)
  fb = f32[4] broadcast(f), dimensions={}
  y = f32[4] add(x, fb)
  ROOT r = (s32[], f32[4], s32[]) tuple(j, y, n) }
outer_condition { p = (s32[], (f32[4], f32[4])) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(4)
  ROOT r = pred[] compare(i, n), direction=LT }
outer_body { p = (s32[], (f32[4], f32[4])) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  q = (f32[4], f32[4]) get-tuple-element(p), index=1
  x = f32[4] get-tuple-element(q), index=0
  y = f32[4] get-tuple-element(q), index=1
  zero = s32[] constant(0)
  t = (s32[], f32[4], s32[]) tuple(zero, x, i)
  w = (s32[], f32[4], s32[]) while(t), condition=inner_condition, body=inner_body
  z = f32[4] get-tuple-element(w), index=1
  s = f32[4] subtract(z, y)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  u = (f32[4], f32[4]) tuple(s, x)
  ROOT r = (s32[], (f32[4], f32[4])) tuple(j, u) }
ENTRY e { x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  zero = s32[] constant(0)
  q = (f32[4], f32[4]) tuple(x, y)
  t = (s32[], (f32[4], f32[4])) tuple(zero, q)
  ROOT w = (s32[], (f32[4], f32[4])) while(t), condition=outer_condition, body=outer_body }"""


@pytest.mark.parametrize("optimize", [True, False])
def test_nested_loops_over_nested_tuples(check: Any, optimize: bool) -> None:
    check(NESTED, X, X[::-1].copy(), optimize=optimize)


def indexed(count: int) -> str:
    branches = "".join(
        f"b{n} {{ x = f32[4] parameter(0)\n  k = f32[] constant({n + 2})\n  kb = f32[4] broadcast(k), dimensions={{}}\n"
        f"  ROOT r = f32[4] multiply(x, kb) }}\n"
        for n in range(count)
    )
    names, operands = ", ".join(f"b{n}" for n in range(count)), ", ".join("x" for _ in range(count))
    return f"""HloModule m
{branches}ENTRY e {{ i = s32[] parameter(0)
  x = f32[4] parameter(1)
  ROOT r = f32[4] conditional(i, {operands}), branch_computations={{{names}}} }}"""


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("index", [-(2**31), -1, 0, 1, 2, 3, 2**31 - 1])
def test_an_index_out_of_range_takes_the_last_branch(check: Any, count: int, index: int) -> None:
    check(indexed(count), np.int32(index), X)


BRANCHES = """HloModule m
yes { p = (f32[4], f32[4]) parameter(0)
  a = f32[4] get-tuple-element(p), index=0
  b = f32[4] get-tuple-element(p), index=1
  ROOT r = (f32[4], f32[4]) tuple(b, a) }
no { p = (f32[4], f32[4]) parameter(0)
  a = f32[4] get-tuple-element(p), index=0
  ROOT r = (f32[4], f32[4]) tuple(a, a) }
ENTRY e { c = pred[] parameter(0)
  x = f32[4] parameter(1)
  y = f32[4] negate(x)
  t = (f32[4], f32[4]) tuple(x, y)
  r = (f32[4], f32[4]) conditional(c, t, t), true_computation=yes, false_computation=no
  a = f32[4] get-tuple-element(r), index=0
  b = f32[4] get-tuple-element(r), index=1
  s = f32[4] subtract(a, b)
  ROOT o = (f32[4], f32[4], f32[4], f32[4]) tuple(s, a, x, y) }"""


@pytest.mark.parametrize("taken", [True, False])
@pytest.mark.parametrize("optimize", [True, False])
def test_branches_that_swap_or_repeat_their_operands(check: Any, taken: bool, optimize: bool) -> None:
    check(BRANCHES, np.bool_(taken), X, optimize=optimize)


CALLS = """HloModule m
square { x = f32[4] parameter(0)
  ROOT r = f32[4] multiply(x, x) }
twice { x = f32[4] parameter(0)
  a = f32[4] call(x), to_apply=square
  b = f32[4] call(a), to_apply=square
  ROOT r = (f32[4], f32[4], f32[4]) tuple(b, x, a) }
ENTRY e { x = f32[4] parameter(0)
  a = (f32[4], f32[4], f32[4]) call(x), to_apply=twice
  b = f32[4] get-tuple-element(a), index=0
  ROOT r = (f32[4], (f32[4], f32[4], f32[4])) call(b), to_apply=outer }"""


@pytest.mark.parametrize("optimize", [True, False])
def test_calls_of_calls(check: Any, optimize: bool) -> None:
    text = CALLS.replace(
        "ENTRY",
        """outer { y = f32[4] parameter(0)
  t = (f32[4], f32[4], f32[4]) call(y), to_apply=twice
  n = f32[4] negate(y)
  ROOT r = (f32[4], (f32[4], f32[4], f32[4])) tuple(n, t) }
ENTRY""",
    )
    check(text, X, optimize=optimize)


UPDATES = """HloModule updates
condition { p = (s32[], f32[6,5], f32[2,5]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(9)
  ROOT r = pred[] compare(i, n), direction=LT }
body { p = (s32[], f32[6,5], f32[2,5]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[6,5] get-tuple-element(p), index=1
  u = f32[2,5] get-tuple-element(p), index=2
  zero = s32[] constant(0)
  old = f32[2,5] dynamic-slice(x, i, zero), dynamic_slice_sizes={2,5}
  s = f32[2,5] add(old, u)
  y = f32[6,5] dynamic-update-slice(x, s, i, zero)
  two = s32[] constant(2)
  j = s32[] add(i, two)
  ROOT r = (s32[], f32[6,5], f32[2,5]) tuple(j, y, s) }
ENTRY e { i = s32[] parameter(0)
  x = f32[6,5] parameter(1)
  u = f32[2,5] parameter(2)
  t = (s32[], f32[6,5], f32[2,5]) tuple(i, x, u)
  ROOT r = (s32[], f32[6,5], f32[2,5]) while(t), condition=condition, body=body }"""


@pytest.mark.parametrize("start", [-7, -1, 0, 1, 8])
@pytest.mark.parametrize("optimize", [True, False])
def test_updates_in_a_loop_clamp_and_happen_in_place(
    check: Any, kernels: Any, rng: np.random.Generator, start: int, optimize: bool
) -> None:
    x, u = (rng.standard_normal(dims).astype(np.float32) for dims in ((6, 5), (2, 5)))
    executable = check(UPDATES, np.int32(start), x, u, optimize=optimize)
    assert "update in place" in kernels(executable)


@pytest.mark.parametrize("start_type", ["s8", "u8", "s64", "u64", "u32"])
@pytest.mark.parametrize("start", [0, 3, 200, 255])
def test_starts_of_every_type_clamp(check: Any, start_type: str, start: int) -> None:
    text = f"""HloModule m
ENTRY e {{ x = f32[9,4] parameter(0)
  i = {start_type}[] parameter(1)
  j = {start_type}[] parameter(2)
  u = f32[2,3] dynamic-slice(x, i, j), dynamic_slice_sizes={{2,3}}
  n = f32[2,3] negate(u)
  y = f32[9,4] dynamic-update-slice(x, n, j, i)
  ROOT r = (f32[2,3], f32[9,4]) tuple(u, y) }}"""
    numpy_type = {"s8": np.int8, "u8": np.uint8, "s64": np.int64, "u64": np.uint64, "u32": np.uint32}[start_type]
    x = np.arange(36, dtype=np.float32).reshape(9, 4)
    i = np.asarray(start).astype(numpy_type)
    check(text, x, i, np.asarray(1).astype(numpy_type))
    if numpy_type is np.uint64:
        check(text, x, np.uint64(2**64 - 1), np.uint64(2**63))


DONATED = """HloModule donated, input_output_alias={ {1}: (0, {}, may-alias) }
ENTRY e { x = f32[6] parameter(0)
  y = f32[6] parameter(1)
  s = f32[6] add(x, y)
  r = f32[6] reverse(x), dimensions={0}
  ROOT t = (f32[6], f32[6]) tuple(r, s) }"""


def test_a_donated_input_is_the_result(compile_text: Any) -> None:
    x, y = np.arange(6, dtype=np.float32), np.ones(6, np.float32)
    reversed_, total = compile_text(DONATED, donate_arguments=True)(x, y)
    assert total is x
    np.testing.assert_array_equal(total, np.arange(6) + 1)
    np.testing.assert_array_equal(reversed_, np.arange(6)[::-1])


def test_a_read_only_or_repeated_donation_is_copied(compile_text: Any) -> None:
    x, y = np.arange(6, dtype=np.float32), np.ones(6, np.float32)
    x.flags.writeable = False
    executable = compile_text(DONATED, donate_arguments=True)
    _, total = executable(x, y)
    np.testing.assert_array_equal(x, np.arange(6))
    np.testing.assert_array_equal(total, np.arange(6) + 1)
    _, total = executable(y, y)
    np.testing.assert_array_equal(y, 1)
    np.testing.assert_array_equal(total, 2)


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("kind", ["may-alias", "must-alias"])
def test_nothing_is_donated_unless_asked_for(compile_text: Any, kind: str, optimize: bool) -> None:
    executable = compile_text(DONATED.replace("may-alias", kind), optimize=optimize)
    x, y = np.arange(6, dtype=np.float32), np.ones(6, np.float32)
    reversed_, total = executable(x, y)
    assert not np.may_share_memory(total, x)
    np.testing.assert_array_equal(x, np.arange(6))
    np.testing.assert_array_equal(total, np.arange(6) + 1)
    np.testing.assert_array_equal(reversed_, np.arange(6)[::-1])
    assert executable.memory_analysis().alias_size_bytes == 0
    assert "input_output_alias" in executable.as_text("hlo")


def test_a_donated_parameter_that_is_a_result_is_left_alone(compile_text: Any) -> None:
    """As a training step looks in a dump: the new value of one parameter is another parameter."""
    text = """HloModule step, input_output_alias={ {0}: (1, {}, may-alias) }, buffer_donor={ (0, {}) }
ENTRY e { a = f32[2] parameter(0)
  b = f32[2] parameter(1)
  ROOT t = (f32[2], f32[2]) tuple(a, b) }"""
    a, b = np.array([1, 2], np.float32), np.array([3, 4], np.float32)
    new, old = compile_text(text)(a, b)
    assert (a.tolist(), b.tolist(), new.tolist(), old.tolist()) == ([1, 2], [3, 4], [1, 2], [3, 4])
    assert not any(np.may_share_memory(one, other) for one in (new, old) for other in (a, b))


RENAMED = """HloModule m
f { p = f32[40,4] parameter(0)
  q = f32[160] parameter(1)
  r = f32[160] reverse(q), dimensions={0}
  s = f32[40,4] reshape(r)
  ROOT a = f32[40,4] subtract(p, s) }
ENTRY e { x = f32[40,4] parameter(0)
  y = f32[40,4] negate(x)
  z = f32[160] reshape(y)
  w = f32[40,4] fusion(y, z), kind=kLoop, calls=f
  u = f32[4,40] transpose(w), dimensions={1,0}
  ROOT n = f32[4,40] negate(u) }"""


@pytest.mark.parametrize("optimize", [True, False])
def test_memory_read_under_another_name_is_not_overwritten(
    check: Any, rng: np.random.Generator, optimize: bool
) -> None:
    check(RENAMED, rng.standard_normal((40, 4)).astype(np.float32), optimize=optimize)
