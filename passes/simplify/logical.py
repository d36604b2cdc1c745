"""Rules for and, or, xor, not and shifts, and for pred under the names of arithmetic."""

from __future__ import annotations

from xlalite.hlo.building.construct import binary, splat_like, unary
from xlalite.hlo.building.create import create
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.monoid import MonoidKind, monoid_identity
from xlalite.hlo.types.dtype import DType
from xlalite.passes.rewriting.patterns import operand_with_splat, same, splat_integer, splat_literal, used_once
from xlalite.passes.rewriting.rewrite import Declined, RewriteRule, RuleResult


def bits_with_itself(instruction: HloInstruction) -> RuleResult:
    """A & A = A | A = A."""
    lhs, rhs = instruction.operands
    return lhs if same(lhs, rhs) else None


def bits_with_identity(instruction: HloInstruction) -> RuleResult:
    """A & ones = A | 0 = A ^ 0 = A."""
    found = operand_with_splat(instruction)
    if found is None:
        return None
    other, literal = found
    return other if literal.value == monoid_identity(MonoidKind(instruction.opcode), literal.shape.dtype) else None


def bits_with_absorber(instruction: HloInstruction) -> RuleResult:
    """A & 0 = 0 and A | ones = ones."""
    found = operand_with_splat(instruction)
    if found is None:
        return None
    literal = found[1]
    opposite = MonoidKind.OR if instruction.opcode == "and" else MonoidKind.AND
    absorber = monoid_identity(opposite, literal.shape.dtype)
    return splat_like(absorber, instruction) if literal.value == absorber else None


def bits_of_constants(instruction: HloInstruction) -> RuleResult:
    """(A op c1) op c2 = A op (c1 op c2)."""
    inner, outer_constant = instruction.operands
    if inner.opcode != instruction.opcode or splat_literal(outer_constant) is None:
        return None
    a, inner_constant = inner.operands
    if splat_literal(inner_constant) is None or splat_literal(a) is not None:
        return None
    return binary(instruction.opcode, a, binary(instruction.opcode, inner_constant, outer_constant))


def bits_with_complement(instruction: HloInstruction) -> RuleResult:
    """A & ~A = 0, A | ~A = A ^ ~A = ones."""
    for a, b in (instruction.operands, instruction.operands[::-1]):
        if b.opcode == "not" and b.operand(0) is a:
            kind = MonoidKind.OR if instruction.opcode == "and" else MonoidKind.AND
            return splat_like(monoid_identity(kind, instruction.shape.dtype), instruction)
    return None


def bits_repeated(instruction: HloInstruction) -> RuleResult:
    """(A & B) & B = A & B and (A | B) | B = A | B."""
    for inner, other in (instruction.operands, instruction.operands[::-1]):
        if inner.opcode == instruction.opcode and any(operand is other for operand in inner.operands):
            return inner
    return None


def xor_with_itself(instruction: HloInstruction) -> RuleResult:
    """A ^ A = 0."""
    lhs, rhs = instruction.operands
    return splat_like(False if lhs.shape.dtype is DType.PRED else 0, instruction) if same(lhs, rhs) else None


def xor_with_ones(instruction: HloInstruction) -> RuleResult:
    """A ^ ones = ~A."""
    literal = splat_literal(instruction.operand(1))
    if literal is None or literal.value != monoid_identity(MonoidKind.AND, literal.shape.dtype):
        return None
    return unary("not", instruction.operand(0))


def not_twice(instruction: HloInstruction) -> RuleResult:
    """~~A = A."""
    inner = instruction.operand(0)
    return inner.operand(0) if inner.opcode == "not" else None


def not_of_comparison(instruction: HloInstruction) -> RuleResult:
    """~(A < B) = A >= B where the order is total; for floats only ~(A == B) = A != B and back."""
    inner = instruction.operand(0)
    if inner.opcode != "compare" or not used_once(inner):
        return None
    from xlalite.hlo.ops.comparison import CompareAttrs, ComparisonType, Direction, default_comparison_type

    direction: Direction = inner.attrs.direction
    order = inner.attrs.type or default_comparison_type(inner.operand(0).shape.dtype)
    if order is ComparisonType.FLOAT and direction not in (Direction.EQ, Direction.NE):
        return Declined("both are false when an operand is NaN")
    return create("compare", inner.operands, CompareAttrs(direction.inverse, inner.attrs.type))


def pred_arithmetic(instruction: HloInstruction) -> RuleResult:
    """On pred: A + B = max(A, B) = A | B and A * B = min(A, B) = A & B."""
    if instruction.shape.dtype is not DType.PRED:
        return None
    return binary("or" if instruction.opcode in ("add", "maximum") else "and", *instruction.operands)


def shift_by_zero(instruction: HloInstruction) -> RuleResult:
    """A << 0 = A >> 0 = A."""
    return instruction.operand(0) if splat_integer(instruction.operand(1)) == 0 else None


def shift_out(instruction: HloInstruction) -> RuleResult:
    """A << n = 0 and A >> n = 0 (logical) when n is the width or more."""
    amount = _shift_amount(instruction)
    if amount is None or amount < instruction.shape.dtype.bits:
        return None
    return splat_like(0, instruction)


def shift_of_shift(instruction: HloInstruction) -> RuleResult:
    """(A << m) << n = A << (m + n), and the same to the right, while m + n stays below the width."""
    inner, outer = instruction.operand(0), _shift_amount(instruction)
    if inner.opcode != instruction.opcode or outer is None:
        return None
    first = _shift_amount(inner)
    if first is None:
        return None
    total, bits = first + outer, instruction.shape.dtype.bits
    if total >= bits or (instruction.shape.dtype.is_signed and total >= 1 << (bits - 1)):
        return None
    return binary(instruction.opcode, inner.operand(0), splat_like(total, instruction))


def _shift_amount(instruction: HloInstruction) -> int | None:
    """The constant amount, taken as unsigned."""
    amount = splat_integer(instruction.operand(1))
    return None if amount is None else amount % (1 << instruction.shape.dtype.bits)


RULES: tuple[RewriteRule, ...] = (
    *(
        RewriteRule(opcode, rule)
        for opcode in ("and", "or")
        for rule in (bits_with_itself, bits_with_identity, bits_with_absorber, bits_repeated)
    ),
    RewriteRule("xor", bits_with_identity),
    RewriteRule("xor", xor_with_itself),
    RewriteRule("xor", xor_with_ones),
    *(
        RewriteRule(opcode, rule)
        for opcode in ("and", "or", "xor")
        for rule in (bits_with_complement, bits_of_constants)
    ),
    RewriteRule("not", not_twice),
    RewriteRule("not", not_of_comparison),
    *(RewriteRule(opcode, pred_arithmetic) for opcode in ("add", "multiply", "maximum", "minimum")),
    *(RewriteRule(opcode, shift_by_zero) for opcode in ("shift-left", "shift-right-logical", "shift-right-arithmetic")),
    RewriteRule("shift-left", shift_out),
    RewriteRule("shift-right-logical", shift_out),
    *(
        RewriteRule(opcode, shift_of_shift)
        for opcode in ("shift-left", "shift-right-logical", "shift-right-arithmetic")
    ),
)
