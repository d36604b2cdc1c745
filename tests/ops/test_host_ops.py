"""Operations whose results have as many elements as values say: what NumPy says, sizes, gradients, refusals."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ops.test_op_gradients import differences

import xlalite as tf
from xlalite.framework.graph.errors import InvalidArgumentError
from xlalite.framework.graph.op_spec import OP_SPECS
from xlalite.hlo.errors import ShapeError
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.helpers.gradients import gradients

F = np.float32
X = np.array([[0.5, -2.0], [3.0, 0.8], [-1.5, 0.6], [0.7, 0.5]])
IDS = np.int32([0, 0, 2, 2])


def placeholder_of(value: np.ndarray) -> Any:
    return tf.placeholder(value.dtype, [None] * value.ndim)


@pytest.mark.parametrize("value", [np.array([[0, 1], [1, 1]], bool), F([0, 2, 0, -1]), np.zeros((2, 0), bool)])
def test_where_gives_the_positions_of_what_is_not_zero(value: np.ndarray, run: Any) -> None:
    x = placeholder_of(value)
    found = run(tf.where(x), {x: value})
    np.testing.assert_array_equal(found, np.argwhere(value))
    assert found.dtype == np.int64
    assert tf.where(x).shape.as_list() == [None, value.ndim]
    assert tf.where(value).shape.as_list() == list(found.shape)


@pytest.mark.parametrize("axis", [None, 1])
def test_boolean_mask_keeps_what_the_mask_says(axis: int | None, run: Any) -> None:
    x = np.arange(24, dtype=F).reshape(2, 3, 4)
    mask = np.array([True, False, True]) if axis else np.array([[True, False, True], [False, False, True]])
    fed, chosen = placeholder_of(x), tf.placeholder(bool, mask.shape)
    expected = x[:, mask] if axis else x[mask]
    found = tf.boolean_mask(fed, chosen, axis=axis)
    np.testing.assert_array_equal(run(found, {fed: x, chosen: mask}), expected)
    np.testing.assert_array_equal(run(tf.boolean_mask(x, mask, axis=axis)), expected)
    (slope,) = gradients(found, fed)
    np.testing.assert_array_equal(
        run(slope, {fed: x, chosen: mask}), np.broadcast_to(mask[:, None] if axis else mask[..., None], x.shape)
    )


def test_a_mask_of_unknown_rank_is_refused(graph: Any) -> None:
    with pytest.raises(ShapeError, match="expected a known rank of at least 1"):
        tf.boolean_mask([1, 2], tf.placeholder(bool))


def test_unique_keeps_the_order_in_which_values_come(run: Any) -> None:
    x = np.int32([7, 3, 7, -1, 3, 7])
    y, idx, count = tf.unique_with_counts(x, out_idx=np.int64)
    np.testing.assert_array_equal(run(y), [7, 3, -1])
    np.testing.assert_array_equal(run(idx), [0, 1, 0, 2, 1, 0])
    np.testing.assert_array_equal(run(count), [3, 2, 1])
    np.testing.assert_array_equal(run(tf.unique(np.zeros(0, F)).y), [])
    np.testing.assert_array_equal(run(tf.unique(["b", "a", "b"]).y), [b"b", b"a"])


def test_setdiff1d_gives_what_the_second_list_lacks(run: Any) -> None:
    out, idx = tf.setdiff1d(np.int32([1, 2, 3, 4, 2]), np.int32([2, 9]))
    np.testing.assert_array_equal(run(out), [1, 3, 4])
    np.testing.assert_array_equal(run(idx), [0, 2, 3])


def test_dynamic_partition_and_stitch_undo_each_other(run: Any) -> None:
    x, parts = np.arange(12, dtype=F).reshape(2, 3, 2), np.int32([[1, 0, 1], [2, 2, 0]])
    fed, which = placeholder_of(x), placeholder_of(parts)
    rows = tf.dynamic_partition(fed, which, 3)
    places = tf.dynamic_partition(np.arange(6, dtype=np.int32).reshape(2, 3), which, 3)
    feeds = {fed: x, which: parts}
    for number in range(3):
        np.testing.assert_array_equal(run(rows[number], feeds), x[parts == number])
    np.testing.assert_array_equal(run(tf.dynamic_stitch(places, rows), feeds), x.reshape(6, 2))
    with pytest.raises(InvalidArgumentError, match="a partition is out of range, expected 0 to 2"):
        run(rows[0], {fed: x, which: parts + 1})


SEGMENTS = {
    "Sum": lambda rows: rows.sum(0),
    "Mean": lambda rows: rows.mean(0),
    "Prod": lambda rows: rows.prod(0),
    "Max": lambda rows: rows.max(0),
    "Min": lambda rows: rows.min(0),
}


@pytest.mark.parametrize("kind", SEGMENTS)
def test_segments_combine_their_rows(kind: str, run: Any) -> None:
    found = run(getattr(tf, f"segment_{kind.lower()}")(X, IDS))
    none = 1 if kind == "Prod" else 0
    expected = [SEGMENTS[kind](X[:2]), [none, none], SEGMENTS[kind](X[2:])]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert run(getattr(tf, f"segment_{kind.lower()}")(X[:0], IDS[:0])).shape == (0, 2)


@pytest.mark.parametrize("ids", [[1, 0, 1, 2], [-1, 0, 0, 1], [0, 1]])
def test_segment_ids_that_do_not_ascend_or_fit_are_refused(ids: list[int], run: Any) -> None:
    fed = tf.placeholder(np.int32, [None])
    with pytest.raises(InvalidArgumentError, match="segment_ids"):
        run(tf.segment_sum(X, fed), {fed: ids})


def test_sparse_segments_take_rows_first(run: Any) -> None:
    indices, ids = np.int32([3, 0, 3]), np.int32([0, 1, 1])
    total = X[[0, 3]].sum(0)
    np.testing.assert_allclose(run(tf.sparse_segment_sum(X, indices, ids)), [X[3], total])
    np.testing.assert_allclose(run(tf.sparse_segment_mean(X, indices, ids)), [X[3], total / 2])
    np.testing.assert_allclose(run(tf.sparse_segment_sqrt_n(X, indices, ids)), [X[3], total / 2**0.5])
    np.testing.assert_allclose(
        run(tf.sparse_segment_sum(X, indices, ids, num_segments=4)), [X[3], total, [0, 0], [0, 0]]
    )


@pytest.mark.parametrize(
    ("numbers", "options", "expected"),
    [
        ([1, 1, 3], {}, [0, 2, 0, 1]),
        ([], {}, []),
        ([1, 5], {"minlength": 3, "maxlength": 4}, [0, 1, 0, 0]),
        ([1, 0, 1], {"weights": F([0.5, 1, 2])}, [1, 2.5]),
    ],
)
def test_bincount(numbers: list[int], options: dict[str, Any], expected: list[float], run: Any) -> None:
    np.testing.assert_array_equal(run(tf.bincount(np.int32(numbers), **options)), expected)


GRADIENTS: dict[str, Callable[[Any], Any]] = {
    "DynamicPartition": lambda x: tf.dynamic_partition(x, IDS, 3)[2] * [2.0, 3.0],
    "Print": lambda x: tf.Print(x, [x], summarize=1) ** 2,
    "SegmentSum": lambda x: tf.segment_sum(x, IDS),
    "SegmentMean": lambda x: tf.segment_mean(x, IDS) ** 2,
    "SegmentMax": lambda x: tf.segment_max(x, IDS) ** 2,
    "SegmentMin": lambda x: tf.segment_min(x, IDS) ** 2,
    "SparseSegmentSum": lambda x: tf.sparse_segment_sum(x, [3, 0, 3], [0, 1, 1]) ** 2,
    "SparseSegmentMean": lambda x: tf.sparse_segment_mean(x, [3, 0, 3], [0, 1, 1]) ** 2,
    "SparseSegmentSqrtN": lambda x: tf.sparse_segment_sqrt_n(x, [3, 0, 3], [0, 1, 1]) ** 2,
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_agree_with_differences(name: str, run: Any) -> None:
    x = placeholder_of(X)
    total = tf.reduce_sum(GRADIENTS[name](x))
    found = run(convert_to_tensor(gradients(total, x)[0]), {x: X})
    expected = differences(lambda feeds: run(total, feeds), {x: X}, x, 1e-6)
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=2e-6)


def test_every_gradient_of_a_host_operation_has_a_case() -> None:
    declared = {name for name, spec in OP_SPECS.items() if spec.gradient is not None and not spec.is_compilable}
    elsewhere = {"CTCLoss", "RandomGamma"}  # in tests of losses and of distributions
    assert declared - elsewhere == GRADIENTS.keys()


@pytest.mark.parametrize(
    ("change", "ufunc"),
    [
        (tf.scatter_update, None),
        (tf.scatter_add, np.add),
        (tf.scatter_sub, np.subtract),
        (tf.scatter_mul, np.multiply),
        (tf.scatter_div, np.divide),
        (tf.scatter_max, np.maximum),
        (tf.scatter_min, np.minimum),
    ],
)
def test_scatters_change_rows_of_a_variable(change: Callable[..., Any], ufunc: np.ufunc | None, run: Any) -> None:
    start, given = F([[1, 20], [3, 4], [6, 7]]), F([[5, 6], [2, 11]])
    table = tf.Variable(start, name="table")
    run(table.initializer)
    run(change(table, [0, 2], given).op)
    expected = start.copy()
    expected[[0, 2]] = given if ufunc is None else ufunc(start[[0, 2]], given)
    np.testing.assert_allclose(run.context.variables["table"], expected, rtol=1e-6)


def test_scatters_at_index_vectors_and_by_rows_change_a_variable(run: Any) -> None:
    table = tf.Variable(np.zeros((2, 2), F), name="table")
    run(table.initializer)
    run(tf.scatter_nd_add(table, [[0, 1], [0, 1]], [2.0, 3.0]).op)
    run(tf.scatter_nd_sub(table, [[1, 1]], [4.0]).op)
    run(table.scatter_add(tf.IndexedSlices(constant([[1.0, 1.0]]), constant([1]))).op)
    run(tf.scatter_add(table, 0, 10.0).op)
    np.testing.assert_array_equal(run.context.variables["table"], [[10, 15], [1, -3]])


def test_confusions_are_counted(run: Any) -> None:
    labels, found = np.int32([1, 2, 2, 0]), np.int64([1, 0, 2, 0])
    expected = np.int32([[1, 0, 0], [0, 1, 0], [1, 0, 1]])
    np.testing.assert_array_equal(run(tf.confusion_matrix(labels, found)), expected)
    larger = run(tf.math.confusion_matrix(labels, found, 4, tf.float32, weights=[0.5, 1, 2, 3]))
    np.testing.assert_array_equal(larger, np.float32([[3, 0, 0, 0], [0, 0.5, 0, 0], [1, 0, 2, 0], [0, 0, 0, 0]]))


def test_tensors_and_rows_are_scaled(run: Any) -> None:
    np.testing.assert_array_equal(run(tf.scalar_mul(2, np.float32([1, 3]))), [2, 6])
    rows = tf.IndexedSlices(tf.constant([[1.0, 2.0]]), tf.constant([1]), tf.constant([3, 2]))
    np.testing.assert_array_equal(run(tf.convert_to_tensor(tf.scalar_mul(0.5, rows))), [[0, 0], [0.5, 1], [0, 0]])
    with pytest.raises(ShapeError, match="expected a scalar"):
        tf.scalar_mul([1.0, 2.0], 3.0)
