"""PNG files of arrays, for summaries: rows as they are, compressed as a whole."""

from __future__ import annotations

import struct
import zlib
from typing import Any, Final

import numpy as np
import numpy.typing as npt

_COLOR_TYPES: Final = {1: 0, 2: 4, 3: 2, 4: 6}


def encode_png(image: npt.NDArray[Any]) -> bytes:
    """A `[height, width, channels]` array of 8- or 16-bit numbers as a PNG file; there are 1 to 4 channels."""
    height, width, channels = image.shape
    depth = 8 * image.dtype.itemsize
    rows = np.ascontiguousarray(image, image.dtype.newbyteorder(">")).reshape(height, -1).view(np.uint8)
    filtered = np.concatenate([np.zeros((height, 1), np.uint8), rows.reshape(height, -1)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, depth, _COLOR_TYPES[channels], 0, 0, 0)
    body = zlib.compress(filtered.tobytes())
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", body) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
