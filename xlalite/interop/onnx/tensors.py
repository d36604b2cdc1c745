"""Tensors of ONNX's files as arrays, wherever their bytes lie.

External data is read from files beside the model only: a location that leads out of its directory is refused.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import numpy.typing as npt

from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Array

ELEMENT_TYPES: dict[int, DType] = {
    1: DType.F32,
    2: DType.U8,
    3: DType.S8,
    4: DType.U16,
    5: DType.S16,
    6: DType.S32,
    7: DType.S64,
    9: DType.PRED,
    10: DType.F16,
    11: DType.F64,
    12: DType.U32,
    13: DType.U64,
    14: DType.C64,
    15: DType.C128,
    16: DType.BF16,
    17: DType.F8E4M3FN,
    18: DType.F8E4M3FNUZ,
    19: DType.F8E5M2,
    20: DType.F8E5M2FNUZ,
    21: DType.U4,
    22: DType.S4,
    23: DType.F4E2M1FN,
    24: DType.F8E8M0FNU,
    25: DType.U2,
    26: DType.S2,
    27: DType.F6E2M3FN,
    28: DType.F6E3M2FN,
}
"""ONNX's numbers of element types; strings (8) have no counterpart."""

LARGEST = 1 << 40
"""How many elements an array may have."""

_STRING = 8
# Which field holds the values of a type that are not raw bytes; the others lie in `int32_data`, narrow ones packed.
_FIELDS = {
    DType.F32: "float_data",
    DType.C64: "float_data",
    DType.F64: "double_data",
    DType.C128: "double_data",
    DType.S64: "int64_data",
    DType.U32: "uint64_data",
    DType.U64: "uint64_data",
}


@dataclass(frozen=True, slots=True)
class ExternalData:
    """Where the files lie that a model refers to.

    Attributes:
        directory: The model's directory; None for a model without one, whose references are refused.
    """

    directory: Path | None = None

    def read(self, message: ProtoMessage, size_bytes: int) -> bytes:
        """The bytes of a tensor that lie outside of the model.

        Raises:
            ParseError: There are no such bytes, or they lie where they must not.
        """
        entries = {entry.text("key"): entry.text("value") for entry in message.messages("external_data")}
        location = entries.get("location", "")
        offset, length = (_number(message, entries, key) for key in ("offset", "length"))
        path = self._inside(message, location)
        if length not in (0, size_bytes):
            raise message.error(f"external data of {length} bytes, expected {size_bytes}")
        try:
            if offset + size_bytes > path.stat().st_size:
                raise message.error(f"{location!r} ends before byte {offset + size_bytes}")
            with path.open("rb") as file:
                file.seek(offset)
                return file.read(size_bytes)
        except OSError as error:
            raise message.error(f"external data {location!r} cannot be read: {error.strerror}") from error

    def _inside(self, message: ProtoMessage, location: str) -> Path:
        if self.directory is None:
            raise message.error(f"external data {location!r} of a model that was not read from a file")
        root = self.directory.resolve()
        try:
            path = (root / location).resolve()
            if location and path.is_relative_to(root) and path.is_file():
                return path
        except (OSError, ValueError):  # a name that no file can have
            pass
        raise message.error(f"external data {location!r} is no file in the model's directory")


