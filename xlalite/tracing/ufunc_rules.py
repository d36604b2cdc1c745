"""Ufuncs that are made of several operations, with NumPy's meaning where TensorFlow's differs: zeros, NaN, rounding."""

from __future__ import annotations

import math as numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from xlalite.framework.graph.dtypes import as_dtype
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions import array, control_flow, math, special
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.promotion import cast_to
from xlalite.tracing.promotion import as_tensor

Rule = Callable[..., Tensor]

_LARGEST_PRODUCT = 8
"""Powers with larger exponents than this are rounded once, as a whole."""


def for_fractions(rule: Rule) -> Rule:
    """A rule for numbers with fractions; whole numbers are left as they are."""
    return lambda x: rule(x) if x.dtype.is_floating else x


def of_parts(rule: Rule, combine: Rule) -> Rule:
    """A question about numbers with fractions, of complex ones about both parts; of whole ones the answer is known."""

    def ask(x: Tensor) -> Tensor:
        if x.dtype.is_complex:
            return combine(rule(math.real(x)), rule(math.imag(x)))
        return rule(x if x.dtype.is_floating else cast_to(x, as_dtype(np.float32)))

    return ask


def ordered(compare: Rule) -> Rule:
    """A comparison; complex numbers are compared by their real parts, equal ones by the imaginary ones."""

    def rule(x: Tensor, y: Tensor) -> Tensor:
        if not x.dtype.is_complex:
            return compare(x, y)
        first, second = (math.real(x), math.real(y)), (math.imag(x), math.imag(y))
        return array.where_v2(math.equal(*first), compare(*second), compare(*first))

    return rule


def extreme(choose: Rule, is_first: Rule) -> Rule:
    """The larger or smaller one of two numbers, of complex ones in their order; NaN if one is."""

    def rule(x: Tensor, y: Tensor) -> Tensor:
        if not x.dtype.is_complex:
            return choose(x, y)
        is_nan = of_parts(math.is_nan, math.logical_or)
        found = array.where_v2(ordered(is_first)(x, y), x, y)
        return array.where_v2(is_nan(x), x, array.where_v2(is_nan(y), y, found))

    return rule


maximum = extreme(math.maximum, math.greater_equal)
minimum = extreme(math.minimum, math.less_equal)


def ignoring_nan(choose: Rule) -> Rule:
    """The chosen one of two numbers, of which NaN counts only if both are."""

    def rule(x: Tensor, y: Tensor) -> Tensor:
        if not (x.dtype.is_floating or x.dtype.is_complex):
            return choose(x, y)
        is_nan = of_parts(math.is_nan, math.logical_or)
        return array.where_v2(is_nan(x), y, array.where_v2(is_nan(y), x, choose(x, y)))

    return rule


def scaled(factor: float) -> Rule:
    """Multiplied by a number."""
    return lambda x: x * _number(factor, x)


def sign(x: Tensor) -> Tensor:
    """The sign; of a zero of either sign it is +0."""
    if x.dtype.is_unsigned:
        return math.minimum(x, 1)
    return array.where_v2(math.equal(x, 0), array.zeros_like(x), math.sign(x))


def absolute(x: Tensor) -> Tensor:
    """The absolute value; numbers without a sign are their own."""
    return x if x.dtype.is_unsigned else math.abs(x)


def signbit(x: Tensor) -> Tensor:
    """Whether the sign of a number, also of a zero and of NaN, is minus."""
    return math.less(math.bitcast(x, as_dtype(np.dtype(f"i{x.dtype.size}"))), 0)


def copysign(x: Tensor, y: Tensor) -> Tensor:
    """The magnitude of one number with the sign of another."""
    size = math.abs(x)
    return array.where_v2(signbit(y), -size, size)


