"""Random modules: the CPU backend computes what the evaluator does, with its passes and without."""

import random
from typing import Any

import pytest

SEEDS = range(60)
ULPS = 64
"""Sums are added in another order, and elements of random modules differ much in size."""


@pytest.mark.parametrize("seed", SEEDS)
def test_random_module(seed: int, random_module: Any, random_arguments: Any, check: Any) -> None:
    chance = random.Random(seed)
    module = random_module(chance, chance.randint(2, 25))
    arguments = random_arguments(module, seed)
    # A fused multiply-add may stay finite where the product alone would not.
    for optimize in (True, False):
        check(module, *arguments, ulps=ULPS, optimize=optimize, fp_contract=False, use_cache=False)
