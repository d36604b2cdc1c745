"""Scaled dot-product attention, forward and backward."""

from __future__ import annotations

import math

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.ops.dot import DotAttrs
from xlalite.hlo.types.dtype import DType
from xlalite.interop.torch.rules.operation import Operation, wide_dtype
from xlalite.interop.torch.rules.registry import Declined, rule

_BATCH = (0, 1)


@rule("aten._scaled_dot_product_flash_attention_for_cpu.default")
def flash_attention(
    op: Operation,
    query: Handle,
    key: Handle,
    value: Handle,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Handle | None = None,
    scale: float | None = None,
) -> tuple[Handle, Handle]:
    """Attention `[b, h, m, k] x [b, h, n, k] x [b, h, n, k]`, and the logarithms of its sums `[b, h, m]`."""
    if dropout_p:
        raise Declined("attention with dropout")
    scores = _scores(op, query, key, is_causal, attn_mask, scale)
    top = op.reduce(scores, (3,), "maximum", -math.inf, True)
    top = _seen(op, top)
    powers = op.builder.op("exponential", (scores - op.expand(top, scores.dims),))
    total = op.reduce(powers, (3,), "add", 0, True)
    logarithm = op.builder.reshape(top + op.builder.op("log", (total,)), total.dims[:3])
    total = op.builder.select(op.builder.compare(total, 0, "EQ"), op.builder.full(1, total.dtype, total.dims), total)
    weights = powers / op.expand(total, scores.dims)
    found = _dot(op, op.cast(weights, value.dtype), value, 3, 2)
    wanted = op.results[1]
    assert wanted is not None, "the operation has two results"
    return op.cast(found, op.dtype), op.cast(logarithm, wanted.dtype)


@rule("aten._scaled_dot_product_flash_attention_for_cpu_backward.default")
def flash_attention_backward(
    op: Operation,
    gradient: Handle,
    query: Handle,
    key: Handle,
    value: Handle,
    out: Handle,
    logsumexp: Handle,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Handle | None = None,
    scale: float | None = None,
) -> tuple[Handle, Handle, Handle]:
    """Gradients of query, key and value; the weights are computed again from the logarithms of their sums."""
    if dropout_p:
        raise Declined("attention with dropout")
    dtype, factor = wide_dtype(op.dtype), _factor(query, scale)
    query, key, value, gradient, out = (op.cast(x, dtype) for x in (query, key, value, gradient, out))
    scores = _scores(op, query, key, is_causal, attn_mask, scale)
    logarithm = op.cast(logsumexp, dtype)
    sums = op.builder.broadcast(_seen(op, logarithm), scores.dims, (0, 1, 2))
    weights = op.builder.op("exponential", (scores - sums,))
    to_value = _dot(op, weights, gradient, 2, 2)
    to_weights = _dot(op, gradient, value, 3, 3)
    row = op.reduce(gradient * out, (3,), "add", 0)
    to_scores = weights * (to_weights - op.builder.broadcast(row, scores.dims, (0, 1, 2))) * factor
    to_query, to_key = _dot(op, to_scores, key, 3, 2), _dot(op, to_scores, query, 2, 2)
    first, second, third = (op.cast(x, op.dtype) for x in (to_query, to_key, to_value))
    return first, second, third


def _seen(op: Operation, value: Handle) -> Handle:
    """A value, or 0 for queries that see no key: minus infinity less itself would be no number."""
    b = op.builder
    return b.select(b.compare(value, -math.inf, "EQ"), b.full(0, value.dtype, value.dims), value)


def _scores(
    op: Operation, query: Handle, key: Handle, is_causal: bool, mask: Handle | None, scale: float | None
) -> Handle:
    """Scaled products `[b, h, m, n]`, with what must not be seen at minus infinity."""
    dtype, b = wide_dtype(query.dtype), op.builder
    scores = _dot(op, op.cast(query, dtype), op.cast(key, dtype), 3, 3) * _factor(query, scale)
    if is_causal:
        rows, columns = (b.iota(DType.S32, scores.dims, axis) for axis in (2, 3))
        scores = b.select(b.compare(rows, columns, "GE"), scores, -math.inf)
    if mask is None:
        return scores
    if mask.dtype is DType.PRED:
        return b.select(op.expand(mask, scores.dims), scores, -math.inf)
    return scores + op.expand(op.cast(mask, dtype), scores.dims)


def _factor(query: Handle, scale: float | None) -> float:
    return 1 / math.sqrt(query.dims[-1]) if scale is None else scale


def _dot(op: Operation, x: Handle, y: Handle, x_axis: int, y_axis: int) -> Handle:
    return op.builder.op("dot", (x, y), DotAttrs(_BATCH, (x_axis,), _BATCH, (y_axis,)))
