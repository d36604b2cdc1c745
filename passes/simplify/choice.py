"""Rules for compare, select and clamp."""

from __future__ import annotations

import operator

from xlalite.hlo.building.construct import binary, broadcast, splat_like, unary
from xlalite.hlo.building.create import create
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.numerics.conversion import integer_range
from xlalite.hlo.ops.comparison import CompareAttrs, ComparisonType, Direction, default_comparison_type
from xlalite.hlo.types.dtype import DType
from xlalite.passes.rewriting.patterns import same, splat_bool, splat_integer, splat_literal
from xlalite.passes.rewriting.rewrite import Declined, RewriteRule, RuleResult

_REFLEXIVE = frozenset({Direction.EQ, Direction.GE, Direction.LE})
_RELATION = {
    Direction.EQ: operator.eq,
    Direction.NE: operator.ne,
    Direction.GE: operator.ge,
    Direction.GT: operator.gt,
    Direction.LE: operator.le,
    Direction.LT: operator.lt,
}


def compare_constant_to_the_right(instruction: HloInstruction) -> RuleResult:
    """C < A = A > C for constant C, so that other rules look at one side only."""
    lhs, rhs = instruction.operands
    if splat_literal(lhs) is None or splat_literal(rhs) is not None:
        return None
    attrs: CompareAttrs = instruction.attrs
    return create("compare", (rhs, lhs), CompareAttrs(attrs.direction.swapped, attrs.type))


def compare_with_itself(instruction: HloInstruction) -> RuleResult:
    """A == A, A <= A, A >= A are true, A != A, A < A, A > A false, for what is never NaN."""
    lhs, rhs = instruction.operands
    if not same(lhs, rhs):
        return None
    order = instruction.attrs.type or default_comparison_type(lhs.shape.dtype)
    direction: Direction = instruction.attrs.direction
    if order is ComparisonType.FLOAT and direction not in (Direction.LT, Direction.GT):
        return Declined("A may be NaN")
    return splat_like(direction in _REFLEXIVE, instruction)


def compare_with_extreme(instruction: HloInstruction) -> RuleResult:
    """A < c = false for c up to the least value of A, an integer or iota, true beyond its greatest; so for >, ==."""
    lhs, bound = instruction.operand(0), splat_integer(instruction.operand(1))
    if bound is None:
        return None
    lowest, highest = _range(lhs)
    direction: Direction = instruction.attrs.direction
    relation = _RELATION[direction]
    if direction in (Direction.EQ, Direction.NE) and lowest <= bound <= highest:
        return None
    answer = relation(lowest, bound)
    return splat_like(answer, instruction) if relation(highest, bound) is answer else None


def compare_pred_with_constant(instruction: HloInstruction) -> RuleResult:
    """P == true is P, P != false is P, P == false and P != true are ~P."""
    lhs, constant = instruction.operand(0), splat_bool(instruction.operand(1))
    direction = instruction.attrs.direction
    if constant is None or direction not in (Direction.EQ, Direction.NE):
        return None
    return lhs if constant is (direction is Direction.EQ) else unary("not", lhs)


def compare_converted_pred(instruction: HloInstruction) -> RuleResult:
    """convert(P) != 0 is P, convert(P) == 0 is ~P."""
    lhs, rhs = instruction.operands
    direction = instruction.attrs.direction
    if lhs.opcode != "convert" or lhs.operand(0).shape.dtype is not DType.PRED:
        return None
    literal = splat_literal(rhs)
    if literal is None or not literal.is_all(0) or direction not in (Direction.EQ, Direction.NE):
        return None
    return lhs.operand(0) if direction is Direction.NE else unary("not", lhs.operand(0))


def select_same(instruction: HloInstruction) -> RuleResult:
    """select(P, A, A) = A."""
    _, on_true, on_false = instruction.operands
    return on_true if same(on_true, on_false) else None


def select_by_constant(instruction: HloInstruction) -> RuleResult:
    """select(true, A, B) = A and select(false, A, B) = B."""
    condition, on_true, on_false = instruction.operands
    value = splat_bool(condition)
    return None if value is None else on_true if value else on_false


