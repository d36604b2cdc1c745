"""Quotients and remainders of integers: every pair of narrow ones, and pairs about multiples of wide ones."""

from typing import Any

import numpy as np
import pytest

from xlalite.hlo.types.dtype import DType

INTEGERS = tuple(dtype for dtype in DType if dtype.is_integral and dtype is not DType.PRED)


def pairs(dtype: DType) -> tuple[np.ndarray, np.ndarray]:
    low, high = -(1 << (dtype.bits - 1)) if dtype.is_signed else 0, (1 << (dtype.bits - dtype.is_signed)) - 1
    if dtype.bits <= 8:
        every = np.arange(low, high + 1).astype(dtype.numpy)
        return np.repeat(every, len(every)), np.tile(every, len(every))
    rng = np.random.default_rng(dtype.bits)
    wide: Any = np.int64 if dtype.is_signed else np.uint64
    shifts = rng.integers(0, dtype.bits - 1, (3, 5000)).astype(wide)
    whole, factor, divisor = rng.integers(low, high, (3, 5000), wide, endpoint=True) >> shifts
    with np.errstate(over="ignore"):
        near = (factor * divisor + rng.integers(0, 3, 5000).astype(wide) - wide(1)).astype(dtype.numpy)
    special = np.array([low, low + 1, low // 2, 0, 1, 2, 3, 7, high // 2, high - 1, high], wide).astype(dtype.numpy)
    narrow = [array.astype(dtype.numpy) for array in (whole, divisor)]
    x = np.concatenate([narrow[0], near, np.repeat(special, len(special)), -special])
    y = np.concatenate([narrow[1], narrow[1], np.tile(special, len(special)), np.full_like(special, high)])
    return x, y


@pytest.mark.parametrize("opcode", ["divide", "remainder"])
@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda dtype: dtype.value)
def test_quotients_agree_with_the_evaluator(check: Any, dtype: DType, opcode: str) -> None:
    x, y = pairs(dtype)
    shape = f"{dtype.value}[{len(x)}]"
    check(f"HloModule m\nENTRY e {{ x = {shape} parameter(0)\n y = {shape} parameter(1)\n"
          f" ROOT r = {shape} {opcode}(x, y) }}", x, y)  # fmt: skip


@pytest.mark.parametrize("opcode", ["divide", "remainder"])
@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda dtype: dtype.value)
def test_divisors_that_are_known(check: Any, dtype: DType, opcode: str) -> None:
    low, high = -(1 << (dtype.bits - 1)) if dtype.is_signed else 0, (1 << (dtype.bits - dtype.is_signed)) - 1
    candidates = [0, 1, 2, 3, 7, 10, 100, 641, 65_537, high // 3, high // 2 + 1, high - 1, high]
    divisors = {each for each in (*candidates, *(-each for each in candidates), low, low + 1) if low <= each <= high}
    wide: Any = np.int64 if low else np.uint64
    random = np.random.default_rng(dtype.bits).integers(low, high, 500, wide, endpoint=True).tolist()
    for divisor in sorted(divisors):
        size = abs(divisor) or 1
        multiples = [sign * (high // size // part) * size for sign in (1, -1) for part in (1, 2, 3, 1000)]
        near = [each + step for each in (*multiples, low, high, 0) for step in (-1, 0, 1)]
        x = np.array([each for each in (*near, *random) if low <= each <= high], wide).astype(dtype.numpy)
        shape = f"{dtype.value}[{len(x)}]"
        check(f"HloModule m\nENTRY e {{ x = {shape} parameter(0)\n c = {dtype.value}[] constant({divisor})\n"
              f" y = {shape} broadcast(c), dimensions={{}}\n ROOT r = {shape} {opcode}(x, y) }}", x)  # fmt: skip
