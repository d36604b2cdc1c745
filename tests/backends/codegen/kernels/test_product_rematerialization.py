"""Scores of attention that its gradient computes again instead of reading them."""

import numpy as np
import pytest

from tests.backends.codegen.kernels.test_chains import CAUSAL, SCALED, arguments, attention, compiled
from tests.backends.codegen.kernels.test_gradient_chains import GRADIENT
from xlalite.backends.base import Executable

STEP = """  o = f32[@B,@M,@D] dot(p, v), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, @ROWS
  wanted = f32[@B,@M,@D] parameter(3)
  w = f32[@B,@M,@D] subtract(o, wanted)
""" + GRADIENT.partition("\n")[2]


def step(*sizes: int, middle: str = SCALED) -> str:
    """A step of training: attention, and its gradient of half the squared distance to the last parameter."""
    return attention(*sizes, middle=middle, end=STEP.replace("@ROWS", "rhs_contracting_dims={1}"))


def verdicts(executable: Executable) -> list[str]:
    return [d.verdict for d in executable.decisions() if d.decided_by == "product-rematerialization"]


@pytest.mark.parametrize("middle", [SCALED, CAUSAL], ids=["scaled", "causal"])
@pytest.mark.parametrize("sizes", [(7, 530, 300, 33, 61), (64, 130, 129, 32, 40)])
def test_a_step_is_two_chains_and_keeps_no_scores(sizes: tuple[int, ...], middle: str, check, kernels, rng) -> None:
    text = step(*sizes, middle=middle)
    executable = check(text, *arguments(text, rng), ulps=64)
    assert kernels(executable) == ["chain", "chain"]
    assert verdicts(executable) == ["computed again"]
    batch, queries, keys, _, _ = sizes
    assert executable.memory_analysis().temp_size_bytes < 4 * batch * queries * keys


def test_every_number_of_threads_gives_the_same_bits(rng) -> None:
    text = step(40, 200, 150, 24, 31, middle=CAUSAL)
    values = arguments(text, rng)
    expected = compiled(text, 1)(*values)
    for threads in (2, 5):
        for found, of_one in zip(compiled(text, threads)(*values), expected, strict=True):
            np.testing.assert_array_equal(found, of_one)


def test_what_is_given_anyway_is_kept(check, rng) -> None:
    text = step(7, 530, 300, 33, 61).replace("f32[7,300,61]) tuple(dq, dk, dv", "f32[7,530,300]) tuple(dq, dk, p")
    assert verdicts(check(text, *arguments(text, rng), ulps=64)) == ["kept"]


@pytest.mark.parametrize(
    "sizes",
    [(3, 1200, 300, 33, 61), (7, 530, 300, 129, 61), (5, 300, 600, 33, 61), (4, 90, 12_000, 20, 24)],
    ids=["few products", "many terms", "small", "long rows"],
)
def test_others_are_kept(sizes: tuple[int, ...]) -> None:
    assert not verdicts(compiled(step(*sizes)))


def test_what_is_needed_once_is_computed_once(check, rng) -> None:
    text = attention(7, 530, 300, 33, 61)
    assert not verdicts(check(text, *arguments(text, rng), ulps=16))
