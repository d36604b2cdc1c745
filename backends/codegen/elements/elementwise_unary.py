"""Elements of unary elementwise operations."""

from __future__ import annotations

from collections.abc import Callable

from xlalite.backends.codegen.arrays.index import Index
from xlalite.backends.codegen.arrays.types import Element, round_result
from xlalite.backends.codegen.elements.elements import ElementEmitter, ElementRule
from xlalite.backends.codegen.elements.elementwise import RealRule, real_rule
from xlalite.backends.codegen.elements.registers import Registers
from xlalite.backends.codegen.llvm import FunctionBuilder, Value, constant, zero
from xlalite.backends.codegen.math import emit_math
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.types.dtype import DType


def _abs(fb: FunctionBuilder, dtype: DType, operands: Registers) -> Value:
    (x,) = operands
    return fb.fabs(x) if dtype.is_floating else fb.abs(x)


def _negate(fb: FunctionBuilder, dtype: DType, operands: Registers) -> Value:
    (x,) = operands
    return fb.fneg(x) if dtype.is_floating else fb.neg(x)


def _sign(fb: FunctionBuilder, dtype: DType, operands: Registers) -> Value:
    """NaN stays NaN and a zero keeps its sign."""
    (x,) = operands
    if dtype.is_floating:
        of_number = fb.copysign(constant(x.type, 1.0), x)
        return fb.select(fb.fcmp("une", x, 0.0), fb.select(fb.fcmp("uno", x, x), x, of_number), x)
    if dtype.is_unsigned:
        return fb.select(fb.icmp("eq", x, 0), x, 1)
    return fb.select(fb.icmp("eq", x, 0), x, fb.select(fb.icmp("slt", x, 0), constant(x.type, -1), 1))


def _not(fb: FunctionBuilder, dtype: DType, operands: Registers) -> Value:
    return fb.not_(operands[0])


def _popcnt(fb: FunctionBuilder, dtype: DType, operands: Registers) -> Value:
    (x,) = operands
    return fb.ctpop(fb.and_(x, (1 << dtype.bits) - 1) if dtype.bits < 8 else x)


def _count_leading_zeros(fb: FunctionBuilder, dtype: DType, operands: Registers) -> Value:
    (x,) = operands
    if dtype.bits >= 8:
        return fb.ctlz(x)
    return fb.sub(fb.ctlz(fb.and_(x, (1 << dtype.bits) - 1)), 8 - dtype.bits)


def _is_finite(fb: FunctionBuilder, dtype: DType, operands: Registers) -> Value:
    (x,) = operands
    return fb.fcmp("olt", fb.fabs(x), float("inf"))


def _math(name: str) -> RealRule:
    return lambda fb, dtype, operands: emit_math(fb, name, operands[0])


def _imag(fb: FunctionBuilder, dtype: DType, operands: Registers) -> Value:
    type_ = operands[0].type
    # A type without zero has NaN for it; what computes with it must see that, too.
    return constant(type_, float("nan")) if dtype is DType.F8E8M0FNU else zero(type_)


def _integral(compute: Callable[[FunctionBuilder, Value], Value]) -> RealRule:
    """A rounding to an integer; the least types lack some next to their numbers, and perhaps a zero of either sign."""

    def rule(fb: FunctionBuilder, dtype: DType, operands: Registers) -> Value:
        found = compute(fb, operands[0])
        return found if dtype.bits > 8 else round_result(fb, dtype, found)

    return rule


_EXACT: dict[str, RealRule] = {
    "abs": _abs,
    "negate": _negate,
    "sign": _sign,
    "not": _not,
    "popcnt": _popcnt,
    "count-leading-zeros": _count_leading_zeros,
    "ceil": _integral(FunctionBuilder.ceil),
    "floor": _integral(FunctionBuilder.floor),
    "round-nearest-afz": _integral(FunctionBuilder.round),
    "round-nearest-even": _integral(FunctionBuilder.roundeven),
    "is-finite": _is_finite,
    "real": lambda fb, dtype, xs: xs[0],
    "imag": _imag,
}
# Results of these on sub-byte integers may leave the type: they wrap.
_WRAPS = ("abs", "negate", "not", "popcnt", "count-leading-zeros")

_ROUNDED: dict[str, RealRule] = {
    name: _math(name)
    for name in (
        "exponential-minus-one",
        "log",
        "log-plus-one",
        "logistic",
        "tanh",
        "tan",
        "sine",
        "cosine",
        "asin",
        "acos",
        "atan",
        "asinh",
        "acosh",
        "atanh",
        "sinh",
        "cosh",
        "rsqrt",
        "cbrt",
        "erf",
    )
} | {"sqrt": lambda fb, dtype, xs: fb.sqrt(xs[0])}

_EXPONENTIAL, _EXPONENTIAL_FEW_DENORMALS = (
    real_rule(_math(name)) for name in ("exponential", "exponential-few-denormals")
)


def _exponential(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> Element:
    """Most numbers less the largest of their row, as in a softmax, are not far below it."""
    x = instruction.operand(0)
    is_below = x.opcode == "subtract" and x.operand(1).opcode == "broadcast"
    return (_EXPONENTIAL_FEW_DENORMALS if is_below else _EXPONENTIAL)(emitter, instruction, index)


ELEMENT_RULES: dict[str, ElementRule] = {
    "exponential": _exponential,
    **{name: real_rule(compute, exact=name not in _WRAPS) for name, compute in _EXACT.items()},
    **{name: real_rule(compute) for name, compute in _ROUNDED.items()},
}
