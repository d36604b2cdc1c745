"""Object code on disk: one file an entry, in a directory that nobody else can write.

Whoever can write into the directory can run code in this process, so the directory and every file must belong to the
user and be writable by no one else. Processes share the directory without locks: an entry appears by an atomic rename,
and whatever else stands under its name, a damaged file, another entry or no file at all, counts as absent.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import time
from collections.abc import Iterator
from dataclasses import field
from io import BufferedReader

from xlalite.backends.cpu.native.cache_file import FORMAT, read_entry, read_summary, write_entry
from xlalite.backends.cpu.native.object_code import CodeSummary, ObjectCode
from xlalite.hlo.errors import CacheError
from xlalite.hlo.records import dataclass

_SUFFIX = f".xlo{FORMAT}"
_ANY_SUFFIX = r"\.xlo\d+$"
_TEMPORARY_SUFFIX = ".xlo.tmp"
_STALE_TEMPORARY_SECONDS = 3600
_TOUCH_SECONDS = 60
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH

# A link is not followed, and opening a named pipe does not wait for a writer.
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_NEW_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """One file of the cache, for listings.

    Attributes:
        key: The key in hexadecimal.
        size_bytes: Size of the file.
        last_use: When it was last read or written, in seconds since the epoch (to the minute).
        summary: What it is the code of; empty for a file of another version of xlalite, or a damaged one.
    """

    key: str
    size_bytes: int
    last_use: float
    summary: CodeSummary = field(default_factory=CodeSummary)


class CacheDirectory:
    """A directory of object code with a size limit; the entries not used for longest go first."""

    def __init__(self, path: str | os.PathLike[str], size_limit_bytes: int) -> None:
        """Creates the directory when it is missing and checks that it is ours.

        Raises:
            CacheError: It cannot be made, written, or trusted; the message says which.
        """
        self.path = os.fspath(path).rstrip(os.sep) or os.sep
        self.size_limit_bytes = size_limit_bytes
        self.evicted_entries = 0
        self._size_bytes: int | None = None
        self._prepare()

    def load(self, key: str) -> ObjectCode | None:
        """The entry, or None when there is none. A file that is no entry of this key is removed and counts as none.

        Raises:
            CacheError: Something else was in its place; the message says what.
        """
        path = self._path_of(key)
        try:
            file = _open(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CacheError(f"cache entry {path} cannot be opened: {error.strerror}") from error
        with file:
            status = os.fstat(file.fileno())
            try:
                code = _read(file, status, key)
            except OSError as error:
                self.remove(key)
                raise CacheError(f"cache entry {path} was removed: {error}") from error
        if time.time() - status.st_mtime > _TOUCH_SECONDS:
            with contextlib.suppress(OSError):
                os.utime(path)
        return code

    def store(self, key: str, code: ObjectCode) -> int:
        """Writes the entry, makes room if needed, and gives the bytes written.

        Raises:
            CacheError: The file cannot be written (disk full, directory gone, ...), or is larger than the cache.
        """
        if code.size_bytes > self.size_limit_bytes:
            raise CacheError(
                f"code of {code.summary.name or key} is not kept: its {code.size_bytes} bytes are more than the cache "
                f"may hold ({self.size_limit_bytes})"
            )
        # As by `tempfile`, which takes as long to import as a small program to compile.
        temporary = os.path.join(self.path, f"{os.urandom(8).hex()}{_TEMPORARY_SUFFIX}")
        try:
            descriptor = os.open(temporary, _NEW_FLAGS, 0o600)
            try:
                with open(descriptor, "wb") as file:
                    size = write_entry(file, key, code)
                os.replace(temporary, self._path_of(key))
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
                raise
        except OSError as error:
            raise CacheError(f"cache entry cannot be written to {self.path}: {error.strerror}") from error
        self._make_room(size)
        return size

    def entries(self) -> tuple[CacheEntry, ...]:
        """All entries, those of other versions of xlalite too, the one not used for longest first."""
        return tuple(
            CacheEntry(os.path.basename(path).partition(".")[0], status.st_size, status.st_mtime, _summary(path))
            for path, status in self._entry_files()
        )

    def remove(self, key: str) -> None:
        """Removes an entry; nothing happens when it is not there."""
        with contextlib.suppress(OSError):
            os.unlink(self._path_of(key))
        self._size_bytes = None

    def clear(self) -> None:
        """Removes all entries."""
        for path, _ in self._entry_files():
            with contextlib.suppress(OSError):
                os.unlink(path)
        self._size_bytes = None

    def _path_of(self, key: str) -> str:
        return os.path.join(self.path, f"{key}{_SUFFIX}")

    def _prepare(self) -> None:
        try:
            make_private(self.path)
            link, status = os.lstat(self.path), os.stat(self.path)
        except OSError as error:
            raise CacheError(f"cache directory {self.path} cannot be made: {error.strerror}") from error
        problem = _distrust_link(link) or _distrust(status)
        if problem:
            raise CacheError(f"cache directory {self.path} is refused: {problem}; remove it or run chmod 700 on it")
        if not os.access(self.path, os.R_OK | os.W_OK | os.X_OK):
            raise CacheError(f"cache directory {self.path} cannot be written")

    def _entry_files(self) -> list[tuple[str, os.stat_result]]:
        found = [(path, status) for path, status in self._files() if re.search(_ANY_SUFFIX, path)]
        return sorted(found, key=lambda one: (one[1].st_mtime, one[0]))

    def _files(self) -> Iterator[tuple[str, os.stat_result]]:
        try:
            with os.scandir(self.path) as listing:
                for item in listing:
                    with contextlib.suppress(OSError):  # another process may have removed it since
                        yield item.path, item.stat(follow_symlinks=False)
        except FileNotFoundError:
            return

    def _make_room(self, added_bytes: int) -> None:
        """Keeps the directory under its limit; looks at the disk once, and then only when the limit seems reached."""
        if self._size_bytes is None:
            self._remove_stale_temporaries()
            self._size_bytes = sum(status.st_size for _, status in self._entry_files())
        else:
            self._size_bytes += added_bytes
        if self._size_bytes <= self.size_limit_bytes:
            return
        files = self._entry_files()
        remaining = sum(status.st_size for _, status in files)
        goal = self.size_limit_bytes * 9 // 10
        for path, status in files[:-1]:  # the last one has just been written
            if remaining <= goal:
                break
            with contextlib.suppress(OSError):
                os.unlink(path)
                self.evicted_entries += 1
            remaining -= status.st_size
        self._size_bytes = remaining

    def _remove_stale_temporaries(self) -> None:
        """What a killed process left behind."""
        for path, status in self._files():
            if path.endswith(_TEMPORARY_SUFFIX) and time.time() - status.st_mtime > _STALE_TEMPORARY_SECONDS:
                with contextlib.suppress(OSError):
                    os.unlink(path)


def make_private(path: str) -> None:
    """Makes a directory, and those around it, that nobody else can use; what there is already stays as it is.

    Raises:
        OSError: It cannot be made, or is something else.
    """
    parent = os.path.dirname(path)
    try:
        if parent and not os.path.exists(parent):
            os.makedirs(parent, exist_ok=True)
        os.mkdir(path, 0o700)
    except OSError:
        if not os.path.isdir(path):
            raise


def _distrust(status: os.stat_result) -> str | None:
    """Why a file or directory could have been changed by somebody else, or None."""
    if not hasattr(os, "geteuid"):
        return None
    if status.st_uid != os.geteuid():
        return f"it belongs to user {status.st_uid}, not to user {os.geteuid()}"
    if status.st_mode & _OTHERS_MAY_WRITE:
        return f"others may write to it (mode {stat.S_IMODE(status.st_mode):04o})"
    return None


def _distrust_link(status: os.stat_result) -> str | None:
    """Why a link to a directory could lead where somebody else wants, or None."""
    if not hasattr(os, "geteuid") or not stat.S_ISLNK(status.st_mode) or status.st_uid in (0, os.geteuid()):
        return None
    return f"it is a link of user {status.st_uid}"


def _open(path: str) -> BufferedReader:
    """A file, opened for reading; nothing else is.

    Raises:
        OSError: It is no file, or cannot be read.
    """
    descriptor = os.open(path, _OPEN_FLAGS)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no file")
    return open(descriptor, "rb")


def _read(file: BufferedReader, status: os.stat_result, key: str) -> ObjectCode:
    """The code in a file.

    Raises:
        OSError: It is not to be trusted (`CacheError`), or cannot be read.
    """
    problem = _distrust(status)
    if problem:
        raise CacheError(problem)
    return read_entry(file, status.st_size, key)


def _summary(path: str) -> CodeSummary:
    if path.endswith(_SUFFIX):
        with contextlib.suppress(OSError), _open(path) as file:
            return read_summary(file)
    return CodeSummary()
