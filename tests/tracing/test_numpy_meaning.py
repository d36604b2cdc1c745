"""Functions of NumPy give under `xlalite.jit` what they give without it: signs of zeros, special values, refusals."""

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xlalite
from xlalite.hlo.errors import TracingError

INF, NAN = np.inf, np.nan
REALS = np.array([0.0, -0.0, 1.0, -1.0, 0.1, 2.5, -7.25, 1e300, -1e-310, INF, -INF, NAN])
PAIRS = np.repeat(REALS, REALS.size), np.tile(REALS, REALS.size)
COMPLEX = np.array([complex(a, b) for a in (0.0, -0.0, 1.5, -2.0, INF, -INF, NAN) for b in (0.0, -0.0, 3.0, INF, NAN)])
FINITE = np.array([complex(a, b) for a in (0.5, -2.0, 1.0) for b in (0.25, -3.0, 1.0)])
BYTES = np.array([1, 200, 255], np.uint8)


def assert_same(found: np.ndarray, expected: Any, digits: float = 1e-15) -> None:
    expected = np.asarray(expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    for one, other in ((found.real, expected.real), (found.imag, expected.imag)):
        np.testing.assert_allclose(one, other, rtol=digits, atol=0)
        if one.dtype.kind == "f":
            known = ~np.isnan(other)
            np.testing.assert_array_equal(np.signbit(one)[known], np.signbit(other)[known])


def check(function: Callable[..., Any], *arguments: np.ndarray, digits: float = 1e-15) -> None:
    with np.errstate(all="ignore"):
        assert_same(xlalite.jit(function)(*arguments), function(*arguments), digits)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("function", [np.sign, np.abs, np.negative, np.square, np.floor, np.ceil, np.rint])
def test_functions_of_real_numbers(function, dtype):
    with np.errstate(all="ignore"):
        x = REALS.astype(dtype)
    check(function, x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("function", [np.remainder, np.fmod, np.floor_divide, lambda x, y: x % y, lambda x, y: x // y])
def test_quotients_and_remainders(function, dtype):
    with np.errstate(all="ignore"):
        x, y = (each.astype(dtype) for each in PAIRS)
    check(function, x, y)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64])
@pytest.mark.parametrize("function", [np.remainder, np.floor_divide])
def test_quotients_and_remainders_of_integers(function, dtype):
    x, y = (each.ravel() for each in np.meshgrid(np.arange(1, 12), np.arange(1, 5)))
    check(function, x.astype(dtype), y.astype(dtype))


@pytest.mark.parametrize("function", [np.exp, np.sqrt, np.log, np.abs, np.real, np.imag])
def test_special_values_of_complex_functions(function):
    with np.errstate(all="ignore"):
        found, expected = xlalite.jit(function)(COMPLEX), function(COMPLEX)
    # Signs of zeros beside infinity and NaN are open.
    np.testing.assert_allclose(found.real, expected.real, rtol=1e-15)
    np.testing.assert_allclose(found.imag, expected.imag, rtol=1e-15)


def test_the_sign_of_complex_numbers():
    check(np.sign, COMPLEX[np.isfinite(COMPLEX)])


@pytest.mark.parametrize(
    "function",
    [np.sinh, np.cosh, np.tanh, np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan, np.exp, np.expm1, np.log1p],
)
def test_complex_functions(function):
    check(function, FINITE, digits=2e-15)


def test_spread_of_complex_numbers_is_real():
    check(lambda x: np.var(x, axis=0), FINITE)
    check(lambda x: np.std(x, correction=1), FINITE)


def test_spread_takes_numpys_other_name_of_ddof():
    check(lambda x: np.std(x, correction=1), REALS[2:7])
    check(lambda x: np.var(x, ddof=2), REALS[2:7])
    with pytest.raises(ValueError, match="ddof and correction can't be provided simultaneously"):
        xlalite.jit(lambda x: np.var(x, ddof=1, correction=1))(REALS)


def test_python_integers_out_of_range_are_refused():
    for function in (
        lambda x: x + 1000,
        lambda x: x * -1,
        lambda x: np.maximum(x, 256),
    ):
        with pytest.raises(OverflowError) as expected:
            function(BYTES)
        with pytest.raises(OverflowError) as found:
            xlalite.jit(function)(BYTES)
        assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("number", [1000, -1, 200, 2**40, 2**70])
def test_comparisons_take_any_python_integer(number):
    for function in (lambda x: x < number, lambda x: x == number, lambda x: number >= x):
        check(function, BYTES)


def test_truth_values_of_python_combine_with_arrays():
    flags = np.array([True, False])
    for function in (lambda x: x & True, lambda x: x | False, lambda x: True ^ x, lambda x: x + True):
        check(function, flags)
    check(lambda x: x + True, BYTES)


def test_concatenation_without_an_axis_flattens():
    check(lambda x, y: np.concatenate([x, y], axis=None), np.ones((2, 3)), np.zeros(2))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: np.add.reduceat(x, x.astype(int)), "indices that are traced leave open which elements"),
        (lambda x: np.add(x, x, where=[True]), "numpy.add with where needs out="),
        (
            lambda x: np.array2string(x),
            r"numpy.array2string cannot be recorded by xlalite.jit; float64\[12\] array \(b",
        ),
        (lambda x: np.pad(x, 1, "reflect", reflect_type="odd") + np.pad(x, 99, "reflect", reflect_type="odd"), "'odd'"),
        (lambda x: np.pad(x, 1, lambda *_: None), "pad with mode <function"),
        (
            lambda x: np.linalg.eigvals(x),
            "eigvals cannot be recorded by xlalite.jit: whether eigenvalues are",
        ),
        (lambda x: np.histogram(x, bins="auto"), "the number of bins='auto' depends on values"),
        (lambda x: np.unique(x), "how many different elements there are is not known"),
        (lambda x: np.nonzero(x), "how many elements are not zero is not known"),
        (lambda x: x.tolist(), r"which is needed by tolist\(\); use the array itself"),
        (lambda x: math.sin(x[0]), "np.sin for math.sin"),
        (lambda x: int(x[0]), r"x.astype\(int\)"),
        (
            lambda x: np.ma.masked_less(x, 0),
            r"numpy.ma \(masked_less\) cannot be recorded by xlalite.jit: it takes arrays",
        ),
        (lambda x: np.polynomial.Polynomial([1, 2])(x), "as np.polynomial.polynomial.polyval"),
        (lambda x: np.lib.stride_tricks.as_strided(x, (3,), (8,)), "sliding_window_view"),
        (lambda x: [each for each in np.nditer(x)], "np.ndindex"),
        (lambda x: np.vectorize(np.sum, signature="(n)->()")(x), "use xlalite.vmap"),
        (
            lambda x: np.where(x > 0, "a", "b"),
            "'a' cannot be recorded by xlalite.jit: its elements are <U1, not numbers",
        ),
        (lambda x: x.astype(int) + np.datetime64("2020-01-01"), "its elements are datetime64"),
        (lambda x: np.maximum(x, None), "its elements are object"),
        (lambda x: (x, np.array(["a"])), "returned an array of <U1"),
        (lambda x: (x, np.zeros(2, [("a", float)])), r"returned an array of \[\('a', '<f8'\)\]"),
        (lambda x: len(x[x > 0]), "how many elements a mask selects is not known"),
        (lambda x: x[x > 0] + x, "how many elements a mask selects is not known"),
        (lambda x: x[x > 0] + x[x < 0], "cannot be combined with those of another mask"),
        (lambda x: 1 if x else 0, r"float64\[12\] array \(being traced\) has no truth value"),
    ],
)
def test_what_cannot_be_recorded_is_named(function, message):
    with pytest.raises(TracingError, match=message):
        xlalite.jit(function)(REALS)


