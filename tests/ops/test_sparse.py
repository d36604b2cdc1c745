"""Sparse tensors: fed, fetched, turned into tensors, multiplied, chosen from; tables looked up by them."""

from typing import Any

import numpy as np
import pytest

import xlalite as tf
from xlalite.framework.graph.errors import GraphError
from xlalite.hlo.errors import ShapeError
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.helpers.gradients import gradients

F = np.float32
PLACES = [[0, 1], [1, 0], [1, 2]]
VALUE = tf.SparseTensorValue(np.int64(PLACES), F([1, 2, 3]), np.int64([3, 4]))
DENSE = np.zeros((3, 4), F)
DENSE[tuple(np.transpose(PLACES))] = [1, 2, 3]


def test_sparse_placeholder_is_fed_and_fetched_as_a_whole(graph: Any) -> None:
    x = tf.sparse_placeholder(tf.float32)
    dense = tf.sparse_tensor_to_dense(x)
    with tf.Session() as session:
        for fed in (VALUE, (VALUE.indices, VALUE.values, VALUE.dense_shape)):
            found, whole = session.run([x, dense], {x: fed})
            np.testing.assert_array_equal(whole, DENSE)
            np.testing.assert_array_equal(found.indices, PLACES)
            assert isinstance(found, tf.SparseTensorValue)


@pytest.mark.parametrize("options", [{}, {"threshold": 1.5}, {"thresh": 10.0}])
def test_sums_of_sparse_tensors(options: dict[str, float], graph: Any) -> None:
    x, y = (tf.sparse_placeholder(tf.float32) for _ in range(2))
    other = tf.SparseTensorValue(np.int64([[2, 3], [0, 1], [1, 0]]), F([5, 7, -2]), VALUE.dense_shape)
    dense = DENSE.copy()
    dense[tuple(np.transpose(other.indices))] += other.values
    total = tf.sparse_add(x, y, **options)
    with tf.Session() as session:
        found, mixed = session.run([total, tf.sparse.add(x, tf.constant(dense))], {x: VALUE, y: other})
        none = session.run(total, {x: VALUE, y: tf.SparseTensorValue(np.zeros((0, 2), np.int64), F([]), [3, 4])})
    least = max(options.values(), default=-1)
    kept = [place for place in sorted([*PLACES, [2, 3]]) if abs(dense[tuple(place)]) >= least]
    np.testing.assert_array_equal(found.indices, np.int64(kept).reshape(-1, 2))
    np.testing.assert_array_equal(found.values, [dense[tuple(place)] for place in kept])
    np.testing.assert_array_equal(mixed, DENSE + dense)
    np.testing.assert_array_equal(none.values, [each for each in (1, 2, 3) if each >= least])


def test_a_sparse_placeholder_takes_sizes_from_a_constant_and_is_scaled(graph: Any) -> None:
    x = tf.sparse_placeholder(tf.float32, shape=tf.constant(VALUE.dense_shape, tf.int64))
    with tf.Session() as session:
        scaled = session.run(tf.sparse_tensor_to_dense(x * 3.0 / tf.constant(2.0)), {x: VALUE})
    np.testing.assert_allclose(scaled, DENSE * 1.5)
    with pytest.raises(ShapeError, match="scaled by a scalar"):
        _ = x * [1.0, 2.0]


def test_sparse_to_dense_of_scalars_vectors_and_matrices(run: Any) -> None:
    np.testing.assert_array_equal(run(tf.sparse_to_dense(2, [4], 7)), [0, 0, 7, 0])
    np.testing.assert_array_equal(run(tf.sparse_to_dense([0, 3], [4], [1.0, 2.0], -1.0)), [1, -1, -1, 2])
    np.testing.assert_array_equal(run(tf.sparse_to_dense(PLACES, [3, 4], F([1, 2, 3]))), DENSE)


