"""Functions of one example for many, beside one call for each."""

import numpy as np
import pytest

import xlalite as xl
from xlalite.hlo.errors import TracingError

RANDOM = np.random.default_rng(5)
X = RANDOM.normal(size=(4, 5))
A = RANDOM.normal(size=(5, 5))
NUMBERS = np.array([0, 3, 1, 4])
POSITIVE = np.array([1.0, 2.0, 3.0, 400.0])


def assigned(x):
    y = np.zeros(5)
    y[1:] = x[:-1]
    y[0] += x[4]
    y[y > 0] = 3
    return y


def scattered(x, i):
    y = x.copy()
    y[i] = 9
    y[np.array([0, 0])] += 1
    np.add.at(y, np.array([2, 2]), x[i])
    return y


def root(a):
    return xl.while_loop(lambda x: np.abs(x * x - a) > 1e-10, lambda x: [0.5 * (x + a / x)], [a])


def scanned(z):
    return xl.scan(lambda c, y: (c * 0.5 + np.sin(y), c * y), 1.0, z)


CASES = [
    (lambda x: np.sin(x) * 2 + x.sum(), (X,)),
    (lambda x: A @ x + x @ A, (X,)),
    (lambda x: np.sort(x) + np.argsort(x) + np.median(x), (X,)),
    (lambda x: x[np.array([0, 2])] + x[1:3], (X,)),
    (assigned, (X,)),
    (lambda x: np.linalg.solve(A, x), (X,)),
    (lambda x: np.linalg.inv(A + np.diag(x)), (X,)),
    (lambda x: np.linalg.svd(A + np.diag(x), compute_uv=False), (X,)),
    (lambda x: np.linalg.qr(A + np.diag(x))[1], (X,)),
    (lambda x: np.abs(np.fft.fft(x))[:4] + np.abs(np.fft.rfft(x, 6)), (X,)),
    (lambda x: np.einsum("i,ij->j", x, A), (X,)),
    (lambda x: np.einsum("i,ji", x, A) + np.einsum("ii", A * x) + np.einsum("...i,i", A, x), (X,)),
    (lambda x: np.interp(x, [-1.0, 0, 1], [1.0, 2, 0]), (X,)),
    (lambda x: np.searchsorted(np.sort(x), x), (X,)),
    (lambda x: np.cumsum(x) + np.prod(x) + np.cumprod(x)[::-1], (X,)),
    (lambda x: np.convolve(x, x) * np.convolve(x, np.array([1.0]))[0], (X,)),
    (lambda x: np.histogram(x, bins=3, range=(-1, 1))[0], (X,)),
    (lambda x: np.bincount((x > 0).astype(int), minlength=2), (X,)),
    (lambda x: np.var(x) + np.std(x) + np.linalg.norm(x) + np.argmax(x), (X,)),
    (lambda x: np.pad(x, 2, mode="reflect")[::-1], (X,)),
    (lambda x: np.tril(np.outer(x, x)) + np.roll(x, 1) + np.tile(x, 1), (X,)),
    (lambda x: np.concatenate([x, np.stack([x, x], 1)[:, 0], np.repeat(x, 2)]), (X,)),
    (lambda x: np.array(np.split(x[:4], 2)) + np.full((2, 2), x[0]), (X,)),
    (lambda x, i: x[i] * A[i] + np.take(A, i, axis=1), (X, NUMBERS)),
    (lambda x, i: np.take(np.outer(x, x), np.array([i, 0]), axis=1), (X, NUMBERS)),
    (scattered, (X, NUMBERS)),
    (root, (POSITIVE,)),
    (lambda a, n: xl.fori_loop(0, n, lambda i, v: v + a * i, a), (POSITIVE, NUMBERS)),
    (lambda x: xl.fori_loop(0, 3, lambda i, v: v * 0.5 + i, x), (X,)),
    (lambda a: xl.cond(a > 2, lambda: a * 2, lambda: a - 1), (POSITIVE,)),
    (lambda x: xl.cond(A[0, 0] > 0, lambda: x * 2, lambda: x - 1), (X,)),
    (lambda x: scanned(x)[1], (X,)),
    (lambda x: xl.map(lambda y: y * y, x), (X,)),
    (xl.grad(lambda x: np.sum(np.sin(x) ** 2)), (X,)),
    (xl.grad(lambda x: np.sum(np.sort(x) * np.arange(5.0))), (X,)),
    (xl.grad(lambda x: scanned(x)[0]), (X,)),
    (xl.grad(lambda z: np.sum(xl.fori_loop(0, 3, lambda i, v: np.sin(v) * z, z))), (X,)),
    (xl.jacobian(lambda x: np.tanh(A @ x)), (X,)),
    (xl.hessian(lambda x: np.sum(x**3)), (X,)),
    (lambda x: xl.vmap(lambda y: x * y)(np.arange(3.0)), (X,)),
]


@pytest.mark.parametrize(("function", "arguments"), CASES)
def test_many_examples_are_one_after_another(function, arguments):
    expected = [xl.jit(function)(*[each[i] for each in arguments]) for i in range(4)]
    np.testing.assert_allclose(xl.vmap(function)(*arguments), np.stack(expected), rtol=1e-9, atol=1e-9)


def test_examples_lie_where_it_is_said():
    np.testing.assert_allclose(xl.vmap(lambda a, x: a @ x, (None, 1))(A, X.T), (A @ X.T).T)
    np.testing.assert_allclose(xl.vmap(lambda x: x * 2, out_axes=1)(X), 2 * X.T)
    found = xl.vmap(lambda p, k: {"y": p["w"] @ p["b"] + k}, ({"w": None, "b": 0}, None))({"w": A, "b": X}, 1.0)
    np.testing.assert_allclose(found["y"], X @ A.T + 1)
    same, other = xl.vmap(lambda x: (np.ones(2), x), out_axes=(None, 0))(X)
    assert same.shape == (2,)
    np.testing.assert_array_equal(other, X)
    assert xl.vmap(lambda x: np.ones(2))(X).shape == (4, 2)
    assert xl.vmap(lambda x: np.sin(x).sum())(X[:0]).shape == (0,)


def test_gradients_of_many_examples():
    by_x = xl.grad(lambda x: np.sum(xl.vmap(lambda y: np.sum(np.sin(y)) ** 2)(x)))(X)
    np.testing.assert_allclose(by_x, 2 * np.sin(X).sum(1, keepdims=True) * np.cos(X))
    by_root = xl.grad(
        lambda a: np.sum(
            xl.vmap(lambda b: xl.while_loop(lambda x: x * x < b, lambda x: [x * 2], [b], maximum_iterations=9))(a)
        )
    )
    np.testing.assert_allclose(by_root(np.array([0.1, 0.5, 4.0])), [4.0, 2.0, 1.0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: xl.vmap(lambda x, y: x)(X, A), "have 4, 5 examples; expected one number for all"),
        (lambda: xl.vmap(lambda x: x, None)(X), "no dimension of examples"),
        (lambda: xl.vmap(lambda x: x, (0, 0))(X), "2 in_axes for 1 arguments"),
        (lambda: xl.vmap(lambda x: x, 2)(X), "an argument of 2 dimensions has no dimension 2"),
        (lambda: xl.vmap(lambda x: x, out_axes=None)(X), "out_axes=None differs between examples"),
    ],
)
def test_what_does_not_fit_is_named(call, message):
    with pytest.raises(TracingError, match=message):
        call()
