"""Rules for conversions: between types, to fewer bits, to whole numbers, between complex numbers and their parts."""

from __future__ import annotations

from functools import cache

from xlalite.hlo.building.construct import convert
from xlalite.hlo.building.create import create
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape
from xlalite.passes.rewriting.patterns import IEEE_TYPES, float_limits
from xlalite.passes.rewriting.rewrite import Declined, RewriteRule, RuleResult


def convert_nothing(instruction: HloInstruction) -> RuleResult:
    """convert(A) to A's own type = A."""
    operand = instruction.operand(0)
    return operand if operand.shape.dtype is instruction.shape.dtype else None


def convert_of_convert(instruction: HloInstruction) -> RuleResult:
    """convert(convert(A)) = convert(A) when the first conversion loses nothing that the second would show."""
    inner = instruction.operand(0)
    if inner.opcode != "convert":
        return None
    source = inner.operand(0)
    if _may_skip(source.shape.dtype, inner.shape.dtype, instruction.shape.dtype):
        return convert(source, instruction.shape.dtype)
    return Declined("the conversion in between may change the value")


def bitcast_convert_nothing(instruction: HloInstruction) -> RuleResult:
    """bitcast-convert(A) to A's own type = A."""
    operand = instruction.operand(0)
    return operand if operand.shape.dtype is instruction.shape.dtype else None


def bitcast_convert_of_bitcast_convert(instruction: HloInstruction) -> RuleResult:
    """bitcast-convert(bitcast-convert(A)) = bitcast-convert(A) when no width changes, or A when its type comes back."""
    inner = instruction.operand(0)
    if inner.opcode != "bitcast-convert":
        return None
    source = inner.operand(0)
    if source.shape.dtype is instruction.shape.dtype and source.shape.dims == instruction.shape.dims:
        return source
    if not source.shape.dtype.bits == inner.shape.dtype.bits == instruction.shape.dtype.bits:
        return None
    shape = Shape.array(instruction.shape.dtype, instruction.shape.dims)
    return create("bitcast-convert", (source,), shape=shape)


def reduce_precision_nothing(instruction: HloInstruction) -> RuleResult:
    """reduce-precision(A) to a format that holds every value of A's type = A."""
    dtype = instruction.shape.dtype
    if dtype not in IEEE_TYPES:
        return None
    limits, attrs = float_limits(dtype), instruction.attrs
    holds_all = attrs.exponent_bits >= limits.nexp and attrs.mantissa_bits >= limits.nmant
    return instruction.operand(0) if holds_all else None


def reduce_precision_twice(instruction: HloInstruction) -> RuleResult:
    """reduce-precision(reduce-precision(A)) to the same format = reduce-precision(A)."""
    inner = instruction.operand(0)
    return inner if inner.opcode == "reduce-precision" and inner.attrs == instruction.attrs else None


@cache
def is_lossless(source: DType, target: DType) -> bool:
    """Whether every value of a type, NaN and both zeros included, has an equal value in another."""
    if source is target:
        return True
    if source is DType.PRED:
        return target not in (DType.F8E8M0FNU, DType.S1)  # these have no 0, no 1
    if target is DType.PRED:
        return False
    if source.is_integral and target.is_integral:
        wider = target.bits > source.bits
        same_sign = source.is_signed == target.is_signed
        return target.bits >= source.bits if same_sign else wider and target.is_signed
    if source.is_integral and target in IEEE_TYPES:
        return bool(source.bits - source.is_signed <= float_limits(target).nmant + 1)
    if source in IEEE_TYPES and target in IEEE_TYPES:
        a, b = float_limits(source), float_limits(target)
        return bool(b.nmant >= a.nmant and b.nexp >= a.nexp)
    if source.is_complex and target.is_complex:
        return target.bits >= source.bits
    # f8e8m0fnu has neither sign nor zero; all other narrow types lie within f32 with their zeros and NaN.
    is_narrow = source.is_floating and source.bits <= 8 and source is not DType.F8E8M0FNU
    return is_narrow and target in (DType.F32, DType.F64)


def _may_skip(source: DType, between: DType, target: DType) -> bool:
    """Whether source -> between -> target is source -> target for every value."""
    if is_lossless(source, between):
        # Floats saturate and integers wrap on the way to an integer, so the families must be the same, or it must fit.
        is_whole = source.is_integral or source is DType.PRED
        through_float = is_whole and between.is_floating and target.is_integral
        real_to_complex = between.is_complex and not source.is_complex
        return not real_to_complex and (not through_float or is_lossless(source, target))
    # Integers keep their low bits however often they are cut.
    all_integers = source.is_integral and between.is_integral and target.is_integral
    return all_integers and target.bits <= between.bits


def idempotent_rounding(instruction: HloInstruction) -> RuleResult:
    """Rounding what is a whole number already changes nothing."""
    inner = instruction.operand(0)
    return inner if inner.opcode in _ROUNDINGS else None


def part_of_complex(instruction: HloInstruction) -> RuleResult:
    """real(complex(A, B)) = A and imag(complex(A, B)) = B; real(A) = A for real A."""
    inner = instruction.operand(0)
    if inner.opcode == "complex":
        return inner.operand(0 if instruction.opcode == "real" else 1)
    return inner if instruction.opcode == "real" and not inner.shape.dtype.is_complex else None


def complex_of_parts(instruction: HloInstruction) -> RuleResult:
    """complex(real(A), imag(A)) = A."""
    real, imag = instruction.operands
    if real.opcode != "real" or imag.opcode != "imag" or real.operand(0) is not imag.operand(0):
        return None
    source = real.operand(0)
    return source if source.shape.compatible(instruction.shape) else None


_ROUNDINGS = frozenset({"floor", "ceil", "round-nearest-afz", "round-nearest-even"})


RULES: tuple[RewriteRule, ...] = (
    RewriteRule("convert", convert_nothing),
    RewriteRule("convert", convert_of_convert),
    RewriteRule("bitcast-convert", bitcast_convert_nothing),
    RewriteRule("bitcast-convert", bitcast_convert_of_bitcast_convert),
    RewriteRule("reduce-precision", reduce_precision_nothing),
    RewriteRule("reduce-precision", reduce_precision_twice),
    *(RewriteRule(opcode, idempotent_rounding) for opcode in sorted(_ROUNDINGS)),
    RewriteRule("real", part_of_complex),
    RewriteRule("imag", part_of_complex),
    RewriteRule("complex", complex_of_parts),
)
