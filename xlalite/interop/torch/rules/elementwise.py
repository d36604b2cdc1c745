"""Functions of each element, comparisons, selections, conversions.

Functions of narrow floating-point types are computed in f32 and rounded once, as torch's kernels do it.
"""

from __future__ import annotations

import math

from ml_dtypes import finfo

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.ops import OPS
from xlalite.hlo.types.dtype import DType, Kind
from xlalite.interop.torch.rules.operation import Number, Operand, Operation, wide_dtype
from xlalite.interop.torch.rules.registry import Declined, Rule, rule

_UNARY = {
    **{"acos": "acos", "acosh": "acosh", "asin": "asin", "asinh": "asinh", "atan": "atan", "atanh": "atanh"},
    **{"cos": "cosine", "cosh": "cosh", "sin": "sine", "sinh": "sinh", "tan": "tan", "tanh": "tanh"},
    **{"exp": "exponential", "expm1": "exponential-minus-one", "log": "log", "log1p": "log-plus-one"},
    **{"sqrt": "sqrt", "rsqrt": "rsqrt", "erf": "erf", "sigmoid": "logistic"},
}
_EXACT = {
    "ceil": "ceil",
    "floor": "floor",
    "round": "round-nearest-even",
    "neg": "negate",
}
_BINARY = {
    **{"mul": "multiply", "maximum": "maximum", "minimum": "minimum", "atan2": "atan2"},
    **{"bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor"},
}
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_TENSOR, _SCALAR = "Tensor", "Scalar"


def _unary_rule(opcode: str) -> Rule:
    return lambda op, x: op.unary(opcode, x)


def _exact_rule(opcode: str) -> Rule:
    def lower(op: Operation, x: Handle) -> Handle:
        if opcode != "negate" and x.dtype.kind is not Kind.FLOAT:
            return op.cast(x, op.dtype)
        return op.builder.op(opcode, (x,))

    return lower


def _binary_rule(opcode: str) -> Rule:
    def lower(op: Operation, x: Operand, y: Operand) -> Handle:
        if op.dtype is DType.PRED and opcode == "multiply":
            return op.binary("and", x, y)
        return op.cast(op.binary(opcode, x, y, wide_dtype(op.dtype)), op.dtype)

    return lower


def _comparison_rule(direction: str) -> Rule:
    def lower(op: Operation, x: Operand, y: Operand) -> Handle:
        dtype = op.promoted(x, y)
        lhs, rhs = (op.expand(op.cast(value, dtype), op.dims) for value in (x, y))
        return op.builder.compare(lhs, rhs, direction)

    return lower


for _name, _opcode in _UNARY.items():
    rule(f"aten.{_name}.default")(_unary_rule(_opcode))
for _name, _opcode in _EXACT.items():
    rule(f"aten.{_name}.default")(_exact_rule(_opcode))
for _name, _opcode in _BINARY.items():
    _forms = ("default",) if _name in ("maximum", "minimum", "atan2") else (_TENSOR, _SCALAR)
    rule(*(f"aten.{_name}.{form}" for form in _forms))(_binary_rule(_opcode))
for _name in _COMPARISONS:
    rule(f"aten.{_name}.Tensor", f"aten.{_name}.Scalar")(_comparison_rule(_name.upper()))


@rule("aten.sign.default", "aten.sgn.default")
def sign(op: Operation, x: Handle) -> Handle:
    """-1, 0 or 1; 0 where x is not a number, and on the unit circle where it is complex."""
    if x.dtype.is_complex:
        return op.builder.op("sign", (x,))
    is_positive = op.cast(op.builder.compare(x, 0, "GT"), x.dtype)
    if x.dtype.is_unsigned or x.dtype is DType.PRED:
        return is_positive
    return is_positive - op.cast(op.builder.compare(x, 0, "LT"), x.dtype)


@rule("aten.add.Tensor", "aten.add.Scalar")
def add(op: Operation, x: Operand, y: Operand, alpha: Number = 1) -> Handle:
    """X + alpha y."""
    return _sum(op, "or" if op.dtype is DType.PRED else "add", x, y, alpha)


@rule("aten.sub.Tensor", "aten.sub.Scalar")
def sub(op: Operation, x: Operand, y: Operand, alpha: Number = 1) -> Handle:
    """X - alpha y."""
    return _sum(op, "subtract", x, y, alpha)


def _sum(op: Operation, opcode: str, x: Operand, y: Operand, alpha: Number) -> Handle:
    dtype = wide_dtype(op.dtype)
    if alpha != 1:
        y = op.binary("and" if dtype is DType.PRED else "multiply", y, alpha, dtype)
    return op.cast(op.binary(opcode, x, y, dtype), op.dtype)


