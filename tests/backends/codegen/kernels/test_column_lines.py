"""Sums of lines of a few columns: lines fill vectors, and results are those of the evaluator to the bit.

Numbers are small integers, of which every sum is exact.
"""

from typing import Any

import numpy as np
import pytest
from kernel_programs import sample, small_integers, summed_lines

from xlalite.passes.core.debug_options import DebugOptions

ISAS = ("AVX512", "AVX2", "SSE2")
DTYPES = ("pred", "s4", "u8", "s16", "f16", "bf16", "f32", "s32", "f64", "c64", "c128")
LINES = (0, 1, 3, 8, 15, 16, 17, 31, 33, 64, 100, 257)


def programs(dtype: str) -> list[str]:
    return [text for lines in LINES for columns in range(2, 10) for text in summed_lines(dtype, lines, columns)]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_some_programs(check: Any, rng: np.random.Generator, dtype: str, isa: str) -> None:
    for text in sample(programs(dtype), isa, 24):
        check(text, *small_integers(rng, text), debug=DebugOptions(cpu_max_isa=isa))


@pytest.mark.slow
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_all_programs(check: Any, rng: np.random.Generator, dtype: str, isa: str) -> None:
    for text in programs(dtype):
        check(text, *small_integers(rng, text), debug=DebugOptions(cpu_max_isa=isa))


@pytest.mark.parametrize("columns", range(2, 9))
def test_sums_are_near_those_of_exact_numbers(compile_text: Any, rng: np.random.Generator, columns: int) -> None:
    """Each lane sums a part of a column, so that errors are far below those of one term after the other."""
    block = rng.random((2, 5000, columns)).astype(np.float32)
    found = compile_text(next(summed_lines("f32", 5000, columns)))(block, np.float32(0))
    exact, one_by_one = block.astype(np.float64).sum(1), np.cumsum(block, 1, np.float32)[:, -1]
    assert np.abs(found - exact).max() < np.abs(one_by_one - exact).max() / 2


def test_not_a_number_is_the_greatest_of_its_column(compile_text: Any) -> None:
    block = np.zeros((2, 100, 3), np.float32)
    block[0, 99, 1], block[1, 3, 2], block[1, :, 0] = np.nan, np.inf, -np.inf
    greatest = list(summed_lines("f32", 100, 3))[5]
    assert "maximum" in greatest
    found = compile_text(greatest)(block, np.float32(-np.inf))
    np.testing.assert_array_equal(found, np.array([[0, np.nan, 0], [-np.inf, 0, np.inf]], np.float32))
