"""Narrow floating-point types: every pattern decodes and encodes as in ml_dtypes, and rounding is to nearest even."""

from typing import Any

import numpy as np
import pytest

from xlalite.hlo.types.dtype import DType

TINY = tuple(dtype for dtype in DType if dtype.is_floating and dtype.bits <= 8)
HALVES = (DType.BF16, DType.F16)


def ids(dtype: DType) -> str:
    return dtype.value


def convert(compile_text: Any, values: np.ndarray, source: DType, target: DType) -> np.ndarray:
    n = len(values)
    text = f"""HloModule m
ENTRY e {{ x = {source.value}[{n}] parameter(0)
  ROOT r = {target.value}[{n}] convert(x) }}"""
    result: np.ndarray = compile_text(text)(values)
    return result


def patterns(dtype: DType) -> np.ndarray:
    """Every value of a type."""
    if dtype.bits == 16:
        return np.arange(1 << 16, dtype=np.uint16).view(dtype.numpy)
    return np.arange(1 << dtype.bits, dtype=np.uint8).view(dtype.numpy)


def assert_same(found: np.ndarray, expected: np.ndarray) -> None:
    """Equal bits, but for the payload of NaN."""
    with np.errstate(all="ignore"):
        nan = np.isnan(expected.astype(np.float64))
        np.testing.assert_array_equal(np.isnan(found.astype(np.float64)), nan)
        np.testing.assert_array_equal(np.signbit(found.astype(np.float64)), np.signbit(expected.astype(np.float64)))
    unsigned = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[expected.dtype.itemsize]
    np.testing.assert_array_equal(found.view(unsigned)[~nan], expected.view(unsigned)[~nan])


@pytest.mark.parametrize("dtype", TINY + HALVES, ids=ids)
@pytest.mark.parametrize("target", [DType.F32, DType.F64], ids=ids)
def test_every_pattern_decodes(compile_text: Any, dtype: DType, target: DType) -> None:
    values = patterns(dtype)
    with np.errstate(all="ignore"):
        assert_same(convert(compile_text, values, dtype, target), values.astype(target.numpy))


@pytest.mark.parametrize("dtype", TINY + HALVES, ids=ids)
def test_every_pattern_comes_back(compile_text: Any, dtype: DType) -> None:
    values = patterns(dtype)
    n = len(values)
    text = f"""HloModule m
ENTRY e {{ x = {dtype.value}[{n}] parameter(0)
  w = f32[{n}] convert(x)
  ROOT r = {dtype.value}[{n}] convert(w) }}"""
    with np.errstate(all="ignore"):
        assert_same(compile_text(text, optimize=False)(values), values.astype(np.float32).astype(dtype.numpy))


def difficult_floats(dtype: DType, wide: type) -> np.ndarray:
    """Values of the type, what lies halfway between them and just beside, huge and tiny numbers, noise."""
    rng = np.random.default_rng(11)
    with np.errstate(all="ignore"):
        exact = patterns(dtype).astype(wide)
        exact = np.unique(exact[np.isfinite(exact)])
        if len(exact) > 3000:
            exact = np.unique(np.concatenate([exact[:600], exact[-600:], rng.choice(exact, 1500)]))
        halfway = (exact[1:] + exact[:-1]) / 2
        top = exact[-1] + (exact[-1] - exact[-2]) / 2
        values = np.concatenate([exact, halfway, [top, -top, np.inf, -np.inf, np.nan, 0.0, -0.0]])
        beside = [np.nextafter(values, wide(np.inf)), np.nextafter(values, wide(-np.inf))]
        limits = np.finfo(wide)
        extreme = [limits.max, limits.min, limits.tiny, -limits.tiny, limits.smallest_subnormal, 3e38, 1.7e38, 2.0**127]
        noise = rng.standard_normal(2000) * 2.0 ** rng.integers(-140, 127, 2000)
        return np.concatenate([values, *beside, np.array(extreme, wide), noise]).astype(wide)


@pytest.mark.parametrize("dtype", TINY + HALVES, ids=ids)
def test_f32_rounds_to_nearest_even(compile_text: Any, dtype: DType) -> None:
    values = difficult_floats(dtype, np.float32)
    with np.errstate(all="ignore"):
        expected = values.astype(dtype.numpy)
    assert_same(convert(compile_text, values, DType.F32, dtype), expected)


