"""Unsigned integers in the order of numbers: -NaN, -inf ... -0, +0 ... inf, NaN for floating-point types."""

from __future__ import annotations

from xlalite.backends.codegen.arrays.types import representation, to_memory
from xlalite.backends.codegen.llvm import FunctionBuilder, Type, Value, integer
from xlalite.hlo.types.dtype import DType


def key_type(dtype: DType) -> Type:
    """The integer type of keys for numbers of a type."""
    return integer(representation(dtype).memory.bits)


def key_of_number(fb: FunctionBuilder, dtype: DType, number: Value, *, is_total: bool) -> Value:
    """The key of a number in a register (or of a vector of them).

    Args:
        fb: Where code goes.
        dtype: The type of the number.
        number: The number.
        is_total: Whether -0 comes before +0 and NaNs are told apart; else zeros are equal, and so are NaNs.
    """
    if dtype.is_floating and not is_total:
        number = fb.select(fb.fcmp("oeq", number, 0.0), 0.0, number)
        number = fb.select(fb.fcmp("uno", number, number), float("nan"), number)
    bits = to_memory(fb, dtype, number)
    wide = bits.type.with_scalar(key_type(dtype))
    bits = fb.bitcast(bits, wide) if bits.type is not wide else bits
    return key_of_bits(fb, dtype, bits)


def key_of_bits(fb: FunctionBuilder, dtype: DType, bits: Value) -> Value:
    """The key of a number that is given as it lies in memory."""
    width = key_type(dtype).bits
    if _has_sign_bit(dtype):
        bits = fb.shl(bits, width - dtype.bits) if dtype.bits < width else bits
        return fb.xor(bits, fb.or_(fb.ashr(bits, width - 1), 1 << (width - 1)))
    return fb.xor(bits, 1 << (width - 1)) if dtype.is_integral and dtype.is_signed else bits


def bits_of_key(fb: FunctionBuilder, dtype: DType, key: Value) -> Value:
    """The inverse of `key_of_bits`, for types that fill their memory."""
    sign = 1 << (key_type(dtype).bits - 1)
    if _has_sign_bit(dtype):
        return fb.xor(key, fb.or_(fb.not_(fb.ashr(key, key_type(dtype).bits - 1)), sign))
    return fb.xor(key, sign) if dtype.is_integral and dtype.is_signed else key


def _has_sign_bit(dtype: DType) -> bool:
    return dtype.is_floating and dtype is not DType.F8E8M0FNU
