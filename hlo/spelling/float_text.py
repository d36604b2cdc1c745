"""Floating-point numbers as text and back, for every floating-point type, NaN payloads included.

f32 and f64 are written with the digits that always suffice for a decimal to survive, or, when these do not bring back
the same value, with the digits that always do; narrower types with the latter at once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cache

import ml_dtypes
import numpy as np
import numpy.typing as npt

from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Array

_FLOAT = re.compile(r"[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|inf|nan(?:\(0[xX][0-9a-fA-F]{1,16}\))?)", re.ASCII)
_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """How a type's numbers are written.

    Attributes:
        digits: Significant digits tried in order; the last ones always bring back the value.
        mantissa_bits: Stored bits of the mantissa.
        total_bits: Bits of an element.
        has_payload: Whether NaNs differ in their mantissa.
    """

    digits: tuple[int, ...]
    mantissa_bits: int
    total_bits: int
    has_payload: bool

    @property
    def quiet(self) -> int:
        """Mantissa of the usual NaN."""
        return (1 << self.mantissa_bits) >> 1


def is_float_text(word: str) -> bool:
    """Whether a word is a number, an infinity or a NaN, perhaps with a payload."""
    return _FLOAT.fullmatch(word) is not None


def format_floats(values: Array, dtype: DType) -> list[str]:
    """The text of each element of a flat array."""
    form = _format_of(dtype)
    with np.errstate(all="ignore"):
        wide: list[float] = values.astype(np.float64).tolist()
    if len(form.digits) == 1:
        words = [f"{value:.{form.digits[0]}g}" for value in wide]
    elif dtype is DType.F32:
        # The value survives when the short text lies nearer to it than to its neighbours, which rounding tells.
        words = [f"{value:.6g}" for value in wide]
        with np.errstate(all="ignore"):
            back = np.array(list(map(float, words)), np.float64).astype(np.float32)
        for i in np.flatnonzero(back != values).tolist():
            words[i] = f"{wide[i]:.9g}"
    else:
        words = [f"{value:.15g}" for value in wide]
        for i, value in enumerate(wide):
            if float(words[i]) != value:
                words[i] = f"{value:.17g}"
    for i, value in enumerate(wide):
        if math.isnan(value):
            words[i] = _format_nan(values[i : i + 1], form)
    return words


def parse_floats(words: Sequence[str], dtype: DType) -> tuple[Array, int | None]:
    """The numbers as a flat array, and the position of the first one that is out of range, if any."""
    form = _format_of(dtype)
    payloads: dict[int, str] = {}
    for i, word in enumerate(words):
        if word.endswith(")"):
            payloads[i] = word
    wide = np.array([float(word) if i not in payloads else math.nan for i, word in enumerate(words)], np.float64)
    with np.errstate(all="ignore"):
        values = _nearest_power(wide) if dtype is DType.F8E8M0FNU else wide.astype(dtype.numpy)
        back = values.astype(np.float64)
    # Overflow, or an infinity in a type that has none; words like 1e999 overflow on the way already.
    too_large = ~np.isfinite(back) & np.isfinite(wide) | np.isinf(wide) & ~np.isinf(back)
    for i in np.flatnonzero(too_large | np.isinf(wide)).tolist():
        if too_large[i] or "inf" not in words[i]:
            return values, i
    bits = _bits(values)
    for i in np.flatnonzero(np.isnan(wide)).tolist():
        word = words[i]
        if i in payloads and form.has_payload:
            payload = int(word[word.index("(") + 1 : -1], 16)
            if not 0 < payload < 1 << form.mantissa_bits:
                return values, i
        else:
            payload = form.quiet
        if form.has_payload:
            exponent = (1 << (form.total_bits - 1)) - (1 << form.mantissa_bits)
            bits[i] = (int(word.startswith("-")) << (form.total_bits - 1)) | exponent | payload
        elif _has_signed_nan(dtype):
            unsigned = int(bits[i]) & ((1 << (form.total_bits - 1)) - 1)
            bits[i] = (int(word.startswith("-")) << (form.total_bits - 1)) | unsigned
    return values, None


def _format_nan(value: Array, form: FloatFormat) -> str:
    bits = int(_bits(value)[0])
    if not form.has_payload:
        negative = form.mantissa_bits > 0 and bits >> (form.total_bits - 1)
        return "-nan" if negative else "nan"
    sign = "-" if bits >> (form.total_bits - 1) else ""
    payload = bits & ((1 << form.mantissa_bits) - 1)
    return f"{sign}nan" if payload == form.quiet else f"{sign}nan(0x{payload:x})"


def _nearest_power(wide: npt.NDArray[np.float64]) -> Array:
    """f8e8m0fnu holds powers of two; ml_dtypes 0.5 rounds numbers near its smallest one to the next."""
    exponents = np.arange(-127, 128)
    middles = 2.0 ** exponents[:-1] * 1.5
    bits = np.searchsorted(middles, wide, side="left").astype(np.uint8)
    bits[~((wide > 0) & (wide < 2.0**128 * 0.75))] = 0xFF
    return bits.view(DType.F8E8M0FNU.numpy)


def _bits(values: Array) -> npt.NDArray[np.unsignedinteger]:
    return values.view(_UNSIGNED[values.dtype.itemsize])


def _has_signed_nan(dtype: DType) -> bool:
    return dtype is DType.F8E4M3FN


@cache
def _format_of(dtype: DType) -> FloatFormat:
    mantissa = int(ml_dtypes.finfo(dtype.numpy).nmant)  # type: ignore[no-untyped-call]
    always = math.ceil(1 + (mantissa + 1) * math.log10(2))
    digits = {DType.F32: (6, 9), DType.F64: (15, 17)}.get(dtype, (always,))
    payload = dtype in (DType.F64, DType.F32, DType.F16, DType.BF16, DType.F8E5M2, DType.F8E4M3, DType.F8E3M4)
    return FloatFormat(digits, mantissa, dtype.bits, payload)
