"""Functions of mathematics beyond the elementary ones, under TensorFlow's names."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import as_dtype
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions.math import cast, exp, reduce_sum
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.promotion import floating, promote


def _unary(op_type: str, summary: str) -> Callable[..., Tensor]:
    def function(x: Any, name: str | None = None) -> Tensor:
        return node(op_type, [floating(convert_to_tensor(x))], None, name)

    function.__doc__ = f"{summary} Element by element."
    function.__name__ = function.__qualname__ = op_type.lower()
    return function


def _binary(op_type: str, summary: str) -> Callable[..., Tensor]:
    def function(x: Any, y: Any, name: str | None = None) -> Tensor:
        return node(op_type, [floating(each) for each in promote(x, y)], None, name)

    function.__doc__ = f"{summary} Element by element, with NumPy's broadcasting."
    function.__name__ = function.__qualname__ = op_type.lower()
    return function


def _of_integers(op_type: str, summary: str) -> Callable[..., Tensor]:
    def function(x: Any, y: Any, name: str | None = None) -> Tensor:
        return node(op_type, promote(x, y), None, name)

    function.__doc__ = f"{summary} Element by element, with NumPy's broadcasting."
    function.__name__ = function.__qualname__ = op_type.lower()
    return function


asinh = _unary("Asinh", "Inverse hyperbolic sine.")
acosh = _unary("Acosh", "Inverse hyperbolic cosine.")
atanh = _unary("Atanh", "Inverse hyperbolic tangent.")
lgamma = _unary("Lgamma", "The logarithm of `|gamma(x)|`.")
digamma = _unary("Digamma", "The derivative of lgamma.")
erfc = _unary("Erfc", "1 - erf(x), exact for large x.")
erfinv = _unary("Erfinv", "The y with erf(y) = x.")
ndtri = _unary("Ndtri", "The y below which a standard normal number lies with probability x.")
bessel_i0e = _unary("BesselI0e", "`exp(-|x|)` times the modified Bessel function of order 0.")
bessel_i1e = _unary("BesselI1e", "`exp(-|x|)` times the modified Bessel function of order 1.")

igamma = _binary("Igamma", "The lower regularised incomplete gamma function P(x, y).")
igammac = _binary("Igammac", "The upper regularised incomplete gamma function Q(x, y).")
zeta = _binary("Zeta", "Hurwitz' zeta function, the sum of (y + k)^-x.")
polygamma = _binary("Polygamma", "The x-th derivative of digamma at y.")
xdivy = _binary("Xdivy", "x / y, 0 where x is 0.")
xlog1py = _binary("Xlog1py", "x log(1 + y), 0 where x is 0.")
multiply_no_nan = _binary("MulNoNan", "x * y, 0 where y is 0 whatever x is.")
nextafter = _binary("NextAfter", "The number next to x towards y.")

bitwise_and = _of_integers("BitwiseAnd", "The bits that both have.")
bitwise_or = _of_integers("BitwiseOr", "The bits that either has.")
bitwise_xor = _of_integers("BitwiseXor", "The bits that one of the two has.")
left_shift = _of_integers("LeftShift", "x shifted to the left by y bits.")
right_shift = _of_integers("RightShift", "x shifted to the right by y bits, keeping the sign.")


def invert(x: Any, name: str | None = None) -> Tensor:
    """All bits of integers turned round."""
    return node("Invert", [convert_to_tensor(x)], None, name)


def population_count(x: Any, name: str | None = None) -> Tensor:
    """How many bits of each integer are set, as uint8."""
    return node("PopulationCount", [convert_to_tensor(x)], None, name)


def betainc(a: Any, b: Any, x: Any, name: str | None = None) -> Tensor:
    """The regularised incomplete beta function I_x(a, b)."""
    return node("Betainc", [floating(each) for each in promote(a, b, x)], None, name)


def lbeta(x: Any, name: str | None = None) -> Tensor:
    """The logarithm of the beta function of the numbers along the last dimension."""
    tensor = floating(convert_to_tensor(x))
    with get_default_graph().name_scope(name or "lbeta"):
        result: Tensor = reduce_sum(lgamma(tensor), [-1]) - lgamma(reduce_sum(tensor, [-1]))
        return result


def bessel_i0(x: Any, name: str | None = None) -> Tensor:
    """The modified Bessel function of order 0."""
    result: Tensor = exp(node("Abs", [floating(convert_to_tensor(x))])) * bessel_i0e(x)
    return result


def bessel_i1(x: Any, name: str | None = None) -> Tensor:
    """The modified Bessel function of order 1."""
    result: Tensor = exp(node("Abs", [floating(convert_to_tensor(x))])) * bessel_i1e(x)
    return result


def complex(real: Any, imag: Any, name: str | None = None) -> Tensor:
    """Complex numbers of their parts."""
    return node("Complex", [floating(each) for each in promote(real, imag)], None, name)


def angle(input: Any, name: str | None = None) -> Tensor:
    """The angles of complex numbers; 0 or pi for real ones."""
    tensor = floating(convert_to_tensor(input))
    if tensor.dtype.is_complex:
        return node("Angle", [tensor], None, name)
    zeros = node("ZerosLike", [tensor])
    return node("SelectV2", [tensor < 0, zeros + math.pi, zeros], None, name)


def approximate_equal(x: Any, y: Any, tolerance: float = 1e-5, name: str | None = None) -> Tensor:
    """Whether `|x - y|` is less than a tolerance."""
    return node("ApproximateEqual", promote(x, y), {"tolerance": float(tolerance)}, name)


def check_numerics(tensor: Any, message: str, name: str | None = None) -> Tensor:
    """The tensor, which must not hold infinities or NaN; compiled, it lets everything pass."""
    return node("CheckNumerics", [convert_to_tensor(tensor)], {"message": message}, name)


def polyval(coeffs: Sequence[Any], x: Any, name: str | None = None) -> Tensor:
    """A polynomial at x, whose coefficients begin with that of the highest power."""
    with get_default_graph().name_scope(name or "polyval"):
        point = convert_to_tensor(x)
        if not coeffs:
            return node("ZerosLike", [point])
        total = cast(convert_to_tensor(coeffs[0]), point.dtype)
        for coefficient in coeffs[1:]:
            total = total * point + coefficient
        return total


def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> Tensor:
    """`value` in another element type; what is out of range becomes the nearest limit."""
    tensor, wanted = convert_to_tensor(value), as_dtype(dtype)
    if wanted.is_integer or wanted.is_floating:
        low, high = max(float(tensor.dtype.min), float(wanted.min)), min(float(tensor.dtype.max), float(wanted.max))
        if low > float(tensor.dtype.min):
            tensor = node("Maximum", [tensor, convert_to_tensor(wanted.min, tensor.dtype)])
        if high < float(tensor.dtype.max):
            tensor = node("Minimum", [tensor, convert_to_tensor(wanted.max, tensor.dtype)])
    return cast(tensor, wanted, name)
