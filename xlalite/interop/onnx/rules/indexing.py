"""Elements at indices, taken and put; order."""

from __future__ import annotations

import math

import numpy as np

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.building.cumulative import cumulative
from xlalite.hlo.building.indexing import (
    gather_along,
    gather_rows,
    gather_slices,
    index_vectors,
    scatter_along,
    scatter_slices,
    wrapped,
)
from xlalite.hlo.ops import OPS
from xlalite.hlo.types.dtype import DType
from xlalite.interop.onnx.context import NodeContext, filled, rule
from xlalite.interop.onnx.rules.ordering import sorted_with_positions

_REDUCTIONS = {"none": "assign", "add": "add", "mul": "multiply", "max": "maximum", "min": "minimum"}


@rule("Gather")
def _gather(context: NodeContext) -> Handle:
    x, indices = context.operand(0), context.operand(1)
    axis = context.axis(len(x.dims), 0)
    if 0 in indices.dims:
        return context.builder.full(0, x.dtype, (*x.dims[:axis], *indices.dims, *x.dims[axis + 1 :]))
    return gather_rows(context.builder, x, wrapped(indices, x.dims[axis]), axis)


@rule("GatherElements")
def _gather_elements(context: NodeContext) -> Handle:
    x, indices = context.operand(0), context.operand(1)
    axis = context.axis(len(x.dims), 0)
    return gather_along(x, wrapped(indices, x.dims[axis]), axis)


@rule("GatherND")
def _gather_nd(context: NodeContext) -> Handle:
    b, x, indices = context.builder, context.operand(0), context.operand(1)
    batch = context.integer("batch_dims", 0)
    return gather_slices(b, x, _full_vectors(context, indices, x, batch))


def _full_vectors(context: NodeContext, indices: Handle, x: Handle, batch: int) -> Handle:
    """Index vectors that count from the front and begin with the places of the batch."""
    b = context.builder
    *outer, depth = indices.dims
    sizes = b.broadcast(
        b.constant(np.array(x.dims[batch : batch + depth], indices.dtype.numpy)), indices.dims, [len(outer)]
    )
    positive = b.select(b.compare(indices, 0, "LT"), indices + sizes, indices)
    if not batch:
        return positive
    places = index_vectors([b.iota(indices.dtype, outer, i) for i in range(batch)])
    return b.concatenate([places, positive], len(outer))


@rule("Scatter", "ScatterElements")
def _scatter_elements(context: NodeContext) -> Handle:
    x, indices, updates = context.operands()
    axis = context.axis(len(x.dims), 0)
    return scatter_along(x, wrapped(indices, x.dims[axis]), updates, axis, _reduction(context))


@rule("ScatterND")
def _scatter_nd(context: NodeContext) -> Handle:
    x, indices, updates = context.operands()
    if 0 in indices.dims[:-1]:
        return x
    return scatter_slices(context.builder, x, _full_vectors(context, indices, x, 0), updates, _reduction(context))


def _reduction(context: NodeContext) -> str:
    found = _REDUCTIONS.get(context.text("reduction", "none"))
    if found is None:
        raise context.error(f"reduction {context.text('reduction')!r} is none of {', '.join(_REDUCTIONS)}")
    return found


@rule("TensorScatter")
def _tensor_scatter(context: NodeContext) -> Handle:
    """Updates written into a cache, for each example from an index of its own on; circular ones wrap."""
    b, cache, update = context.builder, context.operand(0), context.operand(1)
    axis = context.axis(len(cache.dims), -2)
    starts = context.operand(2) if context.has(2) else b.full(0, DType.S64, cache.dims[:1])
    places = b.iota(DType.S64, update.dims, axis) + b.broadcast(b.convert(starts, DType.S64), update.dims, [0])
    if context.text("mode", "linear") == "circular":
        places = places % b.full(cache.dims[axis], DType.S64, places.dims)
    return scatter_along(cache, places, update, axis, "assign")


@rule("OneHot")
def _one_hot(context: NodeContext) -> Handle:
    b, indices, values = context.builder, context.operand(0), context.operand(2)
    depth = int(context.known_scalar(1))
    axis = context.axis(len(indices.dims) + 1, -1)
    dims = (*indices.dims[:axis], depth, *indices.dims[axis:])
    places = b.convert(indices, DType.S64)
    spread = b.broadcast(wrapped(places, depth), dims, [i for i in range(len(dims)) if i != axis])
    off, on = b.scalars(values)
    is_on = b.compare(spread, b.iota(DType.S64, dims, axis), "EQ")
    return b.select(is_on, b.broadcast(on, dims), b.broadcast(off, dims))


