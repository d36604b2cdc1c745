"""How the polynomial tables of `backends/codegen/math` were made.

`fit` finds the best weighted approximation in 200-bit arithmetic, rounds the lowest coefficient to the target format,
fixes it, and fits the rest again, until every coefficient is rounded. `TABLES` names each table of the package with its
function, interval and weight. Run as a script it prints them anew:

    python tests/backends/codegen/math/minimax.py [name ...]

Error means the largest value of weight(x) * |polynomial(x) - f(x)| on the interval, with rounded coefficients and exact
evaluation; weights make it relative to the function that the polynomial is a part of.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import mpmath as mp
import numpy as np

mp.mp.prec = 200
single = np.float32
Real = mp.mpf
Function = Callable[[Real], Real]


def best_approximation(f: Function, powers: Sequence[int], low: Real, high: Real, weight: Function) -> list[Real]:
    """Coefficients of the best weighted approximation of f by the given powers on [low, high].

    Lawson's iteration: weighted least squares on a Chebyshev grid, each point's weight multiplied by its error. Unlike
    the exchange it does not mind that weights and powers vanish at 0.
    """
    count = len(powers)
    size = 12 * (count + 2)
    grid = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * k / size) for k in range(size + 1)]
    columns = [[weight(x) * x**power for x in grid] for power in powers]
    target = [weight(x) * f(x) for x in grid]
    lawson = [Real(1)] * len(grid)
    coefficients: list[Real] = []
    best_error = mp.inf
    for _ in range(40):
        scaled = [[w * c for w, c in zip(lawson, column, strict=True)] for column in columns]
        matrix = mp.matrix([[mp.fdot(a, b) for b in columns] for a in scaled])
        right = mp.matrix([mp.fdot(a, target) for a in scaled])
        solution = list(mp.lu_solve(matrix, right))
        errors = [
            abs(mp.fsum(c * column[k] for c, column in zip(solution, columns, strict=True)) - target[k])
            for k in range(len(grid))
        ]
        if max(errors) < best_error:
            best_error, coefficients = max(errors), solution
        total = mp.fsum(w * e for w, e in zip(lawson, errors, strict=True))
        lawson = [w * e / total + mp.mpf(2) ** -60 for w, e in zip(lawson, errors, strict=True)]
    return coefficients


def evaluate(coefficients: Sequence[Real], powers: Sequence[int], x: Real) -> Real:
    """The polynomial's value."""
    return mp.fsum(c * x**p for c, p in zip(coefficients, powers, strict=True))


def fit(
    f: Function,
    degree: int,
    low: float | Real,
    high: float | Real,
    weight: Function,
    dtype: type = np.float64,
) -> tuple[list[float], float]:
    """Rounded coefficients of 1, x, ... x**degree and the error."""
    low, high = Real(low), Real(high)
    done: list[float] = []
    # In f64 the roundings of the later coefficients are far below the error of evaluation: one more fit gives them all.
    singly = degree + 1 if dtype is np.float32 else min(4, degree + 1)
    for first in range(singly):
        rest = best_approximation(_remainder_of(f, done), range(first, degree + 1), low, high, weight)
        done.append(float(dtype(float(rest[0]))))
    if singly <= degree:
        rest = best_approximation(_remainder_of(f, done), range(singly, degree + 1), low, high, weight)
        done += [float(c) for c in rest]
    return done, largest_error(f, done, low, high, weight)


def largest_error(f: Function, coefficients: Sequence[float], low: Real, high: Real, weight: Function) -> float:
    """The largest weighted error of given coefficients on 500 points."""
    points = [low + (high - low) * k / 500 for k in range(501)]
    powers = range(len(coefficients))
    exact = [Real(c) for c in coefficients]
    return float(max(abs(weight(x) * (evaluate(exact, powers, x) - f(x))) for x in points if x != 0))


def _remainder_of(f: Function, done: Sequence[float]) -> Function:
    fixed = [Real(c) for c in done]
    return lambda x: f(x) - evaluate(fixed, range(len(fixed)), x)


@dataclass(frozen=True)
class Table:
    """One table of coefficients: what it approximates, where, and how errors count."""

    place: str
    f: Function
    degree: int
    low: Real
    high: Real
    weight: Function
    dtype: type = np.float64
    error_bits: float = 0.0