def read_tensor(message: ProtoMessage, external: ExternalData) -> Array:
    """The values of a `TensorProto`.

    Raises:
        ParseError: They are strings, or they do not fit the sizes.
    """
    dtype = element_type(message, message.integer("data_type"))
    dims = checked_dims(message, message.integers("dims"))
    count = math.prod(dims)
    packed = dtype.bits in (2, 4)
    size_bytes = -(-count * dtype.bits // 8) if packed else count * dtype.size_bytes
    if message.word("data_location") == "EXTERNAL":
        return _from_bytes(external.read(message, size_bytes), dtype, dims)
    raw = message.data("raw_data")
    if raw or (message.has("raw_data") and not count):
        if len(raw) != size_bytes:
            raise message.error(f"{len(raw)} bytes of data, expected {size_bytes} for {dtype.value}{list(dims)}")
        return _from_bytes(raw, dtype, dims)
    return _from_numbers(message, dtype, dims)


def read_sparse_tensor(message: ProtoMessage, external: ExternalData) -> Array:
    """The dense array of a `SparseTensorProto`.

    Raises:
        ParseError: Indices and values do not fit the sizes.
    """
    values = read_tensor(message.message("values"), external)
    indices = read_tensor(message.message("indices"), external)
    dims = checked_dims(message, message.integers("dims"))
    if math.prod(dims) > 1 << 28 or values.ndim != 1 or indices.shape[:1] != values.shape:
        raise message.error(f"a sparse tensor of sizes {dims} with indices {indices.shape}, values {values.shape}")
    dense = np.zeros(dims, values.dtype)
    places = indices if indices.ndim == 1 else _linear(message, indices, dims)
    if places.size and not (places.min() >= 0 and places.max() < dense.size):
        raise message.error("an index lies outside")
    dense.reshape(-1)[places] = values
    return dense


def element_type(message: ProtoMessage, number: int) -> DType:
    """The element type with ONNX's number.

    Raises:
        ParseError: There is none.
    """
    found = ELEMENT_TYPES.get(number)
    if found is None:
        raise message.error("strings are not supported" if number == _STRING else f"there is no element type {number}")
    return found


def checked_dims(message: ProtoMessage, dims: tuple[int, ...]) -> tuple[int, ...]:
    """Sizes that an array may have.

    Raises:
        ParseError: One is negative, or there are too many elements.
    """
    if any(size < 0 for size in dims) or math.prod(size or 1 for size in dims) > LARGEST:
        raise message.error(f"there is no array of sizes {list(dims)}")
    return dims


def _number(message: ProtoMessage, entries: dict[str, str], key: str) -> int:
    text = entries.get(key, "0")
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise message.error(f"external data with {key} {text!r}")
    return int(text)


def _from_bytes(raw: bytes, dtype: DType, dims: tuple[int, ...]) -> Array:
    if dtype.bits in (2, 4):
        return _unpacked(np.frombuffer(raw, np.uint8), dtype, dims)
    if dtype is DType.PRED:
        return np.frombuffer(raw, np.uint8).reshape(dims).astype(np.bool_)
    return np.frombuffer(raw, dtype.numpy).reshape(dims)


def _unpacked(packed: npt.NDArray[np.uint8], dtype: DType, dims: tuple[int, ...]) -> Array:
    """Elements of 2 or 4 bits, the first of a byte in its lowest bits."""
    shifts = np.arange(0, 8, dtype.bits, dtype=np.uint8)
    fields = (packed[:, np.newaxis] >> shifts).reshape(-1)[: math.prod(dims)] & ((1 << dtype.bits) - 1)
    if dtype.is_integral:
        sign = 1 << (dtype.bits - 1)
        numbers = fields.astype(np.int8)
        return np.asarray((numbers ^ sign) - sign if dtype.is_signed else numbers).astype(dtype.numpy).reshape(dims)
    return np.asarray(fields.view(dtype.numpy).reshape(dims))


def _from_numbers(message: ProtoMessage, dtype: DType, dims: tuple[int, ...]) -> Array:
    name, count = _FIELDS.get(dtype, "int32_data"), math.prod(dims)
    numbers = message.array(name)
    expected = count * 2 if dtype.is_complex else -(-count * dtype.bits // 8) if dtype.bits in (2, 4) else count
    if numbers.size != expected:
        raise message.error(f"{numbers.size} numbers in {name}, expected {expected} for {dtype.value}{list(dims)}")
    if dtype.bits in (2, 4):
        return _unpacked(numbers.astype(np.uint8), dtype, dims)
    if dtype.is_complex:
        return numbers.view(dtype.numpy).reshape(dims)
    if dtype.is_floating and name == "int32_data":  # the bit patterns of narrow types
        return numbers.astype(f"u{dtype.size_bytes}").view(dtype.numpy).reshape(dims)
    return numbers.astype(dtype.numpy).reshape(dims)


def _linear(message: ProtoMessage, indices: Array, dims: tuple[int, ...]) -> Array:
    if indices.ndim != 2 or indices.shape[1] != len(dims):
        raise message.error(f"indices of sizes {indices.shape} for a tensor of rank {len(dims)}")
    if not all(0 <= place < size for row in indices.tolist() for place, size in zip(row, dims, strict=True)):
        raise message.error("an index lies outside")
    return np.asarray(np.ravel_multi_index(tuple(indices.T), dims)) if dims else np.zeros(len(indices), np.int64)
