"""Rules for products, quotients, remainders and powers."""

from __future__ import annotations

from xlalite.hlo.building.construct import binary, splat_like, unary
from xlalite.hlo.building.create import create
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.types.dtype import DType
from xlalite.passes.rewriting.patterns import (
    is_ieee,
    is_integer,
    is_splat_of,
    power_of_two_exponent,
    reciprocal_is_exact,
    splat_float,
    splat_integer,
)
from xlalite.passes.rewriting.rewrite import Declined, RewriteRule, RuleResult, Strictness


def multiply_one(instruction: HloInstruction) -> RuleResult:
    """A * 1 = A."""
    lhs, rhs = instruction.operands
    if instruction.shape.dtype.is_complex:
        return Declined("infinite parts times 1+0i give NaN") if is_splat_of(rhs, 1) else None
    return lhs if is_splat_of(rhs, 1) else None


def multiply_zero(instruction: HloInstruction) -> RuleResult:
    """A * 0 = 0 for integers."""
    if not is_splat_of(instruction.operand(1), 0):
        return None
    if is_integer(instruction):
        return instruction.operand(1)
    return Declined("A may be infinite, NaN or negative")


def multiply_minus_one(instruction: HloInstruction) -> RuleResult:
    """A * -1 = -A."""
    lhs, rhs = instruction.operands
    if not is_splat_of(rhs, -1) or not (instruction.shape.dtype.is_signed or is_ieee(instruction)):
        return None
    return unary("negate", lhs)


def multiply_constants(instruction: HloInstruction) -> RuleResult:
    """(A * c1) * c2 = A * (c1 * c2) for integers."""
    inner, c2 = instruction.operand(0), splat_integer(instruction.operand(1))
    if c2 is None or inner.opcode != "multiply":
        return None
    c1 = splat_integer(inner.operand(1))
    return None if c1 is None else binary("multiply", inner.operand(0), splat_like(c1 * c2, instruction))


def both_negated(instruction: HloInstruction) -> RuleResult:
    """-A * -B = A * B and, for floats, -A / -B = A / B."""
    lhs, rhs = instruction.operands
    if lhs.opcode != "negate" or rhs.opcode != "negate":
        return None
    if instruction.opcode == "divide" and not is_ieee(instruction):
        return Declined("the smallest integer has no negative")
    return binary(instruction.opcode, lhs.operand(0), rhs.operand(0))


def multiply_by_mask(instruction: HloInstruction) -> RuleResult:
    """A * convert(pred) = select(pred, A, 0) for integers."""
    if not is_integer(instruction):
        return None
    lhs, rhs = instruction.operands
    for value, mask in ((lhs, rhs), (rhs, lhs)):
        if mask.opcode == "convert" and mask.operand(0).shape.dtype is DType.PRED:
            return create("select", (mask.operand(0), value, splat_like(0, value)))
    return None


def divide_one(instruction: HloInstruction) -> RuleResult:
    """A / 1 = A."""
    if instruction.shape.dtype.is_complex:
        return None
    return instruction.operand(0) if is_splat_of(instruction.operand(1), 1) else None


def divide_power_of_two(instruction: HloInstruction) -> RuleResult:
    """A / 2^k = A * 2^-k for floats (both round the same quotient), A >> k for unsigned integers."""
    lhs, rhs = instruction.operands
    number = splat_float(rhs)
    if number is not None:
        if reciprocal_is_exact(number, instruction.shape.dtype):
            return binary("multiply", lhs, splat_like(1.0 / number, instruction))
        return Declined("the reciprocal is not exact")
    divisor = splat_integer(rhs)
    shift = power_of_two_exponent(divisor) if divisor is not None else None
    if shift is None or not instruction.shape.dtype.is_unsigned:
        return None
    return binary("shift-right-logical", lhs, splat_like(shift, instruction))


