"""Numbers of buckets that strings fall into, the same everywhere and always: FarmHash's and MurmurHash's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from xlalite.framework.graph.dtypes import int64, string
from xlalite.framework.graph.errors import InvalidArgumentError
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.meaning.host import HostContext, HostValue
from xlalite.ops.helpers.declare import declare_on_host
from xlalite.ops.helpers.shape_rules import require_type

_K0: Final = 0xC3A5C85C97CB3127
_K1: Final = 0xB492B66FBE98F273
_K2: Final = 0x9AE16A3B2F90404F
_MURMUR: Final = 0xC6A4A7935BD1E995
_ALL: Final = (1 << 64) - 1
Pair = tuple[int, int]


def fingerprint(text: bytes) -> int:
    """FarmHash's 64-bit fingerprint, which never changes between its versions."""
    size = len(text)
    if size <= 16:
        return _up_to_16(text)
    if size <= 32:
        return _mixed(*_ends(text, _K1), _K2 + size * 2)
    if size <= 64:
        return _up_to_64(text)
    return _long(text)


def _word(text: bytes, at: int, size: int = 8) -> int:
    return int.from_bytes(text[at : at + size], "little")


def _turned(value: int, by: int) -> int:
    value &= _ALL
    return (value >> by | value << (64 - by)) & _ALL


def _shifted(value: int) -> int:
    value &= _ALL
    return value ^ value >> 47


def _mixed(u: int, v: int, factor: int) -> int:
    a = _shifted((u ^ v) * factor)
    return _shifted((v ^ a) * factor) * factor & _ALL


def _up_to_16(text: bytes) -> int:
    size = len(text)
    factor = _K2 + size * 2
    if size >= 8:
        a, b = _word(text, 0) + _K2, _word(text, size - 8)
        return _mixed((_turned(b, 37) * factor + a) & _ALL, (_turned(a, 25) + b) * factor & _ALL, factor)
    if size >= 4:
        return _mixed(size + (_word(text, 0, 4) << 3), _word(text, size - 4, 4), factor)
    if size > 0:
        y, z = text[0] + (text[size >> 1] << 8), size + (text[-1] << 2)
        return _shifted(y * _K2 ^ z * _K0) * _K2 & _ALL
    return _K2


def _ends(text: bytes, first_factor: int) -> Pair:
    """The first and the last 16 bytes."""
    size = len(text)
    factor = _K2 + size * 2
    a, b = _word(text, 0) * first_factor, _word(text, 8)
    c, d = _word(text, size - 8) * factor, _word(text, size - 16) * _K2
    return (_turned(a + b, 43) + _turned(c, 30) + d) & _ALL, (a + _turned(b + _K2, 18) + c) & _ALL


def _up_to_64(text: bytes) -> int:
    size = len(text)
    factor = _K2 + size * 2
    y, rest = _ends(text, _K2)
    z = _mixed(y, rest, factor)
    e, f = _word(text, 16) * factor, _word(text, 24)
    g, h = (y + _word(text, size - 32)) * factor, (z + _word(text, size - 24)) * factor
    first = _word(text, 0) * _K2
    return _mixed((_turned(e + f, 43) + _turned(g, 30) + h) & _ALL, (e + _turned(f + first, 18) + g) & _ALL, factor)


def _weak(text: bytes, at: int, a: int, b: int) -> Pair:
    """32 bytes and two numbers as two."""
    w, x, y, z = (_word(text, at + 8 * i) for i in range(4))
    a += w
    b = _turned(b + a + z, 21)
    c = a
    a += x + y
    return (a + z) & _ALL, (b + _turned(a, 44) + c) & _ALL


def _long(text: bytes) -> int:
    size = len(text)
    x, y = 81 * _K2 + _word(text, 0), 81 * _K1 + 113
    z = _shifted(y * _K2 + 113) * _K2
    v: Pair = 0, 0
    w: Pair = 0, 0
    end = (size - 1) // 64 * 64
    for at in range(0, end, 64):
        x, y, z, v, w = _block(text, at, x, y, z, v, w, _K1, 1)
    factor = _K1 + ((z & 0xFF) << 1)
    w = w[0] + ((size - 1) & 63), w[1]
    v = v[0] + w[0], v[1]
    w = w[0] + v[0], w[1]
    x, y, z, v, w = _block(text, size - 64, x, y, z, v, w, factor, 9)
    first = _mixed(v[0], w[0], factor) + _shifted(y) * _K0 + z
    return _mixed(first & _ALL, (_mixed(v[1], w[1], factor) + x) & _ALL, factor)


def _block(
    text: bytes, at: int, x: int, y: int, z: int, v: Pair, w: Pair, factor: int, weight: int
) -> tuple[int, int, int, Pair, Pair]:
    """64 bytes more."""
    x = _turned(x + y + v[0] + _word(text, at + 8), 37) * factor
    y = _turned(y + v[1] + _word(text, at + 48), 42) * factor
    x = (x ^ w[1] * weight) & _ALL
    y += v[0] * weight + _word(text, at + 40)
    z = _turned(z + w[0], 33) * factor
    v = _weak(text, at, v[1] * factor, x + w[0])
    w = _weak(text, at + 32, z + w[1], y + _word(text, at + 16))
    return z & _ALL, y & _ALL, x, v, w


def murmur(text: bytes) -> int:
    """MurmurHash64A, with the seed that TensorFlow takes."""
    size = len(text)
    h = 0xDECAFCAFFE ^ size * _MURMUR & _ALL
    whole = size // 8 * 8
    for at in range(0, whole, 8):
        h = (h ^ _shifted(_word(text, at) * _MURMUR) * _MURMUR) * _MURMUR & _ALL
    if whole < size:
        h = (h ^ _word(text, whole)) * _MURMUR & _ALL
    return _shifted(_shifted(h) * _MURMUR)


def _infer(op: Operation) -> Sequence[OutputType]:
    require_type(op.inputs[0], {string}, "input")
    if op.get_attr("num_buckets") < 1:
        raise InvalidArgumentError(None, op, f"num_buckets must be positive, found {op.get_attr('num_buckets')}")
    return [(int64, op.inputs[0].shape)]


def _declare(name: str, hashed: Callable[[bytes], int], own: str) -> None:
    def kernel(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
        count, texts = op.get_attr("num_buckets"), np.asarray(inputs[0])
        return [np.array([hashed(each) % count for each in texts.ravel()], np.int64).reshape(texts.shape)]

    declare_on_host(name, (own,), _infer, kernel, "it works on text", attrs=("num_buckets",))


_declare("StringToHashBucketFast", fingerprint, "input")
_declare("StringToHashBucket", murmur, "string_tensor")