@rule("TopK")
def _top_k(context: NodeContext) -> tuple[Handle, Handle]:
    b, x = context.builder, context.operand(0)
    count = int(context.known_scalar(1)) if context.has(1) else context.integer("k")
    axis = context.axis(len(x.dims), -1)
    if not 0 <= count <= x.dims[axis]:
        raise context.error(f"k is {count}, the dimension has {x.dims[axis]}")
    largest = context.integer("largest", 1) != 0
    last = len(x.dims) - 1
    order = [*(i for i in range(len(x.dims)) if i != axis), axis]
    moved = b.transpose(x, order)
    if x.dtype.is_floating:  # of equal elements the first one stands first, and zeros are equal
        moved = b.select(b.compare(moved, 0, "EQ"), filled(0, moved), moved)
    if x.dtype.is_integral or x.dtype in (DType.F32, DType.F64):
        pair = b.op("topk", (moved,), OPS["topk"].attrs(count, largest))
        values, positions = pair[0], pair[1]
    else:
        values, positions = sorted_with_positions(moved, last, descending=largest)
        limits = [*moved.dims[:-1], count]
        values, positions = (b.slice(each, [0] * len(limits), limits) for each in (values, positions))
    back = [order.index(i) for i in range(len(order))]
    return b.transpose(values, back), b.convert(b.transpose(positions, back), DType.S64)


@rule("ReverseSequence")
def _reverse_sequence(context: NodeContext) -> Handle:
    """The first elements of each example turned round, as many as its length says."""
    b, x, lengths = context.builder, context.operand(0), context.operand(1)
    batch = context.axis(len(x.dims), 1, "batch_axis")
    time = context.axis(len(x.dims), 0, "time_axis")
    place = b.iota(DType.S64, x.dims, time)
    length = b.broadcast(b.convert(lengths, DType.S64), x.dims, [batch])
    turned = b.select(b.compare(place, length, "LT"), length - place - 1, place)
    return gather_along(x, turned, time)


@rule("CumSum", "CumProd")
def _cumulative(context: NodeContext) -> Handle:
    x = context.operand(0)
    axis = context.normalized(int(context.known_scalar(1)), len(x.dims))
    opcode, identity = ("add", 0) if context.operator == "CumSum" else ("multiply", 1)
    reverse, exclusive = (context.integer(name, 0) != 0 for name in ("reverse", "exclusive"))
    return cumulative(x, axis, opcode, identity, reverse=reverse, exclusive=exclusive)


@rule("NonZero")
def _non_zero(context: NodeContext) -> Handle:
    """The number of results follows from the values, which must be known therefore."""
    x = context.known(0)
    return context.builder.constant(np.array(np.nonzero(x if x.ndim else x.reshape(1)), np.int64)[: max(x.ndim, 0)])


@rule("Compress")
def _compress(context: NodeContext) -> Handle:
    b, x = context.builder, context.operand(0)
    chosen = np.flatnonzero(context.known(1)).astype(np.int64)
    if "axis" in context.attributes:
        axis = context.axis(len(x.dims))
    else:
        x, axis = b.reshape(x, (math.prod(x.dims),)), 0
    chosen = chosen[chosen < x.dims[axis]]
    if not chosen.size:
        return b.full(0, x.dtype, [0 if i == axis else size for i, size in enumerate(x.dims)])
    return gather_rows(b, x, b.constant(chosen), axis)


@rule("Unique")
def _unique(context: NodeContext) -> tuple[Handle, ...]:
    x = context.known(0)
    axis = context.axis(x.ndim) if "axis" in context.attributes else None
    values, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    inverse = inverse.reshape(-1)
    if not context.integer("sorted", 1):
        order = np.argsort(first)
        values = np.take(values, order, 0 if axis is None else axis)
        first, counts, inverse = first[order], counts[order], np.argsort(order)[inverse]
    constants = (values, first.astype(np.int64), inverse.astype(np.int64), counts.astype(np.int64))
    return tuple(context.builder.constant(each) for each in constants)
