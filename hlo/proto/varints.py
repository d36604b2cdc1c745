"""Variable-length integers: one at a time, and many at once with NumPy."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

_LONGEST = 10
_MASK = (1 << 64) - 1
_FEW = 32


def encode_varint(value: int) -> bytes:
    """The bytes of one integer; a negative one as its 64-bit two's complement."""
    if 0 <= value < 128:
        return value.to_bytes(1, "little")
    value &= _MASK
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode_varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    """One unsigned 64-bit integer and the position behind it.

    Raises:
        ValueError: It does not end before `end`, or is longer than an integer can be.
    """
    result = shift = 0
    while position < end:
        byte = data[position]
        position += 1
        result |= (byte & 127) << shift
        if byte < 128:
            return result & _MASK, position
        shift += 7
        if shift >= 7 * _LONGEST:
            raise ValueError("an integer takes more than 10 bytes")
    raise ValueError("the data ends inside an integer")


def decode_varints(chunk: bytes) -> npt.NDArray[np.uint64]:
    """All integers of a packed field.

    Raises:
        ValueError: The last one does not end, or one is longer than an integer can be.
    """
    raw = np.frombuffer(chunk, np.uint8)
    if not raw.size:
        return np.zeros(0, np.uint64)
    if raw[-1] >= 128:
        raise ValueError("the data ends inside an integer")
    ends = np.flatnonzero(raw < 128)
    starts = np.concatenate((np.zeros(1, np.int64), ends[:-1] + 1))
    lengths = ends - starts + 1
    longest = int(lengths.max())
    if longest > _LONGEST:
        raise ValueError("an integer takes more than 10 bytes")
    values = (raw[starts] & 127).astype(np.uint64)
    for place in range(1, longest):
        longer = np.flatnonzero(lengths > place)
        values[longer] |= (raw[starts[longer] + place] & 127).astype(np.uint64) << np.uint64(7 * place)
    return values


def encode_varints(values: npt.NDArray[np.uint64] | Iterable[int]) -> bytes:
    """The bytes of a packed field."""
    if not isinstance(values, np.ndarray):
        return b"".join(map(encode_varint, values))
    if values.size <= _FEW:
        return b"".join(map(encode_varint, values.tolist()))
    lengths = np.ones(values.size, np.int64)
    for place in range(1, _LONGEST):
        lengths += values >> np.uint64(7 * place) != 0
    starts = np.cumsum(lengths) - lengths
    out = np.zeros(int(lengths.sum()), np.uint8)
    for place in range(int(lengths.max())):
        there = np.flatnonzero(lengths > place)
        low = (values[there] >> np.uint64(7 * place)).astype(np.uint8) & np.uint8(127)
        out[starts[there] + place] = low | ((lengths[there] > place + 1).astype(np.uint8) << 7)
    return out.tobytes()