@pytest.mark.parametrize("adjoint_a", [False, True])
@pytest.mark.parametrize("adjoint_b", [False, True])
def test_product_of_a_sparse_and_a_dense_matrix(adjoint_a: bool, adjoint_b: bool, run: Any) -> None:
    left = DENSE.T if adjoint_a else DENSE
    right = np.arange(left.shape[1] * 2, dtype=F).reshape(left.shape[1], 2)
    b = tf.placeholder(tf.float32, [None, None])
    given = right.T if adjoint_b else right
    found = tf.sparse_tensor_dense_matmul(tf.SparseTensor(*VALUE), b, adjoint_a, adjoint_b)
    np.testing.assert_allclose(run(found, {b: given}), left @ right)
    (compiled,) = run.compiled([found], {b: given})
    np.testing.assert_allclose(compiled, left @ right)
    (slope,) = gradients(found, b)
    expected = np.broadcast_to(left.sum(0)[:, None], right.shape)
    np.testing.assert_allclose(run(slope, {b: given}), expected.T if adjoint_b else expected)


def test_values_are_retained_summed_reordered_reshaped_and_joined(run: Any) -> None:
    x = tf.SparseTensor(*VALUE)
    kept = tf.sparse_retain(x, [True, False, True])
    np.testing.assert_array_equal(run(tf.sparse_tensor_to_dense(kept)), np.where(DENSE == 2, 0, DENSE))
    assert run(tf.sparse_reduce_sum(x)) == 6
    np.testing.assert_array_equal(run(tf.sparse_reduce_sum(x, 1)), DENSE.sum(1))
    mixed = tf.SparseTensor([[1, 2], [0, 1], [1, 0]], F([3, 1, 2]), [3, 4])
    np.testing.assert_array_equal(run(tf.sparse_reorder(mixed).values), [1, 2, 3])
    turned = tf.sparse_tensor_to_dense(tf.sparse_reshape(x, [2, -1]))
    np.testing.assert_array_equal(run(turned), DENSE.reshape(2, 6))
    for axis in (0, 1):
        joined = tf.sparse_tensor_to_dense(tf.sparse_concat(axis, [x, x]))
        np.testing.assert_array_equal(run(joined), np.concatenate([DENSE, DENSE], axis))
    np.testing.assert_array_equal(run(tf.sparse.from_dense(DENSE).indices), PLACES)


TABLE = np.arange(10, dtype=F).reshape(5, 2) + 1
IDS = tf.SparseTensorValue(np.int64([[0, 0], [0, 1], [1, 0]]), np.int64([3, 0, 3]), np.int64([2, 2]))
WEIGHTS = IDS._replace(values=F([2, 1, 0.5]))


@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
@pytest.mark.parametrize("weighted", [False, True])
def test_embeddings_are_combined_by_row(combiner: str, weighted: bool, run: Any) -> None:
    table = tf.Variable(TABLE, name="table")
    run(table.initializer)
    found = tf.nn.embedding_lookup_sparse(table, IDS, WEIGHTS if weighted else None, combiner=combiner)
    w = WEIGHTS.values if weighted else np.ones(3, F)
    total = np.stack([w[0] * TABLE[3] + w[1] * TABLE[0], w[2] * TABLE[3]])
    divisor = {"sum": [1, 1], "mean": [w[0] + w[1], w[2]], "sqrtn": [np.hypot(w[0], w[1]), w[2]]}[combiner]
    np.testing.assert_allclose(run(found), total / F(divisor)[:, None], rtol=1e-6)
    (slope,) = gradients(tf.reduce_sum(found), table)
    rows = run(convert_to_tensor(slope))
    assert rows[[1, 2, 4]].any() == np.bool_(False)
    np.testing.assert_allclose(rows[0], np.full(2, w[1] / divisor[0]), rtol=1e-6)


def test_what_is_not_sparse_is_refused(graph: Any) -> None:
    with pytest.raises(TypeError, match="expected a SparseTensor"):
        tf.sparse_retain([1, 2], [True])
    with pytest.raises(GraphError, match="is not one of sum, mean, sqrtn"):
        tf.nn.embedding_lookup_sparse(TABLE, IDS, None, combiner="max")
