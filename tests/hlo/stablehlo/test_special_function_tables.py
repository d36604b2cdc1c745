"""Tables of the special functions are the interpolants that they are said to be."""

from collections.abc import Callable, Sequence

import mpmath
import pytest

from xlalite.hlo.stablehlo.special_functions import bessel_functions, error_functions, gamma_functions

MP = mpmath.mp.clone()
MP.prec = 250
Real = mpmath.mpf
_ROOT = MP.findroot(MP.digamma, 1.4616)


def _log_gamma_at_two(u: Real) -> Real:
    """(lgamma(2 + u) / u - (1 - euler)) / u."""
    return (MP.loggamma(2 + u) / u - (1 - MP.euler)) / u


def _stirling(t: Real) -> Real:
    """y times what Stirling's formula lacks of lgamma(y), for y = 1 / sqrt(t)."""
    y = 1 / MP.sqrt(t)
    return (MP.loggamma(y) - (y - 0.5) * MP.log(y) + y - MP.log(2 * MP.pi) / 2) * y


def _sine_of_half_turns(t: Real) -> Real:
    """sin(pi x) / (pi x) for x = sqrt(t)."""
    return MP.sincpi(MP.sqrt(t))


def _digamma_over_distance(u: Real) -> Real:
    """digamma(x) / (x - root) for x = 1.5 + u."""
    return MP.digamma(u + 1.5) / (u + 1.5 - _ROOT)


def _bessel_near(t: Real) -> Real:
    """I1(x) / x for x = sqrt(t)."""
    return MP.besseli(1, MP.sqrt(t)) / MP.sqrt(t)


def _bessel_far(t: Real) -> Real:
    """sqrt(x) exp(-x) I1(x) for x = 16 / (t + 1)."""
    x = 16 / (t + 1)
    return MP.sqrt(x) * MP.exp(-x) * MP.besseli(1, x)


def _scaled_erfc(t: Real) -> Real:
    """exp(x^2) erfc(x) / t for t = 1 / (1 + x / 2)."""
    x = 2 / MP.mpf(t) - 2
    return MP.exp(x * x) * MP.erfc(x) / t


TABLES: list[tuple[Sequence[float], Callable[[Real], Real], float, float]] = [
    (gamma_functions._LOG_GAMMA_AT_TWO, _log_gamma_at_two, -0.71875, 0.5),
    (gamma_functions._STIRLING, _stirling, 0, MP.mpf(4) / 49),
    (gamma_functions._SINE_OF_HALF_TURNS, _sine_of_half_turns, 0, 0.25),
    (gamma_functions._DIGAMMA_OVER_DISTANCE, _digamma_over_distance, -0.5, 0.5),
    (bessel_functions._NEAR, _bessel_near, 0, 64),
    (bessel_functions._FAR, _bessel_far, -1, 1),
    (error_functions._SHORT_SCALED_ERFC, _scaled_erfc, 1 / (1 + MP.mpf("5.05")), 1),
]


def interpolant(f: Callable[[Real], Real], low: float, high: float, count: int) -> list[float]:
    """The coefficients, lowest power first, of the polynomial through f's values at Chebyshev nodes."""
    nodes = [MP.mpf(low + high) / 2 + MP.mpf(high - low) / 2 * MP.cos(MP.pi * (k + 0.5) / count) for k in range(count)]
    differences = [f(x) for x in nodes]
    for order in range(1, count):
        for k in range(count - 1, order - 1, -1):
            differences[k] = (differences[k] - differences[k - 1]) / (nodes[k] - nodes[k - order])
    result = [differences[-1]]
    for node, difference in zip(reversed(nodes[:-1]), reversed(differences[:-1]), strict=True):
        shifted = [MP.mpf(0), *result]
        result = [a - node * b for a, b in zip(shifted, [*result, MP.mpf(0)], strict=True)]
        result[0] += difference
    return [float(c) for c in result]


@pytest.mark.parametrize(
    ("table", "f", "low", "high"),
    TABLES,
    ids=[
        "lgamma",
        "stirling",
        "sine",
        "digamma",
        "bessel near",
        "bessel far",
        "erfc",
    ],
)
def test_table_is_the_interpolant(table, f, low, high):
    assert interpolant(f, low, high, len(table)) == pytest.approx(list(table), rel=1e-15)
    assert (float(_ROOT), float(_ROOT - float(_ROOT))) == gamma_functions._ROOT
