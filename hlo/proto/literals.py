"""Literals as messages. The elements stand in the order of the shape's layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from xlalite.hlo.errors import XlaliteError
from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.proto.shapes import read_shape, write_shape
from xlalite.hlo.types.dtype import DType, Kind
from xlalite.hlo.types.literal import Literal, Token
from xlalite.hlo.types.shape import Shape

# These lie in numeric fields; all other types lie as bytes, least significant first, one byte for what is smaller.
_NUMERIC = {
    DType.S32: "i4",
    DType.S64: "i8",
    DType.U32: "u4",
    DType.U64: "u8",
    DType.PRED: "?",
    DType.F32: "<f4",
    DType.F64: "<f8",
    DType.C64: "<f4",
    DType.C128: "<f8",
}


def read_literal(message: ProtoMessage) -> Literal:
    """The literal that a `LiteralProto` says.

    Raises:
        ParseError: It says none, or has more or fewer elements than its shape.
    """
    return _read(message, read_shape(message.message("shape")))


def write_literal(literal: Literal, message: ProtoMessage) -> None:
    """Fills a `LiteralProto`."""
    write_shape(literal.shape, message.open("shape"))
    _write(literal, message)


def _read(message: ProtoMessage, shape: Shape) -> Literal:
    if shape.is_tuple:
        parts = message.messages("tuple_literals")
        if len(parts) != len(shape.elements):
            raise message.error(f"found {len(parts)} elements, expected {len(shape.elements)} of {shape.text()}")
        return Literal(tuple(_read(part, one) for part, one in zip(parts, shape.elements, strict=True)), shape)
    if shape.is_token:
        return Literal(Token())
    if not shape.is_array:
        raise message.error(f"{shape.text()} has no literals")
    flat = _elements(message, shape)
    expected = shape.element_count
    if flat.size != expected:
        raise message.error(f"found {flat.size} elements, expected {expected} of {shape.text()}")
    order = tuple(reversed(shape.minor_to_major))
    array = flat.reshape([shape.dims[dim] for dim in order]).transpose(np.argsort(order)) if order else flat.reshape(())
    try:
        return Literal(np.ascontiguousarray(array).reshape(shape.dims), shape)
    except XlaliteError as error:
        raise message.error(str(error)) from error


def _elements(message: ProtoMessage, shape: Shape) -> npt.NDArray[Any]:
    dtype, name = shape.dtype, _field(shape.dtype)
    if dtype in _NUMERIC:
        numbers = message.array(name).astype(_NUMERIC[dtype], copy=False)
        if dtype.is_complex:
            if numbers.size % 2:
                raise message.error(f"{name}: found {numbers.size} numbers, expected pairs")
            return np.ascontiguousarray(numbers).view(dtype.numpy)
        return numbers
    data = message.data(name)
    if len(data) % dtype.size_bytes:
        raise message.error(f"{name}: {len(data)} bytes are no whole number of {dtype.value} elements")
    raw = np.frombuffer(data, np.uint8)
    if dtype.bits < 8 and dtype.is_integral:
        return _extended(raw, dtype).view(dtype.numpy)
    if dtype.bits < 8:
        raw = raw & np.uint8((1 << dtype.bits) - 1)
    return raw.view(dtype.numpy)


def _extended(raw: npt.NDArray[np.uint8], dtype: DType) -> npt.NDArray[np.uint8]:
    """The low bits of each byte, with the sign of a signed type in the high ones, as NumPy holds them."""
    low = raw & np.uint8((1 << dtype.bits) - 1)
    if dtype.kind is Kind.UNSIGNED:
        return low
    sign = np.uint8(1 << (dtype.bits - 1))
    return (low ^ sign) - sign


def _write(literal: Literal, message: ProtoMessage) -> None:
    shape = literal.shape
    if shape.is_tuple:
        for element in literal.elements:
            write_literal(element, message.append("tuple_literals"))
        return
    if not shape.is_array:
        return
    dtype, name = shape.dtype, _field(shape.dtype)
    order = tuple(reversed(shape.minor_to_major))
    flat = np.ascontiguousarray(literal.value.transpose(order)).reshape(-1)
    if dtype in _NUMERIC:
        message.put_array(name, flat.view(_NUMERIC[dtype]))
        return
    raw = flat.view(np.uint8)
    message.put(name, (raw & np.uint8((1 << dtype.bits) - 1) if dtype.bits < 8 else raw).tobytes())


def _field(dtype: DType) -> str:
    return f"{dtype.value}s"
