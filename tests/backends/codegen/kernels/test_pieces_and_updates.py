"""Concatenation by pieces, and updates in place whose values are computed on the way."""

from typing import Any

import numpy as np
import pytest

from xlalite.hlo.types.dtype import DType


def concatenation(dims: tuple[int, ...], along: int, sizes: tuple[int, ...], dtype: str = "f32") -> str:
    """`concatenate` of a negated, a plain, a negated, ... operand."""
    lines, pieces = [], []
    for number, size in enumerate(sizes):
        shape = f"{dtype}[{','.join(str(size if d == along else n) for d, n in enumerate(dims))}]"
        lines.append(f"  x{number} = {shape} parameter({number})")
        if number % 2 == 0:
            lines.append(f"  n{number} = {shape} negate(x{number})")
        pieces.append(f"{'x' if number % 2 else 'n'}{number}")
    result = ",".join(str(sum(sizes) if d == along else n) for d, n in enumerate(dims))
    lines.append(f"  ROOT r = {dtype}[{result}] concatenate({', '.join(pieces)}), dimensions={{{along}}}")
    return "HloModule m\nENTRY e {\n" + "\n".join(lines) + " }"


def pieces(rng: np.random.Generator, dims: tuple[int, ...], along: int, sizes: tuple[int, ...]) -> list[np.ndarray]:
    return [
        rng.standard_normal([size if d == along else n for d, n in enumerate(dims)]).astype(np.float32)
        for size in sizes
    ]


@pytest.mark.parametrize("sizes", [(5,), (3, 4), (1, 16, 17), (0, 3, 0), (40, 1, 33, 2), (5000, 3000, 1)], ids=str)
@pytest.mark.parametrize(("dims", "along"), [((0,), 0), ((0, 5), 0), ((4, 0), 1), ((2, 0, 3), 1)], ids=str)
def test_concatenation(
    check: Any, kernels: Any, rng: np.random.Generator, dims: tuple[int, ...], along: int, sizes: tuple[int, ...]
) -> None:
    executable = check(concatenation(dims, along, sizes), *pieces(rng, dims, along, sizes))
    if 0 not in sizes and len(sizes) > 1:
        assert kernels(executable) == ["concatenate"]


@pytest.mark.parametrize("threads", [1, 2])
def test_concatenation_on_threads(check: Any, rng: np.random.Generator, threads: int) -> None:
    for dims, along, sizes in [((0,), 0, (90_001, 70_003)), ((0, 700), 0, (90, 121)), ((200, 0), 1, (301, 77))]:
        check(concatenation(dims, along, sizes), *pieces(rng, dims, along, sizes), num_threads=threads)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("dims", "along"), [((0,), 0), ((0, 5), 0), ((3, 0), 1), ((2, 0, 3), 1)], ids=str)
def test_many_operands_computed_alike(
    check: Any, rng: np.random.Generator, dims: tuple[int, ...], along: int, threads: int
) -> None:
    """Of 150 operands: those that are parameters, slices with and without strides, and computed, each in a loop."""
    sizes = [(3, 20, 41)[number % 3] for number in range(150)]
    lines, arguments, names = [], [], []
    for number, size in enumerate(sizes):
        shape = ",".join(str(size if d == along else n) for d, n in enumerate(dims))
        given = tuple(2 * size + number if d == along else n + 1 for d, n in enumerate(dims))
        if number % 4 == 0:
            given = tuple(size if d == along else n for d, n in enumerate(dims))
        lines.append(f" x{number} = f32[{','.join(map(str, given))}] parameter({number})")
        arguments.append(rng.standard_normal(given).astype(np.float32))
        name = f"x{number}"
        if number % 4:
            step, start = (number % 4 + 1) // 2, number % 7 if number % 4 == 1 else 0
            ranges = [
                f"[{start}:{start + step * (size - 1) + 1}:{step}]" if d == along else f"[1:{n + 1}]"
                for d, n in enumerate(dims)
            ]
            lines.append(f" s{number} = f32[{shape}] slice(x{number}), slice={{{', '.join(ranges)}}}")
            name = f"s{number}"
        if number % 5 == 0:
            lines.append(f" n{number} = f32[{shape}] negate({name})")
            name = f"n{number}"
        names.append(name)
    result = ",".join(str(sum(sizes) if d == along else n) for d, n in enumerate(dims))
    lines.append(f" ROOT r = f32[{result}] concatenate({', '.join(names)}), dimensions={{{along}}}")
    check("HloModule m\nENTRY e {\n" + "\n".join(lines) + " }", *arguments, num_threads=threads)


