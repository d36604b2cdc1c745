"""What transformers are made of beside products and normalisation."""

from __future__ import annotations

import math
from functools import reduce
from operator import and_

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.building.common import broadcast_to, max_axes
from xlalite.hlo.building.indexing import gather_rows
from xlalite.hlo.ops import OPS
from xlalite.hlo.types.dtype import DType
from xlalite.interop.onnx.context import NodeContext, filled, rule
from xlalite.interop.onnx.rules.activations import softmax
from xlalite.interop.onnx.scope import Value


@rule("SwiGLU")
def _swiglu(context: NodeContext) -> Handle:
    gate, x = context.common(context.operand(0), context.operand(1))
    return gate * context.builder.op("logistic", (gate * filled(context.number("alpha", 1.0), gate),)) * x


@rule("RotaryEmbedding")
def _rotary_embedding(context: NodeContext) -> Handle:
    """Pairs of features turned by the angles of their positions; pairs are neighbours, or lie half a head apart."""
    b, x = context.builder, context.operand(0)
    cosines, sines = context.operand(1), context.operand(2)
    flat = len(x.dims) == 3
    heads = context.integer("num_heads", 0) if flat else x.dims[1]
    if flat:
        if heads < 1 or x.dims[2] % heads:
            raise context.error(f"{x.shape.text()} is not that of {heads} heads")
        whole = b.reshape(x, (x.dims[0], x.dims[1], heads, x.dims[2] // heads))
    else:
        whole = b.transpose(x, (0, 2, 1, 3))
    batch, length, _, size = whole.dims
    turned = context.integer("rotary_embedding_dim", 0) or size
    half = turned // 2
    if context.has(3):
        cosines, sines = (gather_rows(b, each, context.operand(3), 0) for each in (cosines, sines))
    parts = b.slice(whole, (0, 0, 0, 0), (batch, length, heads, turned))
    if context.integer("interleaved", 0):
        pairs = b.reshape(parts, (batch, length, heads, half, 2))
        first, second = (
            b.reshape(
                b.slice(pairs, (0, 0, 0, 0, i), (batch, length, heads, half, i + 1)), (batch, length, heads, half)
            )
            for i in (0, 1)
        )
    else:
        first = b.slice(parts, (0, 0, 0, 0), (batch, length, heads, half))
        second = b.slice(parts, (0, 0, 0, half), (batch, length, heads, turned))
    cosine, sine = (b.broadcast(each, first.dims, (0, 1, 3)) for each in (cosines, sines))
    real, imaginary = cosine * first - sine * second, sine * first + cosine * second
    if context.integer("interleaved", 0):
        found = b.concatenate([b.reshape(each, (*each.dims, 1)) for each in (real, imaginary)], 4)
        found = b.reshape(found, (batch, length, heads, turned))
    else:
        found = b.concatenate([real, imaginary], 3)
    if turned < size:
        found = b.concatenate([found, b.slice(whole, (0, 0, 0, turned), whole.dims)], 3)
    return b.reshape(found, x.dims) if flat else b.transpose(found, (0, 2, 1, 3))


@rule("Attention", since=23)
def _attention(context: NodeContext) -> tuple[Value, ...]:
    """softmax(Q K / sqrt(size) + bias) V, with the cache of keys and values and the scores before or behind softmax."""
    b, flat = context.builder, len(context.operand(0).dims) == 3
    query = _heads(context, 0, "q_num_heads")
    keys, values = (
        b.concatenate([context.operand(past), own], 2) if context.has(past) else own
        for own, past in ((_heads(context, 1, "kv_num_heads"), 4), (_heads(context, 2, "kv_num_heads"), 5))
    )
    batch, heads, length, size = query.dims
    groups = keys.dims[1]
    if groups < 1 or heads % groups:
        raise context.error(f"{heads} heads of queries for {groups} of keys")
    root = math.sqrt(context.number("scale", 1 / math.sqrt(size or 1)))
    own = b.reshape(query * filled(root, query), (batch, groups, heads // groups * length, size))
    scores = b.op("dot", (own, keys * filled(root, keys)), OPS["dot"].attrs((0, 1), (3,), (0, 1), (3,)))
    raw = b.reshape(scores, (batch, heads, length, keys.dims[2]))
    cap = context.number("softcap", 0.0)
    capped = b.op("tanh", (raw / filled(cap, raw),)) * filled(cap, raw) if cap else raw
    biased = _with_mask(context, capped)
    precision = context.dtype("softmax_precision", biased.dtype)
    wide = b.convert(biased, precision)
    is_attended = b.compare(max_axes(b, wide, [3], True), -math.inf, "GT")
    guarded = b.select(broadcast_to(b, is_attended, wide.dims), softmax(wide, [3]), filled(0, wide))
    shares = b.convert(guarded, raw.dtype)
    rows = b.reshape(shares, (batch, groups, heads // groups * length, keys.dims[2]))
    found = b.op("dot", (rows, values), OPS["dot"].attrs((0, 1), (3,), (0, 1), (2,)))
    found = b.reshape(found, (batch, heads, length, values.dims[3]))
    if flat:
        found = b.reshape(b.transpose(found, (0, 2, 1, 3)), (batch, length, heads * values.dims[3]))
    shown = {0: raw, 1: capped, 2: biased, 3: shares}.get(context.integer("qk_matmul_output_mode", 0))
    return found, keys, values, shown


def _heads(context: NodeContext, position: int, name: str) -> Handle:
    """`[batch, heads, length, size]`, of which heads and size may be one dimension behind the length."""
    b, x = context.builder, context.operand(position)
    if len(x.dims) != 3:
        return x
    heads, (batch, length, width) = context.integer(name), x.dims
    if heads < 1 or width % heads:
        raise context.error(f"{x.shape.text()} is not that of {heads} heads")
    return b.transpose(b.reshape(x, (batch, length, heads, width // heads)), (0, 2, 1, 3))


def _with_mask(context: NodeContext, scores: Handle) -> Handle:
    """Scores with the bias added, and -inf where a query does not attend a key."""
    b, dims = context.builder, scores.dims
    allowed = []
    mask = context.optional(3)
    if mask is not None:
        missing = dims[3] - mask.dims[-1] if mask.dims[-1] != 1 else 0
        outside = b.constant(False) if mask.dtype is DType.PRED else context.constant(-math.inf, mask.dtype)
        mask = b.pad(mask, outside, [*[(0, 0, 0)] * (len(mask.dims) - 1), (0, missing, 0)])
        mask = broadcast_to(b, mask, dims)
        if mask.dtype is DType.PRED:
            allowed.append(mask)
        else:
            scores = scores + b.convert(mask, scores.dtype)
    key, place = b.iota(DType.S64, dims, 3), b.iota(DType.S64, dims, 2)
    if context.has(4):
        place = place + context.operand(4).dims[2]
    elif context.has(6):
        place = place + b.broadcast(b.convert(context.operand(6), DType.S64) - dims[2], dims, [0])
    if context.has(6):
        allowed.append(b.compare(key, b.broadcast(b.convert(context.operand(6), DType.S64), dims, [0]), "LT"))
    left, right = (context.integer(f"{side}_window_size", -1) for side in ("left", "right"))
    if context.integer("is_causal", 0):
        allowed.append(b.compare(key, place, "LE"))
    if left >= 0:
        allowed.append(b.compare(key, place - left, "GE"))
    if right >= 0:
        allowed.append(b.compare(key, place + right, "LE"))
    return b.select(reduce(and_, allowed), scores, filled(-math.inf, scores)) if allowed else scores
