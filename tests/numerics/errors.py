"""Errors in units in the last place: by compiled code, in extended precision, and exactly.

A unit is the distance of neighbouring numbers at the true value, for complex numbers at its larger part. Infinity
counts as the next power of two; a NaN that is only found or only true, and a zero of the wrong sign, are infinitely
wrong. Complex numbers beyond the range are not judged: a part may be lost beside another that is larger still.
"""

from __future__ import annotations

from functools import cache

import ml_dtypes
import mpmath
import numpy as np

from numerics.functions import MP, Function, functions_of
from xlalite.backends.base import CompileOptions, Executable, get_backend
from xlalite.hlo.building.builder import Builder
from xlalite.hlo.text import parse
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape

WIDE = {DType.F16: DType.F64, DType.BF16: DType.F64, DType.F32: DType.F64, DType.C64: DType.C128}


def compiled(name: str, dtype: DType, count: int) -> Executable:
    """The function of arrays of the type, as everybody gets it."""
    function, t = functions_of(dtype.value)[name], f"{dtype.value}[{count}]"
    if function.dialect == "chlo":
        tensor = f"tensor<{count}x{dtype.value}>"
        names = ", ".join(f"%x{n}" for n in range(function.arity))
        parameters = ", ".join(f"%x{n}: {tensor}" for n in range(function.arity))
        types = ", ".join([tensor] * function.arity)
        text = f"""func.func public @main({parameters}) -> {tensor} {{
            %r = chlo.{name} {names} : {types} -> {tensor}
            return %r : {tensor} }}"""
    else:
        result = f"{dtype.component.value}[{count}]" if name == "abs" else t
        lines = "\n".join(f"x{n} = {t} parameter({n})" for n in range(function.arity))
        names = ", ".join(f"x{n}" for n in range(function.arity))
        text = f"HloModule m\nENTRY e {{ {lines}\nROOT r = {result} {name}({names}) }}"
    return get_backend("cpu").compile(parse(text), CompileOptions(num_threads=1, use_cache=False))


@cache
def comparison(found: DType, true: DType, count: int) -> Executable:
    """A program that gives the errors of found numbers beside those of a wider type, and the largest of them."""
    builder = Builder("errors")
    dims = (count,)
    sides = [builder.parameter(Shape.array(dtype, dims)) for dtype in (found, true)]
    parts = [sides]
    if found.is_complex:
        parts = [[builder.op(part, (side,)) for side in sides] for part in ("real", "imag")]
    limits = ml_dtypes.finfo(found.component.numpy)
    bound, zero, infinity = (builder.full(x, DType.F64, dims) for x in (2.0 ** int(limits.maxexp), 0.0, np.inf))
    distance, size = zero, zero
    for number, truth in parts:
        number = builder.convert(number, DType.F64)
        limited = [builder.op("clamp", (-bound, x, bound)) for x in (number, truth)]
        error = builder.op("abs", (limited[0] - limited[1],))
        nans = tuple(builder.compare(x, x, "NE") for x in (number, truth))
        error = builder.select(builder.op("or", nans), infinity, error)
        error = builder.select(builder.op("and", nans), zero, error)
        if not found.is_complex:
            whole = Shape.array(DType.S64, dims)
            patterns = [builder.op("bitcast-convert", (x,), shape=whole) for x in (number, truth)]
            opposite = builder.compare(patterns[0] ^ patterns[1], 0, "LT")
            zeros = builder.op("and", tuple(builder.compare(x, 0.0, "EQ") for x in (number, truth)))
            error = builder.select(builder.op("and", (opposite, zeros)), infinity, error)
        distance = builder.op("maximum", (distance, error))
        size = builder.op("maximum", (size, builder.op("abs", (limited[1],))))
    pattern = builder.op("bitcast-convert", (size,), shape=Shape.array(DType.S64, dims))
    power = builder.op("bitcast-convert", (pattern & (0x7FF << 52),), shape=Shape.array(DType.F64, dims))
    least, most = (builder.full(2.0 ** int(x), DType.F64, dims) for x in (limits.minexp, limits.maxexp - 1))
    errors = distance / builder.op("clamp", (least, power, most)) * 2.0 ** int(limits.nmant)
    if found.is_complex:
        errors = builder.select(builder.compare(size, bound, "LT"), errors, zero)
    largest = builder.reduce(errors, 0.0, (0,), "maximum")
    module = builder.build_module(builder.tuple((errors, largest)))
    return get_backend("cpu").compile(module, CompileOptions(num_threads=1, use_cache=False))


