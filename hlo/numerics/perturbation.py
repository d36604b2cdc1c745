"""Errors such as rounding makes, added to numbers in f64 that stand for numbers of a narrower type."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np

from xlalite.hlo.numerics.conversion import convert
from xlalite.hlo.numerics.rounding import AnyArray
from xlalite.hlo.types.dtype import DType

_SHORT_BITS = {False: 12, True: 26}
"""Numbers of at most half the digits of f32 (or f64) add up exactly, as a rule."""


def ulp(values: AnyArray, dtype: DType) -> AnyArray:
    """A unit in the last place of a type at each value, parts of complex numbers at their magnitude; 0 for integers."""
    if not (dtype.is_floating or dtype.is_complex):
        return np.zeros(values.shape)
    limits = ml_dtypes.finfo(dtype.component.numpy)  # type: ignore[no-untyped-call]
    _, exponents = np.frexp(np.abs(values))
    # Of 0, infinity and NaN the exponent is 0.
    exponents = np.where(values == 0, int(limits.minexp), exponents - 1)
    return np.asarray(np.ldexp(1.0, np.maximum(exponents, int(limits.minexp)) - int(limits.nmant)))


def limit_range(values: AnyArray, dtype: DType) -> AnyArray:
    """The values, but for those beyond the type's range of normal numbers: they are what the type has for them."""
    if values.dtype.kind == "c":
        result = np.empty_like(values)
        result.real, result.imag = (limit_range(part, dtype.component) for part in (values.real, values.imag))
        return result
    if dtype is DType.F64:
        return values
    limits = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
    size = np.abs(values)
    outside = (size > float(limits.max)) | (size < float(limits.smallest_normal))
    rounded = _in_type(values, dtype)
    return np.where(outside | ~np.isfinite(rounded) | np.isnan(values), rounded, values)


class Perturbation:
    """Random errors of so many units in the last place."""

    def __init__(self, generator: np.random.Generator, amplitude: float) -> None:
        """Errors are at most `amplitude` units."""
        self._generator = generator
        self._amplitude = amplitude

    def of_result(self, values: AnyArray, dtype: DType, operands: Sequence[AnyArray] = ()) -> AnyArray:
        """The values with errors where the type does not hold them and they are no element of an operand.

        The sign of NaN, which no operation promises, is random.
        """
        if values.dtype.kind == "c":
            return self._of_parts(values, dtype)
        exact = _is_exact(values, dtype)
        for operand in operands:
            exact = exact | (np.abs(operand) == np.abs(values))
        return self._signed_nans(np.where(exact, values, self._moved(values, ulp(values, dtype))))

    def of_terms(self, values: AnyArray, dtype: DType) -> AnyArray:
        """The terms of a sum with errors of the type that it is kept in; short ones add up exactly and have none."""
        is_double = dtype.component is DType.F64
        sum_type = DType.F64 if is_double else DType.F32
        if values.dtype.kind == "c":
            spacing = ulp(values, sum_type)
            result = np.empty_like(values)
            result.real = self._terms(values.real, spacing, is_double)
            result.imag = self._terms(values.imag, spacing, is_double)
            return result
        return self._terms(values, ulp(values, sum_type), is_double)

    def _terms(self, values: AnyArray, spacing: AnyArray, is_double: bool) -> AnyArray:
        scaled = np.ldexp(np.frexp(values)[0], _SHORT_BITS[is_double])
        is_short = (scaled == np.rint(scaled)) | ~np.isfinite(values)
        return np.where(is_short, values, self._moved(values, spacing))

    def _of_parts(self, values: AnyArray, dtype: DType) -> AnyArray:
        spacing = ulp(values, dtype)
        result = np.empty_like(values)
        for name in ("real", "imag"):
            part = getattr(values, name)
            moved = np.where(_is_exact(part, dtype.component), part, self._moved(part, spacing))
            setattr(result, name, self._signed_nans(moved))
        return result

    def _moved(self, values: AnyArray, spacing: AnyArray) -> AnyArray:
        errors = self._generator.uniform(-self._amplitude, self._amplitude, values.shape)
        moved = values + errors * spacing
        # Rounding changes no sign; it can make a zero.
        return np.where(np.signbit(moved) == np.signbit(values), moved, np.copysign(0.0, values))

    def _signed_nans(self, values: AnyArray) -> AnyArray:
        # A machine gives all that one instruction makes the same sign: that is tried as often as one sign for each.
        one_for_all = self._generator.random() < 0.5
        signs = self._generator.choice([-1.0, 1.0], () if one_for_all else values.shape)
        return np.where(np.isnan(values), np.copysign(values, signs), values)


def _is_exact(values: AnyArray, dtype: DType) -> AnyArray:
    """Whether the type holds the values; of f64, which holds all, whether f32 does, which the inexact hardly are."""
    narrow = DType.F32 if dtype is DType.F64 else dtype
    rounded = _in_type(values, narrow)
    return np.asarray((rounded == values) | ~np.isfinite(values))


def _in_type(values: AnyArray, dtype: DType) -> AnyArray:
    return convert(convert(values, dtype), DType.F64)
