"""A stamp of the compiler's own source files: cached code of another version of the compiler is not used.

The files are read, which costs a process some ten milliseconds once: sizes and modification times say nothing where
installers give every file the same time.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import cache

import ml_dtypes
import numpy as np

import xlalite.backends
import xlalite.hlo
import xlalite.passes


@cache
def code_version() -> str:
    """The stamp of what decides which code comes out: hlo, passes, backends; and NumPy, which folds constants."""
    roots = [root for package in (xlalite.hlo, xlalite.passes, xlalite.backends) for root in package.__path__]
    parts = (f"numpy {np.__version__}", f"ml_dtypes {ml_dtypes.__version__}", *map(sources_digest, roots))
    return hashlib.blake2b(" ".join(parts).encode(), digest_size=16).hexdigest()


def sources_digest(root: str) -> str:
    """The stamp of all Python files below a directory, by their places and contents."""
    digest = hashlib.blake2b(digest_size=16)
    for path in _sources(root):
        with open(path, "rb", buffering=0) as file:
            data = file.read()
        digest.update(f"{os.path.relpath(path, root)} {len(data)}\n".encode())
        digest.update(data)
    return digest.hexdigest()


def _sources(directory: str) -> Iterator[str]:
    """Python files, compiled ones where a package came without its sources, in the order of their names."""
    with os.scandir(directory) as listing:
        entries = sorted(listing, key=lambda entry: entry.name)
    for entry in entries:
        if entry.is_dir():
            if entry.name != "__pycache__":
                yield from _sources(entry.path)
        elif entry.name.endswith((".py", ".pyc")):
            yield entry.path
