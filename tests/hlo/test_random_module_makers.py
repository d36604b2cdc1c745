"""The generator of random modules knows every operation, and makes what it says."""

import random
from typing import Any

from random_modules.differential import make_case
from random_modules.growing import MADE_ALONG, MAKERS, NOT_MADE, make_random_module

from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.ops import OPS
from xlalite.hlo.verification.verifier import verify


def test_every_operation_is_made_or_has_a_reason() -> None:
    known = [*MAKERS, *MADE_ALONG, *NOT_MADE]
    assert sorted(known) == sorted(OPS)


def test_makers_make_their_operation(random_arguments: Any) -> None:
    made = set()
    for opcode in MAKERS:
        for seed in range(8):
            module = make_random_module(random.Random(f"{opcode}{seed}"), 1, (opcode,))
            verify(module)
            evaluate(module, *random_arguments(module, seed, 0.1))
            made |= {instruction.opcode for instruction in module.instructions()}
    assert made == {*MAKERS, *MADE_ALONG}


def test_modules_are_the_same_for_the_same_seed() -> None:
    assert str(make_case(5).module) == str(make_case(5).module)
    assert len({str(make_case(seed).module) for seed in range(10)}) == 10
