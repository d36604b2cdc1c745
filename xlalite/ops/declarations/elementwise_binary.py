"""Arithmetic on two operands, which are broadcast together by NumPy's rules."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from xlalite.framework.graph.dtypes import FLOATING_TYPES, INTEGER_TYPES, NUMERIC_TYPES, DType, complex64, complex128
from xlalite.framework.graph.op_spec import OpSpec, register
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.ops.helpers.emit import broadcast_pair
from xlalite.ops.helpers.gradient_rules import OneOutputGradient, of_one_output, sum_to_operands
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.shape_rules import broadcasting

BuildBinary = Callable[[Builder, Handle, Handle], Handle]
_REAL: frozenset[DType] = FLOATING_TYPES | INTEGER_TYPES
_FLOAT_OR_COMPLEX: frozenset[DType] = FLOATING_TYPES | {complex64, complex128}


def conjugate(x: Tensor) -> Tensor:
    """The complex conjugate; real tensors are left as they are."""
    return node("Conj", [x]) if x.dtype.is_complex else x


def _declare(
    name: str,
    build: BuildBinary,
    gradient: OneOutputGradient | None,
    allowed: Collection[DType] = NUMERIC_TYPES,
) -> None:
    def lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
        return [build(ctx.builder, *broadcast_pair(ctx.builder, inputs[0], inputs[1]))]

    register(
        OpSpec(
            name,
            broadcasting(allowed),
            inputs=("x", "y"),
            lower=lower,
            gradient=None if gradient is None else of_one_output(gradient),
            is_differentiable=gradient is not None,
            types=frozenset(allowed),
        )
    )


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


def _xlogy_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    x, y = op.inputs
    not_zero = node("Cast", [node("NotEqual", [x, node("ZerosLike", [x])])], {"dtype": x.dtype})
    return sum_to_operands(op, grad * node("Xlogy", [not_zero, y]), grad * node("DivNoNan", [x, y]))


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


_declare("Add", lambda b, x, y: x + y, _add_gradient)
_declare("AddV2", lambda b, x, y: x + y, _add_gradient)
_declare("Sub", lambda b, x, y: x - y, _sub_gradient)
_declare("Mul", lambda b, x, y: x * y, _mul_gradient)
_declare("RealDiv", lambda b, x, y: x / y, _divide_gradient, _FLOAT_OR_COMPLEX)
_declare("Div", lambda b, x, y: x / y, _divide_gradient)
_declare("DivNoNan", _divide_no_nan, _div_no_nan_gradient, _FLOAT_OR_COMPLEX)
_declare("TruncateDiv", lambda b, x, y: x / y, None, INTEGER_TYPES)
_declare("FloorDiv", _floor_divide, None, _REAL)
_declare("FloorMod", _floor_modulo, _floor_mod_gradient, _REAL)
_declare("Mod", lambda b, x, y: x % y, None, _REAL)
_declare("TruncateMod", lambda b, x, y: x % y, None, _REAL)
_declare("Pow", lambda b, x, y: x**y, _pow_gradient)
_declare("Maximum", lambda b, x, y: b.op("maximum", (x, y)), _choice_gradient("GreaterEqual"), _REAL)
_declare("Minimum", lambda b, x, y: b.op("minimum", (x, y)), _choice_gradient("LessEqual"), _REAL)
_declare("SquaredDifference", _squared_difference, _squared_difference_gradient, _REAL)
_declare("Atan2", lambda b, x, y: b.op("atan2", (x, y)), _atan2_gradient, FLOATING_TYPES)
_declare("Xlogy", _x_log_y, _xlogy_gradient, FLOATING_TYPES)
_declare("BitwiseAnd", lambda b, x, y: x & y, None, INTEGER_TYPES)
_declare("BitwiseOr", lambda b, x, y: x | y, None, INTEGER_TYPES)
_declare("BitwiseXor", lambda b, x, y: x ^ y, None, INTEGER_TYPES)


def _shift(opcode_signed: str, opcode_unsigned: str) -> Any:
    return lambda b, x, y: b.op(opcode_signed if x.dtype.is_signed else opcode_unsigned, (x, y))


_declare("LeftShift", _shift("shift-left", "shift-left"), None, INTEGER_TYPES)
_declare("RightShift", _shift("shift-right-arithmetic", "shift-right-logical"), None, INTEGER_TYPES)
