"""`break`, `continue` and `return` that depend on traced values."""

import functools
import itertools

import numpy as np
import pytest

import xlalite as xl
from xlalite.hlo.errors import TracingError

X = np.random.default_rng(1).normal(size=10)

staged = functools.partial(xl.jit, control_flow=True)


def sum_until(x, limit):
    total = 0.0
    for i in range(10):
        if x[i] > limit:
            break
        total += x[i]
    return total, i


def sum_of_small(x, limit):
    total = 0.0
    for v in x:
        if v > limit:
            continue
        total += v
    return total


def first_above(x, limit):
    for i in range(len(x)):
        if x[i] > limit:
            return i
    return -1


def halved(x):
    steps = 0
    while True:
        x = x / 2
        steps += 1
        if x < 1:
            break
    return x, steps


def collatz(x):
    n = 0
    while True:
        if x == 1:
            return n
        if x % 2 == 0:
            x = x // 2
            n += 1
            continue
        x = 3 * x + 1
        n += 1


def pairs(x, y):
    for i in range(8):
        for j in range(8):
            if i * j > x:
                return i, j
            if j > y:
                break
        else:
            y = y - 1
    return -1, -1


def with_else(x, limit):
    for v in x:
        if v > limit:
            break
    else:
        return 100.0
    return v


def early(x):
    if x > 0:
        if x > 10:
            return 1.0
        x = x + 1
    return x * 2


def traced_range(x, n):
    s = 0.0
    for i in range(n):
        if i == 7:
            break
        s += x[i]
    return s, i


def assigned(x):
    y = np.zeros(3)
    for i in range(200):
        y[i % 3] += x
        if y.sum() > 20:
            break
        if i % 2:
            continue
        y[0] -= 0.5
    return y, i


def binary_search(a, key):
    lo, hi = 0, len(a)
    while lo < hi:
        mid = (lo + hi) // 2
        if a[mid] == key:
            return mid
        if a[mid] < key:
            lo = mid + 1
        else:
            hi = mid
    return -1


def is_prime(n):
    if n < 2:
        return False
    for i in range(2, 50):
        if i * i > n:
            break
        if n % i == 0:
            return False
    return True


def falls_off(x):
    for i in range(3):
        if x > i:
            return x


def endless(x):
    for i in itertools.count():
        if x < i:
            break
    return x


def two_shapes(x):
    for i in range(3):
        if x[i] > 0:
            return x
    return x[0]


def power(x):
    y = x
    for _ in range(70):
        if y > 20:
            break
        y = y * x
    return y


CALLS = [
    *((sum_until, (X, limit)) for limit in (0.0, 0.5, 9.0)),
    (sum_of_small, (X, 0.3)),
    *((first_above, (X, limit)) for limit in (0.5, 9.0)),
    *((halved, (x,)) for x in (37.0, 0.5)),
    *((collatz, (n,)) for n in (1, 27)),
    *((pairs, given) for given in ((6, 3), (60, 3), (6, 9))),
    *((with_else, (X, limit)) for limit in (0.5, 9.0)),
    *((early, (x,)) for x in (3.0, 30.0, -3.0)),
    *((traced_range, (X, n)) for n in (5, 9)),
    *((assigned, (x,)) for x in (0.2, 0.001)),
    *((binary_search, (np.arange(0, 30, 3), key)) for key in (9, 10)),
    *((is_prime, (n,)) for n in (0, 4, 91, 97)),
]
PROGRAMS = {each: staged(each) for each, _ in CALLS}


@pytest.mark.parametrize(("function", "arguments"), CALLS)
def test_functions_do_what_python_does(function, arguments):
    found, expected = (xl.nest.flatten(each(*arguments)) for each in (PROGRAMS[function], function))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other)
        assert np.asarray(one).dtype == np.asarray(other).dtype


def test_gradients_and_examples_go_through_them():
    np.testing.assert_allclose(xl.grad(staged(power))(3.0), 3 * 3.0**2)
    np.testing.assert_allclose(xl.vmap(staged(power))(np.array([2.0, 3.0, 30.0])), [32.0, 27.0, 30.0])


def test_what_python_can_decide_it_decides():
    @functools.partial(staged, static_argnames="n")
    def cut(x, n):
        parts = []
        for i in range(100):
            if i == n:
                return parts
            parts.append(x[i:])
        return None

    assert [each.shape for each in cut(X, 3)] == [(10,), (9,), (8,)]


@pytest.mark.parametrize(
    ("function", "argument", "message"),
    [
        (falls_off, 1.0, r"line \d+: the result is nested differently"),
        (endless, 1.0, r"line \d+: a for with break over count\(0\) may have no end"),
        (two_shapes, X, r"line \d+: the result has different shapes"),
    ],
)
def test_what_cannot_be_recorded_is_named_with_its_line(function, argument, message):
    with pytest.raises(TracingError, match=message):
        staged(function)(argument)