@rule("aten.div.Tensor", "aten.div.Scalar")
def div(op: Operation, x: Operand, y: Operand) -> Handle:
    """True division."""
    return op.cast(op.binary("divide", x, y, wide_dtype(op.dtype)), op.dtype)


@rule("aten.div.Tensor_mode", "aten.div.Scalar_mode")
def div_mode(op: Operation, x: Operand, y: Operand, rounding_mode: str | None = None) -> Handle:
    """Division, truncated or rounded down."""
    dtype = wide_dtype(op.dtype)
    if rounding_mode is None:
        return div(op, x, y)
    if dtype.kind is not Kind.FLOAT:
        _check_divisor(op, y)
        quotient = op.binary("divide", x, y)
        return quotient if rounding_mode == "trunc" else quotient - op.cast(_is_off(op, x, y), op.dtype)
    if rounding_mode == "floor":
        return op.cast(_floor_quotient(op, x, y, dtype), op.dtype)
    quotient = op.binary("divide", x, y, dtype)
    if isinstance(y, Handle) and y.dims:
        info = finfo(op.dtype.numpy)  # type: ignore[no-untyped-call]  # as torch's kernels for two tensors round
        quotient = op.builder.op("reduce-precision", (quotient,), OPS["reduce-precision"].attrs(info.nexp, info.nmant))
    return op.cast(_truncated(op, quotient), op.dtype)


def _check_divisor(op: Operation, y: Operand) -> None:
    """Integers are not divided by zero: what torch says then, a call says, too."""
    if not isinstance(y, Handle):
        if y == 0:
            raise Declined("division of integers by zero is an error")
    elif 0 not in op.dims:
        op.refuse_where(op.builder.compare(y, 0, "EQ"), "ZeroDivisionError")


def _is_off(op: Operation, x: Operand, y: Operand) -> Handle:
    """Where the remainder of integers is not zero and has another sign than the divisor."""
    b, remainder = op.builder, op.binary("remainder", x, y)
    negative = b.compare(op.expand(op.cast(y, op.dtype), op.dims), 0, "LT")
    return b.compare(remainder, 0, "NE") & (b.compare(remainder, 0, "LT") ^ negative)


def _floor_quotient(op: Operation, x: Operand, y: Operand, dtype: DType) -> Handle:
    """Floor of the quotient by way of the remainder, which is exact, as in Python."""
    b = op.builder
    lhs, rhs = (op.expand(op.cast(value, dtype), op.dims) for value in (x, y))
    remainder = b.op("remainder", (lhs, rhs))
    quotient = (lhs - remainder) / rhs
    differs = b.compare(rhs, 0, "LT") ^ b.compare(remainder, 0, "LT")
    quotient = b.select(b.compare(remainder, 0, "NE") & differs, quotient - 1, quotient)
    low = b.op("floor", (quotient,))
    low = b.select(b.compare(quotient - low, 0.5, "GT"), low + 1, low)
    ratio = lhs / rhs
    rounded = b.select(b.compare(quotient, 0, "EQ"), _with_sign(op, b.full(0, dtype, op.dims), ratio), low)
    return b.select(b.compare(rhs, 0, "EQ"), ratio, rounded)


def _with_sign(op: Operation, x: Handle, sign: Handle) -> Handle:
    """|x| with another's sign, that of zeros and NaN included."""
    bits = {16: DType.U16, 32: DType.U32, 64: DType.U64}[x.dtype.bits]
    b, top = op.builder, 1 << x.dtype.bits - 1
    mask = b.full(top, bits, x.dims)
    own, other = (b.op("bitcast-convert", (v,), shape=op.shape_like(v, bits)) for v in (x, sign))
    return b.op("bitcast-convert", ((own & ~mask) | (other & mask),), shape=op.shape_like(x, x.dtype))


def _truncated(op: Operation, x: Handle) -> Handle:
    """Rounded toward zero; the sign of zero stays."""
    b = op.builder
    return b.select(b.compare(x, 0, "LT"), b.op("ceil", (x,)), b.op("floor", (x,)))


@rule("aten.trunc.default")
def trunc(op: Operation, x: Handle) -> Handle:
    """Rounded toward zero."""
    return _truncated(op, x) if x.dtype.kind is Kind.FLOAT else x


@rule("aten.fmod.Tensor", "aten.fmod.Scalar")
def fmod(op: Operation, x: Operand, y: Operand) -> Handle:
    """Remainder with the dividend's sign."""
    if op.dtype.kind is not Kind.FLOAT:
        _check_divisor(op, y)
    return op.cast(op.binary("remainder", x, y, wide_dtype(op.dtype)), op.dtype)


