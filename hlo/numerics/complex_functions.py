"""Complex functions that NumPy does not have, or whose values at zero, infinity or NaN HLO fixes otherwise.

Special values are those of the C standard's Annex G; what it leaves open follows from the definition by other functions
or from a limit, and is said here. All of NumPy's functions that are used follow it.
"""

from __future__ import annotations

import numpy as np

from xlalite.hlo.numerics.exact_sums import exact_sum, two_product
from xlalite.hlo.numerics.rounding import AnyArray


def multiply(x: AnyArray, y: AnyArray) -> AnyArray:
    """(a+bi)(c+di) = (ac-bd) + (ad+bc)i, each part in the component's precision."""
    return combine(x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real)


def divide(x: AnyArray, y: AnyArray) -> AnyArray:
    """Quotient; zero divisors and infinities give what C's Annex G asks for."""
    quotient = _divide_scaled(x, y)
    a, b, c, d = x.real, x.imag, y.real, y.imag
    zero_divisor = (c == 0) & (d == 0) & ~(np.isnan(a) & np.isnan(b))
    unbounded = np.copysign(np.inf, c)
    finite_x, finite_y = np.isfinite(a) & np.isfinite(b), np.isfinite(c) & np.isfinite(d)
    a_unit, b_unit, c_unit, d_unit = (_infinity_to_one(part) for part in (a, b, c, d))
    result = np.where(zero_divisor, combine(unbounded * a, unbounded * b), quotient)
    result = np.where(
        _has_infinity(x) & finite_y & ~zero_divisor,
        combine(np.inf * (a_unit * c + b_unit * d), np.inf * (b_unit * c - a_unit * d)),
        result,
    )
    return np.where(
        finite_x & _has_infinity(y),
        combine(0.0 * (a * c_unit + b * d_unit), 0.0 * (b * c_unit - a * d_unit)),
        result,
    )


def _divide_scaled(x: AnyArray, y: AnyArray) -> AnyArray:
    """The quotient x conj(y) / |y|^2 with both scaled by powers of two, so that products stay in range."""
    (a, b), up = _scaled(x)
    (c, d), down = _scaled(y)
    norm = c * c + d * d

    def part(p: AnyArray, q: AnyArray, r: AnyArray, s: AnyArray) -> AnyArray:
        return np.asarray(np.ldexp(_sum_of_products(p, q, r, s) / norm, up - down))

    return combine(part(a, c, b, d), part(b, c, -a, d))


def _scaled(x: AnyArray) -> tuple[tuple[AnyArray, AnyArray], AnyArray]:
    """The parts times 2^-k, the larger of them between 1/2 and 1, and k; 0 and infinity stay."""
    largest = np.maximum(np.abs(x.real), np.abs(x.imag))
    exponent = np.where(np.isfinite(largest) & (largest != 0), np.frexp(largest)[1], 0)
    return (np.ldexp(x.real, -exponent), np.ldexp(x.imag, -exponent)), exponent


def _has_infinity(x: AnyArray) -> AnyArray:
    """Whether a part is infinite, which makes the number infinite whatever its other part is."""
    return np.asarray(np.isinf(x.real) | np.isinf(x.imag))


def _infinity_to_one(part: AnyArray) -> AnyArray:
    """1 for infinity and 0 for the rest, with the sign kept."""
    return np.copysign(np.where(np.isinf(part), np.ones_like(part), np.zeros_like(part)), part)


def combine(real: AnyArray, imag: AnyArray) -> AnyArray:
    """The complex array with the given parts; unlike real + imag*1j it keeps infinities and signs of zero."""
    real, imag = np.broadcast_arrays(real, imag)
    result = np.empty(real.shape, np.result_type(real.dtype, np.complex64))
    result.real, result.imag = real, imag
    return result


def magnitude(x: AnyArray) -> AnyArray:
    """sqrt(re^2 + im^2); infinite when either part is, even if the other is NaN."""
    size: AnyArray = np.hypot(x.real, x.imag)
    return size


