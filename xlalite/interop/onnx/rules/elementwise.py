"""Operators on elements, with NumPy's broadcasting."""

from __future__ import annotations

import math
from functools import reduce

import ml_dtypes

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape
from xlalite.interop.onnx.context import NodeContext, filled, rule
from xlalite.interop.onnx.scope import Value

_UNARY = {
    "Abs": "abs", "Acos": "acos", "Acosh": "acosh", "Asin": "asin", "Asinh": "asinh", "Atan": "atan", "Atanh": "atanh",
    "BitwiseNot": "not", "Ceil": "ceil", "Cos": "cosine", "Cosh": "cosh", "Erf": "erf", "Exp": "exponential",
    "Floor": "floor", "Log": "log", "Neg": "negate", "Not": "not", "Round": "round-nearest-even",
    "Sigmoid": "logistic", "Sign": "sign", "Sin": "sine", "Sinh": "sinh", "Sqrt": "sqrt", "Tan": "tan", "Tanh": "tanh",
}  # fmt: skip
_BINARY = {
    "Add": "add", "And": "and", "BitwiseAnd": "and", "BitwiseOr": "or", "BitwiseXor": "xor", "Div": "divide",
    "Mul": "multiply", "Or": "or", "Sub": "subtract", "Xor": "xor",
}  # fmt: skip
_RELATIONS = {"Equal": "EQ", "Greater": "GT", "GreaterOrEqual": "GE", "Less": "LT", "LessOrEqual": "LE"}
_LARGEST_SINGLE = 3.4028234663852886e38
_VARIADIC = {"Max": "maximum", "Min": "minimum", "Sum": "add"}


@rule(*_UNARY)
def _unary(context: NodeContext) -> Handle:
    return context.builder.op(_UNARY[context.operator], (context.operand(0),))


@rule(*_BINARY)
def _binary(context: NodeContext) -> Handle:
    return context.builder.op(_BINARY[context.operator], _aligned(context))


def _aligned(context: NodeContext) -> list[Handle]:
    """The two operands at common sizes; before version 7 the second one lies at an axis of the first."""
    first, second = context.operand(0), context.operand(1)
    if context.version >= 7 or not context.integer("broadcast", 0):
        return context.common(first, second)
    rank = len(first.dims)
    axis = context.axis(rank) if "axis" in context.attributes else rank - len(second.dims)
    places = range(axis, axis + len(second.dims))
    return [first, context.builder.broadcast_in_dim(second, first.dims, places)]


@rule(*_RELATIONS)
def _compare(context: NodeContext) -> Handle:
    lhs, rhs = _aligned(context)
    return context.builder.compare(lhs, rhs, _RELATIONS[context.operator])


@rule(*_VARIADIC)
def _variadic(context: NodeContext) -> Handle:
    opcode = _VARIADIC[context.operator]
    return reduce(lambda x, y: context.builder.op(opcode, (x, y)), context.common(*context.operands()))


@rule("Mean")
def _mean(context: NodeContext) -> Handle:
    return _variadic_sum(context) / len(context.inputs)


def _variadic_sum(context: NodeContext) -> Handle:
    return reduce(lambda x, y: x + y, context.common(*context.operands()))


@rule("Reciprocal")
def _reciprocal(context: NodeContext) -> Handle:
    return filled(1, context.operand(0)) / context.operand(0)


@rule("Where")
def _where(context: NodeContext) -> Handle:
    return context.builder.op("select", context.common(*context.operands()))


@rule("Pow")
def _pow(context: NodeContext) -> Handle:
    """In the base's type; a base of integers is raised in that of the exponent and truncated."""
    b = context.builder
    base, exponent = _aligned(context)
    wide = exponent.dtype if exponent.dtype.is_floating and base.dtype.is_integral else base.dtype
    return b.convert(b.op("power", (b.convert(base, wide), b.convert(exponent, wide))), base.dtype)


@rule("Mod")
def _mod(context: NodeContext) -> Handle:
    """With the divisor's sign, as Python has it; with `fmod` with that of the dividend."""
    b, (x, y) = context.builder, _aligned(context)
    rest = x % y
    if context.integer("fmod", 0) or x.dtype.is_unsigned:
        return rest
    differs = b.compare(rest, 0, "NE") & (b.compare(rest, 0, "LT") ^ b.compare(y, 0, "LT"))
    return b.select(differs, rest + y, rest)


@rule("BitShift")
def _bit_shift(context: NodeContext) -> Handle:
    x, amount = _aligned(context)
    right = "shift-right-arithmetic" if x.dtype.is_signed else "shift-right-logical"
    opcode = {"LEFT": "shift-left", "RIGHT": right}.get(context.text("direction"))
    if opcode is None:
        raise context.error(f"direction must be LEFT or RIGHT, found {context.text('direction')!r}")
    return context.builder.op(opcode, (x, amount))