@pytest.mark.parametrize("odd", [1, -1e-40, 3.0])
def test_nan_in_bf16_is_that_of_the_evaluator(compile_text: Any, odd: float) -> None:
    """Bit by bit, whatever else is in the vector."""
    values = np.array([0x7F800001, 0xFFE12345, 0x7FFFFFFF, 0xFFC00000] * 9, np.uint32).view(np.float32)
    values[::5] = odd
    with np.errstate(all="ignore"):
        expected = values.astype(DType.BF16.numpy)
    found = convert(compile_text, values, DType.F32, DType.BF16)
    np.testing.assert_array_equal(found.view(np.uint16), expected.view(np.uint16))


@pytest.mark.parametrize("dtype", [DType.BF16, DType.F8E4M3FN, DType.F6E2M3FN], ids=ids)
def test_moves_and_choices_keep_all_bits(compile_text: Any, dtype: DType) -> None:
    x = patterns(dtype)
    shape = f"{dtype.value}[{len(x)}]"
    text = f"""HloModule m
ENTRY e {{ x = {shape} parameter(0)
  p = pred[{len(x)}] parameter(1)
  y = {shape} reverse(x), dimensions={{0}}
  ROOT r = {shape} select(p, x, y) }}"""
    chosen = np.arange(len(x)) % 3 == 0
    expected = np.where(chosen, x.view(f"u{x.itemsize}"), x[::-1].view(f"u{x.itemsize}"))
    np.testing.assert_array_equal(compile_text(text)(x, chosen).view(expected.dtype), expected)


@pytest.mark.parametrize("dtype", HALVES, ids=ids)
def test_f64_rounds_once(check: Any, dtype: DType) -> None:
    values = difficult_floats(dtype, np.float64)
    check(f"HloModule m\nENTRY e {{ x = f64[{len(values)}] parameter(0)\n"
          f" ROOT r = {dtype.value}[{len(values)}] convert(x) }}", values)  # fmt: skip


@pytest.mark.parametrize("dtype", HALVES, ids=ids)
@pytest.mark.parametrize("opcode", ["add", "multiply", "divide", "maximum"])
def test_halves_round_after_each_operation(check: Any, dtype: DType, opcode: str) -> None:
    values = difficult_floats(dtype, np.float32)
    with np.errstate(all="ignore"):
        x = values.astype(dtype.numpy)
    n = len(x)
    text = f"""HloModule m
ENTRY e {{ x = {dtype.value}[{n}] parameter(0)
  y = {dtype.value}[{n}] reverse(x), dimensions={{0}}
  a = {dtype.value}[{n}] {opcode}(x, y)
  ROOT r = {dtype.value}[{n}] {opcode}(a, x) }}"""
    check(text, x, optimize=False)


@pytest.mark.parametrize("dtype", [DType.S32, DType.S64, DType.U64, DType.U32, DType.S8], ids=ids)
@pytest.mark.parametrize("target", HALVES, ids=ids)
def test_integers_round_once(check: Any, dtype: DType, target: DType) -> None:
    info = np.iinfo(dtype.numpy)
    rng = np.random.default_rng(3)
    values = rng.integers(info.min, info.max, 500, dtype.numpy, endpoint=True)
    values >>= rng.integers(0, dtype.bits - 1, 500).astype(dtype.numpy)
    values = np.concatenate([values, np.array([info.min, info.max, 0, 1, 127], dtype.numpy)])
    check(f"HloModule m\nENTRY e {{ x = {dtype.value}[{len(values)}] parameter(0)\n"
          f" ROOT r = {target.value}[{len(values)}] convert(x) }}", values)  # fmt: skip


@pytest.mark.parametrize("source", [DType.F32, DType.F64], ids=ids)
@pytest.mark.parametrize("target", ["s4", "u4", "s8", "u8", "s32", "u32", "s64", "u64", "pred"])
def test_floats_saturate_to_integers(check: Any, source: DType, target: str) -> None:
    rng = np.random.default_rng(4)
    values = np.concatenate(
        [
            [0.0, -0.0, 0.5, -0.5, 0.99, -0.99, np.nan, np.inf, -np.inf, 7.9, -8.9, 127.5, -128.9, 255.9, 2.0**31],
            [-(2.0**31), 2.0**32, 2.0**63, -(2.0**63), 2.0**64, 1e38],
            rng.standard_normal(200) * 2.0 ** rng.integers(-3, 70, 200),
        ]
    ).astype(source.numpy)
    check(f"HloModule m\nENTRY e {{ x = {source.value}[{len(values)}] parameter(0)\n"
          f" ROOT r = {target}[{len(values)}] convert(x) }}", values)  # fmt: skip
