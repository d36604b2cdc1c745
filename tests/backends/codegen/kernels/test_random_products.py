"""Products and convolutions of any form find what the evaluator finds, on any number of threads."""

import random
from typing import Any

import numpy as np
import pytest
from random_products import Product, any_product

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.text import parse
from xlalite.hlo.types.dtype import DType
from xlalite.passes.analysis import matrix_products

EACH = 30


@pytest.mark.parametrize("first", range(0, 300, EACH))
def test_products_of_any_form(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    require_all(range(first, first + EACH), monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(300, 3300, EACH))
def test_many_products_of_any_form(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    require_all(range(first, first + EACH), monkeypatch)


def require_all(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums are exact; every second small convolution is a product of matrices, and every third has infinite weights."""
    for seed in seeds:
        chance, rng = random.Random(seed), np.random.default_rng(seed)
        made = any_product(chance)
        monkeypatch.setattr(matrix_products, "_LEAST_FLOPS", (1 << 16) * (seed % 2))
        arguments = made.arguments(rng)
        if seed % 3 == 0 and made.types[1] in ("f32", "f64", "bf16", "f16"):
            arguments[1][rng.random(made.rhs) < 0.1] = np.inf
        with np.errstate(all="ignore"):
            expected = wide(evaluate(parse(made.text), *arguments))
        found = compiled(made, threads=1 + seed % 2)(*arguments)
        np.testing.assert_array_equal(wide(found), expected, err_msg=f"seed {seed}\n{made.text}")
        if seed % 10 == 0:
            require_same_on_all_threads(made, rng)


def require_same_on_all_threads(made: Product, rng: np.random.Generator) -> None:
    shapes = zip((made.lhs, made.rhs), made.types, strict=False)
    arguments = [(4 * rng.standard_normal(sizes)).astype(DType(dtype).numpy) for sizes, dtype in shapes]
    first, *others = (np.asarray(compiled(made, threads)(*arguments)) for threads in (1, 2, 5))
    for other in others:
        assert other.tobytes() == first.tobytes(), made.text


def compiled(made: Product, threads: int) -> Any:
    return get_backend("cpu").compile(parse(made.text), CompileOptions(use_cache=False, num_threads=threads))


def wide(found: Any) -> np.ndarray:
    """In a type whose NaN NumPy knows."""
    array = np.asarray(found)
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
