"""Files under the names of TensorFlow's `tensorflow.python.lib.io.file_io`, which programs import."""

from __future__ import annotations

from typing import Any

from xlalite.files.gfile import (
    GFile,
    GFile as FileIO,
    PathLike,
    copy,
    exists as file_exists,
    find as get_matching_files,
    isdir as is_directory,
    listdir as list_directory,
    makedirs as recursive_create_dir,
    mkdir as create_dir,
    remove as delete_file,
    rename,
    rmtree as delete_recursively,
    stat,
    walk,
)


def read_file_to_string(filename: PathLike, binary_mode: bool = False) -> Any:
    """A file's text, or its bytes."""
    with GFile(filename, "rb" if binary_mode else "r") as file:
        return file.read()


def write_string_to_file(filename: PathLike, file_content: str) -> None:
    """Writes a text as a file."""
    with GFile(filename, "w") as file:
        file.write(file_content)


__all__ = [
    "FileIO",
    "copy",
    "create_dir",
    "delete_file",
    "delete_recursively",
    "file_exists",
    "get_matching_files",
    "is_directory",
    "list_directory",
    "read_file_to_string",
    "recursive_create_dir",
    "rename",
    "stat",
    "walk",
    "write_string_to_file",
]
