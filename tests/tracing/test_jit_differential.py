"""Random graphs with variables: a session gives the same values with the JIT on and off, step after step."""

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import xlalite as tf
from xlalite.client.config import XlaliteOptions

UNARY = (tf.tanh, tf.negative, tf.square, tf.sigmoid, tf.identity, tf.nn.relu, tf.stop_gradient)
BINARY = (tf.add, tf.multiply, tf.subtract, tf.maximum)
STEPS = 3


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def session(level: int, mode: int = XlaliteOptions.STRICT) -> tf.Session:
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = level
    config.xlalite.compile_mode = mode
    config.xlalite.min_cluster_size = 1
    return tf.Session(config=config)


class _Random:
    """Builds a graph from drawn numbers."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.x = tf.placeholder(tf.float32, [None, 3], name="x")
        self.variables = [tf.Variable(np.full((1, 3), 0.5 + i, np.float32), name=f"v{i}") for i in range(2)]
        self.tensors: list[tf.Tensor] = [self.x, tf.constant([[1.0, 2.0, 3.0]])]
        self.writes: list[tf.Operation] = []

    def number(self, bound: int) -> int:
        return int(self.draw(st.integers(0, bound - 1)))

    def tensor(self) -> tf.Tensor:
        return self.tensors[self.number(len(self.tensors))]

    def add(self) -> None:
        kind = self.number(8)
        if kind < 3:
            self.tensors.append(UNARY[self.number(len(UNARY))](self.tensor()))
        elif kind < 5:
            self.tensors.append(BINARY[self.number(len(BINARY))](self.tensor(), self.tensor()))
        elif kind == 5:
            self.tensors.append(tf.reduce_mean(self.tensor(), axis=0, keepdims=True))
        else:
            # All accesses to variables in one order, or the result would not be defined.
            with tf.control_dependencies(self.writes[-1:]):
                self._access(self.variables[self.number(2)], kind == 6)

    def _access(self, variable: tf.Variable, is_read: bool) -> None:
        if is_read:
            self.tensors.append(variable.read_value())
            self.writes.append(self.tensors[-1].op)
            return
        value = tf.reduce_mean(self.tensor(), axis=0, keepdims=True)
        change = (variable.assign, variable.assign_add, variable.assign_sub)[self.number(3)]
        self.writes.append(change(value * 0.25, read_value=False))


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_random_graphs_give_the_same_values(data: st.DataObject) -> None:
    with tf.Graph().as_default():
        built = _Random(data.draw)
        for _ in range(data.draw(st.integers(3, 20))):
            built.add()
        fetches = [built.tensor() for _ in range(data.draw(st.integers(1, 3)))] + built.writes[-1:]
        fed = {built.x: np.linspace(-1, 1, 6).reshape(2, 3)}
        with session(tf.OptimizerOptions.OFF) as off, session(tf.OptimizerOptions.ON_1) as on:
            for sess in (off, on):
                sess.run(tf.global_variables_initializer())
            for _ in range(STEPS):
                expected, found = (sess.run([fetches, built.variables], fed) for sess in (off, on))
                for wanted, value in zip(expected[0] + expected[1], found[0] + found[1], strict=True):
                    assert (wanted is None) == (value is None)
                    if wanted is not None:
                        np.testing.assert_allclose(value, wanted, rtol=2e-5, atol=1e-6)


def test_concurrent_updates_and_reads_of_compiled_clusters_do_not_mix() -> None:
    v = tf.Variable(tf.zeros([5000]), name="v")
    x = tf.placeholder(tf.float32, [])
    bump = v.assign_add(tf.ones([5000]) * x, read_value=False)
    view = v.read_value() * 1.0
    torn: list[np.ndarray] = []
    with session(tf.OptimizerOptions.ON_1) as sess:
        sess.run(v.initializer)

        def work() -> None:
            for _ in range(50):
                sess.run(bump, {x: 1.0})
                seen = sess.run(view)
                if (seen != seen[0]).any():
                    torn.append(seen)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sess.jit_report().clusters == 3
        np.testing.assert_array_equal(sess.run(v), np.full(5000, 200))
    assert not torn


def test_variable_may_change_its_shape_in_a_cluster() -> None:
    x = tf.placeholder(tf.float32, [None])
    v = tf.Variable(x, validate_shape=False, name="v")
    grow = v.assign(tf.concat([v * 2.0, [1.0]], 0), read_value=False)
    with session(tf.OptimizerOptions.ON_1) as sess:
        sess.run(v.initializer, {x: [3.0]})
        for size in (2, 3, 4):
            sess.run(grow)
            assert sess.run(v).shape == (size,)
        np.testing.assert_array_equal(sess.run(v), [24, 4, 2, 1])


def test_loops_and_branches_are_compiled() -> None:
    x = tf.placeholder(tf.float32, [3])
    _, total = tf.while_loop(lambda i, t: i < 5, lambda i, t: (i + 1, t * 1.5 + x), [tf.constant(0), x])
    chosen = tf.cond(tf.reduce_sum(total) > 10.0, lambda: total * 2.0, lambda: total - 1.0)
    for value in ([1.0, 2.0, 3.0], [-1.0, 0.0, 0.5]):
        with session(tf.OptimizerOptions.OFF) as off, session(tf.OptimizerOptions.ON_1) as on:
            np.testing.assert_allclose(on.run(chosen, {x: value}), off.run(chosen, {x: value}), rtol=1e-6)
            assert on.jit_report().clusters == 1


def test_lazy_fallback_gives_the_same_values() -> None:
    x = tf.placeholder(tf.float32, [None])
    v = tf.Variable(1.0)
    y = tf.reduce_sum(tf.exp(x) * v)
    with tf.control_dependencies([y]):
        bump = v.assign_add(1.0, read_value=False)
    with session(tf.OptimizerOptions.ON_1, XlaliteOptions.LAZY) as sess:
        sess.run(v.initializer)
        found = [sess.run([y, bump], {x: np.ones(size)})[0] for size in (1, 2, 2, 3, 1)]
    np.testing.assert_allclose(found, np.e * np.array([1, 2, 2, 3, 1]) * np.arange(1, 6), rtol=1e-6)
