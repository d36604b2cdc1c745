"""Expresses rng-bit-generator by integer arithmetic, bit for bit as the evaluator computes it."""

from __future__ import annotations

import math
from typing import ClassVar

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.random import RandomAlgorithm
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape
from xlalite.passes.rewriting.expander import OpExpander

_BY_BITS = {8: DType.U8, 16: DType.U16, 32: DType.U32, 64: DType.U64}
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


@dataclass(frozen=True, slots=True)
class RngBitGeneratorExpander(OpExpander):
    """rng-bit-generator -> Threefry-2x32 or Philox-4x32 (also for rng_default) in u32 and u64 operations.

    Both are from Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
    """

    name: ClassVar[str] = "rng-bit-generator-expander"
    opcodes: ClassVar[frozenset[str]] = frozenset({"rng-bit-generator"})

    def expand(self, builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...]) -> Handle:
        """Builds (new state, bits)."""
        result = instruction.shape.elements[1]
        state = _State(builder, operands[0])
        if instruction.attrs.algorithm is RandomAlgorithm.THREE_FRY:
            words, used = _threefry(state, result)
            after = state.moved_on(used, wide=False)
        else:
            words, used = _philox(state, result)
            after = state.moved_on(used, wide=True)
        unsigned = builder.reshape(words, result.dims)
        bits = unsigned
        if result.dtype is not unsigned.dtype:
            bits = builder.op("bitcast-convert", (unsigned,), shape=Shape.array(result.dtype, result.dims))
        return builder.tuple([after, bits])


class _State:
    """The words of a state: key, counter, and perhaps the upper half of the counter."""

    def __init__(self, builder: Builder, state: Handle) -> None:
        self.builder = builder
        self.state = state
        self.count = state.dims[0]
        words = builder.scalars(state)
        self.key, self.low = words[0], words[1]
        self.high = words[2] if self.count == 3 else self.key

    def moved_on(self, blocks: int, *, wide: bool) -> Handle:
        """The state after `blocks` blocks: the counter has two words when `wide` and the state holds them."""
        low = self.low + blocks
        parts = [self.key, low]
        if self.count == 3:
            carry = self.builder.convert(self.builder.compare(low, self.low, "LT"), DType.U64)
            parts.append(self.high + carry if wide else self.high)
        vectors = [self.builder.reshape(part, (1,)) for part in parts]
        return self.builder.concatenate(vectors, 0)

    def lower(self, word: Handle) -> Handle:
        return self.builder.convert(word, DType.U32)

    def upper(self, word: Handle) -> Handle:
        return self.builder.convert(self._shifted(word), DType.U32)

    def _shifted(self, word: Handle) -> Handle:
        return self.builder.op("shift-right-logical", self.builder.match(word, 32))

    def joined(self, low: Handle, high: Handle) -> Handle:
        """The u64 with two u32 halves."""
        wide_low, wide_high = self.builder.convert(low, DType.U64), self.builder.convert(high, DType.U64)
        return wide_low | self.builder.op("shift-left", self.builder.match(wide_high, 32))


def _threefry(state: _State, result: Shape) -> tuple[Handle, int]:
    """The words in the result's order, flat or in its sizes, and the number of blocks."""
    builder, bits = state.builder, result.dtype.bits
    if bits == 64:
        first, second = _threefry_blocks(state, result.dims)
        return state.joined(first, second), result.element_count
    shape = result.dims or (1,)
    split = next((d for d, size in enumerate(shape) if size % 2 == 0), None)
    if split is None:
        split = shape.index(max(shape))
    half = tuple(-(-size // 2) if dimension == split else size for dimension, size in enumerate(shape))
    pair = (*half[: split + 1], 1, *half[split + 1 :])
    blocks = [builder.reshape(block, pair) for block in _threefry_blocks(state, half)]
    joined = builder.concatenate(blocks, split + 1)
    doubled = tuple(2 * size if dimension == split else size for dimension, size in enumerate(half))
    words = builder.reshape(joined, doubled)
    cut = builder.slice(words, [0] * len(shape), shape)
    return builder.convert(cut, _BY_BITS[bits]), math.prod(half)


def _threefry_blocks(state: _State, dims: tuple[int, ...]) -> tuple[Handle, Handle]:
    builder, count = state.builder, math.prod(dims)
    key0, key1 = state.lower(state.key), state.upper(state.key)
    keys = (key0, key1, key0 ^ key1 ^ 0x1BD11BDA)
    position = builder.iota(DType.U64, (count,), 0) + builder.broadcast(state.low, (count,))
    spread = [builder.broadcast(key, (count,)) for key in keys]
    x0, x1 = state.lower(position) + spread[0], state.upper(position) + spread[1]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x0 = x0 + x1
            left = builder.op("shift-left", builder.match(x1, rotation))
            x1 = (left | builder.op("shift-right-logical", builder.match(x1, 32 - rotation))) ^ x0
        x0 = x0 + spread[(group + 1) % 3]
        x1 = x1 + spread[(group + 2) % 3] + (group + 1)
    return builder.reshape(x0, dims), builder.reshape(x1, dims)


def _philox(state: _State, result: Shape) -> tuple[Handle, int]:
    """The words flat in the result's order, and the number of blocks."""
    builder, bits, total = state.builder, result.dtype.bits, result.element_count
    per_block = 2 if bits == 64 else 4
    count = -(-total // per_block)
    words = _philox_blocks(state, count)
    if bits == 64:
        words = (state.joined(words[0], words[1]), state.joined(words[2], words[3]))
    columns = [builder.reshape(word, (count, 1)) for word in words]
    flat = builder.reshape(builder.concatenate(columns, 1), (count * per_block,))
    return builder.convert(builder.slice(flat, [0], [total]), _BY_BITS[bits]), count


def _philox_blocks(state: _State, count: int) -> tuple[Handle, ...]:
    builder = state.builder
    start = builder.broadcast(state.low, (count,))
    low = builder.iota(DType.U64, (count,), 0) + start
    carry = builder.convert(builder.compare(low, start, "LT"), DType.U64)
    high = builder.broadcast(state.high, (count,)) + carry
    x = [state.lower(low), state.upper(low), state.lower(high), state.upper(high)]
    key0, key1 = state.lower(state.key), state.upper(state.key)
    for _ in range(10):
        product0 = builder.convert(x[0], DType.U64) * 0xD2511F53
        product1 = builder.convert(x[2], DType.U64) * 0xCD9E8D57
        x = [
            state.upper(product1) ^ x[1] ^ builder.broadcast(key0, (count,)),
            state.lower(product1),
            state.upper(product0) ^ x[3] ^ builder.broadcast(key1, (count,)),
            state.lower(product0),
        ]
        key0, key1 = key0 + 0x9E3779B9, key1 + 0xBB67AE85
    return tuple(x)
