"""The file of one cache entry: a header, a description in JSON, the object file, constants as they lie in memory.

The description has the key, and a digest covers everything, so that damage and a file under a wrong name are seen.
"""

from __future__ import annotations

import dataclasses
import json
import struct
from collections.abc import Iterator, Mapping
from io import BufferedReader, BytesIO
from typing import Any, BinaryIO

from xlalite.backends.cpu.native.aligned_memory import ALIGNMENT_BYTES, ByteArray, aligned_bytes
from xlalite.backends.cpu.native.object_code import CodeSummary, ObjectCode
from xlalite.hlo.digest import blake2b
from xlalite.hlo.errors import CacheError
from xlalite.hlo.records import dataclass

FORMAT = 2
"""Version of the files; part of their names, so that two versions of xlalite share a directory in peace."""

_MAGIC = b"xlalite\0"
_SIZES = struct.Struct("<8sIIQQ")  # magic, format, bytes of the description, of the image, of the constants
_DIGEST_BYTES = 32
_HEADER_BYTES = _SIZES.size + _DIGEST_BYTES


@dataclass(frozen=True, slots=True)
class _Description:
    """What the JSON says."""

    key: str
    exports: tuple[str, ...]
    record: Mapping[str, Any]
    summary: CodeSummary
    constants: tuple[tuple[str, int], ...]


def write_entry(file: BinaryIO, key: str, code: ObjectCode) -> int:
    """Writes an entry and gives its size."""
    description = json.dumps(
        {
            "key": key,
            "exports": code.exports,
            "record": code.record,
            "summary": dataclasses.asdict(code.summary),
            "constants": [(name, data.size) for name, data in code.constants.items()],
        },
        separators=(",", ":"),
    ).encode()
    constants = tuple(_padded(code.constants))
    constant_bytes = sum(map(len, constants))
    sizes = _SIZES.pack(_MAGIC, FORMAT, len(description), len(code.image), constant_bytes)
    body = (description, code.image, *constants)
    file.write(sizes)
    file.write(_digest(sizes, *body))
    for part in body:
        file.write(part)
    return _HEADER_BYTES + len(description) + len(code.image) + constant_bytes


def read_entry(file: BufferedReader | BytesIO, file_bytes: int, key: str) -> ObjectCode:
    """The code in a file of a known size.

    Raises:
        CacheError: It is damaged, or the entry of another key.
    """
    sizes, digest = file.read(_SIZES.size), file.read(_DIGEST_BYTES)
    if len(sizes) + len(digest) < _HEADER_BYTES:
        raise CacheError("it is damaged")
    magic, version, description_bytes, image_bytes, constant_bytes = _SIZES.unpack(sizes)
    body_bytes = description_bytes + image_bytes + constant_bytes
    if (magic, version, file_bytes) != (_MAGIC, FORMAT, _HEADER_BYTES + body_bytes):
        raise CacheError("it is damaged")
    text, image, constants = file.read(description_bytes), file.read(image_bytes), aligned_bytes(constant_bytes)
    if file.readinto(constants.data) < constant_bytes or _digest(sizes, text, image, constants.data) != digest:
        raise CacheError("it is damaged")
    description = _describe(text)
    if description.key != key:
        raise CacheError(f"it is the entry of {description.key}")
    return ObjectCode(
        image,
        description.exports,
        description.record,
        dict(_pieces(description.constants, constants)),
        description.summary,
    )


def read_summary(file: BinaryIO) -> CodeSummary:
    """What a file says that it is the code of; empty when it cannot be understood. The digest is not looked at."""
    sizes, digest = file.read(_SIZES.size), file.read(_DIGEST_BYTES)
    if len(sizes) + len(digest) < _HEADER_BYTES:
        return CodeSummary()
    try:
        return _describe(file.read(_SIZES.unpack(sizes)[2])).summary
    except CacheError:
        return CodeSummary()


def _describe(text: bytes) -> _Description:
    """The description.

    Raises:
        CacheError: It says something else than descriptions do.
    """
    try:
        data: Any = json.loads(text)
        summary = CodeSummary(**data["summary"])
        description = _Description(
            data["key"],
            tuple(data["exports"]),
            data["record"],
            summary,
            tuple((name, size) for name, size in data["constants"]),
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CacheError("its description is wrong") from error
    expected: tuple[tuple[object, type | tuple[type, ...]], ...] = (
        (description.key, str),
        (description.record, dict),
        (summary.name, str),
        (summary.kernels, int),
        (summary.compile_ms, (int, float)),
        *((name, str) for name in description.exports),
        *((name, str) for name, _ in description.constants),
        *((size, int) for _, size in description.constants),
    )
    if not all(isinstance(value, kind) for value, kind in expected):
        raise CacheError("its description is wrong")
    return description


def _padded(constants: Mapping[str, ByteArray]) -> Iterator[memoryview | bytes]:
    """The constants, each filled up so that the next one is aligned as well."""
    for data in constants.values():
        yield data.data
        yield bytes(-data.size % ALIGNMENT_BYTES)


def _pieces(sizes: tuple[tuple[str, int], ...], data: ByteArray) -> Iterator[tuple[str, ByteArray]]:
    """The constants, as `_padded` put them one behind another.

    Raises:
        CacheError: The sizes do not fit.
    """
    offset = 0
    for name, size in sizes:
        if not 0 <= size <= data.size - offset:
            raise CacheError("its description is wrong")
        yield name, data[offset : offset + size]
        offset += size + -size % ALIGNMENT_BYTES


def _digest(*parts: bytes | memoryview) -> bytes:
    digest = blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        digest.update(part)
    return digest.digest()
