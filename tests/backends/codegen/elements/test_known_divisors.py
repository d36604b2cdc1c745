"""Quotients of a whole row by one number are those of a division, bit for bit, however they are found."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, Executable, get_backend
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo.text import parse

TYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


def quotients(rows: int, columns: int, dtype: str = "f32") -> str:
    """Rows divided by the largest number in a row of another array, which has it in all columns."""
    return f"""HloModule quotients
most {{
  a = {dtype}[] parameter(0)
  b = {dtype}[] parameter(1)
  ROOT r = {dtype}[] maximum(a, b)
}}
ENTRY main {{
  x = {dtype}[{rows},{columns}] parameter(0)
  y = {dtype}[{rows},{columns}] parameter(1)
  least = {dtype}[] constant(-inf)
  m = {dtype}[{rows}] reduce(y, least), dimensions={{1}}, to_apply=most
  d = {dtype}[{rows},{columns}] broadcast(m), dimensions={{0}}
  ROOT r = {dtype}[{rows},{columns}] divide(x, d)
}}"""


def divisors(dtype: Any) -> np.ndarray[Any, Any]:
    """Usual ones, with digits that are hard, and those for which reciprocals are not enough."""
    info = ml_dtypes.finfo(dtype)
    one, eps, least, most = (np.array(n, dtype) for n in (1, info.eps, info.tiny, info.max))
    hard = [one, 2 * one - eps, 2 * one - 2 * eps, one + eps, one + 2 * eps, 3 * one, 7 * one, 10 * one]
    far = [least, most, info.smallest_subnormal, least / 4, 0, np.inf, np.nan, 1e30, 1e-30, 2.0**24, 2.0**-24]
    with np.errstate(all="ignore"):
        numbers = np.array([*hard, *far], np.float64).astype(dtype)
        return np.concatenate([numbers, -numbers])


def dividends(rows: int, columns: int, dtype: Any, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Ordinary numbers, some vectors with zeros, and one with every kind of number."""
    x = rng.standard_normal((rows, columns)) * np.exp2(rng.integers(-8, 8, (rows, columns)))
    x[:, columns // 4 : columns // 3] = 0.0
    x[:, columns // 3 : columns // 3 + 9] = -0.0
    wild = np.exp2(rng.uniform(-140, 127, (rows, 40))) * rng.choice((-1, 1), (rows, 40))
    wild[:, :8] = (np.inf, -np.inf, np.nan, 1e-45, -1e-40, 3e38, 1e-30, 1e30)
    x[:, -200:-160] = wild
    with np.errstate(all="ignore"):
        return x.astype(dtype)


def assert_equal_bits(found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> None:
    unsigned = f"u{wanted.dtype.itemsize}"
    is_number = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.isnan(found), ~is_number)
    np.testing.assert_array_equal(found.view(unsigned)[is_number], wanted.view(unsigned)[is_number])


@pytest.mark.parametrize("columns", [1024, 777, 530])
@pytest.mark.parametrize("dtype", TYPES)
def test_quotients_are_rounded_as_division_rounds(
    compile_text: Callable[..., Executable], dtype: str, columns: int, rng: np.random.Generator
) -> None:
    by = divisors(TYPES[dtype])
    x = dividends(len(by), columns, TYPES[dtype], rng)
    y = np.repeat(by[:, None], columns, 1)
    found = compile_text(quotients(len(by), columns, dtype))(x, y)
    wide = np.float64 if dtype == "f64" else np.float32
    with np.errstate(all="ignore"):
        wanted = (x.astype(wide) / y.astype(wide)).astype(TYPES[dtype])
    assert_equal_bits(found, wanted)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_many_divisors_and_dividends(
    compile_text: Callable[..., Executable], dtype: str, rng: np.random.Generator
) -> None:
    rows, columns = 2000, 640
    executable = compile_text(quotients(rows, columns, dtype))
    for size in (1, 1000):
        x = (rng.uniform(1, 2, (rows, columns)) * size).astype(TYPES[dtype])
        y = np.repeat(rng.uniform(1, 2, (rows, 1)).astype(TYPES[dtype]), columns, 1)
        assert_equal_bits(executable(x, y), x / y)


def test_only_long_rows_have_a_reciprocal() -> None:
    def mends(columns: int) -> bool:
        text = quotients(4, columns)
        ir = get_backend("cpu").compile_to("llvm-before-optimizations", parse(text), CompileOptions()).text
        return "@llvm.fma" in ir

    assert mends(1024) is TargetInfo.host().has_fma
    assert not mends(100)


def by_constant(dtype: str, divisor: float, size: int, source: str = "") -> str:
    source = source or dtype
    return f"""HloModule by_constant
ENTRY main {{
  x = {source}[{size}] parameter(0)
  y = {dtype}[{size}] convert(x)
  c = {dtype}[] constant({divisor!r})
  d = {dtype}[{size}] broadcast(c), dimensions={{}}
  ROOT r = {dtype}[{size}] divide(y, d)
}}"""


@pytest.mark.parametrize("dtype", TYPES)
def test_quotients_by_constants_are_rounded_as_division_rounds(
    compile_text: Callable[..., Executable], dtype: str, rng: np.random.Generator
) -> None:
    x = dividends(1, 530, TYPES[dtype], rng)[0]
    wide = np.float64 if dtype == "f64" else np.float32
    for divisor in divisors(TYPES[dtype]):
        found = compile_text(by_constant(dtype, float(divisor), len(x)))(x)
        with np.errstate(all="ignore"):
            wanted = (x.astype(wide) / wide(divisor)).astype(TYPES[dtype])
        assert_equal_bits(found, wanted)


@pytest.mark.parametrize("source", ["u8", "s8", "u16", "s16", "u32"])
@pytest.mark.parametrize("divisor", [255.0, -3.0, 0.2, 1e-7, 1e7, 1e30])
def test_quotients_of_integers(compile_text: Callable[..., Executable], source: str, divisor: float) -> None:
    dtype = np.dtype({"u": "uint", "s": "int"}[source[0]] + source[1:])
    info = np.iinfo(dtype)
    x = np.linspace(info.min, info.max, 1 << min(info.bits, 16)).astype(dtype)
    found = compile_text(by_constant("f32", divisor, len(x), source))(x)
    assert_equal_bits(found, x.astype(np.float32) / np.float32(divisor))


@pytest.mark.parametrize(("divisor", "mends"), [(3.0, True), (0.25, False), (1e30, False), (0.0, False)])
def test_which_constants_have_a_reciprocal(divisor: float, mends: bool) -> None:
    text = by_constant("f32", divisor, 1000)
    ir = get_backend("cpu").compile_to("llvm-before-optimizations", parse(text), CompileOptions()).text
    assert ("@llvm.fma" in ir) is (mends and TargetInfo.host().has_fma)
