"""Connectionist temporal classification, beside all sequences of classes there are."""

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.special

from xlalite.framework.graph.errors import GraphError, InvalidArgumentError
from xlalite.framework.graph.sparse_tensor import SparseTensorValue
from xlalite.ops.functions import ctc
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.gradients import gradients

STEPS, CLASSES = 5, 4
BLANK = CLASSES - 1
LENGTHS = np.int32([5, 4, 3])
LABELS = [[1, 1, 0], [2], []]
LOGITS = 2 * np.cos(np.arange(STEPS * 3 * CLASSES) * 1.3).reshape(STEPS, 3, CLASSES)


def sparse(labels: list[list[int]]) -> SparseTensorValue:
    places = [(row, column) for row, own in enumerate(labels) for column in range(len(own))]
    values = [label for own in labels for label in own]
    indices = np.array(places, np.int64).reshape(-1, 2)
    return SparseTensorValue(indices, np.array(values, np.int32), np.int64([len(labels), max(map(len, labels))]))


def stands_for(path: tuple[int, ...], merged: bool = True) -> list[int]:
    kept = [each for i, each in enumerate(path) if not (merged and i and path[i - 1] == each)]
    return [each for each in kept if each != BLANK]


def probabilities(example: int, merged: bool = True) -> dict[tuple[int, ...], float]:
    """How likely each list of labels is."""
    chances = scipy.special.softmax(LOGITS[: LENGTHS[example], example], axis=-1)
    found: dict[tuple[int, ...], float] = {}
    for path in itertools.product(range(CLASSES), repeat=LENGTHS[example]):
        labels = tuple(stands_for(path, merged))
        found[labels] = found.get(labels, 0) + float(
            np.prod([row[each] for row, each in zip(chances, path, strict=True)])
        )
    return found


def expected(labels: list[list[int]], merged: bool = True) -> np.ndarray:
    return np.array([-np.log(probabilities(i, merged)[tuple(own)]) for i, own in enumerate(labels)])


@pytest.mark.parametrize("merged", [True, False])
def test_loss_counts_all_sequences_that_stand_for_the_labels(merged: bool, run: Any) -> None:
    found = run(ctc.ctc_loss(sparse(LABELS), constant(LOGITS), LENGTHS, ctc_merge_repeated=merged))
    np.testing.assert_allclose(found, expected(LABELS, merged), rtol=1e-10)


def test_loss_of_batches_that_come_first_and_of_half_precision(run: Any) -> None:
    found = run(
        ctc.ctc_loss(sparse(LABELS), logits=LOGITS.transpose(1, 0, 2).copy(), sequence_length=LENGTHS, time_major=False)
    )
    np.testing.assert_allclose(found, expected(LABELS), rtol=1e-10)
    half = run(ctc.ctc_loss(sparse(LABELS), constant(LOGITS.astype(np.float16)), LENGTHS))
    assert half.dtype == np.float16
    np.testing.assert_allclose(half, expected(LABELS), rtol=5e-3)


def test_equal_labels_may_be_taken_as_one_beforehand(run: Any) -> None:
    found = run(ctc.ctc_loss(sparse(LABELS), constant(LOGITS), LENGTHS, preprocess_collapse_repeated=True))
    np.testing.assert_allclose(found, expected([[1, 0], [2], []]), rtol=1e-10)


@pytest.mark.parametrize("merged", [True, False])
def test_gradient_agrees_with_differences(merged: bool, run: Any) -> None:
    x = constant(LOGITS)
    weights = np.array([1.0, -2.0, 0.5])
    losses = ctc.ctc_loss(sparse(LABELS), x, LENGTHS, ctc_merge_repeated=merged)
    found = run(gradients(losses, x, grad_ys=[constant(weights)])[0])
    slope = np.zeros_like(LOGITS)
    for index in np.ndindex(slope.shape):
        step = np.zeros_like(LOGITS)
        step[index] = 1e-6
        high, low = (
            run(ctc.ctc_loss(sparse(LABELS), constant(LOGITS + sign * step), LENGTHS, ctc_merge_repeated=merged))
            for sign in (1, -1)
        )
        slope[index] = ((high - low) * weights).sum() / 2e-6
    np.testing.assert_allclose(found, slope, atol=1e-8)


