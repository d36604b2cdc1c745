"""Activation functions."""

from __future__ import annotations

import math

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.building.common import broadcast_to, max_axes, sum_axes
from xlalite.hlo.types.dtype import DType
from xlalite.interop.onnx.context import NodeContext, filled, rule

_SELU = (1.67326319217681884765625, 1.05070102214813232421875)


@rule("Relu")
def _relu(context: NodeContext) -> Handle:
    x = context.operand(0)
    return context.builder.op("maximum", (x, filled(0, x)))


@rule("LeakyRelu")
def _leaky_relu(context: NodeContext) -> Handle:
    x = context.operand(0)
    return _where_negative(context, x, x * context.constant(context.number("alpha", 0.01), x.dtype), x)


@rule("PRelu")
def _prelu(context: NodeContext) -> Handle:
    x, slope = context.operand(0), context.operand(1)
    if context.version < 9 and len(slope.dims) == 1 and len(x.dims) > 2:
        slope = context.builder.reshape(slope, (*slope.dims, *[1] * (len(x.dims) - 2)))
    return _where_negative(context, x, x * broadcast_to(context.builder, slope, x.dims), x)


@rule("ThresholdedRelu")
def _thresholded_relu(context: NodeContext) -> Handle:
    b, x = context.builder, context.operand(0)
    is_above = b.compare(x, filled(context.number("alpha", 1.0), x), "GT")
    return b.select(is_above, x, filled(0, x))


@rule("Elu")
def _elu(context: NodeContext) -> Handle:
    x = context.operand(0)
    return _where_negative(context, x, _exp_minus_one(x) * context.constant(context.number("alpha", 1.0), x.dtype), x)


@rule("Selu")
def _selu(context: NodeContext) -> Handle:
    x = context.operand(0)
    alpha, gamma = context.number("alpha", _SELU[0]), context.number("gamma", _SELU[1])
    below = _exp_minus_one(x) * context.constant(alpha, x.dtype)
    return _where_negative(context, x, below, x) * context.constant(gamma, x.dtype)


@rule("Celu")
def _celu(context: NodeContext) -> Handle:
    """max(0, x) + min(0, alpha (e^(x / alpha) - 1))."""
    x = context.operand(0)
    alpha = context.constant(context.number("alpha", 1.0), x.dtype)
    return _where_negative(context, x, _exp_minus_one(x / alpha) * alpha, x)


@rule("HardSigmoid")
def _hard_sigmoid(context: NodeContext) -> Handle:
    return hard_sigmoid(context.operand(0), context.number("alpha", 0.2), context.number("beta", 0.5))


@rule("HardSwish")
def _hard_swish(context: NodeContext) -> Handle:
    x = context.operand(0)
    return x * hard_sigmoid(x, 1 / 6, 0.5)


@rule("Softplus")
def _softplus(context: NodeContext) -> Handle:
    return softplus(context.operand(0))


@rule("Softsign")
def _softsign(context: NodeContext) -> Handle:
    x = context.operand(0)
    return x / (context.builder.op("abs", (x,)) + filled(1, x))


@rule("Mish")
def _mish(context: NodeContext) -> Handle:
    x = context.operand(0)
    return x * context.builder.op("tanh", (softplus(x),))


@rule("Swish")
def _swish(context: NodeContext) -> Handle:
    x = context.operand(0)
    scaled = x * context.constant(context.number("alpha", 1.0), x.dtype)
    return x * context.builder.op("logistic", (scaled,))


@rule("Gelu")
def _gelu(context: NodeContext) -> Handle:
    x = context.operand(0)
    match context.text("approximate", "none"):
        case "none":
            share = context.builder.op("erf", (x * context.constant(math.sqrt(0.5), x.dtype),))
        case "tanh":
            cube = x * x * x * context.constant(0.044715, x.dtype)
            share = context.builder.op("tanh", ((x + cube) * context.constant(math.sqrt(2 / math.pi), x.dtype),))
        case other:
            raise context.error(f"approximate must be none or tanh, found {other!r}")
    return x * context.constant(0.5, x.dtype) * (share + filled(1, x))


