"""Floating-point types narrower than f32: decoding, encoding and rounding, on one value or a vector.

bf16 and f16 have code of their own; the 8-, 6- and 4-bit types share one parametrised by the layout of the type
(IEEE P3109 / OCP 8-bit floating point specification and OCP Microscaling formats). f16 goes through hardware conversion
where there is one, and so does decoding of what fits into it; elsewhere it is one of the others (LLVM would call a
library that the process need not have). No step makes or reads a denormal f32, over which machines take their time.

A value that was rounded is known with what it was rounded from, a decoded one with its bits: storing either takes
nothing back that was just done (`Emitter.origins`).
"""

from __future__ import annotations

from functools import cache

import ml_dtypes
import numpy as np

from xlalite.backends.codegen.llvm import (
    BF16,
    F16,
    F32,
    I1,
    I8,
    I16,
    I32,
    FunctionBuilder,
    Type,
    Value,
    constant,
    integer,
    number_of,
    vector,
)
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType

_QUIET_NAN = 0x7FC00000


@dataclass(frozen=True, slots=True)
class MiniFloat:
    """Layout of a type with a fraction shorter than f32's.

    Attributes:
        exponent_bits: Width of the exponent field.
        mantissa_bits: Width of the fraction field.
        bias: Exponent bias.
        max_bits: Bit pattern of the largest finite magnitude.
        inf_bits: Bit pattern of infinity, or None when the type has none.
        nan_bits: Bit pattern of NaN, or None when the type has none.
        signed: Whether there is a sign bit.
        negative_zero: Whether -0 exists.
    """

    exponent_bits: int
    mantissa_bits: int
    bias: int
    max_bits: int
    inf_bits: int | None
    nan_bits: int | None
    signed: bool
    negative_zero: bool

    @property
    def sign_shift(self) -> int:
        """Place of the sign bit."""
        return self.exponent_bits + self.mantissa_bits

    @property
    def overflow_bits(self) -> int:
        """What numbers beyond the largest become: the pattern behind it, which is no number, or the largest itself."""
        return self.max_bits + (self.inf_bits is not None or self.nan_bits is not None)


@cache
def mini_float(dtype: DType) -> MiniFloat:
    """The layout of f16 or of an 8-, 6- or 4-bit type, read off ml_dtypes."""
    info = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
    signed = dtype is not DType.F8E8M0FNU

    def bits(value: float) -> int:
        with np.errstate(all="ignore"):
            return int(np.asarray(value, np.float32).astype(dtype.numpy).view(f"u{dtype.numpy.itemsize}"))

    def exists(value: float) -> bool:
        with np.errstate(all="ignore"):
            back = np.asarray(value, np.float32).astype(dtype.numpy).astype(np.float32)
        return bool(np.isnan(back)) if np.isnan(value) else bool(back == value)

    return MiniFloat(
        exponent_bits=info.nexp,
        mantissa_bits=info.nmant,
        bias=-int(info.minexp) + (0 if dtype is DType.F8E8M0FNU else 1),
        max_bits=bits(float(info.max)),
        inf_bits=bits(float("inf")) if exists(float("inf")) else None,
        nan_bits=bits(float("nan")) if exists(float("nan")) else None,
        signed=signed,
        negative_zero=signed and "fnuz" not in dtype.value,
    )


def decode_narrow_float(fb: FunctionBuilder, dtype: DType, stored: Value) -> Value:
    """The f32 value of stored bits (i16 or i8); exact."""
    value = _decoded(fb, dtype, stored)
    fb.origins[dtype, value.text] = stored
    return value


def encode_narrow_float(fb: FunctionBuilder, dtype: DType, value: Value) -> Value:
    """The bits to store for an f32 value that the type can represent, or that is still to be rounded (i16 or i8)."""
    if fb.module.excess_precision:
        value = round_to_narrow_float(fb, dtype, value)
    origin = fb.origins.get((dtype, value.text), value)
    if origin.type.is_integer:
        return origin
    if dtype is DType.BF16 and origin is not value and _has_bf16(fb, value):
        return _encode_bf16(fb, origin, value)
    return _encoded(fb, dtype, value)


