"""Cells and networks over time: what the formulas say, gradients, variables, and one cluster for a training step."""

from collections.abc import Callable
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from ops.test_op_gradients import differences

import xlalite as tf
from xlalite.framework.graph.errors import GraphError
from xlalite.hlo.errors import ShapeError
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.helpers.gradients import gradients

BATCH, TIME, DEPTH, UNITS = 3, 4, 2, 3
RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((BATCH, TIME, DEPTH))
LENGTHS = np.int32([4, 0, 2])


def sigmoid(x: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-x)))


def given_values(variables: list[Any], run: Any) -> dict[str, np.ndarray]:
    """Random values for variables, which they have from now on."""
    values = {}
    for number, variable in enumerate(variables):
        rng = np.random.default_rng(number)
        values[variable.op.name.rpartition("_cell/")[2]] = value = rng.standard_normal(variable.shape.known_dims())
        run.context.assign_variable(variable.op.name, value)
    return values


def rnn(x: np.ndarray, h: np.ndarray, w: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    h = np.tanh(np.c_[x, h] @ w["kernel"] + w["bias"])
    return h, h


def gru(x: np.ndarray, h: np.ndarray, w: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    r, u = np.split(sigmoid(np.c_[x, h] @ w["gates/kernel"] + w["gates/bias"]), 2, 1)
    c = np.tanh(np.c_[x, r * h] @ w["candidate/kernel"] + w["candidate/bias"])
    h = u * h + (1 - u) * c
    return h, h


def lstm(x: np.ndarray, state: Any, w: dict[str, np.ndarray]) -> tuple[np.ndarray, Any]:
    c, h = state
    i, j, f, o = np.split(np.c_[x, h] @ w["kernel"] + w["bias"], 4, 1)
    c = sigmoid(f + 1) * c + sigmoid(i) * np.tanh(j)
    h = sigmoid(o) * np.tanh(c)
    return h, (c, h)


def peephole_lstm(x: np.ndarray, state: Any, w: dict[str, np.ndarray]) -> tuple[np.ndarray, Any]:
    c, h = state
    i, j, f, o = np.split(np.c_[x, h] @ w["kernel"] + w["bias"], 4, 1)
    c = sigmoid(f + 1 + w["w_f_diag"] * c) * c + sigmoid(i + w["w_i_diag"] * c) * np.tanh(j)
    c = np.clip(c, -0.5, 0.5)
    h = sigmoid(o + w["w_o_diag"] * c) * np.tanh(c)
    h = np.clip(h @ w["projection/kernel"], -0.3, 0.3)
    return h, (c, h)


def zeros(*sizes: int) -> Any:
    return tuple(np.zeros((BATCH, size)) for size in sizes) if len(sizes) > 1 else np.zeros((BATCH, *sizes))


CELLS: dict[str, tuple[Callable[[], Any], Callable[..., Any], Any]] = {
    "BasicRNNCell": (lambda: tf.nn.rnn_cell.BasicRNNCell(UNITS), rnn, zeros(UNITS)),
    "GRUCell": (lambda: tf.nn.rnn_cell.GRUCell(UNITS), gru, zeros(UNITS)),
    "BasicLSTMCell": (lambda: tf.nn.rnn_cell.BasicLSTMCell(UNITS), lstm, zeros(UNITS, UNITS)),
    "LSTMBlockCell": (lambda: tf.contrib.rnn.LSTMBlockCell(UNITS), lstm, zeros(UNITS, UNITS)),
    "LSTMCell": (
        lambda: tf.nn.rnn_cell.LSTMCell(UNITS, use_peepholes=True, cell_clip=0.5, num_proj=2, proj_clip=0.3),
        peephole_lstm,
        zeros(UNITS, 2),
    ),
}


def unrolled(step: Callable[..., Any], state: Any, values: dict[str, np.ndarray], x: np.ndarray, lengths: Any) -> Any:
    """Outputs `[batch, time, ...]` and the last state, by a loop in Python."""
    outputs = []
    for time in range(x.shape[1]):
        output, following = step(x[:, time], state, values)
        runs = (time < lengths)[:, None]
        outputs.append(np.where(runs, output, 0))
        if isinstance(state, tuple):
            state = tuple(np.where(runs, b, a) for a, b in zip(state, following, strict=True))
        else:
            state = np.where(runs, following, state)
    return np.stack(outputs, 1), state


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("static", [True, False], ids=["known sizes", "unknown sizes"])
def test_dynamic_rnn_is_what_the_formulas_say(name: str, static: bool, run: Any) -> None:
    make, step, start = CELLS[name]
    x = tf.placeholder(tf.float64, X.shape if static else [None, None, DEPTH])
    outputs, state = tf.nn.dynamic_rnn(make(), x, LENGTHS, dtype=tf.float64)
    values = given_values(tf.trainable_variables(), run)
    expected, last = unrolled(step, start, values, X, LENGTHS)
    flat = [outputs, *(state if isinstance(state, tuple) else [state])]
    for found in (run(flat, {x: X}), run.compiled(flat, {x: X})):
        np.testing.assert_allclose(found[0], expected, rtol=1e-6, atol=1e-12)
        for mine, theirs in zip(found[1:], last if isinstance(last, tuple) else [last], strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-12)
    assert outputs.shape.as_list()[2] == expected.shape[2]


@pytest.mark.parametrize("name", ["BasicLSTMCell", "GRUCell"])
def test_networks_of_lists_and_time_major_ones_agree_with_the_loop(name: str, run: Any) -> None:
    cell = CELLS[name][0]()
    x = tf.placeholder(tf.float64, X.shape)
    outputs, _ = tf.nn.dynamic_rnn(cell, x, LENGTHS, dtype=tf.float64)
    turned, _ = tf.nn.dynamic_rnn(cell, tf.transpose(x, [1, 0, 2]), LENGTHS, dtype=tf.float64, time_major=True)
    listed, _ = tf.nn.static_rnn(cell, tf.unstack(x, axis=1), dtype=tf.float64, sequence_length=LENGTHS)
    given_values(tf.trainable_variables(), run)
    first, second, third = run([outputs, tf.transpose(turned, [1, 0, 2]), tf.stack(listed, 1)], {x: X})
    np.testing.assert_allclose(second, first, rtol=1e-12)
    np.testing.assert_allclose(third, first, rtol=1e-12)
    assert len(tf.trainable_variables()) == len(cell.variables)


def test_bidirectional_networks_turn_each_sequence_round(run: Any) -> None:
    make, step, start = CELLS["GRUCell"]
    x = tf.placeholder(tf.float64, [None, None, DEPTH])
    (_, backwards), (_, last) = tf.nn.bidirectional_dynamic_rnn(make(), make(), x, LENGTHS, dtype=tf.float64)
    variables = [v for v in tf.trainable_variables() if "/bw/" in v.name]
    given_values([v for v in tf.trainable_variables() if "/fw/" in v.name], run)
    values = given_values(variables, run)

    def turned(rows: np.ndarray) -> np.ndarray:
        return np.stack([np.r_[row[:n][::-1], row[n:]] for row, n in zip(rows, LENGTHS, strict=True)])

    expected, final = unrolled(step, start, values, turned(X), LENGTHS)
    found = run([backwards, last], {x: X})
    np.testing.assert_allclose(found[0], turned(expected), rtol=1e-6)
    np.testing.assert_allclose(found[1], final, rtol=1e-6)
    names = {v.op.name for v in variables}
    assert "bidirectional_rnn/bw/gru_cell/gates/kernel" in names


def test_static_bidirectional_network_joins_both_directions(run: Any) -> None:
    make = CELLS["BasicRNNCell"][0]
    steps = [tf.constant(X[:, time]) for time in range(TIME)]
    outputs, _, _ = tf.nn.static_bidirectional_rnn(make(), make(), steps, dtype=tf.float64)
    whole, _ = tf.nn.bidirectional_dynamic_rnn(make(), make(), tf.constant(X), dtype=tf.float64, scope="other")
    by_name = {}
    for number, variable in enumerate(tf.trainable_variables()):
        name = variable.op.name.replace("other", "bidirectional_rnn")
        by_name.setdefault(name, np.random.default_rng(number).standard_normal(variable.shape.known_dims()))
        run.context.assign_variable(variable.op.name, by_name[name])
    listed, joined = run([tf.stack(outputs, 1), tf.concat(list(whole), 2)])
    np.testing.assert_allclose(listed, joined, rtol=1e-12)


@pytest.mark.parametrize("name", CELLS)
def test_gradients_of_the_loop_agree_with_differences(name: str, run: Any) -> None:
    x = tf.placeholder(tf.float64, [None, None, DEPTH])
    outputs, state = tf.nn.dynamic_rnn(CELLS[name][0](), x, LENGTHS, dtype=tf.float64)
    last = state[0] if isinstance(state, tuple) else state
    loss = tf.reduce_sum(outputs * tf.cos(outputs)) + tf.reduce_sum(last * last)
    given_values(tf.trainable_variables(), run)
    (slope,) = run.compiled([convert_to_tensor(gradients(loss, x)[0])], {x: X})
    expected = differences(lambda feeds: run(loss, feeds), {x: X}, x, 1e-6)
    np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-6)
    kernel = tf.trainable_variables()[0]
    found = run(gradients(loss, kernel)[0], {x: X})
    start = run.context.variables[kernel.op.name]
    for place in [(0, 0), (start.shape[0] - 1, start.shape[1] - 1)]:
        losses = []
        for sign in (1, -1):
            moved = start.copy()
            moved[place] += sign * 1e-6
            run.context.assign_variable(kernel.op.name, moved)
            losses.append(float(run(loss, {x: X})))
        np.testing.assert_allclose(found[place], (losses[0] - losses[1]) / 2e-6, rtol=1e-5, atol=1e-6)
        run.context.assign_variable(kernel.op.name, start)


def test_training_step_with_stacked_cells_and_dropout_is_one_cluster(graph: Any) -> None:
    tf.set_random_seed(1)
    x = tf.placeholder(tf.float32, [BATCH, None, DEPTH])

    def layer() -> Any:
        cell = tf.contrib.rnn.BasicLSTMCell(DEPTH)
        return tf.contrib.rnn.ResidualWrapper(tf.contrib.rnn.DropoutWrapper(cell, output_keep_prob=0.5, seed=3))

    outputs, _ = tf.nn.dynamic_rnn(tf.contrib.rnn.MultiRNNCell([layer() for _ in range(2)]), x, dtype=tf.float32)
    step = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(tf.square(outputs)))
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.ON_1
    names = {v.op.name for v in tf.trainable_variables()}
    assert "rnn/multi_rnn_cell/cell_1/basic_lstm_cell/kernel" in names
    losses = []
    for settings in (config, tf.ConfigProto()):
        with tf.Session(config=settings) as session:
            session.run(tf.global_variables_initializer())
            for _ in range(2):
                session.run(step, {x: np.float32(X)})
            losses.append(session.run(tf.trainable_variables()))
            if settings is config:
                report = session.cluster_report()
                updates = [op for op in graph.get_operations() if op.type in ("ResourceApplyGradientDescent", "While")]
                assert len({report.explain(op).rpartition("in cluster")[2] for op in updates}) == 1
                assert "in cluster" in report.explain(updates[0])
    for one, other in zip(*losses, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_dropout_draws_other_numbers_in_each_step_and_variational_dropout_the_same(run: Any) -> None:
    ones = tf.ones([1, 50, 20])

    class Through(tf.nn.rnn_cell.RNNCell):
        state_size = output_size = 20

        def call(self, inputs: Any, state: Any) -> Any:
            return inputs, state

    plain = tf.nn.rnn_cell.DropoutWrapper(Through(), output_keep_prob=0.5, seed=1)
    same = tf.nn.rnn_cell.DropoutWrapper(
        Through(), output_keep_prob=0.5, variational_recurrent=True, dtype=tf.float32, seed=1
    )
    first, _ = tf.nn.dynamic_rnn(plain, ones, dtype=tf.float32)
    second, _ = tf.nn.dynamic_rnn(same, ones, dtype=tf.float32)
    varied, fixed = run(first)[0], run(second)[0]
    assert len(np.unique(varied, axis=0)) > 40
    assert len(np.unique(fixed, axis=0)) == 1
    assert set(np.unique(varied)) == {0, 2}


def test_cells_of_users_make_their_variables_inside_the_loop(run: Any) -> None:
    class Mine(tf.nn.rnn_cell.RNNCell):
        state_size = output_size = 2

        def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
            with tf.variable_scope(scope or "mine"):
                weights = tf.get_variable("w", [DEPTH, 2], tf.float64, tf.ones_initializer())
                new = state + tf.matmul(inputs, weights)
            return new, new

    _, last = tf.nn.dynamic_rnn(Mine(), tf.constant(X), dtype=tf.float64)
    assert [v.op.name for v in tf.trainable_variables()] == ["rnn/mine/w"]
    run(tf.global_variables_initializer())
    np.testing.assert_allclose(run(last), np.broadcast_to(X.sum((1, 2))[:, None], (BATCH, 2)))
    (slope,) = gradients(tf.reduce_sum(last), tf.trainable_variables())
    np.testing.assert_allclose(run(slope), np.broadcast_to(X.sum((0, 1))[:, None], (DEPTH, 2)))


def test_scopes_that_are_opened_again_find_the_cells_variables(graph: Any) -> None:
    for reuse in (None, True):
        with tf.variable_scope("model", reuse=reuse):
            tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(UNITS), tf.constant(X), dtype=tf.float64)
    assert [v.op.name for v in tf.trainable_variables()] == [
        "model/rnn/lstm_cell/kernel",
        "model/rnn/lstm_cell/bias",
    ]


