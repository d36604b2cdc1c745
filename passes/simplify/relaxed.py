"""Rules that change results. None runs unless it is asked for by name."""

from __future__ import annotations

from xlalite.hlo.building.construct import binary, splat_like, unary
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.passes.rewriting.patterns import is_ieee, is_splat_of, same, splat_float
from xlalite.passes.rewriting.rewrite import RewriteRule, RuleResult, Strictness


def relaxed_add_zero(instruction: HloInstruction) -> RuleResult:
    """A + 0 = A, where -0 stays -0."""
    lhs, rhs = instruction.operands
    return lhs if is_ieee(instruction) and is_splat_of(rhs, 0) else None


def relaxed_divide_by_constant(instruction: HloInstruction) -> RuleResult:
    """A / c = A * (1 / c), with two roundings."""
    divisor = splat_float(instruction.operand(1))
    if divisor is None or divisor == 0:
        return None
    return binary("multiply", instruction.operand(0), splat_like(1.0 / divisor, instruction))


def relaxed_log_of_exponential(instruction: HloInstruction) -> RuleResult:
    """log(exp(A)) = A, where exp(A) would overflow or vanish."""
    inner = instruction.operand(0)
    return inner.operand(0) if inner.opcode == "exponential" else None


def relaxed_product_of_exponentials(instruction: HloInstruction) -> RuleResult:
    """exp(A) * exp(B) = exp(A + B), with other roundings and overflows."""
    lhs, rhs = instruction.operands
    if lhs.opcode != "exponential" or rhs.opcode != "exponential":
        return None
    return unary("exponential", binary("add", lhs.operand(0), rhs.operand(0)))


def relaxed_subtract_itself(instruction: HloInstruction) -> RuleResult:
    """A - A = 0, for infinities and NaN too."""
    lhs, rhs = instruction.operands
    return splat_like(0, instruction) if is_ieee(instruction) and same(lhs, rhs) else None


def relaxed_divide_by_square_root(instruction: HloInstruction) -> RuleResult:
    """A / sqrt(B) = A * rsqrt(B), with other roundings."""
    lhs, rhs = instruction.operands
    return binary("multiply", lhs, unary("rsqrt", rhs.operand(0))) if rhs.opcode == "sqrt" else None


RULES: tuple[RewriteRule, ...] = (
    RewriteRule("add", relaxed_add_zero, Strictness.RELAXED),
    RewriteRule("divide", relaxed_divide_by_constant, Strictness.RELAXED),
    RewriteRule("divide", relaxed_divide_by_square_root, Strictness.RELAXED),
    RewriteRule("log", relaxed_log_of_exponential, Strictness.RELAXED),
    RewriteRule("multiply", relaxed_product_of_exponentials, Strictness.RELAXED),
    RewriteRule("subtract", relaxed_subtract_itself, Strictness.RELAXED),
)
