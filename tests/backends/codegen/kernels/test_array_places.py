"""Kernels of many arrays know where in the arena these lie, and compute the same."""

import re
from typing import Any

import numpy as np
import pytest

LOOP = "ROOT r = f32[5,7] tanh(s{last})"
ROWS = "z = f32[] constant(0)\n ROOT r = f32[5] reduce(s{last}, z), dimensions={{1}}, to_apply=sum"


def sorts(count: int, root: str) -> str:
    """A kernel that reads the results of several others."""
    lines = ["p = f32[5,7] parameter(0)"]
    for i in range(count):
        lines += [f"c{i} = f32[] constant({i}.5)", f"b{i} = f32[5,7] broadcast(c{i}), dimensions={{}}"]
        lines += [f"m{i} = f32[5,7] multiply(p, b{i})", f"d{i} = f32[5,7] sort(m{i}), dimensions={{1}}, to_apply=less"]
        lines += [f"s{i} = f32[5,7] add(d{i}, {f's{i - 1}' if i else 'd0'})"]
    total = "sum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }"
    less = "less { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = pred[] compare(a, b), direction=LT }"
    return "\n".join(["HloModule m", total, less, "ENTRY e {", *lines, root.format(last=count - 1), "}"])


def addresses(executable: Any) -> int:
    """The most addresses that a kernel loads."""
    kernels = re.findall(r'^define hidden void @"?kernel.*?^}', executable.as_text("llvm"), re.MULTILINE | re.DOTALL)
    return max(kernel.count("load ptr") for kernel in kernels)


@pytest.mark.parametrize("root", [LOOP, ROWS])
def test_arrays_of_the_arena_share_its_address(check: Any, rng: np.random.Generator, root: str) -> None:
    argument = rng.standard_normal((5, 7)).astype(np.float32)
    assert addresses(check(sorts(30, root), argument, ulps=8)) <= 4


@pytest.mark.parametrize("root", [LOOP, ROWS])
def test_kernels_of_few_arrays_serve_in_any_place(check: Any, rng: np.random.Generator, root: str) -> None:
    argument = rng.standard_normal((5, 7)).astype(np.float32)
    assert addresses(check(sorts(9, root), argument, ulps=8)) >= 8
