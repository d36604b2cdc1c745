"""`xlalite.numpy`: NumPy's names, compiled when they are called, recorded in functions that are traced."""

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