@pytest.mark.parametrize("dtype", ["c64", "bf16", "pred", "s4"])
def test_many_operands_of_every_width(check: Any, kernels: Any, rng: np.random.Generator, dtype: str) -> None:
    lines = [f" p = {dtype}[300] parameter(0)"]
    lines += [f" s{number} = {dtype}[5] slice(p), slice={{[{number}:{number + 5}]}}" for number in range(200)]
    lines.append(f" ROOT r = {dtype}[1000] concatenate({', '.join(f's{i}' for i in range(200))}), dimensions={{0}}")
    argument = (rng.standard_normal(300) * 3).astype(DType.from_name(dtype).numpy)
    executable = check("HloModule m\nENTRY e {\n" + "\n".join(lines) + " }", argument)
    assert kernels(executable) == ["concatenate"]


def test_many_operands_that_are_all_different(check: Any, rng: np.random.Generator) -> None:
    """More loops than one function has."""
    dims = (0,)
    sizes = tuple(range(1, 140))
    check(concatenation(dims, 0, sizes), *pieces(rng, dims, 0, sizes))


def test_rotated_halves_are_one_kernel(check: Any, kernels: Any, rng: np.random.Generator) -> None:
    text = """HloModule m
ENTRY e { x = f32[6,20] parameter(0)
  e = f32[6,20] floor(x)
  a = f32[6,10] slice(e), slice={[0:6],[0:10]}
  b = f32[6,10] slice(e), slice={[0:6],[10:20]}
  n = f32[6,10] negate(b)
  ROOT r = f32[6,20] concatenate(n, a), dimensions={1} }"""
    assert kernels(check(text, rng.standard_normal((6, 20)).astype(np.float32))) == ["concatenate"]


def test_an_expensive_piece_that_is_spread_is_not_computed_again(check: Any, kernels: Any) -> None:
    text = """HloModule m
ENTRY e { x = f32[6] parameter(0)
  e = f32[6] exponential(x)
  s = f32[6,40] broadcast(e), dimensions={0}
  y = f32[6,3] parameter(1)
  t = f32[6,3] exponential(y)
  ROOT r = f32[6,43] concatenate(s, t), dimensions={1} }"""
    arguments = np.arange(6, dtype=np.float32) / 6, np.ones((6, 3), np.float32)
    assert kernels(check(text, *arguments, ulps=4)) == ["loop", "concatenate"]


LOOP = """HloModule m
condition { p = (s32[], f32[9,6], f32[6]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(9)
  ROOT r = pred[] compare(i, n), direction=LT }
body { p = (s32[], f32[9,6], f32[6]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[9,6] get-tuple-element(p), index=1
  h = f32[6] get-tuple-element(p), index=2
  z = s32[] constant(0)
  one = s32[] constant(1)
  j = s32[] add(i, one)
$BODY
  y = f32[9,6] dynamic-update-slice(x, u, i, z)
  ROOT r = (s32[], f32[9,6], f32[6]) tuple(j, y, h) }
ENTRY e { x = f32[9,6] parameter(0)
  h = f32[6] parameter(1)
  z = s32[] constant(0)
  t = (s32[], f32[9,6], f32[6]) tuple(z, x, h)
  ROOT r = (s32[], f32[9,6], f32[6]) while(t), condition=condition, body=body }"""

