"""Sorted tables of keys and values, in the format of LevelDB's files: what the index of a checkpoint is.

A table is blocks of entries, a block of their last keys, and a footer. Keys in a block leave out what they share with
the key before, but for every sixteenth.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Final

from xlalite.files.crc32c import crc32c, masked
from xlalite.framework.graph.errors import DataLossError, UnimplementedError
from xlalite.hlo.proto.varints import decode_varint, encode_varint

_MAGIC: Final = struct.pack("<Q", 0xDB4775248B80FB57)
_FOOTER_BYTES: Final = 48
_TRAILER: Final = struct.Struct("<BI")
_BLOCK_BYTES: Final = 1 << 18
_RESTART_INTERVAL: Final = 16


def write_table(entries: Mapping[bytes, bytes]) -> bytes:
    """The bytes of a table."""
    out = bytearray()
    index: dict[bytes, bytes] = {}
    waiting: dict[bytes, bytes] = {}
    size = 0
    for key in sorted(entries):
        waiting[key] = entries[key]
        size += len(key) + len(entries[key])
        if size >= _BLOCK_BYTES:
            index[key] = _append(out, _block(waiting, _RESTART_INTERVAL))
            waiting, size = {}, 0
    if waiting:
        index[max(waiting)] = _append(out, _block(waiting, _RESTART_INTERVAL))
    handles = _append(out, _block({}, _RESTART_INTERVAL)) + _append(out, _block(index, 1))
    return bytes(out) + handles.ljust(_FOOTER_BYTES - len(_MAGIC), b"\0") + _MAGIC


def read_table(data: bytes, name: str) -> dict[bytes, bytes]:
    """All entries of a table.

    Raises:
        DataLossError: the bytes are no table, or a block is damaged; the message begins with `name`.
    """
    try:
        if len(data) < _FOOTER_BYTES or data[-8:] != _MAGIC:
            raise ValueError("not a sorted table (bad magic number)")
        footer = data[-_FOOTER_BYTES:]
        position = 0
        for _ in range(3):
            offset, position = decode_varint(footer, position, len(footer))
        size, _ = decode_varint(footer, position, len(footer))
        found: dict[bytes, bytes] = {}
        for _, handle in _entries(_checked_block(data, offset, size)):
            start, position = decode_varint(handle, 0, len(handle))
            length, _ = decode_varint(handle, position, len(handle))
            found.update(_entries(_checked_block(data, start, length)))
        return found
    except (ValueError, struct.error, IndexError) as error:
        raise DataLossError(None, None, f"{name}: {error}") from None


def _append(out: bytearray, block: bytes) -> bytes:
    """Adds a block and gives its handle."""
    handle = encode_varint(len(out)) + encode_varint(len(block))
    out += block
    out += _TRAILER.pack(0, masked(crc32c(block + b"\0")))
    return handle


def _block(entries: Mapping[bytes, bytes], interval: int) -> bytes:
    out = bytearray()
    restarts: list[int] = []
    before = b""
    for number, (key, value) in enumerate(entries.items()):
        shared = 0
        if number % interval:
            limit = min(len(before), len(key))
            while shared < limit and before[shared] == key[shared]:
                shared += 1
        else:
            restarts.append(len(out))
        out += encode_varint(shared) + encode_varint(len(key) - shared) + encode_varint(len(value))
        out += key[shared:] + value
        before = key
    restarts = restarts or [0]
    return bytes(out) + struct.pack(f"<{len(restarts)}II", *restarts, len(restarts))


def _checked_block(data: bytes, offset: int, size: int) -> bytes:
    if offset + size + _TRAILER.size > len(data):
        raise ValueError(f"a block at {offset} goes beyond the end")
    kind, checksum = _TRAILER.unpack_from(data, offset + size)
    if masked(crc32c(data[offset : offset + size + 1])) != checksum:
        raise ValueError(f"block checksum mismatch at {offset}")
    if kind:
        raise UnimplementedError(None, None, "compressed blocks of tables are not read")
    return data[offset : offset + size]


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    (restart_count,) = struct.unpack("<I", block[-4:])
    end = len(block) - 4 * (restart_count + 1)
    position, key = 0, b""
    while position < end:
        shared, position = decode_varint(block, position, end)
        unshared, position = decode_varint(block, position, end)
        length, position = decode_varint(block, position, end)
        if shared > len(key) or position + unshared + length > end:
            raise ValueError("an entry goes beyond its block")
        key = key[:shared] + block[position : position + unshared]
        position += unshared
        yield key, block[position : position + length]
        position += length
