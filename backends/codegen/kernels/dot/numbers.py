"""Element types of a product: what sums are kept in, how operands get there, and how results get out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from xlalite.backends.codegen.arrays.types import from_memory, normalize_integer, representation
from xlalite.backends.codegen.elements.conversion import convert_element
from xlalite.backends.codegen.elements.dot import accumulator_dtype
from xlalite.backends.codegen.kernels.dot.words import Words, words_for
from xlalite.backends.codegen.llvm import F32, F64, I16, I32, I64, FunctionBuilder, TargetInfo, Type, Value
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.records import dataclass
from xlalite.hlo.spelling.codecs import Precision
from xlalite.hlo.types.dtype import DType

_CHAIN_BYTES = 1024
"""Terms that are added in one chain, 256 of f32 and 128 of f64."""
_PRECISE_CHAIN_BYTES = 256
"""Those of a product of the highest precision, 64 of f32."""
_BYTES = 0x01010101
"""One in each byte of a word."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """The types of one product.

    Attributes:
        lhs: Element type of the left operand.
        rhs: Element type of the right operand.
        result: Element type of the result.
        kept: LLVM type of a partial sum.
        is_precise: Whether its `operand_precision` is the highest for some operand.
        words: What the elements of packed operands are, if they hold several terms.
    """

    lhs: DType
    rhs: DType
    result: DType
    kept: Type
    is_precise: bool
    words: Words | None = None

    @property
    def word(self) -> int:
        """Terms that one element of a packed operand holds."""
        return 1 if self.words is None else self.words.terms

    @property
    def longest_chain(self) -> int:
        """Terms that are added one after another before a sum begins anew; 0 if sums are exact.

        The error of a long chain grows faster than that of short ones added up: it is twice NumPy's with 1000 terms of
        f32 in one chain, 0.9 of it with 256 at a time, and the time is 1 % more. With 64, half of that for 2 %.
        """
        longest = _PRECISE_CHAIN_BYTES if self.is_precise else _CHAIN_BYTES
        return longest // self.kept.size_bytes if self.kept.is_float else 0

    @property
    def widened(self) -> Numbers | None:
        """The same in words that are widened, if those here are only right for some numbers."""
        is_exact = self.words is None or not self.words.has_floats or self.is_rare
        return None if is_exact else replace(self, words=Words.WIDENED_BF16_PAIRS)

    @property
    def in_matrices(self) -> bool:
        """Whether registers of matrices hold the words of operands."""
        return self.words is not None and self.words.in_matrices

    @property
    def is_rare(self) -> bool:
        """Whether these are the widened ones of others: their tiles are compiled with each, and seldom called."""
        return self.words is Words.WIDENED_BF16_PAIRS

    @property
    def flips(self) -> bool:
        """Whether bytes of the left operand have their signs turned round: one factor must be u8, the other s8."""
        if self.words is not Words.BYTES or self.lhs.is_signed != self.rhs.is_signed:
            return False
        return self.lhs.is_signed or not (_is_small(self.lhs) or _is_small(self.rhs))

    @property
    def is_rhs_signed(self) -> bool:
        """Whether bytes of the right operand are the factor that is s8."""
        return self.rhs.is_signed or (_is_small(self.rhs) and not self.lhs.is_signed)

    @property
    def kind(self) -> tuple[object, ...]:
        """What tiles of different products have in common if they are equal."""
        if self.words is Words.MATRICES_OF_BYTES:
            return self.kept, self.words, self.lhs.is_signed, self.rhs.is_signed
        if self.words is not Words.BYTES:
            return self.kept, self.words
        return self.kept, self.words, self.is_rhs_signed, self.flips

    @property
    def stores_sums(self) -> bool:
        """Whether a sum is a result as it is."""
        return representation(self.result).memory is self.kept

    def is_direct(self, operand: DType) -> bool:
        """Whether elements of an operand are multiplied as they lie in memory."""
        return representation(operand).memory is self.kept

    def is_part(self, operand: DType) -> bool:
        """Whether elements of an operand are terms of words as they lie in memory."""
        if self.words is None:
            return False
        return operand is DType.BF16 if self.words.has_floats else operand.bits == self.words.part.bits

    def take(self, fb: FunctionBuilder, operand: DType, stored: Value) -> Value:
        """Loaded elements of an operand in the type of sums; exact, but for integers of more bits than that has."""
        value = from_memory(fb, operand, stored)
        if self.kept.is_float:
            return _real(fb, value, operand, DType.F64 if self.kept is F64 else DType.F32)
        return _wider(fb, value, operand, self.kept)

    def take_part(self, fb: FunctionBuilder, operand: DType, stored: Value) -> Value:
        """Loaded elements of an operand as parts of words; exact."""
        assert self.words is not None, "a product in words"
        if not self.words.has_floats:
            return _wider(fb, from_memory(fb, operand, stored), operand, self.words.part)
        if operand is DType.BF16:
            return stored
        real = _real(fb, from_memory(fb, operand, stored), operand, DType.F32)
        bits = fb.bitcast(real, real.type.with_scalar(I32))
        return fb.trunc(fb.lshr(bits, 16), bits.type.with_scalar(I16))

    def finish(self, fb: FunctionBuilder, total: Value) -> Value:
        """A sum as an element of the result, in register form."""
        if fb.module.excess_precision and self.kept is F32 and representation(self.result).is_narrow_float:
            return total
        if self.kept.is_float:
            return _real(fb, total, DType.F64 if self.kept is F64 else DType.F32, self.result)
        narrowed = fb.trunc(total, total.type.with_scalar(representation(self.result).register))
        return normalize_integer(fb, self.result, narrowed)

    def multiply_add(self, fb: FunctionBuilder, a: Value, b: Value, total: Value) -> Value:
        """`a * b + total`; of words, the sum of their products."""
        if self.words is not None:
            return self.words.multiply_add(fb, *((a, b) if self.is_rhs_signed else (b, a)), total)
        if not self.kept.is_float:
            return fb.add(total, fb.mul(a, b))
        if fb.module.contract:
            return fb.mul_add(a, b, total)
        return fb.fadd(total, fb.fmul(a, b, ""), "")

    def add_flip(self, fb: FunctionBuilder, b: Value, total: Value) -> Value:
        """Adds what words of a right operand add to sums since signs were turned round, or half of it."""
        if self.is_rhs_signed:
            return Words.BYTES.multiply_add(fb, fb.constant(b.type, _BYTES * 128 - (1 << 32)), b, total)
        return Words.BYTES.multiply_add(fb, b, fb.constant(b.type, _BYTES * 64), total)

    def without_flip(self, fb: FunctionBuilder, total: Value, flip: Value) -> Value:
        """A sum less what was added."""
        return fb.sub(total, flip) if self.is_rhs_signed else fb.add(total, fb.shl(flip, 1))

    def add(self, fb: FunctionBuilder, a: Value, b: Value) -> Value:
        """Sum of two partial sums."""
        return fb.fadd(a, b, "") if self.kept.is_float else fb.add(a, b)


def _is_small(operand: DType) -> bool:
    """Whether an element may be taken for s8 and for u8."""
    return operand.is_unsigned and operand.bits < 8


def _wider(fb: FunctionBuilder, value: Value, dtype: DType, scalar: Type) -> Value:
    wanted = value.type.with_scalar(scalar)
    if value.type is wanted:
        return value
    return (fb.sext if dtype.is_signed else fb.zext)(value, wanted)


def _real(fb: FunctionBuilder, value: Value, source: DType, target: DType) -> Value:
    converted = convert_element(fb, value, source, target)
    assert isinstance(converted, Value), "complex products are not taken"
    return converted


def in_words(numbers: Numbers, target: TargetInfo, can_take: Callable[[int], bool]) -> Numbers:
    """The types of a product in words, if there are such for its operands; else as they are.

    Args:
        numbers: The types.
        target: The machine.
        can_take: Whether words of so many terms can be packed.
    """
    return replace(numbers, words=words_for((numbers.lhs, numbers.rhs), numbers.kept, target, can_take))


def why_no_numbers(dot: HloInstruction) -> str | None:
    """Why the kernel does not compute in a dot's element types; None if it does."""
    types = (dot.operand(0).shape.dtype, dot.operand(1).shape.dtype, dot.shape.dtype)
    if any(t.is_complex for t in types) or types[2] is DType.PRED:
        return f"a product of {types[0].value} and {types[1].value} as {types[2].value}"
    return None


def numbers_of(dot: HloInstruction) -> Numbers:
    """The types of a dot; see `why_no_numbers`."""
    lhs, rhs, result = dot.operand(0).shape.dtype, dot.operand(1).shape.dtype, dot.shape.dtype
    if result.is_floating:
        kept = F64 if accumulator_dtype(lhs, rhs, result) is DType.F64 else F32
    else:
        kept = I64 if result.bits > 32 else I32
    return Numbers(lhs, rhs, result, kept, is_precise=Precision.HIGHEST in dot.attrs.operand_precision)
