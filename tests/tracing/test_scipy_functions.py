"""Functions of scipy.special in traced functions give what scipy gives."""

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.interpolate
import scipy.special
import scipy.stats
from scipy import special
from scipy.special import logsumexp, softmax

import xlalite as xl
from xlalite.hlo.errors import TracingError
from xlalite.tracing.scipy_ufuncs import SPECIAL

NUMBERS = [
    -np.inf,
    -45.5,
    -20.0,
    -7.3,
    -2.5,
    -1.0,
    -0.3,
    -0.0,
    0.0,
    1e-9,
    0.2,
    0.5,
    0.7,
    1.0,
    2.0,
    3.7,
    15.0,
    np.inf,
    np.nan,
]
POSITIVE = [1e-6, 0.2, 0.5, 0.9, 1.0, 2.5, 7.0, 30.0]
# Arguments that are not any numbers at all.
OF = {
    "betainc": (POSITIVE, POSITIVE, [0.0, 0.1, 0.5, 0.99, 1.0]),
    "beta": (POSITIVE, POSITIVE),
    "betaln": (POSITIVE, POSITIVE),
    "boxcox": (POSITIVE, [-1.5, 0.0, 0.3, 2.0]),
    "inv_boxcox": (POSITIVE, [-0.01, 0.0, 0.3, 2.0]),
    "gamma": ([x for x in NUMBERS if x > -30],),
    "gammainc": (POSITIVE, POSITIVE),
    "gammaincc": (POSITIVE, POSITIVE),
    "i0": ([x for x in NUMBERS if np.isfinite(x)],),
    "i1": ([x for x in NUMBERS if np.isfinite(x)],),
    "zeta": ([1.5, 2.0, 7.0], POSITIVE),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", sorted(SPECIAL))
def test_values_are_scipys(name: str, dtype: Any) -> None:
    function = getattr(scipy.special, name)
    count = 2 if name in ("zeta", "xlogy", "xlog1py", "rel_entr", "kl_div", "huber", "pseudo_huber") else 1
    given = OF.get(name, (NUMBERS,) * count)
    columns = [np.array(column).astype(dtype) for column in given]
    arguments = [each.ravel() for each in np.meshgrid(*columns, indexing="ij")]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = function(*arguments)
        found = xl.jit(lambda *values: function(*values))(*arguments)
    assert found.dtype == expected.dtype
    bound = 2e-11 if dtype is np.float64 else 4e-5
    # betainc is 1 minus that of the other side where that one converges sooner, as exact as numbers near 1.
    least = bound * (1e-3 if name == "betainc" else 1e-4)
    np.testing.assert_allclose(found, expected, rtol=bound, atol=least)


def test_what_has_no_rule_says_so() -> None:
    with pytest.raises(TracingError, match="airy"):
        xl.jit(lambda x: scipy.special.airy(x)[0])(np.ones(3))
    with pytest.raises(TracingError, match="of complex numbers"):
        xl.jit(lambda x: scipy.special.erf(x))(np.ones(3, complex))


def test_gradients_go_through() -> None:
    gradient = xl.grad(lambda x: scipy.special.gammaln(x).sum())(np.array([0.5, 3.0]))
    np.testing.assert_allclose(gradient, scipy.special.digamma([0.5, 3.0]), rtol=1e-9)


X = np.random.default_rng(2).normal(size=(4, 5))
EDGES = np.array([-np.inf, 1, np.inf, 2])
WEIGHTS = np.array([1, -1, 2, 0, 1.0])


@pytest.mark.parametrize(
    ("function", "x"),
    [
        *((lambda x: scipy.special.logsumexp(x), given) for given in (X, EDGES, EDGES[:1], np.arange(5))),
        (lambda x: scipy.special.logsumexp(x, 0, keepdims=True), X),
        (lambda x: special.logsumexp(x, axis=1, b=WEIGHTS, return_sign=True), X),
        (lambda x: (softmax(x), softmax(x, axis=0), special.log_softmax(x, axis=-1)), X.astype(np.float32)),
        (lambda x: special.log_softmax(x), EDGES),
        (lambda x: special.expit(x) + logsumexp(np.zeros(3)), X),
    ],
)
def test_functions_that_are_no_ufuncs(function: Any, x: Any) -> None:
    with np.errstate(all="ignore"):
        found, expected = (xl.nest.flatten(each(x)) for each in (xl.jit(function), function))
    for one, other in zip(found, expected, strict=True):
        assert np.asarray(one).dtype == np.asarray(other).dtype
        np.testing.assert_allclose(one, other, rtol=1e-6 if np.asarray(one).dtype == np.float32 else 1e-14, atol=1e-14)


def test_gradients_of_them() -> None:
    np.testing.assert_allclose(xl.grad(lambda x: logsumexp(x))(X), softmax(X))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: scipy.stats.norm.cdf(x), r"scipy.stats \(cdf\) cannot .* ndtr\(x\) for norm.cdf\(x\)"),
        (lambda x: scipy.fft.fft(x), r"scipy.fft \(fft\) cannot be recorded .* the functions of np.fft"),
        (lambda x: scipy.interpolate.interp1d(x, x)(x), "scipy.interpolate cannot be .* xlalite.pure_callback"),
    ],
)
def test_other_modules_say_what_to_write(function: Any, message: str) -> None:
    with pytest.raises(TracingError, match=message):
        xl.jit(function)(np.arange(3.0))


def test_what_they_advise_gives_what_they_give() -> None:
    x = np.linspace(0.1, 0.9, 7)
    found = xl.jit(lambda x: (special.ndtr(x), special.ndtri(x), np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)))(x)
    for one, name in zip(found, ("cdf", "ppf", "pdf"), strict=True):
        np.testing.assert_allclose(one, getattr(scipy.stats.norm, name)(x), rtol=1e-13)
