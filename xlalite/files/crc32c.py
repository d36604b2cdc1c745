"""CRC-32C (Castagnoli), the checksum of TensorFlow's files, many bytes at a time with NumPy.

The state after some words is a sum (exclusive or) of each word moved on by the words behind it, and moving on is
linear. So long data is a table of rows: every column is summed by itself, a row at a time, and the columns are joined
in pairs.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

_POLYNOMIAL: Final = 0x82F63B78
_MASK_DELTA: Final = 0xA282EAD8
_LANES: Final = 1024
_LONG: Final = 4 * 4 * _LANES

Words = npt.NDArray[np.uint32]


def crc32c(data: bytes | bytearray | memoryview, before: int = 0) -> int:
    """The checksum of some data, perhaps behind other data whose checksum is `before`."""
    raw = memoryview(data).cast("B")
    state = before ^ 0xFFFFFFFF
    whole = len(raw) - len(raw) % (4 * _LANES) if len(raw) >= _LONG else 0
    if whole:
        state = _long(np.frombuffer(raw[:whole], "<u4").reshape(-1, _LANES), state)
    table = _byte_table()
    for byte in bytes(raw[whole:]):
        state = table[(state ^ byte) & 255] ^ (state >> 8)
    return state ^ 0xFFFFFFFF


def masked(crc: int) -> int:
    """The checksum as it is stored: data that holds checksums would make poor ones otherwise."""
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF


def _long(rows: Words, state: int) -> int:
    columns = rows[0].copy()
    columns[0] ^= np.uint32(state)
    down = _tables(_LANES)
    for row in rows[1:]:
        columns = _moved(down, columns) ^ row
    while columns.size > 1:
        half = columns.size // 2
        columns = _moved(_tables(half), columns[:half]) ^ columns[half:]
    return int(_moved(_tables(1), columns)[0])


def _moved(tables: Words, states: Words) -> Words:
    """States moved on, by the tables of how far."""
    parts = np.ascontiguousarray(states).view(np.uint8).reshape(-1, 4)
    low, high = tables[0][parts[:, 0]] ^ tables[1][parts[:, 1]], tables[2][parts[:, 2]] ^ tables[3][parts[:, 3]]
    return np.asarray(low ^ high, np.uint32)


@cache
def _tables(words: int) -> Words:
    """What each value of each byte of a state becomes behind so many words, a power of two, of zeros."""
    if words > 1:
        half = _tables(words // 2)
        return _moved(half, half.ravel()).reshape(4, 256)
    bytes_in_place = (np.arange(256, dtype=np.uint32) << np.arange(0, 32, 8, dtype=np.uint32)[:, None]).astype(
        np.uint32
    )
    table, states = np.array(_byte_table(), np.uint32), bytes_in_place
    for _ in range(4):
        states = table[states & 255] ^ (states >> np.uint32(8))
    return states


@cache
def _byte_table() -> tuple[int, ...]:
    states = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        states = (states >> np.uint32(1)) ^ np.where(states & 1, np.uint32(_POLYNOMIAL), np.uint32(0))
    return tuple(states.tolist())
