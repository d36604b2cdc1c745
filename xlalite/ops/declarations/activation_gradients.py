"""Derivatives of activations times what comes in: `(gradients, features or outputs)` to what goes on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from xlalite.framework.graph.dtypes import FLOATING_TYPES, DType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.building.common import zeros_like
from xlalite.ops.helpers.declare import ELEMENTWISE, REAL_TYPES, declare
from xlalite.ops.helpers.gradient_rules import OneOutputGradient
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.shape_rules import unchanged

LEAK = 0.2
"""What TensorFlow lets through below 0 when it is not said."""

SELU_SCALE = 1.0507009873554805
SELU_SCALE_ALPHA = SELU_SCALE * 1.6732632423543772


def _declare(
    name: str,
    second: str,
    build: Callable[[Builder, Operation, Handle, Handle], Handle],
    slope: Callable[[Operation, Tensor], Tensor],
    allowed: Collection[DType] = FLOATING_TYPES,
    attrs: tuple[str, ...] = (),
) -> None:
    """Declares one: linear in `gradients`; `slope` is the gradient for the second input."""

    def lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
        return [build(ctx.builder, op, *inputs)]

    def gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
        again = node(op.type, [grad, op.inputs[1]], {name: op.get_attr(name) for name in attrs})
        return [again, slope(op, grad)]

    inputs = ("gradients", second)
    defaults = dict.fromkeys(attrs, LEAK)
    declare(name, inputs, unchanged(allowed), lower, gradient, ELEMENTWISE, attrs=attrs, defaults=defaults)


def _flat(op: Operation, grad: Tensor) -> Tensor:
    """The slope is constant between the corners."""
    return node("ZerosLike", [op.inputs[1]])


def _where_negative(op: Operation, grad: Tensor) -> Tensor:
    """Below 0 the slope is the output and a constant."""
    gradients, outputs = op.inputs
    zeros = node("ZerosLike", [outputs])
    return node("SelectV2", [node("Less", [outputs, zeros]), grad * gradients, zeros])


def _relu6(b: Builder, op: Operation, grad: Handle, x: Handle) -> Handle:
    inside = b.compare(x, 0, "GT") & b.compare(x, 6, "LT")
    return b.select(inside, grad, zeros_like(b, grad))


def _elu(b: Builder, op: Operation, grad: Handle, y: Handle) -> Handle:
    return b.select(b.compare(y, 0, "LT"), grad * (y + 1), grad)


def _selu(b: Builder, op: Operation, grad: Handle, y: Handle) -> Handle:
    return b.select(b.compare(y, 0, "LT"), grad * (y + SELU_SCALE_ALPHA), grad * SELU_SCALE)


def _softplus_slope(op: Operation, grad: Tensor) -> Tensor:
    sigmoid = node("Sigmoid", [op.inputs[1]])
    return grad * op.inputs[0] * sigmoid * (1 - sigmoid)  # type: ignore[no-any-return]


def _softsign(b: Builder, op: Operation, grad: Handle, x: Handle) -> Handle:
    root = b.op("abs", (x,)) + 1
    return grad / (root * root)


def _softsign_slope(op: Operation, grad: Tensor) -> Tensor:
    gradients, x = op.inputs
    root = node("Abs", [x]) + 1
    return grad * gradients * -2 * node("Sign", [x]) / (root * root * root)  # type: ignore[no-any-return]


def with_outputs(op_type: str) -> OneOutputGradient:
    """The gradient of an activation whose derivative follows from its output."""
    return lambda op, grad: [node(op_type, [grad, op.outputs[0]])]


def with_features(op_type: str) -> OneOutputGradient:
    """The gradient of an activation whose derivative follows from its input."""
    return lambda op, grad: [node(op_type, [grad, op.inputs[0]], dict(op.attrs) if op.spec.attrs else None)]


_declare(
    "ReluGrad",
    "features",
    lambda b, op, grad, x: b.select(b.compare(x, 0, "GT"), grad, zeros_like(b, grad)),
    _flat,
    REAL_TYPES,
)
_declare("Relu6Grad", "features", _relu6, _flat, REAL_TYPES)
_declare(
    "LeakyReluGrad",
    "features",
    lambda b, op, grad, x: b.select(b.compare(x, 0, "GT"), grad, grad * op.get_attr("alpha")),
    _flat,
    attrs=("alpha",),
)
_declare("EluGrad", "outputs", _elu, _where_negative)
_declare("SeluGrad", "outputs", _selu, _where_negative)
_declare("SoftplusGrad", "features", lambda b, op, grad, x: grad * b.op("logistic", (x,)), _softplus_slope)
_declare("SoftsignGrad", "features", _softsign, _softsign_slope)
