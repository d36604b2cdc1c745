"""Elementwise operations on zeros of both signs, denormals, infinities and NaN, in every floating-point type."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.text import parse
from xlalite.hlo.types.dtype import DType

EXACT = (
    "abs", "negate", "sign", "ceil", "floor", "round-nearest-afz", "round-nearest-even", "is-finite", "real", "imag",
    "sqrt", "add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "clamp",
)  # fmt: skip
ROUNDED = (
    "exponential", "exponential-minus-one", "log", "log-plus-one", "logistic", "tanh", "tan", "sine", "cosine",
    "asin", "acos", "atan", "asinh", "acosh", "atanh", "sinh", "cosh", "rsqrt", "cbrt", "erf", "power", "atan2",
)  # fmt: skip
BINARY = ("add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "power", "atan2")
FLOATS = tuple(dtype for dtype in DType if dtype.is_floating)


def special_values(dtype: DType) -> np.ndarray:
    """Numbers at which operations change their behaviour, each pattern once."""
    info = ml_dtypes.finfo(dtype.numpy)
    least = float(info.smallest_subnormal)
    sizes = [0.0, 0.25, 0.5, 1, 1.5, 2, 2.5, 3, 4, 7, 20, 1e-3, 1e4, 8388607.5, 8388609, 2.0**52 - 0.5, 2.0**60, np.inf]
    sizes += [0.49999997, 0.49999999999999994, float(info.max), float(info.smallest_normal), least, 3 * least]
    with np.errstate(all="ignore"):
        values = np.array([*sizes, *(-size for size in sizes), np.nan]).astype(dtype.numpy)
    return np.unique(values.view(f"u{values.itemsize}")).view(dtype.numpy)


def program(dtype: DType, count: int) -> str:
    t = f"{dtype.value}[{count}]"
    lines, results = [f"{name} = {t} parameter({n})" for n, name in enumerate("xyz")], []
    for n, opcode in enumerate([*EXACT, *ROUNDED]):
        result = f"pred[{count}]" if opcode == "is-finite" else t
        operands = "x, y" if opcode in BINARY else "y, x, z" if opcode == "clamp" else "x"
        lines.append(f"r{n} = {result} {opcode}({operands})")
        results.append(result)
    names = ", ".join(f"r{n}" for n in range(len(results)))
    body = "\n  ".join(lines)
    return f"HloModule m\nENTRY e {{\n  {body}\n  ROOT all = ({', '.join(results)}) tuple({names}) }}"


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: dtype.value)
def test_compiled_operations_agree_with_the_evaluator(compile_text: Any, dtype: DType) -> None:
    values = special_values(dtype)
    x, y = np.repeat(values, len(values)), np.tile(values, len(values))
    arguments = x, y, np.roll(x, 7)
    text = program(dtype, len(x))
    expected = evaluate(parse(text), *arguments)
    assert isinstance(expected, tuple)
    info = ml_dtypes.finfo(dtype.numpy)
    for opcode, found, wanted in zip([*EXACT, *ROUNDED], compile_text(text)(*arguments), expected, strict=True):
        one, other = (np.asarray(each).astype(np.float64) for each in (found, wanted))
        with np.errstate(all="ignore"):
            same = ((one == other) & (np.signbit(one) == np.signbit(other))) | (np.isnan(one) & np.isnan(other))
            units = 2 if dtype.bits >= 32 else 1
            allowed = units * np.maximum(float(info.eps) * np.abs(other), float(info.smallest_subnormal))
            if opcode in ROUNDED:
                same |= np.abs(one - other) <= allowed
        where = ~same
        assert same.all(), f"{opcode}({x[where][:5]}, {y[where][:5]}) = {found[where][:5]}, not {wanted[where][:5]}"


@pytest.mark.parametrize("dtype", [DType.F32, DType.F64], ids=lambda dtype: dtype.value)
def test_extremes_of_single_numbers(check: Any, dtype: DType) -> None:
    t = f"{dtype.value}[]"
    executable = check(
        f"""HloModule m