def extended_errors(found: np.ndarray, truth: np.ndarray, dtype: DType) -> np.ndarray:
    """The errors of numbers of the type beside long doubles or their complex kin."""
    if dtype.component is not DType.F64:
        return _errors_beside(found, truth, dtype)
    # What f64 can say is much faster so, and it cannot where something is not finite, or a zero, whose sign counts.
    distance = size = np.zeros(found.shape)
    for number, true in ((found.real, truth.real), (found.imag, truth.imag)) if dtype.is_complex else ((found, truth),):
        rounded = true.astype(np.float64)
        distance = np.maximum(distance, np.abs((number - rounded) - (true - rounded).astype(np.float64)))
        size = np.maximum(size, np.abs(rounded))
    errors = distance / np.spacing(size)
    rest = ~np.isfinite(errors) | (found == 0)
    errors[rest] = _errors_beside(found[rest], truth[rest], dtype)
    return errors


def _errors_beside(found: np.ndarray, truth: np.ndarray, dtype: DType) -> np.ndarray:
    limits = ml_dtypes.finfo(dtype.component.numpy)
    bound = np.ldexp(np.longdouble(1), int(limits.maxexp))
    distance = size = np.zeros(found.shape, np.longdouble)
    for number, true in ((found.real, truth.real), (found.imag, truth.imag)) if dtype.is_complex else ((found, truth),):
        number = number.astype(np.float64).astype(np.longdouble)
        limited = [np.clip(x, -bound, bound) for x in (number, true)]
        error = np.abs(limited[0] - limited[1])
        known = [~np.isnan(x) for x in (number, true)]
        error = np.where(known[0] & known[1], error, np.where(known[0] | known[1], np.inf, 0))
        if not dtype.is_complex:
            error[(number == 0) & (true == 0) & (np.signbit(number) != np.signbit(true))] = np.inf
        distance, size = np.maximum(distance, error), np.fmax(size, np.abs(limited[1]))
    exponent = np.clip(np.frexp(size)[1] - 1, int(limits.minexp), int(limits.maxexp) - 1)
    errors = np.ldexp(distance, int(limits.nmant) - exponent)
    return np.where(size < bound, errors, 0) if dtype.is_complex else errors


def exact_truth(function: Function, operands: tuple[np.ndarray, ...], dtype: DType) -> np.ndarray:
    """The values by mpmath as long doubles; NaN where there are none."""
    result = np.full(operands[0].shape, np.nan, np.clongdouble if dtype.is_complex else np.longdouble)
    with MP.workprec(function.bits):
        for i, numbers in enumerate(zip(*operands, strict=True)):
            if not np.isfinite(numbers).all():
                continue
            try:
                value = function.exact(*[_exact(x) for x in numbers])
            except (ValueError, ZeroDivisionError):  # mpmath's way to say that there is a pole
                continue
            if value is not None:
                result.real[i] = _extended(MP.re(value))
            if dtype.is_complex:
                result.imag[i] = _extended(MP.im(value))
    return result


def _exact(x: np.generic) -> mpmath.mpf | mpmath.mpc:
    return MP.mpc(float(x.real), float(x.imag)) if x.dtype.kind == "c" else MP.mpf(float(x))


def _extended(value: mpmath.mpf) -> np.longdouble:
    """A long double within 2**-64 of the value."""
    if MP.isinf(value):
        return np.longdouble(float(value))
    mantissa, exponent = MP.frexp(value)
    high = float(mantissa)
    return np.ldexp(
        np.longdouble(high) + np.longdouble(float(mantissa - high)), int(max(min(exponent, 2**15), -(2**15)))
    )
