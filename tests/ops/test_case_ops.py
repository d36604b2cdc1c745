"""`case` and `switch_case`: the first function whose turn it is runs, and nothing else."""

from typing import Any

import numpy as np
import pytest

import xlalite as tf
from xlalite.framework.graph.errors import GraphError, InvalidArgumentError
from xlalite.ops.helpers.gradients import gradients


@pytest.mark.parametrize(("value", "expected"), [(0.5, 5.0), (1.5, 15.0), (2.5, -2.5)])
def test_case_takes_the_first_that_holds(value: float, expected: float, run: Any) -> None:
    x = tf.placeholder(tf.float32, [])
    found = tf.case([(x < 1, lambda: x * 10), (x < 2, lambda: x * 10)], default=lambda: -x)
    assert run(found, {x: value}) == expected
    assert run.compiled([found], {x: value})[0] == expected
    assert run(gradients(found, x)[0], {x: value}) == (10 if value < 2 else -1)


def test_case_without_a_default_takes_the_last(run: Any) -> None:
    x = tf.placeholder(tf.float32, [])
    found = tf.case({x < 1: lambda: x, x < 2: lambda: x * 2})
    assert run(found, {x: 9}) == 18


def test_exclusive_case_refuses_two_that_hold(run: Any) -> None:
    x = tf.placeholder(tf.float32, [])
    pairs = [(x < 2, lambda: x), (x < 3, lambda: -x)]
    found = tf.case(pairs, default=lambda: x, exclusive=True)
    config = tf.ConfigProto()
    with tf.Session(config=config) as session:
        assert session.run(found, {x: 2.5}) == -2.5
        with pytest.raises(InvalidArgumentError):
            session.run(found, {x: 1.0})


@pytest.mark.parametrize(("number", "expected"), [(0, 1.0), (1, 10.0), (2, 100.0), (7, 100.0), (-1, 100.0)])
def test_switch_case_takes_the_function_with_the_number(number: int, expected: float, run: Any) -> None:
    index = tf.placeholder(tf.int32, [])
    functions = [lambda each=each: tf.constant(each) for each in (1.0, 10.0, 100.0)]
    found = tf.switch_case(index, functions)
    assert run(found, {index: number}) == expected
    named = tf.switch_case(index, {0: functions[0], 1: functions[1]}, default=functions[2])
    np.testing.assert_array_equal(run.compiled([named], {index: number})[0], expected)


def test_no_functions_are_an_error(graph: Any) -> None:
    with pytest.raises(GraphError, match="there are no pairs"):
        tf.case([])
    with pytest.raises(GraphError, match="different numbers"):
        tf.switch_case(tf.constant(0), [])
