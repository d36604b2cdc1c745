"""The generator of random modules knows every operation, and makes what it says."""

import importlib
import random
from typing import Any

import pytest

from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.ops import OPS
from xlalite.hlo.verification.verifier import verify


@pytest.fixture(scope="module")
def growing(differential: Any) -> Any:
    return importlib.import_module("random_modules.growing")


def test_every_operation_is_made_or_has_a_reason(growing: Any) -> None:
    known = [*growing.MAKERS, *growing.MADE_ALONG, *growing.NOT_MADE]
    assert sorted(known) == sorted(OPS)


def test_makers_make_their_operation(growing: Any, random_arguments: Any) -> None:
    made = set()
    for opcode in growing.MAKERS:
        for seed in range(8):
            module = growing.make_random_module(random.Random(f"{opcode}{seed}"), 1, (opcode,))
            verify(module)
            evaluate(module, *random_arguments(module, seed, 0.1))
            made |= {instruction.opcode for instruction in module.instructions()}
    assert made == {*growing.MAKERS, *growing.MADE_ALONG}


def test_modules_are_the_same_for_the_same_seed(differential: Any) -> None:
    assert str(differential.make_case(5).module) == str(differential.make_case(5).module)
    assert len({str(differential.make_case(seed).module) for seed in range(10)}) == 10