def nextafter(x: Tensor, y: Tensor) -> Tensor:
    """The number next to x on the way to y."""
    if x.dtype.size >= 4:
        return node("NextAfter", [x, y])
    bits = math.bitcast(x, as_dtype(np.int16))
    step = array.where_v2(math.equal(math.greater(y, x), math.greater(x, 0)), bits + 1, bits - 1)
    smallest = array.where_v2(signbit(y), math.cast(as_tensor(-32767), np.int16), math.cast(as_tensor(1), np.int16))
    found = math.bitcast(array.where_v2(math.equal(x, 0), smallest, step), x.dtype)
    found = array.where_v2(math.equal(x, y), y, found)
    return array.where_v2(math.logical_or(math.is_nan(x), math.is_nan(y)), x + y, found)


def spacing(x: Tensor) -> Tensor:
    """The distance to the next number away from zero, with the sign of x."""
    size = math.abs(x)
    step = nextafter(size, array.zeros_like(x) + _number(np.inf, x)) - size
    if x.dtype.size == 2:  # NumPy's distance of half precision is the one towards +infinity
        inward = array.where_v2(math.is_inf(x), step, size - nextafter(size, array.zeros_like(x)))
        return array.where_v2(math.less(x, 0), inward, step)
    return copysign(array.where_v2(math.is_inf(x), step * 0 / _number(0.0, x), step), x)


def heaviside(x: Tensor, at_zero: Tensor) -> Tensor:
    """0 below zero, 1 above, the second operand at zero."""
    step = array.where_v2(math.less(x, 0), _number(0.0, x), _number(1.0, x))
    step = array.where_v2(math.is_nan(x), x, step)
    return array.where_v2(math.equal(x, 0), at_zero, step)


def remainder(x: Tensor, y: Tensor) -> Tensor:
    """The remainder with the sign of y, also where it is zero."""
    if not x.dtype.is_floating:
        return _zero_for_zero(math.floormod, x, y)
    found: Tensor = x % y
    return array.where_v2(math.equal(found, 0), _zero_like_sign_of(y), found)


def floor_divide(x: Tensor, y: Tensor) -> Tensor:
    """The integer nearest to (x - x mod y) / y: 1 // 0.1 is 9, although 1 / 0.1 is 10; by a whole zero it is zero."""
    if not x.dtype.is_floating:
        return _zero_for_zero(math.floordiv, x, y)
    rest = math.truncatemod(x, y)
    quotient = (x - rest) / y
    below = math.logical_and(math.not_equal(rest, 0), math.not_equal(math.less(y, 0), math.less(rest, 0)))
    quotient = array.where_v2(below, quotient - 1, quotient)
    whole = math.floor(quotient)
    whole = array.where_v2(math.greater(quotient - whole, 0.5), whole + 1, whole)
    ratio = x / y
    whole = array.where_v2(math.equal(quotient, 0), ratio * 0, whole)
    return array.where_v2(math.equal(y, 0), ratio, whole)


def fmod(x: Tensor, y: Tensor) -> Tensor:
    """The remainder with the sign of x."""
    return math.truncatemod(x, y) if x.dtype.is_floating else _zero_for_zero(math.truncatemod, x, y)


def power(x: Tensor, y: Tensor, exponent: float) -> Any:
    """A power with a number of Python: small whole ones are products, as NumPy's squares are, and 1/2 is a root."""
    if not (x.dtype.is_floating or x.dtype.is_complex):
        return x**y
    if exponent == 0.5:
        return math.sqrt(x)
    if exponent not in range(1, _LARGEST_PRODUCT + 1):
        return x**y
    found, square, left = None, x, int(exponent)
    while left:
        if left & 1:
            found = square if found is None else found * square
        left >>= 1
        square = math.square(square) if left else square
    return found


def reciprocal(x: Tensor) -> Tensor:
    """1 / x; of whole numbers rounded toward zero, and of zero what NumPy's conversion of infinity gives."""
    if not x.dtype.is_integer:
        return math.reciprocal(x)
    of_zero = np.iinfo(x.dtype.numpy_dtype).min if x.dtype.size >= 4 else 0
    return array.where_v2(math.equal(x, 0), _number(of_zero, x), math.truncatediv(array.ones_like(x), x))


