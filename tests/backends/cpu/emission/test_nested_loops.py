"""Loops in loops, many deep: native functions of a bounded number of loops, and no recursion on the way to them."""

import re

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.hlo.text import parse

_STATE = "(s32[], s32[], f32[4])"


def nest(depth: int) -> str:
    """Loops of as many trips as the first parameter says; each runs the loop inside it, or doubles an array."""
    computations = []
    for level in range(depth):
        opened = f"s = {_STATE} parameter(0)\n i = s32[] get-tuple-element(s), index=0\n"
        opened += " n = s32[] get-tuple-element(s), index=1\n"
        computations.append(f"c{level} {{ {opened} ROOT r = pred[] compare(i, n), direction=LT }}")
        inside = f"q = {_STATE} tuple(z, n, x)\n w = {_STATE} while(q), condition=c{level - 1}, body=b{level - 1}\n"
        step = f"{inside} y = f32[4] get-tuple-element(w), index=2" if level else "y = f32[4] add(x, x)"
        opened += " x = f32[4] get-tuple-element(s), index=2\n z = s32[] constant(0)\n one = s32[] constant(1)\n"
        computations.append(
            f"b{level} {{ {opened} j = s32[] add(i, one)\n {step}\n ROOT t = {_STATE} tuple(j, n, y) }}"
        )
    last = f"condition=c{depth - 1}, body=b{depth - 1}"
    entry = f"n = s32[] parameter(0)\n x = f32[4] parameter(1)\n z = s32[] constant(0)\n q = {_STATE} tuple(z, n, x)\n"
    entry += f" w = {_STATE} while(q), {last}\n ROOT y = f32[4] get-tuple-element(w), index=2"
    return "\n".join(["HloModule m", *computations, f"ENTRY e {{ {entry} }}"])


@pytest.mark.parametrize(("depth", "parts"), [(3, 0), (7, 0), (9, 1), (17, 2)])
def test_functions_hold_few_loops(depth: int, parts: int, check, rng: np.random.Generator) -> None:
    trips = np.array(2 if depth < 8 else 1, np.int32)
    executable = check(nest(depth), trips, rng.standard_normal(4).astype(np.float32))
    assert len(re.findall(r"^define hidden i32 @part", executable.as_text("llvm"), re.MULTILINE)) == parts


def test_loops_are_nested_deeper_than_calls_could_be(rng: np.random.Generator) -> None:
    argument = rng.standard_normal(4).astype(np.float32)
    executable = get_backend("cpu").compile(parse(nest(350)), CompileOptions(use_cache=False))
    assert np.array_equal(executable(np.array(1, np.int32), argument), argument + argument)
    assert np.array_equal(executable(np.array(0, np.int32), argument), argument)
