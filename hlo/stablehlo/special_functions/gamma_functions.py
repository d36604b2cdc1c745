"""The logarithm of the gamma function, its derivatives, and Hurwitz' zeta function, in HLO operations on f64.

_LOG_GAMMA_AT_TWO, _STIRLING, _SINE_OF_HALF_TURNS and _DIGAMMA_OVER_DISTANCE are interpolants in Chebyshev nodes,
computed with 250 bits.
"""

from __future__ import annotations

import math

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.stablehlo.special_functions.series import polynomial, unary

# fmt: off
_LOG_GAMMA_AT_TWO = (
    0.3224670334241132, -0.06735230105319809, 0.020580808427784602, -0.007385551028674748, 0.0028905103307352523,
    -0.0011927539116544112, 0.0005096695250286105, -0.00022315475983695126, 9.945750595125288e-05,
    -4.4926216306807016e-05, 2.0507309153461225e-05, -9.439653601579865e-06, 4.374023273235208e-06,
    -2.0385366752909975e-06, 9.59761099463026e-07, -4.4990048370200897e-07, 1.9673538695769898e-07,
    -1.058964494970674e-07, 7.56080839456729e-08, -1.5914964512871204e-09, -9.486657295334346e-09,
    -2.929933319612839e-08,
)
_DIGAMMA_OVER_DISTANCE = (
    0.9510558760318328, -0.4236274212814606, 0.24054248424078697, -0.14840492305388092, 0.09498872445289039,
    -0.06192213327548831, 0.040760833940846085, -0.026975796659787055, 0.017907248317313294, -0.011908220105959716,
    0.007927021796868154, -0.005279937255532708, 0.003518106563802472, -0.0023454947397380833,
    0.0015633696313653504, -0.0010364584817312839, 0.0006909255761282986, -0.00048595039220036254,
    0.00032395945401345196, -0.00014480643368061614, 9.653646261410062e-05, -0.0001782188548855923,
    0.00011881232908510335,
)
_STIRLING = (
    0.08333333333333331, -0.002777777777734769, 0.0007936507759935256, -0.0005952352439092053, 0.0008415127599549598,
    -0.0019058041797362663, 0.006043560536192271, -0.02188646223118823, 0.06688177820923424, -0.11104695308738122,
)
_SINE_OF_HALF_TURNS = (
    1.0, -1.6449340668482264, 0.8117424252833393, -0.19075182412149616, 0.02614784780555096, -0.0023460808954639607,
    0.0001484278414189103, -6.972099660851199e-06, 2.4502943624559793e-07,
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
# Where digamma is 0, as a number and what rounding takes from it.
_ROOT = (1.4616321449683622, 9.549995429965697e-17)
_STIRLING_FROM = 3.5
_ASYMPTOTIC_FROM = 10.0
# Terms of the sum and of Euler's and Maclaurin's correction: for f64, and for 2^-30.
_ZETA_TERMS = 10, 12
_SHORT_ZETA_TERMS = 5, 8


def lgamma(x: Handle) -> Handle:
    """The logarithm of |gamma(x)|, with one logarithm for numbers from 0 on.

    Up to 3.5 it is a whole number away from lgamma(2 + u), a polynomial of u, by the logarithm of a product that is not
    far from 1: the error of a larger one would count. Beyond, (x - 1/2) log x - x + log(2 pi) / 2 and a polynomial of
    1 / x^2, over x. Below 0, gamma(x) gamma(1 - x) = pi / sin(pi x).
    """
    builder = x.builder
    reflected = builder.compare(x, 0.0, "LT")
    y = builder.select(reflected, 1.0 - x, x)
    low, middle = builder.compare(y, 0.28125, "LT"), builder.compare(y, 1.28125, "LT")
    is_far, above = builder.compare(y, _STIRLING_FROM, "GT"), builder.compare(y, 2.28125, "GT")
    less = y - 1.0
    u = builder.select(middle, builder.select(low, y, less), builder.select(above, y - 3.0, y - 2.0))
    beyond = builder.select(is_far, y, builder.select(above, less, y * 0.0 + 1.0))
    log = unary("log", builder.select(middle, builder.select(low, y * y + y, y), beyond))
    series = u * (polynomial(u, _LOG_GAMMA_AT_TWO) * u + _ONE_MINUS_EULER)
    near = series + builder.select(above, log, -log)
    inverse = 1.0 / y
    tail = polynomial(inverse * inverse, _STIRLING) * inverse
    far = (y - 0.5) * (log - 1.0) + (0.5 * math.log(2 * math.pi) - 0.5) + tail
    right = builder.select(is_far, far, near)
    magnitude = unary("abs", x)
    fraction = magnitude - unary("floor", magnitude)
    fraction = builder.op("minimum", (fraction, 1.0 - fraction))
    left = -unary("log", fraction * polynomial(fraction * fraction, _SINE_OF_HALF_TURNS)) - right
    left = builder.select(builder.compare(fraction, 0.0, "EQ"), magnitude * 0.0 + math.inf, left)
    infinite = builder.compare(magnitude, math.inf, "EQ")
    return builder.select(infinite, magnitude, builder.select(reflected, left, right))


def digamma(x: Handle) -> Handle:
    """The derivative of lgamma; reflection of what is not positive.

    On [1, 2] a polynomial times the distance from the root, where steps take all from 0 to 5. Beyond, steps up to 10,
    and there the asymptotic series.
    """
    builder = x.builder
    reflected = builder.compare(x, 0.0, "LE")
    y = builder.select(reflected, 1.0 - x, x)
    right = builder.select(builder.compare(y, 5.0, "LT"), _digamma_near_root(y), _digamma_beyond(y))
    right = builder.select(builder.compare(x, math.inf, "EQ"), x, right)
    angle = (x - unary("floor", x + 0.5)) * math.pi
    left = right - unary("cosine", angle) / unary("sine", angle) * math.pi
    pole = builder.compare(angle, 0.0, "EQ")
    left = builder.select(pole, angle * math.nan, left)
    return builder.select(reflected, left, right)


def _digamma_near_root(y: Handle) -> Handle:
    """For y from 0 to 5."""
    builder = y.builder
    low = builder.compare(y, 1.0, "LT")
    step = builder.select(low, -1.0 / y, y * 0.0)
    y = builder.select(low, y + 1.0, y)
    for _ in range(3):
        above = builder.compare(y, 2.0, "GT")
        step = builder.select(above, step + 1.0 / (y - 1.0), step)
        y = builder.select(above, y - 1.0, y)
    return (y - _ROOT[0] - _ROOT[1]) * polynomial(y - 1.5, _DIGAMMA_OVER_DISTANCE) + step


def _digamma_beyond(y: Handle) -> Handle:
    """For y of at least 5."""
    builder = y.builder
    shift = y * 0.0
    for _ in range(5):
        below = builder.compare(y, _ASYMPTOTIC_FROM, "LT")
        shift = builder.select(below, shift + 1.0 / y, shift)
        y = builder.select(below, y + 1.0, y)
    inverse = 1.0 / y
    square = inverse * inverse
    return unary("log", y) - (shift + (inverse * 0.5 + polynomial(square, _DIGAMMA) * square))


def zeta(s: Handle, q: Handle, terms: tuple[int, int] = _ZETA_TERMS) -> Handle:
    """The sum of (q + k)^-s over k: a few terms, the rest by Euler's and Maclaurin's formula."""
    builder = s.builder
    count, corrections = terms
    power_of = _power_of_sum if terms == _ZETA_TERMS else _short_power_of_sum
    sums, lost = map(list, zip(*(power_of(q, float(k), s) for k in range(count)), strict=True))
    end = q + float(count)
    power, _ = power_of(q, float(count), s)
    rest = power * 0.5
    factor = power * s / end
    for j, coefficient in enumerate(_EULER_MACLAURIN[:corrections], start=1):
        rest = rest + factor * coefficient
        factor = factor * ((s + float(2 * j - 1)) / end) * ((s + float(2 * j)) / end)
    # s - 1 is exact, and a power of it has fewer roundings than a product with the one above.
    tail, tail_lost = (part / (s - 1.0) for part in power_of(q, float(count), s - 1.0))
    total = _sum([*sums, tail], [*lost, tail_lost, rest])
    nan, infinity = s * math.nan, unary("abs", s) * math.inf
    whole = builder.compare(unary("floor", q), q, "EQ")
    pole = builder.op("and", (builder.compare(q, 0.0, "LE"), whole))
    even = builder.compare(unary("floor", s * 0.5), s * 0.5, "EQ")
    total = builder.select(pole, builder.select(even, infinity, nan), total)
    total = builder.select(builder.compare(q, math.inf, "EQ"), s * 0.0, total)
    total = builder.select(builder.compare(s, 1.0, "LT"), nan, total)
    return builder.select(builder.compare(s, 1.0, "EQ"), infinity, total)


def _sum(numbers: list[Handle], small: list[Handle]) -> Handle:
    """The sum of numbers, of what their sum loses in rounding, and of numbers that are small beside them."""
    total, rest = numbers[-1], sum(small[1:], small[0])
    for number in reversed(numbers[:-1]):
        larger = total + number
        part = larger - total
        rest = rest + ((total - (larger - part)) + (number - part))
        total = larger
    # Nothing is lost of an infinite sum.
    builder = total.builder
    return builder.select(builder.compare(rest, rest, "EQ"), total + rest, total)


def _short_power_of_sum(q: Handle, k: float, s: Handle) -> tuple[Handle, Handle]:
    """(q + k)^-s, and nothing."""
    return q.builder.op("power", (q + k, -s)), q.builder.zeros(q.shape)


def _power_of_sum(q: Handle, k: float, s: Handle) -> tuple[Handle, Handle]:
    """(q + k)^-s of the rounded sum, and what is missing in it: what the sum loses counts s times."""
    builder, total = q.builder, q + k
    power, nothing = _short_power_of_sum(q, k, s)
    if not k:
        return power, nothing
    part = total - q
    lost = (q - (total - part)) + (k - part)
    # The rest of a sum that is exact is none, even if it is 0 or its power infinite.
    return power, builder.select(builder.compare(lost, 0.0, "EQ"), nothing, -power * (s * lost / total))


def short_zeta(s: Handle, q: Handle) -> Handle:
    """The same of f64 numbers for narrower types."""
    return zeta(s, q, _SHORT_ZETA_TERMS)


def polygamma(n: Handle, x: Handle, terms: tuple[int, int] = _ZETA_TERMS) -> Handle:
    """The n-th derivative of digamma: (-1)^(n+1) n! zeta(n + 1, x)."""
    builder = n.builder
    one_more = n + 1.0
    half = one_more * 0.5
    odd = builder.compare(unary("floor", half), half, "NE")
    factorial = unary("exponential", lgamma(one_more))
    # An exponential has lost digits of its argument, but not so many that they would be another whole number.
    whole_number = unary("round-nearest-even", factorial)
    factorial = builder.select(builder.compare(factorial, 2.0**44, "LT"), whole_number, factorial)
    size = factorial * zeta(one_more, x, terms)
    higher = builder.select(odd, -size, size)
    value = builder.select(builder.compare(n, 0.0, "EQ"), digamma(x), higher)
    whole = builder.op("and", (builder.compare(n, 0.0, "GE"), builder.compare(unary("floor", n), n, "EQ")))
    return builder.select(whole, value, n * math.nan)


def short_polygamma(n: Handle, x: Handle) -> Handle:
    """The same of f64 numbers for narrower types."""
    return polygamma(n, x, _SHORT_ZETA_TERMS)