def remainder_power_of_two(instruction: HloInstruction) -> RuleResult:
    """A rem 2^k = A & (2^k - 1) for unsigned integers, A rem 1 = 0 for all integers."""
    lhs, rhs = instruction.operands
    divisor = splat_integer(rhs)
    if divisor is None or power_of_two_exponent(divisor) is None:
        return None
    if divisor == 1:
        return splat_like(0, instruction)
    return binary("and", lhs, splat_like(divisor - 1, instruction)) if lhs.shape.dtype.is_unsigned else None


def remainder_of_iota(instruction: HloInstruction) -> RuleResult:
    """A rem n = A for an iota that stays below n."""
    lhs, divisor = instruction.operand(0), splat_integer(instruction.operand(1))
    if divisor is None:
        return None
    source, dimension = lhs, None
    if source.opcode == "broadcast" and source.operand(0).opcode == "iota":
        source = source.operand(0)
    if source.opcode == "iota":
        dimension = source.shape.dims[source.attrs.iota_dimension]
    fits = dimension is not None and dimension <= 1 << (lhs.shape.dtype.bits - 1)
    return lhs if fits and dimension is not None and dimension <= divisor else None


def power_zero(instruction: HloInstruction) -> RuleResult:
    """A^0 = 1, for NaN too."""
    exponent = instruction.operand(1)
    if instruction.shape.dtype.is_complex or not (is_splat_of(exponent, 0) or is_splat_of(exponent, -0.0)):
        return None
    return splat_like(1, instruction)


def power_one(instruction: HloInstruction) -> RuleResult:
    """A^1 = A."""
    if instruction.shape.dtype.is_complex:
        return None
    return instruction.operand(0) if is_splat_of(instruction.operand(1), 1) else None


def power_two(instruction: HloInstruction) -> RuleResult:
    """A^2 = A * A, which is correctly rounded."""
    base = instruction.operand(0)
    if instruction.shape.dtype.is_complex or not is_splat_of(instruction.operand(1), 2):
        return None
    return binary("multiply", base, base)


def power_three_of_integer(instruction: HloInstruction) -> RuleResult:
    """A^3 = A * A * A for integers."""
    base = instruction.operand(0)
    if not is_integer(instruction) or not is_splat_of(instruction.operand(1), 3):
        return None
    return binary("multiply", binary("multiply", base, base), base)


def power_minus_one(instruction: HloInstruction) -> RuleResult:
    """A^-1 = 1 / A for floats, which is correctly rounded."""
    if not is_ieee(instruction) or not is_splat_of(instruction.operand(1), -1):
        return None
    return binary("divide", splat_like(1, instruction), instruction.operand(0))


def power_half(instruction: HloInstruction) -> RuleResult:
    """A^0.5 is no square root: (-0)^0.5 = 0 and (-inf)^0.5 = inf. Declines always."""
    if is_ieee(instruction) and is_splat_of(instruction.operand(1), 0.5):
        return Declined("sqrt(-0) is -0 and sqrt(-inf) is NaN")
    return None


RULES: tuple[RewriteRule, ...] = (
    RewriteRule("multiply", multiply_one),
    RewriteRule("multiply", multiply_zero),
    RewriteRule("multiply", multiply_minus_one),
    RewriteRule("multiply", multiply_constants),
    RewriteRule("multiply", both_negated),
    RewriteRule("multiply", multiply_by_mask),
    RewriteRule("divide", divide_one),
    RewriteRule("divide", divide_power_of_two),
    RewriteRule("divide", both_negated),
    RewriteRule("remainder", remainder_power_of_two),
    RewriteRule("remainder", remainder_of_iota),
    RewriteRule("power", power_zero),
    RewriteRule("power", power_one),
    RewriteRule("power", power_two, Strictness.CORRECTLY_ROUNDED),
    RewriteRule("power", power_three_of_integer),
    RewriteRule("power", power_minus_one, Strictness.CORRECTLY_ROUNDED),
    RewriteRule("power", power_half),
)