@rule("Shrink")
def _shrink(context: NodeContext) -> Handle:
    b, x = context.builder, context.operand(0)
    bound, bias = context.number("lambd", 0.5), context.constant(context.number("bias", 0.0), x.dtype)
    wide = x if not x.dtype.is_integral else b.convert(x, DType.F32)
    above = b.select(b.compare(wide, filled(bound, wide), "GT"), x - bias, filled(0, x))
    return b.select(b.compare(wide, filled(-bound, wide), "LT"), x + bias, above)


@rule("Softmax", "LogSoftmax", since=13)
def _softmax(context: NodeContext) -> Handle:
    x = context.operand(0)
    axis = context.axis(len(x.dims), -1)
    return softmax(x, [axis], logarithm=context.operator == "LogSoftmax")


@rule("Softmax", "LogSoftmax", "Hardmax")
def _softmax_of_matrix(context: NodeContext) -> Handle:
    """Before version 13 all dimensions from the axis on count as one."""
    x = context.operand(0)
    axis = context.axis(len(x.dims), 1) if context.integer("axis", 1) != len(x.dims) else len(x.dims)
    if context.operator == "Hardmax":
        flat = context.builder.reshape(x, (math.prod(x.dims[:axis]), math.prod(x.dims[axis:])))
        return context.builder.reshape(_hardmax_along(flat, 1), x.dims)
    return softmax(x, range(axis, len(x.dims)), logarithm=context.operator == "LogSoftmax")


@rule("Hardmax", since=13)
def _hardmax(context: NodeContext) -> Handle:
    x = context.operand(0)
    return _hardmax_along(x, context.axis(len(x.dims), -1))


def softmax(x: Handle, axes: object, *, logarithm: bool = False) -> Handle:
    """e^x over its sum along dimensions, or the logarithm of that; in f32 for narrower types."""
    b, along = x.builder, list(axes)  # type: ignore[call-overload]
    wide = b.convert(x, DType.F32) if x.dtype in (DType.F16, DType.BF16) else x
    if 0 in x.dims or not along:
        return b.full(0 if logarithm else 1, x.dtype, x.dims)
    shifted = wide - broadcast_to(b, max_axes(b, wide, along, True), x.dims)
    power = b.op("exponential", (shifted,))
    total = sum_axes(b, power, along, True)
    if logarithm:
        return b.convert(shifted - broadcast_to(b, b.op("log", (total,)), x.dims), x.dtype)
    return b.convert(power / broadcast_to(b, total, x.dims), x.dtype)


def softplus(x: Handle) -> Handle:
    """log(1 + e^x), without overflow."""
    b = x.builder
    tail = b.op("log-plus-one", (b.op("exponential", (-b.op("abs", (x,)),)),))
    return b.op("maximum", (x, filled(0, x))) + tail


def hard_sigmoid(x: Handle, alpha: float, beta: float) -> Handle:
    """The line alpha x + beta, held between 0 and 1."""
    line = x * filled(alpha, x) + filled(beta, x)
    return x.builder.op("clamp", (filled(0, x), line, filled(1, x)))


def _hardmax_along(x: Handle, axis: int) -> Handle:
    b = x.builder
    if 0 in x.dims:
        return x
    is_largest = b.compare(x, broadcast_to(b, max_axes(b, x, [axis], True), x.dims), "EQ")
    positions = b.iota(DType.S32, x.dims, axis)
    last = b.full(x.dims[axis], DType.S32, x.dims)
    candidates = b.select(is_largest, positions, last)
    first = b.reduce(candidates, x.dims[axis], [axis], "minimum")
    kept = [i for i in range(len(x.dims)) if i != axis]
    return b.convert(b.compare(positions, b.broadcast(first, x.dims, kept), "EQ"), x.dtype)


def _where_negative(context: NodeContext, x: Handle, below: Handle, above: Handle) -> Handle:
    return context.builder.select(context.builder.compare(x, filled(0, x), "LT"), below, above)


def _exp_minus_one(x: Handle) -> Handle:
    return x.builder.op("exponential-minus-one", (x,))