def trunc(x: Tensor) -> Tensor:
    """The whole number next to x toward zero."""
    return array.where_v2(signbit(x), math.ceil(x), math.floor(x))


def rint(x: Tensor) -> Tensor:
    """The nearest whole number, halves to even; of complex numbers of both parts."""
    if not x.dtype.is_complex:
        return math.rint(x)
    return _complex(math.rint(math.real(x)), math.rint(math.imag(x)))


def modf(x: Tensor) -> tuple[Tensor, Tensor]:
    """The part behind the point and the whole one, both with the sign of x."""
    whole = trunc(x)
    part = array.where_v2(math.is_inf(x), array.zeros_like(x), x - whole)
    return copysign(part, x), whole


def frexp(x: Tensor) -> tuple[Tensor, Tensor]:
    """A number in [1/2, 1) of either sign, and the power of two that makes x of it."""
    big, moved = _scaled(x, math.abs(x))
    info = x.dtype.limits()
    whole = as_dtype(np.dtype(f"i{x.dtype.size}"))
    field = node("RightShift", [math.bitcast(big, whole), _whole(info.nmant, whole)]) & _whole(
        (1 << info.nexp) - 1, whole
    )
    exponent = cast_to(field, as_dtype(np.int32)) + int(info.minexp)
    is_plain = math.logical_and(math.is_finite(x), math.not_equal(x, 0))
    mantissa = big * _power_of_two(-exponent, x)
    return array.where_v2(is_plain, mantissa, x), array.where_v2(is_plain, exponent - moved, array.zeros_like(exponent))


def ldexp(x: Tensor, exponent: Tensor) -> Tensor:
    """The number times a power of two, in steps that leave the range only if the result does."""
    info = x.dtype.limits()
    most = info.maxexp - 1
    left = math.minimum(math.maximum(cast_to(exponent, as_dtype(np.int32)), -4 * most), 4 * most)
    for _ in range(4):
        step = math.minimum(math.maximum(left, -most + 2), most)
        x = x * _power_of_two(step, x)
        left = left - step
    return x


def exp2(x: Tensor) -> Any:
    """2 to the power of x."""
    return _number(2.0, x) ** x


def log2(x: Tensor) -> Any:
    """The logarithm to the base 2, exact for powers of two: that of a number around 1, and the power that is left."""
    if x.dtype.is_complex:
        return _complex_scaled(math.log(x), 1 / numbers.log(2))
    info, whole = x.dtype.limits(), as_dtype(np.dtype(f"i{x.dtype.size}"))
    big, moved = _scaled(x, x)
    least = int(np.array(numbers.sqrt(0.5), x.dtype.numpy_dtype).view(whole.numpy_dtype))
    exponent = node("RightShift", [math.bitcast(big, whole) - _whole(least, whole), _whole(info.nmant, whole)])
    is_plain = math.logical_and(math.greater(x, 0), math.is_finite(x))
    around_1 = big * array.where_v2(is_plain, _power_of_two(-exponent, x), array.ones_like(x))
    power = cast_to(exponent, x.dtype) - cast_to(moved, x.dtype)
    logarithm = math.log(around_1) * _number(1 / numbers.log(2), x)
    return array.where_v2(is_plain, power, array.zeros_like(power)) + logarithm


