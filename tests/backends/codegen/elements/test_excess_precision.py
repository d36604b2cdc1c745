"""With `allow_excess_precision` narrow floats are f32 within a kernel: the results are those of a program in f32."""

import re
from typing import Any

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, Executable, get_backend
from xlalite.hlo.text import parse
from xlalite.hlo.types.dtype import DType
from xlalite.passes.core.debug_options import DebugOptions

NARROW = [dtype for dtype in DType if dtype.is_floating and dtype.bits < 32]

BODY = """  s = T[S] multiply(x, y)
  t = T[S] tanh(s)
  a = T[S] add(t, y)
  r = T[S] divide(a, x)
"""


def compiled(text: str, *, excess: bool) -> Executable:
    debug = DebugOptions(allow_excess_precision=excess)
    return get_backend("cpu").compile(parse(text), CompileOptions(debug=debug, use_cache=False))


def program(narrow: str, dtype: str, count: int) -> str:
    """A program of a narrow type that computes in another one."""
    lines = [
        f"  {name}n = {narrow}[{count}] parameter({i})\n  {name} = T[{count}] convert({name}n)"
        for i, name in enumerate("xy")
    ]
    last = f"  ROOT z = {narrow}[{count}] convert(r)\n"
    text = "\n".join(lines) + "\n" + BODY.replace("[S]", f"[{count}]") + last
    return "HloModule m\nENTRY e {\n" + text.replace("T[", f"{dtype}[") + "}\n"


def arrays(dtype: DType, count: int) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(count)
    return [rng.uniform(0.5, 3, count).astype(np.float32).astype(dtype.numpy) for _ in "xy"]


def bits(array: Any) -> np.ndarray[Any, Any]:
    return np.asarray(array).view(f"u{np.asarray(array).dtype.itemsize}")


@pytest.mark.parametrize("count", [0, 1, 15, 16, 49, 1000])
@pytest.mark.parametrize("dtype", NARROW, ids=lambda one: one.value)
def test_a_kernel_rounds_once(dtype: DType, count: int) -> None:
    given = arrays(dtype, count)
    narrow = compiled(program(dtype.value, dtype.value, count), excess=True)
    wide = compiled(program(dtype.value, "f32", count), excess=False)
    assert np.array_equal(bits(narrow(*given)), bits(wide(*given)))


def test_without_it_every_operation_rounds() -> None:
    given, text = arrays(DType.BF16, 1000), program("bf16", "bf16", 1000)
    strict, excess = compiled(text, excess=False), compiled(text, excess=True)
    expected = get_backend("interpreter").compile(parse(text), CompileOptions())(*given)
    assert np.array_equal(bits(strict(*given)), bits(expected))
    assert not np.array_equal(bits(excess(*given)), bits(expected))


def test_precision_is_reduced_where_the_program_says_so() -> None:
    """Not where it converts there and back within a kernel, as in XLA."""
    x = np.linspace(1, 2, 40, dtype=np.float32)
    rounded = x.astype(DType.BF16.numpy).astype(np.float32)
    there_and_back = "n = bf16[40] convert(x)\n  ROOT w = f32[40] convert(n)"
    reduced = "ROOT w = f32[40] reduce-precision(x), exponent_bits=8, mantissa_bits=7"
    for rounding, excess, expected in (
        (there_and_back, False, rounded),
        (there_and_back, True, x),
        (reduced, True, rounded),
    ):
        text = f"HloModule m\nENTRY e {{ x = f32[40] parameter(0)\n  {rounding} }}"
        assert np.array_equal(np.asarray(compiled(text, excess=excess)(x)), expected)


@pytest.mark.parametrize("narrow", ["bf16", "f16"])
def test_bits_are_those_of_the_type(narrow: str) -> None:
    text = f"""HloModule m
ENTRY e {{ x = {narrow}[50] parameter(0)
  s = {narrow}[50] multiply(x, x)
  b = u16[50] bitcast-convert(s)
  ROOT t = ({narrow}[50], u16[50]) tuple(s, b) }}"""
    (x, _) = arrays(DType(narrow), 50)
    results = compiled(text, excess=True)(x)
    assert isinstance(results, tuple)
    stored, seen = results
    assert np.array_equal(bits(stored), np.asarray(seen))


SOFTMAX = """HloModule m
largest { a = T[] parameter(0)
  b = T[] parameter(1)
  ROOT m = T[] maximum(a, b) }
sum { a = T[] parameter(0)
  b = T[] parameter(1)
  ROOT m = T[] add(a, b) }
ENTRY e { x = T[7,300] parameter(0)
  least = T[] constant(-inf)
  zero = T[] constant(0)
  m = T[7] reduce(x, least), dimensions={1}, to_apply=largest
  mb = T[7,300] broadcast(m), dimensions={0}
  d = T[7,300] subtract(x, mb)
  e = T[7,300] exponential(d)
  s = T[7] reduce(e, zero), dimensions={1}, to_apply=sum
  sb = T[7,300] broadcast(s), dimensions={0}
  ROOT r = T[7,300] divide(e, sb) }"""

PRODUCT = """HloModule m
ENTRY e { x = T[90,70] parameter(0)
  y = T[70,130] parameter(1)
  d = T[90,130] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = T[90,130] sine(d)
  u = T[90,130] multiply(t, t)
  ROOT r = T[90,130] multiply(u, u) }"""


@pytest.mark.parametrize("dtype", [DType.BF16, DType.F16], ids=lambda one: one.value)
@pytest.mark.parametrize("text", [SOFTMAX, PRODUCT], ids=["softmax", "product"])
def test_reductions_and_products_come_nearer_to_the_truth(text: str, dtype: DType) -> None:
    rng, given = np.random.default_rng(1), []
    for dims in re.findall(r"T\[([\d,]+)\] parameter\(\d\)", text):
        given.append(
            rng.standard_normal([int(size) for size in dims.split(",")]).astype(np.float32).astype(dtype.numpy)
        )
    truth = np.asarray(compiled(text.replace("T[", "f64["), excess=False)(*(x.astype(np.float64) for x in given)))
    errors = [
        float(np.abs(np.asarray(compiled(text.replace("T[", f"{dtype.value}["), excess=excess)(*given)) - truth).mean())
        for excess in (True, False)
    ]
    assert errors[0] < 0.9 * errors[1]
