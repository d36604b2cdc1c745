"""How large the processor's caches are."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

FALLBACK_CACHE_BYTES = (32 << 10, 512 << 10, 8 << 20)
"""What is assumed of a machine that does not say."""


@cache
def host_cache_bytes() -> tuple[int, int, int]:
    """L1 data, L2 and L3 from Linux's sysfs; constants stand in for what cannot be read."""
    sizes = list(FALLBACK_CACHE_BYTES)
    folder = Path("/sys/devices/system/cpu/cpu0/cache")
    try:
        entries = sorted(os.listdir(folder))
    except OSError:
        return FALLBACK_CACHE_BYTES
    for entry in entries:
        try:
            level = int((folder / entry / "level").read_text())
            kind = (folder / entry / "type").read_text().strip()
            size = (folder / entry / "size").read_text().strip()
        except (OSError, ValueError):
            continue
        if kind != "Instruction" and 1 <= level <= 3 and size[-1:] in "KMG" and size[:-1].isdigit():
            sizes[level - 1] = int(size[:-1]) << {"K": 10, "M": 20, "G": 30}[size[-1]]
    return (sizes[0], sizes[1], sizes[2])
