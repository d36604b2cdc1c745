"""Sessions with the JIT on: the same numbers, faster, and an account of what was compiled."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xlalite as tf
from xlalite.client.timeline import Timeline

ON = tf.OptimizerOptions.ON_1


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def config(level: int = ON, **fields: Any) -> tf.ConfigProto:
    made = tf.ConfigProto(**fields)
    made.graph_options.optimizer_options.global_jit_level = level
    return made


def softmax_regression() -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Operation]:
    x = tf.placeholder(tf.float32, [None, 20], name="x")
    labels = tf.placeholder(tf.float32, [None, 5], name="labels")
    w = tf.Variable(tf.zeros([20, 5]), name="w")
    b = tf.Variable(tf.zeros([5]), name="b")
    logits = tf.matmul(x, w) + b
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits), name="loss")
    return x, labels, loss, tf.train.GradientDescentOptimizer(0.5).minimize(loss, name="step")


def two_layers() -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Operation]:
    x = tf.placeholder(tf.float32, [None, 20], name="x")
    labels = tf.placeholder(tf.float32, [None, 5], name="labels")
    hidden = tf.tanh(_dense(x, 20, 16, 1))
    logits = _dense(hidden, 16, 5, 2)
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits), name="loss")
    return x, labels, loss, tf.train.AdamOptimizer(0.003).minimize(loss, name="step")


def _dense(x: tf.Tensor, inputs: int, outputs: int, seed: int) -> tf.Tensor:
    w = tf.Variable(tf.random_normal([inputs, outputs], stddev=0.3, seed=seed))
    return tf.nn.bias_add(tf.matmul(x, w), tf.Variable(tf.zeros([outputs])))


def batches(count: int, size: int = 16) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(5)
    directions = rng.standard_normal((20, 5))
    for _ in range(count):
        x = rng.standard_normal((size, 20)).astype(np.float32)
        yield x, np.eye(5)[(x @ directions + rng.standard_normal((size, 5))).argmax(1)]


def loss_curve(model: tuple[Any, ...], session_config: tf.ConfigProto, steps: int) -> np.ndarray:
    x, labels, loss, step = model
    with tf.Session(config=session_config) as sess:
        sess.run(tf.global_variables_initializer())
        return np.array([sess.run([loss, step], {x: a, labels: b})[0] for a, b in batches(steps)])


@pytest.mark.parametrize("build", [softmax_regression, two_layers])
def test_loss_curves_with_the_jit_on_and_off_agree(build: Callable[[], tuple[Any, ...]]) -> None:
    model = build()
    off = loss_curve(model, config(tf.OptimizerOptions.OFF), 300)
    on = loss_curve(model, config(), 300)
    np.testing.assert_allclose(on, off, rtol=1e-5)
    assert on[-50:].mean() < on[:50].mean()


def test_results_do_not_depend_on_threads_or_chance() -> None:
    model = two_layers()
    curves = [loss_curve(model, config(intra_op_parallelism_threads=n), 50) for n in (1, 1, 2, 2)]
    for curve in curves[1:]:
        np.testing.assert_array_equal(curve, curves[0])


def test_jit_level_alone_puts_the_training_step_into_one_cluster() -> None:
    x, labels, _, step = softmax_regression()
    with tf.Session(config=config()) as sess:
        sess.run(tf.global_variables_initializer())
        for a, b in batches(3):
            sess.run(step, {x: a, labels: b})
        report = sess.jit_report()
        assert report.is_on
        assert report.clustered >= 15
        text = str(report)
        assert text.startswith("JIT: ")
        assert "cluster" in text
        assert "\n" not in text
        (compiled,) = sess.compilation_cache.executables()[-1:]
        assert len(compiled.program_shape.parameters) == 4
        assert compiled.memory_analysis().alias_size_bytes == (20 * 5 + 5) * 4


def test_nothing_is_clustered_with_the_jit_off() -> None:
    x, labels, loss, _ = softmax_regression()
    with tf.Session(config=config(tf.OptimizerOptions.OFF)) as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(loss, {x: np.zeros((2, 20)), labels: np.zeros((2, 5))})
        assert str(sess.jit_report()).startswith("JIT off")
        assert sess.compilation_cache.statistics().compilations == 0
        assert "the JIT is off" in str(sess.cluster_report())


def test_report_says_why_nothing_was_clustered() -> None:
    x = tf.placeholder(tf.float32, [2])
    with tf.Session(config=config()) as sess:
        sess.run(tf.exp(x), {x: [1, 2]})
        text = str(sess.jit_report())
    assert text.startswith("JIT: 0 of 1 operations in 0 clusters: ")
    assert "(1)" in text


def test_flags_switch_the_jit_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLALITE_FLAGS", "--tf_xla_auto_jit=1 --tf_xla_min_cluster_size=1")
    x = tf.placeholder(tf.float32, [2])
    with tf.Session() as sess:
        np.testing.assert_allclose(sess.run(tf.exp(x), {x: [0, 1]}), np.exp([0, 1]), rtol=1e-6)
        assert sess.jit_report().clusters == 1
    monkeypatch.setenv("XLALITE_FLAGS", "--tf_xla_autojit=1")
    with pytest.raises(ValueError, match="tf_xla_auto_jit"):
        tf.Session()


def test_scope_is_compiled_at_any_level() -> None:
    x = tf.placeholder(tf.float32, [2])
    with tf.contrib.compiler.jit.experimental_jit_scope():
        y = tf.exp(x) * 2.0 + 1.0
    z = tf.sin(y)
    with tf.Session() as sess:
        np.testing.assert_allclose(sess.run(z, {x: [0, 1]}), np.sin(2 * np.exp([0, 1]) + 1), rtol=1e-5)
        assert sess.jit_report().clusters == 1
        assert "in cluster_0" in sess.cluster_report().explain(y.op)


def test_own_options_are_obeyed() -> None:
    x = tf.placeholder(tf.float32, [None])
    y = tf.sin(tf.exp(x) * 2.0 + 1.0)
    excluded = config()
    excluded.xlalite.cluster_exclude_ops.append("Sin")
    excluded.xlalite.min_cluster_size = 1
    off = config()
    off.xlalite.compile_mode = off.xlalite.OFF
    strict = config()
    strict.xlalite.compile_mode = strict.xlalite.STRICT
    compilations = []
    for chosen in (excluded, off, strict):
        with tf.Session(config=chosen) as sess:
            for size in (1, 2, 3):
                value = sess.run(y, {x: np.ones(size)})
                np.testing.assert_allclose(value, np.sin(np.exp(np.ones(size)) * 2 + 1), rtol=1e-5)
            compilations.append(sess.compilation_cache.statistics().compilations)
            if chosen is excluded:
                assert y.op.name in str(sess.cluster_report())
    assert compilations == [1, 0, 3]


def test_new_shapes_are_compiled_when_they_come_back_and_the_reason_is_kept() -> None:
    x, labels, loss, _ = softmax_regression()
    with tf.Session(config=config()) as sess:
        sess.run(tf.global_variables_initializer())
        for size in (4, 8, 8):
            sess.run(loss, {x: np.zeros((size, 20)), labels: np.zeros((size, 5))})
        again = [each for each in sess.decisions() if each.verdict == "compiled again"]
    assert [each.subject[1:] for each in again] == [("x:0", "labels:0")]
    assert again[0].numbers["before"] == "[4,20]"
    assert again[0].numbers["now"] == "[8,20]"


def test_uninitialised_variable_is_named_in_a_cluster() -> None:
    x, labels, loss, _ = softmax_regression()
    with tf.Session(config=config()) as sess, pytest.raises(tf.errors.FailedPreconditionError, match="'w'"):
        sess.run(loss, {x: np.zeros((2, 20)), labels: np.zeros((2, 5))})


def test_value_of_a_variable_that_was_fetched_does_not_change() -> None:
    x, labels, _, step = softmax_regression()
    w = tf.trainable_variables()[0]
    with tf.Session(config=config()) as sess:
        sess.run(tf.global_variables_initializer())
        feeds = [{x: a, labels: b} for a, b in batches(4)]
        sess.run(step, feeds[0])
        first = sess.run(w)
        kept = first.copy()
        both = sess.run([w, step], feeds[1])[0]
        sess.run(step, feeds[2])
        np.testing.assert_array_equal(first, kept)
        assert both.shape == (20, 5)
        first[...] = 0
        assert not np.array_equal(sess.run(w), first)


@pytest.mark.parametrize(("level", "expected"), [(tf.OptimizerOptions.OFF, "MatMul"), (ON, "_XlaRun")])
def test_full_trace_shows_what_ran(level: int, expected: str) -> None:
    x, labels, _, step = softmax_regression()
    metadata = tf.RunMetadata()
    with tf.Session(config=config(level)) as sess:
        sess.run(tf.global_variables_initializer())
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        for a, b in batches(2):
            sess.run(step, {x: a, labels: b}, options=options, run_metadata=metadata)
    (device,) = metadata.step_stats.dev_stats
    labels_shown = [node.timeline_label for node in device.node_stats]
    assert "x = _Arg()" in labels_shown
    assert any(f" = {expected}(" in label for label in labels_shown)
    events = json.loads(Timeline(metadata.step_stats).generate_chrome_trace_format(show_memory=True))["traceEvents"]
    names = {event["name"] for event in events if event["ph"] == "X"}
    assert {expected, "_Arg"} <= names
    assert any(event["ph"] == "s" for event in events)


def test_run_without_trace_leaves_the_metadata_alone() -> None:
    metadata = tf.RunMetadata()
    with tf.Session() as sess:
        sess.run(tf.constant(1), run_metadata=metadata)
        sess.run(tf.constant(1), options=tf.RunOptions(), run_metadata=metadata)
    assert not metadata.step_stats.dev_stats


def test_unwritable_dump_directory_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("XLALITE_FLAGS", f"--xla_dump_to={blocked}/dump")
    x = tf.placeholder(tf.float32, [2])
    with tf.Session(config=config()) as sess:
        np.testing.assert_array_equal(sess.run(tf.exp(x * 0) + 1, {x: [1, 2]}), [2, 2])
    assert "cannot be made: Not a directory; the program goes on" in caplog.text


def test_dump_holds_the_cluster_report_and_the_modules(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("XLALITE_FLAGS", f"--xla_dump_to={tmp_path} --tf_xla_clustering_debug")
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.sin(tf.exp(x) * 2.0 + 1.0, name="y")
    with tf.Session(config=config()) as sess:
        sess.run(y, {x: [1, 2]})
    (report,) = tmp_path.glob("session_*.cluster_report.txt")
    assert "y = Sin(add:0)  # cluster_0_y" in report.read_text()
    assert "compiled: first signature" in report.read_text()
    (decisions,) = tmp_path.glob("session_*.decisions.json")
    assert {"clustering", "compilation"} <= {each["decided_by"] for each in json.loads(decisions.read_text())}
    assert list(tmp_path.glob("module_*.cluster_0_*.before_optimizations.txt"))


def recurrent() -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Operation]:
    x = tf.placeholder(tf.float32, [None, 20], name="x")
    labels = tf.placeholder(tf.float32, [None, 5], name="labels")
    steps = tf.transpose(tf.reshape(x, [-1, 4, 5]), [1, 0, 2])
    w = tf.Variable(tf.random_normal([5, 5], stddev=0.3, seed=1))
    u = tf.Variable(tf.random_normal([5, 5], stddev=0.3, seed=2))

    def step(i: tf.Tensor, h: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return i + 1, tf.tanh(tf.matmul(steps[i], w) + tf.matmul(h, u))

    _, h = tf.while_loop(lambda i, h: i < tf.shape(steps)[0], step, [tf.constant(0), tf.zeros_like(steps[0])])
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=h), name="loss")
    return x, labels, loss, tf.train.GradientDescentOptimizer(0.5).minimize(loss, name="step")


def test_a_step_with_a_loop_and_its_gradient_is_one_cluster_and_trains_alike() -> None:
    model = recurrent()
    curve = loss_curve(model, config(), 30)
    np.testing.assert_allclose(curve, loss_curve(model, config(tf.OptimizerOptions.OFF), 30), rtol=1e-5)
    assert curve[-1] < 0.95 * curve[0]
    x, labels, loss, step = model
    with tf.Session(config=config()) as session:
        session.run(tf.global_variables_initializer())
        images, targets = next(batches(1))
        session.run([loss, step], {x: images, labels: targets})
        report = str(session.cluster_report())
        assert "While 2" in report
        assert "in 1 cluster" in report.rsplit("run of", 1)[1]


def test_second_derivatives_of_loops_agree_with_the_jit_off() -> None:
    x, w = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    y = tf.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, y * w * w), [tf.constant(0), x])[1]
    second = tf.gradients(tf.gradients(y, w)[0], [x, w])
    for level in (ON, tf.OptimizerOptions.OFF):
        with tf.Session(config=config(level)) as session:
            np.testing.assert_allclose(session.run(second, {x: 3, w: 2}), [8 * 2.0**7, 3 * 56 * 2.0**6])
