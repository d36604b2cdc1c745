"""What each NumPy ufunc records, with NumPy's meaning where TensorFlow's differs: signs of zeros, rounding down."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from xlalite.client.traced_array import TracedArray, as_tensor, converted, matrix_product, promoted, type_for_numpy
from xlalite.framework.graph.dtypes import as_dtype
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.errors import TracingError
from xlalite.ops.functions import array, math
from xlalite.ops.helpers.promotion import cast_to

UfuncRule = Callable[..., Tensor]

_COMPARISONS = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)


def apply_ufunc(ufunc: np.ufunc, inputs: Sequence[Any]) -> Any:
    """Records the call of a ufunc; NotImplemented where there is no rule for it."""
    found = [type_for_numpy(value) for value in inputs]
    is_weak = all(isinstance(each, type) for each in found)
    # NumPy's resolver knows no Python bool; nothing gives way to a truth value, so its type says the same.
    wanted = [np.dtype(each) if is_weak or each is bool else each for each in found]
    rule = UFUNCS.get(ufunc)
    if rule is None or ufunc.nout != 1:
        raise TracingError(f"numpy.{ufunc.__name__} cannot be recorded by xlalite.jit")
    if ufunc is np.matmul:
        return TracedArray(rule(*promoted(*inputs)))
    if ufunc in _COMPARISONS:
        wanted = [_type_that_holds(value, each, wanted) for value, each in zip(inputs, wanted, strict=True)]
    dtypes = ufunc.resolve_dtypes((*wanted, None))
    if dtypes[0].kind == "b":
        rule = BOOLEAN_UFUNCS.get(ufunc, rule)
    tensors = [converted(v, as_dtype(dtype)) for v, dtype in zip(inputs, dtypes, strict=False)]
    return TracedArray(cast_to(rule(*tensors), as_dtype(dtypes[-1])), is_weak)


def _type_that_holds(value: Any, found: Any, others: Sequence[Any]) -> Any:
    """For comparisons, which take any Python integer: its own type, or that of the others where they hold it."""
    if found is not int or type(value) is not int:
        return found
    integers = [np.iinfo(each) for each in others if isinstance(each, np.dtype) and each.kind in "iu"]
    if all(info.min <= value <= info.max for info in integers):
        return found
    return np.dtype(np.int64) if -(2**63) <= value < 2**63 else np.dtype(np.float64)


def _sign(x: Tensor) -> Tensor:
    """The sign; of a zero of either sign it is +0."""
    return array.where_v2(math.equal(x, 0), array.zeros_like(x), math.sign(x))


def _remainder(x: Tensor, y: Tensor) -> Tensor:
    """The remainder with the sign of y, also where it is zero."""
    remainder: Tensor = x % y
    if not x.dtype.is_floating:
        return remainder
    return array.where_v2(math.equal(remainder, 0), _zero_like_sign_of(y), remainder)


def _zero_like_sign_of(y: Tensor) -> Tensor:
    """A zero with the sign of y, which is no NaN."""
    return array.where_v2(math.less(y, 0), cast_to(as_tensor(-0.0), y.dtype), cast_to(as_tensor(0.0), y.dtype))


def _floor_divide(x: Tensor, y: Tensor) -> Tensor:
    """The integer nearest to (x - x mod y) / y: 1 // 0.1 is 9, although 1 / 0.1 is 10."""
    if not x.dtype.is_floating:
        return math.floordiv(x, y)
    rest = math.truncatemod(x, y)
    quotient = (x - rest) / y
    below = math.logical_and(math.not_equal(rest, 0), math.not_equal(math.less(y, 0), math.less(rest, 0)))
    quotient = array.where_v2(below, quotient - 1, quotient)
    whole = math.floor(quotient)
    whole = array.where_v2(math.greater(quotient - whole, 0.5), whole + 1, whole)
    ratio = x / y
    whole = array.where_v2(math.equal(quotient, 0), ratio * 0, whole)
    return array.where_v2(math.equal(y, 0), ratio, whole)


def _as_bool(rule: UfuncRule) -> UfuncRule:
    return lambda *tensors: rule(*[math.cast(tensor, np.bool_) for tensor in tensors])


UFUNCS: Mapping[np.ufunc, UfuncRule] = {
    np.add: lambda x, y: x + y,
    np.subtract: lambda x, y: x - y,
    np.multiply: lambda x, y: x * y,
    np.true_divide: math.truediv,
    np.floor_divide: _floor_divide,
    np.remainder: _remainder,
    np.fmod: math.truncatemod,
    np.power: lambda x, y: x**y,
    np.negative: math.negative,
    np.positive: array.identity,
    np.absolute: math.abs,
    np.fabs: math.abs,
    np.sign: _sign,
    np.exp: math.exp,
    np.expm1: math.expm1,
    np.log: math.log,
    np.log1p: math.log1p,
    np.sqrt: math.sqrt,
    np.square: math.square,
    np.reciprocal: math.reciprocal,
    np.sin: math.sin,
    np.cos: math.cos,
    np.tan: math.tan,
    np.arcsin: math.asin,
    np.arccos: math.acos,
    np.arctan: math.atan,
    np.arctan2: math.atan2,
    np.sinh: math.sinh,
    np.cosh: math.cosh,
    np.tanh: math.tanh,
    np.floor: math.floor,
    np.ceil: math.ceil,
    np.rint: math.rint,
    np.maximum: math.maximum,
    np.minimum: math.minimum,
    np.equal: math.equal,
    np.not_equal: math.not_equal,
    np.less: math.less,
    np.less_equal: math.less_equal,
    np.greater: math.greater,
    np.greater_equal: math.greater_equal,
    np.logical_and: _as_bool(math.logical_and),
    np.logical_or: _as_bool(math.logical_or),
    np.logical_xor: _as_bool(math.logical_xor),
    np.logical_not: _as_bool(math.logical_not),
    np.bitwise_and: lambda x, y: x & y,
    np.bitwise_or: lambda x, y: x | y,
    np.bitwise_xor: lambda x, y: x ^ y,
    np.invert: lambda x: ~x,
    np.isnan: math.is_nan,
    np.isinf: math.is_inf,
    np.isfinite: math.is_finite,
    np.conjugate: math.conj,
    np.matmul: matrix_product,
}
"""What each ufunc records, given operands of the element types of NumPy's loop."""

BOOLEAN_UFUNCS: Mapping[np.ufunc, UfuncRule] = {
    np.add: math.logical_or,
    np.multiply: math.logical_and,
    np.maximum: math.logical_or,
    np.minimum: math.logical_and,
    np.absolute: array.identity,
}
"""Ufuncs that mean something else on truth values."""
