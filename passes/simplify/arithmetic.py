"""Rules for sums, products, quotients, powers, signs and extremes."""

from __future__ import annotations

from xlalite.hlo.building.construct import binary, splat_like, unary
from xlalite.hlo.building.create import create
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.monoid import MonoidKind, monoid_identity
from xlalite.hlo.types.dtype import DType
from xlalite.passes.rewriting.patterns import (
    is_ieee,
    is_integer,
    is_never_negative_zero,
    is_splat_of,
    operand_with_splat,
    power_of_two_exponent,
    reciprocal_is_exact,
    same,
    splat_float,
    splat_integer,
    splat_literal,
    used_once,
)
from xlalite.passes.rewriting.rewrite import Declined, Rule, RuleResult, Strictness


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


def idempotent_rounding(instruction: HloInstruction) -> RuleResult:
    """Rounding what is a whole number already changes nothing."""
    inner = instruction.operand(0)
    return inner if inner.opcode in _ROUNDINGS else None


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


RULES: tuple[Rule, ...] = (
    *(
        Rule(opcode, constant_to_the_right)
        for opcode in ("add", "multiply", "maximum", "minimum", "and", "or", "xor", "mulhi")
    ),
    Rule("add", add_zero),
    Rule("add", add_constants),
    Rule("add", add_negated),
    Rule("add", add_common_factor),
    Rule("subtract", subtract_zero),
    Rule("subtract", subtract_itself),
    Rule("subtract", subtract_constant),
    Rule("subtract", subtract_from_zero),
    Rule("subtract", subtract_negated),
    Rule("subtract", subtract_sum),
    Rule("multiply", multiply_one),
    Rule("multiply", multiply_zero),
    Rule("multiply", multiply_minus_one),
    Rule("multiply", multiply_constants),
    Rule("multiply", both_negated),
    Rule("multiply", multiply_by_mask),
    Rule("divide", divide_one),
    Rule("divide", divide_power_of_two),
    Rule("divide", both_negated),
    Rule("remainder", remainder_power_of_two),
    Rule("remainder", remainder_of_iota),
    Rule("power", power_zero),
    Rule("power", power_one),
    Rule("power", power_two, Strictness.CORRECTLY_ROUNDED),
    Rule("power", power_three_of_integer),
    Rule("power", power_minus_one, Strictness.CORRECTLY_ROUNDED),
    Rule("power", power_half),
    Rule("negate", negate_twice),
    Rule("negate", negate_scaled),
    Rule("negate", negate_difference),
    Rule("abs", abs_of_sign),
    *(Rule(opcode, idempotent_rounding) for opcode in sorted(_ROUNDINGS)),
    *(
        Rule(opcode, rule)
        for opcode in ("maximum", "minimum")
        for rule in (
            extreme_of_same,
            extreme_with_identity,
            extreme_with_absorber,
            extreme_of_extreme,
            extreme_of_constants,
        )
    ),
    Rule("real", part_of_complex),
    Rule("imag", part_of_complex),
    Rule("complex", complex_of_parts),
)
