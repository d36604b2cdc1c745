"""Gradients of gathers are rows, which stay rows up to the variable and become a tensor where one is needed."""

from typing import Any

import numpy as np
import pytest

import xlalite as tf
from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.indexed_slices import IndexedSlices
from xlalite.ops.helpers.gradients import gradients


def test_gradient_of_a_gather_from_a_variable_has_the_rows_that_were_used(run: Any) -> None:
    table = tf.Variable(np.ones((5, 2), np.float32), name="table")
    rows = tf.gather(table, np.int32([[3, 1], [3, 0]]))
    (found,) = gradients(tf.reduce_sum(rows * np.float32([1, 2])), table)
    assert isinstance(found, IndexedSlices)
    run(table.initializer)
    values, indices = run([found.values, found.indices])
    np.testing.assert_array_equal(indices, [3, 1, 3, 0])
    np.testing.assert_array_equal(values, [[1, 2]] * 4)
    np.testing.assert_array_equal(
        run(tf.convert_to_tensor(found)), np.float32([[1, 2], [1, 2], [0, 0], [2, 4], [0, 0]])
    )


def test_rows_of_two_gathers_are_joined_and_go_through_reads_and_identities(run: Any) -> None:
    table = tf.Variable(np.ones((4, 2), np.float32), name="table")
    value = tf.identity(table)
    loss = tf.reduce_sum(tf.gather(value, np.int32([2]))) + 3 * tf.reduce_sum(tf.gather(table, np.int64([2, 0])))
    (found,) = gradients(loss, table)
    assert isinstance(found, IndexedSlices)
    run(table.initializer)
    assert sorted(run(found.indices).tolist()) == [0, 2, 2]
    np.testing.assert_array_equal(run(found + 0), np.float32([[3, 3], [0, 0], [4, 4], [0, 0]]))


def test_rows_and_a_whole_tensor_are_added_as_tensors(run: Any) -> None:
    table = tf.Variable(np.ones((3, 2), np.float32), name="table")
    (found,) = gradients(tf.reduce_sum(tf.gather(table, np.int32([1]))) + tf.reduce_sum(tf.square(table)), table)
    run(table.initializer)
    np.testing.assert_array_equal(run(found), np.float32([[2, 2], [3, 3], [2, 2]]))


def test_clipping_by_the_global_norm_keeps_rows(run: Any) -> None:
    rows = IndexedSlices(tf.constant([[3.0], [4.0]]), tf.constant([0, 2]))
    (clipped,), norm = tf.clip_by_global_norm([rows], 1.0)
    assert isinstance(clipped, IndexedSlices)
    np.testing.assert_allclose(run(clipped.values), [[0.6], [0.8]], rtol=1e-6)
    assert run(norm) == 5


def test_rows_without_sizes_cannot_become_a_tensor(graph: Any) -> None:
    rows = IndexedSlices(tf.constant([[3.0]]), tf.constant([0]))
    with pytest.raises(GraphError, match="has no dense_shape, so it cannot become a tensor"):
        tf.convert_to_tensor(rows)


def test_rows_gathered_inside_a_loop_become_tensors_on_the_way_out(run: Any) -> None:
    table = tf.Variable(np.arange(6, dtype=np.float32).reshape(3, 2), name="table")
    body = lambda i, total: (i + 1, total + tf.reduce_sum(tf.gather(table, i)))  # noqa: E731
    _, total = tf.while_loop(lambda i, total: i < 2, body, [tf.constant(0), tf.constant(0.0)])
    (found,) = gradients(total, table)
    run(table.initializer)
    np.testing.assert_array_equal(run(tf.convert_to_tensor(found)), np.float32([[1, 1], [1, 1], [0, 0]]))


def test_fetched_rows_are_arrays(graph: Any) -> None:
    rows = IndexedSlices(tf.constant([[3.0]]), tf.constant([0]), tf.constant([2, 1]))
    with tf.Session() as session:
        found, alone = session.run([rows, IndexedSlices(rows.values, rows.indices)])
    np.testing.assert_array_equal(found.values, [[3.0]])
    np.testing.assert_array_equal(found.dense_shape, [2, 1])
    assert type(found).__name__ == "IndexedSlicesValue"
    assert alone.dense_shape is None
