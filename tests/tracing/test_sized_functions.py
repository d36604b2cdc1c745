"""Functions whose results are as large as their values say, with a size that is given."""

from typing import Any

import numpy
import numpy as np
import pytest

import xlalite as xl

RNG = np.random.default_rng(7)
WITH_NANS = np.array([np.nan, 2.0, -1.0, np.nan, 2.0, 0.0, -0.0, np.inf])
ARRAYS = [
    RNG.integers(-3, 4, (4, 5)),
    RNG.integers(0, 2, 30).astype(np.float32),
    WITH_NANS,
    np.zeros((0, 3)),
    np.array([5]),
]


def filled(expected: Any, size: int, fill: Any) -> Any:
    kept = expected[:size]
    return np.concatenate((kept, np.full((size - len(kept), *kept.shape[1:]), fill, kept.dtype)))


@pytest.mark.parametrize("size", [0, 1, 4, 40])
@pytest.mark.parametrize("array", ARRAYS, ids=lambda each: f"{each.dtype}{each.shape}")
def test_places(array: Any, size: int) -> None:
    found = xl.jit(lambda x: np.nonzero(x, size=size, fill_value=-1))(array)  # type: ignore[call-overload]  # NumPy's has no size
    for one, expected in zip(found, numpy.nonzero(array), strict=True):
        np.testing.assert_array_equal(one, filled(expected, size, -1))
    rows = xl.jit(lambda x: np.argwhere(x, size=size))(array)  # type: ignore[call-arg]  # NumPy's has no size
    np.testing.assert_array_equal(rows, filled(numpy.argwhere(array), size, 0))
    flat = xl.jit(lambda x: np.flatnonzero(x, size=size, fill_value=99))(array)  # type: ignore[call-arg]  # NumPy's has no size
    np.testing.assert_array_equal(flat, filled(numpy.flatnonzero(array), size, 99))


@pytest.mark.parametrize("size", [0, 1, 4, 40])
@pytest.mark.parametrize("array", ARRAYS, ids=lambda each: f"{each.dtype}{each.shape}")
def test_different_elements(array: Any, size: int) -> None:
    def all_of(x: Any) -> Any:
        return np.unique(x, True, True, True, size=size, fill_value=7)  # type: ignore[call-overload]  # NumPy's has no size

    values, index, inverse, counts = numpy.unique(array, True, True, True)
    found = xl.jit(all_of)(array)
    np.testing.assert_array_equal(found[0], filled(values, size, 7))
    np.testing.assert_array_equal(found[1], filled(index, size, index[0] if len(index) else 0))
    np.testing.assert_array_equal(found[2], inverse)
    np.testing.assert_array_equal(found[3], filled(counts, size, 0))
    plain = xl.numpy.unique(array, size=size)
    np.testing.assert_array_equal(plain, filled(values, size, values[0] if len(values) else 0))


@pytest.mark.parametrize("name", ["union1d", "intersect1d", "setdiff1d", "setxor1d"])
def test_sets(name: str) -> None:
    one, other = RNG.integers(0, 9, 12), RNG.integers(4, 12, 7)
    expected = getattr(numpy, name)(one, other)
    for size in (2, 20):
        found = getattr(xl.numpy, name)(one, other, size=size, fill_value=-5)
        np.testing.assert_array_equal(found, filled(expected, size, -5))


def test_without_a_size_the_message_names_it() -> None:
    with pytest.raises(xl.XlaliteError, match="size=n"):
        xl.jit(lambda x: np.unique(x))(np.ones(3))
    with pytest.raises(xl.XlaliteError, match="size=n"):
        xl.jit(lambda x: np.nonzero(x))(np.ones(3))