@rule("aten.remainder.Tensor", "aten.remainder.Scalar", "aten.remainder.Scalar_Tensor")
def remainder(op: Operation, x: Operand, y: Operand) -> Handle:
    """Remainder with the divisor's sign."""
    dtype, b = wide_dtype(op.dtype), op.builder
    if dtype.kind is not Kind.FLOAT:
        _check_divisor(op, y)
    found = op.binary("remainder", x, y, dtype)
    divisor = op.expand(op.cast(y, dtype), op.dims)
    wrong = b.compare(found, 0, "NE") & (b.compare(found, 0, "LT") ^ b.compare(divisor, 0, "LT"))
    return op.cast(b.select(wrong, found + divisor, found), op.dtype)


@rule("aten.pow.Tensor_Tensor", "aten.pow.Tensor_Scalar", "aten.pow.Scalar")
def pow_(op: Operation, x: Operand, y: Operand) -> Handle:
    """Power; small whole exponents are multiplications."""
    dtype = wide_dtype(op.dtype)
    if not isinstance(y, Handle) and isinstance(x, Handle) and not isinstance(y, complex):
        base = op.cast(x, dtype)
        match y:
            case 0.5 if dtype.kind is Kind.FLOAT:
                return op.unary("sqrt", base)
            case -0.5 if dtype.kind is Kind.FLOAT:
                return op.unary("rsqrt", base)
            case 1:
                return op.cast(base, op.dtype)
            case 2:
                return op.cast(base * base, op.dtype)
            case 3:
                return op.cast(base * base * base, op.dtype)
    if dtype.kind is Kind.PRED:
        raise Declined("power of truth values")
    if dtype.is_integral and isinstance(y, int) and y < 0:
        raise Declined("integers to negative powers are an error")
    return op.cast(op.binary("power", x, y, dtype), op.dtype)


@rule("aten.reciprocal.default")
def reciprocal(op: Operation, x: Handle) -> Handle:
    """1 / x."""
    return op.cast(op.binary("divide", 1, x, wide_dtype(op.dtype)), op.dtype)


@rule("aten.abs.default")
def abs_(op: Operation, x: Handle) -> Handle:
    """Magnitude."""
    if x.dtype.kind in (Kind.UNSIGNED, Kind.PRED):
        return x
    return op.builder.op("abs", (x,))


@rule("aten.log2.default", "aten.log10.default")
def log_base(op: Operation, x: Handle) -> Handle:
    """Logarithm to base 2 or 10."""
    base = 2 if op.name == "aten.log2.default" else 10
    return op.cast(op.builder.op("log", (op.wide(x),)) * (1 / math.log(base)), op.dtype)


@rule("aten.exp2.default")
def exp2(op: Operation, x: Handle) -> Handle:
    """2 to the power of x."""
    return op.cast(op.binary("power", 2, x, wide_dtype(op.dtype)), op.dtype)


@rule("aten.bitwise_not.default")
def bitwise_not(op: Operation, x: Handle) -> Handle:
    """Complement."""
    return ~x


@rule(
    *("aten.__lshift__.Scalar", "aten.__lshift__.Tensor"),
    *("aten.bitwise_left_shift.Tensor", "aten.bitwise_left_shift.Tensor_Scalar"),
)
def left_shift(op: Operation, x: Operand, y: Operand) -> Handle:
    """Bits moved up; none remain when they are moved too far."""
    return op.binary("shift-left", x, y)


@rule(
    *("aten.__rshift__.Scalar", "aten.__rshift__.Tensor"),
    *("aten.bitwise_right_shift.Tensor", "aten.bitwise_right_shift.Tensor_Scalar"),
)
def right_shift(op: Operation, x: Operand, y: Operand) -> Handle:
    """Bits moved down; the sign stays."""
    return op.binary("shift-right-logical" if op.dtype.kind is Kind.UNSIGNED else "shift-right-arithmetic", x, y)


@rule("aten.view.dtype")
def view_dtype(op: Operation, x: Handle, *_: object) -> Handle:
    """The same bits as another type of the same size."""
    if x.dtype.bits != op.dtype.bits or DType.PRED in (x.dtype, op.dtype):
        raise Declined(f"the bits of {x.dtype.value} as {op.dtype.value}")
    return op.builder.op("bitcast-convert", (x,), shape=op.shape)


@rule("aten.logical_not.default")
def logical_not(op: Operation, x: Handle) -> Handle:
    """Whether x is zero."""
    return ~op.cast(x, DType.PRED)


@rule("aten.logical_and.default")
def logical_and(op: Operation, x: Handle, y: Handle) -> Handle:
    """Whether both are not zero."""
    return op.binary("and", x, y)


@rule("aten.logical_or.default")
def logical_or(op: Operation, x: Handle, y: Handle) -> Handle:
    """Whether one is not zero."""
    return op.binary("or", x, y)


