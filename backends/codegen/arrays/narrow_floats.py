"""Floating-point types narrower than f32: decoding, encoding and rounding, on one value or a vector.

bf16 and f16 have code of their own; the 8-, 6- and 4-bit types share one parametrised by the layout of the type
(IEEE P3109 / OCP 8-bit floating point specification and OCP Microscaling formats). f32 to f16 goes through hardware
conversion, which keeps denormals, where there is one, and through the shared code elsewhere (LLVM would call a library
that the process need not have); f32 to bf16 is integer arithmetic, because the AVX-512 instruction flushes them.
"""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from xlalite.backends.codegen.llvm import F16, F32, I8, I16, I32, FunctionBuilder, Value
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
    wide = stored.type.with_scalar(I32)
    if dtype is DType.BF16:
        return fb.bitcast(fb.shl(fb.zext(stored, wide), 16), stored.type.with_scalar(F32))
    if dtype is DType.F16 and _converts_f16(fb):
        return fb.fpext(fb.bitcast(stored, stored.type.with_scalar(F16)), stored.type.with_scalar(F32))
    return _decode_mini(fb, dtype, stored)


def encode_narrow_float(fb: FunctionBuilder, dtype: DType, value: Value) -> Value:
    """The bits to store for an f32 value that the type can represent (i16 or i8)."""
    if dtype is DType.BF16:
        bits = fb.bitcast(value, value.type.with_scalar(I32))
        return fb.trunc(fb.lshr(bits, 16), value.type.with_scalar(I16))
    if dtype is DType.F16 and _converts_f16(fb):
        return fb.bitcast(fb.fptrunc(value, value.type.with_scalar(F16)), value.type.with_scalar(I16))
    return _encode_mini(fb, dtype, value)


def round_to_narrow_float(fb: FunctionBuilder, dtype: DType, value: Value) -> Value:
    """The nearest value of the type, ties to even, as f32; overflow and NaN as the type has it."""
    if dtype is DType.BF16:
        return _round_bf16(fb, value)
    if dtype is DType.F16 and _converts_f16(fb):
        return fb.fpext(fb.fptrunc(value, value.type.with_scalar(F16)), value.type)
    return _decode_mini(fb, dtype, _encode_mini(fb, dtype, value))


def _converts_f16(fb: FunctionBuilder) -> bool:
    target = fb.module.target
    return target.has("f16c") or not target.triple.startswith(("x86_64", "i386", "i686"))


def _round_bf16(fb: FunctionBuilder, value: Value) -> Value:
    bits = fb.bitcast(value, value.type.with_scalar(I32))
    tie = fb.and_(fb.lshr(bits, 16), 1)
    rounded = fb.and_(fb.add(fb.add(bits, tie), 0x7FFF), 0xFFFF0000)
    is_nan = fb.fcmp("uno", value, value)
    # A NaN whose payload lies in the lost bits must not become infinity: keep the sign and set the quiet bit.
    nan = fb.or_(fb.and_(bits, 0xFFFF0000), 0x00400000)
    return fb.bitcast(fb.select(is_nan, nan, rounded), value.type)


def _decode_mini(fb: FunctionBuilder, dtype: DType, stored: Value) -> Value:
    """Shifts exponent and fraction into f32's fields and corrects the bias by an exact multiplication."""
    layout = mini_float(dtype)
    wide, floating = stored.type.with_scalar(I32), stored.type.with_scalar(F32)
    bits = fb.zext(stored, wide)
    sign_shift = layout.exponent_bits + layout.mantissa_bits
    magnitude = fb.and_(bits, (1 << sign_shift) - 1)
    if dtype is DType.F8E8M0FNU:
        return _decode_e8m0(fb, bits, floating)
    scaled = fb.bitcast(fb.shl(magnitude, 23 - layout.mantissa_bits), floating)
    # 2^(127 - bias) is exact in f32 for every such type, and so is the product: denormals become normal numbers.
    value = fb.fmul(scaled, 2.0 ** (127 - layout.bias), "")
    if layout.inf_bits is not None:
        value = fb.select(fb.icmp("eq", magnitude, layout.inf_bits), float("inf"), value)
        top = layout.inf_bits
        value = fb.select(fb.icmp("ugt", magnitude, top), float("nan"), value)
    sign = fb.shl(fb.and_(bits, 1 << sign_shift), 31 - sign_shift)
    value = fb.bitcast(fb.or_(fb.bitcast(value, wide), sign), floating)
    if layout.inf_bits is None and layout.nan_bits is not None:
        compared = bits if not layout.negative_zero else magnitude
        pattern = layout.nan_bits if not layout.negative_zero else layout.nan_bits & ((1 << sign_shift) - 1)
        value = fb.select(fb.icmp("eq", compared, pattern), float("nan"), value)
    return value


