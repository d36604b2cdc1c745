"""Results that leave a narrow type are brought back into it before anything else computes with them."""

from typing import Any

import numpy as np
import pytest

from xlalite.hlo.types.dtype import DType

NARROW = [dtype for dtype in DType if dtype.is_array and dtype.bits <= 8 and dtype is not DType.PRED]


@pytest.mark.parametrize("opcode", ["popcnt", "count-leading-zeros"])
@pytest.mark.parametrize(
    "dtype", [one for one in NARROW if one.is_integral and one.bits < 8], ids=lambda one: one.value
)
def test_counts_of_bits_wrap(check: Any, opcode: str, dtype: DType) -> None:
    """The two bits of s2 are counted as -2."""
    count = 1 << dtype.bits
    text = f"""HloModule m
ENTRY e {{ x = {dtype.value}[{count}] parameter(0)
  n = {dtype.value}[{count}] {opcode}(x)
  ROOT w = s32[{count}] convert(n) }}"""
    least = -count // 2 if dtype.is_signed else 0
    check(text, np.arange(least, least + count).astype(dtype.numpy))


@pytest.mark.parametrize("wide", ["s32", "f32", "u8"])
@pytest.mark.parametrize("dtype", NARROW, ids=lambda one: one.value)
def test_truth_becomes_what_the_type_has_for_zero_and_one(check: Any, dtype: DType, wide: str) -> None:
    """f8e8m0fnu has NaN for 0; the 1 of s1 is -1."""
    text = f"""HloModule m
ENTRY e {{ x = pred[2] parameter(0)
  n = {dtype.value}[2] convert(x)
  ROOT w = {wide}[2] convert(n) }}"""
    for optimize in (True, False):
        check(text, np.array([False, True]), optimize=optimize)


@pytest.mark.parametrize("dtype", [one for one in NARROW if "fnuz" in one.value], ids=lambda one: one.value)
def test_the_nan_in_the_place_of_negative_zero_is_the_least_in_the_total_order(check: Any, dtype: DType) -> None:
    x = np.arange(256, dtype=np.uint8).view(dtype.numpy)
    text = f"""HloModule m
f {{ a = {dtype.value}[] parameter(0)
  b = {dtype.value}[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT, type=TOTALORDER }}
ENTRY e {{ x = {dtype.value}[256] parameter(0)
  y = {dtype.value}[256,256] broadcast(x), dimensions={{0}}
  z = {dtype.value}[256,256] broadcast(x), dimensions={{1}}
  c = pred[256,256] compare(y, z), direction=LT, type=TOTALORDER
  s = {dtype.value}[256] sort(x), dimensions={{0}}, is_stable=true, to_apply=f
  ROOT t = (pred[256,256], {dtype.value}[256]) tuple(c, s) }}"""
    in_order = check(text, x)(x)[1].view(np.uint8)
    assert in_order.tolist() == [*range(0x80, 0x81), *range(0xFF, 0x80, -1), *range(0x80)]


@pytest.mark.parametrize("dimensions", ["{0}", "{1}", "{0,1}"])
def test_sums_in_a_type_without_zero_start_from_nothing_else(check: Any, dimensions: str) -> None:
    kept = {"{0}": "[20]", "{1}": "[3]", "{0,1}": "[]"}[dimensions]
    text = f"""HloModule m
f {{ a = f8e8m0fnu[] parameter(0)
  b = f8e8m0fnu[] parameter(1)
  ROOT r = f8e8m0fnu[] add(a, b) }}
ENTRY e {{ x = f8e8m0fnu[3,20] parameter(0)
  one = f8e8m0fnu[] constant(1)
  r = f8e8m0fnu{kept} reduce(x, one), dimensions={dimensions}, to_apply=f
  w = f8e8m0fnu[3,20] reduce-window(x, one), window={{size=1x3 pad=0_0x1_1}}, to_apply=f
  ROOT t = (f8e8m0fnu{kept}, f8e8m0fnu[3,20]) tuple(r, w) }}"""
    x = np.full((3, 20), 2.0**-20).astype(DType.F8E8M0FNU.numpy)
    for found in check(text, x)(x):
        assert np.all(found == 1)
