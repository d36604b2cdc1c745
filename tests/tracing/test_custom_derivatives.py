"""Gradients that functions give themselves, and values that are computed again for them."""

import numpy as np
import pytest

import xlalite as xl
from xlalite.hlo.errors import TracingError

X = np.random.default_rng(7).normal(size=(4, 5))
W = np.random.default_rng(8).normal(size=5)


@xl.custom_gradient
def tenfold(x):
    y = np.clip(x, -1, 1)
    return y, lambda dy: dy * 10 * x


def summed(function):
    return xl.grad(lambda x: np.sum(function(x)))


def test_own_gradients_alone_and_for_many_examples():
    np.testing.assert_allclose(summed(tenfold)(X), 10 * X)
    np.testing.assert_allclose(xl.vmap(summed(tenfold))(X), 10 * X)
    np.testing.assert_allclose(summed(xl.vmap(tenfold))(X), 10 * X)
    np.testing.assert_allclose(summed(xl.vmap(xl.vmap(tenfold)))(X), 10 * X)
    np.testing.assert_allclose(xl.jit(tenfold)(X), np.clip(X, -1, 1))


def test_own_gradients_inside_of_loops():
    found = summed(lambda x: xl.fori_loop(0, 2, lambda i, v: tenfold(v), x))(X)
    np.testing.assert_allclose(found, 10 * X * 10 * np.clip(X, -1, 1))


def test_several_arguments_and_results():
    @xl.custom_gradient
    def pair(p, k):
        return (p["a"] * k, p["b"]), lambda da, db: ({"a": da * 2, "b": db * 3}, None)

    found = xl.grad(lambda p: sum(np.sum(each) for each in pair(p, 4.0)))({"a": W, "b": W})
    np.testing.assert_allclose((found["a"], found["b"]), (2 * np.ones(5), 3 * np.ones(5)))


def test_gradients_must_be_as_many_as_arguments():
    with pytest.raises(TracingError, match="1 gradients for 2 arguments"):
        xl.grad(xl.custom_gradient(lambda x, y: (x * y, lambda d: [d])))(1.0, 2.0)


def inner(x, w):
    return np.sin(np.sin(x) * w) * np.exp(x)


def test_what_is_computed_again_has_the_same_derivatives():
    expected = xl.grad(lambda x, w: np.sum(inner(x, w)), (0, 1))(X[0], W)
    np.testing.assert_allclose(xl.grad(lambda x, w: np.sum(xl.checkpoint(inner)(x, w)), (0, 1))(X[0], W), expected)
    around = xl.grad(lambda x, w: np.sum(xl.checkpoint(lambda y: inner(y, w))(x)), (0, 1))
    np.testing.assert_allclose(around(X[0], W), expected)
    np.testing.assert_allclose(xl.vmap(summed(xl.checkpoint(np.sin)))(X), np.cos(X))
    np.testing.assert_allclose(summed(xl.vmap(xl.checkpoint(np.sin)))(X), np.cos(X))
    np.testing.assert_allclose(xl.checkpoint(inner)(X, W), inner(X, W))
    looped = summed(lambda x: xl.fori_loop(0, 2, lambda i, v: xl.checkpoint(np.sin)(v), x))(W)
    np.testing.assert_allclose(looped, np.cos(np.sin(W)) * np.cos(W))
    second = xl.grad(lambda x: np.sum(summed(xl.checkpoint(np.sin))(x)))(W)
    np.testing.assert_allclose(second, -np.sin(W))
