"""The logarithm of the gamma function, its derivatives, and Hurwitz' zeta function, in HLO operations on f64."""

from __future__ import annotations

import math

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.stablehlo.special_functions.series import polynomial, unary

# fmt: off
_LOG_GAMMA_AT_TWO = (
    0.3224670334241132, -0.0673523010531981, 0.020580808427784546, -0.007385551028673986, 0.0028905103307415234,
    -0.001192753911703261, 0.0005096695247430425, -0.00022315475845357939, 9.945751278180853e-05,
    -4.492623673813314e-05, 2.050721277567069e-05, -9.439488275268397e-06, 4.374866789907488e-06,
    -2.039215753801366e-06, 9.55141213040742e-07, -4.492469198764566e-07, 2.1207184805554665e-07,
    -1.0043224823968099e-07, 4.7698101693639804e-08, -2.2711094608943164e-08, 1.0838659214896955e-08,
    -5.183475041970047e-09, 2.4836745438024785e-09, -1.1921401405860912e-09, 5.731367241678862e-10,
    -2.7595228851242334e-10, 1.330476437424449e-10, -6.4229645638381e-11,
)
_STIRLING = (
    0.08333333333333333, -0.002777777777777778, 0.0007936507936507937, -0.0005952380952380953, 0.0008417508417508417,
    -0.0019175269175269176, 0.00641025641025641, -0.029550653594771242,
)
_DIGAMMA = (
    0.08333333333333333, -0.008333333333333333, 0.003968253968253968, -0.004166666666666667, 0.007575757575757576,
    -0.021092796092796094, 0.08333333333333333, -0.4432598039215686,
)
_EULER_MACLAURIN = (
    0.08333333333333333, -0.001388888888888889, 3.306878306878307e-05, -8.267195767195768e-07, 2.08767569878681e-08,
    -5.284190138687493e-10, 1.3382536530684679e-11, -3.3896802963225827e-13, 8.586062056277845e-15,
    -2.174868698558062e-16, 5.5090028283602295e-18, -1.3954464685812522e-19,
)
# fmt: on
_ONE_MINUS_EULER = 0.42278433509846713
_STIRLING_FROM = 8.5
_ASYMPTOTIC_FROM = 10.0
_ZETA_TERMS = 10


def lgamma(x: Handle) -> Handle:
    """The logarithm of |gamma(x)|.

    At least 1/2: a product takes arguments up to 8.5 to [1.5, 2.5], where the series around 2 is used (around 1, the
    same series and log(x)); beyond, Stirling's series. Below 1/2: gamma(x) gamma(1 - x) = pi / sin(pi x).
    """
    builder = x.builder
    reflected = builder.compare(x, 0.5, "LT")
    y = builder.select(reflected, 1.0 - x, x)
    right = builder.select(builder.compare(y, _STIRLING_FROM, "GT"), _stirling(y), _log_gamma_near_two(y))
    magnitude = unary("abs", x)
    fraction = magnitude - unary("floor", magnitude)
    fraction = builder.op("minimum", (fraction, 1.0 - fraction))
    left = math.log(math.pi) - unary("log", unary("sine", fraction * math.pi)) - right
    infinite = builder.compare(magnitude, math.inf, "EQ")
    return builder.select(infinite, magnitude, builder.select(reflected, left, right))


def _log_gamma_near_two(y: Handle) -> Handle:
    """For y from 0.5 to 8.5."""
    builder = y.builder
    product = y * 0.0 + 1.0
    for _ in range(6):
        above = builder.compare(y, 2.5, "GT")
        product = builder.select(above, product * (y - 1.0), product)
        y = builder.select(above, y - 1.0, y)
    below = builder.compare(y, 1.5, "LT")
    offset = builder.select(below, y - 1.0, y - 2.0)
    series = offset * (polynomial(offset, _LOG_GAMMA_AT_TWO) * offset + _ONE_MINUS_EULER)
    correction = builder.select(below, unary("log-plus-one", offset), offset * 0.0)
    return unary("log", product) + series - correction


def _stirling(y: Handle) -> Handle:
    inverse = 1.0 / y
    tail = polynomial(inverse * inverse, _STIRLING) * inverse
    return (y - 0.5) * (unary("log", y) - 1.0) + (0.5 * math.log(2 * math.pi) - 0.5) + tail


def digamma(x: Handle) -> Handle:
    """The derivative of lgamma: the recurrence up to 10, there the asymptotic series; reflection below 1/2."""
    builder = x.builder
    reflected = builder.compare(x, 0.5, "LT")
    y = builder.select(reflected, 1.0 - x, x)
    shift = y * 0.0
    for _ in range(10):
        below = builder.compare(y, _ASYMPTOTIC_FROM, "LT")
        shift = builder.select(below, shift + 1.0 / y, shift)
        y = builder.select(below, y + 1.0, y)
    inverse = 1.0 / y
    square = inverse * inverse
    right = unary("log", y) - inverse * 0.5 - polynomial(square, _DIGAMMA) * square - shift
    right = builder.select(builder.compare(x, math.inf, "EQ"), x, right)
    angle = (x - unary("floor", x + 0.5)) * math.pi
    left = right - unary("cosine", angle) / unary("sine", angle) * math.pi
    pole = builder.compare(angle, 0.0, "EQ")
    left = builder.select(pole, angle * math.nan, left)
    return builder.select(reflected, left, right)


def zeta(s: Handle, q: Handle) -> Handle:
    """The sum of (q + k)^-s over k: ten terms, the rest by Euler's and Maclaurin's formula."""
    builder = s.builder
    total = builder.op("power", (q, -s))
    for k in range(1, _ZETA_TERMS):
        total = total + builder.op("power", (q + float(k), -s))
    end = q + float(_ZETA_TERMS)
    power = builder.op("power", (end, -s))
    total = total + power * end / (s - 1.0) + power * 0.5
    factor = power * s / end
    for j, coefficient in enumerate(_EULER_MACLAURIN, start=1):
        total = total + factor * coefficient
        factor = factor * ((s + float(2 * j - 1)) / end) * ((s + float(2 * j)) / end)
    nan, infinity = s * math.nan, unary("abs", s) * math.inf
    whole = builder.compare(unary("floor", q), q, "EQ")
    pole = builder.op("and", (builder.compare(q, 0.0, "LE"), whole))
    even = builder.compare(unary("floor", s * 0.5), s * 0.5, "EQ")
    total = builder.select(pole, builder.select(even, infinity, nan), total)
    total = builder.select(builder.compare(q, math.inf, "EQ"), s * 0.0, total)
    total = builder.select(builder.compare(s, 1.0, "LT"), nan, total)
    return builder.select(builder.compare(s, 1.0, "EQ"), infinity, total)


def polygamma(n: Handle, x: Handle) -> Handle:
    """The n-th derivative of digamma: (-1)^(n+1) n! zeta(n + 1, x)."""
    builder = n.builder
    one_more = n + 1.0
    half = one_more * 0.5
    odd = builder.compare(unary("floor", half), half, "NE")
    size = unary("exponential", lgamma(one_more)) * zeta(one_more, x)
    higher = builder.select(odd, -size, size)
    value = builder.select(builder.compare(n, 0.0, "EQ"), digamma(x), higher)
    whole = builder.op("and", (builder.compare(n, 0.0, "GE"), builder.compare(unary("floor", n), n, "EQ")))
    return builder.select(whole, value, n * math.nan)
