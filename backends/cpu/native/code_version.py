"""A stamp of the compiler's own source files: cached code of another version of the compiler is not used.

Sizes and modification times alone say nothing where installers give every file the same time, so contents count. They
are read once, though: the stamp is kept under all that the system says of the files, and no installer sets the time at
which it last changed what it says.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from functools import cache
from importlib.util import source_hash

import ml_dtypes
import numpy as np

import xlalite.backends
import xlalite.hlo
import xlalite.passes
from xlalite.backends.cpu.native.jit_options import JitOptions
from xlalite.backends.cpu.native.object_cache import SharedImages, default_cache
from xlalite.hlo.digest import blake2b


@cache
def code_version() -> str:
    """The stamp of what decides which code comes out: hlo, passes, backends; and NumPy, which folds constants."""
    roots = [root for package in (xlalite.hlo, xlalite.passes, xlalite.backends) for root in package.__path__]
    sources = [(root, _sources(root)) for root in roots]
    states = [
        f"{file.path} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"
        for _, files in sources
        for file in files
        for status in (file.stat(),)
    ]

    kept, state = SharedImages(default_cache(), JitOptions(), "(version of the compiler)"), "\n".join(states)
    digests = kept.find(state)
    if digests is None:
        start = time.perf_counter()
        digests = " ".join(_digest(*each) for each in sources).encode()
        kept.keep(state, digests, 1e3 * (time.perf_counter() - start))
    text = f"numpy {np.__version__} ml_dtypes {ml_dtypes.__version__} {digests.decode()}"
    return blake2b(text.encode(), digest_size=16).hexdigest()


def version_in_keys() -> str:
    """The stamp in keys of the cache; nothing where that is of this process alone, which has one compiler."""
    return code_version() if default_cache().directory is not None else ""


def sources_digest(root: str) -> str:
    """The stamp of all Python files below a directory, by their places and contents.

    Contents count by the hash by which Python itself tells whether a compiled file is that of its source.
    """
    return _digest(root, _sources(root))


def _digest(root: str, sources: Iterable[os.DirEntry[str]]) -> str:
    lines = []
    for source in sources:
        with open(source.path, "rb", buffering=0) as file:
            data = file.read()
        lines.append(f"{source.path.removeprefix(root)} {len(data)} {source_hash(data).hex()}\n")
    return blake2b("".join(lines).encode(), digest_size=16).hexdigest()


def _sources(root: str) -> list[os.DirEntry[str]]:
    """Python files, compiled ones where a package came without its sources, in the order of their places."""
    found, folders = list[os.DirEntry[str]](), [root]
    for folder in folders:
        with os.scandir(folder) as listing:
            for entry in listing:
                if entry.name.endswith((".py", ".pyc")) and not entry.is_dir():
                    found.append(entry)
                elif entry.name != "__pycache__" and entry.is_dir():
                    folders.append(entry.path)
    return sorted(found, key=lambda entry: entry.path)
