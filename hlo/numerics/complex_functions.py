"""Complex functions that NumPy does not have, or whose values at zero, infinity or NaN HLO fixes otherwise."""

from __future__ import annotations

import numpy as np

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
    infinite_x = np.isinf(a) | np.isinf(b)
    infinite_y = np.isinf(c) | np.isinf(d)
    finite_x, finite_y = np.isfinite(a) & np.isfinite(b), np.isfinite(c) & np.isfinite(d)
    a_unit, b_unit, c_unit, d_unit = (_infinity_to_one(part) for part in (a, b, c, d))
    result = np.where(zero_divisor, combine(unbounded * a, unbounded * b), quotient)
    result = np.where(
        infinite_x & finite_y & ~zero_divisor,
        combine(np.inf * (a_unit * c + b_unit * d), np.inf * (b_unit * c - a_unit * d)),
        result,
    )
    return np.where(
        finite_x & infinite_y,
        combine(0.0 * (a * c_unit + b * d_unit), 0.0 * (b * c_unit - a * d_unit)),
        result,
    )


def _divide_scaled(x: AnyArray, y: AnyArray) -> AnyArray:
    """The quotient x conj(y) / |y|^2 with y scaled by a power of two, so that |y|^2 stays in range."""
    largest = np.maximum(np.abs(y.real), np.abs(y.imag))
    exponent = np.where(np.isfinite(largest) & (largest != 0), np.frexp(largest)[1], 0)
    c, d = np.ldexp(y.real, -exponent), np.ldexp(y.imag, -exponent)
    norm = c * c + d * d
    return combine(
        np.ldexp((x.real * c + x.imag * d) / norm, -exponent), np.ldexp((x.imag * c - x.real * d) / norm, -exponent)
    )


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
    """x/|x|; 0 for zero."""
    size = np.hypot(x.real, x.imag)
    return np.where(size == 0, np.zeros_like(x), combine(x.real / size, x.imag / size))


def logistic(x: AnyArray) -> AnyArray:
    """1 / (1 + exp(-x)), written so that no exponential overflows."""
    small = np.exp(np.where(x.real >= 0, -x, x))
    one = np.ones_like(x)
    return divide(np.where(x.real >= 0, one, small), one + small)


def exp_minus_one(x: AnyArray) -> AnyArray:
    """exp(x) - 1; accurate near 0: expm1(re) cos(im) - 2 sin(im/2)^2 + i exp(re) sin(im)."""
    half = np.sin(x.imag / 2)
    real = np.expm1(x.real) * np.cos(x.imag) - 2 * half * half
    return combine(real, np.where(x.imag == 0, x.imag, np.exp(x.real) * np.sin(x.imag)))


def log_plus_one(x: AnyArray) -> AnyArray:
    """log(1+x); accurate near 0: log|1+x| = log1p(re(2+re) + im^2) / 2."""
    squared = x.real * (2 + x.real) + x.imag * x.imag
    near = np.abs(squared) < 0.5
    size = np.where(near, np.log1p(np.where(near, squared, 0)) / 2, np.log(np.hypot(1 + x.real, x.imag)))
    return combine(size, np.arctan2(x.imag, 1 + x.real))


def reciprocal_square_root(x: AnyArray) -> AnyArray:
    """1 / sqrt(x)."""
    return divide(np.ones_like(x), np.sqrt(x))


def power(x: AnyArray, y: AnyArray) -> AnyArray:
    """x^y; 1^y = x^0 = 1 always, and inf^a for real a > 0 is inf, for real a < 0 is 0."""
    one = (x == 1) | (y == 0)
    infinite = (x.imag == 0) & (x.real == np.inf) & (y.imag == 0)
    result = np.where(one, np.ones_like(x), np.power(x, y))
    result = np.where(infinite & (y.real > 0), x.dtype.type(np.inf), result)
    return np.where(infinite & (y.real < 0), np.zeros_like(x), result)


def atan2(y: AnyArray, x: AnyArray) -> AnyArray:
    """-i log((x + iy) / sqrt(x^2 + y^2))."""
    i = x.dtype.type(1j)
    ratio = divide(x + i * y, np.sqrt(multiply(x, x) + multiply(y, y)))
    logarithm = np.log(ratio)
    return combine(logarithm.imag, -logarithm.real)