def log10(x: Tensor) -> Any:
    """The logarithm to the base 10, exact for powers of ten."""
    if x.dtype.is_complex:
        return _complex_scaled(math.log(x), 1 / numbers.log(10))
    found = math.log(x) * _number(1 / numbers.log(10), x)
    whole, limits = math.rint(found), x.dtype.limits()
    least, most = (int(numbers.log10(float(each))) for each in (limits.tiny, limits.max))
    powers = np.array([float(f"1e{each}") for each in range(least, most + 1)], x.dtype.numpy_dtype)
    number = cast_to(math.maximum(whole, _number(least, x)) - _number(least, x), as_dtype(np.int32))
    is_power = math.equal(array.gather(as_tensor(powers), number), x)
    is_normal = math.greater_equal(x, _number(float(limits.tiny), x))
    # What is added has no derivative, so that the logarithm's is everywhere.
    rest = array.where_v2(math.logical_and(is_power, is_normal), whole - found, array.zeros_like(found))
    return found + array.stop_gradient(rest)


def logaddexp(x: Tensor, y: Tensor) -> Tensor:
    """log(e^x + e^y), from the larger one."""
    found = math.maximum(x, y) + math.log1p(math.exp(-math.abs(x - y)))
    return array.where_v2(math.equal(x, y), _middle(x, y) + _number(numbers.log(2), x), found)


def _middle(x: Tensor, y: Tensor) -> Any:
    """What both are if they are equal, with half of the derivative from each."""
    half = _number(0.5, x)
    return x * half + y * half


def logaddexp2(x: Tensor, y: Tensor) -> Tensor:
    """log2(2^x + 2^y), from the larger one."""
    found = math.maximum(x, y) + math.log1p(exp2(-math.abs(x - y))) * _number(1 / numbers.log(2), x)
    return array.where_v2(math.equal(x, y), _middle(x, y) + 1, found)


def cbrt(x: Tensor) -> Tensor:
    """The cube root, by a power and a step of Newton's method."""
    size = math.abs(x)
    is_plain = math.logical_and(math.greater(size, 0), math.is_finite(size))
    safe = array.where_v2(is_plain, size, array.ones_like(size))
    root = safe ** _number(1 / 3, x)
    root = root - (root - safe / (root * root)) * _number(1 / 3, x)
    return copysign(array.where_v2(is_plain, root, size), x)


def hypot(x: Tensor, y: Tensor) -> Tensor:
    """The length of a vector of two parts, also where a square is out of range."""
    one, other = math.abs(x), math.abs(y)
    # Of two equal ones each is once the longer or the shorter, for the derivative.
    is_first = math.greater_equal(one, other)
    long, short = array.where_v2(is_first, one, other), array.where_v2(is_first, other, one)
    ratio = short / array.where_v2(math.equal(long, 0), array.ones_like(long), long)
    length = long * math.sqrt(ratio * ratio + 1)
    is_infinite = math.logical_or(math.is_inf(x), math.is_inf(y))
    return array.where_v2(is_infinite, _number(np.inf, x), length)


def left_shift(x: Tensor, count: Tensor) -> Tensor:
    """Shifted to the left; by its width or more it is 0."""
    return array.where_v2(_is_out(x, count), array.zeros_like(x), node("LeftShift", [x, count]))


def right_shift(x: Tensor, count: Tensor) -> Tensor:
    """Shifted to the right; by its width or more only the sign is left."""
    sign_only = array.where_v2(math.less(x, 0), math.cast(as_tensor(-1), x.dtype), array.zeros_like(x))
    rest = array.zeros_like(x) if x.dtype.is_unsigned else sign_only
    return array.where_v2(_is_out(x, count), rest, node("RightShift", [x, count]))


def gcd(x: Tensor, y: Tensor) -> Tensor:
    """The greatest common divisor, by Euclid's algorithm on all elements at once."""
    one, other = math.abs(x) if not x.dtype.is_unsigned else x, math.abs(y) if not y.dtype.is_unsigned else y
    dims = np.broadcast_shapes(one.shape.known_dims(), other.shape.known_dims())
    start = [array.broadcast_to(each, list(dims)) for each in (one, other)]

    def step(a: Tensor, b: Tensor) -> list[Tensor]:
        is_done = math.equal(b, 0)
        rest = a % array.where_v2(is_done, array.ones_like(b), b)
        return [array.where_v2(is_done, a, b), array.where_v2(is_done, b, rest)]

    found: Any = control_flow.while_loop(lambda _, b: math.reduce_any(math.not_equal(b, 0)), step, start)
    return math.abs(found[0]) if not x.dtype.is_unsigned else found[0]