def _with_limit(f: Function, at_zero: Real) -> Function:
    return lambda x: f(x) if x else Real(at_zero)


def _odd(f: Function, first: Real) -> Function:
    """(f(x) / x - 1) / x**2 in powers of z = x**2, for an odd f with f(x) = x + first * x**3 + ..."""
    return _with_limit(lambda z: (f(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, first)


def _odd_weight(f: Function) -> Function:
    return _with_limit(lambda z: z * mp.sqrt(z) / f(mp.sqrt(z)), Real(0))


def _odd_tables(place: str, f: Function, first: Real, high: str | Real, *sizes: tuple[int, float]) -> list[Table]:
    """The tables of an odd f in f32 and f64 for squares up to `high`: degree and bits of the error of each."""
    formats = (("F32", single), ("F64", np.float64))
    return [
        Table(f"{place}[{name}]", _odd(f, first), degree, Real(0), Real(high), _odd_weight(f), dtype, bits)
        for (name, dtype), (degree, bits) in zip(formats, sizes, strict=True)
    ]


def _erfc_exponent(x: Real) -> Real:
    return -mp.log(mp.erfc(x)) / mp.log(2) / x


def _erfc_exponent_weight(x: Real) -> Real:
    return x * mp.erfc(x) * mp.log(2) / mp.erf(x)


def _atanh_tail(z: Real) -> Real:
    s = mp.sqrt(z)
    return ((2 * mp.atanh(s) / s - 2) / z - Real(2) / 3) / z


def _log_pair_weight(z: Real) -> Real:
    s = mp.sqrt(z)
    return z * z * s / (2 * mp.atanh(s))


def _cosh_weight(z: Real) -> Real:
    return z / mp.cosh(mp.sqrt(z))


_EXP_TAIL = _with_limit(lambda r: (mp.expm1(r) - r) / r**2, Real(1) / 2)
_EXPM1_WEIGHT = _with_limit(lambda r: r * r / mp.expm1(r), Real(0))
_LOG_TAIL = _with_limit(lambda f: (mp.log1p(f) - f + f * f / 2) / f**3, Real(1) / 3)
_LOG_WEIGHT = _with_limit(lambda f: f**3 / mp.log1p(f), Real(0))
_ATANH_REST = _with_limit(lambda z: (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2) / z, Real(2) / 3)
_ATANH_WEIGHT = _with_limit(lambda z: z * mp.sqrt(z) / (2 * mp.atanh(mp.sqrt(z))), Real(0))
_COSH_TAIL = _with_limit(lambda z: (mp.cosh(mp.sqrt(z)) - 1) / z, Real(1) / 2)
_LOG2 = _with_limit(lambda f: mp.log1p(f) / mp.log(2) / f, 1 / mp.log(2))
_ERF = _with_limit(lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, 2 / mp.sqrt(mp.pi) - 1)
_HALF_LN2 = mp.log(2) / 2 * Real("1.0005")
_ROOT_HALF, _ROOT = mp.sqrt(2) / 2 - 1, mp.sqrt(2) - 1
_QUARTER = (mp.pi / 4 * Real("1.01")) ** 2
_HALF_TURN = (mp.pi / 2 * Real("1.02")) ** 2
_S = (_ROOT / (mp.sqrt(2) + 1) * Real("1.001")) ** 2

TABLES = [
    Table("exponential.EXP[F32]", _EXP_TAIL, 4, -_HALF_LN2, _HALF_LN2, lambda r: r * r, single, 28.2),
    Table("exponential.EXP[F64]", _EXP_TAIL, 9, -_HALF_LN2, _HALF_LN2, lambda r: r * r, error_bits=57.9),
    Table("exponential.EXPM1[F32]", _EXP_TAIL, 4, -_HALF_LN2, _HALF_LN2, _EXPM1_WEIGHT, single, 26.0),
    Table("exponential.EXPM1[F64]", _EXP_TAIL, 10, -_HALF_LN2, _HALF_LN2, _EXPM1_WEIGHT, error_bits=61.5),
    Table(
        "exponential._EXP_MINUS_TWO",
        _with_limit(lambda r: mp.expm1(-2 * r) / r, Real(-2)),
        5,
        -_HALF_LN2 / 2,
        _HALF_LN2 / 2,
        abs,
        single,
        28.1,
    ),
    Table("logarithm.LOG", _LOG_TAIL, 7, _ROOT_HALF, _ROOT, _LOG_WEIGHT, single, 27.3),
    Table("logarithm._ATANH", _ATANH_REST, 6, 0, _S, _ATANH_WEIGHT, error_bits=59.4),
    Table(
        "hyperbolic._TANH_SMALL", _odd(mp.tanh, Real(-1) / 3), 3, 0, Real("0.3025"), _odd_weight(mp.tanh), single, 24.6
    ),
    *_odd_tables("hyperbolic._SINH_SHORT", mp.sinh, Real(1) / 6, _HALF_LN2**2, (2, 34.3), (4, 61.6)),
    Table("hyperbolic._COSH_SHORT[F32]", _COSH_TAIL, 2, 0, _HALF_LN2**2, _cosh_weight, single, 33.2),
    Table("hyperbolic._COSH_SHORT[F64]", _COSH_TAIL, 4, 0, _HALF_LN2**2, _cosh_weight, error_bits=58.0),
    Table("error_function._SMALL[F32]", _ERF, 5, 0, Real("0.765625"), lambda z: 1 / (1 + _ERF(z)), single, 26.2),
    Table("error_function._SMALL[F64]", _ERF, 14, 0, Real("1.21"), lambda z: 1 / (1 + _ERF(z)), error_bits=56.7),
    Table("error_function._LARGE[F32]", _erfc_exponent, 5, "0.875", "3.95", _erfc_exponent_weight, single, 28.2),
    Table("error_function._LARGE[F64]", _erfc_exponent, 17, 1, "5.95", _erfc_exponent_weight, error_bits=57.9),
    Table("error_function._SHORT_EXP2", lambda r: Real(2) ** r, 5, "-.5", ".5", lambda r: Real(2) ** -r, single, 22.9),
    Table(
        "trigonometric._SIN_HALF_TURN", _odd(mp.sin, Real(-1) / 6), 4, 0, _HALF_TURN, _odd_weight(mp.sin), single, 30.9
    ),
    Table("trigonometric._SIN", _odd(mp.sin, Real(-1) / 6), 6, 0, _QUARTER, _odd_weight(mp.sin), error_bits=61.3),
    Table(
        "trigonometric._COS",
        _with_limit(lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, Real(1) / 24),
        5,
        0,
        _QUARTER,
        lambda z: z * z / mp.cos(mp.sqrt(z)),
        error_bits=63.1,
    ),
    Table("trigonometric._TAN", _odd(mp.tan, Real(1) / 3), 6, 0, _QUARTER, _odd_weight(mp.tan), single, 29.2),
    *_odd_tables("inverse_trigonometric.ATAN", mp.atan, Real(-1) / 3, "0.1719", (4, 30.3), (11, 61.6)),
    *_odd_tables("inverse_trigonometric._ASIN", mp.asin, Real(1) / 6, "0.25", (4, 27.6), (12, 59.8)),
    *_odd_tables("inverse_hyperbolic._ASINH", mp.asinh, Real(-1) / 6, "0.25", (4, 29.5), (11, 60.4)),
    *_odd_tables("inverse_hyperbolic._ATANH", mp.atanh, Real(1) / 3, "0.25", (5, 29.4), (13, 60.9)),
    Table("power._SHORT_LOG2", _LOG2, 13, _ROOT_HALF, _ROOT, lambda f: 1 / _LOG2(f), error_bits=38.4),
    Table("power._SHORT_EXP2", lambda r: Real(2) ** r, 7, "-.5", ".5", lambda r: Real(2) ** -r, error_bits=34.5),
    Table(
        "power._ATANH_TAIL",
        _with_limit(_atanh_tail, Real(2) / 5),
        7,
        0,
        _S,
        _with_limit(_log_pair_weight, 0),
        error_bits=71.3,
    ),
    Table("roots._INVERSE_CUBE_ROOT", lambda z: 1 / mp.cbrt(z), 6, "0.3536", "2.8284", mp.cbrt, error_bits=9.5),
]


if __name__ == "__main__":
    for table in TABLES:
        if len(sys.argv) == 1 or table.place in sys.argv[1:]:
            found, error = fit(table.f, table.degree, table.low, table.high, table.weight, table.dtype)
            print(f"{table.place}: error 2^{float(mp.log(error, 2)):.2f}\n  {found}")
