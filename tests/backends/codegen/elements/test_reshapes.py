"""Reshapes inside loops: where their elements are found, and that whole vectors of them are loaded."""

import itertools
import math
from typing import Any

import numpy as np
import pytest


def program(source: tuple[int, ...], result: tuple[int, ...]) -> str:
    def dims(sizes: tuple[int, ...]) -> str:
        return "f32[" + ",".join(map(str, sizes)) + "]"

    return f"""HloModule m
ENTRY e {{ x = {dims(source)} parameter(0)
 y = f32[{result[0]}] parameter(1)
 r = {dims(result)} reshape(x)
 b = {dims(result)} broadcast(y), dimensions={{0}}
 ROOT s = {dims(result)} add(r, b) }}"""


@pytest.mark.parametrize(
    ("source", "result", "gathers"),
    [
        ((8, 96), (4, 2, 96), False),
        ((3, 8, 160), (3, 16, 80), False),
        ((3, 16, 80), (3, 8, 160), False),
        ((2, 3, 64), (6, 4, 16), False),
        ((6, 4, 16), (2, 1, 3, 64), False),
        ((1, 4, 1, 48), (2, 96, 1), False),
        ((48,), (3, 16), False),
        ((5, 9), (9, 5), True),
        ((6, 35), (14, 15), True),
        ((4, 33), (2, 66), True),
        ((0, 4), (2, 0, 3), False),
        ((7,), (7, 1), False),
    ],
    ids=str,
)
def test_elements_are_found(
    check: Any, rng: np.random.Generator, source: tuple[int, ...], result: tuple[int, ...], gathers: bool
) -> None:
    x = rng.standard_normal(source).astype(np.float32)
    executable = check(program(source, result), x, rng.standard_normal(result[0]).astype(np.float32))
    assert gathers or "masked.gather" not in executable.as_text("llvm")


def test_random_sizes(check: Any, rng: np.random.Generator) -> None:
    for _ in range(20):
        factors = [int(one) for one in rng.choice([1, 2, 3, 4, 5, 8], 5)]
        sizes = []
        for _ in range(2):
            ends = sorted({0, 5, *(int(one) for one in rng.integers(0, 6, 2))})
            parts = [math.prod(factors[a:b]) for a, b in itertools.pairwise(ends)]
            sizes.append(tuple(int(one) for one in rng.permutation(parts)))
        x = rng.standard_normal(sizes[0]).astype(np.float32)
        check(program(*sizes), x, rng.standard_normal(sizes[1][0]).astype(np.float32))


def test_groups_of_channels_are_normalised_in_vectors(check: Any, rng: np.random.Generator) -> None:
    executable = check(
        """HloModule m
ENTRY e { x = f32[2,4,98] parameter(0)
 scale = f32[2,4] parameter(1)
 weight = f32[8] parameter(2)
 scales = f32[2,4,98] broadcast(scale), dimensions={0,1}
 scaled = f32[2,4,98] multiply(x, scales)
 channels = f32[2,8,49] reshape(scaled)
 weights = f32[2,8,49] broadcast(weight), dimensions={1}
 ROOT weighted = f32[2,8,49] multiply(channels, weights) }""",
        *(rng.standard_normal(dims).astype(np.float32) for dims in ((2, 4, 98), (2, 4), (8,))),
    )
    assert "masked.gather" not in executable.as_text("llvm")
