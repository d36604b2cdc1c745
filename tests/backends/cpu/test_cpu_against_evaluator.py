"""The CPU backend computes what the evaluator does, for every operation and element type."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, Executable, get_backend
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.text import parse
from xlalite.hlo.types.dtype import DType

ULPS = 4
"""Both sides are right to 2 ulps (f32) or 1 (f64); operations composed of several functions add up."""


@pytest.fixture(scope="module")
def compile_text() -> Callable[..., Executable]:
    """Compiles HLO text for the CPU."""
    return lambda text, **options: get_backend("cpu").compile(parse(text), CompileOptions(**options))


def test_cpu_agrees_with_evaluator(op_case: Any, op_dtype: DType, rng: np.random.Generator) -> None:
    if not op_case.is_local or not op_case.is_deterministic:
        return
    module = parse(op_case.text(op_dtype))
    arguments = op_case.arguments(module, op_dtype, rng)
    found = get_backend("cpu").compile(module, CompileOptions())(*arguments)
    if op_dtype.is_floating or op_dtype.is_complex:
        op_case = dataclasses.replace(op_case, tolerance_ulps=max(op_case.tolerance_ulps, ULPS))
    op_case.check(found, evaluate(module, *arguments))


def test_instruction_named_like_a_c_function_is_no_such_function(compile_text: Callable[..., Executable]) -> None:
    """LLVM may call functions of C for operations; those of C's own names are not meant."""
    text = """HloModule n
ENTRY e {
  x = f64[4,64] parameter(0)
  y = f64[4,64] parameter(1)
  fmod = f64[4,64] remainder(x, y)
  ROOT r = f64[64,4] transpose(fmod), dimensions={1,0}
}"""
    x, y = np.full((4, 64), 1e300), np.full((4, 64), 0.7)
    np.testing.assert_array_equal(compile_text(text)(x, y), np.fmod(x, y).T)


def test_what_one_kernel_gives_and_another_computes_stays_until_both_are_made(
    compile_text: Callable[..., Executable],
) -> None:
    text = """HloModule m
reducer {
  p0 = u64[] parameter(0)
  p1 = u64[] parameter(1)
  ROOT r = u64[] multiply(p0, p1)
}
ENTRY e {
  s = u64[2] parameter(0)
  p = u64[] parameter(1)
  g = (u64[2], s32[]) rng-bit-generator(s), algorithm=rng_default
  t = u64[2] get-tuple-element(g), index=0
  b = s32[] get-tuple-element(g), index=1
  a = u64[2] add(t, t)
  r = u64[2] reduce(a, p), dimensions={}, to_apply=reducer
  ROOT result = (u64[2], s32[]) tuple(r, b)
}"""
    arguments = np.array([3, 2**63], np.uint64), np.uint64(5)
    for found, expected in zip(compile_text(text)(*arguments), evaluate(parse(text), *arguments), strict=True):
        np.testing.assert_array_equal(found, expected)
