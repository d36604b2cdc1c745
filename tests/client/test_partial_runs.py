"""`Session.partial_run`."""

import numpy as np
import pytest

import xlalite as tf
from xlalite.client.session_errors import FeedError, FetchError


def test_a_step_in_parts_runs_each_operation_once() -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        a, b = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [])
        count = tf.Variable(0)
        with tf.control_dependencies([tf.assign_add(count, 1)]):
            doubled = a * 2
        total = tf.reduce_sum(doubled) + b
        sess.run(count.initializer)
        handle = sess.partial_run_setup([doubled, total, total.op], [a, b])
        np.testing.assert_array_equal(sess.partial_run(handle, doubled, {a: [1, 2]}), [2, 4])
        assert sess.run(count) == 1
        assert sess.partial_run(handle, {"t": total, "op": total.op}, {b: 10}) == {"t": 16, "op": None}
        assert sess.run(count) == 1
        with pytest.raises(FetchError, match="fetched before"):
            sess.partial_run(handle, total)


def test_what_was_not_declared_is_refused() -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
        handle = sess.partial_run_setup([a + 1], [a])
        with pytest.raises(FeedError, match="not declared as a feed"):
            sess.partial_run(handle, [], {b: 1})
        with pytest.raises(FetchError, match="not declared as a fetch"):
            sess.partial_run(handle, b)


def test_parts_that_are_not_fed_yet() -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        a = tf.placeholder(tf.float32, [])
        b = a + 1
        handle = sess.partial_run_setup([b], [a])
        with pytest.raises(tf.errors.InvalidArgumentError, match="needs a value: feed one"):
            sess.partial_run(handle, b)


def test_a_string_in_parts() -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        a = tf.placeholder(tf.string, [])
        b = tf.identity(a)
        handle = sess.partial_run_setup([b], [a])
        assert sess.partial_run(handle, b, {a: "x"}) == b"x"
