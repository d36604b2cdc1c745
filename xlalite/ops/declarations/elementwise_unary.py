"""Functions of one operand, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

from xlalite.framework.graph.dtypes import (
    FLOATING_TYPES,
    INTEGER_TYPES,
    NUMERIC_TYPES,
    DType,
    bool_,
    complex64,
    complex128,
    float32,
    float64,
)
from xlalite.framework.graph.op_spec import OpSpec, OutputType, register
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.ops.declarations.elementwise_binary import conjugate
from xlalite.ops.helpers.gradient_rules import OneOutputGradient, of_one_output
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.shape_rules import require_type, unchanged

BuildUnary = Callable[[Builder, Handle], Handle]
_FLOAT_OR_COMPLEX: frozenset[DType] = FLOATING_TYPES | {complex64, complex128}
_COMPLEX: frozenset[DType] = frozenset({complex64, complex128})
_REAL: frozenset[DType] = FLOATING_TYPES | INTEGER_TYPES


def _declare(
    name: str,
    build: BuildUnary | str,
    slope: Callable[[Operation], Tensor] | None,
    allowed: Collection[DType] = _FLOAT_OR_COMPLEX,
) -> None:
    """Declares an operation by its HLO and its derivative."""

    def gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
        assert slope is not None
        return [grad * conjugate(slope(op))]

    _declare_with_gradient(name, build, None if slope is None else gradient, allowed)


def _declare_with_gradient(
    name: str, build: BuildUnary | str, gradient: OneOutputGradient | None, allowed: Collection[DType]
) -> None:
    def lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
        return [ctx.builder.op(build, inputs) if isinstance(build, str) else build(ctx.builder, inputs[0])]

    register(
        OpSpec(
            name,
            unchanged(allowed),
            inputs=("x",),
            lower=lower,
            gradient=None if gradient is None else of_one_output(gradient),
            is_differentiable=gradient is not None,
            types=frozenset(allowed),
        )
    )


def _x(op: Operation) -> Tensor:
    return op.inputs[0]


def _y(op: Operation) -> Tensor:
    return op.outputs[0]


def _of(function: str, op: Operation) -> Tensor:
    return node(function, [op.inputs[0]])


def _one_minus_square(op: Operation) -> Tensor:
    return 1 - _x(op) * _x(op)  # type: ignore[no-any-return]


def _inverse_of_one_plus_square(op: Operation) -> Tensor:
    return 1 / (1 + _x(op) * _x(op))  # type: ignore[no-any-return]


def _abs_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    return [grad * _of("Sign", op)]


def _tanh_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    return [node("TanhGrad", [conjugate(_y(op)), grad])]


def _sigmoid_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    return [node("SigmoidGrad", [conjugate(_y(op)), grad])]


def _negate_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    return [-grad]


def _square(b: Builder, x: Handle) -> Handle:
    return x * x


def _reciprocal(b: Builder, x: Handle) -> Handle:
    return b.full(1, x.dtype, x.dims) / x


_declare_with_gradient("Neg", "negate", _negate_gradient, NUMERIC_TYPES)
_declare_with_gradient("Abs", "abs", _abs_gradient, _REAL)
_declare("Sign", "sign", None, NUMERIC_TYPES)
_declare("Exp", "exponential", _y)
_declare("Expm1", "exponential-minus-one", lambda op: _of("Exp", op))
_declare("Log", "log", lambda op: _of("Reciprocal", op))
_declare("Log1p", "log-plus-one", lambda op: 1 / (1 + _x(op)))
_declare("Sqrt", "sqrt", lambda op: 0.5 / _y(op))
_declare("Rsqrt", "rsqrt", lambda op: -0.5 * _y(op) * _y(op) * _y(op))
_declare("Square", _square, lambda op: 2 * _x(op), NUMERIC_TYPES)
_declare("Reciprocal", _reciprocal, lambda op: -_y(op) * _y(op))
_declare("Inv", _reciprocal, lambda op: -_y(op) * _y(op))
_declare_with_gradient("Tanh", "tanh", _tanh_gradient, _FLOAT_OR_COMPLEX)
_declare_with_gradient("Sigmoid", "logistic", _sigmoid_gradient, _FLOAT_OR_COMPLEX)
_declare("Sin", "sine", lambda op: _of("Cos", op))
_declare("Cos", "cosine", lambda op: -_of("Sin", op))
_declare("Tan", "tan", lambda op: 1 + _y(op) * _y(op))
_declare("Sinh", "sinh", lambda op: _of("Cosh", op))
_declare("Cosh", "cosh", lambda op: _of("Sinh", op))
_declare("Asin", "asin", lambda op: node("Rsqrt", [_one_minus_square(op)]))
_declare("Acos", "acos", lambda op: -node("Rsqrt", [_one_minus_square(op)]))
_declare("Atan", "atan", _inverse_of_one_plus_square)
_declare("Erf", "erf", lambda op: 2 / math.sqrt(math.pi) * node("Exp", [-_of("Square", op)]), FLOATING_TYPES)
_declare("Floor", "floor", None, FLOATING_TYPES)
_declare("Ceil", "ceil", None, FLOATING_TYPES)
_declare("Rint", "round-nearest-even", None, FLOATING_TYPES)
_declare("Round", lambda b, x: b.op("round-nearest-even", (x,)) if x.dtype.is_floating else x, None, _REAL)
_declare("LogicalNot", "not", None, {bool_})
_declare("Invert", "not", None, INTEGER_TYPES)


# The conjugate and the parts of complex numbers.


def _conj_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    return [node("Conj", [grad])]


def _conjugate(b: Builder, x: Handle) -> Handle:
    return b.op("complex", (b.op("real", (x,)), -b.op("imag", (x,))))


_declare_with_gradient("Conj", _conjugate, _conj_gradient, _COMPLEX)


_COMPONENT = {complex64: float32, complex128: float64}


def _component(op: Operation) -> Sequence[OutputType]:
    x = op.inputs[0]
    require_type(x, _COMPLEX)
    return [(_COMPONENT[x.dtype], x.shape)]


def _as_complex(op: Operation, grad: Tensor) -> Tensor:
    return node("Cast", [grad], {"dtype": op.inputs[0].dtype})


def _declare_component(name: str, opcode: str, gradient: OneOutputGradient) -> None:
    """Declares an operation that gives a real number for each complex one."""
    register(
        OpSpec(
            name,
            _component,
            inputs=("x",),
            lower=lambda ctx, op, inputs: [ctx.builder.op(opcode, inputs)],
            gradient=of_one_output(gradient),
        )
    )


# Gradients of complex numbers are conjugated derivatives, so that a step against them makes the result smaller.
_declare_component("ComplexAbs", "abs", lambda op, grad: [_as_complex(op, grad) * _of("Sign", op)])
_declare_component("Real", "real", lambda op, grad: [_as_complex(op, grad)])
_declare_component("Imag", "imag", lambda op, grad: [_as_complex(op, grad) * 1j])


# The derivatives of tanh and sigmoid in terms of the result y; both are (y, dy) -> dx.


def _grad_lower(build: Callable[[Handle, Handle], Handle]) -> Callable[..., Sequence[Handle]]:
    return lambda ctx, op, inputs: [build(inputs[0], inputs[1])]


def _tanh_grad_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    y, dy = op.inputs
    return [grad * -2 * conjugate(y) * dy, node("TanhGrad", [conjugate(y), grad])]


def _sigmoid_grad_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    y, dy = conjugate(op.inputs[0]), op.inputs[1]
    return [grad * dy * (1 - 2 * y), node("SigmoidGrad", [y, grad])]


register(
    OpSpec(
        "TanhGrad",
        unchanged(_FLOAT_OR_COMPLEX),
        inputs=("y", "dy"),
        lower=_grad_lower(lambda y, dy: dy * (1 - y * y)),
        gradient=of_one_output(_tanh_grad_gradient),
        types=_FLOAT_OR_COMPLEX,
    )
)
register(
    OpSpec(
        "SigmoidGrad",
        unchanged(_FLOAT_OR_COMPLEX),
        inputs=("y", "dy"),
        lower=_grad_lower(lambda y, dy: dy * y * (1 - y)),
        gradient=of_one_output(_sigmoid_grad_gradient),
        types=_FLOAT_OR_COMPLEX,
    )
)


# Tests of floating-point numbers.


def _to_bool(op: Operation) -> Sequence[OutputType]:
    require_type(op.inputs[0], FLOATING_TYPES)
    return [(bool_, op.inputs[0].shape)]


def _is_nan(b: Builder, x: Handle) -> Handle:
    return b.compare(x, x, "NE")


def _is_inf(b: Builder, x: Handle) -> Handle:
    return b.compare(b.op("abs", (x,)), math.inf, "EQ")


def _declare_test(name: str, build: BuildUnary) -> None:
    register(
        OpSpec(
            name,
            _to_bool,
            inputs=("x",),
            lower=lambda ctx, op, inputs: [build(ctx.builder, inputs[0])],
            is_differentiable=False,
        )
    )


_declare_test("IsNan", _is_nan)
_declare_test("IsInf", _is_inf)
_declare_test("IsFinite", lambda b, x: b.op("is-finite", (x,)))
