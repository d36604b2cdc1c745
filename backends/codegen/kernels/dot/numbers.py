"""Element types of a product: what sums are kept in, how operands get there, and how results get out."""

from __future__ import annotations

from dataclasses import dataclass, replace

from xlalite.backends.codegen.arrays.types import from_memory, normalize_integer, representation
from xlalite.backends.codegen.elements.conversion import convert_element
from xlalite.backends.codegen.elements.dot import accumulator_dtype
from xlalite.backends.codegen.llvm import F32, F64, I8, I32, I64, FunctionBuilder, TargetInfo, Type, Value
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.dot import DotAlgorithm
from xlalite.hlo.types.dtype import DType

WORD = 4
"""Bytes that are multiplied and added at once."""

_LANES = 16
"""Words of the vectors that are multiplied."""
_BYTES = 0x01010101
"""One in each byte of a word."""

_PLAIN_ALGORITHMS = frozenset(
    {
        DotAlgorithm.UNSET,
        DotAlgorithm.ANY_F8_ANY_F8_F32,
        DotAlgorithm.ANY_F8_ANY_F8_F32_FAST_ACCUM,
        DotAlgorithm.ANY_F8_ANY_F8_ANY,
        DotAlgorithm.ANY_F8_ANY_F8_ANY_FAST_ACCUM,
        DotAlgorithm.F32_F32_F32,
        DotAlgorithm.F64_F64_F64,
    }
)


@dataclass(frozen=True, slots=True)
class Numbers:
    """The types of one product.

    Attributes:
        lhs: Element type of the left operand.
        rhs: Element type of the right operand.
        result: Element type of the result.
        kept: LLVM type of a partial sum.
        word: Terms that one element of a packed operand holds.
    """

    lhs: DType
    rhs: DType
    result: DType
    kept: Type
    word: int = 1

    @property
    def flips(self) -> bool:
        """Whether words of the left operand have their signs turned round: one factor must be u8, the other s8."""
        return self.word > 1 and self.lhs.is_signed == self.rhs.is_signed

    @property
    def kind(self) -> tuple[object, ...]:
        """What tiles of different products have in common if they are equal."""
        return (self.kept,) if self.word == 1 else (self.kept, self.word, self.rhs.is_signed, self.flips)

    @property
    def stores_sums(self) -> bool:
        """Whether a sum is a result as it is."""
        return representation(self.result).memory is self.kept

    def is_direct(self, operand: DType) -> bool:
        """Whether elements of an operand are multiplied as they lie in memory."""
        return representation(operand).memory is self.kept

    def take(self, fb: FunctionBuilder, operand: DType, stored: Value) -> Value:
        """Loaded elements of an operand in the type of sums; exact."""
        value = from_memory(fb, operand, stored)
        wanted = value.type.with_scalar(self.kept)
        if self.kept.is_float:
            return fb.fpext(value, wanted) if value.type is not wanted else value
        return (fb.sext if operand.is_signed else fb.zext)(value, wanted)

    def finish(self, fb: FunctionBuilder, total: Value) -> Value:
        """A sum as an element of the result, in register form."""
        if self.kept.is_float:
            kept = DType.F64 if self.kept is F64 else DType.F32
            converted = convert_element(fb, total, kept, self.result)
            assert isinstance(converted, Value), "complex products are not taken"
            return converted
        narrowed = fb.trunc(total, total.type.with_scalar(representation(self.result).register))
        return normalize_integer(fb, self.result, narrowed)

    def multiply_add(self, fb: FunctionBuilder, a: Value, b: Value, total: Value) -> Value:
        """`a * b + total`; of words, the sum of their products."""
        if self.word > 1:
            unsigned, signed = (a, b) if self.rhs.is_signed else (b, a)
            return _sum_words(fb, unsigned, signed, total)
        if not self.kept.is_float:
            return fb.add(total, fb.mul(a, b))
        if fb.module.contract:
            return fb.mul_add(a, b, total)
        return fb.fadd(total, fb.fmul(a, b, ""), "")

    def add_flip(self, fb: FunctionBuilder, b: Value, total: Value) -> Value:
        """Adds what words of a right operand add to sums since signs were turned round, or half of it."""
        if self.rhs.is_signed:
            return _sum_words(fb, fb.constant(b.type, _BYTES * 128 - (1 << 32)), b, total)
        return _sum_words(fb, b, fb.constant(b.type, _BYTES * 64), total)

    def without_flip(self, fb: FunctionBuilder, total: Value, flip: Value) -> Value:
        """A sum less what was added."""
        return fb.sub(total, flip) if self.rhs.is_signed else fb.add(total, fb.shl(flip, 1))

    def add(self, fb: FunctionBuilder, a: Value, b: Value) -> Value:
        """Sum of two partial sums."""
        return fb.fadd(a, b, "") if self.kept.is_float else fb.add(a, b)


def _sum_words(fb: FunctionBuilder, unsigned: Value, signed: Value, total: Value) -> Value:
    arguments = (total, unsigned, signed)
    return fb.intrinsic("x86.avx512.vpdpbusd.512", total.type, arguments, ())


def in_words(numbers: Numbers, target: TargetInfo) -> Numbers:
    """The types of a product of bytes in words, if the target multiplies such; else as they are."""
    operands = (numbers.lhs, numbers.rhs)
    takes = all(one.is_integral and representation(one).memory is I8 and one.bits == 8 for one in operands)
    if not takes or numbers.kept is not I32 or not target.has("avx512vnni") or target.lanes(32) != _LANES:
        return numbers
    return replace(numbers, word=WORD)


def why_no_numbers(dot: HloInstruction) -> str | None:
    """Why the kernel does not compute in a dot's element types; None if it does."""
    types = (dot.operand(0).shape.dtype, dot.operand(1).shape.dtype, dot.shape.dtype)
    if not (all(t.is_floating for t in types) or all(t.is_integral for t in types)):
        return f"a product of {types[0].value} and {types[1].value} as {types[2].value}"
    if dot.attrs.algorithm not in _PLAIN_ALGORITHMS:
        return f"algorithm {dot.attrs.algorithm.value}"
    return None


def numbers_of(dot: HloInstruction) -> Numbers:
    """The types of a dot; see `why_no_numbers`."""
    lhs, rhs, result = dot.operand(0).shape.dtype, dot.operand(1).shape.dtype, dot.shape.dtype
    if result.is_floating:
        kept = F64 if accumulator_dtype(lhs, rhs, result) is DType.F64 else F32
    else:
        kept = I64 if result.bits > 32 else I32
    return Numbers(lhs, rhs, result, kept)
