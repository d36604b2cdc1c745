"""Classes drawn beside the true ones, and the losses that look at these alone."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special

from xlalite.framework.graph.errors import GraphError, InvalidArgumentError
from xlalite.framework.graph.graph import Graph
from xlalite.hlo.errors import ShapeError
from xlalite.ops.functions import array as a, candidate_samplers as c, sampled_losses as s
from xlalite.ops.functions.embedding import embedding_lookup
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.gradients import gradients
from xlalite.ops.training.variable import Variable

TRUE = np.int64([[3, 5], [0, 3]])
SIZE = 40
UNIGRAMS = np.arange(1.0, SIZE - 1)

ZIPF = np.log((np.arange(SIZE) + 2) / (np.arange(SIZE) + 1)) / np.log(SIZE + 1)
GIVEN = np.concatenate([[0, 0], UNIGRAMS**0.75]) / (UNIGRAMS**0.75).sum()


def given(*arguments: Any, **options: Any) -> c.Sampled:
    shape = {"distortion": 0.75, "num_reserved_ids": 2, "unigrams": list(UNIGRAMS)}
    return c.fixed_unigram_candidate_sampler(*arguments, **shape, **options)


SAMPLERS: dict[str, tuple[Callable[..., c.Sampled], np.ndarray]] = {
    "uniform": (c.uniform_candidate_sampler, np.full(SIZE, 1 / SIZE)),
    "log uniform": (c.log_uniform_candidate_sampler, ZIPF),
    "fixed": (given, GIVEN),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_classes_come_as_often_as_is_said(name: str, run: Any) -> None:
    build, chances = SAMPLERS[name]
    drawn, of_true, of_drawn = run(list(build(TRUE, 2, 20000, False, SIZE, seed=7)))
    frequency = np.bincount(drawn, minlength=SIZE) / 20000
    np.testing.assert_allclose(frequency, chances, atol=0.012)
    np.testing.assert_allclose(of_true, 20000 * chances[TRUE], rtol=1e-4)
    np.testing.assert_allclose(of_drawn, 20000 * chances[drawn], rtol=1e-4)


@pytest.mark.parametrize("name", SAMPLERS)
def test_unique_classes_are_different_and_expected_at_most_once(name: str, run: Any) -> None:
    build, chances = SAMPLERS[name]
    results = build(TRUE, 2, 15, True, SIZE, seed=7)
    seen = np.zeros(SIZE)
    expected = np.zeros(SIZE)
    for _ in range(400):
        drawn, _, of_drawn = run(list(results))
        assert len(set(drawn)) == 15
        assert ((of_drawn > 0) & (of_drawn <= 1)).all()
        seen[drawn] += 1 / 400
        expected[drawn] = of_drawn
    wanted = chances > 0
    np.testing.assert_allclose(seen[wanted], expected[wanted], atol=0.2)


def test_seeds_repeat_what_is_drawn(run: Any, graph: Graph) -> None:
    first, second = (c.log_uniform_candidate_sampler(TRUE, 2, 9, True, SIZE, seed=5)[0] for _ in range(2))
    np.testing.assert_array_equal(run(first), run(second))
    assert (run(first) != run(c.log_uniform_candidate_sampler(TRUE, 2, 9, True, SIZE, seed=6)[0])).any()


def test_learned_frequencies_grow_with_what_is_seen(run: Any) -> None:
    drawn, of_true, _ = c.learned_unigram_candidate_sampler(TRUE, 2, 5, False, SIZE, seed=1)
    counts = [run([drawn, of_true])[1][0, 0] for _ in range(3)]
    np.testing.assert_allclose(counts, [5 / SIZE, 5 * 3 / (SIZE + 4), 5 * 5 / (SIZE + 8)], rtol=1e-6)


def test_frequencies_can_stand_in_a_file_and_be_shared_out(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "vocabulary.csv"
    path.write_text("a,the,3\nb,5\nc,2\nd,10\n")
    drawn, of_true, _ = run(
        list(c.fixed_unigram_candidate_sampler([[1, 3]], 2, 50, False, 4, str(path), num_shards=2, shard=1, seed=3))
    )
    assert set(drawn) == {1, 3}
    np.testing.assert_allclose(of_true, [[50 * 5 / 15, 50 * 10 / 15]], rtol=1e-6)


def test_all_classes_for_tests(run: Any) -> None:
    drawn, of_true, of_drawn = run(list(c.all_candidate_sampler(TRUE, 2, 4, True)))
    np.testing.assert_array_equal(drawn, range(4))
    assert (of_true == 1).all()
    assert (of_drawn == 1).all()


def test_true_classes_that_were_drawn_are_found(run: Any) -> None:
    rows, columns, weights = run(list(c.compute_accidental_hits(TRUE, np.int64([3, 9, 0]), 2)))
    assert list(zip(rows, columns, strict=True)) == [(0, 0), (1, 2), (1, 0)]
    assert (weights == np.finfo(np.float32).min).all()


def test_what_cannot_be_drawn_is_an_error(run: Any, graph: Graph) -> None:
    with pytest.raises(InvalidArgumentError, match="41 different classes cannot be drawn from 40"):
        run(c.uniform_candidate_sampler(TRUE, 2, 41, True, SIZE)[0])
    with pytest.raises(InvalidArgumentError, match="a true class is out of range, expected 0 to 3"):
        run(c.uniform_candidate_sampler(TRUE, 2, 2, True, 4)[0])
    with pytest.raises(InvalidArgumentError, match="3 classes have a count or are reserved; range_max is 40"):
        run(c.fixed_unigram_candidate_sampler(TRUE, 2, 2, True, SIZE, unigrams=[1, 2, 3])[0])
    with pytest.raises(ShapeError, match="exactly one of vocab_file and unigrams"):
        c.fixed_unigram_candidate_sampler(TRUE, 2, 2, True, SIZE)


WEIGHTS = np.cos(np.arange(SIZE * 3.0)).reshape(SIZE, 3)
BIASES = np.sin(np.arange(SIZE * 1.0))
INPUTS = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.5]])
DRAWN = np.int64([7, 3, 20])
COUNTS = np.array([0.5, 0.25, 0.75])
TRUE_COUNTS = np.array([[0.25, 0.5], [0.125, 0.25]])


def logits() -> tuple[np.ndarray, np.ndarray]:
    true = np.einsum("bd,btd->bt", INPUTS, WEIGHTS[TRUE]) + BIASES[TRUE] - np.log(TRUE_COUNTS)
    drawn = INPUTS @ WEIGHTS[DRAWN].T + BIASES[DRAWN] - np.log(COUNTS)
    return true, drawn


def loss(build: Any, **options: Any) -> Any:
    sampled = (DRAWN, TRUE_COUNTS, COUNTS)
    return build(WEIGHTS, BIASES, TRUE, INPUTS, 3, SIZE, 2, sampled_values=sampled, **options)


def test_noise_is_told_from_truth(run: Any) -> None:
    true, drawn = logits()
    wanted = np.concatenate([np.full(true.shape, 0.5), np.zeros(drawn.shape)], 1)
    both = np.concatenate([true, drawn], 1)
    terms = -(wanted * np.log(scipy.special.expit(both)) + (1 - wanted) * np.log(scipy.special.expit(-both)))
    np.testing.assert_allclose(run(loss(s.nce_loss)), terms.sum(1), rtol=1e-6)


def test_softmax_among_few_classes_leaves_out_drawn_ones_that_are_true(run: Any) -> None:
    true, drawn = logits()
    both = np.concatenate([true, drawn[:, [0, 2]]], 1)
    expected = -scipy.special.log_softmax(both, 1)[:, :2].mean(1)
    np.testing.assert_allclose(run(loss(s.sampled_softmax_loss)), expected, rtol=1e-6)
    kept = scipy.special.log_softmax(np.concatenate([true, drawn], 1), 1)[:, :2]
    found = run(loss(s.sampled_softmax_loss, remove_accidental_hits=False))
    np.testing.assert_allclose(found, -kept.mean(1), rtol=1e-6)


def test_a_table_may_lie_in_parts(run: Any) -> None:
    parts = {"mod": [WEIGHTS[i::3] for i in range(3)], "div": np.array_split(WEIGHTS, 3)}
    whole = run(loss(s.nce_loss))
    for strategy, tables in parts.items():
        sampled = (DRAWN, TRUE_COUNTS, COUNTS)
        found = s.nce_loss(
            tables, BIASES, TRUE, INPUTS, 3, SIZE, 2, sampled_values=sampled, partition_strategy=strategy
        )
        np.testing.assert_allclose(run(found), whole, rtol=1e-12)


def test_a_training_step_touches_only_the_rows_it_uses(run: Any, graph: Graph) -> None:
    table, biases = Variable(WEIGHTS, name="w"), Variable(BIASES, name="b")
    for variable in (table, biases):
        run(variable.initializer)
    value = s.nce_loss(table, biases, TRUE[:, :1], constant(INPUTS), 5, SIZE)
    found = gradients(value, [table, biases])
    assert [type(each).__name__ for each in found] == ["IndexedSlices", "IndexedSlices"]
    assert run(found[0].values).shape == (2 + 5, 3)


def test_rows_that_are_too_long_are_scaled_down(run: Any) -> None:
    table = np.array([[3.0, 4.0], [0.3, 0.4]])
    np.testing.assert_allclose(
        run(embedding_lookup(table, [0, 1, 0], max_norm=1.0)), [[0.6, 0.8], [0.3, 0.4], [0.6, 0.8]]
    )
    with pytest.raises(GraphError, match="1 parts by 'hash'; expected some, by mod or div"):
        embedding_lookup(table, [0], "hash")
    with pytest.raises(ShapeError, match="number of rows of each part must be known"):
        embedding_lookup([a.placeholder(np.float32, [None, 2])] * 2, [0])
