"""Object code on disk: one checksummed file an entry, in a directory that nobody else can write.

Whoever can write into the directory can run code in this process, so the directory and every file must belong to the
user and be writable by no one else. Entries are JSON and machine code, never pickles. Processes share the directory
without locks: an entry appears by an atomic rename, and a damaged one counts as absent.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import struct
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from xlalite.backends.cpu.native.jit import ObjectCode
from xlalite.hlo.errors import CacheError

FORMAT = 1
"""Version of the files; part of their name, so that two versions of xlalite share a directory in peace."""

_SUFFIX = f".xlo{FORMAT}"
_MAGIC = b"xlalite\0"
_DIGEST_BYTES = 32
_HEADER = struct.Struct(f"<8sIIQ{_DIGEST_BYTES}s")  # magic, format, bytes of JSON, bytes of image, digest of both
_STALE_TEMPORARY_SECONDS = 3600
_TOUCH_SECONDS = 60
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """One file of the cache, for listings.

    Attributes:
        key: The key in hexadecimal.
        size_bytes: Size of the file.
        last_use: When it was last read or written, in seconds since the epoch (to the minute).
    """

    key: str
    size_bytes: int
    last_use: float


class CacheDirectory:
    """A directory of object code with a size limit; the entries not used for longest go first."""

    def __init__(self, path: Path, size_limit_bytes: int) -> None:
        """Creates the directory when it is missing and checks that it is ours.

        Raises:
            CacheError: It cannot be made, written, or trusted; the message says which.
        """
        self.path = path
        self.size_limit_bytes = size_limit_bytes
        self.evicted_entries = 0
        self._size_bytes: int | None = None
        self._prepare()

    def load(self, key: str) -> ObjectCode | None:
        """The entry, or None when there is none. A damaged or foreign file is removed and counts as none.

        Raises:
            CacheError: There was a file, and it was damaged or could be written by others; the message says why.
        """
        path = self._path_of(key)
        try:
            descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CacheError(f"cache entry {path} cannot be opened: {error.strerror}") from error
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            problem = _distrust(status)
            data = b"" if problem else file.read()
        code = None if problem else _decode(data)
        if code is None:
            with contextlib.suppress(OSError):
                path.unlink()
            raise CacheError(f"cache entry {path} was removed: {problem or 'it is damaged'}")
        if time.time() - status.st_mtime > _TOUCH_SECONDS:
            with contextlib.suppress(OSError):
                os.utime(path)
        return code

    def store(self, key: str, code: ObjectCode) -> int:
        """Writes the entry, makes room if needed, and gives the bytes written.

        Raises:
            CacheError: The file cannot be written (disk full, directory gone, ...).
        """
        data = _encode(code)
        try:
            descriptor, temporary = tempfile.mkstemp(suffix=".tmp", dir=self.path)  # mode 0600
            try:
                with open(descriptor, "wb") as file:
                    file.write(data)
                os.replace(temporary, self._path_of(key))
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
                raise
        except OSError as error:
            raise CacheError(f"cache entry cannot be written to {self.path}: {error.strerror}") from error
        self._make_room(len(data))
        return len(data)

    def entries(self) -> tuple[CacheEntry, ...]:
        """All entries, the one not used for longest first."""
        found = [
            CacheEntry(path.name.removesuffix(_SUFFIX), status.st_size, status.st_mtime)
            for path, status in self._files()
            if path.name.endswith(_SUFFIX)
        ]
        return tuple(sorted(found, key=lambda entry: (entry.last_use, entry.key)))

    def remove(self, key: str) -> None:
        """Removes an entry; nothing happens when it is not there."""
        with contextlib.suppress(OSError):
            self._path_of(key).unlink()
        self._size_bytes = None

    def clear(self) -> None:
        """Removes all entries."""
        for entry in self.entries():
            self.remove(entry.key)

    def _path_of(self, key: str) -> Path:
        return self.path / f"{key}{_SUFFIX}"

    def _prepare(self) -> None:
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = self.path.stat()
        except OSError as error:
            raise CacheError(f"cache directory {self.path} cannot be made: {error.strerror}") from error
        problem = _distrust(status)
        if problem:
            raise CacheError(f"cache directory {self.path} is refused: {problem}; remove it or run chmod 700 on it")
        if not os.access(self.path, os.R_OK | os.W_OK | os.X_OK):
            raise CacheError(f"cache directory {self.path} cannot be written")

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        try:
            with os.scandir(self.path) as listing:
                for item in listing:
                    with contextlib.suppress(OSError):  # another process may have removed it since
                        yield Path(item.path), item.stat(follow_symlinks=False)
        except FileNotFoundError:
            return

    def _make_room(self, added_bytes: int) -> None:
        """Keeps the directory under its limit; looks at the disk once, and then only when the limit seems reached."""
        if self._size_bytes is None:
            self._remove_stale_temporaries()
            self._size_bytes = sum(entry.size_bytes for entry in self.entries())
        else:
            self._size_bytes += added_bytes
        if self._size_bytes <= self.size_limit_bytes:
            return
        entries = self.entries()
        remaining = sum(entry.size_bytes for entry in entries)
        goal = self.size_limit_bytes * 9 // 10
        for entry in entries:
            if remaining <= goal:
                break
            with contextlib.suppress(OSError):
                self._path_of(entry.key).unlink()
                self.evicted_entries += 1
            remaining -= entry.size_bytes
        self._size_bytes = remaining

    def _remove_stale_temporaries(self) -> None:
        """What a killed process left behind."""
        for path, status in self._files():
            if path.name.endswith(".tmp") and time.time() - status.st_mtime > _STALE_TEMPORARY_SECONDS:
                with contextlib.suppress(OSError):
                    path.unlink()


def _distrust(status: os.stat_result) -> str | None:
    """Why a file or directory could have been changed by somebody else, or None."""
    if not hasattr(os, "geteuid"):
        return None
    if status.st_uid != os.geteuid():
        return f"it belongs to user {status.st_uid}, not to user {os.geteuid()}"
    if status.st_mode & _OTHERS_MAY_WRITE:
        return f"others may write to it (mode {stat.S_IMODE(status.st_mode):04o})"
    return None


def _encode(code: ObjectCode) -> bytes:
    description = json.dumps({"exports": code.exports, "record": code.record}, separators=(",", ":")).encode()
    digest = hashlib.blake2b(description + code.image, digest_size=_DIGEST_BYTES).digest()
    return _HEADER.pack(_MAGIC, FORMAT, len(description), len(code.image), digest) + description + code.image


def _decode(data: bytes) -> ObjectCode | None:
    if len(data) < _HEADER.size:
        return None
    magic, version, description_bytes, image_bytes, digest = _HEADER.unpack_from(data)
    body = data[_HEADER.size :]
    if (magic, version, len(body)) != (_MAGIC, FORMAT, description_bytes + image_bytes):
        return None
    if hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest() != digest:
        return None
    description = json.loads(body[:description_bytes])
    return ObjectCode(body[description_bytes:], tuple(description["exports"]), description["record"])
