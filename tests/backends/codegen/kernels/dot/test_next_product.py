"""What the next product of a batch reads is fetched while one is computed, where it comes from far away."""

from typing import Any

import numpy as np
import pytest

from xlalite.backends.codegen.kernels.dot.next_product import NextProduct, next_product
from xlalite.backends.codegen.kernels.dot.plan import plan_dot
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo.text import parse

WIDE = TargetInfo.of("x86_64-unknown-linux-gnu", features=("avx512f", "avx512vl", "fma"))
DIMENSIONS = "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}"


def products(batch: int, m: int, k: int, n: int) -> str:
    return f"""HloModule m
ENTRY e {{
  x = f32[{batch},{m},{k}] parameter(0)
  y = f32[{batch},{k},{n}] parameter(1)
  ROOT d = f32[{batch},{m},{n}] dot(x, y), {DIMENSIONS}
}}"""


def fetched(text: str) -> NextProduct | None:
    return next_product(plan_dot(parse(text).entry_computation.root, WIDE))


def test_operands_are_shared_out_among_tiles() -> None:
    lines = 129 * 64 * 4 / 64
    found = fetched(products(96, 129, 64, 129))
    assert found is not None
    assert found.lhs_lines == found.rhs_lines == np.ceil(lines / (15 * 3))


@pytest.mark.parametrize(
    "text",
    [
        products(1, 129, 64, 129),
        products(8, 129, 64, 129),  # they stay in the second cache
        products(96, 200, 200, 200),  # these would drive out the operands of the one before
        products(9000, 4, 8, 4),  # such the machine fetches by itself
    ],
)
def test_others_are_not_worth_it(text: str) -> None:
    assert fetched(text) is None


def test_heads_beside_each_other_are_not_fetched() -> None:
    text = products(96, 129, 64, 129).replace("x = f32[96,129,64]", "x = f32[129,96,64]")
    found = fetched(text.replace("lhs_batch_dims={0}", "lhs_batch_dims={1}"))
    assert found is not None
    assert (found.lhs_lines, found.rhs_lines) == (0, 12)


@pytest.mark.parametrize("batch", [17, 61])
def test_products_are_those_of_the_evaluator(check: Any, batch: int, rng: np.random.Generator) -> None:
    x, y = rng.standard_normal((batch, 130, 66), np.float32), rng.standard_normal((batch, 66, 140), np.float32)
    text = products(batch, 130, 66, 140)
    assert fetched(text) is not None
    check(text, x, y, ulps=2.0**10)
