"""`xlalite.numpy`: NumPy's names, compiled when they are called, recorded in functions that are traced."""

from typing import Any

import numpy as np
import pytest

import xlalite as xl
import xlalite.numpy as xp

X = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize("name", ["sin", "sum", "sort", "cumsum", "transpose", "linalg.norm", "fft.rfft"])
def test_functions_of_arrays_are_those_of_numpy(name: str) -> None:
    function, expected = xp, np
    for part in name.split("."):
        function, expected = getattr(function, part), getattr(expected, part)
    found = function(X)
    assert type(found) is type(expected(X))
    np.testing.assert_allclose(found, expected(X), rtol=1e-14)


def test_parameters_that_are_no_arrays_are_static() -> None:
    np.testing.assert_array_equal(xp.sum(X, axis=1, keepdims=True), np.sum(X, axis=1, keepdims=True))
    np.testing.assert_array_equal(xp.concatenate([X, X], axis=1), np.concatenate([X, X], axis=1))


def test_other_names_are_numpys_own() -> None:
    assert (xp.pi, xp.float32, xp.newaxis) == (np.pi, np.float32, None)
    assert xp.result_type(X, np.float32) == np.float64
    assert xp.shape(X) == (2, 3)
    assert "einsum" in dir(xp)
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = xp.no_such_name


def test_new_arrays_are_plain_where_nothing_is_traced() -> None:
    assert type(xp.zeros(3)) is np.ndarray


def test_a_function_sees_them_in_numpys_place_and_its_module_does_not() -> None:
    @xl.jit
    def shifted(x):
        result = np.zeros(x.shape)
        result[1:] = x[:-1]
        return result

    np.testing.assert_array_equal(shifted(X[0]), [0.0, 0.0, 1.0])
    assert type(np.zeros(3)) is np.ndarray


def test_known_arrays_keep_their_values_until_an_argument_is_assigned() -> None:
    @xl.jit
    def function(x):
        counts = np.zeros(3, int)
        counts[1] += 2
        part = counts[1:]
        weights = np.ones(int(counts[1]))
        before = counts.tolist()
        counts[2] = x.sum()
        assert before == [0, 2, 0]
        with pytest.raises(xl.XlaliteError, match="has no value"):
            counts.tolist()
        return part, weights

    part, weights = function(X[0])
    np.testing.assert_array_equal(part, [2, 3])
    np.testing.assert_array_equal(weights, [1.0, 1.0])


def test_functions_take_what_the_standard_adds_to_numpys() -> None:
    x = np.array([2.0, 1.0, 2.0, 3.0])
    np.testing.assert_array_equal(xp.sort(x, descending=True), [3, 2, 2, 1])
    np.testing.assert_array_equal(xp.argsort(x, descending=True), [3, 0, 2, 1])
    np.testing.assert_array_equal(xp.argsort(np.stack([x, x]), axis=0, descending=True), [[0] * 4, [1] * 4])
    assert xp.finfo(x).bits == 64
    assert xp.finfo(np.float32).bits == xp.finfo("f4").bits == 32
    assert xp.iinfo(np.ones(2, np.int8)).max == xp.iinfo(np.int8).max == 127
    assert xp.fft.fftfreq(4, dtype=np.float32).dtype == np.float32
    np.testing.assert_array_equal(xp.fft.rfftfreq(5, d=0.5), np.fft.rfftfreq(5, d=0.5))


GRID = np.arange(9.0).reshape(3, 3)
WRITING = {
    "out": lambda np, x: np.add(x, 1, out=x),
    "out by position": lambda np, x: np.add(x, 1, x),
    "out in a tuple": lambda np, x: np.add(x, 1, out=(x,)),
    "out where": lambda np, x: np.add(x, 1, out=x, where=x > 4),
    "a part": lambda np, x: np.sum(x, axis=0, out=x[1]),
    "overlapping": lambda np, x: np.negative(x[:2], out=x[1:]),
    "one of two": lambda np, x: np.divmod(x, 2, out=(x, None)),
    "two": lambda np, x: np.divmod(x, 2, out=(x, GRID.copy())),
    "matmul": lambda np, x: np.matmul(x, x, out=x),
    "concatenate": lambda np, x: np.concatenate([GRID[1:], GRID[:1]], out=x),
    "copyto": lambda np, x: np.copyto(x, 7.0),
    "fill_diagonal": lambda np, x: np.fill_diagonal(x, 5),
    "nan_to_num": lambda np, x: np.nan_to_num(x, copy=False),
    "place": lambda np, x: np.place(x, x > 3, [1.0]),
    "put": lambda np, x: np.put(x, [0, 1], 9.0),
    "put_along_axis": lambda np, x: np.put_along_axis(x, GRID[:, :1].astype(int) // 3, 8.0, 1),
    "putmask": lambda np, x: np.putmask(x, x > 3, -1.0),
}


@pytest.mark.parametrize("name", WRITING)
@pytest.mark.parametrize("order", ["C", "F"])
def test_what_functions_write_is_seen_by_their_callers(name: str, order: Any) -> None:
    expected, found = GRID.copy(order), GRID.copy(order)
    for _ in range(2):
        theirs, ours = WRITING[name](np, expected), WRITING[name](xp, found)
        np.testing.assert_array_equal(found, expected)
        assert (ours is found) == (theirs is expected)
        assert isinstance(ours, tuple) == isinstance(theirs, tuple)
        for our, their in zip(ours, theirs, strict=True) if isinstance(ours, tuple) else [(ours, theirs)]:
            assert (our is found) == (their is expected)
            if their is not None:
                np.testing.assert_array_equal(our, their)


def test_what_is_only_read_stays_and_may_be_read_only() -> None:
    x = GRID.copy()
    x.flags.writeable = False
    np.testing.assert_array_equal(xp.sort(-x), np.sort(-GRID))
    np.testing.assert_array_equal(xp.clip(x, 2, 4), np.clip(GRID, 2, 4))
    with pytest.raises(ValueError, match="read-only"):
        xp.add(x, 1, out=x)
    np.testing.assert_array_equal(x, GRID)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.int32])
def test_numbers_take_the_places_of_nan(dtype: Any) -> None:
    given = np.array([1, 2, 3]).astype(dtype)
    if dtype is not np.int32:
        given[1:] = np.nan, np.inf
    expected, found, copied = given.copy(), given.copy(), given.copy()
    assert xp.nan_to_num(found, copy=False) is found
    np.testing.assert_array_equal(found, np.nan_to_num(expected, copy=False))
    np.testing.assert_array_equal(xp.nan_to_num(copied), expected)
    np.testing.assert_array_equal(copied, given)