@rule("IsNaN")
def _is_nan(context: NodeContext) -> Handle:
    x = context.operand(0)
    return context.builder.compare(x, x, "NE")


@rule("IsInf")
def _is_inf(context: NodeContext) -> Handle:
    b, x = context.builder, context.operand(0)
    found = b.full(False, DType.PRED, x.dims)
    for name, infinity in (("detect_positive", math.inf), ("detect_negative", -math.inf)):
        if context.integer(name, 1):
            found = found | b.compare(x, filled(infinity, x), "EQ")
    return found


@rule("Clip")
def _clip(context: NodeContext) -> Handle:
    x = context.operand(0)
    low, high = context.optional(1), context.optional(2)
    if context.version < 11:
        low = context.constant(context.number("min", -_LARGEST_SINGLE), x.dtype)
        high = context.constant(context.number("max", _LARGEST_SINGLE), x.dtype)
    for opcode, bound in (("maximum", low), ("minimum", high)):
        if bound is not None:
            x = context.builder.op(opcode, context.common(x, bound))
    return x


@rule("Identity")
def _identity(context: NodeContext) -> Value:
    return context.value(0)


@rule("Cast")
def _cast(context: NodeContext) -> Handle:
    return cast(context, context.operand(0), context.dtype("to"))


@rule("CastLike")
def _cast_like(context: NodeContext) -> Handle:
    return cast(context, context.operand(0), context.operand(1).dtype)


def cast(context: NodeContext, x: Handle, dtype: DType) -> Handle:
    """Values in another type.

    Numbers too large for a float of 8 bits become its largest one unless the attribute `saturate` is 0, and so do
    those for one of 4 or 6 bits, which have neither infinities nor NaN; integers keep their lowest bits.
    """
    b = context.builder
    if x.dtype is dtype:
        return x
    if dtype is DType.PRED:
        return b.compare(x, filled(0, x), "NE")
    if dtype is DType.F8E8M0FNU:
        return _to_scale(context, x)
    if dtype.is_floating and dtype.bits <= 8:
        return _to_narrow_float(context, x, dtype, context.integer("saturate", 1) != 0)
    if dtype.is_integral and dtype.bits < 8 and not x.dtype.is_integral:
        return b.convert(b.convert(x, DType.S32), dtype)
    return b.convert(x, dtype)


def _to_narrow_float(context: NodeContext, x: Handle, dtype: DType, saturates: bool) -> Handle:
    b = context.builder
    wide = x if x.dtype in (DType.F32, DType.F64) else b.convert(x, DType.F32)
    converted = b.convert(wide, dtype)
    if not saturates and dtype.bits == 8:
        return converted
    largest = float(ml_dtypes.finfo(dtype.numpy).max)  # type: ignore[no-untyped-call]
    bounded = b.op("minimum", (b.op("maximum", (wide, filled(-largest, wide))), filled(largest, wide)))
    return b.convert(bounded, dtype)


def _to_scale(context: NodeContext, x: Handle) -> Handle:
    """Powers of two: the least one that is not smaller, or as `round_mode` says, by the bits of the number."""
    b = context.builder
    mode = context.text("round_mode", "up") if "round_mode" in context.attributes else "up"
    wide = b.convert(x, DType.F32)
    bits = b.op("bitcast-convert", (wide,), shape=Shape.array(DType.U32, x.dims))
    exponent = b.op("shift-right-logical", (bits, b.full(23, DType.U32, x.dims))) & 0xFF
    mantissa = bits & 0x7FFFFF
    match mode:
        case "up":
            rises = b.compare(mantissa, 0, "GT")
        case "nearest":
            rises = b.compare(mantissa, 0x400000, "GE")
        case "down":
            rises = b.full(False, DType.PRED, x.dims)
        case _:
            raise context.error(f"round_mode must be up, down or nearest, found {mode!r}")
    saturates = context.integer("saturate", 1) != 0
    last = 0xFE if saturates else 0xFF
    is_number = b.compare(exponent, 0xFF, "LT")
    raised = b.select(rises & is_number & b.compare(exponent, last, "LT"), exponent + 1, exponent)
    is_infinite = b.compare(exponent, 0xFF, "EQ") & b.compare(mantissa, 0, "EQ")
    raised = b.select(is_infinite, b.full(last, DType.U32, x.dims), raised)
    return b.op("bitcast-convert", (b.convert(raised, DType.U8),), shape=Shape.array(DType.F8E8M0FNU, x.dims))


@rule("BitCast")
def _bit_cast(context: NodeContext) -> Handle:
    x, dtype = context.operand(0), context.dtype("to")
    if x.dtype.bits != dtype.bits:
        raise context.error(f"{x.dtype.value} and {dtype.value} have different sizes")
    if DType.PRED in (x.dtype, dtype):
        return context.builder.convert(x, dtype)
    return context.builder.op("bitcast-convert", (x,), shape=Shape.array(dtype, x.dims))
