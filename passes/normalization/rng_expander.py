"""Expresses rng by random bits and arithmetic."""

from __future__ import annotations

import math
from typing import ClassVar

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.random import Distribution, RandomAlgorithm, RngBitGeneratorAttrs, RngGetAndUpdateStateAttrs
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape
from xlalite.passes.rewriting.expander import OpExpander


@dataclass(frozen=True, slots=True)
class RngExpander(OpExpander):
    """rng -> rng-get-and-update-state, rng-bit-generator and what makes the distribution of their bits.

    uniform: a + (b - a) * u below b, for integers a + bits rem (b - a);
    normal: a + b * sqrt(-2 log(1 - u)) * cos(2 pi v).
    Run the bit generator's expander afterwards.
    """

    name: ClassVar[str] = "rng-expander"
    opcodes: ClassVar[frozenset[str]] = frozenset({"rng"})

    def expand(self, builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...]) -> Handle:
        """Builds the numbers."""
        shape = instruction.shape
        a, b = operands[:2]
        if shape.dtype.is_integral:
            return _integers(builder, shape, a, b)
        wide = DType.F64 if shape.dtype is DType.F64 else DType.F32
        low, high = (builder.broadcast(builder.convert(bound, wide), shape.dims) for bound in operands[:2])
        u = _unit_interval(builder, shape, wide)
        if instruction.attrs.distribution is Distribution.UNIFORM:
            numbers = builder.convert(low + (high - low) * u, shape.dtype)
            limit, start = builder.broadcast(b, shape.dims), builder.broadcast(a, shape.dims)
            return builder.select(builder.compare(numbers, limit, "LT"), numbers, start)
        angle = _unit_interval(builder, shape, wide) * (2 * math.pi)
        radius = builder.op("sqrt", (builder.op("log-plus-one", (-u,)) * -2.0,))
        return builder.convert(low + high * radius * builder.op("cosine", (angle,)), shape.dtype)


def _integers(builder: Builder, shape: Shape, a: Handle, b: Handle) -> Handle:
    """The first number plus bits rem the span, wrapped into the type; a span of 0 or less gives the first number."""
    words = _words(builder, shape.dims, DType.U64)
    start, end = (builder.convert(bound, DType.U64) for bound in (a, b))
    one = builder.constant(1, DType.U64)
    span = builder.select(builder.compare(b, a, "GT"), end - start, one)
    offset = builder.op("remainder", (words, builder.broadcast(span, shape.dims)))
    return builder.convert(builder.broadcast(start, shape.dims) + offset, shape.dtype)


def _unit_interval(builder: Builder, shape: Shape, dtype: DType) -> Handle:
    """Numbers in [0, 1) with as many random bits as the type's mantissa."""
    bits, word = (53, DType.U64) if dtype is DType.F64 else (24, DType.U32)
    words = builder.op("shift-right-logical", builder.match(_words(builder, shape.dims, word), word.bits - bits))
    return builder.convert(words, dtype) * 2.0**-bits


def _words(builder: Builder, dims: tuple[int, ...], dtype: DType) -> Handle:
    """Fresh random words; the counter of the process moves on by the blocks they take."""
    blocks = -(-math.prod(dims) // (2 if dtype is DType.U64 else 4))
    counter = builder.op(
        "rng-get-and-update-state", (), RngGetAndUpdateStateAttrs(blocks), shape=Shape.array(DType.U64, (2,))
    )
    key = builder.constant([0x5DEECE66D], DType.U64)
    state = builder.concatenate((key, counter), 0)
    result = Shape.tuple([state.shape, Shape.array(dtype, dims)])
    attrs = RngBitGeneratorAttrs(RandomAlgorithm.PHILOX)
    return builder.op("rng-bit-generator", (state,), attrs, shape=result)[1]
