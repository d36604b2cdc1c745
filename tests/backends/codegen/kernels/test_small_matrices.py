"""Many matrices of a few rows and columns: vectors take them whole, and results are those of the evaluator to the bit.

Numbers are small integers, of which every sum and product is exact.
"""

from typing import Any

import numpy as np
import pytest
from kernel_programs import sample, small_integers, small_matrices

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.hlo.text import parse
from xlalite.passes.core.debug_options import DebugOptions

ISAS = ("AVX512", "AVX2", "SSE2")
DTYPES = ("pred", "u8", "u16", "f16", "bf16", "f32", "s32", "f64", "c64", "c128")
SIZES = [(rows, columns) for rows in range(1, 6) for columns in range(1, 6)] + [(2, 8), (8, 2), (3, 7)]
COUNTS = (8, 9, 16, 33, 100)


def programs(dtype: str) -> list[str]:
    sizes = [(count, *size) for number, size in enumerate(SIZES) for count in COUNTS[number % 2 :: 2]]
    return [text for size in sizes for text in small_matrices(dtype, *size)]


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


@pytest.mark.parametrize("dtype", ["bf16", "f32", "s32", "f64"])
@pytest.mark.parametrize("size", [(2, 2), (2, 3), (3, 3), (3, 4), (4, 4)])
def test_nothing_is_gathered_and_no_product_is_left(dtype: str, size: tuple[int, int]) -> None:
    for text in small_matrices(dtype, 99, *size):
        compiled = get_backend("cpu").compile_to("llvm", parse(text), CompileOptions()).text
        assert "masked.gather" not in compiled, text
        assert "masked.scatter" not in compiled, text
        optimized = get_backend("cpu").compile_to("hlo", parse(text), CompileOptions()).text
        assert " dot(" not in optimized, text
