"""Arrays of tensors in graphs and loops: growing ones, errors, what gradients keep."""

from typing import Any

import numpy as np
import pytest

import xlalite as tf
from xlalite.framework.graph.errors import ElementTypeError, GraphError, InvalidArgumentError
from xlalite.framework.meaning.compilability import why_not_compilable
from xlalite.hlo.errors import ShapeError
from xlalite.ops.helpers.gradients import gradients

F = np.float32


def test_array_that_grows_is_as_long_as_what_was_written(run: Any) -> None:
    array = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    _, array = tf.while_loop(
        lambda i, _: i < 4, lambda i, ta: (i + 1, ta.write(i, tf.cast(i, tf.float32) * [1.0, 2.0])), [0, array]
    )
    np.testing.assert_array_equal(run(array.stack()), np.arange(4)[:, None] * F([1, 2]))
    assert run(array.size()) == 4


def test_array_that_grows_says_why_it_is_not_compiled(graph: Any) -> None:
    array = tf.TensorArray(tf.float32, 1, dynamic_size=True).write(0, 1.0)
    assert why_not_compilable(array.flow.op) == "TensorListSetItem: the list may grow"


def test_writing_behind_the_end_is_an_error(run: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="index 2 is not in a list of 2 elements"):
        run(tf.TensorArray(tf.float32, 2).write(2, 1.0).flow)


def test_elements_have_one_shape(run: Any) -> None:
    array = tf.TensorArray(tf.float32, 2, element_shape=[2]).write(0, [1.0, 2.0])
    with pytest.raises(ShapeError, match="differ"):
        array.write(1, [1.0, 2.0, 3.0])


def test_shape_after_a_loop_is_known_where_the_body_says_it(graph: Any) -> None:
    rows = tf.placeholder(tf.float32, [5, None, 3])
    assert tf.map_fn(lambda row: row[:, :2], rows).shape.as_list() == [5, None, 2]


def test_gradient_of_a_loop_keeps_no_history_of_arrays_that_are_only_written(graph: Any) -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    found = tf.map_fn(lambda row: row * row, x)
    gradients(tf.reduce_sum(found), x)
    loop = found.op.inputs[0].op
    count = len(loop.get_attr("body").outputs)
    histories = loop.outputs[count + 1 :]
    assert [history.dtype.name for history in histories if history.consumers()] == ["int32"]


def test_split_needs_equal_lengths(graph: Any) -> None:
    with pytest.raises(ShapeError, match="needs known lengths, all the same"):
        tf.TensorArray(tf.float32, 2).split([1.0, 2.0, 3.0], [1, 2])


def test_map_fn_without_its_number_of_results_is_an_error(graph: Any) -> None:
    with pytest.raises(GraphError, match="the function gives 2 values where 1 are expected"):
        tf.map_fn(lambda x: (x, x), tf.zeros([3]))


def test_loops_over_nothing_give_nothing(run: Any) -> None:
    x = tf.placeholder(tf.float32, [None, 2])
    found = tf.map_fn(lambda row: tf.reduce_sum(row), x)
    assert run(found, {x: np.zeros((0, 2))}).shape == (0,)


def test_what_arrives_at_an_array_adds_up(run: Any) -> None:
    array = tf.TensorArray(np.float32, 3).write(1, [1.0, 2.0])
    gradient = array.grad("a").write(1, [5.0, 1.0]).write(1, [2.0, 2.0]).write(0, [7.0, 7.0])
    np.testing.assert_array_equal(run(array.stack()), [[0, 0], [1, 2], [0, 0]])
    np.testing.assert_array_equal(run(gradient.stack()), [[7, 7], [7, 3], [0, 0]])
    with pytest.raises(ShapeError, match="element_shape"):
        tf.TensorArray(np.float32, 3).grad("a")


def test_what_is_written_through_one_gradient_array_another_of_the_source_has(run: Any) -> None:
    array = tf.TensorArray(np.float32, 3, element_shape=[2])
    one, other, apart = array.grad("a"), array.write(0, [1.0, 1.0]).grad("a"), array.grad("b")
    with tf.control_dependencies([one.write(0, [4.0, 5.0]).flow]):
        seen = other.read(0)
    other.write(0, [1.0, 1.0])
    np.testing.assert_array_equal(run(seen), [4, 5])
    np.testing.assert_array_equal(run(one.stack()), [[5, 6], [0, 0], [0, 0]])
    np.testing.assert_array_equal(run(apart.stack()), np.zeros((3, 2)))


def test_what_a_loop_writes_into_a_gradient_array_stays_in_the_loop(run: Any) -> None:
    one = tf.TensorArray(np.float32, 2, element_shape=[]).grad("a").write(0, 1.0)
    _, written = tf.while_loop(lambda i, _: i < 2, lambda i, ta: (i + 1, ta.write(i, 3.0)), [0, one])
    tf.cond(tf.constant(True), lambda: one.write(1, 7.0).read(1), lambda: tf.constant(0.0))
    np.testing.assert_array_equal(run(written.stack()), [4, 3])
    np.testing.assert_array_equal(run(one.stack()), [1, 0])


def test_elements_have_the_type_of_the_array(graph: Any) -> None:
    with pytest.raises(ElementTypeError, match="has element type int32; expected float32"):
        tf.TensorArray(np.float32, 3).write(0, tf.constant([7]))


def test_split_needs_a_vector_of_lengths(graph: Any) -> None:
    with pytest.raises(ShapeError, match="known lengths"):
        tf.TensorArray(np.float32, 3).split([1.0, 2.0, 3.0], 1)
