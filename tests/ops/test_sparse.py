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


def test_sums_of_sparse_tensors_join_their_entries(graph: Any) -> None:
    a = tf.SparseTensor([[0, 1], [1, 0], [1, 2]], F([1, 2, 3]), [3, 4])
    b = tf.SparseTensor([[1, 0], [0, 0], [2, 3]], F([-2, 5, 0.5]), [3, 4])
    both, large = tf.sparse_add(a, b), tf.sparse_add(a, b, 0.75)
    dense = tf.sparse_add(np.ones((3, 4), F), a)
    empty = tf.SparseTensor(np.zeros((0, 2), np.int64), np.zeros(0, F), [3, 4])
    same, none = tf.sparse.add(a, empty), tf.sparse_add(empty, empty)
    with tf.Session() as session:
        joined, kept, shown, again, nothing = session.run([both, large, dense, same, none])
    np.testing.assert_array_equal(joined.indices, [[0, 0], [0, 1], [1, 0], [1, 2], [2, 3]])
    np.testing.assert_array_equal(joined.values, F([5, 1, 0, 3, 0.5]))
    np.testing.assert_array_equal(kept.values, F([5, 1, 3]))
    np.testing.assert_array_equal(shown, DENSE + 1)
    np.testing.assert_array_equal(again.indices, PLACES)
    assert nothing.values.shape == (0,)
    with pytest.raises(GraphError, match="one of the two must be a SparseTensor"):
        tf.sparse_add(F([1]), F([2]))


def test_sparse_softmax_and_transpose(graph: Any) -> None:
    values = tf.placeholder(tf.float32, [3])
    x = tf.SparseTensor(PLACES, values, [3, 4])
    chances, turned = tf.sparse_softmax(x), tf.sparse_transpose(x)
    (slope,) = gradients(tf.square(chances.values), [values])
    with tf.Session() as session:
        found, whole, steep = session.run([chances, tf.sparse_tensor_to_dense(turned), slope], {values: F([1, 90, 91])})
        session.run(chances, {values: F([np.inf, 1, 2])})
    share = 1 / (1 + np.e)
    np.testing.assert_allclose(found.values, [1, share, 1 - share], rtol=1e-6)
    np.testing.assert_array_equal(found.indices, PLACES)
    np.testing.assert_array_equal(whole, np.float32([[0, 90, 0], [1, 0, 0], [0, 91, 0], [0, 0, 0]]))
    rate = 2 * share * (1 - share) * (share - (1 - share))
    np.testing.assert_allclose(steep, [0, rate, -rate], rtol=1e-5, atol=1e-7)


def test_a_confusion_matrix_counts_pairs_of_classes(graph: Any) -> None:
    counted = tf.confusion_matrix([1, 2, 4, 1], [2, 2, 4, 2])
    weighted = tf.math.confusion_matrix([[0], [1], [1]], [0, 0, 1], 3, tf.float64, weights=[0.5, 2.0, 3.0])
    empty = tf.confusion_matrix(np.zeros(0, np.int32), np.zeros(0, np.int32), 2)
    with tf.Session() as session:
        whole, parts, none = session.run([counted, weighted, empty])
    expected = np.zeros((5, 5), np.int32)
    expected[1, 2], expected[2, 2], expected[4, 4] = 2, 1, 1
    np.testing.assert_array_equal(whole, expected)
    assert whole.dtype == np.int32
    np.testing.assert_array_equal(parts, [[0.5, 0, 0], [2, 3, 0], [0, 0, 0]])
    np.testing.assert_array_equal(none, np.zeros((2, 2)))


def test_scalar_mul_scales_only_the_rows_of_slices(graph: Any) -> None:
    rows = tf.IndexedSlices(tf.constant(F([[1, 2]])), tf.constant([3]), tf.constant([5, 2]))
    scaled = tf.scalar_mul(2.0, rows)
    assert isinstance(scaled, tf.IndexedSlices)
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(scaled.values), [[2, 4]])
        np.testing.assert_array_equal(session.run(tf.math.scalar_mul(3, tf.constant([1, 2]))), [3, 6])
    with pytest.raises(ShapeError, match="expected a scalar"):
        tf.scalar_mul([1.0, 2.0], F([1, 2]))