def sign(x: AnyArray) -> AnyArray:
    """x/|x|; a zero is itself, one infinite part beside a finite one gives 1 beside 0, and NaN makes both parts NaN."""
    size = np.hypot(x.real, x.imag)
    # Scaled first: the quotient of two denormals has few digits.
    (a, b), _ = _scaled(x)
    near_one = np.hypot(a, b)
    result = np.where(size == 0, x, combine(a / near_one, b / near_one))
    one_infinite = np.isinf(x.real) ^ np.isinf(x.imag)
    result = np.where(one_infinite, combine(_infinity_to_one(x.real), _infinity_to_one(x.imag)), result)
    return np.where(np.isnan(x.real) | np.isnan(x.imag), _nan_like(x), result)


def _nan_like(x: AnyArray) -> AnyArray:
    return combine(np.full_like(x.real, np.nan), np.full_like(x.real, np.nan))


def logistic(x: AnyArray) -> AnyArray:
    """1 / (1 + exp(-x)), with E = e^-|a| over |1 + E cis b|^2, a sum of positive terms; real at infinite real parts."""
    a, b = x.real, x.imag
    small, rest = np.exp(-np.abs(a)), -np.expm1(-np.abs(a))
    half_square = np.cos(b / 2) ** 2
    norm = rest * rest + 4 * small * half_square
    right = (rest + 2 * small * half_square) / norm
    left = small * (2 * half_square - rest) / norm
    result = combine(np.where(a < 0, left, right), np.where(b == 0, b, small * np.sin(b) / norm))
    return np.where(np.isinf(a), combine(np.where(a > 0, 1, 0).astype(a.dtype), np.copysign(0, b)), result)


def exp_minus_one(x: AnyArray) -> AnyArray:
    """exp(x) - 1; accurate near 0: expm1(re) cos(im) - 2 sin(im/2)^2 + i exp(re) sin(im)."""
    power, half = np.exp(x), np.sin(x.imag / 2)
    near = np.expm1(x.real) * np.cos(x.imag) - 2 * half * half
    return combine(np.where(np.abs(x.real) < 50, near, power.real - 1), power.imag)


def log_plus_one(x: AnyArray) -> AnyArray:
    """log(1+x); accurate near 0 and near |1+x| = 1, where it is log1p(2 re + re^2 + im^2) / 2; a zero is itself."""
    a, b = x.real, x.imag
    is_small = (np.abs(a) < 4) & (np.abs(b) < 4)
    p, q = np.where(is_small, a, 0), np.where(is_small, b, 0)
    first, second = two_product(p, p), two_product(q, q)
    beyond = exact_sum(2 * p, second[0], first[0], second[1], first[1])
    near = is_small & (np.abs(beyond) < 0.5)
    size = np.where(near, np.log1p(np.where(near, beyond, 0)) / 2, np.log(np.hypot(1 + a, b)))
    return np.where(x == 0, x, combine(size, np.arctan2(b, 1 + a)))


