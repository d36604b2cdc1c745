"""Normalisation over a batch, over layers and over groups; statistics of narrow types are wide."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.building.common import accumulator_type, broadcast_to, sum_axes
from xlalite.hlo.types.dtype import DType
from xlalite.interop.torch.rules.operation import Operation
from xlalite.interop.torch.rules.registry import rule


def _statistics(x: Handle, axes: Sequence[int]) -> tuple[Handle, Handle]:
    """Mean and variance along dimensions, which stay with size 1."""
    b, count = x.builder, math.prod(x.dims[axis] for axis in axes)
    mean = sum_axes(b, x, axes, keep_dims=True) / count
    centred = x - broadcast_to(b, mean, x.dims)
    return mean, sum_axes(b, centred * centred, axes, keep_dims=True) / count


def _inverse_root(variance: Handle, epsilon: float) -> Handle:
    return variance.builder.op("rsqrt", (variance + epsilon,))


@rule(
    "aten._native_batch_norm_legit_functional.default",
    "aten._native_batch_norm_legit.no_stats",
    "aten._native_batch_norm_legit_no_training.default",
)
def batch_norm(
    at: Operation, x: Handle, weight: Handle | None, bias: Handle | None, *given: object
) -> tuple[Handle, ...]:
    """Normalised by the statistics of the batch or by running ones, which follow those of the batch."""
    b, wide, axes = at.builder, accumulator_type(x.dtype), [i for i in range(len(x.dims)) if i != 1]
    own, channels = b.convert(x, wide), (x.dims[1],)
    *running, momentum, epsilon = [each for each in given if not isinstance(each, bool)]
    assert isinstance(momentum, float | int), "momentum is a number"
    assert isinstance(epsilon, float | int), "epsilon is a number"
    is_training = any(each is True for each in given)
    old = [b.convert(each, wide) for each in running if isinstance(each, Handle)]
    if is_training:
        mean, variance = (b.reshape(each, channels) for each in _statistics(own, axes))
    else:
        mean, variance = old
    inverse = _inverse_root(variance, float(epsilon))
    scale = inverse if weight is None else inverse * b.convert(weight, wide)
    found = (own - b.broadcast(mean, x.dims, [1])) * b.broadcast(scale, x.dims, [1])
    if bias is not None:
        found = found + b.broadcast(b.convert(bias, wide), x.dims, [1])
    results = [found, mean, inverse]
    if not is_training:
        results[1:] = [b.full(0, wide, (0,))] * 2
    if len(at.results) == 5:
        count = math.prod(x.dims[axis] for axis in axes)
        news = (mean, variance * (count / max(count - 1, 1)))
        results += [
            before * (1 - momentum) + new * momentum if is_training else before
            for before, new in zip(old, news, strict=True)
        ]
    return _rounded(at, results)


@rule("aten.native_layer_norm.default")
def layer_norm(
    at: Operation, x: Handle, sizes: Sequence[int], weight: Handle | None, bias: Handle | None, epsilon: float
) -> tuple[Handle, ...]:
    """Normalised along the last dimensions."""
    b, wide = at.builder, accumulator_type(x.dtype)
    own, axes = b.convert(x, wide), range(len(x.dims) - len(sizes), len(x.dims))
    mean, variance = _statistics(own, axes)
    inverse = _inverse_root(variance, epsilon)
    found = (own - broadcast_to(b, mean, x.dims)) * broadcast_to(b, inverse, x.dims)
    found = _scaled(found, weight, bias)
    return _rounded(at, (found, mean, inverse))


@rule("aten._fused_rms_norm.default")
def rms_norm(
    at: Operation, x: Handle, sizes: Sequence[int], weight: Handle | None, epsilon: float | None
) -> tuple[Handle, ...]:
    """Divided by the root of the mean of squares along the last dimensions."""
    b, wide = at.builder, accumulator_type(x.dtype)
    own, axes = b.convert(x, wide), range(len(x.dims) - len(sizes), len(x.dims))
    mean = sum_axes(b, own * own, axes, keep_dims=True) / math.prod(sizes)
    inverse = _inverse_root(mean, _LEAST[x.dtype] if epsilon is None else epsilon)
    found = _scaled(own * broadcast_to(b, inverse, x.dims), weight, None)
    return _rounded(at, (found, inverse))


_LEAST = {DType.F16: 2.0**-10, DType.BF16: 2.0**-7, DType.F32: 2.0**-23, DType.F64: 2.0**-52}
"""The epsilon of each type, which is what is added where none is given."""


@rule("aten.native_group_norm.default")
def group_norm(
    at: Operation,
    x: Handle,
    weight: Handle | None,
    bias: Handle | None,
    batch: int,
    channels: int,
    space: int,
    groups: int,
    epsilon: float,
) -> tuple[Handle, ...]:
    """Normalised over groups of channels with all that lies in them."""
    b, wide = at.builder, accumulator_type(x.dtype)
    own = b.reshape(b.convert(x, wide), (batch, groups, channels // groups * space))
    mean, variance = _statistics(own, [2])
    inverse = _inverse_root(variance, epsilon)
    found = (own - broadcast_to(b, mean, own.dims)) * broadcast_to(b, inverse, own.dims)
    found = b.reshape(found, (batch, channels, space))
    along = [None if each is None else b.reshape(each, (channels, 1)) for each in (weight, bias)]
    found = b.reshape(_scaled(found, *along), x.dims)
    kept = (b.reshape(each, (batch, groups)) for each in (mean, inverse))
    return _rounded(at, (found, *kept))


def _scaled(x: Handle, weight: Handle | None, bias: Handle | None) -> Handle:
    b = x.builder
    if weight is not None:
        x = x * broadcast_to(b, b.convert(weight, x.dtype), x.dims)
    return x if bias is None else x + broadcast_to(b, b.convert(bias, x.dtype), x.dims)


def _rounded(at: Operation, values: Sequence[Handle]) -> tuple[Handle, ...]:
    """Values in the types of the results."""
    types = [value.dtype if wanted is None else wanted.dtype for value, wanted in zip(values, at.results, strict=True)]
    return tuple(at.builder.convert(value, dtype) for value, dtype in zip(values, types, strict=True))
