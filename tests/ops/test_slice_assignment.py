"""Slices of variables and tensors that are replaced, held against NumPy's own assignment."""

from typing import Any

import numpy as np
import pytest

import xlalite as tf
from xlalite.framework.graph.errors import FailedPreconditionError, InvalidArgumentError

START = np.arange(24.0).reshape(2, 3, 4)
INDICES = [
    np.s_[:],
    np.s_[1:2, 1:2],
    np.s_[1, 1:2],
    np.s_[1, 2, 3],
    np.s_[:, None, :, 1],
    np.s_[None, None, 0, 0:1],
    np.s_[::1, 2::-1],
    np.s_[..., ::2],
    np.s_[::-1, ::-2, 3:0:-2],
    np.s_[1, ..., -1],
    np.s_[8:10, 0],
    np.s_[...],
]


def _values(index: Any) -> np.ndarray:
    return -1 - np.arange(START[index].size, dtype=float).reshape(START[index].shape)


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("index", INDICES, ids=str)
def test_a_slice_of_a_variable_is_replaced(graph: Any, index: Any, jit: bool) -> None:
    with tf.jit_scope(jit):
        v = tf.Variable(START)
        fed = tf.placeholder(tf.float64, START[index].shape)
        change = v[index].assign(fed)
    expected = START.copy()
    expected[index] = _values(index)
    with tf.Session() as session:
        session.run(v.initializer)
        np.testing.assert_array_equal(session.run(change, {fed: _values(index)}), expected)
        np.testing.assert_array_equal(session.run(v), expected)


def test_assign_takes_a_slice(graph: Any) -> None:
    v = tf.Variable([1, 2, 3], dtype=tf.int8)
    change = tf.assign(v[1:], [7, 8])
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(change).tolist() == [1, 7, 8]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_a_slice_of_a_tensor_is_replaced_and_gradients_reach_what_is_left(graph: Any, index: Any) -> None:
    x, value = tf.constant(START), tf.constant(_values(index))
    cut = x[index].op
    masks = {name: cut.get_attr(name) for name in cut.spec.attrs}
    begin, end, strides = cut.inputs[1:]
    y = tf.raw_ops.TensorStridedSliceUpdate(input=x, begin=begin, end=end, strides=strides, value=value, **masks)
    weights = np.linspace(1, 2, START.size).reshape(START.shape)
    expected, of_x, of_value = START.copy(), weights.copy(), weights[index]
    expected[index] = _values(index)
    of_x[index] = 0
    with tf.Session() as session:
        found = session.run([y, *tf.gradients(y * weights, [x, value])])
    for one, other in zip(found, (expected, of_x, of_value), strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_is_refused(graph: Any) -> None:
    v = tf.Variable([1.0, 2.0])
    assert not hasattr(v.value() + 1, "assign")
    assert not hasattr(tf.constant([1.0])[0], "assign")
    wrong = v[:1].assign([1.0, 2.0])
    with tf.Session() as session:
        with pytest.raises(FailedPreconditionError, match="uninitialized"):
            session.run(v[:1].assign([3.0]))
        session.run(v.initializer)
        with pytest.raises(InvalidArgumentError, match=r"\(2,\) cannot replace a slice of shape \(1,\)"):
            session.run(wrong)


def test_a_part_of_no_elements_takes_any_value_of_none(graph: Any) -> None:
    v = tf.Variable(np.ones((2, 3)))
    change = v[8:10, 8:10].assign(np.zeros((1, 0)))
    with tf.Session() as session:
        session.run(v.initializer)
        np.testing.assert_array_equal(session.run(change), np.ones((2, 3)))
