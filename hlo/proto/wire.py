"""The binary form of messages: bytes to messages and back, led by the tables of fields.

Fields that the tables do not know are skipped. Whatever the bytes are, the only error is `BinaryParseError`, and no
more memory is taken than the bytes account for.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from xlalite.hlo.errors import BinaryParseError
from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.proto.schema import BULK_DTYPES, MESSAGE_TYPES, Kind, MessageType, ProtoField, WireType
from xlalite.hlo.proto.varints import decode_varint, decode_varints, encode_varint, encode_varints

_NESTING = 200
# Equal bytes of these types are read once; modules hold thousands of equal shapes.
_SHARED = frozenset({"ShapeProto", "OpMetadata"})
_DTYPES: dict[Kind, str] = {Kind.FLOAT: "<f4", Kind.DOUBLE: "<f8"}


def decode(data: bytes, type_name: str) -> ProtoMessage:
    """The message that bytes spell.

    Raises:
        BinaryParseError: The bytes are no such message; says where.
    """
    return _Decoder(data).read(MESSAGE_TYPES[type_name], 0, len(data), 0)


def encode(message: ProtoMessage) -> bytes:
    """The bytes of a message, fields in the order of their numbers."""
    fields = message.type.by_name
    parts: list[bytes] = []
    for name in sorted(message.values, key=lambda name: fields[name].number):
        field, value = fields[name], message.values[name]
        tag = field.number << 3
        if not field.repeated:
            data = _encode_one(field, value)
            if data.strip(b"\0") or field.has_presence or field.kind is Kind.MESSAGE:
                parts.append(encode_varint(tag | field.kind.wire_type))
                parts.append(data)
        elif field.kind in (Kind.MESSAGE, Kind.STRING, Kind.BYTES):
            for one in value:
                parts.append(encode_varint(tag | WireType.BYTES))
                parts.append(_encode_one(field, one))
        else:
            packed = b"".join(_encode_array(field, chunk) for chunk in value) if field.bulk else _pack(field, value)
            if packed:
                parts.append(encode_varint(tag | WireType.BYTES))
                parts.append(encode_varint(len(packed)))
                parts.append(packed)
    return b"".join(parts)


def _encode_one(field: ProtoField, value: Any) -> bytes:
    data: bytes
    match field.kind:
        case Kind.MESSAGE:
            data = encode(value)
        case Kind.STRING:
            data = value.encode("utf-8", "surrogateescape")
        case Kind.BYTES:
            data = value
        case Kind.FLOAT:
            with np.errstate(over="ignore"):
                return struct.pack("<f", np.float32(value))
        case Kind.DOUBLE:
            return struct.pack("<d", value)
        case Kind.FIXED32:
            return struct.pack("<I", value)
        case _:
            return encode_varint(value)
    return encode_varint(len(data)) + data if data or field.repeated or field.kind is Kind.MESSAGE else b""


def _pack(field: ProtoField, values: list[Any]) -> bytes:
    if field.kind in _DTYPES:
        return np.array(values, _DTYPES[field.kind]).tobytes()
    return encode_varints(values)


def _encode_array(field: ProtoField, array: npt.NDArray[Any]) -> bytes:
    if field.kind in _DTYPES:
        return array.astype(_DTYPES[field.kind], copy=False).tobytes()
    if array.dtype.kind == "i":
        return encode_varints(array.astype(np.int64).view(np.uint64))
    return encode_varints(array.astype(np.uint64))


class _Decoder:
    """Reads one piece of data."""

    __slots__ = ("data", "shared")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.shared: dict[tuple[str, bytes], ProtoMessage] = {}

    def error(self, position: int, message: str) -> BinaryParseError:
        return BinaryParseError(message, position)

    def read(self, type_: MessageType, start: int, end: int, depth: int) -> ProtoMessage:
        if depth > _NESTING:
            raise self.error(start, f"messages are nested more than {_NESTING} deep")
        message = ProtoMessage(type_, self, start)
        values, data, by_tag = message.values, self.data, type_.by_tag
        position = start
        while position < end:
            field_start = position
            tag = data[position]
            if tag < 128:
                position += 1
            else:
                tag, position = self.varint(position, end)
            known = by_tag.get(tag)
            if known is None:
                position = self.skip_unknown(type_, tag, field_start, position, end)
                continue
            field, wire_type = known
            if wire_type is WireType.VARINT:
                value, position = self.varint(position, end)
                stop = position
            else:
                position, stop = self.extent(wire_type, field_start, position, end)
                value = None
            if field.kind is Kind.MESSAGE:
                self.put_message(values, field, position, stop, depth)
            elif field.repeated and wire_type is WireType.BYTES and field.kind.wire_type is not WireType.BYTES:
                self.put_packed(values, field, position, stop)
            else:
                one = _VARINT_VALUES[field.kind](value) if value is not None else self.fixed(field, position, stop)
                if field.repeated:
                    values.setdefault(field.name, []).append(_bulk(field, one) if field.bulk else one)
                else:
                    values[field.name] = one
            position = stop
        return message

    def varint(self, position: int, end: int) -> tuple[int, int]:
        try:
            return decode_varint(self.data, position, end)
        except ValueError as error:
            raise self.error(position, str(error)) from None

    def extent(self, wire_type: int, field_start: int, position: int, end: int) -> tuple[int, int]:
        """Where a value that is no varint starts and ends."""
        size = 8 if wire_type == WireType.FIXED64 else 4
        if wire_type == WireType.BYTES:
            size, position = self.varint(position, end)
        if size > end - position:
            raise self.error(field_start, f"a field takes {size} bytes, only {end - position} are left")
        return position, position + size

    def put_message(self, values: dict[str, Any], field: ProtoField, start: int, end: int, depth: int) -> None:
        type_ = MESSAGE_TYPES[field.type_name]
        if field.type_name in _SHARED and (field.repeated or field.name not in values):
            key = (field.type_name, self.data[start:end])
            new = self.shared.get(key)
            if new is None:
                new = self.shared[key] = self.read(type_, start, end, depth + 1)
        else:
            new = self.read(type_, start, end, depth + 1)
        if field.repeated:
            values.setdefault(field.name, []).append(new)
        elif field.name in values:
            # A single message that stands twice is the union of both; shared ones must stay as they are.
            values[field.name] = _merged(values[field.name], new)
        else:
            values[field.name] = new

    def put_packed(self, values: dict[str, Any], field: ProtoField, start: int, end: int) -> None:
        chunk = self.data[start:end]
        array: npt.NDArray[Any]
        if field.kind in _DTYPES:
            dtype = np.dtype(_DTYPES[field.kind])
            if len(chunk) % dtype.itemsize:
                raise self.error(start, f"{field.name}: {len(chunk)} bytes are no whole number of values")
            array = np.frombuffer(chunk, dtype)
        else:
            try:
                array = decode_varints(chunk)
            except ValueError as error:
                raise self.error(start, f"{field.name}: {error}") from None
        if field.bulk:
            values.setdefault(field.name, []).append(_bulk_values(field, array))
        elif field.kind in _DTYPES:
            values.setdefault(field.name, []).extend(array.tolist())
        else:
            values.setdefault(field.name, []).extend(map(_VARINT_VALUES[field.kind], array.tolist()))

    def fixed(self, field: ProtoField, start: int, end: int) -> Any:
        chunk = self.data[start:end]
        match field.kind:
            case Kind.STRING:
                return chunk.decode("utf-8", "surrogateescape")
            case Kind.BYTES:
                return chunk
            case Kind.FLOAT:
                return struct.unpack("<f", chunk)[0]
            case Kind.FIXED32:
                return struct.unpack("<I", chunk)[0]
            case _:
                return struct.unpack("<d", chunk)[0]

    def skip_unknown(self, type_: MessageType, tag: int, field_start: int, position: int, end: int) -> int:
        """The position behind a field that the table does not have."""
        number, wire_type = tag >> 3, tag & 7
        if not 0 < number < 1 << 29:
            raise self.error(field_start, f"{type_.name}: there is no field number {number}")
        known = type_.by_number.get(number)
        if known is not None:
            raise self.error(
                field_start, f"{type_.name}.{known.name}: found wire type {wire_type}, expected {known.kind.value}"
            )
        groups: list[int] = []
        while True:
            number, wire_type = tag >> 3, tag & 7
            if wire_type == WireType.GROUP_START:
                groups.append(number)
            elif wire_type == WireType.GROUP_END:
                if not groups or groups.pop() != number:
                    raise self.error(field_start, f"{type_.name}: a group ends that did not start")
            elif wire_type == WireType.VARINT:
                _, position = self.varint(position, end)
            elif wire_type in (WireType.FIXED32, WireType.FIXED64, WireType.BYTES):
                _, position = self.extent(wire_type, field_start, position, end)
            else:
                raise self.error(field_start, f"{type_.name}: there is no wire type {wire_type}")
            if not groups:
                return position
            tag, position = self.varint(position, end)


def _merged(first: ProtoMessage, second: ProtoMessage) -> ProtoMessage:
    union = ProtoMessage(first.type, first.origin, first.position)
    union.values = dict(first.values)
    for name, value in second.values.items():
        known = union.values.get(name)
        if first.type.by_name[name].repeated:
            union.values[name] = [*(known or ()), *value]
        elif isinstance(known, ProtoMessage):
            union.values[name] = _merged(known, value)
        else:
            union.values[name] = value
    return union


def _bulk(field: ProtoField, value: float) -> npt.NDArray[Any]:
    return np.array([value], BULK_DTYPES[field.kind])


def _signed(bits: int) -> Callable[[int], int]:
    sign, mask = 1 << (bits - 1), (1 << bits) - 1
    return lambda value: ((value & mask) ^ sign) - sign


_VARINT_VALUES: dict[Kind, Callable[[int], int]] = {
    Kind.INT64: _signed(64),
    Kind.INT32: _signed(32),
    Kind.ENUM: _signed(32),
    Kind.UINT64: lambda value: value,
    Kind.UINT32: lambda value: value & 0xFFFFFFFF,
    Kind.BOOL: bool,
}


def _bulk_values(field: ProtoField, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if field.kind in _DTYPES:
        return array
    return array != 0 if field.kind is Kind.BOOL else array.astype(BULK_DTYPES[field.kind])


def field_numbers(data: bytes) -> frozenset[int]:
    """The numbers of the fields at the top of a message; what follows the first mistake is not looked at."""
    decoder, position, numbers = _Decoder(data), 0, set()
    nothing = MessageType("message", ())
    try:
        while position < len(data):
            start = position
            tag, position = decoder.varint(position, len(data))
            position = decoder.skip_unknown(nothing, tag, start, position, len(data))
            numbers.add(tag >> 3)
    except BinaryParseError:
        pass
    return frozenset(numbers)
