"""Attention as `com.microsoft` has it: projections, masks of several forms and caches around the standard's."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.types.dtype import DType
from xlalite.interop.onnx.context import NodeContext, rule
from xlalite.interop.onnx.rules.vendor_fusions import VENDOR


@rule("Attention", domain=VENDOR)
def _attention(context: NodeContext) -> tuple[Handle, ...]:
    """Queries, keys and values are one product of the input."""
    product = context.standard("MatMul", context.operand(0), context.operand(1))
    biased = context.standard("Add", product, context.operand(2)) if context.has(2) else product
    return attention(context, biased, mask=3, past=4, bias=5)


def attention(context: NodeContext, projected: Handle, *, mask: int, past: int, bias: int) -> tuple[Handle, ...]:
    """Attention of queries, keys and values that lie behind each other, and the cache where it is one array.

    Args:
        context: The node.
        projected: The three, `[batch, length, sizes]`.
        mask: Which input says what is attended.
        past: Which one is the cache.
        bias: Which one is added to the scores.
    """
    b = context.builder
    if context.integer("do_rotary", 0) or context.has(bias + 1):
        raise context.error("rotary embeddings and caches of fixed length have no rule here")
    batch, length, width = projected.dims
    sizes = context.integers("qkv_hidden_sizes", (width // 3,) * 3)
    if len(sizes) != 3 or sum(sizes) != width:
        raise context.error(f"{width} features are not split into {sizes}")
    ends = [0, sizes[0], sizes[0] + sizes[1], width]
    parts = [b.slice(projected, (0, 0, low), (batch, length, high)) for low, high in pairwise(ends)]
    old: Sequence[Handle | None] = (None, None)
    if context.has(past):
        cache = context.operand(past)
        old = [b.reshape(b.slice(cache, (i, 0, 0, 0, 0), (i + 1, *cache.dims[1:])), cache.dims[1:]) for i in range(2)]
    found, keys, values = _attended(context, parts, old, mask, bias)
    present = [b.reshape(each, (1, *each.dims)) for each in (keys, values)]
    return (found, b.concatenate(present, 0)) if keys.dims == values.dims else (found,)


@rule("MultiHeadAttention", domain=VENDOR)
def _multi_head_attention(context: NodeContext) -> tuple[Handle, ...]:
    """Queries, keys and values come apart; a bias is added to them together."""
    b = context.builder
    if not context.has(1) or not context.has(2):
        raise context.error("queries, keys and values that lie in each other have no rule here")
    parts = [context.operand(i) for i in range(3)]
    if context.has(3):
        bias, start = context.operand(3), 0
        for i, part in enumerate(parts):
            heads = len(part.dims) == 4
            width = part.dims[1] * part.dims[3] if heads else part.dims[2]
            own = b.slice(bias, (start,), (start + width,))
            own = b.reshape(own, (1, part.dims[1], 1, part.dims[3])) if heads else own
            parts[i] = context.standard("Add", part, own)
            start += width
    old = [context.optional(6), context.optional(7)]
    return _attended(context, parts, old, 4, 5)


def _attended(
    context: NodeContext, parts: Sequence[Handle], old: Sequence[Handle | None], mask: int, bias: int
) -> tuple[Handle, Handle, Handle]:
    """The result, all keys and all values."""
    heads, query = context.integer("num_heads"), parts[0]
    length = query.dims[1] if len(query.dims) == 3 else query.dims[2]
    before = 0 if old[0] is None else old[0].dims[2]
    keys = parts[1].dims[1] if len(parts[1].dims) == 3 else parts[1].dims[2]
    added = _mask(context, mask, (query.dims[0], length, before + keys), query.dtype)
    if context.has(bias):
        own = context.operand(bias)
        added = own if added is None else context.standard("Add", own, added)
    attributes = {"q_num_heads": heads, "kv_num_heads": heads, "is_causal": context.integer("unidirectional", 0)}
    if scale := context.number("scale", 0.0):
        attributes["scale"] = scale  # type: ignore[assignment]
    found, present_keys, present_values, _ = context.standard_outputs("Attention", *parts, added, *old, **attributes)
    return found, present_keys, present_values


def _mask(context: NodeContext, position: int, dims: tuple[int, int, int], dtype: DType) -> Handle | None:
    """What is added to scores of sizes `[batch, 1, length, keys]` where a key is not to be attended."""
    mask = context.optional(position)
    if mask is None:
        return None
    b, (batch, length, keys) = context.builder, dims
    whole = (batch, 1, length, keys)
    if len(mask.dims) == 1:
        place = b.iota(mask.dtype, whole, 3)
        end = b.broadcast(b.slice(mask, (0,), (batch,)), whole, [0])
        attended = b.compare(place, end, "LT")
        if mask.dims == (2 * batch,):
            start = b.broadcast(b.slice(mask, (batch,), (2 * batch,)), whole, [0])
            attended = attended & b.compare(place, start, "GE")
        elif mask.dims != (batch,):
            raise context.error(f"a mask of sizes {mask.dims} has no rule here")
    elif mask.dims in ((batch, keys), (batch, length, keys)):
        shape = (batch, 1, 1, keys) if len(mask.dims) == 2 else whole
        attended = b.compare(b.reshape(mask, shape), 0, "NE")
    else:
        raise context.error(f"a mask of sizes {mask.dims} has no rule here")
    outside = context.constant(context.number("mask_filter_value", -10000.0), dtype)
    return b.select(attended, b.full(0, dtype, attended.dims), b.broadcast(outside, attended.dims))


@rule("RotaryEmbedding", domain=VENDOR)
def _rotary_embedding(context: NodeContext) -> Handle:
    """Positions are those of each word, or the first one."""
    b, x, places = context.builder, context.operand(0), context.operand(1)
    cosines, sines = context.operand(2), context.operand(3)
    flat = len(x.dims) == 3
    batch, length = x.dims[0], x.dims[1] if flat else x.dims[2]
    if places.dims == (1,):
        dims = (batch, length)
        places = b.iota(places.dtype, dims, 1) + b.broadcast(b.reshape(places, ()), dims)
    attributes = {name: context.integer(name, 0) for name in ("interleaved", "rotary_embedding_dim")}
    if flat:
        size = 2 * cosines.dims[1]
        attributes["num_heads"] = context.integer("num_heads", 0) or x.dims[2] // size
    return context.standard("RotaryEmbedding", x, cosines, sines, places, **attributes)
