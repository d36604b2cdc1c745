"""A stamp of the compiler's own source files: cached code of another version of the compiler is not used.

Sizes and modification times of the files are enough and cost a millisecond where reading them would cost ten.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import xlalite.backends
import xlalite.hlo
import xlalite.passes


@cache
def code_version() -> str:
    """The stamp of the rooms that decide what code comes out: hlo, passes and backends."""
    digest = hashlib.blake2b(digest_size=16)
    for package in (xlalite.hlo, xlalite.passes, xlalite.backends):
        for root in package.__path__:
            for path in sorted(Path(root).rglob("*.py")):
                status = path.stat()
                digest.update(f"{path.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()