def round_to_narrow_float(fb: FunctionBuilder, dtype: DType, value: Value) -> Value:
    """The nearest value of the type, ties to even, as f32; overflow and NaN as the type has it."""
    if (dtype, value.text) in fb.origins:
        return value
    if dtype is not DType.BF16:
        return decode_narrow_float(fb, dtype, _encoded(fb, dtype, value))
    rounded = _round_bf16(fb, value)
    fb.origins[dtype, rounded.text] = value
    return rounded


def half_of(fb: FunctionBuilder, value: Value) -> Value:
    """A value of f16, which is an f32 in its register, in 16 bits."""
    number, half = number_of(value), value.type.with_scalar(F16)
    return fb.bitcast(encode_narrow_float(fb, DType.F16, value), half) if number is None else constant(half, number)


def value_of_half(fb: FunctionBuilder, half: Value) -> Value:
    """What is in 16 bits as an f32."""
    return decode_narrow_float(fb, DType.F16, fb.bitcast(half, half.type.with_scalar(I16)))


def select_narrow_float(fb: FunctionBuilder, dtype: DType, condition: Value, a: Value, b: Value) -> Value:
    """Either of two values of a type; if both were loaded, so are the bits of the result, for whoever stores it."""
    value = fb.select(condition, a, b)
    origins = [fb.origins.get((dtype, operand.text)) for operand in (a, b)]
    if origins[0] is not None and origins[1] is not None and origins[0].type is origins[1].type:
        fb.origins[dtype, value.text] = fb.select(condition, origins[0], origins[1])
    return value


def _decoded(fb: FunctionBuilder, dtype: DType, stored: Value) -> Value:
    wide, floating = stored.type.with_scalar(I32), stored.type.with_scalar(F32)
    if dtype is DType.BF16:
        return fb.bitcast(fb.shl(fb.zext(stored, wide), 16), floating)
    if dtype is DType.F8E8M0FNU:
        return _decode_e8m0(fb, fb.zext(stored, wide), floating)
    if not _converts_f16(fb):
        return _decode_by_integers(fb, mini_float(dtype), stored)
    if dtype is DType.F16:
        return _half(fb, stored)
    layout = mini_float(dtype)
    if layout.exponent_bits == 5 and layout.inf_bits is None:
        return _decode_by_integers(fb, layout, stored)
    return _decode_by_half(fb, layout, stored)


def _encoded(fb: FunctionBuilder, dtype: DType, value: Value) -> Value:
    """The bits of the nearest value; in bf16 of the value itself, which it has."""
    if dtype is DType.BF16:
        bits = fb.bitcast(value, value.type.with_scalar(I32))
        return fb.trunc(fb.lshr(bits, 16), value.type.with_scalar(I16))
    if dtype is DType.F8E8M0FNU:
        return _encode_e8m0(fb, value)
    if dtype is DType.F16 and _converts_f16(fb):
        return fb.bitcast(fb.fptrunc(value, value.type.with_scalar(F16)), value.type.with_scalar(I16))
    return _encode_mini(fb, mini_float(dtype), value)


def _converts_f16(fb: FunctionBuilder) -> bool:
    target = fb.module.target
    return target.has("f16c") or not target.triple.startswith(("x86_64", "i386", "i686"))


def _has_bf16(fb: FunctionBuilder, value: Value) -> bool:
    """Whether there is an instruction for vectors of this size."""
    return value.type.lanes == 16 and fb.module.target.has("avx512bf16") and fb.module.target.has("avx512dq")


