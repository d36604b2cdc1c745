"""Arithmetic on two operands, which are broadcast together by NumPy's rules."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.framework.graph.dtypes import FLOATING_TYPES, INTEGER_TYPES
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.ops.helpers.declare import FLOAT_OR_COMPLEX, REAL_TYPES, declare_binary
from xlalite.ops.helpers.gradient_rules import OneOutputGradient, sum_to_operands
from xlalite.ops.helpers.node import node


def conjugate(x: Tensor) -> Tensor:
    """The complex conjugate; real tensors are left as they are."""
    return node("Conj", [x]) if x.dtype.is_complex else x


def _add_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    return sum_to_operands(op, grad, grad)


def _sub_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    return sum_to_operands(op, grad, -grad)


def _mul_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    x, y = op.inputs
    return sum_to_operands(op, grad * conjugate(y), conjugate(x) * grad)


def _divide_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    x, y = conjugate(op.inputs[0]), conjugate(op.inputs[1])
    return sum_to_operands(op, grad / y, grad * ((-x / y) / y))


def _div_no_nan_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    x, y = op.inputs
    return sum_to_operands(op, node("DivNoNan", [grad, y]), grad * node("DivNoNan", [node("DivNoNan", [-x, y]), y]))


def _floor_mod_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    x, y = op.inputs
    return sum_to_operands(op, grad, grad * -node("FloorDiv", [x, y]))


def _truncate_mod_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    x, y = op.inputs
    return sum_to_operands(op, grad, grad * -node("Rint", [(x - op.outputs[0]) / y]))


def _pow_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    x, y = op.inputs
    z = op.outputs[0]
    zero = node("ZerosLike", [x])
    # Where x is not positive the logarithm has no real value and the result does not vary smoothly with y.
    usable = node("NotEqual", [x, zero]) if x.dtype.is_complex else node("Greater", [x, zero])
    safe = node("SelectV2", [usable, x, node("OnesLike", [x])])
    logarithm = node("SelectV2", [usable, node("Log", [safe]), zero])
    slope_x = conjugate(y) * node("Pow", [conjugate(x), conjugate(y) - 1])
    return sum_to_operands(op, grad * slope_x, grad * conjugate(z) * conjugate(logarithm))


def _choice_gradient(comparison: str) -> OneOutputGradient:
    def gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
        x, y = op.inputs
        chosen = node(comparison, [x, y])
        zeros = node("ZerosLike", [grad])
        return sum_to_operands(op, node("SelectV2", [chosen, grad, zeros]), node("SelectV2", [chosen, zeros, grad]))

    return gradient


def _squared_difference_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    x, y = op.inputs
    slope = grad * 2 * (x - y)
    return sum_to_operands(op, slope, -slope)


def _atan2_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    y, x = op.inputs
    scaled = grad / (x * x + y * y)
    return sum_to_operands(op, x * scaled, -y * scaled)


def is_not_zero(x: Tensor) -> Tensor:
    """1 where an element is not 0, otherwise 0, of the element's type."""
    return node("Cast", [node("NotEqual", [x, node("ZerosLike", [x])])], {"dtype": x.dtype})


def _xlogy_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    x, y = op.inputs
    return sum_to_operands(op, grad * node("Xlogy", [is_not_zero(x), y]), grad * node("DivNoNan", [x, y]))


def _floor_divide(b: Builder, x: Handle, y: Handle) -> Handle:
    quotient = x / y
    if x.dtype.is_floating:
        return b.op("floor", (quotient,))
    if x.dtype.is_unsigned:
        return quotient
    inexact = b.compare(x % y, 0, "NE")
    signs_differ = b.compare(x, 0, "LT") ^ b.compare(y, 0, "LT")
    return b.select(inexact & signs_differ, quotient - 1, quotient)


def _floor_modulo(b: Builder, x: Handle, y: Handle) -> Handle:
    remainder = x % y
    if x.dtype.is_unsigned:
        return remainder
    signs_differ = b.compare(remainder, 0, "LT") ^ b.compare(y, 0, "LT")
    return b.select(b.compare(remainder, 0, "NE") & signs_differ, remainder + y, remainder)


def _divide_no_nan(b: Builder, x: Handle, y: Handle) -> Handle:
    return b.select(b.compare(y, 0, "EQ"), b.full(0, x.dtype, x.dims), x / y)


def _x_log_y(b: Builder, x: Handle, y: Handle) -> Handle:
    return b.select(b.compare(x, 0, "EQ"), b.full(0, x.dtype, x.dims), x * b.op("log", (y,)))


def _squared_difference(b: Builder, x: Handle, y: Handle) -> Handle:
    difference = x - y
    return difference * difference


def _shift_right(b: Builder, x: Handle, y: Handle) -> Handle:
    return b.op("shift-right-arithmetic" if x.dtype.is_signed else "shift-right-logical", (x, y))


declare_binary("Add", lambda b, x, y: x + y, _add_gradient)
declare_binary("AddV2", lambda b, x, y: x + y, _add_gradient)
declare_binary("Sub", lambda b, x, y: x - y, _sub_gradient)
declare_binary("Mul", lambda b, x, y: x * y, _mul_gradient)
declare_binary("RealDiv", lambda b, x, y: x / y, _divide_gradient, FLOAT_OR_COMPLEX)
declare_binary("Div", lambda b, x, y: x / y, _divide_gradient)
declare_binary("DivNoNan", _divide_no_nan, _div_no_nan_gradient, FLOAT_OR_COMPLEX)
declare_binary("TruncateDiv", lambda b, x, y: x / y, None, INTEGER_TYPES)
declare_binary("FloorDiv", _floor_divide, None, REAL_TYPES)
declare_binary("FloorMod", _floor_modulo, _floor_mod_gradient, REAL_TYPES)
declare_binary("Mod", lambda b, x, y: x % y, _truncate_mod_gradient, REAL_TYPES)
declare_binary("TruncateMod", lambda b, x, y: x % y, _truncate_mod_gradient, REAL_TYPES)
declare_binary("Pow", lambda b, x, y: x**y, _pow_gradient)
declare_binary("Maximum", "maximum", _choice_gradient("GreaterEqual"), REAL_TYPES)
declare_binary("Minimum", "minimum", _choice_gradient("LessEqual"), REAL_TYPES)
declare_binary("SquaredDifference", _squared_difference, _squared_difference_gradient, REAL_TYPES)
declare_binary("Atan2", "atan2", _atan2_gradient, FLOATING_TYPES)
declare_binary("Xlogy", _x_log_y, _xlogy_gradient, FLOATING_TYPES)
declare_binary("BitwiseAnd", lambda b, x, y: x & y, None, INTEGER_TYPES)
declare_binary("BitwiseOr", lambda b, x, y: x | y, None, INTEGER_TYPES)
declare_binary("BitwiseXor", lambda b, x, y: x ^ y, None, INTEGER_TYPES)
declare_binary("LeftShift", "shift-left", None, INTEGER_TYPES)
declare_binary("RightShift", _shift_right, None, INTEGER_TYPES)
