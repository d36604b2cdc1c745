"""Normalisation: what is subtracted and what divided by, over which dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.building.common import accumulator_type, broadcast_to, sum_axes
from xlalite.hlo.types.dtype import DType
from xlalite.interop.onnx.context import NodeContext, filled, rule
from xlalite.interop.onnx.rules.reductions import mean


def _along_channels(context: NodeContext, values: Handle, like: Handle) -> Handle:
    """A number for each channel, at the sizes of an array."""
    return context.builder.broadcast(values, like.dims, [1])


def _root_of(context: NodeContext, variance: Handle) -> Handle:
    return context.builder.op("sqrt", (variance + context.constant(context.number("epsilon", 1e-5), variance.dtype),))


@rule("BatchNormalization")
def _batch_normalization(context: NodeContext) -> tuple[Handle, ...]:
    b = context.builder
    x, scale, shift, average, variance = (context.operand(i) for i in range(5))
    trains = context.integer("training_mode", 0) != 0
    wide = accumulator_type(x.dtype)
    if trains:
        others = [i for i in range(len(x.dims)) if i != 1]
        count = math.prod(x.dims[i] for i in others)
        own = b.convert(x, wide)
        current = sum_axes(b, own, others) / b.constant(float(count), wide)
        centred = own - _along_channels(context, current, own)
        spread = sum_axes(b, centred * centred, others) / b.constant(float(count), wide)
        momentum = context.number("momentum", 0.9)
        kept = context.constant(momentum, average.dtype), context.constant(1 - momentum, average.dtype)
        running = [
            old * kept[0] + b.convert(new, old.dtype) * kept[1] for old, new in ((average, current), (variance, spread))
        ]
        return _normalized(context, x, scale, shift, current, spread), *running
    return (_normalized(context, x, scale, shift, average, variance), average, variance)


def _normalized(context: NodeContext, x: Handle, scale: Handle, shift: Handle, average: Handle, var: Handle) -> Handle:
    """X times one number for each channel, plus another one."""
    b = context.builder
    wide = accumulator_type(x.dtype)
    scale, shift, average, var = (b.convert(each, wide) for each in (scale, shift, average, var))
    factor = scale / _root_of(context, var)
    added = shift - average * factor
    own = b.convert(x, wide)
    return b.convert(own * _along_channels(context, factor, own) + _along_channels(context, added, own), x.dtype)


def _standardized(context: NodeContext, x: Handle, axes: Sequence[int]) -> tuple[Handle, Handle, Handle]:
    """X without its average over its deviation, the average and one over the deviation."""
    b, along = context.builder, tuple(axes)
    average = mean(x, along)
    centred = x - broadcast_to(b, average, x.dims)
    variance = mean(centred * centred, along)
    inverse = filled(1, variance) / _root_of(context, variance)
    return centred * broadcast_to(b, inverse, x.dims), average, inverse


@rule("InstanceNormalization")
def _instance_normalization(context: NodeContext) -> Handle:
    b, narrow = context.builder, context.operand(0)
    x = b.convert(narrow, accumulator_type(narrow.dtype))
    normal, _, _ = _standardized(context, x, range(2, len(x.dims)))
    scale, shift = (_along_channels(context, b.convert(context.operand(i), x.dtype), x) for i in (1, 2))
    return b.convert(normal * scale + shift, narrow.dtype)


@rule("LayerNormalization")
def _layer_normalization(context: NodeContext) -> tuple[Handle, Handle, Handle]:
    b, narrow = context.builder, context.operand(0)
    wide = context.dtype("stash_type", DType.F32)
    x = b.convert(narrow, wide if narrow.dtype is not DType.F64 else DType.F64)
    axis = context.axis(len(x.dims), -1)
    normal, average, inverse = _standardized(context, x, range(axis, len(x.dims)))
    scale = context.operand(1)
    found = b.convert(normal, scale.dtype) * broadcast_to(b, scale, x.dims)
    if context.has(2):
        found = found + broadcast_to(b, context.operand(2), x.dims)
    return found, average, inverse


@rule("RMSNormalization")
def _rms_normalization(context: NodeContext) -> Handle:
    b, narrow, scale = context.builder, context.operand(0), context.operand(1)
    x = b.convert(narrow, context.dtype("stash_type", DType.F32))
    axis = context.axis(len(x.dims), -1)
    square = mean(x * x, tuple(range(axis, len(x.dims))))
    normal = b.convert(x / broadcast_to(b, _root_of(context, square), x.dims), scale.dtype)
    return normal * broadcast_to(b, scale, x.dims)


@rule("GroupNormalization")
def _group_normalization(context: NodeContext) -> Handle:
    """Scale and shift are for each channel; before version 21 for each group."""
    b, narrow = context.builder, context.operand(0)
    wide = context.dtype("stash_type", DType.F32) if context.version >= 21 else accumulator_type(narrow.dtype)
    x, groups = b.convert(narrow, wide), context.integer("num_groups")
    batch, channels, *space = x.dims
    split = b.reshape(x, (batch, groups, channels // groups, *space))
    normal, _, _ = _standardized(context, split, range(2, len(split.dims)))
    scale, shift = (b.convert(context.operand(i), wide) for i in (1, 2))
    if context.version < 21:
        found = normal * _along_channels(context, scale, normal) + _along_channels(context, shift, normal)
        return b.convert(b.reshape(found, x.dims), narrow.dtype)
    whole = b.reshape(normal, x.dims)
    return b.convert(whole * _along_channels(context, scale, x) + _along_channels(context, shift, x), narrow.dtype)


@rule("MeanVarianceNormalization")
def _mean_variance_normalization(context: NodeContext) -> Handle:
    b, x = context.builder, context.operand(0)
    axes = context.normalized_all(context.integers("axes", (0, 2, 3)), len(x.dims))
    centred = x - broadcast_to(b, mean(x, axes), x.dims)
    spread = b.op("sqrt", (mean(centred * centred, axes),)) + context.constant(1e-9, x.dtype)
    return centred / broadcast_to(b, spread, x.dims)


@rule("LpNormalization")
def _lp_normalization(context: NodeContext) -> Handle:
    """Zeros stay zeros."""
    b, x = context.builder, context.operand(0)
    axis = [context.axis(len(x.dims), -1)]
    if context.integer("p", 2) == 1:
        norm = sum_axes(b, b.op("abs", (x,)), axis, True)
    else:
        norm = b.op("sqrt", (sum_axes(b, x * x, axis, True),))
    norm = broadcast_to(b, norm, x.dims)
    return b.select(b.compare(norm, 0, "EQ"), filled(0, x), x / norm)