def lcm(x: Tensor, y: Tensor) -> Any:
    """The least common multiple; 0 if either is 0. The smallest number with a sign has no positive one."""
    if not x.dtype.is_unsigned:
        bits = as_dtype(np.dtype(f"u{x.dtype.size}"))
        return cast_to(lcm(cast_to(math.abs(x), bits), cast_to(math.abs(y), bits)), x.dtype)
    divisor = gcd(x, y)
    safe = array.where_v2(math.equal(divisor, 0), array.ones_like(divisor), divisor)
    return math.floordiv(x, safe) * y


def vecdot(x: Tensor, y: Tensor) -> Tensor:
    """Sums of products along the last dimension, of complex numbers with the conjugates of the first.

    Raises:
        ValueError: The dimensions have different sizes.
    """
    lengths = x.shape.known_dims()[-1], y.shape.known_dims()[-1]
    if lengths[0] != lengths[1]:
        raise ValueError(f"vecdot: the last dimensions have the sizes {lengths[0]} and {lengths[1]}")
    if x.dtype.is_bool:
        return math.reduce_any(math.logical_and(x, y), -1)
    return math.reduce_sum(math.conj(x) * y if x.dtype.is_complex else x * y, -1)


def _zero_for_zero(rule: Rule, x: Tensor, y: Tensor) -> Tensor:
    """A division of whole numbers; by zero it gives zero."""
    is_zero = math.equal(y, 0)
    return array.where_v2(is_zero, array.zeros_like(x), rule(x, array.where_v2(is_zero, array.ones_like(y), y)))


def _is_out(x: Tensor, count: Tensor) -> Tensor:
    width = cast_to(as_tensor(8 * x.dtype.size), count.dtype)
    is_large = math.greater_equal(count, width)
    return is_large if count.dtype.is_unsigned else math.logical_or(is_large, math.less(count, 0))


def _complex_scaled(x: Tensor, factor: float) -> Tensor:
    """A complex number times a real one, part by part."""
    return special.complex(*[part * _number(factor, part) for part in (math.real(x), math.imag(x))])


def _zero_like_sign_of(y: Tensor) -> Tensor:
    """A zero with the sign of y, which is no NaN."""
    return array.where_v2(math.less(y, 0), _number(-0.0, y), _number(0.0, y))


def _scaled(x: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    """The number times a power of two, so that neither it nor its reciprocal is denormal, and that power."""
    is_small, shift = math.less(size, _number(1.0, x)), x.dtype.limits().nmant + 2
    factor = array.where_v2(is_small, _number(2.0**shift, x), _number(0.25, x))
    return x * factor, array.where_v2(is_small, shift, -2)


def _power_of_two(exponent: Tensor, like: Tensor) -> Tensor:
    """A normal power of two, by its bits."""
    info = like.dtype.limits()
    whole = as_dtype(np.dtype(f"i{like.dtype.size}"))
    field = cast_to(exponent - int(info.minexp) + 1, whole)
    return math.bitcast(node("LeftShift", [field, _whole(info.nmant, whole)]), like.dtype)


def _complex(real: Tensor, imag: Tensor) -> Tensor:
    return node("Complex", [real, imag])


def _number(value: float, like: Tensor) -> Any:
    return as_tensor(np.asarray(value).astype(like.dtype.numpy_dtype))


def _whole(value: int, dtype: Any) -> Tensor:
    bits = 8 * dtype.size
    value &= (1 << bits) - 1
    return as_tensor(np.asarray(value - (1 << bits) if value >> (bits - 1) else value).astype(dtype.numpy_dtype))
