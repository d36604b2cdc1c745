"""What rules ask of instructions."""

from __future__ import annotations

import math

import ml_dtypes

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.monoid import MonoidKind, recognise_monoid
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Literal

# Types whose arithmetic is IEEE 754's with infinities and NaN, so that identities over the extended reals hold.
IEEE_TYPES = frozenset({DType.F16, DType.BF16, DType.F32, DType.F64})


def is_ieee(instruction: HloInstruction) -> bool:
    """Whether the value is of one of the usual floating-point types."""
    return instruction.shape.dtype in IEEE_TYPES


def is_integer(instruction: HloInstruction) -> bool:
    """Whether the value is of an integer type."""
    return instruction.shape.dtype.is_integral


def splat_literal(instruction: HloInstruction) -> Literal | None:
    """The scalar literal that fills the whole value: a scalar constant, or a broadcast of one."""
    while instruction.opcode == "broadcast":
        instruction = instruction.operand(0)
    if instruction.opcode != "constant" or not instruction.shape.is_scalar:
        return None
    literal: Literal = instruction.attrs.literal
    return literal


def is_splat_of(instruction: HloInstruction, number: float) -> bool:
    """Whether every element is exactly `number`; 0.0 and -0.0 differ."""
    literal = splat_literal(instruction)
    return literal is not None and literal.is_all(number)


def splat_integer(instruction: HloInstruction) -> int | None:
    """The integer that fills the value; None for other values and types."""
    literal = splat_literal(instruction)
    if literal is None or not literal.shape.dtype.is_integral:
        return None
    return int(literal.value)


def splat_float(instruction: HloInstruction) -> float | None:
    """The number that fills a value of one of the usual floating-point types."""
    literal = splat_literal(instruction)
    if literal is None or literal.shape.dtype not in IEEE_TYPES:
        return None
    return float(literal.value)


def splat_bool(instruction: HloInstruction) -> bool | None:
    """The truth value that fills a pred value."""
    literal = splat_literal(instruction)
    if literal is None or literal.shape.dtype is not DType.PRED:
        return None
    return bool(literal.value)


def is_never_negative_zero(instruction: HloInstruction, depth: int = 4) -> bool:
    """Whether no element can be -0, as far as a short look at the operands shows.

    Sums are -0 only when all terms are: x + (-x) is +0, and denormals are kept, so that nothing vanishes.
    """
    literal = splat_literal(instruction)
    if literal is not None:
        return not literal.is_all(-0.0)
    if depth == 0:
        return False
    operands = instruction.operands
    match instruction.opcode:
        case "abs" | "exponential" | "logistic":
            return True
        case "convert":
            source = operands[0].shape.dtype
            return source.is_integral or source is DType.PRED
        case "multiply":
            return operands[0] is operands[1]
        case "add":
            return any(is_never_negative_zero(operand, depth - 1) for operand in operands)
        case "maximum":  # max(-0, -1) is -0: a bound below zero says nothing.
            bounded = any(_is_at_least_zero(operand) for operand in operands)
            return bounded or all(is_never_negative_zero(operand, depth - 1) for operand in operands)
        case "reduce":
            monoid = recognise_monoid(instruction.called_computations[0]) if len(operands) == 2 else None
            starts_above = is_never_negative_zero(operands[1], depth - 1)
            return monoid is not None and monoid.kind is MonoidKind.ADD and starts_above
        case "broadcast" | "reshape" | "transpose" | "slice" | "reverse":
            return is_never_negative_zero(operands[0], depth - 1)
    return False


def _is_at_least_zero(instruction: HloInstruction) -> bool:
    number = splat_float(instruction)
    return number is not None and number >= 0 and not is_splat_of(instruction, -0.0)


def power_of_two_exponent(value: int) -> int | None:
    """The k of a value 2^k; None when there is none."""
    return value.bit_length() - 1 if value > 0 and value & (value - 1) == 0 else None


def reciprocal_is_exact(value: float, dtype: DType) -> bool:
    """Whether the value is a power of two, up to sign, whose reciprocal the type holds as a normal number."""
    if value == 0 or not math.isfinite(value) or abs(math.frexp(value)[0]) != 0.5:
        return False
    limits = float_limits(dtype)
    return bool(float(limits.smallest_normal) <= abs(1.0 / value) <= float(limits.max))


def float_limits(dtype: DType) -> ml_dtypes.finfo:
    """Widths and extremes of a floating-point type."""
    return ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]


def used_once(instruction: HloInstruction) -> bool:
    """Whether a single operand slot uses the value and the computation does not return it."""
    return instruction.user_count == 1 and instruction.use_count == 1 and not instruction.is_root


def same(a: HloInstruction, b: HloInstruction) -> bool:
    """Whether two operands are certainly the same value: one instruction, or splats of the same bits and sizes."""
    if a is b:
        return True
    if a.opcode not in ("constant", "broadcast") or a.shape.dims != b.shape.dims:
        return False
    literal = splat_literal(a)
    return literal is not None and literal == splat_literal(b)


def operand_with_splat(instruction: HloInstruction) -> tuple[HloInstruction, Literal] | None:
    """(other operand, literal) of a commutative operation that has a splat on one side; the right side first."""
    lhs, rhs = instruction.operands
    for other, constant in ((lhs, rhs), (rhs, lhs)):
        literal = splat_literal(constant)
        if literal is not None:
            return other, literal
    return None
