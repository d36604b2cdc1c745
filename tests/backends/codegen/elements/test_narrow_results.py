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
