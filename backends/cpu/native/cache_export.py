"""All code of a cache as one file, for another machine that has the same processor and the same xlalite.

The file begins with a header, a table in JSON (for which machine and version, the key and size of each entry) and its
digest; the entries follow as they lie in the directory, each with a digest of its own.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import struct
from pathlib import Path
from typing import Any

from xlalite.backends.cpu.native.cache_directory import CacheDirectory
from xlalite.backends.cpu.native.cache_file import FORMAT, read_entry, write_entry
from xlalite.backends.cpu.native.code_version import code_version
from xlalite.backends.cpu.native.jit_options import host_fingerprint
from xlalite.hlo.digest import blake2b
from xlalite.hlo.errors import CacheError

_MAGIC = b"xlacache"
_HEADER = struct.Struct("<8sIQ32s")  # magic, format of the entries, bytes of the table, its digest
_KEY_DIGITS = frozenset("0123456789abcdef")


def export_entries(directory: CacheDirectory, path: Path) -> int:
    """Writes the entries that this version can use, and gives their number.

    Raises:
        OSError: The file cannot be written; one that was there is as it was.
    """
    entries: list[tuple[str, bytes]] = []
    for entry in directory.entries():
        with contextlib.suppress(CacheError):  # of another version, or damaged
            code = directory.load(entry.key)
            if code is not None:
                file = io.BytesIO()
                write_entry(file, entry.key, code)
                entries.append((entry.key, file.getvalue()))
    table = json.dumps(
        {
            "machine": host_fingerprint(),
            "version": code_version(),
            "entries": [(key, len(data)) for key, data in entries],
        }
    ).encode()
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as out:
            out.write(_HEADER.pack(_MAGIC, FORMAT, len(table), _digest(table)))
            out.write(table)
            out.writelines(data for _, data in entries)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return len(entries)


def import_entries(directory: CacheDirectory, path: Path) -> int:
    """Takes over the entries of a file and gives their number; all of them, or none when anything is amiss.

    Raises:
        CacheError: It is no such file, is damaged, or was made for another processor or by another version.
        OSError: It cannot be read.
    """
    data = memoryview(path.read_bytes())
    if len(data) < _HEADER.size or data[: len(_MAGIC)] != _MAGIC:
        raise CacheError(f"{path} is no exported cache")
    _, version, table_bytes, digest = _HEADER.unpack(data[: _HEADER.size])
    if version != FORMAT:
        raise CacheError(f"{path} was exported by another version of xlalite (format {version}, this one has {FORMAT})")
    begin = _HEADER.size + table_bytes
    text = bytes(data[_HEADER.size : begin])
    if _digest(text) != digest:
        raise CacheError(f"{path} is damaged: its table")
    table = _table(text, path)
    if table["machine"] != host_fingerprint():
        raise CacheError(
            f"{path} was exported for another processor or llvmlite: {table['machine']}; this is {host_fingerprint()}"
        )
    if table["version"] != code_version():
        raise CacheError(f"{path} was exported by another version of xlalite, NumPy or ml_dtypes; export it anew")
    if begin + sum(size for _, size in table["entries"]) != len(data):
        raise CacheError(f"{path} is damaged: it has {len(data)} bytes")
    codes = []
    for key, size in table["entries"]:
        try:
            codes.append((key, read_entry(io.BytesIO(data[begin : begin + size]), size, key)))
        except CacheError as error:
            raise CacheError(f"{path}: entry {key}: {error}") from error
        begin += size
    for key, code in codes:
        directory.store(key, code)
    return len(codes)


def _table(text: bytes, path: Path) -> dict[str, Any]:
    """The table, of which the digest is right; keys become names of files, so they are looked at all the same."""
    try:
        table: Any = json.loads(text)
        valid = all(_KEY_DIGITS.issuperset(key) and key and size > 0 for key, size in table["entries"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CacheError(f"{path} is damaged: its table") from error
    if not valid or not {"machine", "version"} <= table.keys():
        raise CacheError(f"{path} is damaged: its table")
    return dict(table)


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=32).digest()