def select_by_negation(instruction: HloInstruction) -> RuleResult:
    """select(~P, A, B) = select(P, B, A)."""
    condition, on_true, on_false = instruction.operands
    return _select(condition.operand(0), on_false, on_true) if condition.opcode == "not" else None


def select_by_broadcast(instruction: HloInstruction) -> RuleResult:
    """select(broadcast(p), A, B) = select(p, A, B) for a scalar p."""
    condition, on_true, on_false = instruction.operands
    if condition.opcode != "broadcast" or not condition.operand(0).shape.is_scalar:
        return None
    return _select(condition.operand(0), on_true, on_false)


def select_of_select(instruction: HloInstruction) -> RuleResult:
    """select(P, select(P, A, B), C) = select(P, A, C), and the same on the other side."""
    condition, on_true, on_false = instruction.operands
    if on_true.opcode == "select" and on_true.operand(0) is condition:
        return _select(condition, on_true.operand(1), on_false)
    if on_false.opcode == "select" and on_false.operand(0) is condition:
        return _select(condition, on_true, on_false.operand(2))
    return None


def select_of_preds(instruction: HloInstruction) -> RuleResult:
    """select(P, true, B) = P | B, select(P, A, false) = P & A, and with ~P where the constant is the other one."""
    if instruction.shape.dtype is not DType.PRED:
        return None
    condition, on_true, on_false = instruction.operands
    known_true, known_false = splat_bool(on_true), splat_bool(on_false)
    if known_true is None and known_false is None:
        return None
    mask = broadcast(condition, instruction.shape.dims) if condition.shape.is_scalar else condition
    if known_true is not None:
        return binary("or", mask, on_false) if known_true else binary("and", unary("not", mask), on_false)
    return binary("or", unary("not", mask), on_true) if known_false else binary("and", mask, on_true)


def clamp_without_bounds(instruction: HloInstruction) -> RuleResult:
    """clamp(lowest, A, highest) = A for integers; with one such bound it is a max or a min."""
    low, value, high = instruction.operands
    dtype = value.shape.dtype
    if not dtype.is_integral:
        return None
    lowest, highest = integer_range(dtype)
    no_low, no_high = splat_integer(low) == lowest, splat_integer(high) == highest
    if no_low and no_high:
        return value
    if no_low:
        return binary("minimum", value, _spread(high, value))
    return binary("maximum", value, _spread(low, value)) if no_high else None


def clamp_of_clamp(instruction: HloInstruction) -> RuleResult:
    """clamp(l, clamp(l, A, h), h) = clamp(l, A, h)."""
    low, value, high = instruction.operands
    if value.opcode != "clamp" or not same(low, value.operand(0)) or not same(high, value.operand(2)):
        return None
    return value


def _select(condition: HloInstruction, on_true: HloInstruction, on_false: HloInstruction) -> HloInstruction:
    return create("select", (condition, on_true, on_false))


def _spread(bound: HloInstruction, like: HloInstruction) -> HloInstruction:
    return broadcast(bound, like.shape.dims) if bound.shape.is_scalar else bound


def _range(instruction: HloInstruction) -> tuple[int, int]:
    """The least and the greatest value that an element may have: those of its type, or of an iota."""
    lowest, highest = integer_range(instruction.shape.dtype)
    source = instruction.operand(0) if instruction.opcode == "broadcast" else instruction
    if source.opcode != "iota":
        return lowest, highest
    last = source.shape.dims[source.attrs.iota_dimension] - 1
    return (0, last) if 0 <= last <= highest else (lowest, highest)


RULES: tuple[RewriteRule, ...] = (
    RewriteRule("compare", compare_constant_to_the_right),
    RewriteRule("compare", compare_with_itself),
    RewriteRule("compare", compare_with_extreme),
    RewriteRule("compare", compare_pred_with_constant),
    RewriteRule("compare", compare_converted_pred),
    RewriteRule("select", select_same),
    RewriteRule("select", select_by_constant),
    RewriteRule("select", select_by_negation),
    RewriteRule("select", select_by_broadcast),
    RewriteRule("select", select_of_select),
    RewriteRule("select", select_of_preds),
    RewriteRule("clamp", clamp_without_bounds),
    RewriteRule("clamp", clamp_of_clamp),
)
