"""The two computing formats, and the bit-level steps that every family needs."""

from xlalite.backends.codegen.llvm import F32, F64, I8, I32, I64, FunctionBuilder, Type, Value, constant, vector
from xlalite.backends.codegen.llvm.types import integer
from xlalite.hlo.records import dataclass


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """What algorithms must know of f32 or f64.

    Attributes:
        type: the scalar type.
        bits_type: the integer of the same width.
        mantissa_bits: stored mantissa bits.
        bias: exponent bias.
        rounder: 1.5 * 2**mantissa_bits; adding it rounds to an integer that then sits in the low bits.
        smallest_normal: the smallest positive normal number.
    """

    type: Type
    bits_type: Type
    mantissa_bits: int
    bias: int
    rounder: float
    smallest_normal: float

    @property
    def is_double(self) -> bool:
        """Whether this is f64."""
        return self.type is F64


SINGLE = FloatFormat(F32, I32, 23, 127, 1.5 * 2.0**23, 2.0**-126)
DOUBLE = FloatFormat(F64, I64, 52, 1023, 1.5 * 2.0**52, 2.0**-1022)
_FORMATS = {F32: SINGLE, F64: DOUBLE}


def format_of(x: Value) -> FloatFormat:
    """The format of a scalar or vector value of f32 or f64."""
    return _FORMATS[x.type.scalar]


def bits_of(fb: FunctionBuilder, x: Value) -> Value:
    """The bit pattern as integers."""
    return fb.bitcast(x, x.type.with_scalar(format_of(x).bits_type))


def float_of(fb: FunctionBuilder, bits: Value, format_: FloatFormat) -> Value:
    """The number with a bit pattern."""
    return fb.bitcast(bits, bits.type.with_scalar(format_.type))


def at_most(fb: FunctionBuilder, x: Value, limit: float) -> Value:
    """`min(x, limit)` that lets NaN through, in one instruction where the machine has it."""
    bound = constant(x.type, limit)
    return fb.select(fb.fcmp("olt", bound, x), bound, x)


def at_least(fb: FunctionBuilder, x: Value, limit: float) -> Value:
    """`max(x, limit)` that lets NaN through, in one instruction where the machine has it."""
    bound = constant(x.type, limit)
    return fb.select(fb.fcmp("ogt", bound, x), bound, x)


def with_sign_of(fb: FunctionBuilder, magnitude: Value, sign: Value) -> Value:
    """Exclusive or of the signs; for a magnitude without sign bit this is `copysign`."""
    bits_type = bits_of_type(magnitude)
    mask = constant(bits_type, 1 << (bits_type.bits - 1))
    flipped = fb.xor(bits_of(fb, magnitude), fb.and_(bits_of(fb, sign), mask))
    return fb.bitcast(flipped, magnitude.type)


def bits_of_type(x: Value) -> Type:
    """The integer type of `bits_of(x)`."""
    return x.type.with_scalar(format_of(x).bits_type)


def power_of_two(fb: FunctionBuilder, exponent: Value, format_: FloatFormat) -> Value:
    """2**exponent for integers that give a normal number."""
    biased = fb.shl(fb.add(exponent, format_.bias), format_.mantissa_bits)
    return float_of(fb, biased, format_)


def power_of_low_bits(fb: FunctionBuilder, shifted: Value, bias: int) -> Value:
    """2**(n + bias - bias of the format) for the n in the low bits of `shifted` (see `FloatFormat.rounder`)."""
    format_ = format_of(shifted)
    biased = fb.add(bits_of(fb, shifted), bias)
    return float_of(fb, fb.shl(biased, format_.mantissa_bits), format_)


# Minus this pattern the bits of x are those of about 1 / x.
_INVERSE_BITS = {F32: 0x7EF311C7, F64: 0x7FDE623822FC16E6}


def rough_inverse(fb: FunctionBuilder, x: Value) -> Value:
    """1 / x to 13 %, for corrections: of x >= 0 whose inverse is normal. Of others a finite number."""
    bits = bits_of(fb, x)
    format_ = format_of(x)
    return float_of(fb, fb.smax(fb.sub(fb.constant(bits.type, _INVERSE_BITS[format_.type]), bits), 0), format_)


def mended_quotient(fb: FunctionBuilder, x: Value, divisor: Value, inverse: Value) -> Value:
    """The rounded quotient, by the rounded inverse, where nothing leaves the range of normal numbers; -0 becomes 0.

    Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor", 1990.
    """
    about = fb.fmul(x, inverse)
    return fb.fma(fb.fma(fb.fneg(about), divisor, x), inverse, about)


def scale_by_power_of_two(fb: FunctionBuilder, x: Value, exponent: Value) -> Value:
    """`x * 2**exponent`, rounded once, for x in [1/4, 4] or NaN.

    The exponent is an integral float within 2.2 times the bias.
    AVX-512 has an instruction; elsewhere two exact powers of two are multiplied, which rounds only in the second step
    and so gives the same bits.
    """
    format_ = format_of(x)
    if has_avx512(fb):
        return _avx512(fb, "mask.scalef", (x, exponent), ())
    number = fb.fptosi(exponent, format_.bits_type)
    half = fb.ashr(number, 1)
    once = fb.fmul(x, power_of_two(fb, half, format_))
    return fb.fmul(once, power_of_two(fb, fb.sub(number, half), format_))


