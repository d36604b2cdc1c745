"""Words: neighbouring terms of a sum that one instruction multiplies and adds at once, all of them in 32 bits.

Each instruction computes in every lane `total + sum over i of a[i] * b[i]`, modulo 2^32 if the parts are integers.
"""

from __future__ import annotations

import enum
from collections.abc import Callable

from xlalite.backends.codegen.llvm import I8, I16, FunctionBuilder, TargetInfo, Type, Value, vector
from xlalite.hlo.types.dtype import DType

BITS = 32
"""Size of a word."""


class Words(enum.Enum):
    """What a word holds and how words are multiplied; the first that fits a product is the quickest."""

    BYTES = "vpdpbusd"
    PAIRS = "vpdpwssd"
    PAIRS_ADDED_APART = "vpmaddwd"

    @property
    def part(self) -> Type:
        """The type of a term."""
        return I8 if self is Words.BYTES else I16

    @property
    def terms(self) -> int:
        """How many a word holds."""
        return BITS // self.part.bits

    def can_hold(self, operand: DType) -> bool:
        """Whether all values of an element type are terms."""
        if not operand.is_integral:
            return False
        return operand.bits <= self.part.bits and (self is Words.BYTES or operand.bits < 16 or operand.is_signed)

    def is_known_to(self, target: TargetInfo) -> bool:
        """Whether a machine has the instruction for its vectors."""
        bits = target.vector_bits
        if not target.triple.startswith("x86_64"):
            return False
        if self is Words.PAIRS_ADDED_APART:
            return target.has({512: "avx512bw", 256: "avx2", 128: "sse2"}[bits])
        return target.has("avx512vnni") if bits == 512 else bits == 256 and target.has("avxvnni")

    def multiply_add(self, fb: FunctionBuilder, a: Value, b: Value, total: Value) -> Value:
        """Words of two operands multiplied and added; of bytes the first are unsigned, the second signed."""
        bits = total.type.lanes * BITS
        if self is not Words.PAIRS_ADDED_APART:
            return fb.intrinsic(f"x86.avx512.{self.value}.{bits}", total.type, (total, a, b), ())
        name = {512: "avx512.pmaddw.d.512", 256: "avx2.pmadd.wd", 128: "sse2.pmadd.wd"}[bits]
        pairs = vector(I16, total.type.lanes * self.terms)
        factors = (fb.bitcast(a, pairs), fb.bitcast(b, pairs))
        return fb.add(total, fb.intrinsic(f"x86.{name}", total.type, factors, ()))


def words_for(operands: tuple[DType, DType], target: TargetInfo, can_take: Callable[[int], bool]) -> Words | None:
    """The quickest words for the operands of a product that is summed in 32 bits; None if there are none.

    Args:
        operands: Their element types.
        target: The machine.
        can_take: Whether the product's operands lie so that words of so many terms can be packed.
    """
    for words in Words:
        if all(map(words.can_hold, operands)) and words.is_known_to(target) and can_take(words.terms):
            return words
    return None
