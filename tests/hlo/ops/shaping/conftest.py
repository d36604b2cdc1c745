"""Runs HLO text in the evaluator, and compares it with XLA."""

from collections.abc import Callable

import numpy as np
import pytest
from nested_arrays import leaves

from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.text import parse
from xlalite.hlo.types.literal import Value
from xlalite.hlo.verification.verifier import verify


@pytest.fixture(scope="session")
def run() -> Callable[..., Value]:
    """`run(text, *arguments)`: the value of an HLO module, parsed and verified first."""

    def evaluate_text(text: str, *arguments: Value) -> Value:
        module = parse(text)
        verify(module)
        return evaluate(module, *arguments)

    return evaluate_text


@pytest.fixture(scope="session")
def agree(run: Callable[..., Value], run_with_xla: Callable[..., list[np.ndarray]]) -> Callable[..., None]:
    """`agree(text, *arrays, rtol=, atol=)`: the evaluator and XLA give the same."""

    def compare(text: str, *arrays: np.ndarray, rtol: float = 0.0, atol: float = 0.0) -> None:
        found, expected = leaves(run(text, *arrays)), run_with_xla(text, *arrays)
        assert len(found) == len(expected)
        for ours, theirs in zip(found, expected, strict=True):
            assert ours.dtype == theirs.dtype
            assert ours.shape == theirs.shape
            if rtol or atol:
                wide = np.complex128 if ours.dtype.kind == "c" else np.float64
                np.testing.assert_allclose(ours.astype(wide), theirs.astype(wide), rtol=rtol, atol=atol)
            else:
                np.testing.assert_array_equal(ours, theirs)

    return compare