@rule("aten.logical_xor.default")
def logical_xor(op: Operation, x: Handle, y: Handle) -> Handle:
    """Whether just one is not zero."""
    return op.binary("xor", x, y)


@rule("aten.isnan.default")
def isnan(op: Operation, x: Handle) -> Handle:
    """Whether x is not a number."""
    return op.builder.compare(x, x, "NE")


@rule("aten.isinf.default")
def isinf(op: Operation, x: Handle) -> Handle:
    """Whether x is infinite."""
    if x.dtype.is_complex:
        real, imaginary = (op.builder.op(part, (x,)) for part in ("real", "imag"))
        return isinf(op, real) | isinf(op, imaginary)
    if x.dtype.kind is not Kind.FLOAT:
        return op.full(False, DType.PRED, op.dims)
    magnitude = op.builder.op("abs", (op.wide(x, x.dtype),))
    return op.builder.compare(magnitude, math.inf, "EQ")


@rule("aten.round.decimals")
def round_decimals(op: Operation, x: Handle, *, decimals: int) -> Handle:
    """Rounded to so many places behind the point, half to even."""
    if x.dtype.kind is not Kind.FLOAT:
        raise Declined(f"decimals of {x.dtype.value}")
    wide, ten = op.wide(x), 10.0 ** abs(decimals)
    scaled = op.builder.op("round-nearest-even", (wide * ten if decimals > 0 else wide / ten,))
    return op.cast(scaled / ten if decimals > 0 else scaled * ten, op.dtype)


@rule("prims.fma.default")
def fma(op: Operation, x: Operand, y: Operand, z: Operand) -> Handle:
    """X y + z."""
    dtype = wide_dtype(op.dtype)
    product = op.binary("multiply", x, y, dtype)
    return op.cast(product + op.expand(op.cast(z, dtype), op.dims), op.dtype)


@rule("aten.relu.default")
def relu(op: Operation, x: Handle) -> Handle:
    """The larger of x and 0."""
    return op.binary("maximum", x, 0)


@rule("aten.clamp.default", "aten.clamp.Tensor", "aten.hardtanh.default")
def clamp(op: Operation, x: Handle, min: Operand | None = None, max: Operand | None = None) -> Handle:
    """Between two bounds; the upper one wins."""
    low: Operand | None = min
    high: Operand | None = max
    if op.name == "aten.hardtanh.default":
        low, high = (-1.0 if min is None else min), (1.0 if max is None else max)
    found = op.expand(op.cast(x, op.dtype), op.dims)
    if low is not None:
        found = op.binary("maximum", found, low)
    return found if high is None else op.binary("minimum", found, high)


@rule("aten.leaky_relu.default")
def leaky_relu(op: Operation, x: Handle, negative_slope: float = 0.01) -> Handle:
    """X, or a part of it where it is negative."""
    wide = op.wide(x)
    return op.cast(op.builder.select(op.builder.compare(wide, 0, "GT"), wide, wide * negative_slope), op.dtype)


@rule("aten.elu.default")
def elu(op: Operation, x: Handle, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Handle:
    """X, or an exponential function that saturates where it is negative."""
    wide = op.wide(x)
    negative = op.builder.op("exponential-minus-one", (wide * input_scale,)) * (alpha * scale)
    return op.cast(op.builder.select(op.builder.compare(wide, 0, "GT"), wide * scale, negative), op.dtype)


@rule("aten.gelu.default")
def gelu(op: Operation, x: Handle, approximate: str = "none") -> Handle:
    """X times the normal distribution's cumulative function."""
    wide = op.wide(x)
    if approximate == "tanh":
        inner = (wide + wide * wide * wide * 0.044715) * math.sqrt(2 / math.pi)
        return op.cast(wide * 0.5 * (op.builder.op("tanh", (inner,)) + 1), op.dtype)
    return op.cast(wide * 0.5 * (op.builder.op("erf", (wide * math.sqrt(0.5),)) + 1), op.dtype)


@rule("aten.where.self")
def where(op: Operation, condition: Handle, x: Operand, y: Operand) -> Handle:
    """X where the condition holds, else y."""
    chosen = [op.expand(op.cast(value, op.dtype), op.dims) for value in (x, y)]
    return op.builder.select(op.expand(op.cast(condition, DType.PRED), op.dims), *chosen)


@rule("aten._to_copy.default", "prims.convert_element_type.default")
def to_copy(op: Operation, x: Handle, *_: object, **__: object) -> Handle:
    """Conversion."""
    if x.dtype.kind is Kind.FLOAT and op.dtype.kind in (Kind.SIGNED, Kind.UNSIGNED) and op.dtype.bits < 32:
        # As C compilers do it: by way of s32, whose low bits remain.
        return op.builder.convert(op.builder.convert(x, DType.S32), op.dtype)
    return op.cast(x, op.dtype)
