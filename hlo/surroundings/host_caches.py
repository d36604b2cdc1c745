"""How large the processor's caches are."""

from __future__ import annotations

import os
from functools import cache

FALLBACK_CACHE_BYTES = (32 << 10, 512 << 10, 8 << 20)
"""What is assumed of a machine that does not say."""


def system_file(path: str) -> bytes:
    """What stands in one of the small files in which Linux describes itself.

    Raises:
        OSError: It cannot be read.
    """
    with open(path, "rb", buffering=0) as file:
        return file.read()


@cache
def host_cache_bytes() -> tuple[int, int, int]:
    """L1 data, L2 and L3 from Linux's sysfs; constants stand in for what cannot be read."""
    sizes = list(FALLBACK_CACHE_BYTES)
    folder = "/sys/devices/system/cpu/cpu0/cache"
    try:
        entries = sorted(os.listdir(folder))
    except OSError:
        return FALLBACK_CACHE_BYTES
    for entry in entries:
        try:
            level = int(system_file(f"{folder}/{entry}/level"))
            kind = system_file(f"{folder}/{entry}/type").strip()
            size = system_file(f"{folder}/{entry}/size").decode().strip()
        except (OSError, ValueError):
            continue
        if kind != b"Instruction" and 1 <= level <= 3 and size[-1:] in "KMG" and size[:-1].isdigit():
            sizes[level - 1] = int(size[:-1]) << {"K": 10, "M": 20, "G": 30}[size[-1]]
    return (sizes[0], sizes[1], sizes[2])
