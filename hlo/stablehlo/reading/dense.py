"""The values of `dense<...>`: numbers in nested lists, one number for all elements, or bytes in hexadecimal digits."""

from __future__ import annotations

import math
import re

import numpy as np

from xlalite.hlo.errors import LiteralError
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.limits import ParseLimits
from xlalite.hlo.types.literal import Array
from xlalite.hlo.types.shape import Shape

_NUMBER = re.compile(r"[^\s\[\],()]+")
_PAIR = re.compile(r"\(([^(),]*),([^(),]*)\)")
_INTEGER = re.compile(r"-?(?:0x[0-9a-fA-F]{1,30}|\d{1,30})", re.ASCII)
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False, "-1": True, "0x1": True, "0x0": False}


def float_from_bits(bits: int, dtype: DType) -> float:
    """The number that a bit pattern stands for.

    Raises:
        ValueError: The pattern has more bits than the type.
    """
    return float(_from_bits(bits, dtype))


def dense_values(payload: str | bytes, shape: Shape, limits: ParseLimits) -> Array:
    """The values; a scalar array when one number stands for all elements.

    Args:
        payload: What stands between `dense<` and `>`, or the bytes of the elements.
        shape: The type behind it.
        limits: How many elements may be written.

    Raises:
        ValueError: The text does not spell values of the shape.
    """
    if not shape.is_array:
        raise ValueError(f"{shape.text()} has no constants")
    if isinstance(payload, bytes):
        return _from_bytes(payload, shape)
    text = payload.strip()
    if text.startswith('"'):
        return _from_bytes(_hexadecimal(text), shape)
    if not shape.element_count:
        # One number for all elements may stand for none, too.
        if text[:1] not in ("", "["):
            _numbers(text, shape.dtype).reshape(())
        elif text.strip("[], \n"):
            raise ValueError(f"values for {shape.text()}, which has none")
        return np.zeros(shape.dims, shape.dtype.numpy)
    if not text.startswith("["):
        return _numbers(text, shape.dtype).reshape(())
    _check_brackets(text, shape, limits)
    return _numbers(text, shape.dtype).reshape(shape.dims)


def _check_brackets(text: str, shape: Shape, limits: ParseLimits) -> None:
    """Requires lists nested as the shape is."""
    if shape.element_count > min(limits.literal_elements, len(text)):
        raise ValueError(f"too few values for {shape.text()}")
    found = re.sub(r"[^\[\],]+", "", _PAIR.sub("", text) if shape.dtype.is_complex else text)
    expected = ""
    for size in reversed(shape.dims):
        expected = "[" + ",".join([expected] * size) + "]"
    if found != expected:
        raise ValueError(f"the lists do not have the sizes of {shape.text()}")


def _numbers(text: str, dtype: DType) -> Array:
    if dtype.is_complex:
        pairs = _PAIR.findall(text)
        parts = _numbers(",".join(f"{real},{imaginary}" for real, imaginary in pairs), dtype.component)
        if parts.size != 2 * len(pairs) or not pairs:
            raise ValueError("a complex number is written as (real,imaginary)")
        return np.ascontiguousarray(parts).view(dtype.numpy)
    words = _NUMBER.findall(text)
    if not words:
        raise ValueError("there is no number")
    if dtype is DType.PRED:
        unknown = next((word for word in words if word not in _BOOLEANS), None)
        if unknown is not None:
            raise ValueError(f"found {unknown[:20]!r}, expected true or false")
        return np.array([_BOOLEANS[word] for word in words], np.bool_)
    if dtype.is_floating:
        return _floats(words, dtype)
    return _integers(words, dtype)


def _floats(words: list[str], dtype: DType) -> Array:
    patterns = {place: word for place, word in enumerate(words) if word.startswith("0x")}
    numbers = [0.0 if place in patterns else float(word) for place, word in enumerate(words)]
    with np.errstate(all="ignore"):
        values = np.array(numbers, np.float64).astype(dtype.numpy)
    for place, word in patterns.items():
        values[place] = _from_bits(int(word, 16), dtype)
    return values


def _integers(words: list[str], dtype: DType) -> Array:
    unknown = next((word for word in words if not _INTEGER.fullmatch(word)), None)
    if unknown is not None:
        raise ValueError(f"found {unknown[:20]!r}, expected an integer of at most 30 digits")
    numbers = [int(word, 16 if "x" in word else 10) for word in words]
    low = -(1 << (dtype.bits - 1)) if dtype.is_signed else 0
    high = (1 << dtype.bits) - 1
    for number in (min(numbers), max(numbers)):
        if not low <= number <= high:
            raise ValueError(f"{number} is out of range for {dtype.value}")
    if dtype.is_signed:  # a signless integer may be written as the unsigned one with the same bits
        numbers = [number - (1 << dtype.bits) if number > high >> 1 else number for number in numbers]
    return np.array(numbers, np.int64 if dtype.is_signed else np.uint64).astype(dtype.numpy)


def _from_bits(bits: int, dtype: DType) -> np.generic:
    if bits >> dtype.bits:
        raise ValueError(f"{bits:#x} has more bits than {dtype.value}")
    value: np.generic = np.frombuffer(bits.to_bytes(dtype.size_bytes, "little"), dtype.numpy)[0]
    return value


def _hexadecimal(text: str) -> bytes:
    digits = text.strip('"')
    if not digits.startswith("0x"):
        raise LiteralError("bytes must be written as 0x and hexadecimal digits")
    return bytes.fromhex(digits[2:])


def _from_bytes(data: bytes, shape: Shape) -> Array:
    count, dtype = shape.element_count, shape.dtype
    if dtype is DType.PRED:
        return _from_boolean_bytes(data, shape)
    if len(data) == dtype.size_bytes:  # one number for all elements may stand for none, too
        value: Array = np.frombuffer(data, dtype.numpy).reshape(()).copy()
        return value if count else np.zeros(shape.dims, dtype.numpy)
    if len(data) != count * dtype.size_bytes:
        raise ValueError(f"found {len(data)} bytes, {shape.text()} needs {count * dtype.size_bytes}")
    values = np.frombuffer(data, np.uint8).copy()
    if dtype.bits < 8:  # one byte an element; only the low bits count
        wide = values & ((1 << dtype.bits) - 1)
        if dtype.is_integral:
            signed = wide.astype(np.int16) - np.where(wide >> (dtype.bits - 1), 1 << dtype.bits, 0)
            narrow: Array = (signed if dtype.is_signed else wide).astype(dtype.numpy)
            return narrow.reshape(shape.dims)
        values = wide.astype(np.uint8, copy=False)
    whole: Array = values.view(dtype.numpy)
    return whole.reshape(shape.dims)


def _from_boolean_bytes(data: bytes, shape: Shape) -> Array:
    """One byte or one bit an element, or one byte for all of them."""
    count = shape.element_count
    values: Array = np.frombuffer(data, np.uint8) != 0
    if len(data) == count:
        return values.reshape(shape.dims)
    if len(data) == math.ceil(count / 8):
        values = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")[:count].astype(np.bool_)
        return values.reshape(shape.dims)
    if len(data) == 1:
        return values.reshape(())
    raise ValueError(f"found {len(data)} bytes for {shape.text()}")