def test_what_cannot_be_recorded_is_shown_where_it_stands():
    def inner(x):
        return x.item()

    with pytest.raises(TracingError, match=r"\n  at .*test_numpy_meaning.py:\d+: return x.item\(\)$") as found:
        xlalite.jit(lambda x: xlalite.jit(inner)(x) + 1)(REALS)
    assert str(found.value).count("\n") == 1


@pytest.mark.parametrize("length", [0, 1, 2, 15, 16, 17, 100, 1000])
@pytest.mark.parametrize("side", ["left", "right"])
def test_places_in_sorted_sequences(length, side):
    random = np.random.default_rng(length)
    for dtype in (np.float64, np.float32, np.int64, np.uint8):
        places = np.sort(random.integers(0, 40, length).astype(dtype))
        wanted = np.arange(45).astype(dtype)
        if np.dtype(dtype).kind == "f":
            places[length - length // 10 :] = np.nan
            wanted[:4] = [np.nan, np.inf, -np.inf, -0.0]
        found = xlalite.jit(lambda a, v: np.searchsorted(a, v, side))(places, wanted)
        np.testing.assert_array_equal(found, np.searchsorted(places, wanted, side))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_nans_of_either_sign_come_last_and_zeros_are_equal(dtype: str) -> None:
    x = np.array([1, -np.nan, 0.0, -0.0, np.nan, -np.inf, 0.0, np.inf, -np.nan], dtype)
    assert np.signbit(x[1])
    np.testing.assert_array_equal(xlalite.jit(lambda x: np.sort(x))(x), np.sort(x))
    np.testing.assert_array_equal(xlalite.jit(lambda x: np.argsort(x, stable=True))(x), np.argsort(x, stable=True))
    found = xlalite.jit(lambda x: np.unique(x, size=5))(x)  # type: ignore[call-overload]  # NumPy's has no size
    np.testing.assert_array_equal(found, np.unique(x))


@pytest.mark.parametrize("function", [np.abs, np.sign, np.bitwise_count, np.reciprocal, np.negative, np.positive])
def test_functions_of_numbers_without_a_sign(function):
    check(function, np.concatenate([BYTES, np.zeros(1, np.uint8)]))


@pytest.mark.parametrize("function", [np.max, np.min, np.argmax, np.argmin, np.ptp, np.log2, np.log10])
def test_complex_numbers_have_an_order(function):
    for x in (np.array([3 + 1j, 1 - 2j, 3 - 1j, 2 + 5j, 0]), np.array([1 + 1j, complex(NAN, 0), 5])):
        check(function, x, digits=1e-14)


@pytest.mark.parametrize("function", [np.maximum, np.minimum, np.fmax, np.fmin])
def test_the_larger_of_two_complex_numbers(function):
    x, y = np.array([3 + 1j, 1 - 2j, complex(NAN, 1), 2]), np.array([3 - 1j, 2, 1, complex(1, NAN)])
    check(function, x, y)


def test_dimensions_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="vecdot: the last dimensions have the sizes 3 and 1"):
        xlalite.jit(lambda x, y: np.vecdot(x, y))(np.ones((2, 3)), np.ones((2, 1)))
    with pytest.raises(TracingError, match=r"numpy.repeat .*static argument"):
        xlalite.jit(lambda x, n: np.repeat(x, n))(np.ones(3), np.arange(3))


