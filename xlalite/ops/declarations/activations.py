"""Neural-network functions of single elements, biases, and sums of many tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.framework.graph.dtypes import FLOATING_TYPES, NUMERIC_TYPES
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.building.common import sum_axes, zeros_like
from xlalite.hlo.errors import ShapeError
from xlalite.ops.declarations.activation_gradients import (
    LEAK,
    SELU_SCALE,
    SELU_SCALE_ALPHA,
    with_features,
    with_outputs,
)
from xlalite.ops.helpers.declare import (
    ELEMENTWISE,
    ELEMENTWISE_WITH_REDUCTION,
    REAL_TYPES,
    WINDOW_WITH_ELEMENTWISE,
    declare,
    declare_unary,
)
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.shape_rules import require_same_type, require_type, unchanged

# Rectifiers: Relu(x) = max(x, 0), Relu6(x) = min(max(x, 0), 6), LeakyRelu(x) = x where positive, alpha x elsewhere.


def _relu6(b: Builder, x: Handle) -> Handle:
    return b.op("clamp", (b.constant(0, x.dtype), x, b.constant(6, x.dtype)))


def _leaky_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (x,) = ctx.builder, inputs
    return [b.select(b.compare(x, 0, "GT"), x, x * op.get_attr("alpha"))]


declare_unary("Relu", lambda b, x: b.op("maximum", (x, zeros_like(b, x))), with_outputs("ReluGrad"), REAL_TYPES)
declare_unary("Relu6", _relu6, with_outputs("Relu6Grad"), REAL_TYPES)
declare(
    "LeakyRelu",
    ("features",),
    unchanged(FLOATING_TYPES),
    _leaky_lower,
    with_features("LeakyReluGrad"),
    ELEMENTWISE,
    attrs=("alpha",),
    defaults={"alpha": LEAK},
)


# Elu(x) = x where positive, e^x - 1 elsewhere; Selu is a scaled one.


def _elu(b: Builder, x: Handle) -> Handle:
    return b.select(b.compare(x, 0, "GT"), x, b.op("exponential-minus-one", (x,)))


def _selu(b: Builder, x: Handle) -> Handle:
    negative = b.op("exponential-minus-one", (x,)) * SELU_SCALE_ALPHA
    return b.select(b.compare(x, 0, "GT"), x * SELU_SCALE, negative)


declare_unary("Elu", _elu, with_outputs("EluGrad"), FLOATING_TYPES)
declare_unary("Selu", _selu, with_outputs("SeluGrad"), FLOATING_TYPES)


# Softplus(x) = log(1 + e^x), computed so that e^x cannot overflow; Softsign(x) = x / (1 + |x|).


def _softplus(b: Builder, x: Handle) -> Handle:
    decay = b.op("exponential", (-b.op("abs", (x,)),))
    return b.op("maximum", (x, zeros_like(b, x))) + b.op("log-plus-one", (decay,))


def _softsign(b: Builder, x: Handle) -> Handle:
    return x / (b.op("abs", (x,)) + 1)


declare_unary("Softplus", _softplus, with_features("SoftplusGrad"), FLOATING_TYPES)
declare_unary("Softsign", _softsign, with_features("SoftsignGrad"), FLOATING_TYPES)


# BiasAdd(value, bias): bias along the channel dimension, the last one (NHWC) or the second (NCHW).


def _channel(rank: int, data_format: str) -> int:
    return 1 if data_format.startswith("NC") else rank - 1


def _format(op: Operation) -> str:
    """Channels are last in the first version of the operation."""
    return str(op.attrs.get("data_format", "NHWC"))


def _bias_add_infer(op: Operation) -> Sequence[OutputType]:
    value, bias = op.inputs
    dtype = require_same_type(op.inputs)
    require_type(value, NUMERIC_TYPES)
    channels = bias.shape.with_rank(1).as_list()[0]
    shape = value.shape.with_rank_at_least(2)
    if shape.dims is None:
        return [(dtype, shape)]
    axis = _channel(len(shape.dims), _format(op))
    expected = TensorShape([channels if i == axis else None for i in range(len(shape.dims))])
    if not shape.is_compatible_with(expected):
        raise ShapeError(f"bias of shape {bias.shape} does not fit dimension {axis} of a value of shape {shape}")
    return [(dtype, shape.merge_with(expected))]


def _bias_add_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    value, bias = inputs
    axis = _channel(value.shape.rank, _format(op))
    return [value + ctx.builder.broadcast(bias, value.dims, [axis])]


def _bias_add_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    return [grad, node("BiasAddGrad", [grad], {"data_format": _format(op)})]


declare(
    "BiasAdd",
    ("value", "bias"),
    _bias_add_infer,
    _bias_add_lower,
    _bias_add_gradient,
    ELEMENTWISE_WITH_REDUCTION,
    attrs=("data_format",),
    defaults={"data_format": "NHWC"},
)


declare(
    "BiasAddV1",
    ("value", "bias"),
    _bias_add_infer,
    _bias_add_lower,
    _bias_add_gradient,
    ELEMENTWISE_WITH_REDUCTION,
)


def _bias_grad_infer(op: Operation) -> Sequence[OutputType]:
    grad = op.inputs[0]
    shape = grad.shape.with_rank_at_least(2)
    channels = None if shape.dims is None else shape.dims[_channel(len(shape.dims), op.get_attr("data_format"))]
    return [(grad.dtype, TensorShape([channels]))]


def _bias_grad_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    (grad,) = inputs
    axis = _channel(grad.shape.rank, op.get_attr("data_format"))
    return [sum_axes(ctx.builder, grad, [i for i in range(grad.shape.rank) if i != axis])]


def _bias_grad_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    zeros = node("ZerosLike", [op.inputs[0]])
    return [node("BiasAdd", [zeros, grad], {"data_format": op.get_attr("data_format")})]


declare(
    "BiasAddGrad",
    ("out_backprop",),
    _bias_grad_infer,
    _bias_grad_lower,
    _bias_grad_gradient,
    WINDOW_WITH_ELEMENTWISE,
    attrs=("data_format",),
    defaults={"data_format": "NHWC"},
)


# AddN(inputs...): their sum.


def _add_n_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    total = inputs[0]
    for term in inputs[1:]:
        total = total + term
    return [total]


def _add_n_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    return [grad] * len(op.inputs)


declare("AddN", ("inputs*",), unchanged(NUMERIC_TYPES), _add_n_lower, _add_n_gradient, ELEMENTWISE)


# L2Loss(t) = sum(t^2) / 2.


def _l2_infer(op: Operation) -> Sequence[OutputType]:
    require_type(op.inputs[0], FLOATING_TYPES)
    return [(op.inputs[0].dtype, TensorShape(()))]


def _l2_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    (x,) = inputs
    half = np.asarray(0.5, x.dtype.numpy)[()]
    return [sum_axes(ctx.builder, x * x, range(x.shape.rank)) * half]


def _l2_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    return [op.inputs[0] * grad]


declare("L2Loss", ("t",), _l2_infer, _l2_lower, _l2_gradient, ELEMENTWISE_WITH_REDUCTION)
