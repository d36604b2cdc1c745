"""`xlalite shrink`."""

from collections.abc import Callable
from pathlib import Path

from xlalite.hlo.text import parse

# The interpreter and the compiled code draw different numbers, so every module with `rng` differs.
DRAWS = """\
  x = f32[4] parameter(0)
  a = f32[] constant(0)
  b = f32[] constant(1)
  r = f32[4] rng(a, b), distribution=rng_uniform
  s = f32[4] add(r, x)
  n = f32[4] negate(s)
  ROOT t = (f32[4], f32[4]) tuple(n, x)"""


def test_prints_what_still_differs(hlo_file: Callable[..., Path], xlalite: Callable[..., object]) -> None:
    ran = xlalite("shrink", hlo_file(DRAWS), "--trials=5")
    assert ran.code == 1
    smallest = parse(ran.out).entry_computation
    assert "rng" in [instruction.opcode for instruction in smallest.instructions]
    assert len(smallest) < 7
    assert "gives other results" in ran.err


def test_nothing_to_find(softmax: Path, xlalite: Callable[..., object]) -> None:
    ran = xlalite("shrink", softmax)
    assert ran.code == 0
    assert "there is nothing to find" in ran.out


def test_bounds_are_those_of_run(hlo_file: Callable[..., Path], xlalite: Callable[..., object]) -> None:
    ran = xlalite("shrink", hlo_file(DRAWS), "--abs_error_bound=9")
    assert (ran.code, ran.err) == (0, "")
    assert "there is nothing to find" in ran.out


def test_tuples_cannot_be_given(hlo_file: Callable[..., Path], xlalite: Callable[..., object]) -> None:
    ran = xlalite("shrink", hlo_file("  ROOT p = (f32[], f32[]) parameter(0)"))
    assert ran.code == 2
    assert "a parameter is no array" in ran.err
