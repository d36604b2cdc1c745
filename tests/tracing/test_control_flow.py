"""Branches and loops of functions of NumPy arrays."""

import numpy as np
import pytest

import xlalite as xl

X = np.random.default_rng(0).normal(size=5)
A = np.random.default_rng(1).normal(size=(4, 3))


def test_bodies_of_loops_work_on_arrays_like_those_of_numpy():
    @xl.jit
    def double_until(x, limit):
        return xl.while_loop(lambda _, y: np.sum(np.abs(y)) < limit, lambda n, y: (n + 1, y * 2), (0, x))

    count, found = double_until(X, 1000.0)
    expected = X * 2**count
    np.testing.assert_allclose(found, expected)
    assert np.sum(np.abs(expected)) >= 1000.0 > np.sum(np.abs(expected / 2))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_branches(sign):
    function = xl.jit(lambda x: xl.cond(np.max(x) > 0, lambda: {"y": np.sqrt(np.abs(x))}, lambda: {"y": x - 1}))
    x = sign * np.abs(X)
    np.testing.assert_allclose(function(x)["y"], np.sqrt(x) if sign > 0 else x - 1)


@pytest.mark.parametrize("index", [-3, 0, 1, 2, 7])
def test_switches_take_the_nearest_function(index):
    functions = [np.sin, np.cos, np.exp]
    np.testing.assert_allclose(xl.switch(index, functions, X), functions[min(max(index, 0), 2)](X))


def test_counted_loops_assign_to_arrays():
    @xl.jit
    def running(x):
        def body(i, state):
            total, sums = state
            total = total + x[i]
            sums[i] = total
            return total, sums

        return xl.fori_loop(0, 5, body, (0.0, np.zeros(5)))[1]

    np.testing.assert_allclose(running(X), np.cumsum(X))


def test_limits_of_counted_loops_may_be_arguments():
    power = xl.jit(lambda x, n: xl.fori_loop(0, n, lambda i, y: y * x, np.ones_like(x)))
    np.testing.assert_allclose(power(X, 3), X**3)
    np.testing.assert_allclose(power(X, 0), np.ones(5))
    np.testing.assert_allclose(xl.fori_loop(2, 5, lambda i, y: y + i, X), X + 9)


def test_gradients_flow_through_counted_loops():
    found = xl.grad(lambda x: xl.fori_loop(0, 3, lambda i, y: np.sin(y) * x, x).sum())(X)
    expected = np.ones(5)
    y = X
    for _ in range(3):
        y, expected = np.sin(y) * X, np.cos(y) * expected * X + np.sin(y)
    np.testing.assert_allclose(found, expected)


def test_map_stacks_what_a_function_gives_for_the_parts():
    sums, rows = xl.map(lambda row: (row.sum(), np.sort(row)), A)
    np.testing.assert_allclose(sums, A.sum(1))
    np.testing.assert_array_equal(rows, np.sort(A, 1))
    found = xl.map(lambda parts: parts["a"] @ parts["b"], {"a": A, "b": 2 * A})
    np.testing.assert_allclose(found, 2 * np.sum(A * A, 1))


def test_branches_take_operands_and_loops_one_array():
    def branch(x, y):
        return xl.cond(x[0] > 0, lambda a, b: a * b, lambda a, b: a - b, x, y)

    x, y = np.array([2.0, 3.0]), np.array([5.0, 7.0])
    np.testing.assert_array_equal(xl.jit(branch)(x, y), x * y)
    np.testing.assert_array_equal(xl.jit(branch)(-x, y), -x - y)
    np.testing.assert_array_equal(xl.vmap(lambda v: xl.while_loop(lambda s: s < 10, lambda s: s * 2, v))(x), [16, 12])
