"""Arguments that are given away: what their memory holds after a call, and who sees it."""

from typing import Any

import numpy as np
import pytest

import xlalite as xl
from xlalite.hlo.errors import TracingError

X = np.random.default_rng(5).normal(size=(3, 4))


def plus_one(x: Any) -> Any:
    return x + 1


def moved(x: Any, v: Any, step: Any = 0.5) -> None:
    v *= 0.9
    x += step * v


def test_a_result_lies_in_the_memory_of_a_donated_argument() -> None:
    given = X.copy()
    assert xl.jit(plus_one, donate_argnums=0)(given) is given
    np.testing.assert_array_equal(given, X + 1)
    assert xl.jit(plus_one)(given) is not given


def test_nothing_is_allocated_for_it() -> None:
    analysis = xl.jit(plus_one, donate_argnames="x").executable(X).memory_analysis()
    assert analysis.alias_size_bytes == X.nbytes


def test_what_is_assigned_to_donated_arguments_is_seen_by_the_caller() -> None:
    step = xl.jit(moved, donate_argnames=["x", "v"])
    x, v = X.copy(), X[::-1].copy()
    expected = X.copy(), X[::-1].copy()
    for size in (0.5, 0.25):
        assert step(x, v, size) is None
        moved(*expected, size)
    np.testing.assert_allclose((x, v), expected)
    step(x, v=v)
    moved(*expected)
    np.testing.assert_allclose((x, v), expected)


@pytest.mark.parametrize("make", [lambda: np.zeros((8, 4))[::2], lambda: np.zeros((4, 4)).T, lambda: np.zeros((4, 4))])
def test_strided_arrays_take_what_is_assigned(make: Any) -> None:
    def fill(x: Any) -> Any:
        x[1:] = 7
        return x

    given = make()
    found = xl.jit(fill, donate_argnums=0)(given)
    np.testing.assert_array_equal(given, fill(make()))
    np.testing.assert_array_equal(found, given)
    assert np.shares_memory(found, given)


def test_arrays_that_share_memory_are_computed_from_what_they_held() -> None:
    whole = np.arange(6.0)
    xl.jit(moved, donate_argnums=0)(whole[1:], whole[:-1])
    np.testing.assert_allclose(whole, [0, 1, 2.45, 3.9, 5.35, 6.8])


def test_arguments_that_are_not_donated_stay_as_they_are() -> None:
    x, v = X.copy(), X.copy()
    xl.jit(moved, donate_argnums=0)(x, v)
    np.testing.assert_array_equal(v, X)
    np.testing.assert_allclose(x, X + 0.45 * X)


def test_nested_arguments_are_donated_as_a_whole() -> None:
    def train(parameters: Any, x: Any) -> Any:
        return {name: each - 0.1 * x.sum() for name, each in parameters.items()}

    parameters = {"w": X.copy(), "b": np.zeros(3)}
    found = xl.jit(train, donate_argnums=0)(parameters, X)
    assert found["w"] is parameters["w"]
    assert found["b"] is parameters["b"]
    np.testing.assert_allclose(found["b"], np.full(3, -0.1 * X.sum()))


def test_memory_that_no_result_takes_is_recorded() -> None:
    total = xl.jit(lambda x, y: x.sum() + y, donate_argnums=(0, 1))
    total(X, 1.0)
    (decision,) = (each for each in total.decisions if each.verdict == "not used")
    assert decision.subject[1] == "x"
    assert decision.reason == "no result has its shape and element type"


def test_within_other_functions_donated_arguments_are_assigned_to() -> None:
    step = xl.jit(moved, donate_argnames="x")

    def twice(x: Any, v: Any) -> Any:
        y = x.copy()
        step(y, v)
        step(y, v)
        return y, v

    found, speed = xl.jit(twice)(X, X)
    np.testing.assert_allclose(found, X + 2 * 0.45 * X)
    np.testing.assert_array_equal(speed, X)


def test_read_only_arrays_cannot_be_assigned_to() -> None:
    given = X.copy()
    given.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        xl.jit(moved, donate_argnums=0)(given, X)
    np.testing.assert_array_equal(xl.jit(plus_one, donate_argnums=0)(given), X + 1)
    np.testing.assert_array_equal(given, X)


def test_out_takes_the_result() -> None:
    out, single, scalar = np.empty_like(X), np.empty(X.shape, np.float32), np.empty(())
    f = xl.jit(plus_one)
    assert f(X, out=out) is out
    np.testing.assert_array_equal(out, X + 1)
    assert f.executable(X, out=out).memory_analysis().alias_size_bytes == X.nbytes
    assert f(X, out=single) is single
    np.testing.assert_array_equal(single, (X + 1).astype(np.float32))
    assert f(out, out=out) is out
    np.testing.assert_array_equal(out, X + 2)
    assert xl.jit(lambda x: x.sum())(X, out=scalar) is scalar
    assert scalar == pytest.approx(X.sum())
    pair = out, np.empty(4)
    assert xl.jit(lambda x: (x * 2, x[0]))(X, out=pair) is pair
    np.testing.assert_array_equal(pair[1], X[0])


def test_out_within_other_functions() -> None:
    f = xl.jit(plus_one)

    def both(x: Any) -> Any:
        y = np.zeros_like(x)
        f(x, out=y)
        return y

    np.testing.assert_array_equal(xl.jit(both)(X), X + 1)


def test_out_of_the_functions_own_is_an_argument() -> None:
    def own(x: Any, out: Any) -> Any:
        return np.add(x, 1, out=out)

    out = np.zeros_like(X)
    np.testing.assert_array_equal(xl.jit(own)(X, out=out), X + 1)
    assert not out.any()
    assert xl.jit(own, donate_argnames="out")(X, out) is out
    np.testing.assert_array_equal(out, X + 1)


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.empty(3), r"out= is float64\[3\], the result float64\[3, 4\]"),
        (np.empty((3, 4), int), "out= is int64.*, the result float64"),
        ((np.empty((3, 4)),), "must be nested as the result"),
        (1.0, "must be an array"),
    ],
)
def test_an_out_that_does_not_fit_is_refused(out: Any, message: str) -> None:
    with pytest.raises(TracingError, match=message):
        xl.jit(plus_one)(X, out=out)


def test_what_is_donated_is_an_argument_and_not_static() -> None:
    with pytest.raises(ValueError, match="donated argument 'y' is none of x"):
        xl.jit(plus_one, donate_argnames="y")
    with pytest.raises(ValueError, match="x: static and donated"):
        xl.jit(plus_one, donate_argnames="x", static_argnums=0)
