"""Element types, shapes and arrays as TensorFlow's messages write them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from xlalite.framework.graph import dtypes
from xlalite.framework.graph.dtypes import DType
from xlalite.framework.graph.errors import InvalidArgumentError, ResourceExhaustedError, UnimplementedError
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.hlo.proto.message import ProtoMessage
from xlalite.messages import tables

assert tables is not None, "the tables are declared when they are imported"

DTYPE_NUMBERS: Final[Mapping[DType, int]] = {
    dtypes.float32: 1,
    dtypes.float64: 2,
    dtypes.int32: 3,
    dtypes.uint8: 4,
    dtypes.int16: 5,
    dtypes.int8: 6,
    dtypes.string: 7,
    dtypes.complex64: 8,
    dtypes.int64: 9,
    dtypes.bool_: 10,
    dtypes.qint8: 11,
    dtypes.quint8: 12,
    dtypes.qint32: 13,
    dtypes.bfloat16: 14,
    dtypes.qint16: 15,
    dtypes.quint16: 16,
    dtypes.uint16: 17,
    dtypes.complex128: 18,
    dtypes.float16: 19,
    dtypes.resource: 20,
    dtypes.uint32: 22,
    dtypes.uint64: 23,
}
"""The number of each element type in `DataType`; types of references have numbers 100 higher."""

_MAX_BYTES: Final = 1 << 31
_DTYPES: Final = {number: dtype for dtype, number in DTYPE_NUMBERS.items()}
_VALUES: Final[Mapping[str, str]] = {
    "float32": "float_val",
    "float64": "double_val",
    "complex64": "scomplex_val",
    "complex128": "dcomplex_val",
    "int64": "int64_val",
    "bool": "bool_val",
    "uint32": "uint32_val",
    "uint64": "uint64_val",
    "float16": "half_val",
    "bfloat16": "half_val",
}


def dtype_of_number(number: int) -> DType:
    """The element type of a number of `DataType`.

    Raises:
        UnimplementedError: there is no such type here.
    """
    found = _DTYPES.get(number % 100)
    if found is None:
        raise UnimplementedError(None, None, f"element type {number} of TensorFlow does not exist here")
    return found


def shape_message(shape: TensorShape) -> ProtoMessage:
    """A shape as a `TensorShapeProto`."""
    message = ProtoMessage("TensorShapeProto")
    if shape.dims is None:
        return message.put("unknown_rank", True)
    for size in shape.dims:
        message.append("dim").put("size", -1 if size is None else size)
    return message


def read_shape(message: ProtoMessage) -> TensorShape:
    """The shape that a `TensorShapeProto` says."""
    if message.boolean("unknown_rank"):
        return TensorShape(None)
    return TensorShape([None if dim.integer("size") < 0 else dim.integer("size") for dim in message.messages("dim")])


def tensor_message(array: npt.NDArray[Any], dtype: DType) -> ProtoMessage:
    """An array as a `TensorProto`."""
    message = ProtoMessage("TensorProto").put("dtype", DTYPE_NUMBERS[dtype])
    message.put("tensor_shape", shape_message(TensorShape(array.shape)))
    if dtype is dtypes.string:
        return message.put_all("string_val", [bytes(each) for each in array.ravel()])
    return message.put("tensor_content", np.ascontiguousarray(array, dtype.numpy_dtype).tobytes())


def read_tensor(message: ProtoMessage) -> tuple[npt.NDArray[Any], DType]:
    """The array in a `TensorProto`, and its element type.

    Raises:
        InvalidArgumentError: the values do not fill the shape.
        ResourceExhaustedError: the shape is larger than any message.
    """
    dtype = dtype_of_number(message.integer("dtype"))
    dims = read_shape(message.message("tensor_shape")).known_dims()
    count = math.prod(dims)
    if count > _MAX_BYTES // (8 if dtype is dtypes.string else np.dtype(dtype.numpy_dtype).itemsize):
        raise ResourceExhaustedError(
            None, None, f"TensorProto: {dtype.name}{list(dims)} is larger than a message can be"
        )
    if dtype is dtypes.string:
        values = _filled(np.array([*message.values.get("string_val", ()), None], object)[:-1], count, b"")
    elif message.data("tensor_content"):
        content, wanted = message.data("tensor_content"), np.dtype(dtype.numpy_dtype)
        if len(content) != count * wanted.itemsize:
            raise InvalidArgumentError(None, None, f"TensorProto: {len(content)} bytes do not fill shape {dims}")
        values = np.frombuffer(content, wanted).copy() if wanted != np.bool_ else np.frombuffer(content, np.uint8) != 0
    else:
        values = _filled(_listed(message, dtype), count, 0)
    if values.size != count:
        raise InvalidArgumentError(None, None, f"TensorProto: {values.size} values do not fill shape {dims}")
    return values.reshape(dims), dtype


def _listed(message: ProtoMessage, dtype: DType) -> npt.NDArray[Any]:
    field, wanted = _VALUES.get(dtype.name, "int_val"), dtype.numpy_dtype
    given = message.array(field)
    if field == "half_val":
        return given.astype(np.uint16).view(wanted)
    if dtype.is_complex:
        return given.astype(np.float32 if dtype is dtypes.complex64 else np.float64).view(wanted)
    return given.astype(wanted)


def _filled(values: npt.NDArray[Any], count: int, default: object) -> npt.NDArray[Any]:
    """The last of the values stands for all that follow; without any, the default."""
    if values.size >= count:
        return values
    filled = np.full(count, default if not values.size else values[-1], values.dtype)
    filled[: values.size] = values
    return filled
