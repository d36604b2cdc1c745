"""Whole files: bytes and text to modules and back."""

from __future__ import annotations

from xlalite.hlo.errors import ParseError
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.proto.module_reader import read_module
from xlalite.hlo.proto.module_writer import write_module
from xlalite.hlo.proto.text_format import decode_text, encode_text, field_names
from xlalite.hlo.proto.wire import decode, encode, field_numbers

# An `HloProto` has a module in field 1, an `HloSnapshot` an `HloProto`, where an `HloModuleProto` has its name.
_WRAPPER_NUMBERS = frozenset({1, 3})
_SNAPSHOT_NUMBERS = frozenset({1, 2, 3, 4})
_WRAPPER_FIELD = "hlo_module"
_SNAPSHOT_FIELD = "hlo"


def parse_proto(data: bytes | bytearray | memoryview) -> HloModule:
    """The module in a serialized `HloModuleProto`, `HloProto` or `HloSnapshot`, whose arguments are left out.

    Raises:
        ParseError: The bytes are neither; says at which byte.
    """
    data = bytes(data)
    numbers = field_numbers(data)
    if 1 in numbers <= _SNAPSHOT_NUMBERS and field_numbers(_head(data)) == {1}:
        return _unwrapped(decode(data, "HloSnapshot").message(_SNAPSHOT_FIELD))
    if numbers <= _WRAPPER_NUMBERS:
        return _unwrapped(decode(data, "HloProto"))
    return read_module(decode(data, "HloModuleProto"))


def parse_pbtxt(text: str | bytes) -> HloModule:
    """The module in the text form of an `HloModuleProto`, `HloProto` or `HloSnapshot`.

    Raises:
        ParseError: The text is neither; says where.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "surrogateescape")
    names = field_names(text)
    if _SNAPSHOT_FIELD in names:
        return _unwrapped(decode_text(text, "HloSnapshot").message(_SNAPSHOT_FIELD))
    if _WRAPPER_FIELD in names:
        return _unwrapped(decode_text(text, "HloProto"))
    return read_module(decode_text(text, "HloModuleProto"))


def write_proto(module: HloModule) -> bytes:
    """The serialized `HloModuleProto` of a module."""
    return encode(write_module(module))


def write_hlo_proto(module: HloModule) -> bytes:
    """The serialized `HloProto` of a module, the form of XLA's dumps."""
    return encode(ProtoMessage("HloProto").put(_WRAPPER_FIELD, write_module(module)))


def write_pbtxt(module: HloModule) -> str:
    """The text form of a module's `HloModuleProto`."""
    return encode_text(write_module(module))


def _head(data: bytes) -> bytes:
    """What field 1 holds, whatever that is; nothing if it cannot be read."""
    try:
        return decode(data, "SnapshotHead").data(_SNAPSHOT_FIELD)
    except ParseError:
        return b""


def _unwrapped(message: ProtoMessage) -> HloModule:
    if not message.has(_WRAPPER_FIELD):
        raise ParseError("the HloProto holds no module")
    return read_module(message.message(_WRAPPER_FIELD))