def test_the_logarithm_of_a_complex_determinant_is_real():
    check(lambda a: np.linalg.slogdet(a).logabsdet, np.eye(2, dtype=np.complex64) * 3j, digits=1e-6)


@pytest.mark.parametrize("ufunc", [np.log2, np.log10, np.frexp, np.exp2, np.cbrt])
def test_bfloat16_is_a_type_of_ufuncs(ufunc):
    x = np.array([1, 2, 100, 0.01, 1e-39], ml_dtypes.bfloat16)
    for one, other in zip(
        xlalite.nest.flatten(xlalite.jit(lambda x: ufunc(x))(x)), xlalite.nest.flatten(ufunc(x)), strict=True
    ):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one.astype(np.float32), other.astype(np.float32), rtol=1e-2)


@pytest.mark.parametrize("size", [0, 1, 1000])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.bincount(x.astype(np.int64), minlength=7),
        lambda x: np.histogram(x, 3, (0, 6))[0],
        lambda x: np.histogram2d(x, x, 3, [[0, 6], [0, 6]])[0],
    ],
)
def test_what_is_counted_is_no_constant_of_the_program(function, size):
    x = np.arange(size, dtype=np.float64) % 7
    check(function, x)
    text = xlalite.jit(function).lower(x).as_text()
    assert "64[1000]{0} constant(" not in text


@pytest.mark.parametrize("key", [(slice(None), [3, 0, -1]), (slice(None), slice(None), [[1, 0], [2, 2]]), ([1, 1, 0],)])
def test_indices_of_one_dimension_move_no_others(key):
    x = np.arange(120, dtype=np.float32).reshape(4, 5, 6)
    arrays = tuple(np.array(part) if isinstance(part, list) else part for part in key)
    check(lambda x: x[arrays], x)
    assert "transpose(" not in xlalite.jit(lambda x: x[arrays]).lower(x).as_text()
