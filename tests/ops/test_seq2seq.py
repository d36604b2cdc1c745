"""Attention, decoders and beam search against the same by hand."""

import itertools
from typing import Any

import numpy as np
import pytest

import xlalite as tf
from xlalite.framework.graph.errors import UnimplementedError

s2s = tf.contrib.seq2seq
F = np.float32
BATCH, STEPS, PLACES, DEPTH, WORDS, END = 3, 5, 4, 6, 7, 2
RNG = np.random.default_rng(7)
MEMORY = RNG.normal(size=(BATCH, PLACES, DEPTH)).astype(F)
QUERY = RNG.normal(size=(BATCH, DEPTH)).astype(F)
LENGTHS = [4, 2, 3]


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.fixture(params=[False, True], ids=["host", "jit"])
def session(request: Any) -> Any:
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = request.param
    with tf.Graph().as_default():
        yield lambda: tf.Session(config=config)


@pytest.mark.parametrize("extra", [False, True])
def test_scores_are_bahdanaus_and_luongs(session: Any, extra: bool) -> None:
    additive = s2s.BahdanauAttention(DEPTH, MEMORY, LENGTHS, normalize=extra)
    product = s2s.LuongAttention(DEPTH, MEMORY, LENGTHS, scale=extra)
    found = [each(QUERY, None)[0] for each in (additive, product)]
    names = {each.op.name: each for each in tf.global_variables()}
    with session() as sess:
        sess.run(tf.global_variables_initializer())
        one, other = sess.run(found)
        v = sess.run(names)
    mask = np.arange(PLACES) < np.array(LENGTHS)[:, None]
    memory = MEMORY * mask[..., None]
    keys = memory @ v["memory_layer/kernel"]
    weights, bias = v["bahdanau_attention/attention_v"], 0
    if extra:
        weights = v["bahdanau_attention/attention_g"] * weights / np.sqrt((weights**2).sum())
        bias = v["bahdanau_attention/attention_b"]
    query = QUERY @ v["bahdanau_attention/query_layer/kernel"]
    score = (weights * np.tanh(keys + query[:, None] + bias)).sum(-1)
    np.testing.assert_allclose(one, softmax(np.where(mask, score, -np.inf)), rtol=1e-4, atol=1e-6)
    keys = memory @ v["memory_layer_1/kernel"]
    score = np.einsum("bd,bpd->bp", QUERY, keys) * v.get("luong_attention/attention_g", 1)
    np.testing.assert_allclose(other, softmax(np.where(mask, score, -np.inf)), rtol=1e-4, atol=1e-6)


def test_monotonic_alignments_of_three_modes(session: Any) -> None:
    chosen = RNG.uniform(0.1, 0.9, (2, 5)).astype(F)
    before = softmax(RNG.normal(size=(2, 5))).astype(F)
    hard = (chosen > 0.5).astype(F)
    one = np.eye(5, dtype=F)[[0, 2]]
    with session() as sess:
        found = sess.run([s2s.monotonic_attention(chosen, before, mode) for mode in ("recursive", "parallel")])
        kept = sess.run(s2s.monotonic_attention(hard, one, "hard"))
    reached = np.zeros((2, 5))
    for place in range(5):
        last = 0 if place == 0 else reached[:, place - 1] * (1 - chosen[:, place - 1])
        reached[:, place] = last + before[:, place]
    for each in found:
        np.testing.assert_allclose(each, chosen * reached, rtol=1e-4)
    for row, start in ((0, 0), (1, 2)):
        first = next((place for place in range(start, 5) if hard[row, place]), None)
        np.testing.assert_array_equal(kept[row], np.zeros(5) if first is None else np.eye(5)[first])
    with pytest.raises(ValueError, match="mode must be"):
        s2s.monotonic_attention(chosen, before, "soft")