def test_raw_rnn_runs_until_the_function_says_so(run: Any) -> None:
    steps = tf.TensorArray(tf.float64, TIME).unstack(tf.transpose(tf.constant(X), [1, 0, 2]))
    cell = tf.nn.rnn_cell.GRUCell(UNITS)

    def loop(time: Any, output: Any, state: Any, loop_state: Any) -> Any:
        following = cell.zero_state(BATCH, tf.float64) if output is None else state
        finished = time >= LENGTHS
        return finished, steps.read(tf.minimum(time, TIME - 1)), following, output, None

    emitted, last, _ = tf.nn.raw_rnn(cell, loop)
    expected, final = tf.nn.dynamic_rnn(cell, tf.constant(X), LENGTHS, dtype=tf.float64)
    given_values(tf.trainable_variables(), run)
    found = run([tf.transpose(emitted.stack(), [1, 0, 2]), expected, last, final])
    np.testing.assert_allclose(found[0], found[1])
    np.testing.assert_allclose(found[2], found[3])


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(2), tf.zeros([3])), ShapeError, "a known rank of 2 or more"),
        (lambda: tf.nn.static_rnn(tf.nn.rnn_cell.GRUCell(2), []), GraphError, "there are no inputs"),
        (lambda: tf.nn.rnn_cell.MultiRNNCell([]), GraphError, "there is no cell"),
        (lambda: tf.nn.rnn_cell.DropoutWrapper(None, 1.5), GraphError, r"input_keep_prob must be in \[0, 1\]"),
        (
            lambda: tf.nn.rnn_cell.LSTMCell(2)(tf.zeros([1, 2]), tf.zeros([1, 2])),
            GraphError,
            r"the state is a pair \(c, h\)",
        ),
    ],
)
def test_what_cannot_be_run_over_time_is_an_error(build: Any, error: Any, message: str, graph: Any) -> None:
    with pytest.raises(error, match=message):
        build()