BODIES = {
    "computed from other memory": """  f = f32[] convert(i)
  b = f32[6] broadcast(f), dimensions={}
  s = f32[6] add(h, b)
  u = f32[1,6] reshape(s)""",
    "computed from the same rows": """  d = f32[1,6] dynamic-slice(x, i, z), dynamic_slice_sizes={1,6}
  u = f32[1,6] negate(d)""",
    "computed from the same rows in reverse": """  d = f32[1,6] dynamic-slice(x, i, z), dynamic_slice_sizes={1,6}
  v = f32[1,6] reverse(d), dimensions={1}
  u = f32[1,6] add(v, d)""",
    "the same rows": """  u = f32[1,6] dynamic-slice(x, i, z), dynamic_slice_sizes={1,6}""",
    "computed from other rows": """  d = f32[1,6] dynamic-slice(x, j, z), dynamic_slice_sizes={1,6}
  v = f32[1,6] reverse(d), dimensions={1}
  u = f32[1,6] negate(v)""",
    "computed from the memory under another name": """  w = f32[54] reshape(x)
  c = s32[] constant(2)
  d = f32[6] dynamic-slice(w, c), dynamic_slice_sizes={6}
  v = f32[6] negate(d)
  u = f32[1,6] reshape(v)""",
}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("optimize", [True, False])
def test_updates_in_a_loop(check: Any, kernels: Any, rng: np.random.Generator, name: str, optimize: bool) -> None:
    x, h = rng.standard_normal((9, 6)).astype(np.float32), rng.standard_normal(6).astype(np.float32)
    executable = check(LOOP.replace("$BODY", BODIES[name]), x, h, optimize=optimize)
    if name != "the same rows":  # which changes nothing and goes
        assert "update in place" in kernels(executable)


def test_what_is_written_is_computed_in_the_same_kernel(check: Any, rng: np.random.Generator) -> None:
    x, h = rng.standard_normal((9, 6)).astype(np.float32), rng.standard_normal(6).astype(np.float32)
    executable = check(LOOP.replace("$BODY", BODIES["computed from other memory"]), x, h)
    fused = [d.subject for d in executable.decisions() if d.decided_by == "fusion" and d.verdict == "fused"]
    assert {("u", "y"), ("s", "y"), ("b", "y")} <= set(fused)


def test_an_input_is_copied_and_then_updated(check: Any) -> None:
    text = """HloModule m
ENTRY e { x = f32[9,6] parameter(0)
  u = f32[2,6] parameter(1)
  i = s32[] parameter(2)
  z = s32[] constant(0)
  v = f32[2,6] exponential(u)
  y = f32[9,6] dynamic-update-slice(x, v, i, z)
  ROOT r = f32[9,6] dynamic-update-slice(y, u, z, i) }"""
    x = np.arange(54, dtype=np.float32).reshape(9, 6)
    for i in (-1, 3, 8, 100):
        check(text, x, np.ones((2, 6), np.float32), np.int32(i), ulps=2)


def test_rows_read_and_replaced_are_one_kernel(check: Any, rng: np.random.Generator) -> None:
    x, h = rng.standard_normal((9, 6)).astype(np.float32), rng.standard_normal(6).astype(np.float32)
    executable = check(LOOP.replace("$BODY", BODIES["computed from the same rows"]), x, h)
    fused = [d.subject for d in executable.decisions() if d.decided_by == "fusion" and d.verdict == "fused"]
    assert {("u", "y"), ("d", "y")} <= set(fused)


def test_rows_in_another_order_are_read_before(check: Any, rng: np.random.Generator) -> None:
    x, h = rng.standard_normal((9, 6)).astype(np.float32), rng.standard_normal(6).astype(np.float32)
    executable = check(LOOP.replace("$BODY", BODIES["computed from the same rows in reverse"]), x, h)
    fused = [d.subject for d in executable.decisions() if d.decided_by == "fusion" and d.verdict == "fused"]
    assert ("d", "y") not in fused
