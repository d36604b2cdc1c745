"""Numbers rounded to those of a quantised type, in floating point: for training that will be quantised.

Gradients pass straight through the rounding; what lies outside the range pulls at the range instead.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.framework.graph.dtypes import FLOATING_TYPES, INTEGER_TYPES
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.building.common import max_axes, reduce_axes, sum_axes, zeros_like
from xlalite.hlo.errors import ShapeError
from xlalite.ops.helpers.declare import declare, declare_outputs
from xlalite.ops.helpers.node import node, operation
from xlalite.ops.helpers.shape_rules import normalize_axis, require_same_type, require_scalar, require_type

# FakeQuantWithMinMax...: the range is moved a little so that 0 is one of the numbers.

_BITS = {"num_bits": 8, "narrow_range": False}
_RANGE = {"min": -6.0, "max": 6.0, **_BITS}


def _levels(op: Operation) -> tuple[int, int]:
    bits = op.get_attr("num_bits")
    if not 2 <= bits <= 16:
        raise ShapeError(f"num_bits must be from 2 to 16, found {bits}")
    return int(op.get_attr("narrow_range")), 2**bits - 1


def _nudged(b: Builder, op: Operation, low: Handle, high: Handle) -> tuple[Handle, Handle, Handle]:
    """The range, and the distance of neighbouring numbers."""
    lowest, highest = _levels(op)
    scale = (high - low) / (highest - lowest)
    zero = -(low / scale) + lowest
    limits = [b.full(limit, zero.dtype, zero.dims) for limit in (lowest, highest)]
    zero = b.op("clamp", (limits[0], b.op("round-nearest-afz", (zero,)), limits[1]))
    return (-zero + lowest) * scale, (-zero + highest) * scale, scale


def _along_channels(b: Builder, limit: Handle, x: Handle) -> Handle:
    return b.broadcast(limit, x.dims, [len(x.dims) - 1] if limit.dims else [])


def _fake_quant(b: Builder, op: Operation, x: Handle, low: Handle, high: Handle) -> Handle:
    bottom, top, scale = _nudged(b, op, low, high)
    inverse = b.full(1, scale.dtype, scale.dims) / scale
    zero = b.op("floor", (-bottom * inverse + 0.5,))
    is_empty = b.compare(low, 0, "EQ") & b.compare(high, 0, "EQ")
    bottom, top, scale, inverse, zero = (_along_channels(b, each, x) for each in (bottom, top, scale, inverse, zero))
    inside = b.op("clamp", (bottom, x, top))
    rounded = b.op("floor", ((inside - bottom) * inverse - zero + 0.5,)) * scale
    return b.select(_along_channels(b, is_empty, x), zeros_like(b, x), rounded)


def _fake_quant_grad(b: Builder, op: Operation, grad: Handle, x: Handle, low: Handle, high: Handle) -> list[Handle]:
    """What goes to the data, to the lower and to the upper end."""
    bottom, top, _ = _nudged(b, op, low, high)
    is_empty = b.compare(low, 0, "EQ") & b.compare(high, 0, "EQ")
    not_empty = _along_channels(b, ~is_empty, x)
    below = b.compare(x, _along_channels(b, bottom, x), "LT") & not_empty
    above = b.compare(x, _along_channels(b, top, x), "GT") & not_empty
    axes = range(len(x.dims) - len(low.dims))
    zeros = zeros_like(b, grad)
    to_ends = [sum_axes(b, b.select(outside, grad, zeros), axes) for outside in (below, above)]
    return [b.select(below | above, zeros, grad), *to_ends]


def _ends(b: Builder, op: Operation, x: Handle) -> list[Handle]:
    return [b.constant(float(op.get_attr(name)), x.dtype) for name in ("min", "max")]


def _args_infer(op: Operation) -> Sequence[OutputType]:
    dtype = require_same_type(op.inputs)
    require_type(op.inputs[0], FLOATING_TYPES)
    if not op.get_attr("min") < op.get_attr("max"):
        raise ShapeError(f"min {op.get_attr('min')} must be less than max {op.get_attr('max')}")
    _levels(op)
    shape = op.inputs[0].shape
    return [(dtype, shape.merge_with(op.inputs[-1].shape))]


def _args_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    return [_fake_quant(ctx.builder, op, inputs[0], *_ends(ctx.builder, op, inputs[0]))]


def _args_grad_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    return _fake_quant_grad(ctx.builder, op, *inputs, *_ends(ctx.builder, op, inputs[0]))[:1]


def _args_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    attrs = {name: op.get_attr(name) for name in _RANGE}
    return [node("FakeQuantWithMinMaxArgsGradient", [grad, op.inputs[0]], attrs)]


declare(
    "FakeQuantWithMinMaxArgs",
    ("inputs",),
    _args_infer,
    _args_lower,
    _args_gradient,
    None,
    attrs=tuple(_RANGE),
    defaults=_RANGE,
)
declare(
    "FakeQuantWithMinMaxArgsGradient",
    ("gradients", "inputs"),
    _args_infer,
    _args_grad_lower,
    None,
    None,
    attrs=tuple(_RANGE),
    defaults=_RANGE,
)


def _checked(op: Operation, per_channel: bool) -> tuple[TensorShape, TensorShape]:
    """The shapes of the data and of the ends of the range."""
    require_same_type(op.inputs)
    *data, low, high = op.inputs
    require_type(low, FLOATING_TYPES)
    _levels(op)
    shape = data[0].shape.merge_with(data[-1].shape)
    if not per_channel:
        require_scalar(low, "min")
        require_scalar(high, "max")
        return shape, TensorShape(())
    shape = shape.with_rank_at_least(1)
    ends = low.shape.with_rank(1).merge_with(high.shape)
    if shape.dims is not None:
        ends = ends.merge_with(shape.dims[-1:])
        shape = TensorShape([*shape.dims[:-1], *ends.as_list()])
    return shape, ends


def _declare_vars(suffix: str, per_channel: bool) -> None:
    name = f"FakeQuantWithMinMaxVars{suffix}"

    def infer(op: Operation) -> Sequence[OutputType]:
        return [(op.inputs[0].dtype, _checked(op, per_channel)[0])]

    def infer_grad(op: Operation) -> Sequence[OutputType]:
        shape, ends = _checked(op, per_channel)
        return [(op.inputs[0].dtype, each) for each in (shape, ends, ends)]

    def lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
        return [_fake_quant(ctx.builder, op, *inputs)]

    def lower_grad(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
        return _fake_quant_grad(ctx.builder, op, *inputs)

    def gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
        attrs = {each: op.get_attr(each) for each in _BITS}
        return operation(f"{name}Gradient", [grad, *op.inputs], attrs).outputs

    declare(name, ("inputs", "min", "max"), infer, lower, gradient, None, attrs=tuple(_BITS), defaults=_BITS)
    inputs = ("gradients", "inputs", "min", "max")
    declare_outputs(f"{name}Gradient", inputs, infer_grad, lower_grad, None, None, attrs=tuple(_BITS), defaults=_BITS)


_declare_vars("", False)
_declare_vars("PerChannel", True)


# QuantizeAndDequantize...: the range is given or that of the data, and its ends are numbers; 0 always is one.

_QUANTIZE = {"signed_input": True, "range_given": True, "narrow_range": False, "axis": -1}


def _quantize_infer(op: Operation) -> Sequence[OutputType]:
    x, low, high = op.inputs[:3]
    dtype = require_same_type([x, low, high])
    require_type(x, FLOATING_TYPES)
    axis = op.get_attr("axis")
    if x.shape.dims is not None and axis != -1:
        normalize_axis(axis, len(x.shape.dims))
    if len(op.inputs) == 4:
        require_type(op.inputs[3], INTEGER_TYPES, "num_bits")
        require_scalar(op.inputs[3], "num_bits")
    return [(dtype, x.shape)]


def _quantize(b: Builder, op: Operation, bits: int, x: Handle, low: Handle, high: Handle) -> Handle:
    if not (2 if op.get_attr("signed_input") else 1) <= bits <= 63:
        raise ShapeError(f"num_bits {bits} is out of range")
    axis = op.get_attr("axis")
    if not op.get_attr("range_given"):
        others = [i for i in range(len(x.dims)) if axis == -1 or i != axis]
        low, high = reduce_axes(b, x, "minimum", np.inf, others, False), max_axes(b, x, others)
    lowest, highest = 0.0, 2.0**bits - 1
    if op.get_attr("signed_input"):
        lowest, highest = int(op.get_attr("narrow_range")) - 2.0 ** (bits - 1), 2.0 ** (bits - 1) - 1
    largest = b.full(np.finfo(np.float32).max if x.dtype.numpy.itemsize >= 4 else 65504, low.dtype, low.dims)
    from_low = b.select(b.compare(low * lowest, 0, "GT"), b.full(lowest, low.dtype, low.dims) / low, largest)
    from_high = b.select(b.compare(high * highest, 0, "GT"), b.full(highest, high.dtype, high.dims) / high, largest)
    by_low = b.compare(from_low, from_high, "LT")
    scale = b.select(by_low, from_low, from_high)
    unit = b.select(by_low, low / (lowest or 1), high / highest)
    low, high = b.select(by_low, low, unit * lowest), b.select(by_low, unit * highest, high)
    low, high, scale, unit = (
        b.broadcast(each, x.dims, [axis] if each.dims else []) for each in (low, high, scale, unit)
    )
    inside = b.op("clamp", (low, x, high)) if op.get_attr("range_given") else x
    if "round_mode" in op.spec.attrs and op.get_attr("round_mode") == "HALF_UP":
        return b.op("floor", (inside * scale + 0.5,)) * unit
    return b.op("round-nearest-even", (inside * scale,)) * unit


def _quantize_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    in_input = "num_bits" in op.spec.inputs
    bits = int(ctx.constant(op, "num_bits")) if in_input else op.get_attr("num_bits")
    return [_quantize(ctx.builder, op, bits, *inputs)]


def _straight_through(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    return [grad, *[None] * (len(op.inputs) - 1)]


def _clipped_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    return operation("QuantizeAndDequantizeV4Grad", [grad, *op.inputs], {"axis": op.get_attr("axis")}).outputs


_INPUTS = ("input", "input_min", "input_max")
_V2 = {**_QUANTIZE, "range_given": False, "num_bits": 8, "round_mode": "HALF_TO_EVEN"}
declare(
    "QuantizeAndDequantizeV2",
    _INPUTS,
    _quantize_infer,
    _quantize_lower,
    _straight_through,
    None,
    attrs=tuple(_V2),
    defaults=_V2,
)
declare(
    "QuantizeAndDequantizeV4",
    _INPUTS,
    _quantize_infer,
    _quantize_lower,
    _clipped_gradient,
    None,
    attrs=tuple(_V2),
    defaults=_V2,
)
declare(
    "QuantizeAndDequantizeV3",
    (*_INPUTS, "num_bits"),
    _quantize_infer,
    _quantize_lower,
    _straight_through,
    None,
    attrs=tuple(_QUANTIZE),
    defaults=_QUANTIZE,
    constant_inputs=("num_bits",),
)


def _clipped_infer(op: Operation) -> Sequence[OutputType]:
    grad, x, low, high = op.inputs
    dtype = require_same_type(op.inputs)
    require_type(x, FLOATING_TYPES)
    return [(dtype, grad.shape.merge_with(x.shape)), (dtype, low.shape), (dtype, high.shape)]


def _clipped_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (grad, x, low, high) = ctx.builder, inputs
    axis = op.get_attr("axis")
    along = [axis] if low.dims else []
    below = b.compare(x, b.broadcast(low, x.dims, along), "LT")
    above = b.compare(x, b.broadcast(high, x.dims, along), "GT")
    others, zeros = [i for i in range(len(x.dims)) if i not in along], zeros_like(b, grad)
    to_ends = [sum_axes(b, b.select(outside, grad, zeros), others) for outside in (below, above)]
    return [b.select(below | above, zeros, grad), *to_ends]


declare_outputs(
    "QuantizeAndDequantizeV4Grad",
    ("gradients", *_INPUTS),
    _clipped_infer,
    _clipped_lower,
    None,
    None,
    attrs=("axis",),
    defaults={"axis": -1},
)