def test_convolutional_cell_with_a_kernel_of_one_point_is_a_cell_for_each_pixel(run: Any) -> None:
    images = RANDOM.standard_normal((2, TIME, 3, 4, DEPTH))
    cell = tf.contrib.rnn.Conv2DLSTMCell(input_shape=[3, 4, DEPTH], output_channels=UNITS, kernel_shape=[1, 1])
    x = tf.placeholder(tf.float64, [None, None, 3, 4, DEPTH])
    outputs, _ = tf.nn.dynamic_rnn(cell, x, dtype=tf.float64)
    assert [v.op.name for v in cell.variables] == ["rnn/conv_2d_lstm_cell/kernel", "rnn/conv_2d_lstm_cell/biases"]
    values = given_values(cell.variables, run)
    weights = {"kernel": values["kernel"][0, 0], "bias": values["biases"]}
    pixels = images.transpose(0, 2, 3, 1, 4).reshape(-1, TIME, DEPTH)
    start = tuple(np.zeros((len(pixels), UNITS)) for _ in range(2))
    expected, _ = unrolled(lstm, start, weights, pixels, np.full(len(pixels), TIME))
    expected = expected.reshape(2, 3, 4, TIME, UNITS).transpose(0, 3, 1, 2, 4)
    np.testing.assert_allclose(run(outputs, {x: images}), expected, rtol=1e-6)
    (slope,) = gradients(tf.reduce_sum(outputs**2), x)
    (compiled,) = run.compiled([slope], {x: images})
    np.testing.assert_allclose(compiled, run(slope, {x: images}), rtol=1e-9)