def _decode_e8m0(fb: FunctionBuilder, bits: Value, floating: object) -> Value:
    exponent = fb.shl(bits, 23)
    # 2^-127 is a denormal of f32: its fraction is the top bit.
    exponent = fb.select(fb.icmp("eq", bits, 0), 0x00400000, exponent)
    exponent = fb.select(fb.icmp("eq", bits, 0xFF), _QUIET_NAN, exponent)
    return fb.bitcast(exponent, bits.type.with_scalar(F32))


def _encode_mini(fb: FunctionBuilder, dtype: DType, value: Value) -> Value:
    """Rounds |value| to the type's grid by adding and removing a power of two, then packs the fields."""
    layout = mini_float(dtype)
    wide, stored = value.type.with_scalar(I32), value.type.with_scalar(I16 if dtype is DType.F16 else I8)
    bits = fb.bitcast(value, wide)
    magnitude_bits = fb.and_(bits, 0x7FFFFFFF)
    if dtype is DType.F8E8M0FNU:
        return fb.trunc(_encode_e8m0(fb, value, magnitude_bits), stored)
    exponent = fb.lshr(magnitude_bits, 23)
    smallest = 127 - layout.bias + 1
    # The unit in the last place of the result has the exponent max(exponent, smallest) - mantissa_bits.
    exponent = fb.umax(exponent, smallest)
    shifter = fb.bitcast(fb.shl(fb.add(exponent, 23 - layout.mantissa_bits), 23), value.type)
    magnitude = fb.bitcast(magnitude_bits, value.type)
    rounded = fb.fsub(fb.fadd(magnitude, shifter, ""), shifter, "")
    packed = fb.bitcast(fb.fmul(rounded, 2.0 ** -(127 - layout.bias), ""), wide)
    packed = fb.lshr(packed, 23 - layout.mantissa_bits)
    overflow = layout.inf_bits
    if overflow is None:
        overflow = layout.nan_bits if layout.nan_bits is not None else layout.max_bits
    sign_shift = layout.exponent_bits + layout.mantissa_bits
    field = (1 << sign_shift) - 1
    too_large = fb.icmp("ugt", packed, layout.max_bits)
    huge = fb.icmp("uge", magnitude_bits, 0x7F000000)
    packed = fb.select(fb.or_(too_large, huge), overflow & field if layout.negative_zero else overflow, packed)
    is_nan = fb.icmp("ugt", magnitude_bits, 0x7F800000)
    sign = fb.and_(fb.lshr(bits, 31 - sign_shift), 1 << sign_shift)
    if layout.nan_bits is not None and not layout.negative_zero:
        # fnuz: one NaN (the pattern of -0), and no -0.
        special = fb.or_(is_nan, fb.icmp("eq", packed, layout.nan_bits))
        signed = fb.select(fb.icmp("eq", packed, 0), 0, fb.or_(packed, sign))
        return fb.trunc(fb.select(special, layout.nan_bits, signed), stored)
    if layout.nan_bits is not None:
        packed = fb.select(is_nan, layout.nan_bits & field, packed)
        return fb.trunc(fb.or_(packed, sign), stored)
    # No NaN in the type: ml_dtypes turns NaN into -0.
    return fb.trunc(fb.select(is_nan, 1 << sign_shift, fb.or_(packed, sign)), stored)


def _encode_e8m0(fb: FunctionBuilder, value: Value, magnitude_bits: Value) -> Value:
    rounded = fb.lshr(fb.add(magnitude_bits, 0x00400000), 23)
    # 2^-127, a denormal of f32, is the least value and what all smaller ones become.
    rounded = fb.select(fb.icmp("ule", magnitude_bits, 0x00400000), 0, rounded)
    bad = fb.or_(fb.fcmp("uno", value, value), fb.fcmp("ule", value, 0.0))
    return fb.select(fb.or_(bad, fb.icmp("uge", rounded, 0xFF)), 0xFF, rounded)
