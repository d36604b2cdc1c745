"""Memory that starts where vector registers like it, as arrays of bytes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

ALIGNMENT_BYTES = 64

ByteArray = npt.NDArray[np.uint8]


def aligned_bytes(size: int) -> ByteArray:
    """So many bytes, not initialised, at an aligned address."""
    memory = np.empty(size + ALIGNMENT_BYTES, np.uint8)
    offset = -memory.ctypes.data % ALIGNMENT_BYTES
    return memory[offset : offset + size]


def aligned(data: ByteArray) -> ByteArray:
    """The bytes at an aligned address: the given ones if they lie at one, else a copy."""
    if data.ctypes.data % ALIGNMENT_BYTES == 0:
        return data
    copy = aligned_bytes(data.size)
    copy[:] = data
    return copy