def reciprocal_square_root(x: AnyArray) -> AnyArray:
    """conj(sqrt(x)) / |x|: infinite in an unknown direction at 0, and 0 at infinity."""
    (a, b), exponent = _scaled(x)
    even = exponent + exponent % 2
    scaled = combine(np.ldexp(a, exponent - even), np.ldexp(b, exponent - even))
    root, size = np.sqrt(scaled), np.hypot(scaled.real, scaled.imag)
    real, imag = (np.ldexp(part / size, -(even // 2)) for part in (root.real, -root.imag))
    infinite, origin = _has_infinity(x), x == 0
    real = np.where(infinite, 0, np.where(origin, np.inf, real))
    return combine(real, np.where(infinite, np.copysign(0, -b), np.where(origin, np.nan, imag)))


def power(x: AnyArray, y: AnyArray) -> AnyArray:
    """x^y = exp(y log x); 1^y = x^0 = 1 always, and 0^y is 0 where y has a positive real part, else NaN.

    A zero part of y or of the angle of x takes no part, even beside an infinity: a positive number to a real power is
    a real number.
    """
    logarithm = np.log(x)
    c, d, size, angle = y.real, y.imag, logarithm.real, logarithm.imag
    growth, turn = (
        exact_sum(*_product(p, q), *_product(r, s)) for p, q, r, s in ((c, size, -d, angle), (c, angle, d, size))
    )
    general = np.exp(combine(growth, turn))
    result = np.where((x == 0) & (c > 0), np.zeros_like(x), np.where(x == 0, _nan_like(x), general))
    return np.where((x == 1) | (y == 0), np.ones_like(x), result)


def _product(x: AnyArray, y: AnyArray) -> tuple[AnyArray, AnyArray]:
    """The product, with zero times infinity zero, and what rounding took where that is known."""
    product, lost = two_product(x, y)
    product = np.where((x == 0) | (y == 0), np.copysign(0, x) * np.copysign(1, y), product)
    return product, np.where(np.isfinite(lost), lost, 0)


def atan2(y: AnyArray, x: AnyArray) -> AnyArray:
    """-i log((x + iy) / sqrt(x^2 + y^2)), by the moduli and angles of u = x + iy and v = x - iy.

    x^2 + y^2 = uv, so the imaginary part is log |v/u| / 2 and the real part arg(u/v) / 2, but for the half turns by
    which the root's angle differs from the mean of the angles of u and v. |u|^2 - |v|^2 = 4p, and u/v is a positive
    multiple of |x|^2 - |y|^2 + 2iq.
    """
    a, b, c, d = _scaled_together(x, y)
    u, v = combine(a - d, b + c), combine(a + d, b - c)
    p, q = _sum_of_products(b, c, -a, d), _sum_of_products(a, c, b, d)
    nearer = np.where(p > 0, v, u)
    square = nearer.real**2 + nearer.imag**2
    shorter = np.copysign(np.log1p(4 * np.abs(p) / square) / 4, -p)
    imag = np.where(
        square < 2.0**-20, (np.log(np.hypot(v.real, v.imag)) - np.log(np.hypot(u.real, u.imag))) / 2, shorter
    )
    of_u, of_v = np.arctan2(u.imag, u.real), np.arctan2(v.imag, v.real)
    # Of this type, and not of f64.
    pi = 4 * np.arctan(np.ones_like(a))
    total, real = of_u + of_v, (of_u - of_v) / 2
    # Where x^2 + y^2 is nearly a negative number, the sign of its imaginary part tells on which side it lies.
    x_square, y_square = a * a + b * b, c * c + d * d
    side = _sum_of_products(a, b, c, d)
    side = np.where(side == 0, np.where(x_square > y_square, a * b, c * d), side)
    beside = np.abs(np.abs(total) - pi) < 0.5
    turned = np.where(beside, np.signbit(side) != np.signbit(total), np.abs(total) > pi)
    real = real + np.where(turned, np.copysign(pi, total), 0)
    real = real - np.where(np.abs(real) > pi, np.copysign(2 * pi, real), 0)
    # Where y is small beside x the angles of u and v are nearly equal, and their difference is taken before the angle.
    # So it is beside a half turn, where rounding may lose the side.
    small = np.arctan2(2 * q, x_square - y_square) / 2
    small = small - np.where(np.abs(real - small) > 1, np.copysign(pi, small), 0)
    real = np.where((4 * y_square < x_square) | ((np.abs(real) > 2.5) & (square > 2.0**-20)), small, real)
    return combine(np.where(np.isnan(imag), np.nan, real), imag)


def _scaled_together(x: AnyArray, y: AnyArray) -> tuple[AnyArray, ...]:
    """The parts of both numbers times one power of two that brings the largest near 1."""
    exponent = np.maximum(_scaled(x)[1], _scaled(y)[1])
    exponent = np.where(x == 0, _scaled(y)[1], np.where(y == 0, _scaled(x)[1], exponent))
    return tuple(np.ldexp(part, -exponent) for part in (x.real, x.imag, y.real, y.imag))


def _sum_of_products(a: AnyArray, b: AnyArray, c: AnyArray, d: AnyArray) -> AnyArray:
    """The sum ab + cd without loss where it cancels; a zero has the sign that the plain sum gives it."""
    first, second = two_product(a, b), two_product(c, d)
    exact = exact_sum(first[0], second[0], first[1], second[1])
    return np.where(exact == 0, first[0] + second[0], exact)