def _encode_bf16(fb: FunctionBuilder, value: Value, rounded: Value) -> Value:
    """The bits of the nearest value, by the instruction.

    It takes denormals for zero and keeps the payload of NaN: vectors with one of these go the other way.
    """
    quiet, denormal, signaling = 0x01, 0x20, 0x80
    classes = constant(I32, quiet | denormal | signaling)
    is_special = fb.intrinsic("x86.avx512.fpclass.ps.512", vector(I1, 16), (value, classes), ())
    branch = fb.if_else(fb.any_lane(is_special), likely=False)
    with branch.then():
        branch.yield_(_encoded(fb, DType.BF16, rounded))
    with branch.otherwise():
        packed = fb.intrinsic("x86.avx512bf16.cvtneps2bf16.512", vector(BF16, 16), (value,), ())
        branch.yield_(fb.bitcast(packed, I16))
    return branch.results[0]


def _round_bf16(fb: FunctionBuilder, value: Value) -> Value:
    bits = fb.bitcast(value, value.type.with_scalar(I32))
    tie = fb.and_(fb.lshr(bits, 16), 1)
    rounded = fb.and_(fb.add(fb.add(bits, tie), 0x7FFF), 0xFFFF0000)
    is_nan = fb.fcmp("uno", value, value)
    # NaN has no payload afterwards, as in ml_dtypes.
    nan = fb.or_(fb.and_(bits, 0x80000000), _QUIET_NAN)
    return fb.bitcast(fb.select(is_nan, nan, rounded), value.type)


def _decode_by_half(fb: FunctionBuilder, layout: MiniFloat, stored: Value) -> Value:
    """Puts the fields where f16 has them, and corrects the bias by an exact multiplication."""
    narrow, wide = stored.type.with_scalar(I16), stored.type.with_scalar(I32)
    gap = 5 - layout.exponent_bits
    half = fb.ashr(fb.shl(fb.zext(stored, narrow), 15 - layout.sign_shift), gap)
    half = fb.and_(half, 0x8000 | 0x7FFF >> gap)
    value = _half(fb, half)
    if gap == 0:
        return value
    value = fb.fmul(value, 2.0 ** (15 - layout.bias), "")
    if layout.inf_bits is None:
        return _with_nan(fb, layout, stored, value)
    special = fb.icmp("uge", fb.and_(stored, (1 << layout.sign_shift) - 1), layout.inf_bits)
    bits = fb.bitcast(value, wide)
    return fb.bitcast(fb.select(special, fb.or_(bits, 0x7F800000), bits), value.type)


def _half(fb: FunctionBuilder, bits: Value) -> Value:
    """The value of f16's bits; LLVM must not see where it comes from, or it would compute in f16, which few can.

    One number is put beside zeros: LLVM (of version 22) puts it beside what some register holds, and waits for that,
    which made iterations of a loop wait for each other: 13 exponentials for each of two numbers took 520 instead of
    100 us for 40,000 pairs.
    """
    if not bits.type.is_vector:
        return fb.extract(_half(fb, fb.insert(constant(vector(I16, 4), 0), bits, 0)), 0)
    value = fb.fpext(fb.bitcast(bits, bits.type.with_scalar(F16)), bits.type.with_scalar(F32))
    return fb.intrinsic("arithmetic.fence", value.type, (value,), (value.type,))


def _with_nan(fb: FunctionBuilder, layout: MiniFloat, stored: Value, value: Value) -> Value:
    """The value, NaN of its sign for the one pattern that stands for it in types without infinity."""
    if layout.nan_bits is None:
        return value
    pattern = stored if not layout.negative_zero else fb.and_(stored, (1 << layout.sign_shift) - 1)
    bits = fb.bitcast(value, value.type.with_scalar(I32))
    is_nan = fb.icmp("eq", pattern, layout.nan_bits)
    return fb.bitcast(fb.select(is_nan, fb.or_(bits, _QUIET_NAN), bits), value.type)