ENTRY e {{ x = {t} parameter(0)
  y = {t} parameter(1)
  a = {t} minimum(x, y)
  b = {t} maximum(x, y)
  ROOT r = ({t}, {t}) tuple(a, b) }}""",
        *special_values(dtype)[:2],
    )
    values = np.array([0.0, -0.0, 1.5, -2, np.inf, -np.inf, np.nan], dtype.numpy)
    for x in values:
        for y in values:
            least, greatest = sorted((x, y), key=lambda one: (one, not np.signbit(one)))
            if np.isnan(x) or np.isnan(y):
                least = greatest = np.nan
            found = executable(x, y)
            np.testing.assert_array_equal(found, (least, greatest))
            if not np.isnan(least):
                assert [*map(np.signbit, found)] == [*map(np.signbit, (least, greatest))]


@pytest.mark.parametrize("base", ["2", "10", "0.5", "1", "3.75", "1e-3", "0", "-0", "-2", "inf", "-inf", "nan"])
@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16, DType.F32, DType.F64], ids=lambda dtype: dtype.value)
def test_powers_of_a_number_that_is_known(compile_text: Any, dtype: DType, base: str) -> None:
    exponents = np.concatenate([np.arange(-160, 140), np.linspace(-40, 40, 999), special_values(DType.F32)])
    with np.errstate(over="ignore"):
        y = exponents.astype(dtype.numpy)
        powers_of_two = np.exp2(np.arange(-160.0, 140)).astype(dtype.numpy).astype(np.float64)
    t = f"{dtype.value}[{len(y)}]"
    text = f"""HloModule m
ENTRY e {{ y = {t} parameter(0)
  c = {dtype.value}[] constant({base})
  x = {t} broadcast(c), dimensions={{}}
  ROOT r = {t} power(x, y) }}"""
    info = ml_dtypes.finfo(dtype.numpy)
    found, wanted = (np.asarray(each).astype(np.float64) for each in (compile_text(text)(y), evaluate(parse(text), y)))
    np.testing.assert_allclose(found, wanted, rtol=2 * float(info.eps), atol=2 * float(info.smallest_subnormal))
    if base == "2":
        is_whole = y[:300].astype(np.float64) == exponents[:300]
        np.testing.assert_array_equal(found[:300][is_whole], powers_of_two[is_whole])


@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16, DType.F32, DType.F64], ids=lambda dtype: dtype.value)
@pytest.mark.parametrize("mantissa_bits", [0, 1, 5])
def test_reduced_precision_keeps_nan(check: Any, dtype: DType, mantissa_bits: int) -> None:
    values = special_values(dtype)
    text = f"""HloModule m
ENTRY e {{ x = {dtype.value}[{len(values)}] parameter(0)
  ROOT r = {dtype.value}[{len(values)}] reduce-precision(x), exponent_bits=5, mantissa_bits={mantissa_bits} }}"""
    found = check(text, values)(values)
    np.testing.assert_array_equal(np.isnan(found.astype(np.float64)), np.isnan(values.astype(np.float64)))


def test_what_is_computed_from_an_imaginary_part_sees_that_a_type_has_no_zero(check: Any) -> None:
    text = """HloModule t

ENTRY e { x = f8e8m0fnu[3] parameter(0)
  i = f8e8m0fnu[3] imag(x)
  ROOT m = f8e8m0fnu[3] multiply(i, i) }"""
    check(text, np.ones(3, DType.F8E8M0FNU.numpy))


@pytest.mark.parametrize(
    "dtype", [one for one in DType if one.is_floating and one.bits <= 8], ids=lambda one: one.value
)
@pytest.mark.parametrize("opcode", ["ceil", "floor", "round-nearest-afz", "round-nearest-even"])
def test_what_rounds_to_no_number_of_a_small_type_leaves_it_for_nobody(check: Any, opcode: str, dtype: DType) -> None:
    """Some have no zero, no -0, or nothing for what their largest number rounds to."""
    name, count = dtype.value, 1 << dtype.bits
    text = f"""HloModule m
ENTRY e {{ x = {name}[{count}] parameter(0)
  i = {name}[{count}] {opcode}(x)
  a = {name}[{count}] atan2(i, i)
  w = f32[{count}] convert(i)
  ROOT t = ({name}[{count}], f32[{count}]) tuple(a, w) }}"""
    check(text, np.arange(count, dtype=np.uint8).view(dtype.numpy))
