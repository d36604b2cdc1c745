"""Rules for maxima and minima."""

from __future__ import annotations

from xlalite.hlo.building.construct import binary, splat_like
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.monoid import MonoidKind, monoid_identity
from xlalite.hlo.types.dtype import DType
from xlalite.passes.rewriting.patterns import (
    is_ieee,
    operand_with_splat,
    same,
    splat_literal,
)
from xlalite.passes.rewriting.rewrite import Declined, RewriteRule, RuleResult


def extreme_of_same(instruction: HloInstruction) -> RuleResult:
    """max(A, A) = min(A, A) = A."""
    lhs, rhs = instruction.operands
    return lhs if same(lhs, rhs) else None


def extreme_with_identity(instruction: HloInstruction) -> RuleResult:
    """max(A, lowest) = A and min(A, highest) = A."""
    found = operand_with_splat(instruction)
    if found is None:
        return None
    other, literal = found
    dtype = literal.shape.dtype
    if not (dtype.is_integral or is_ieee(instruction)):
        return None
    return other if literal.value == monoid_identity(MonoidKind(instruction.opcode), dtype) else None


def extreme_with_absorber(instruction: HloInstruction) -> RuleResult:
    """max(A, highest) = highest and min(A, lowest) = lowest for integers."""
    found = operand_with_splat(instruction)
    if found is None:
        return None
    literal = found[1]
    dtype = literal.shape.dtype
    opposite = MonoidKind.MINIMUM if instruction.opcode == "maximum" else MonoidKind.MAXIMUM
    if dtype.is_complex or dtype is DType.PRED or literal.value != monoid_identity(opposite, dtype):
        return None
    return splat_like(literal.value, instruction) if dtype.is_integral else Declined("A may be NaN")


def extreme_of_extreme(instruction: HloInstruction) -> RuleResult:
    """max(max(A, B), B) = max(A, B), and the same for min."""
    for inner, other in (instruction.operands, instruction.operands[::-1]):
        if inner.opcode == instruction.opcode and any(same(operand, other) for operand in inner.operands):
            return inner
    return None


def extreme_of_constants(instruction: HloInstruction) -> RuleResult:
    """max(max(A, c1), c2) = max(A, max(c1, c2)), and the same for min."""
    inner, outer_constant = instruction.operands
    if inner.opcode != instruction.opcode or splat_literal(outer_constant) is None:
        return None
    a, inner_constant = inner.operands
    if splat_literal(inner_constant) is None or splat_literal(a) is not None:
        return None
    return binary(instruction.opcode, a, binary(instruction.opcode, inner_constant, outer_constant))


RULES: tuple[RewriteRule, ...] = tuple(
    RewriteRule(opcode, rule)
    for opcode in ("maximum", "minimum")
    for rule in (
        extreme_of_same,
        extreme_with_identity,
        extreme_with_absorber,
        extreme_of_extreme,
        extreme_of_constants,
    )
)
