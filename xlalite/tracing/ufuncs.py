"""What each NumPy ufunc records: operands are brought to the element types of NumPy's loop, then a rule is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from xlalite.framework.graph.dtypes import as_dtype
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.errors import TracingError
from xlalite.ops.functions import array, math, special
from xlalite.ops.helpers.promotion import cast_to
from xlalite.tracing import ufunc_rules as rules
from xlalite.tracing.promotion import converted, matrix_product, promoted, type_for_numpy
from xlalite.tracing.scipy_ufuncs import special_ufunc
from xlalite.tracing.traced_array import TracedArray

UfuncRule = Callable[..., Any]

_COMPARISONS = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)


def apply_ufunc(ufunc: np.ufunc, inputs: Sequence[Any], dtype: Any = None) -> Any:
    """Records the call of a ufunc: a traced array, or a tuple where it has several results.

    Args:
        ufunc: NumPy's function.
        inputs: Traced arrays, arrays and numbers.
        dtype: The element type of the results, if it is not what NumPy takes for the operands.

    Raises:
        TracingError: There is no rule for it.
        TypeError: NumPy has no loop for these types.
    """
    found = [type_for_numpy(value) for value in inputs]
    is_weak = all(isinstance(each, type) for each in found)
    # NumPy's resolver knows no Python bool; nothing gives way to a truth value, so its type says the same.
    wanted = [np.dtype(each) if is_weak or each is bool else each for each in found]
    rule = UFUNCS.get(ufunc) or special_ufunc(ufunc)
    if rule is None:
        raise TracingError(f"{ufunc!r} cannot be recorded by xlalite.jit")
    if ufunc.signature is not None:
        return TracedArray(rule(*promoted(*inputs)))
    if ufunc in _COMPARISONS:
        wanted = [_type_that_holds(value, each, wanted) for value, each in zip(inputs, wanted, strict=True)]
    _check_exponent(ufunc, inputs, wanted)
    kinds = (*wanted, *[None] * ufunc.nout)
    asked: dict[str, Any] = (
        {} if dtype is None else {"signature": (*[None] * ufunc.nin, *[np.dtype(dtype)] * ufunc.nout)}
    )
    dtypes = ufunc.resolve_dtypes(kinds, casting="same_kind", **asked)
    if ufunc not in UFUNCS and dtypes[0].kind == "c":
        raise TracingError(f"{ufunc!r} of complex numbers cannot be recorded by xlalite.jit")
    if dtypes[0].kind == "b":
        rule = BOOLEAN_UFUNCS.get(ufunc, rule)
    tensors = [converted(v, as_dtype(each)) for v, each in zip(inputs, dtypes, strict=False)]
    exponent = inputs[1] if ufunc is np.power and type(inputs[1]) in (int, float) else None
    found = rule(*tensors) if exponent is None else rules.power(tensors[0], tensors[1], exponent)
    results = [
        TracedArray(cast_to(each, as_dtype(type_)), is_weak)
        for each, type_ in zip(found if isinstance(found, tuple) else (found,), dtypes[ufunc.nin :], strict=True)
    ]
    return results[0] if ufunc.nout == 1 else tuple(results)


def _type_that_holds(value: Any, found: Any, others: Sequence[Any]) -> Any:
    """For comparisons, which take any Python integer: its own type, or that of the others where they hold it."""
    if found is not int or type(value) is not int:
        return found
    integers = [np.iinfo(each) for each in others if isinstance(each, np.dtype) and each.kind in "iu"]
    if all(info.min <= value <= info.max for info in integers):
        return found
    return np.dtype(np.int64) if -(2**63) <= value < 2**63 else np.dtype(np.float64)


def _check_exponent(ufunc: np.ufunc, inputs: Sequence[Any], types: Sequence[Any]) -> None:
    is_whole = all(np.dtype(each).kind in "iub" for each in types)
    if ufunc is np.power and is_whole and type(inputs[1]) is int and inputs[1] < 0:
        raise ValueError("Integers to negative integer powers are not allowed.")


def _as_bool(rule: Callable[..., Tensor]) -> UfuncRule:
    return lambda *tensors: rule(*[math.cast(tensor, np.bool_) for tensor in tensors])


def _conjugate(x: Tensor) -> Tensor:
    return math.conj(x) if x.dtype.is_complex else x


UFUNCS: Mapping[np.ufunc, UfuncRule] = {
    np.add: lambda x, y: x + y,
    np.subtract: lambda x, y: x - y,
    np.multiply: lambda x, y: x * y,
    np.true_divide: math.truediv,
    np.floor_divide: rules.floor_divide,
    np.remainder: rules.remainder,
    np.fmod: rules.fmod,
    np.divmod: lambda x, y: (rules.floor_divide(x, y), rules.remainder(x, y)),
    np.power: lambda x, y: x**y,
    np.float_power: lambda x, y: x**y,
    np.negative: math.negative,
    np.positive: array.identity,
    np.absolute: rules.absolute,
    np.fabs: math.abs,
    np.sign: rules.sign,
    np.signbit: rules.signbit,
    np.copysign: rules.copysign,
    np.nextafter: rules.nextafter,
    np.spacing: rules.spacing,
    np.heaviside: rules.heaviside,
    np.exp: math.exp,
    np.exp2: rules.exp2,
    np.expm1: math.expm1,
    np.log: math.log,
    np.log2: rules.log2,
    np.log10: rules.log10,
    np.log1p: math.log1p,
    np.logaddexp: rules.logaddexp,
    np.logaddexp2: rules.logaddexp2,
    np.sqrt: math.sqrt,
    np.cbrt: rules.cbrt,
    np.hypot: rules.hypot,
    np.square: math.square,
    np.reciprocal: rules.reciprocal,
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
    np.arcsinh: special.asinh,
    np.arccosh: special.acosh,
    np.arctanh: special.atanh,
    np.deg2rad: rules.scaled(np.pi / 180),
    np.radians: rules.scaled(np.pi / 180),
    np.rad2deg: rules.scaled(180 / np.pi),
    np.degrees: rules.scaled(180 / np.pi),
    np.floor: rules.for_fractions(math.floor),
    np.ceil: rules.for_fractions(math.ceil),
    np.trunc: rules.for_fractions(rules.trunc),
    np.rint: rules.rint,
    np.modf: rules.modf,
    np.frexp: rules.frexp,
    np.ldexp: rules.ldexp,
    np.maximum: rules.maximum,
    np.minimum: rules.minimum,
    np.fmax: rules.ignoring_nan(rules.maximum),
    np.fmin: rules.ignoring_nan(rules.minimum),
    np.equal: math.equal,
    np.not_equal: math.not_equal,
    np.less: rules.ordered(math.less),
    np.less_equal: rules.ordered(math.less_equal),
    np.greater: rules.ordered(math.greater),
    np.greater_equal: rules.ordered(math.greater_equal),
    np.logical_and: _as_bool(math.logical_and),
    np.logical_or: _as_bool(math.logical_or),
    np.logical_xor: _as_bool(math.logical_xor),
    np.logical_not: _as_bool(math.logical_not),
    np.bitwise_and: lambda x, y: x & y,
    np.bitwise_or: lambda x, y: x | y,
    np.bitwise_xor: lambda x, y: x ^ y,
    np.bitwise_count: lambda x: special.population_count(rules.absolute(x)),
    np.invert: lambda x: ~x,
    np.left_shift: rules.left_shift,
    np.right_shift: rules.right_shift,
    np.gcd: rules.gcd,
    np.lcm: rules.lcm,
    np.isnan: rules.of_parts(math.is_nan, math.logical_or),
    np.isinf: rules.of_parts(math.is_inf, math.logical_or),
    np.isfinite: rules.of_parts(math.is_finite, math.logical_and),
    np.conjugate: _conjugate,
    np.matmul: matrix_product,
    np.vecdot: rules.vecdot,
    np.matvec: lambda x, y: matrix_product(x, y[..., None])[..., 0],
    np.vecmat: lambda x, y: matrix_product(_conjugate(x)[..., None, :], y)[..., 0, :],
}
"""What each ufunc records, given operands of the element types of NumPy's loop."""

BOOLEAN_UFUNCS: Mapping[np.ufunc, UfuncRule] = {
    np.add: math.logical_or,
    np.multiply: math.logical_and,
    np.maximum: math.logical_or,
    np.minimum: math.logical_and,
    np.absolute: array.identity,
    np.fmax: math.logical_or,
    np.fmin: math.logical_and,
    np.less: lambda x, y: math.logical_and(math.logical_not(x), y),
    np.less_equal: lambda x, y: math.logical_or(math.logical_not(x), y),
    np.greater: lambda x, y: math.logical_and(x, math.logical_not(y)),
    np.greater_equal: lambda x, y: math.logical_or(x, math.logical_not(y)),
    np.bitwise_and: math.logical_and,
    np.bitwise_or: math.logical_or,
    np.bitwise_xor: math.logical_xor,
    np.invert: math.logical_not,
    np.isnan: lambda x: array.zeros_like(x),
    np.isinf: lambda x: array.zeros_like(x),
    np.isfinite: lambda x: array.ones_like(x),
    np.floor: array.identity,
    np.ceil: array.identity,
    np.trunc: array.identity,
}
"""Ufuncs that mean something else on truth values."""
