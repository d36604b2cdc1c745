"""TFRecord files: a length, its checksum, the data, its checksum; perhaps compressed as a whole."""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final

from xlalite.files.crc32c import crc32c, masked
from xlalite.framework.graph.errors import DataLossError, InvalidArgumentError, NotFoundError

_HEADER: Final = struct.Struct("<QI")
_CHECKSUM: Final = struct.Struct("<I")
_CHUNK: Final = 1 << 18
# What zlib calls the container; any is read.
_CONTAINERS: Final = {"ZLIB": zlib.MAX_WBITS, "GZIP": zlib.MAX_WBITS + 16}
_ANY_CONTAINER: Final = zlib.MAX_WBITS + 32


class TFRecordCompressionType(IntEnum):
    """How a file of records is compressed."""

    NONE = 0
    ZLIB = 1
    GZIP = 2


class TFRecordOptions:
    """How a file of records is written or read."""

    def __init__(self, compression_type: Any = None, **tuning: Any) -> None:
        """`compression_type` is one of `TFRecordCompressionType`, its name, or nothing; `tuning` changes nothing."""
        self.compression_type = compression_name(compression_type)


def compression_name(options: Any) -> str:
    """`GZIP`, `ZLIB` or the empty string, of whatever says so.

    Raises:
        InvalidArgumentError: there is no such compression.
    """
    given = getattr(options, "compression_type", options)
    name = given.name if isinstance(given, TFRecordCompressionType) else given or ""
    name = name.decode() if isinstance(name, bytes) else str(name)
    if name in ("", "NONE"):
        return ""
    if name not in _CONTAINERS:
        raise InvalidArgumentError(None, None, f"compression {name!r} is not one of '', 'GZIP', 'ZLIB'")
    return name


class TFRecordWriter:
    """Writes records to a file."""

    def __init__(self, path: str | os.PathLike[str], options: Any = None) -> None:
        """Makes the file, or empties it."""
        name = compression_name(options)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        self._file: BinaryIO = open(path, "wb")  # noqa: SIM115  # the writer is the context manager
        self._compressor = zlib.compressobj(wbits=_CONTAINERS[name]) if name else None

    def write(self, record: bytes) -> None:
        """Adds a record."""
        header = struct.pack("<Q", len(record))
        checksums = masked(crc32c(header)), masked(crc32c(record))
        self._put(b"".join((header, _CHECKSUM.pack(checksums[0]), record, _CHECKSUM.pack(checksums[1]))))

    def flush(self) -> None:
        """Hands everything to the operating system."""
        if self._compressor is not None:
            self._file.write(self._compressor.flush(zlib.Z_SYNC_FLUSH))
        self._file.flush()

    def close(self) -> None:
        """Finishes the file; closing again does nothing."""
        if self._file.closed:
            return
        if self._compressor is not None:
            self._file.write(self._compressor.flush())
        self._file.close()

    def _put(self, data: bytes) -> None:
        self._file.write(data if self._compressor is None else self._compressor.compress(data))

    def __enter__(self) -> TFRecordWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def tf_record_iterator(path: str | os.PathLike[str], options: Any = None) -> Iterator[bytes]:
    """The records of a file, one after the other.

    Raises:
        NotFoundError: there is no such file.
        DataLossError: the file is damaged, or ends inside a record.
    """
    name = compression_name(options)
    if not os.path.exists(path):
        raise NotFoundError(None, None, f"{os.fspath(path)}; No such file or directory")
    with open(path, "rb") as file:
        stream = _Inflated(file, str(path)) if name else file
        position = 0
        while header := stream.read(_HEADER.size):
            if len(header) < _HEADER.size:
                raise DataLossError(None, None, f"{path}: truncated record at {position}")
            length, checksum = _HEADER.unpack(header)
            if masked(crc32c(header[:8])) != checksum:
                raise DataLossError(None, None, f"{path}: corrupted record at {position}")
            body = _exactly(stream, length + _CHECKSUM.size)
            if body is None:
                raise DataLossError(None, None, f"{path}: truncated record at {position}")
            record = body[:length]
            if masked(crc32c(record)) != _CHECKSUM.unpack(body[length:])[0]:
                raise DataLossError(None, None, f"{path}: corrupted record at {position}")
            yield record
            position += _HEADER.size + len(body)


def read_inflated(path: str | os.PathLike[str]) -> bytes:
    """The contents of a compressed file.

    Raises:
        DataLossError: the file is damaged.
    """
    with open(path, "rb") as file:
        stream = _Inflated(file, str(path))
        return b"".join(iter(lambda: stream.read(_CHUNK), b""))


def _exactly(stream: Any, size: int) -> bytes | None:
    """So many bytes, without taking more memory than there are; None when there are fewer."""
    parts: list[bytes] = []
    while size:
        part = stream.read(min(size, _CHUNK * 64))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


class _Inflated:
    """The contents of a compressed file."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self._name = name
        self._inflater = zlib.decompressobj(_ANY_CONTAINER)
        self._ready = io.BytesIO()

    def read(self, size: int) -> bytes:
        """At most so many bytes; none only at the end."""
        parts, wanted = [], size
        while wanted:
            part = self._ready.read(wanted)
            parts.append(part)
            wanted -= len(part)
            if not part and not self._refill():
                break
        return b"".join(parts)

    def _refill(self) -> bool:
        """Inflates more; whether there was any."""
        while True:
            if self._inflater.eof:
                rest = self._inflater.unused_data or self._file.read(_CHUNK)
                if not rest:
                    return False
                # Several compressed files one behind the other are one.
                self._inflater = zlib.decompressobj(_ANY_CONTAINER)
            else:
                rest = self._inflater.unconsumed_tail or self._file.read(_CHUNK)
                if not rest:
                    return False
            try:
                data = self._inflater.decompress(rest, _CHUNK * 4)
            except zlib.error as error:
                raise DataLossError(None, None, f"{self._name}: {error}") from None
            if data:
                self._ready = io.BytesIO(data)
                return True
