"""Rules for sums, differences and signs, and the side on which constants stand."""

from __future__ import annotations

import math

from xlalite.hlo.building.construct import binary, broadcast, concatenate, scalar, splat_like, unary
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.types.dtype import DType
from xlalite.passes.rewriting.patterns import (
    is_ieee,
    is_integer,
    is_never_negative_zero,
    is_splat_of,
    same,
    splat_integer,
    splat_literal,
    used_once,
)
from xlalite.passes.rewriting.rewrite import Declined, RewriteRule, RuleResult

_FEWEST_PADDED = 3
"""Arrays with zeros around them that are worth a concatenation in the place of their sum."""


def constant_to_the_right(instruction: HloInstruction) -> RuleResult:
    """C op A = A op C for commutative operations and constant C: other rules look at one side only."""
    lhs, rhs = instruction.operands
    if splat_literal(lhs) is None or splat_literal(rhs) is not None:
        return None
    return binary(instruction.opcode, rhs, lhs)


def add_zero(instruction: HloInstruction) -> RuleResult:
    """A + 0 = A for integers and A + -0 = A for floats; A + 0 = A for floats that are never -0."""
    lhs, rhs = instruction.operands
    if is_integer(instruction):
        return lhs if is_splat_of(rhs, 0) else None
    if is_splat_of(rhs, -0.0) and is_ieee(instruction):
        return lhs
    if is_splat_of(rhs, 0.0) and is_ieee(instruction):
        return lhs if is_never_negative_zero(lhs) else Declined("-0 + 0 is 0")
    return None


def add_constants(instruction: HloInstruction) -> RuleResult:
    """(A + c1) + c2 = A + (c1 + c2) for integers."""
    inner, c2 = instruction.operand(0), splat_integer(instruction.operand(1))
    if c2 is None or inner.opcode != "add":
        return None
    c1 = splat_integer(inner.operand(1))
    return None if c1 is None else binary("add", inner.operand(0), splat_like(c1 + c2, instruction))


def add_negated(instruction: HloInstruction) -> RuleResult:
    """A + -B = A - B and -A + B = B - A."""
    lhs, rhs = instruction.operands
    if rhs.opcode == "negate":
        return binary("subtract", lhs, rhs.operand(0))
    if lhs.opcode == "negate":
        return binary("subtract", rhs, lhs.operand(0))
    return None


def add_padded(instruction: HloInstruction) -> RuleResult:
    """pad(A, 0) + pad(B, 0) + ... + C = (concatenate(A, B, ...) + 0) + C where none of three or more overlap.

    So are gradients of parts of an array that are taken one by one, each of which would walk through all of it.
    """
    if used_once(instruction) and instruction.users[0].opcode == "add":
        return None
    terms = _terms(instruction)
    places = {term: place for term in terms if (place := _place_among_zeros(term)) is not None}
    others = [term for term in terms if term not in places]
    axes = {axis for axis, _ in places.values()}
    if len(places) < _FEWEST_PADDED or len(others) > 1 or len(axes) > 1:
        return None
    (axis,), dims, end = axes, instruction.shape.dims, 0
    pieces: list[HloInstruction] = []
    for term, (_, start) in sorted(places.items(), key=lambda one: one[1][1]):
        if start < end:
            return None
        pieces += [_zeros(instruction, axis, start - end), term.operand(0)]
        end = start + term.operand(0).shape.dims[axis]
    pieces.append(_zeros(instruction, axis, dims[axis] - end))
    # Of -0 the other terms make 0.
    found = binary(
        "add", concatenate([one for one in pieces if one.shape.dims[axis]], axis), splat_like(0, instruction)
    )
    return binary("add", found, others[0]) if others else found


def _terms(total: HloInstruction) -> list[HloInstruction]:
    """What a sum adds up; its parts are sums of which nobody else needs anything."""
    found, waiting = [], [total]
    while waiting:
        one = waiting.pop()
        if one.opcode == "add" and (one is total or used_once(one)):
            waiting.extend(reversed(one.operands))
        else:
            found.append(one)
    return found


def _place_among_zeros(term: HloInstruction) -> tuple[int, int] | None:
    """The dimension along which an array has zeros around it, and where it begins; None if it is no such array."""
    if term.opcode != "pad" or not used_once(term) or not is_splat_of(term.operand(1), 0.0):
        return None
    padded = [axis for axis, amounts in enumerate(term.attrs.padding) if any(amounts)]
    if len(padded) != 1:
        return None
    low, high, interior = term.attrs.padding[padded[0]]
    return (padded[0], low) if low >= 0 and high >= 0 and not interior else None


def _zeros(like: HloInstruction, axis: int, size: int) -> HloInstruction:
    dims = like.shape.dims
    return broadcast(scalar(0, like.shape.dtype), (*dims[:axis], size, *dims[axis + 1 :]))


