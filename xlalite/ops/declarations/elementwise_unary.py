"""Functions of one operand, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xlalite.framework.graph.dtypes import (
    FLOATING_TYPES,
    INTEGER_TYPES,
    NUMERIC_TYPES,
    bool_,
    complex64,
    complex128,
    float32,
    float64,
)
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.ops.declarations.elementwise_binary import conjugate
from xlalite.ops.helpers.declare import COMPLEX_TYPES, ELEMENTWISE, FLOAT_OR_COMPLEX, REAL_TYPES, declare, declare_unary
from xlalite.ops.helpers.gradient_rules import OneOutputGradient
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.shape_rules import require_type, unchanged


def along(slope: Callable[[Operation], Tensor]) -> OneOutputGradient:
    """The gradient that follows from a derivative."""
    return lambda op, grad: [grad * conjugate(slope(op))]


def _x(op: Operation) -> Tensor:
    return op.inputs[0]


def _y(op: Operation) -> Tensor:
    return op.outputs[0]


def _of(function: str, op: Operation) -> Tensor:
    return node(function, [op.inputs[0]])


def _one_minus_square(op: Operation) -> Tensor:
    return 1 - _x(op) * _x(op)  # type: ignore[no-any-return]


def _reciprocal(b: Builder, x: Handle) -> Handle:
    return b.full(1, x.dtype, x.dims) / x


declare_unary("Neg", "negate", lambda op, grad: [-grad], NUMERIC_TYPES)
declare_unary("Abs", "abs", lambda op, grad: [grad * _of("Sign", op)], REAL_TYPES)
declare_unary("Sign", "sign", None, NUMERIC_TYPES)
declare_unary("Exp", "exponential", along(_y))
declare_unary("Expm1", "exponential-minus-one", along(lambda op: _of("Exp", op)))
declare_unary("Log", "log", along(lambda op: _of("Reciprocal", op)))
declare_unary("Log1p", "log-plus-one", along(lambda op: 1 / (1 + _x(op))))
declare_unary("Sqrt", "sqrt", along(lambda op: 0.5 / _y(op)))
declare_unary("Rsqrt", "rsqrt", along(lambda op: -0.5 * _y(op) * _y(op) * _y(op)))
declare_unary("Square", lambda b, x: x * x, along(lambda op: 2 * _x(op)), NUMERIC_TYPES)
declare_unary("Reciprocal", _reciprocal, along(lambda op: -_y(op) * _y(op)))
declare_unary("Inv", _reciprocal, along(lambda op: -_y(op) * _y(op)))
declare_unary("Tanh", "tanh", lambda op, grad: [node("TanhGrad", [conjugate(_y(op)), grad])])
declare_unary("Sigmoid", "logistic", lambda op, grad: [node("SigmoidGrad", [conjugate(_y(op)), grad])])
declare_unary("Sin", "sine", along(lambda op: _of("Cos", op)))
declare_unary("Cos", "cosine", along(lambda op: -_of("Sin", op)))
declare_unary("Tan", "tan", along(lambda op: 1 + _y(op) * _y(op)))
declare_unary("Sinh", "sinh", along(lambda op: _of("Cosh", op)))
declare_unary("Cosh", "cosh", along(lambda op: _of("Sinh", op)))
declare_unary("Asin", "asin", along(lambda op: node("Rsqrt", [_one_minus_square(op)])))
declare_unary("Acos", "acos", along(lambda op: -node("Rsqrt", [_one_minus_square(op)])))
declare_unary("Atan", "atan", along(lambda op: 1 / (1 + _x(op) * _x(op))))
declare_unary(
    "Erf", "erf", along(lambda op: 2 / math.sqrt(math.pi) * node("Exp", [-_of("Square", op)])), FLOATING_TYPES
)
declare_unary("Floor", "floor", None, FLOATING_TYPES)
declare_unary("Ceil", "ceil", None, FLOATING_TYPES)
declare_unary("Rint", "round-nearest-even", None, FLOATING_TYPES)
declare_unary("Round", lambda b, x: b.op("round-nearest-even", (x,)) if x.dtype.is_floating else x, None, REAL_TYPES)
declare_unary("LogicalNot", "not", None, {bool_})
declare_unary("Invert", "not", None, INTEGER_TYPES)


# The conjugate and the parts of complex numbers.


def conjugated(b: Builder, x: Handle) -> Handle:
    """The complex conjugate; real numbers are left as they are."""
    return b.op("complex", (b.op("real", (x,)), -b.op("imag", (x,)))) if x.dtype.is_complex else x


declare_unary("Conj", conjugated, lambda op, grad: [node("Conj", [grad])], COMPLEX_TYPES)

_COMPONENT = {complex64: float32, complex128: float64}


def _component(op: Operation) -> Sequence[OutputType]:
    x = op.inputs[0]
    require_type(x, COMPLEX_TYPES)
    return [(_COMPONENT[x.dtype], x.shape)]


def _as_complex(op: Operation, grad: Tensor) -> Tensor:
    return node("Cast", [grad], {"dtype": op.inputs[0].dtype})


def _declare_component(name: str, opcode: str, gradient: OneOutputGradient) -> None:
    """Declares an operation that gives a real number for each complex one."""
    declare(name, ("x",), _component, lambda ctx, op, inputs: [ctx.builder.op(opcode, inputs)], gradient, None)


# Gradients of complex numbers are conjugated derivatives, so that a step against them makes the result smaller.
_declare_component("ComplexAbs", "abs", lambda op, grad: [_as_complex(op, grad) * _of("Sign", op)])
_declare_component("Real", "real", lambda op, grad: [_as_complex(op, grad)])
_declare_component("Imag", "imag", lambda op, grad: [_as_complex(op, grad) * 1j])


# The derivatives of tanh and sigmoid in terms of the result y; both are (y, dy) -> dx.


def _declare_derivative(name: str, build: Callable[[Handle, Handle], Handle], gradient: OneOutputGradient) -> None:
    types = unchanged(FLOAT_OR_COMPLEX)
    declare(name, ("y", "dy"), types, lambda ctx, op, inputs: [build(*inputs)], gradient, ELEMENTWISE)


def _tanh_grad_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    y, dy = op.inputs
    return [grad * -2 * conjugate(y) * dy, node("TanhGrad", [conjugate(y), grad])]


def _sigmoid_grad_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    y, dy = conjugate(op.inputs[0]), op.inputs[1]
    return [grad * dy * (1 - 2 * y), node("SigmoidGrad", [y, grad])]


_declare_derivative("TanhGrad", lambda y, dy: dy * (1 - y * y), _tanh_grad_gradient)
_declare_derivative("SigmoidGrad", lambda y, dy: dy * y * (1 - y), _sigmoid_grad_gradient)


# Tests of floating-point numbers.

declare_unary("IsNan", lambda b, x: b.compare(x, x, "NE"), None, FLOATING_TYPES, bool_)
declare_unary("IsInf", lambda b, x: b.compare(b.op("abs", (x,)), math.inf, "EQ"), None, FLOATING_TYPES, bool_)
declare_unary("IsFinite", "is-finite", None, FLOATING_TYPES, bool_)