def test_convolutional_cell_with_a_shortcut_puts_its_inputs_out(run: Any) -> None:
    cell = tf.contrib.rnn.ConvLSTMCell(1, [5, DEPTH], UNITS, [3], skip_connection=True)
    x = RANDOM.standard_normal((2, 5, DEPTH))
    output, state = cell(tf.constant(x), cell.zero_state(2, tf.float64))
    run(tf.global_variables_initializer())
    np.testing.assert_array_equal(run(output)[..., UNITS:], x)
    assert state.c.shape.as_list() == [2, 5, UNITS]
    with pytest.raises(GraphError, match="do not have 2 dimensions"):
        tf.contrib.rnn.ConvLSTMCell(2, [5, DEPTH], UNITS, [3])


def cross_entropies(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(-1, keepdims=True)
    total = np.log(np.exp(shifted).sum(-1))
    return np.asarray(total - np.take_along_axis(shifted, labels[..., None], -1)[..., 0])


LOGITS = RANDOM.standard_normal((2, 3, 5))
LABELS = RANDOM.integers(0, 5, (2, 3))
WEIGHTS = np.array([[1.0, 1.0, 0.0], [1.0, 0.5, 0.25]])


def test_sequence_losses(run: Any) -> None:
    each = cross_entropies(LOGITS, LABELS) * WEIGHTS
    loss = tf.contrib.seq2seq.sequence_loss
    np.testing.assert_allclose(run(loss(LOGITS, LABELS, WEIGHTS)), each.sum() / WEIGHTS.sum())
    np.testing.assert_allclose(run(loss(LOGITS, LABELS, WEIGHTS, False)), each.sum(0) / WEIGHTS.sum(0))
    np.testing.assert_allclose(run(loss(LOGITS, LABELS, WEIGHTS, True, False)), each.sum(1) / WEIGHTS.sum(1))
    np.testing.assert_allclose(run(loss(LOGITS, LABELS, WEIGHTS, False, False)), each)
    steps = ([*LOGITS.transpose(1, 0, 2)], [*LABELS.T], [*WEIGHTS.T])
    legacy = tf.contrib.legacy_seq2seq
    np.testing.assert_allclose(run(legacy.sequence_loss_by_example(*steps)), each.sum(1) / WEIGHTS.sum(1))
    np.testing.assert_allclose(run(legacy.sequence_loss(*steps)), (each.sum(1) / WEIGHTS.sum(1)).mean())


def test_conditional_random_field_agrees_with_all_paths(run: Any) -> None:
    scores = RANDOM.standard_normal((3, 4, 3))
    transitions = RANDOM.standard_normal((3, 3))
    lengths = np.int32([4, 1, 3])
    tags = RANDOM.integers(0, 3, (3, 4))
    crf = tf.contrib.crf

    def score(number: int, path: tuple[int, ...]) -> float:
        unary = sum(scores[number, time, tag] for time, tag in enumerate(path))
        return float(unary + sum(transitions[a, b] for a, b in pairwise(path)))

    x = tf.placeholder(tf.float64, [None, None, 3])
    likelihood, _ = crf.crf_log_likelihood(x, tags, lengths, transitions)
    decoded, best = crf.crf_decode(x, transitions, lengths)
    for fetched in (
        run([likelihood, decoded, best], {x: scores}),
        run.compiled([likelihood, decoded, best], {x: scores}),
    ):
        for number, length in enumerate(lengths):
            paths = list(product(range(3), repeat=int(length)))
            all_scores = np.array([score(number, path) for path in paths])
            own = score(number, tuple(tags[number, :length]))
            np.testing.assert_allclose(fetched[0][number], own - np.log(np.exp(all_scores).sum()))
            np.testing.assert_array_equal(fetched[1][number, :length], paths[int(all_scores.argmax())])
            assert not fetched[1][number, length:].any()
            np.testing.assert_allclose(fetched[2][number], all_scores.max())
    path, value = crf.viterbi_decode(scores[0], transitions)
    np.testing.assert_array_equal(path, run(decoded, {x: scores})[0])
    np.testing.assert_allclose(value, run(best, {x: scores})[0])
    (slope,) = gradients(tf.reduce_sum(likelihood), x)
    expected = differences(lambda feeds: run(tf.reduce_sum(likelihood), feeds), {x: scores}, x, 1e-6)
    np.testing.assert_allclose(run(slope, {x: scores}), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("projected", [None, 2])
def test_nas_cell(graph: Any, rng: np.random.Generator, projected: int | None) -> None:
    units, out = 3, projected or 3
    x, c, h = (rng.standard_normal(sizes).astype(np.float32) for sizes in ((4, 5), (4, units), (4, out)))
    cell = tf.contrib.rnn.NASCell(units, num_proj=projected, use_bias=True)
    state = tf.nn.rnn_cell.LSTMStateTuple(tf.constant(c), tf.constant(h))
    given = tf.constant(x)
    output, after = cell(given, state)
    slope = tf.gradients(tf.reduce_sum(output * output), given)[0]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        values = {variable.name.rpartition("/")[2]: session.run(variable) for variable in tf.global_variables()}
        found, found_state, found_slope = session.run([output, after, slope])

    def step(x: Any) -> tuple[Any, Any]:
        def sigmoid(v: Any) -> Any:
            return 1 / (1 + np.exp(-v))

        a = np.split(x @ values["kernel:0"], 8, 1)
        b = np.split(h @ values["recurrent_kernel:0"] + values["bias:0"], 8, 1)
        left = np.tanh(np.tanh(sigmoid(a[0] + b[0]) * np.maximum(a[1] + b[1], 0)) + c)
        new_c = left * np.tanh(sigmoid(a[2] + b[2]) + np.maximum(a[3] * b[3], 0))
        right = np.tanh(np.tanh(a[4] + b[4]) * sigmoid(a[5] + b[5]))
        new_h = np.tanh(new_c * np.tanh(right + sigmoid(sigmoid(a[7] + b[7]) + np.tanh(a[6] + b[6]))))
        return new_c, new_h @ values["projection_weights:0"] if projected else new_h

    np.testing.assert_allclose(found, step(x)[1], rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(found_state.c, step(x)[0], rtol=2e-5, atol=1e-6)
    wide, near = x.astype(np.float64), 1e-5
    moved = np.zeros_like(wide)
    for place in np.ndindex(*wide.shape):
        change = np.zeros_like(wide)
        change[place] = near
        moved[place] = ((step(wide + change)[1] ** 2).sum() - (step(wide - change)[1] ** 2).sum()) / (2 * near)
    np.testing.assert_allclose(found_slope, moved, rtol=1e-3, atol=1e-4)