def add_common_factor(instruction: HloInstruction) -> RuleResult:
    """A*C + B*C = (A + B)*C for integers, when neither product has another use."""
    lhs, rhs = instruction.operands
    if not is_integer(instruction) or lhs.opcode != "multiply" or rhs.opcode != "multiply":
        return None
    if lhs is rhs or not used_once(lhs) or not used_once(rhs):
        return None
    for a, c in (lhs.operands, lhs.operands[::-1]):
        for b, d in (rhs.operands, rhs.operands[::-1]):
            if same(c, d):
                return binary("multiply", binary("add", a, b), c)
    return None


def subtract_zero(instruction: HloInstruction) -> RuleResult:
    """A - 0 = A, for -0 too."""
    lhs, rhs = instruction.operands
    if is_splat_of(rhs, 0) and (is_integer(instruction) or is_ieee(instruction)):
        return lhs
    if is_ieee(instruction) and is_splat_of(rhs, -0.0):
        return Declined("-0 - -0 is 0")
    return None


def subtract_itself(instruction: HloInstruction) -> RuleResult:
    """A - A = 0 for integers."""
    lhs, rhs = instruction.operands
    if not same(lhs, rhs):
        return None
    return splat_like(0, instruction) if is_integer(instruction) else Declined("A may be infinite or NaN")


def subtract_constant(instruction: HloInstruction) -> RuleResult:
    """A - c = A + -c for integers, so that constants meet in sums."""
    c = splat_integer(instruction.operand(1))
    return None if c is None else binary("add", instruction.operand(0), splat_like(-c, instruction))


def subtract_from_zero(instruction: HloInstruction) -> RuleResult:
    """0 - A = -A for integers and -0 - A = -A for floats."""
    lhs, rhs = instruction.operands
    if (is_integer(instruction) and is_splat_of(lhs, 0)) or (is_ieee(instruction) and is_splat_of(lhs, -0.0)):
        return unary("negate", rhs)
    if is_ieee(instruction) and is_splat_of(lhs, 0.0):
        return Declined("0 - 0 is 0, not -0")
    return None


def subtract_negated(instruction: HloInstruction) -> RuleResult:
    """A - -B = A + B."""
    lhs, rhs = instruction.operands
    return binary("add", lhs, rhs.operand(0)) if rhs.opcode == "negate" else None


def subtract_sum(instruction: HloInstruction) -> RuleResult:
    """(A + B) - A = B and (A + B) - B = A for integers."""
    lhs, rhs = instruction.operands
    if lhs.opcode != "add" or not is_integer(instruction):
        return None
    a, b = lhs.operands
    return b if a is rhs else a if b is rhs else None


def negate_powers(instruction: HloInstruction) -> RuleResult:
    """-A = NaN for floats that have no negative numbers, so that no other rule takes two negations for none."""
    return splat_like(math.nan, instruction) if instruction.shape.dtype is DType.F8E8M0FNU else None


def negate_twice(instruction: HloInstruction) -> RuleResult:
    """--A = A."""
    inner = instruction.operand(0)
    return inner.operand(0) if inner.opcode == "negate" else None


def negate_scaled(instruction: HloInstruction) -> RuleResult:
    """-(A * c) = A * -c for a constant c."""
    inner = instruction.operand(0)
    if inner.opcode != "multiply" or not used_once(inner) or instruction.shape.dtype.is_complex:
        return None
    literal = splat_literal(inner.operand(1))
    if literal is None:
        return None
    return binary("multiply", inner.operand(0), unary("negate", inner.operand(1)))


def negate_difference(instruction: HloInstruction) -> RuleResult:
    """-(A - B) = B - A for integers."""
    inner = instruction.operand(0)
    if inner.opcode != "subtract" or not used_once(inner):
        return None
    if not is_integer(instruction):
        return Declined("-(A - A) is -0, A - A is 0")
    return binary("subtract", inner.operand(1), inner.operand(0))


def abs_of_sign(instruction: HloInstruction) -> RuleResult:
    """||A|| = |A| and |-A| = |A|."""
    inner = instruction.operand(0)
    if inner.opcode == "abs":
        return inner
    return unary("abs", inner.operand(0)) if inner.opcode == "negate" else None


RULES: tuple[RewriteRule, ...] = (
    *(
        RewriteRule(opcode, constant_to_the_right)
        for opcode in ("add", "multiply", "maximum", "minimum", "and", "or", "xor", "mulhi")
    ),
    RewriteRule("add", add_zero),
    RewriteRule("add", add_constants),
    RewriteRule("add", add_negated),
    RewriteRule("add", add_common_factor),
    RewriteRule("add", add_padded),
    RewriteRule("subtract", subtract_zero),
    RewriteRule("subtract", subtract_itself),
    RewriteRule("subtract", subtract_constant),
    RewriteRule("subtract", subtract_from_zero),
    RewriteRule("subtract", subtract_negated),
    RewriteRule("subtract", subtract_sum),
    RewriteRule("negate", negate_powers),
    RewriteRule("negate", negate_twice),
    RewriteRule("negate", negate_scaled),
    RewriteRule("negate", negate_difference),
    RewriteRule("abs", abs_of_sign),
)
