"""Words: neighbouring terms of a sum that one instruction multiplies and adds at once, all of them in 32 bits.

Each instruction computes in every lane `total + sum over i of a[i] * b[i]`: of integers modulo 2^32, of bf16 by two
multiplications with addition, the last term first, which round as those of f32 do but take numbers that are too small
to be normal for zero, and give zero for them.

Registers of matrices (AMX) have rows of 16 words: one instruction adds the product of two of them to a third. Of bf16
it adds up the first terms of the 16 words of a row, and the last ones, before it adds both to what is there.

Where no nonzero operand is tiny, none of this happens: bf16 has 8 bits, so with exponents of at least A and B every
product, and with it every sum, is a multiple of 2^(A+B-14). Where that is normal, no other number comes up. Whoever
packs such words says how small their exponents are; `is_exact` answers, and where it is no, the same words are widened.
"""

from __future__ import annotations

import enum
from collections.abc import Callable

from xlalite.backends.codegen.llvm import BF16, F32, I8, I16, I32, FunctionBuilder, TargetInfo, Type, Value, vector
from xlalite.hlo.types.dtype import DType

BITS = 32
"""Size of a word."""
MATRIX = 16
"""Rows of a register of matrices, and words of a row."""
BLOCK = 2 * MATRIX
"""Rows, and columns, of which sums are in registers of matrices at a time."""
SQUARE = 4
"""Words of a line that are turned at a time."""

SIGNS = 0x80808080 - (1 << 32)
"""What turns s8 into u8 less 128, and u8 into s8 plus 128, in all bytes of a word."""

_BIAS, _FRACTION = 127, 7
"""Of the exponents of bf16, and its bits below the first one."""
_LAST = 0xFFFF0000 - (1 << 32)
"""The second term of a pair."""


class Words(enum.Enum):
    """What a word holds and how words are multiplied; the first that fits a product is the quickest."""

    MATRICES_OF_BYTES = "amx-int8"
    MATRICES_OF_BF16_PAIRS = "amx-bf16"
    BYTES = "vpdpbusd"
    PAIRS = "vpdpwssd"
    PAIRS_ADDED_APART = "vpmaddwd"
    BF16_PAIRS = "vdpbf16ps"
    WIDENED_BF16_PAIRS = "vfmadd"

    @property
    def kept(self) -> Type:
        """The type of sums."""
        return F32 if self.has_floats else I32

    @property
    def has_floats(self) -> bool:
        """Whether terms are bf16."""
        return self in (Words.MATRICES_OF_BF16_PAIRS, Words.BF16_PAIRS, Words.WIDENED_BF16_PAIRS)

    @property
    def has_bytes(self) -> bool:
        """Whether terms are 8 bits."""
        return self in (Words.MATRICES_OF_BYTES, Words.BYTES)

    @property
    def in_matrices(self) -> bool:
        """Whether registers of matrices hold them."""
        return self in (Words.MATRICES_OF_BYTES, Words.MATRICES_OF_BF16_PAIRS)

    @property
    def part(self) -> Type:
        """The type of a term."""
        return I8 if self.has_bytes else I16

    @property
    def terms(self) -> int:
        """How many a word holds."""
        return BITS // self.part.bits

    def can_hold(self, operand: DType) -> bool:
        """Whether all values of an element type are terms."""
        if self.has_floats:
            return operand is DType.BF16 or (operand.bits <= 8 and (operand.is_floating or operand.is_integral))
        if not operand.is_integral:
            return False
        return operand.bits <= self.part.bits and (self.has_bytes or operand.bits < 16 or operand.is_signed)

    def is_known_to(self, target: TargetInfo) -> bool:
        """Whether a machine has the instruction for its vectors."""
        bits = target.vector_bits
        if self.in_matrices:
            return bits == 512 and target.has("amx-tile") and target.has(self.value)
        if self.has_floats:
            return self is Words.BF16_PAIRS and bits == 512 and target.has("avx512bf16")
        if not target.triple.startswith("x86_64"):
            return False
        if self is Words.PAIRS_ADDED_APART:
            return target.has({512: "avx512bw", 256: "avx2", 128: "sse2"}[bits])
        return target.has("avx512vnni") if bits == 512 else bits == 256 and target.has("avxvnni")

    def multiply_add(self, fb: FunctionBuilder, a: Value, b: Value, total: Value) -> Value:
        """Words of two operands multiplied and added; of bytes the first are unsigned, the second signed."""
        if self is Words.WIDENED_BF16_PAIRS:
            last = fb.mul_add(last_term(fb, a), last_term(fb, b), total)
            return fb.mul_add(first_term(fb, a), first_term(fb, b), last)
        bits = total.type.lanes * BITS
        if self is Words.BF16_PAIRS:
            pairs = vector(BF16, total.type.lanes * self.terms)
            arguments = (total, fb.bitcast(a, pairs), fb.bitcast(b, pairs))
            return fb.intrinsic(f"x86.avx512bf16.dpbf16ps.{bits}", total.type, arguments, ())
        if self is not Words.PAIRS_ADDED_APART:
            return fb.intrinsic(f"x86.avx512.{self.value}.{bits}", total.type, (total, a, b), ())
        name = {512: "avx512.pmaddw.d.512", 256: "avx2.pmadd.wd", 128: "sse2.pmadd.wd"}[bits]
        pairs = vector(I16, total.type.lanes * self.terms)
        factors = (fb.bitcast(a, pairs), fb.bitcast(b, pairs))
        return fb.add(total, fb.intrinsic(f"x86.{name}", total.type, factors, ()))


def least_exponents(fb: FunctionBuilder, words: Value, least: Value) -> Value:
    """The lesser of what was found before and of the nonzero terms of words, both as bits without a sign, less 1."""
    parts = fb.bitcast(words, least.type)
    return fb.umin(least, fb.sub(fb.and_(parts, 0x7FFF), 1))


def exponent_of(fb: FunctionBuilder, least: Value) -> Value:
    """The exponent, as bf16 holds it, of the least that `least_exponents` found; a large one if all were zeros."""
    found = fb.intrinsic("vector.reduce.umin", I16, (least,), (least.type,))
    return fb.lshr(fb.add(fb.zext(found, I32), 1), _FRACTION)


def is_exact(fb: FunctionBuilder, a: Value, b: Value) -> Value:
    """Whether products of operands with such least exponents, and sums of them, are normal or zero."""
    are_normal = fb.icmp("ne", fb.umin(a, b), 0)
    return fb.and_(are_normal, fb.icmp("uge", fb.add(a, b), _BIAS + 2 * _FRACTION + 1))


def words_for(
    operands: tuple[DType, DType], kept: Type, target: TargetInfo, can_take: Callable[[int], bool]
) -> Words | None:
    """The quickest words for the operands of a product; None if there are none.

    Args:
        operands: Their element types.
        kept: The type of sums.
        target: The machine.
        can_take: Whether the product's operands lie so that words of so many terms can be packed.
    """
    for words in Words:
        fits = words.kept is kept and all(map(words.can_hold, operands))
        if fits and words.is_known_to(target) and can_take(words.terms):
            return words
    return None


def first_term(fb: FunctionBuilder, words: Value) -> Value:
    """The first of two bf16 in words, as f32."""
    return fb.bitcast(fb.shl(fb.bitcast(words, words.type.with_scalar(I32)), 16), words.type.with_scalar(F32))


def last_term(fb: FunctionBuilder, words: Value) -> Value:
    """The second of two bf16 in words, as f32."""
    return fb.bitcast(fb.and_(fb.bitcast(words, words.type.with_scalar(I32)), _LAST), words.type.with_scalar(F32))
