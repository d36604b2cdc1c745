"""Unsigned integers in the order of numbers: -NaN, -inf ... -0, +0 ... inf, NaN for floating-point types."""

from __future__ import annotations

import numpy as np

from xlalite.backends.codegen.arrays.index import Index
from xlalite.backends.codegen.arrays.ir_array import ArrayView
from xlalite.backends.codegen.arrays.types import representation, to_memory
from xlalite.backends.codegen.elements.elements import ElementEmitter
from xlalite.backends.codegen.llvm import FunctionBuilder, Type, Value, integer
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.numerics.real import has_only_negative_nan
from xlalite.hlo.types.dtype import DType

UNSIGNED = {8: DType.U8, 16: DType.U16, 32: DType.U32, 64: DType.U64}
"""Element types of arrays of keys, by their bits."""


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


def stored_keys(operand: HloInstruction) -> int | None:
    """The number of the parameter that an operand is, if its keys can be made of what lies in memory."""
    fills_memory = representation(operand.shape.dtype).memory.bits == operand.shape.dtype.bits
    return operand.attrs.number if operand.opcode == "parameter" and fills_memory else None


def has_plain_nans(dtype: DType) -> bool:
    """Whether numbers beyond the infinities are the NaNs of a type, and -0 is next to +0."""
    return dtype in (DType.F16, DType.BF16, DType.F32, DType.F64)


def ambiguous_keys(dtype: DType) -> tuple[int, int]:
    """The keys of +0, and of all NaNs, among which comparators do not tell numbers apart."""
    return _known_key(dtype, 0.0), _known_key(dtype, float("nan"))


def merged_key(fb: FunctionBuilder, dtype: DType, key: Value) -> tuple[Value, Value]:
    """The key that zeros share, and NaNs, for a key in the total order; and whether a number may be lost by that."""
    zero, nan = ambiguous_keys(dtype)
    lowest, highest = _known_key(dtype, float("-inf")), _known_key(dtype, float("inf"))
    is_nan = fb.icmp("ugt", fb.sub(key, lowest), highest - lowest)
    is_minus_zero = fb.icmp("eq", key, zero - 1)
    merged = fb.select(is_nan, nan, fb.select(is_minus_zero, zero, key))
    return merged, fb.or_(is_nan, is_minus_zero)


def _known_key(dtype: DType, number: float) -> int:
    bits = int.from_bytes(np.array(number, dtype.numpy).tobytes(), "little")
    sign = 1 << (dtype.bits - 1)
    return bits ^ (2 * sign - 1) if bits & sign else bits | sign


def read_key(emitter: ElementEmitter, view: ArrayView, index: Index) -> Value:
    """The keys of numbers in memory, in the total order."""
    bits = as_bits(view).read(emitter.math, index, emitter.mask)
    assert isinstance(bits, Value), "an integer is one register"
    return key_of_bits(emitter.fb, view.dtype, bits)


def as_bits(view: ArrayView) -> ArrayView:
    """An array read and written as unsigned integers: numbers keep what registers do not, such as the sign of NaN."""
    return ArrayView(view.pointer, UNSIGNED[key_type(view.dtype).bits], view.dims, view.strides)


def key_of_bits(fb: FunctionBuilder, dtype: DType, bits: Value) -> Value:
    """The key of a number that is given as it lies in memory."""
    width = key_type(dtype).bits
    if _has_sign_bit(dtype):
        bits = fb.shl(bits, width - dtype.bits) if dtype.bits < width else bits
        key = fb.xor(bits, fb.or_(fb.ashr(bits, width - 1), 1 << (width - 1)))
        return _turned(fb, key, 1) if has_only_negative_nan(dtype) else key
    return fb.xor(bits, 1 << (width - 1)) if dtype.is_integral and dtype.is_signed else bits


def bits_of_key(fb: FunctionBuilder, dtype: DType, key: Value) -> Value:
    """The inverse of `key_of_bits`, for types that fill their memory."""
    sign = 1 << (key_type(dtype).bits - 1)
    if _has_sign_bit(dtype):
        key = _turned(fb, key, -1) if has_only_negative_nan(dtype) else key
        return fb.xor(key, fb.or_(fb.not_(fb.ashr(key, key_type(dtype).bits - 1)), sign))
    return fb.xor(key, sign) if dtype.is_integral and dtype.is_signed else key


def _turned(fb: FunctionBuilder, key: Value, step: int) -> Value:
    """The keys of a sign bit moved on in a circle, which makes the one next to zero the lowest."""
    return fb.select(fb.icmp("ult", key, 0x80), fb.and_(fb.add(key, step & 0xFF), 0x7F), key)


def _has_sign_bit(dtype: DType) -> bool:
    return dtype.is_floating and dtype is not DType.F8E8M0FNU