def test_labels_need_steps(run: Any) -> None:
    labels = sparse([[1, 1, 1], [0], [0, 0]])
    short = np.int32([4, 4, 3])
    with pytest.raises(InvalidArgumentError, match="3 labels need 5 steps, there are 4"):
        run(ctc.ctc_loss(labels, constant(LOGITS), short))
    x = constant(LOGITS)
    losses = ctc.ctc_loss(labels, x, short, ignore_longer_outputs_than_inputs=True)
    found, slope = run([losses, gradients(losses, x)[0]])
    assert found[0] == 0
    assert not slope[:, 0].any()
    np.testing.assert_allclose(found[2], expected([[], [], [0, 0]])[2], rtol=1e-10)
    with pytest.raises(InvalidArgumentError, match="label 3 of example 0 is out of range, expected 0 to 2"):
        run(ctc.ctc_loss(sparse([[3], [], []]), constant(LOGITS), LENGTHS))
    with pytest.raises(InvalidArgumentError, match=r"sequence_length \[6, 1, 1\] does not fit"):
        run(ctc.ctc_loss(sparse(LABELS), constant(LOGITS), np.int32([6, 1, 1])))
    with pytest.raises(GraphError, match="labels must be sparse"):
        ctc.ctc_loss(LABELS, constant(LOGITS), LENGTHS)


def test_dense_labels_and_another_blank(run: Any) -> None:
    dense = np.array([[2, 2, 1], [3, 0, 0], [0, 0, 0]])
    turned = np.concatenate([LOGITS[..., -1:], LOGITS[..., :-1]], -1)
    found = run(ctc.ctc_loss_v2(dense, turned, [3, 1, 0], LENGTHS))
    np.testing.assert_allclose(found, expected(LABELS), rtol=1e-10)
    last = run(ctc.ctc_loss_v2(sparse(LABELS), LOGITS, None, LENGTHS, blank_index=-1))
    np.testing.assert_allclose(last, expected(LABELS), rtol=1e-10)


def rows(indices: np.ndarray, values: np.ndarray) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in LENGTHS]
    for (row, _), each in zip(indices, values, strict=True):
        found[row].append(int(each))
    return found


@pytest.mark.parametrize("merged", [True, False])
def test_greedy_decoding_takes_the_likeliest_class_of_each_step(merged: bool, run: Any) -> None:
    (decoded,), total = ctc.ctc_greedy_decoder(constant(LOGITS), LENGTHS, merged)
    indices, values, sizes, scores = run([decoded.indices, decoded.values, decoded.dense_shape, total])
    best = [LOGITS[:length, i].argmax(1) for i, length in enumerate(LENGTHS)]
    wanted = [stands_for(tuple(each), merged) for each in best]
    assert rows(indices, values) == wanted
    assert list(sizes) == [3, max(map(len, wanted))]
    sums = [-LOGITS[:length, i].max(1).sum() for i, length in enumerate(LENGTHS)]
    np.testing.assert_allclose(scores[:, 0], sums, rtol=1e-12)


def test_a_wide_beam_finds_the_likeliest_labels(run: Any) -> None:
    decoded, scores = ctc.ctc_beam_search_decoder_v2(constant(LOGITS), LENGTHS, beam_width=400, top_paths=2)
    chances = run(scores)
    for path, sparse_labels in enumerate(decoded):
        found = rows(*run([sparse_labels.indices, sparse_labels.values]))
        for example in range(3):
            ranked = sorted(probabilities(example).items(), key=lambda item: -item[1])
            assert tuple(found[example]) == ranked[path][0]
            np.testing.assert_allclose(chances[example, path], np.log(ranked[path][1]), rtol=1e-10)


def test_beams_may_write_equal_labels_once(run: Any) -> None:
    likely = np.full((3, 1, 2), -5.0)
    likely[[0, 2], :, 0] = likely[1, :, 1] = 5
    found = [
        run(ctc.ctc_beam_search_decoder(constant(likely), [3], merge_repeated=merged)[0][0].values)
        for merged in (True, False)
    ]
    assert [list(each) for each in found] == [[0], [0, 0]]
    with pytest.raises(InvalidArgumentError, match="top_paths 3 must not exceed beam_width 2"):
        run(ctc.ctc_beam_search_decoder(constant(likely), [3], 2, 3)[1])