def _decode_by_integers(fb: FunctionBuilder, layout: MiniFloat, stored: Value) -> Value:
    """Shifts exponent and fraction into f32's fields and corrects the bias there."""
    wide, floating = stored.type.with_scalar(I32), stored.type.with_scalar(F32)
    bits = fb.zext(stored, wide)
    magnitude = fb.and_(bits, (1 << layout.sign_shift) - 1)
    normal = fb.add(fb.shl(magnitude, 23 - layout.mantissa_bits), (127 - layout.bias) << 23)
    # A fraction without the leading bit: put it there, and take it away again.
    denormal = fb.fsub(fb.bitcast(fb.add(normal, 1 << 23), floating), 2.0 ** (1 - layout.bias), "")
    is_denormal = fb.icmp("ult", magnitude, 1 << layout.mantissa_bits)
    found = fb.select(is_denormal, fb.bitcast(denormal, wide), normal)
    if layout.inf_bits is not None:
        found = fb.select(fb.icmp("uge", magnitude, layout.inf_bits), fb.or_(normal, 0x7F800000), found)
    sign = fb.shl(fb.and_(bits, 1 << layout.sign_shift), 31 - layout.sign_shift)
    value = fb.bitcast(fb.or_(found, sign), floating)
    return value if layout.inf_bits is not None else _with_nan(fb, layout, stored, value)


def _decode_e8m0(fb: FunctionBuilder, bits: Value, floating: Type) -> Value:
    exponent = fb.shl(bits, 23)
    # 2^-127 is a denormal of f32: its fraction is the top bit.
    exponent = fb.select(fb.icmp("eq", bits, 0), 0x00400000, exponent)
    exponent = fb.select(fb.icmp("eq", bits, 0xFF), _QUIET_NAN, exponent)
    return fb.bitcast(exponent, floating)


def _encode_mini(fb: FunctionBuilder, layout: MiniFloat, value: Value) -> Value:
    """Adds the power of two whose last place is that of the result; the sum's low bits are then its significand."""
    wide, stored = value.type.with_scalar(I32), value.type.with_scalar(integer(layout.sign_shift + 1 + 7 & ~7))
    bits = fb.bitcast(value, wide)
    magnitude = fb.and_(bits, 0x7FFFFFFF)
    mantissa_bits, shift = layout.mantissa_bits, 23 - layout.mantissa_bits
    bounded = fb.smin(magnitude, (layout.overflow_bits << shift) + ((127 - layout.bias) << 23))
    smallest = 127 - layout.bias + 1
    exponent = fb.smax(fb.and_(bounded, 0x7F800000), smallest << 23)
    shifter = fb.add(exponent, shift << 23)
    shifted = fb.fadd(fb.bitcast(bounded, value.type), fb.bitcast(shifter, value.type), "")
    significand = fb.sub(fb.bitcast(shifted, wide), shifter)
    packed = fb.add(significand, fb.sub(fb.lshr(exponent, shift), smallest << mantissa_bits))
    sign = fb.and_(fb.lshr(bits, 31 - layout.sign_shift), 1 << layout.sign_shift)
    is_nan = fb.icmp("sgt", magnitude, 0x7F800000)
    if layout.inf_bits is not None and layout.nan_bits is not None:
        packed = fb.select(is_nan, layout.nan_bits, packed)
    signed = fb.or_(packed, sign)
    if not layout.negative_zero:
        signed = fb.select(fb.icmp("eq", packed, 0), 0, signed)
    if layout.nan_bits is None:
        # ml_dtypes turns NaN into -0 where there is no NaN.
        signed = fb.select(is_nan, 1 << layout.sign_shift, signed)
    return fb.trunc(signed, stored)


def _encode_e8m0(fb: FunctionBuilder, value: Value) -> Value:
    magnitude_bits = fb.and_(fb.bitcast(value, value.type.with_scalar(I32)), 0x7FFFFFFF)
    rounded = fb.lshr(fb.add(magnitude_bits, 0x00400000), 23)
    # 2^-127, a denormal of f32, is the least value and what all smaller ones become.
    rounded = fb.select(fb.icmp("ule", magnitude_bits, 0x00400000), 0, rounded)
    bad = fb.or_(fb.fcmp("uno", value, value), fb.fcmp("ule", value, 0.0))
    rounded = fb.select(fb.or_(bad, fb.icmp("uge", rounded, 0xFF)), 0xFF, rounded)
    return fb.trunc(rounded, value.type.with_scalar(I8))
