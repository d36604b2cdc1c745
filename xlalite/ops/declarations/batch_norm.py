"""Batch normalisation of images and volumes in one operation, and its derivatives of first and second order.

The versions differ in what they allow: from the second on statistics may be wider than the data, and the third has one
more output, which is empty here as in XLA.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.framework.graph.dtypes import FLOATING_TYPES
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.building.common import sum_axes
from xlalite.hlo.ops import OPS
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.declare import BATCH_NORM, declare_outputs
from xlalite.ops.helpers.gradients import gradients
from xlalite.ops.helpers.indexed_slices import dense
from xlalite.ops.helpers.node import node, operation
from xlalite.ops.helpers.promotion import cast_to
from xlalite.ops.helpers.shape_rules import require_same_type, require_type
from xlalite.ops.helpers.spatial import SpatialLayout, spatial_layout

_GRAD_DEFAULTS = {"epsilon": 1e-4, "data_format": "NHWC", "is_training": True}
_DEFAULTS = {**_GRAD_DEFAULTS, "exponential_avg_factor": 1.0}
_ATTRS = tuple(_DEFAULTS)


def _layout(op: Operation) -> SpatialLayout:
    data_format = op.get_attr("data_format")
    return spatial_layout(data_format, 5 if "D" in data_format else 4)


def _checked(op: Operation, version: int, x: Tensor, vectors: Sequence[Tensor]) -> tuple[TensorShape, TensorShape]:
    """The shapes of the data and of one number for each channel."""
    require_same_type(vectors if version > 1 else [x, *vectors])
    for tensor in (x, vectors[0]):
        require_type(tensor, FLOATING_TYPES)
    layout = _layout(op)
    shape = x.shape.with_rank(layout.rank)
    channels = TensorShape([shape.as_list()[layout.channel]])
    for vector in vectors:
        channels = channels.merge_with(vector.shape)
    merged = [channels.as_list()[0] if i == layout.channel else size for i, size in enumerate(shape.as_list())]
    return TensorShape(merged), channels


def _attrs(op: Operation) -> object:
    return OPS["batch-norm-training"].attrs(epsilon=op.get_attr("epsilon"), feature_index=_layout(op).channel)


def _declare(version: int) -> None:
    suffix = "" if version == 1 else f"V{version}"
    extra = ("reserve_space_3",) if version == 3 else ()

    def infer(op: Operation) -> Sequence[OutputType]:
        x, scale, offset, mean, variance = op.inputs
        statistics = (
            [] if op.get_attr("is_training") and op.get_attr("exponential_avg_factor") == 1 else [mean, variance]
        )
        require_same_type([scale, mean, variance])
        shape, channels = _checked(op, version, x, [scale, offset, *statistics])
        empty = [(scale.dtype, TensorShape([0]))] * len(extra)
        return [(x.dtype, shape), *[(scale.dtype, channels)] * 4, *empty]

    def lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
        b, (x, scale, offset, mean, variance) = ctx.builder, inputs
        empty = [b.full(0, scale.dtype, [0])] * len(extra)
        if not op.get_attr("is_training"):
            return [b.op("batch-norm-inference", inputs, _attrs(op)), mean, variance, mean, variance, *empty]
        found = b.op("batch-norm-training", (x, scale, offset), _attrs(op))
        count = x.shape.element_count // max(1, scale.dims[0])
        # Running statistics take the estimate for the population, the normalisation that of the batch.
        new_mean, new_variance = found[1], found[2] * (count / max(1, count - 1))
        share = op.get_attr("exponential_avg_factor")
        if share != 1:
            new_mean = mean * (1 - share) + new_mean * share
            new_variance = variance * (1 - share) + new_variance * share
        return [found[0], new_mean, new_variance, found[1], found[2], *empty]

    def gradient(op: Operation, grads: tuple[Tensor | None, ...]) -> Sequence[Tensor | None]:
        if grads[0] is None:
            return [None] * 5
        statistics = op.outputs[3:] if op.get_attr("is_training") else (*op.inputs[3:], *op.outputs[5:])
        inputs = [grads[0], *op.inputs[:2], *statistics]
        found = operation(f"FusedBatchNormGrad{suffix}", inputs, {name: op.get_attr(name) for name in _GRAD_DEFAULTS})
        return [*found.outputs[:3], None, None]

    def infer_grad(op: Operation) -> Sequence[OutputType]:
        grad, x, scale, mean, variance = op.inputs[:5]
        dtype = require_same_type([grad, x])
        shape, channels = _checked(op, version, x, [scale, mean, variance])
        empty = (scale.dtype, TensorShape([0]))
        return [(dtype, shape.merge_with(grad.shape)), (scale.dtype, channels), (scale.dtype, channels), empty, empty]

    def lower_grad(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
        b, (grad, x, scale, mean, variance) = ctx.builder, inputs[:5]
        empty = [b.full(0, scale.dtype, [0])] * 2
        if op.get_attr("is_training"):
            found = b.op("batch-norm-grad", (x, scale, mean, variance, grad), _attrs(op))
            return [found[0], found[1], found[2], *empty]
        return [*_grad_of_inference(b, op, grad, x, scale, mean, variance), *empty]

    inputs = ("x", "scale", "offset", "mean", "variance")
    declare_outputs(
        f"FusedBatchNorm{suffix}", inputs, infer, lower, gradient, BATCH_NORM, attrs=_ATTRS, defaults=_DEFAULTS
    )
    reserved = ("y_backprop", "x", "scale", "reserve_space_1", "reserve_space_2", *extra)
    declare_outputs(
        f"FusedBatchNormGrad{suffix}",
        reserved,
        infer_grad,
        lower_grad,
        _second_order,
        BATCH_NORM,
        attrs=tuple(_GRAD_DEFAULTS),
        defaults=_GRAD_DEFAULTS,
    )


def _grad_of_inference(
    b: Builder, op: Operation, grad: Handle, x: Handle, scale: Handle, mean: Handle, variance: Handle
) -> list[Handle]:
    """The statistics are constants, so each gradient stands alone."""
    axis = _layout(op).channel
    others = [i for i in range(len(x.dims)) if i != axis]
    inverse = b.op("rsqrt", (variance + op.get_attr("epsilon"),))
    wide_grad, wide_x = b.convert(grad, scale.dtype), b.convert(x, scale.dtype)
    to_x = wide_grad * b.broadcast(scale * inverse, x.dims, [axis])
    centred = wide_x - b.broadcast(mean, x.dims, [axis])
    to_scale = sum_axes(b, wide_grad * centred, others) * inverse
    return [b.convert(to_x, x.dtype), to_scale, sum_axes(b, wide_grad, others)]


def _second_order(op: Operation, grads: tuple[Tensor | None, ...]) -> Sequence[Tensor | None]:
    """The derivatives of the formula of the first ones, spelled out in operations of their own."""
    # Through an identity each, since the gradient that came in may itself depend on the data.
    sources = [node("Identity", [tensor]) for tensor in op.inputs[:3]]
    found = _spelled_out(op, *sources)
    arrived = [(result, grad) for result, grad in zip(found, grads[:3], strict=True) if grad is not None]
    if not arrived:
        return [None] * len(op.inputs)
    results, seeds = zip(*arrived, strict=True)
    second = gradients(list(results), sources, list(seeds), name="second_order")
    return [*(None if each is None else dense(each) for each in second), *[None] * (len(op.inputs) - 3)]


def _spelled_out(op: Operation, grad: Tensor, x: Tensor, scale: Tensor) -> list[Tensor]:
    layout = _layout(op)
    axes = constant(np.array([0, *layout.spatial], np.int32))
    kept = constant(np.array(layout.dims(1, [1] * len(layout.spatial), -1), np.int32))

    def mean_of(tensor: Tensor) -> Tensor:
        return node("Mean", [tensor, axes], {"keep_dims": True})

    def sum_of(tensor: Tensor) -> Tensor:
        return node("Sum", [tensor, axes], {"keep_dims": False})

    wide_grad, wide_x = cast_to(grad, scale.dtype), cast_to(x, scale.dtype)
    factor = node("Reshape", [scale, kept])
    if op.get_attr("is_training"):
        mean = mean_of(wide_x)
        variance = mean_of(node("SquaredDifference", [wide_x, mean]))
    else:
        mean, variance = (node("Reshape", [tensor, kept]) for tensor in op.inputs[3:5])
    inverse = node("Rsqrt", [variance + op.get_attr("epsilon")])
    normalised = (wide_x - mean) * inverse
    pulled = wide_grad
    if op.get_attr("is_training"):
        pulled = wide_grad - mean_of(wide_grad) - normalised * mean_of(wide_grad * normalised)
    return [cast_to(factor * inverse * pulled, x.dtype), sum_of(wide_grad * normalised), sum_of(wide_grad)]


for _version in (1, 2, 3):
    _declare(_version)
