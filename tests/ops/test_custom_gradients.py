"""Gradients that programs define, second derivatives, and templates."""

from typing import Any

import numpy as np
import pytest

import xlalite as tf
from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.graph import Graph
from xlalite.hlo.errors import ShapeError


def evaluate(*tensors: Any, feeds: Any = None) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(list(tensors), feeds)


@tf.RegisterGradient("TestTwiceTheGradient")
def twice(op: Any, grad: Any) -> Any:
    return grad * 2


def test_gradients_are_overridden_by_type_inside_a_block(graph: Graph) -> None:
    x = tf.constant(3.0)
    with graph.gradient_override_map({"Square": "TestTwiceTheGradient"}):
        inside = tf.square(x)
        with graph.gradient_override_map({"Exp": "TestTwiceTheGradient"}):
            nested = tf.square(tf.exp(x))
    outside = tf.square(x)
    assert inside.op.get_attr("_gradient_op_type") == "TestTwiceTheGradient"
    found = evaluate(*(tf.gradients(y, x)[0] for y in (inside, nested, outside)))
    assert found == [2, 4, 6]


def test_an_operation_without_gradient_may_get_one(graph: Graph) -> None:
    x = tf.constant([0.2, 1.7])
    rounded = tf.py_func(np.round, [x], tf.float32)
    assert tf.gradients(rounded, x) == [None]
    with graph.gradient_override_map({"PyFunc": "TestTwiceTheGradient"}):
        rounded = tf.py_func(np.round, [x], tf.float32)
    assert evaluate(tf.gradients(rounded * 3, x)[0])[0].tolist() == [6, 6]


def test_names_are_registered_once_and_before_they_are_used(graph: Graph) -> None:
    with pytest.raises(GraphError, match="'TestTwiceTheGradient' already"):
        tf.RegisterGradient("TestTwiceTheGradient")(twice)
    with graph.gradient_override_map({"Square": "NeverRegistered"}):
        y = tf.square(tf.constant(1.0))
    with pytest.raises(LookupError, match="no gradient is registered as 'NeverRegistered'"):
        tf.gradients(y, y.op.inputs[0])


def test_functions_give_their_own_gradients(graph: Graph) -> None:
    @tf.custom_gradient
    def log1pexp(x: Any) -> Any:
        e = tf.exp(x)
        return tf.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))

    @tf.custom_gradient
    def both(x: Any, y: Any) -> Any:
        return (x * y, x + y), lambda first, second: (first * 10 + second, None)

    x = tf.constant(100.0)
    y = log1pexp(x)
    assert evaluate(tf.gradients(y, x)[0]) == [1]
    a, b = tf.constant(2.0), tf.constant(3.0)
    product, total = both(a, b)
    assert evaluate(product, total, tf.gradients([product, total], a)[0]) == [6, 5, 11]
    assert tf.gradients(product, b) == [None]


def test_hessians_are_second_derivatives(graph: Graph) -> None:
    x = tf.placeholder(tf.float64, [None])
    matrix = np.array([[2.0, 1], [0, 3]])
    y = tf.reduce_sum(tf.matmul(tf.expand_dims(x, 0), matrix) * x) + tf.reduce_sum(x**3)
    (hessian,) = tf.hessians(y, x)
    value = np.array([1.0, 2])
    np.testing.assert_allclose(
        evaluate(hessian, feeds={x: value})[0], matrix + matrix.T + np.diag(6 * value), rtol=1e-6
    )
    with pytest.raises(ShapeError, match="no dependence"):
        tf.hessians(y, tf.constant(1.0))


def test_templates_share_their_variables(graph: Graph) -> None:
    def scaled(x: Any, by: float) -> Any:
        return x * tf.get_variable("w", [], initializer=tf.ones_initializer()) * by

    first, other = tf.make_template("scale", scaled, by=2.0), tf.make_template("scale", scaled, by=3.0)
    results = evaluate(first(1.0), first(2.0), other(1.0))
    assert results == [2, 4, 3]
    assert [v.op.name for v in tf.global_variables()] == ["scale/w", "scale_1/w"]
