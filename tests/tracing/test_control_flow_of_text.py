"""Branches and loops in the text of functions, where they depend on traced values."""

import functools

import numpy as np
import pytest

import xlalite as xl
from xlalite.hlo.errors import TracingError

X = np.random.default_rng(3).normal(size=6)
FACTOR = 3.0

staged = functools.partial(xl.jit, control_flow=True)


def sign_of(x):
    if x > 0:
        return "positive" and 1.0
    if x < 0:
        return -1.0
    return 0.0


def captured(x, n):
    y = np.zeros_like(x)
    part = y[1:]
    i = 0
    while i < n:
        y[0] += x[i]
        part[...] = part + FACTOR
        i += 1
    return y, i


def conditions(a, b):
    both = 1.0 if 0 < a < b or a == b else 2.0
    return both, max(a, b, 0.5), min([a, b]), int(a), float(b), not a > b


def large(x):
    y = x
    for i in range(1000):
        y = np.sin(y) + 0.001 * i
    return y


def growing(n):
    parts = []
    for i in range(100):
        parts.append(i * n)
    return np.stack(parts)


def one_way(x):
    if x > 0:
        y = x
    return y + 1


def tried(x):
    try:
        if x > 0:
            return x
    finally:
        x = x + 1
    return -x


def raising(x):
    if x < 0:
        raise ValueError("negative")
    return x


def shapes(x):
    y = x[0]
    while y < 3:
        y = y + x
    return y


def kinds(x):
    y = "text"
    if x > 0:
        y = y + "s"
    return y


def truth(x):
    while x > 0:
        x = x - 1
    return x


CALLS = [
    *((sign_of, (value,)) for value in (2.0, -2.0, 0.0)),
    *((captured, (X, n)) for n in (0, 1, 5)),
    *((conditions, (a, b)) for a, b in ((1.5, 2.5), (2.5, 1.5), (2.0, 2.0), (-1.0, 3.0))),
    (large, (X,)),
    (growing, (2.0,)),
]


@pytest.mark.parametrize(("function", "arguments"), CALLS)
def test_functions_do_what_python_does(function, arguments):
    found, expected = staged(function)(*arguments), function(*arguments)
    found, expected = (each if isinstance(each, tuple) else (each,) for each in (found, expected))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other)
        assert np.asarray(one).dtype == np.asarray(other).dtype


@pytest.mark.parametrize("n", [0, 1, 6])
def test_loops_with_a_traced_number_of_steps_and_branches_inside(n):
    def plain(x, n):
        total, y = 0.0, np.zeros(3)
        for i in range(n):
            if i % 2 == 0 and x[i] > 0:
                total += x[i]
                y[i % 3] = total
            elif not x[i] < -1:
                total -= 1
            else:
                y *= 2
        return total, y

    found, expected = staged(plain)(X, n), plain(X, n)
    np.testing.assert_allclose(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1])


def test_gradients_and_examples_go_through_them():
    @functools.partial(xl.jit, control_flow=True)
    def powers(x):
        y = x
        for _ in range(70):
            if y < 10:
                y = y * x
        return y

    np.testing.assert_allclose(xl.grad(powers)(2.0), 4 * 2.0**3)
    np.testing.assert_allclose(xl.vmap(powers)(np.array([2.0, 4.0, 11.0])), [16.0, 16.0, 11.0])


def test_methods_and_closures():
    scale = 2.0

    class Model:
        @staged
        def run(self, x):
            while x.sum() < 100:
                x = x * scale
            return x

    x = np.array([1.0, 2.0])
    np.testing.assert_allclose(Model().run(x), [64.0, 128.0])


@pytest.mark.parametrize(
    ("function", "argument", "message"),
    [
        (one_way, 1.0, "'y' has no value here: not every way"),
        (tried, 1.0, r"line \d+: an if with return, break or continue inside cannot depend on bool"),
        (raising, 1.0, r"line \d+: an if with raise inside cannot depend on bool"),
        (shapes, X, r"line \d+: y has different shapes in the start and an iteration: \(\) and \(6,\)"),
        (kinds, 1.0, r"line \d+: y changes and is no array or number in the two branches, but 'texts'"),
        (truth, X, r"line \d+: the truth value of an array with more than one element is ambiguous"),
    ],
)
def test_what_cannot_be_recorded_is_named_with_its_line(function, argument, message):
    with pytest.raises(TracingError, match=message):
        staged(function)(argument)


def test_only_functions_with_a_text_can_be_rewritten():
    with pytest.raises(TracingError, match="needs a def"):
        staged(lambda x: x)
    with pytest.raises(TracingError, match="needs a function that a def makes"):
        staged(np.sin)
