"""Compiled stochastic-convert gives the evaluator's bits, in whatever kernel it lies."""

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.text import parse
from xlalite.hlo.types.dtype import DType

TARGETS = ("s4", "u4", "s8", "u8", "s16", "s32", "u32", "s64", "u64", "f8e4m3fn", "f8e5m2", "f16", "bf16", "f32", "f64")
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, -1e30, 127.5, -128.5, 0.25, 6e-8, 65519.9, 3.5e38, 1e-40]


@pytest.mark.parametrize("source", ["f32", "f64", "f16", "bf16"])
@pytest.mark.parametrize("target", TARGETS)
def test_compiled_rounding_is_the_evaluators(source, target, rng) -> None:
    dtype = DType.from_name(source)
    text = f"""HloModule m

ENTRY main {{
  x = {source}[67] parameter(0)
  u = u{dtype.bits}[67] parameter(1)
  y = {source}[67] negate(x)
  a = {target}[67] stochastic-convert(x, u)
  b = {target}[67] stochastic-convert(y, u)
  ROOT t = ({target}[67], {target}[67]) tuple(a, b)
}}
"""
    with np.errstate(all="ignore"):
        x = np.concatenate([SPECIAL, rng.standard_normal(53) * 10.0 ** rng.integers(-6, 6, 53)]).astype(dtype.numpy)
    u = rng.integers(0, 2**dtype.bits - 1, 67, dtype=f"u{dtype.size_bytes}", endpoint=True)
    module = parse(text)
    expected = evaluate(module, x, u)
    found = get_backend("cpu").compile(module, CompileOptions())(x, u)
    for one, wanted in zip(found, expected, strict=True):
        assert one.dtype == wanted.dtype
        same = (one == wanted) | ((one != one) & (wanted != wanted))
        assert same.all(), f"{x[~same]} {u[~same]}: found {one[~same]}, expected {wanted[~same]}"
