"""Counter-based random bits: Threefry-2x32 and Philox-4x32, in the order in which XLA lays them out.

Both are from Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). A state is a key
and a counter; block i of the output encrypts counter + i with the key, and the counter moves on by the blocks used.
"""

from __future__ import annotations

import math

import numpy as np

from xlalite.hlo.numerics.rounding import AnyArray

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def threefry_bits(key: int, counter: int, dims: tuple[int, ...], bits: int) -> tuple[AnyArray, int]:
    """Random unsigned integers of 8, 16, 32 or 64 bits, and the next counter.

    A block of two words is one integer of 64 bits. Of narrower ones it is two, which are neighbours along the first
    even dimension of the result (or the largest, when none is even).
    """
    if bits == 64:
        first, second = _threefry_blocks(key, counter, math.prod(dims))
        return (first | (second << _HALF)).reshape(dims), (counter + math.prod(dims)) % 2**64
    shape = dims or (1,)
    split = _split_dimension(shape)
    half = tuple(-(-size // 2) if dimension == split else size for dimension, size in enumerate(shape))
    first, second = _threefry_blocks(key, counter, math.prod(half))
    pairs = np.stack([first.reshape(half), second.reshape(half)], axis=split + 1)
    doubled = tuple(2 * size if dimension == split else size for dimension, size in enumerate(half))
    words = pairs.reshape(doubled)[tuple(slice(0, size) for size in shape)].reshape(dims)
    return words.astype(f"u{bits // 8}"), (counter + math.prod(half)) % 2**64


def _split_dimension(dims: tuple[int, ...]) -> int:
    for dimension, size in enumerate(dims):
        if size % 2 == 0:
            return dimension
    return dims.index(max(dims))


def _threefry_blocks(key: int, counter: int, count: int) -> tuple[AnyArray, AnyArray]:
    """Both words of each block, as 64-bit integers."""
    key0, key1 = np.uint64(key & 0xFFFFFFFF), np.uint64(key >> 32)
    keys = (key0, key1, key0 ^ key1 ^ np.uint64(0x1BD11BDA))
    position = np.arange(count, dtype=np.uint64) + np.uint64(counter)
    x0, x1 = ((position & _LOW) + keys[0]) & _LOW, ((position >> _HALF) + keys[1]) & _LOW
    for group in range(5):
        for rotation in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            x0 = (x0 + x1) & _LOW
            x1 = (((x1 << np.uint64(rotation)) | (x1 >> np.uint64(32 - rotation))) & _LOW) ^ x0
        x0 = (x0 + keys[(group + 1) % 3]) & _LOW
        x1 = (x1 + keys[(group + 2) % 3] + np.uint64(group + 1)) & _LOW
    return x0, x1


def philox_bits(key: int, counter: int, dims: tuple[int, ...], bits: int) -> tuple[AnyArray, int]:
    """Random unsigned integers of 8, 16, 32 or 64 bits in row-major order, and the next counter (of 128 bits).

    A block of four words is two integers of 64 bits, or four narrower ones.
    """
    total = math.prod(dims)
    blocks = -(-total // (2 if bits == 64 else 4))
    words = _philox_blocks(key, counter, blocks)
    if bits == 64:
        words = words[:, 0::2] | (words[:, 1::2] << _HALF)
    return words.reshape(-1)[:total].reshape(dims).astype(f"u{bits // 8}"), (counter + blocks) % 2**128


def _philox_blocks(key: int, counter: int, count: int) -> AnyArray:
    """The four words of each block, as 64-bit integers: [count, 4]."""
    low = np.arange(count, dtype=np.uint64) + np.uint64(counter % 2**64)
    high = np.uint64(counter >> 64) + (low < np.uint64(counter % 2**64)).astype(np.uint64)
    x0, x1, x2, x3 = low & _LOW, low >> _HALF, high & _LOW, high >> _HALF
    key0, key1 = key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        product0, product1 = x0 * np.uint64(0xD2511F53), x2 * np.uint64(0xCD9E8D57)
        x0, x2 = (product1 >> _HALF) ^ x1 ^ np.uint64(key0), (product0 >> _HALF) ^ x3 ^ np.uint64(key1)
        x1, x3 = product1 & _LOW, product0 & _LOW
        key0, key1 = (key0 + 0x9E3779B9) % 2**32, (key1 + 0xBB67AE85) % 2**32
    return np.stack([x0, x1, x2, x3], axis=-1)
