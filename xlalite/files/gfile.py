"""Files and folders under the names of `tf.gfile` and `tf.io.gfile`; errors are TensorFlow's."""

from __future__ import annotations

import os
import stat as stat_module
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import IO, Any

from xlalite.framework.graph.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    NotFoundError,
    PermissionDeniedError,
)

PathLike = str | bytes | os.PathLike[str]


class GFile:
    """A file, opened at its first use: text, or bytes if `b` is in the mode."""

    def __init__(self, name: PathLike, mode: str = "r") -> None:
        """Names the file."""
        self._name = os.fsdecode(name)
        self._mode = mode
        self._file: IO[Any] | None = None

    @property
    def name(self) -> str:
        """The path."""
        return self._name

    @property
    def mode(self) -> str:
        """How it is opened."""
        return self._mode

    @property
    def _opened(self) -> IO[Any]:
        if self._file is None:
            with translated_errors(self._name):
                self._file = open(self._name, self._mode)  # noqa: SIM115  # closed by `close`
        return self._file

    def read(self, n: int = -1) -> Any:
        """The rest of the file, or so much of it."""
        return self._opened.read(n)

    def write(self, file_content: Any) -> None:
        """Appends; text becomes bytes in a binary file, and bytes text in another."""
        if "b" in self._mode:
            self._opened.write(file_content.encode() if isinstance(file_content, str) else file_content)
        else:
            self._opened.write(file_content if isinstance(file_content, str) else file_content.decode())

    def readline(self) -> Any:
        """The next line, with its end."""
        return self._opened.readline()

    def readlines(self) -> list[Any]:
        """All further lines."""
        return self._opened.readlines()

    def seek(self, offset: int, whence: int = 0) -> None:
        """Moves to a place."""
        self._opened.seek(offset, whence)

    def tell(self) -> int:
        """The current place."""
        return self._opened.tell()

    def size(self) -> int:
        """The number of bytes."""
        with translated_errors(self._name):
            return os.path.getsize(self._name)

    def flush(self) -> None:
        """Makes what was written visible to others."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Closes the file; closing again does nothing."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __del__(self) -> None:
        """Programs read files without closing them."""
        self.close()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._opened)

    def __enter__(self) -> GFile:
        if "r" not in self._mode:
            assert self._opened is not None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def exists(path: PathLike) -> bool:
    """Whether there is a file or folder."""
    return os.path.exists(path)


def isdir(path: PathLike) -> bool:
    """Whether there is a folder."""
    return os.path.isdir(path)


def listdir(path: PathLike) -> list[str]:
    """The names in a folder."""
    with translated_errors(path):
        return [os.fsdecode(each) for each in os.listdir(path)]


def makedirs(path: PathLike) -> None:
    """Makes a folder and those around it, if they are missing."""
    with translated_errors(path):
        os.makedirs(path, exist_ok=True)


def mkdir(path: PathLike) -> None:
    """Makes a folder in one that exists."""
    with translated_errors(path):
        os.mkdir(path)


def remove(path: PathLike) -> None:
    """Removes a file."""
    with translated_errors(path):
        os.remove(path)


def rmtree(path: PathLike) -> None:
    """Removes a folder and all that is in it."""
    import shutil  # which brings every compression that there is

    with translated_errors(path):
        shutil.rmtree(path)


def rename(src: PathLike, dst: PathLike, overwrite: bool = False) -> None:
    """Renames a file or folder.

    Raises:
        AlreadyExistsError: there is one of that name and `overwrite` is not set.
    """
    _require_free(dst, overwrite)
    with translated_errors(src):
        os.replace(src, dst)


def copy(src: PathLike, dst: PathLike, overwrite: bool = False) -> None:
    """Copies a file.

    Raises:
        AlreadyExistsError: there is one of that name and `overwrite` is not set.
    """
    import shutil

    _require_free(dst, overwrite)
    with translated_errors(src):
        shutil.copyfile(os.fsdecode(src), os.fsdecode(dst))


def find(pattern: Any) -> list[str]:
    """The paths that fit a pattern, or any of several, in order."""
    import glob

    patterns = pattern if isinstance(pattern, list | tuple) else [pattern]
    return sorted(path for each in patterns for path in glob.glob(os.fsdecode(each)))


def walk(top: PathLike, topdown: bool = True, onerror: Any = None) -> Iterator[tuple[str, list[str], list[str]]]:
    """Each folder with the folders and files in it."""
    return os.walk(os.fsdecode(top), topdown, onerror)


def stat(path: PathLike) -> Any:
    """What the file system knows of a file; `length` is its size."""
    with translated_errors(path):
        return _Statistics(os.stat(path))


class _Statistics:
    def __init__(self, found: os.stat_result) -> None:
        self.length = found.st_size
        self.mtime_nsec = found.st_mtime_ns
        self.is_directory = stat_module.S_ISDIR(found.st_mode)


def _require_free(path: PathLike, overwrite: bool) -> None:
    if not overwrite and os.path.exists(path):
        raise AlreadyExistsError(None, None, f"{os.fsdecode(path)}: file already exists")


@contextmanager
def translated_errors(path: PathLike) -> Iterator[None]:
    """Errors of the operating system as TensorFlow's."""
    try:
        yield
    except FileNotFoundError as error:
        raise NotFoundError(None, None, f"{os.fsdecode(path)}; {error.strerror}") from None
    except FileExistsError as error:
        raise AlreadyExistsError(None, None, f"{os.fsdecode(path)}; {error.strerror}") from None
    except PermissionError as error:
        raise PermissionDeniedError(None, None, f"{os.fsdecode(path)}; {error.strerror}") from None
    except (IsADirectoryError, NotADirectoryError) as error:
        raise FailedPreconditionError(None, None, f"{os.fsdecode(path)}; {error.strerror}") from None
