"""Random modules: the CPU backend computes what the evaluator does, with its passes and without."""

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from random_modules.differential import report

SEEDS = range(60)
ULPS = 64
"""Sums are added in another order, and elements of random modules differ much in size."""
QUICK, SLOW, BATCH = 300, 20_000, 500


@pytest.mark.parametrize("seed", SEEDS)
def test_random_module(seed: int, random_module: Any, random_arguments: Any, check: Any) -> None:
    chance = random.Random(seed)
    module = random_module(chance, chance.randint(2, 25))
    arguments = random_arguments(module, seed)
    # A fused multiply-add may stay finite where the product alone would not.
    for optimize in (True, False):
        check(module, *arguments, ulps=ULPS, optimize=optimize, fp_contract=False, use_cache=False)


@pytest.mark.parametrize("seed", range(QUICK))
def test_module_of_any_operations(seed: int) -> None:
    """On a difference the message holds the smallest module that shows it, ready to be pasted into a test."""
    found = report(seed)
    assert not found, found


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SLOW, BATCH))
def test_many_modules_of_all_operations(first: int, repository: Path) -> None:
    """In a process for each batch; one that dies has named the seed last."""
    command = [sys.executable, "-W", "error", "-m", "random_modules", str(first), str(BATCH)]
    paths = os.pathsep.join([str(repository / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        command, cwd=repository, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-3000:]}"
