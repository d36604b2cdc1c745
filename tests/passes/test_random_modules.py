"""The property that all passes share: on random modules values keep every bit and answers are truthful."""

import random

import pytest
from hypothesis import given, settings, strategies as st

from xlalite.backends.base import get_backend
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.passes.core.debug_options import DebugOptions
from xlalite.passes.core.instrumentation import Instrumentation
from xlalite.passes.pipelines import target_independent
from xlalite.passes.simplify.algebraic_simplifier import AlgebraicSimplifier

PASSES = get_backend("cpu").passes
# A second run may find more to do: constants that went into a loop make elements of its state unneeded.
NOT_IDEMPOTENT = {"while-loop-simplifier", "fusion"}
# Options under which no bit may change.
STRICT = {AlgebraicSimplifier.name: AlgebraicSimplifier(reorder_reductions=False)}
# These change the order of sums.
REORDERING = {"reduction-splitter", "while-loop-product-motion"}
# These need a schedule, which random modules have not.
SCHEDULED = {"copy-insertion", "loop-double-buffer-transformer"}


@pytest.mark.parametrize("name", sorted(set(PASSES) - REORDERING - SCHEDULED))
@given(chance=st.randoms(use_true_random=False), operations=st.integers(2, 20))
@settings(max_examples=20, deadline=None, derandomize=True)
def test_pass_keeps_every_bit(name: str, chance: random.Random, operations: int, random_module, transform) -> None:
    hlo_pass = STRICT.get(name) or PASSES[name]()
    transform(hlo_pass, random_module(chance, operations), idempotent=name not in NOT_IDEMPOTENT)


@given(chance=st.randoms(use_true_random=False), operations=st.integers(2, 30))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_pipeline_keeps_every_bit_and_ends(
    chance: random.Random, operations: int, random_module, random_arguments, assert_same_bits
) -> None:
    module = random_module(chance, operations)
    text, arguments = str(module), random_arguments(module)
    expected = evaluate(module, *arguments)
    pipeline = target_independent(reorder_reductions=False)
    pipeline.run(module, Instrumentation(DebugOptions(check_passes=True)))
    assert_same_bits(expected, evaluate(module, *arguments), text)
    assert not [decision for decision in module.decisions if decision.verdict == "stopped"]