@pytest.mark.parametrize(
    "mechanism",
    ["BahdanauAttention", "LuongAttention", "BahdanauMonotonicAttention", "LuongMonotonicAttention"],
)
def test_a_decoder_with_attention_in_training(session: Any, mechanism: str) -> None:
    x = tf.placeholder(tf.float32, [None, None, 2])
    lengths = tf.placeholder(tf.int32, [None])
    memory = tf.placeholder(tf.float32, [None, None, DEPTH])
    cell = s2s.AttentionWrapper(
        tf.nn.rnn_cell.GRUCell(DEPTH),
        getattr(s2s, mechanism)(DEPTH, memory, LENGTHS),
        attention_layer_size=3,
        alignment_history=True,
    )
    helper = s2s.TrainingHelper(x, lengths)
    decoder = s2s.BasicDecoder(cell, helper, cell.zero_state(BATCH, tf.float32), tf.layers.Dense(WORDS))
    outputs, state, found = s2s.dynamic_decode(decoder, impute_finished=True)
    loss = tf.reduce_sum(tf.square(outputs.rnn_output))
    gradients = tf.gradients(loss, tf.trainable_variables())
    # A second call step by step, on the same variables.
    inputs = RNG.normal(size=(BATCH, STEPS, 2)).astype(F)
    given = [4, 2, 0]
    with tf.variable_scope("decoder", reuse=True):
        at, by_hand = cell.zero_state(BATCH, tf.float32), []
        for step in range(max(given)):
            output, at = cell(tf.constant(inputs[:, step]), at)
            by_hand.append(decoder._output_layer(output))
    with session() as sess:
        sess.run(tf.global_variables_initializer())
        feed = {x: inputs, lengths: given, memory: MEMORY}
        got, sizes, history, steps = sess.run([outputs, found, state.alignment_history.stack(), gradients], feed)
        wanted = np.stack(sess.run(by_hand, feed), 1)
    running = np.arange(4) < np.array(given)[:, None]
    np.testing.assert_allclose(got.rnn_output, wanted * running[..., None], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(got.sample_id, np.where(running, wanted.argmax(-1), 0))
    np.testing.assert_array_equal(sizes, given)
    assert history.shape == (4, BATCH, PLACES)
    assert all(np.isfinite(each).all() for each in steps)
    assert any(np.abs(each).max() > 0 for each in steps)


def table(sess: Any) -> Any:
    """Log-probabilities of words behind words."""
    logits = RNG.normal(size=(WORDS, WORDS)) * 2
    return np.log(softmax(logits)).astype(F)


class Chain(tf.nn.rnn_cell.RNNCell):  # type: ignore[misc]
    """Puts out what it gets, and counts."""

    state_size = 1
    output_size = WORDS

    def call(self, inputs: Any, state: Any) -> Any:
        return inputs, state + 1


def test_the_best_word_goes_on_until_the_end(session: Any) -> None:
    scores = table(None)
    start = tf.placeholder(tf.int32, [None])
    helper = s2s.GreedyEmbeddingHelper(scores, start, END)
    decoder = s2s.BasicDecoder(Chain(), helper, tf.zeros([tf.size(start), 1]))
    outputs, _, lengths = s2s.dynamic_decode(decoder, maximum_iterations=6)
    drawn = s2s.SampleEmbeddingHelper(scores * 1000, start, END, softmax_temperature=1.0, seed=1)
    sampled, _, _ = s2s.dynamic_decode(
        s2s.BasicDecoder(Chain(), drawn, tf.zeros([tf.size(start), 1])), maximum_iterations=6
    )
    with session() as sess:
        words, sizes, others = sess.run([outputs.sample_id, lengths, sampled.sample_id], {start: range(WORDS)})
    for first in range(WORDS):
        last, wanted = first, []
        while len(wanted) < 6 and END not in wanted:
            last = int(scores[last].argmax())
            wanted.append(last)
        assert sizes[first] == len(wanted)
        np.testing.assert_array_equal(words[first, : len(wanted)], wanted)
        np.testing.assert_array_equal(others[first, : len(wanted)], wanted)


@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_a_wide_beam_finds_the_likeliest_sentences(session: Any, penalty: float) -> None:
    scores, steps, width = table(None), 3, WORDS**2
    start = tf.placeholder(tf.int32, [None])
    state = s2s.tile_batch(tf.zeros([tf.size(start), 1]), width)
    decoder = s2s.BeamSearchDecoder(Chain(), scores, start, END, state, width, length_penalty_weight=penalty)
    outputs, last, _ = s2s.dynamic_decode(decoder, maximum_iterations=steps)
    with session() as sess:
        words, states, lengths = sess.run([outputs.predicted_ids, last.cell_state, last.lengths], {start: [0, 5]})
    assert words.shape == (2, steps, width)
    assert states.shape == (2, width, 1)
    for row, first in enumerate((0, 5)):
        listed = {}
        for sentence in itertools.product(range(WORDS), repeat=steps):
            size = sentence.index(END) + 1 if END in sentence else steps
            path = (first, *sentence[:size])
            total = sum(scores[a, b] for a, b in itertools.pairwise(path))
            # The end of a sentence counts from the next step on, as TensorFlow has it.
            counted = size - (size == steps and END in sentence)
            listed[(*path[1:], *[END] * (steps - size))] = total / ((5 + counted) / 6) ** penalty
        best = sorted(listed, key=lambda each: -listed[each])[:5]
        np.testing.assert_array_equal(words[row].T[:5], best)
        assert lengths[row, 0] == (best[0].index(END) + 1 if END in best[0] else steps)


def test_whole_beams_end_with_their_first_end() -> None:
    ids = np.int32([[[1, 5, 3]], [[4, END, 6]], [[5, 5, 5]]])
    parents = np.int32([[[0, 0, 0]], [[0, 1, 1]], [[2, 1, 0]]])
    with tf.Graph().as_default(), tf.Session() as sess:
        whole = sess.run(s2s.gather_tree(ids, parents, [3], END))
        short = sess.run(s2s.gather_tree(ids, parents, [2], END))
    np.testing.assert_array_equal(whole[:, 0].T, [[5, 6, 5], [5, END, END], [1, 4, 5]])
    np.testing.assert_array_equal(short[:, 0].T, [[1, 4, END], [5, END, END], [5, 6, END]])


def test_scheduled_inputs_and_helpers_of_functions(session: Any) -> None:
    x = RNG.normal(size=(2, 3, WORDS)).astype(F)
    zero = tf.zeros([2, 1])
    embedding = np.full((WORDS, WORDS), 5, F)
    for probability, expected in ((0.0, x[:, 1]), (1.0, np.full((2, WORDS), 5, F))):
        helper = s2s.ScheduledEmbeddingTrainingHelper(x, [3, 3], embedding, probability)
        outputs, _, _ = s2s.dynamic_decode(s2s.BasicDecoder(Chain(), helper, zero))
        fed = s2s.ScheduledOutputTrainingHelper(x, [3, 3], probability, next_inputs_fn=lambda y: y * 0 + 5)
        others, _, _ = s2s.dynamic_decode(s2s.BasicDecoder(Chain(), fed, zero), output_time_major=True)
        with session() as sess:
            np.testing.assert_array_equal(sess.run(outputs.rnn_output)[:, 1], expected)
            np.testing.assert_array_equal(sess.run(others.rnn_output)[1], expected)
    chosen = s2s.InferenceHelper(
        lambda y: y + 1, [WORDS], tf.float32, np.zeros((2, WORDS), F), lambda y: tf.reduce_sum(y, 1) > 13
    )
    custom = s2s.CustomHelper(
        lambda: (tf.constant([False, True]), tf.ones([2, WORDS])),
        lambda time, outputs, state: tf.argmax(outputs, 1, output_type=tf.int32),
        lambda time, outputs, state, sample_ids: (time > tf.constant([1, 5]), outputs, state),
    )
    with session() as sess:
        found, _, lengths = sess.run(s2s.dynamic_decode(s2s.BasicDecoder(Chain(), chosen, zero)))
        np.testing.assert_array_equal(found.sample_id[:, :, 0], [[1, 2], [1, 2]])
        _, state, lengths = sess.run(s2s.dynamic_decode(s2s.BasicDecoder(Chain(), custom, zero), impute_finished=True))
        np.testing.assert_array_equal(lengths, [3, 0])
        np.testing.assert_array_equal(state, [[3], [0]])


def test_what_does_not_fit_is_refused(graph: Any) -> None:
    with pytest.raises(UnimplementedError, match="coverage_penalty_weight"):
        s2s.BeamSearchDecoder(Chain(), table(None), [0], END, tf.zeros([2, 1]), 2, coverage_penalty_weight=1.0)
    with pytest.raises(TypeError, match="Expected decoder"):
        s2s.dynamic_decode(None)
    cell = s2s.AttentionWrapper(tf.nn.rnn_cell.GRUCell(DEPTH), s2s.LuongAttention(DEPTH, MEMORY))
    with pytest.raises(TypeError, match="AttentionWrapperState"):
        cell(QUERY, QUERY)