def scale_with_denormals(fb: FunctionBuilder, x: Value, exponent: Value, is_denormal: Value) -> Value:
    """The same by AVX-512, where it is known which results are too small to be normal.

    The exponent may lie a few below that of the least number there is.

    Such results are counted in that number: 2**mantissa_bits plus so many has their bits, rounded once.
    """
    format_ = format_of(x)
    digits = format_.mantissa_bits
    steps = fb.select(is_denormal, fb.fadd(exponent, float(format_.bias - 1 + digits)), exponent)
    scaled = scale_by_power_of_two(fb, x, steps)
    counted = fb.sub(bits_of(fb, fb.fadd(scaled, 2.0**digits)), (format_.bias + digits) << digits)
    return fb.select(is_denormal, float_of(fb, counted, format_), scaled)


def has_avx512(fb: FunctionBuilder) -> bool:
    """Whether the AVX-512 instructions on exponents and mantissas exist for all vector widths."""
    return fb.module.target.has("avx512f") and fb.module.target.has("avx512vl")


def avx512_exponent(fb: FunctionBuilder, x: Value) -> Value:
    """floor(log2 |x|) as a float, also for denormals; -inf for 0, inf for infinity."""
    return _avx512(fb, "mask.getexp", (x,), ())


def avx512_mantissa(fb: FunctionBuilder, x: Value) -> Value:
    """The number m in [1, 2) with x = m * 2**k, also for denormals; 1 for 0 and infinity; NaN for negative numbers."""
    return _avx512(fb, "mask.getmant", (x,), (constant(I32, 0b1000),))


def avx512_inverse_root(fb: FunctionBuilder, x: Value) -> Value:
    """1 / sqrt(x) with a relative error of 2^-14; infinity for 0, 0 for infinity, NaN for negative numbers."""
    return _avx512(fb, "rsqrt14", (x,), ())


def _avx512(fb: FunctionBuilder, name: str, operands: tuple[Value, ...], immediates: tuple[Value, ...]) -> Value:
    """One of AVX-512's intrinsics on any lane count: cut to registers, or widened to the next one."""
    type_ = operands[0].type
    native = 512 // type_.bits
    if type_.lanes > native:
        pieces = []
        for start in range(0, type_.lanes, native):
            count = min(native, type_.lanes - start)
            cut = tuple(fb.slice_lanes(operand, start, count) for operand in operands)
            pieces.append(_avx512(fb, name, cut, immediates))
        return _join(fb, pieces, type_.lanes)
    lanes = max(128 // type_.bits, 1 << (type_.lanes - 1).bit_length())
    wide = vector(type_.scalar, lanes)
    suffix = f"{'pd' if type_.bits == 64 else 'ps'}.{lanes * type_.bits}"
    mask_type = I8 if lanes <= 8 else integer(lanes)
    arguments = (*[_widen(fb, operand, wide) for operand in operands], *immediates)
    arguments += (constant(wide, 0.0), constant(mask_type, -1))
    if lanes * type_.bits == 512 and name.startswith("mask."):
        arguments += (constant(I32, 4),)
    result = fb.intrinsic(f"x86.avx512.{name}.{suffix}", wide, arguments, ())
    if wide is type_:
        return result
    return fb.slice_lanes(result, 0, type_.lanes) if type_.is_vector else fb.extract(result, 0)


def _widen(fb: FunctionBuilder, x: Value, wide: Type) -> Value:
    """The value in the low lanes of a wider vector; the other lanes are unspecified but harmless."""
    if x.type is wide:
        return x
    if x.type.is_vector:
        return fb.shuffle(x, None, [*range(x.type.lanes), *[-1] * (wide.lanes - x.type.lanes)])
    return fb.insert(constant(wide, 0.0), x, 0)


def _join(fb: FunctionBuilder, pieces: list[Value], lanes: int) -> Value:
    """One vector of the lanes of several; all pieces but the last have the same count."""
    while len(pieces) > 1:
        width = pieces[0].type.lanes
        joined = []
        for low, high in zip(pieces[::2], pieces[1::2], strict=False):
            padded = _widen(fb, high, low.type)
            joined.append(fb.shuffle(low, padded, range(width + high.type.lanes)))
        pieces = joined + (pieces[-1:] if len(pieces) % 2 else [])
    assert pieces[0].type.lanes == lanes, "pieces cover all lanes"
    return pieces[0]


def round_to_odd_single(fb: FunctionBuilder, x: Value) -> Value:
    """f64 to f32 with the last bit set when inexact: rounding that again to 16 bits equals rounding once."""
    nearest = fb.fptrunc(x, F32)
    back = fb.fpext(nearest, F64)
    bits = bits_of(fb, nearest)
    too_large = fb.fcmp("ogt", fb.fabs(back), fb.fabs(x))
    towards_zero = fb.select(too_large, fb.sub(bits, 1), bits)
    inexact = fb.fcmp("one", back, x)
    return float_of(fb, fb.select(inexact, fb.or_(towards_zero, 1), bits), SINGLE)
