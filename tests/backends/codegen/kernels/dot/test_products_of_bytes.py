"""Products of small integers are exact, whatever their signs, sizes and places."""

import random
from typing import Any

import numpy as np
import pytest

from xlalite.backends.codegen.kernels.dot.plan import plan_dot
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo import parse
from xlalite.hlo.types.dtype import DType

FULL = {"s8": (-128, 128), "u8": (0, 256)}
WITH_WORDS = TargetInfo.of("x86_64-unknown-linux-gnu", features=("avx512f", "avx512vl", "avx512vnni", "fma"))


def product(sizes: tuple[int, int, int], types: tuple[str, str, str], turned: tuple[bool, bool]) -> str:
    m, k, n = sizes
    lhs = f"{types[0]}[{k},{m}]" if turned[0] else f"{types[0]}[{m},{k}]"
    rhs = f"{types[1]}[{n},{k}]" if turned[1] else f"{types[1]}[{k},{n}]"
    return f"""HloModule m
ENTRY e {{
  a = {lhs} parameter(0)
  b = {rhs} parameter(1)
  ROOT d = {types[2]}[{m},{n}] dot(a, b), lhs_contracting_dims={{{int(not turned[0])}}}, \
rhs_contracting_dims={{{int(turned[1])}}} }}"""


@pytest.mark.parametrize("rhs", FULL)
@pytest.mark.parametrize("lhs", FULL)
def test_products_of_any_size(check: Any, rng: np.random.Generator, lhs: str, rhs: str) -> None:
    chance = random.Random(lhs + rhs)
    for _ in range(12):
        m, k, n = (chance.choice((1, 2, 3, 5, 13, 16, 17, 31, 33, 64)) for _ in range(3))
        k = chance.choice((k, k, k, 3077))
        turned = chance.random() < 0.5, chance.random() < 0.5
        text = product((m, k, n), (lhs, rhs, "s32"), turned)
        arguments = [
            rng.integers(*FULL[name], parameter.shape.dims).astype(DType(name).numpy)
            for name, parameter in zip((lhs, rhs), parse(text).entry_computation.parameters, strict=True)
        ]
        check(text, *arguments, num_threads=chance.choice((1, 2, 5)))


@pytest.mark.parametrize("result", ["s8", "u8", "s16", "s64"])
def test_results_of_other_widths_wrap(check: Any, rng: np.random.Generator, result: str) -> None:
    lhs = "u8" if result == "u8" else "s8"
    text = product((9, 70, 20), (lhs, lhs, result), (False, False))
    check(text, *(rng.integers(*FULL[lhs], sizes).astype(DType(lhs).numpy) for sizes in ((9, 70), (70, 20))))


@pytest.mark.parametrize("inputs", [3, 8])
@pytest.mark.parametrize("labels", ["b01f_01io->b01f", "bf01_oi01->bf01"])
def test_convolutions(check: Any, kernels: Any, rng: np.random.Generator, labels: str, inputs: int) -> None:
    image, kernel, result = (
        ((2, 20, 33, inputs), (3, 3, inputs, 20), (2, 18, 31, 20))
        if labels.startswith("b0")
        else ((2, inputs, 20, 33), (20, inputs, 3, 3), (2, 20, 18, 31))
    )
    dims = [",".join(map(str, sizes)) for sizes in (image, kernel, result)]
    text = f"""HloModule m
ENTRY e {{
  x = s8[{dims[0]}] parameter(0)
  k = s8[{dims[1]}] parameter(1)
  ROOT c = s32[{dims[2]}] convolution(x, k), window={{size=3x3}}, dim_labels={labels} }}"""
    executable = check(text, *(rng.integers(-128, 128, sizes).astype(np.int8) for sizes in (image, kernel)))
    assert kernels(executable) == ["dot"]


def test_bytes_are_multiplied_four_at_a_time_where_the_machine_can() -> None:
    dot = parse(product((64, 64, 64), ("s8", "s8", "s32"), (False, False))).entry_computation.root
    assert plan_dot(dot, WITH_WORDS).numbers.word == 4
    narrow = TargetInfo.of("x86_64-unknown-linux-gnu", features=("avx512f", "avx512vl", "fma"))
    assert plan_dot(dot, narrow).numbers.word == 1
    assert (
        plan_dot(
            parse(product((64, 64, 64), ("s8", "s8", "s64"), (False, False))).entry_computation.root, WITH_WORDS
        ).numbers.word
        == 1
    )
