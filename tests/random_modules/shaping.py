"""Random operations that move elements about: their sizes, order and place, known when the module is built."""

from __future__ import annotations

import math

from random_modules.grower import Grower, random_dtype
from xlalite.hlo.building.builder import Handle
from xlalite.hlo.ops.slicing import ConcatenateAttrs, DynamicSliceAttrs, PadAttrs, SliceAttrs
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Layout, Shape


def broadcast(grow: Grower) -> Handle:
    value = grow.any()
    rank = value.shape.rank + grow.chance.randint(0, max(0, 3 - value.shape.rank))
    places = grow.chance.sample(range(rank), value.shape.rank)
    if grow.chance.random() < 0.7:
        places.sort()
    dims = [grow.chance.choice((1, 2, 3, 5)) for _ in range(rank)]
    for size, place in zip(value.dims, places, strict=True):
        dims[place] = size
    return grow.builder.broadcast(value, dims, places)


def reshaped_dims(grow: Grower, value: Handle) -> list[int]:
    """Sizes with the same number of elements: merged, split, and with ones put in."""
    dims = [size for size in value.dims if size != 1]
    while len(dims) > 1 and grow.chance.random() < 0.4:
        at = grow.chance.randrange(len(dims) - 1)
        dims[at : at + 2] = [dims[at] * dims[at + 1]]
    if dims and grow.chance.random() < 0.3:
        at = grow.chance.randrange(len(dims))
        factor = grow.chance.choice([f for f in (1, 2, 3, 5) if dims[at] % f == 0])
        dims[at : at + 1] = [factor, dims[at] // factor]
    for _ in range(grow.chance.randint(0, max(0, min(2, 4 - len(dims))))):
        dims.insert(grow.chance.randint(0, len(dims)), 1)
    return dims


def reshape(grow: Grower) -> Handle:
    value = grow.any()
    return grow.op("reshape", (value,), shape=Shape.array(value.dtype, reshaped_dims(grow, value)))


def bitcast(grow: Grower) -> Handle:
    """In memory nothing moves: other sizes, or a transposition by layout."""
    value = grow.any()
    if grow.chance.random() < 0.5:
        return grow.op("bitcast", (value,), shape=Shape.array(value.dtype, reshaped_dims(grow, value)))
    # Back to the default layout at once: other operations of these modules have no layouts.
    rank = value.shape.rank
    order = grow.permutation(rank)
    layout = Layout(tuple(order[::-1]))
    dims = [0] * rank
    for place, dim in enumerate(order):
        dims[dim] = value.dims[place]
    strange = grow.op("bitcast", (value,), shape=Shape.array(value.dtype, dims, layout))
    return grow.op("copy", (strange,), shape=Shape.array(value.dtype, dims, Layout.row_major(rank)))


def transpose(grow: Grower) -> Handle:
    value = grow.any(rank=1)
    return grow.op("transpose", (value,), grow.attrs("transpose", grow.permutation(value.shape.rank)))


def reverse(grow: Grower) -> Handle:
    value = grow.any(rank=1)
    return grow.op("reverse", (value,), grow.attrs("reverse", grow.subset(value.shape.rank)))


def slice_(grow: Grower) -> Handle:
    value = grow.any(rank=1)
    ranges = []
    for size in value.dims:
        start = grow.chance.randint(0, min(size, 2))
        limit = size if grow.chance.random() < 0.5 else grow.chance.randint(start, size)
        ranges.append((start, limit, grow.chance.choice((1, 1, 2, 3))))
    return grow.op("slice", (value,), SliceAttrs(tuple(ranges)))


def pad(grow: Grower) -> Handle:
    value = grow.any(rank=1)
    padding = []
    for size in value.dims:
        low = grow.chance.choice((0, 0, 1, 2, -1))
        high = grow.chance.choice((0, 0, 1, -1))
        interior = grow.chance.choice((0, 0, 0, 1, 2))
        total = size + max(size - 1, 0) * interior
        padding.append((low, max(high, -low - total), interior))
    return grow.op("pad", (value, grow.of(value.dtype, ())), PadAttrs(tuple(padding)))


def concatenate(grow: Grower) -> Handle:
    value = grow.any(rank=1)
    along = grow.chance.randrange(value.shape.rank)
    operands = [value]
    for _ in range(grow.chance.randint(0, 3)):
        dims = list(value.dims)
        if grow.chance.random() < 0.4:
            dims[along] = grow.chance.choice((0, 1, 2, 3))
        operands.append(grow.of(value.dtype, dims))
    grow.chance.shuffle(operands)
    return grow.op("concatenate", operands, ConcatenateAttrs((along,)))


def iota(grow: Grower) -> Handle:
    dims = grow.dims() or (grow.chance.choice((1, 3, 17)),)
    dtype = random_dtype(grow.chance)
    dtype = DType.S32 if dtype is DType.PRED else dtype
    return grow.builder.iota(dtype, dims, grow.chance.randrange(len(dims)))


def constant(grow: Grower) -> Handle:
    return grow.constant(random_dtype(grow.chance), grow.dims())


def parameter(grow: Grower) -> Handle:
    return grow.of(random_dtype(grow.chance), grow.dims())


def _starts(grow: Grower, rank: int) -> list[Handle]:
    dtype = grow.chance.choice((DType.S32, DType.S32, DType.S64, DType.U8, DType.U32, DType.S8))
    return [grow.index(dtype) for _ in range(rank)]


def dynamic_slice(grow: Grower) -> Handle:
    value = grow.any()
    sizes = tuple(grow.chance.choice((size, grow.chance.randint(0, size), min(size, 1))) for size in value.dims)
    return grow.op("dynamic-slice", (value, *_starts(grow, len(sizes))), DynamicSliceAttrs(sizes))


def dynamic_update_slice(grow: Grower) -> Handle:
    value = grow.any()
    sizes = tuple(grow.chance.choice((size, grow.chance.randint(0, size), min(size, 1))) for size in value.dims)
    return grow.op("dynamic-update-slice", (value, grow.of(value.dtype, sizes), *_starts(grow, len(sizes))))


def get_dimension_size(grow: Grower) -> Handle:
    value = grow.any(rank=1)
    attrs = grow.attrs("get-dimension-size", (grow.chance.randrange(value.shape.rank),))
    return grow.op("get-dimension-size", (value,), attrs)


def gather(grow: Grower) -> Handle:
    """Any operand, windows and dimension numbers, with batching dimensions at times."""
    value = grow.any()
    dims, rank = value.dims, value.shape.rank
    order = list(grow.permutation(rank))
    batching = sorted(order[: grow.chance.choice((0, 0, 0, 1))])
    rest = [dim for dim in order if dim not in batching]
    addressed = rest[: grow.chance.randint(0, len(rest))]
    sizes = [grow.chance.choice((size, grow.chance.randint(0, size), min(1, size))) for size in dims]
    for dim in batching:
        sizes[dim] = min(1, dims[dim])
    collapsed = [dim for dim in rest if sizes[dim] == 1 and grow.chance.random() < 0.6]
    batch = [grow.chance.choice((1, 2, 3, 0, 5)) for _ in range(grow.chance.randint(0, 2))]
    batch_places = sorted(grow.chance.sample(range(len(batch) + len(batching)), len(batching)))
    batch_sizes = list(batch)
    for place, dim in zip(batch_places, batching, strict=True):
        batch_sizes.insert(place, dims[dim])
    vector_dim = grow.chance.randint(0, len(batch_sizes))
    if len(addressed) == 1 and grow.chance.random() < 0.3:
        indices_dims, vector_dim = batch_sizes, len(batch_sizes)
    else:
        indices_dims = [*batch_sizes[:vector_dim], len(addressed), *batch_sizes[vector_dim:]]
    kept = [dim for dim in range(rank) if dim not in collapsed and dim not in batching]
    total = len(batch_sizes) + len(kept)
    if total > 5 or math.prod(batch_sizes) * math.prod(sizes[dim] for dim in kept) > 600:
        return grow.any()
    indices = grow.of(grow.chance.choice((DType.S32, DType.S32, DType.S64, DType.U32, DType.S8)), indices_dims)
    attrs = grow.attrs(
        "gather",
        offset_dims=tuple(sorted(grow.chance.sample(range(total), len(kept)))),
        collapsed_slice_dims=tuple(sorted(collapsed)),
        start_index_map=tuple(addressed),
        operand_batching_dims=tuple(batching),
        start_indices_batching_dims=tuple(place + (place >= vector_dim) for place in batch_places),
        index_vector_dim=vector_dim,
        slice_sizes=tuple(sizes),
    )
    return grow.op("gather", (value, indices), attrs)


MAKERS = {
    "broadcast": broadcast,
    "reshape": reshape,
    "bitcast": bitcast,
    "transpose": transpose,
    "reverse": reverse,
    "slice": slice_,
    "pad": pad,
    "concatenate": concatenate,
    "iota": iota,
    "constant": constant,
    "parameter": parameter,
    "dynamic-slice": dynamic_slice,
    "dynamic-update-slice": dynamic_update_slice,
    "get-dimension-size": get_dimension_size,
    "gather": gather,
}
