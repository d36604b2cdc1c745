"""Numbers made simpler: rounded, kept within limits, without NaN; their parts, angles and bits."""

from __future__ import annotations

from typing import Any

from xlalite.ops.functions import special
from xlalite.tracing.duck_numpy import np
from xlalite.tracing.functions.reductions import floating_array
from xlalite.tracing.functions.registry import records, refuse
from xlalite.tracing.promotion import flat_for_no_axis, numpy_dtype, traced, traced_array
from xlalite.tracing.ufunc_methods import finished

_NOTHING = np._NoValue  # NumPy's own default


@records(np.round, np.around)
def round_(a: Any, decimals: int = 0, out: Any = None) -> Any:
    x = traced_array(a)
    if x.dtype.kind in "iub":
        if decimals >= 0:
            return finished(x.astype(np.float16) if x.dtype == np.bool_ else x[...].copy(), out)
        step = 10**-decimals
        return finished((np.rint(x / step) * step).astype(x.dtype), out)
    if decimals == 0:
        return finished(np.rint(x), out)
    factor = np.asarray(10.0 ** abs(decimals), x.real.dtype)
    return finished(np.rint(x * factor) / factor if decimals > 0 else np.rint(x / factor) * factor, out)


@records(np.fix)
def fix(x: Any, out: Any = None) -> Any:
    return finished(np.trunc(x), out)


@records(np.clip)
def clip(
    a: Any, a_min: Any = _NOTHING, a_max: Any = _NOTHING, out: Any = None, *, min: Any = _NOTHING, max: Any = _NOTHING
) -> Any:
    lowest, highest = (
        None if value is _NOTHING else value
        for value in (a_min if min is _NOTHING else min, a_max if max is _NOTHING else max)
    )
    found = traced_array(a)
    if lowest is not None:
        found = np.maximum(found, lowest)
    if highest is not None:
        found = np.minimum(found, highest)
    return finished(found, out)


@records(np.nan_to_num)
def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    given = traced_array(x)
    found = _only_numbers(given, nan, posinf, neginf)
    if copy:
        return found
    given[...] = found
    return given


def _only_numbers(found: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    if found.dtype.kind == "c":
        real, imaginary = (_only_numbers(part, nan, posinf, neginf) for part in (found.real, found.imag))
        return real + 1j * imaginary
    if found.dtype.kind != "f":
        return found.copy()
    info = np.finfo(found.dtype)
    found = np.where(np.isnan(found), found.dtype.type(nan), found)
    found = np.where(np.isposinf(found), found.dtype.type(info.max if posinf is None else posinf), found)
    return np.where(np.isneginf(found), found.dtype.type(info.min if neginf is None else neginf), found)


@records(np.real)
def real(val: Any) -> Any:
    return traced_array(val).real


@records(np.imag)
def imag(val: Any) -> Any:
    return traced_array(val).imag


@records(np.angle)
def angle(z: Any, deg: bool = False) -> Any:
    x = traced_array(z)
    found = np.arctan2(x.imag, x.real) if x.dtype.kind == "c" else np.arctan2(np.zeros_like(x), x)
    return found * (180 / np.pi) if deg else found


refuse(
    "the element type of the result depends on values that are not known while the function is traced", np.real_if_close
)


@records(np.unwrap)
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: float = 2 * np.pi) -> Any:
    x = floating_array(p, None) if not np.issubdtype(numpy_dtype(p), np.floating) else traced_array(p)
    steps = np.diff(x, axis=axis)
    half = period / 2
    limit = half if discont is None else max(discont, half)
    near = np.mod(steps + half, period) - half
    near = np.where((near == -half) & (steps > 0), half, near)
    change = np.where(np.abs(steps) < limit, 0, near - steps)
    moved = np.cumsum(change, axis=axis)
    first = [slice(None)] * x.ndim
    first[axis] = slice(0, 1)
    padding = np.zeros_like(x[tuple(first)])
    return x + np.concatenate([padding, moved], axis=axis)


@records(np.sinc)
def sinc(x: Any) -> Any:
    y = np.pi * np.where(np.equal(x, 0), 1.0e-20, floating_array(x, None))
    return np.sin(y) / y


@records(np.i0)
def i0(x: Any) -> Any:
    return traced(special.bessel_i0(floating_array(x, None).tensor))


@records(np.packbits)
def packbits(a: Any, /, axis: int | None = None, bitorder: str = "big") -> Any:
    x, along = flat_for_no_axis(a, axis)
    if numpy_dtype(x).kind not in "biu":
        raise TypeError("Expected an input array of integer or boolean data type")
    bits = np.moveaxis(traced_array(np.not_equal(x, 0)), along, -1)
    rest = -bits.shape[-1] % 8
    bits = np.pad(bits, [*[(0, 0)] * (bits.ndim - 1), (0, rest)])
    parts = np.reshape(bits, (*bits.shape[:-1], bits.shape[-1] // 8, 8)).astype(np.uint8)
    return np.moveaxis(np.sum(parts << _shifts(bitorder), axis=-1, dtype=np.uint8), -1, along)


@records(np.unpackbits)
def unpackbits(a: Any, /, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Any:
    x, along = flat_for_no_axis(a, axis)
    if numpy_dtype(x) != np.uint8:
        raise TypeError("Expected an input array of unsigned byte data type")
    bits = (np.moveaxis(traced_array(x), along, -1)[..., None] >> _shifts(bitorder)) & np.uint8(1)
    bits = np.reshape(bits, (*bits.shape[:-2], bits.shape[-2] * 8))
    if count is not None:
        if count < -bits.shape[-1]:
            raise ValueError("-count larger than number of elements")
        more = max(count - bits.shape[-1], 0)
        bits = np.pad(bits, [*[(0, 0)] * (bits.ndim - 1), (0, more)])[..., :count]
    return np.moveaxis(bits, -1, along)


def _shifts(bitorder: str) -> Any:
    if bitorder not in ("big", "little"):
        raise ValueError("'order' must be either 'little' or 'big'")
    shifts = np.arange(8, dtype=np.uint8)
    return shifts[::-1] if bitorder == "big" else shifts
