"""What is accumulated in narrow floats by any function is rounded once, unless the function rounds on purpose."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xlalite as xl
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.wide_function import wide_function
from xlalite.hlo.types.dtype import DType

LOG_SUM_EXP = """f {{ a = {0}[] parameter(0)
  b = {0}[] parameter(1)
  m = {0}[] maximum(a, b)
  d = {0}[] subtract(a, b)
  s = {0}[] abs(d)
  n = {0}[] negate(s)
  e = {0}[] exponential(n)
  l = {0}[] log-plus-one(e)
  ROOT r = {0}[] add(m, l) }}"""
SUM = """f {{ a = {0}[] parameter(0)
  b = {0}[] parameter(1)
  v = f32[] convert(a)
  w = f32[] convert(b)
  t = f32[] add(v, w)
  n = {0}[] convert(t)
  {1} }}"""

FORMS = {
    "reduce(x, s), dimensions={1}, to_apply=f": ("[5]", lambda x: np.log(np.exp(x).sum(1))),
    "reduce(x, s), dimensions={0}, to_apply=f": ("[300]", lambda x: np.log(np.exp(x).sum(0))),
    "reduce-window(x, s), window={size=1x300 pad=0_0x299_0}, to_apply=f": (
        "[5,300]",
        lambda x: np.log(np.exp(x).cumsum(1)),
    ),
    "reduce-window(x, s), window={size=5x1 pad=4_0x0_0}, to_apply=f": (
        "[5,300]",
        lambda x: np.log(np.exp(x).cumsum(0)),
    ),
    "reduce-window(x, s), window={size=1x100}, to_apply=f": (
        "[5,201]",
        lambda x: np.log(np.lib.stride_tricks.sliding_window_view(np.exp(x), 100, 1).sum(-1)),
    ),
}


def program(function: str, dtype: str, result: str, dims: str = "5,300") -> str:
    shape, instruction = result.split(" ", 1)
    return f"""HloModule m
{function.format(dtype)}
ENTRY e {{
  x = {dtype}[{dims}] parameter(0)
  s = {dtype}[] parameter(1)
  ROOT r = {dtype}{shape} {instruction} }}"""


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_any_function_is_rounded_once(rng: np.random.Generator, dtype: str, form: str) -> None:
    shape, truth = FORMS[form]
    module = xl.hlo.parse(program(LOG_SUM_EXP, dtype, f"{shape} {form}"))
    values = rng.random((5, 300)).astype(DType(dtype).numpy)
    start = np.asarray(-1e4).astype(values.dtype)
    wanted = truth(values.astype(np.float64))
    for found in (xl.compile(module)(values, start), xl.hlo.evaluate(module, values, start)):
        error = np.abs(np.asarray(found).astype(np.float64) - wanted)
        assert np.max(error / np.abs(wanted)) < 0.51 * float(ml_dtypes.finfo(values.dtype).eps)


def test_one_element_is_combined_as_many_are(check: Any, rng: np.random.Generator) -> None:
    values, start = ((2 * rng.random(sizes)).astype(ml_dtypes.bfloat16) for sizes in ((50, 1), ()))
    text = program(LOG_SUM_EXP, "bf16", "[50] reduce(x, s), dimensions={1}, to_apply=f", "50,1")
    for optimize in (False, True):
        check(text, values, start, optimize=optimize)


def test_what_is_rounded_on_purpose_stays_so() -> None:
    assert wide_function(function(SUM.format("bf16", "ROOT r = (bf16[]) tuple(n)"))) is not None, (
        "nothing is computed of what is rounded"
    )
    assert wide_function(function(SUM.format("bf16", "ROOT r = bf16[] negate(n)"))) is None


@pytest.mark.parametrize("dtype", ["f32", "f64", "f8e8m0fnu"])
def test_other_types_stay_as_they_are(dtype: str) -> None:
    assert wide_function(function(LOG_SUM_EXP.format(dtype))) is None


def function(text: str) -> HloComputation:
    return xl.hlo.parse(f"HloModule m\nENTRY {text}").entry_computation
