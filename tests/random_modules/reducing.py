"""Random operations that apply scalar functions: reductions, windows, scatters, maps, scans, sorts."""

from __future__ import annotations

import math
from collections.abc import Sequence

from random_modules.grower import COMMON, Grower
from xlalite.hlo.building.builder import Builder, Handle, Handles
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ops.comparison import CompareAttrs, ComparisonType, Direction
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape
from xlalite.hlo.types.window import Window, WindowDimension

ORDERED = tuple(dtype for dtype in COMMON if not dtype.is_complex)


def combiners(dtype: DType) -> tuple[str, ...]:
    """Operations whose result does not depend on the order, but for rounding."""
    if dtype is DType.PRED:
        return ("and", "or", "xor", "add", "multiply", "maximum", "minimum")
    if dtype.is_complex:
        return ("add", "multiply")
    more = ("and", "or", "xor") if dtype.is_integral else ()
    return ("add", "multiply", "maximum", "minimum", *more)


def combine_one(grow: Grower, b: Builder, x: Handle, y: Handle) -> Handle:
    """An associative function: a common one, or one that no table knows."""
    if x.dtype is not DType.PRED and not x.dtype.is_floating and grow.chance.random() < 0.15:
        return x + y + x * y
    made = b.op(grow.chance.choice(combiners(x.dtype)), (x, y) if grow.chance.random() < 0.8 else (y, x))
    return b.op("copy", (made,)) if grow.chance.random() < 0.1 else made


def reducer(grow: Grower, dtypes: Sequence[DType]) -> HloComputation:
    """(accumulators..., elements...) -> accumulators: each by itself, or the place of the largest."""
    scalars = [Shape.array(dtype) for dtype in dtypes]
    count = len(dtypes)
    picks = count == 2 and not dtypes[0].is_complex and dtypes[1].is_integral and grow.chance.random() < 0.6

    def body(b: Builder, p: Handles) -> Handle:
        if picks:
            # In the total order NaN has a place, so that the order of the reduction does not matter.
            order = ComparisonType.TOTALORDER if dtypes[0].is_floating else None
            first = b.op("compare", (p[0], p[2]), CompareAttrs(Direction.GT, order))
            equal = b.op("compare", (p[0], p[2]), CompareAttrs(Direction.EQ, order))
            first = b.op("or", (first, b.op("and", (equal, b.compare(p[1], p[3], "LT")))))
            return b.tuple([b.select(first, p[0], p[2]), b.select(first, p[1], p[3])])
        results = [combine_one(grow, b, p[i], p[i + count]) for i in range(count)]
        return results[0] if count == 1 else b.tuple(results)

    return grow.builder.subcomputation("reducer", [*scalars, *scalars], body)


def operands_of_one_size(grow: Grower, most: int = 3) -> list[Handle]:
    value = grow.any()
    count = grow.chance.choice((1, 1, 1, 2, 2, most))
    return [value, *(grow.of(grow.chance.choice(ORDERED), value.dims) for _ in range(count - 1))]


def reduce(grow: Grower) -> Handle:
    arrays = operands_of_one_size(grow)
    starts = [grow.of(array.dtype, ()) for array in arrays]
    dimensions = grow.permutation(arrays[0].shape.rank)[: grow.chance.randint(0, arrays[0].shape.rank)]
    if grow.chance.random() < 0.8:
        dimensions = tuple(sorted(dimensions))
    function = reducer(grow, [array.dtype for array in arrays])
    return grow.op("reduce", (*arrays, *starts), grow.attrs("reduce", dimensions), (function,))


def window(grow: Grower, dims: Sequence[int], *, dilated: bool) -> Window:
    """A small window that fits at least once into most sizes."""
    entries = []
    for size in dims:
        length = grow.chance.choice((1, 1, 2, 3, max(1, min(size, 5))))
        stride = grow.chance.choice((1, 1, 2, 3))
        low, high = grow.chance.choice(((0, 0), (0, 0), (1, 0), (0, 1), (1, 1), (length - 1, 0), (-1, 0), (2, 3)))
        base = grow.chance.choice((1, 1, 1, 2)) if dilated else 1
        hole = grow.chance.choice((1, 1, 1, 2)) if dilated else 1
        entries.append(WindowDimension(length, stride, low, high, base, hole))
    return Window(tuple(entries))


def reduce_window(grow: Grower) -> Handle:
    arrays = operands_of_one_size(grow, most=2)
    starts = [grow.of(array.dtype, ()) for array in arrays]
    function = reducer(grow, [array.dtype for array in arrays])
    attrs = grow.attrs("reduce-window", window(grow, arrays[0].dims, dilated=True))
    return grow.op("reduce-window", (*arrays, *starts), attrs, (function,))


def select_and_scatter(grow: Grower) -> Handle:
    value = grow.any(ORDERED)
    moved = window(grow, value.dims, dilated=False)
    source = grow.of(value.dtype, moved.output_sizes(value.dims))
    scalar = Shape.array(value.dtype)
    direction = grow.chance.choice(("GE", "LE", "GT", "LT"))
    select = grow.builder.subcomputation("select", (scalar, scalar), lambda b, p: b.compare(p[0], p[1], direction))
    scatter = grow.builder.subcomputation("scatter", (scalar, scalar), lambda b, p: combine_one(grow, b, p[0], p[1]))
    start = grow.of(value.dtype, ())
    attrs = grow.attrs("select-and-scatter", moved)
    return grow.op("select-and-scatter", (value, source, start), attrs, (select, scatter))


def scatter(grow: Grower) -> Handle:
    """Any operands, windows and dimension numbers; functions that do not mind the order of updates."""
    arrays = operands_of_one_size(grow, most=2)
    dims, rank = arrays[0].dims, arrays[0].shape.rank
    order = list(grow.permutation(rank))
    batching = sorted(order[: grow.chance.choice((0, 0, 0, 1))])
    rest = [dim for dim in order if dim not in batching]
    addressed = rest[: grow.chance.randint(0, len(rest))]
    inserted = sorted(dim for dim in rest if dims[dim] and grow.chance.random() < 0.5)
    kept = [dim for dim in range(rank) if dim not in inserted and dim not in batching]
    sizes = [grow.chance.choice((dims[dim], grow.chance.randint(0, dims[dim]))) for dim in kept]
    batch_sizes = [grow.chance.choice((1, 2, 3, 0, 5)) for _ in range(grow.chance.randint(0, 2))]
    places = sorted(grow.chance.sample(range(len(batch_sizes) + len(batching)), len(batching)))
    for place, dim in zip(places, batching, strict=True):
        batch_sizes.insert(place, dims[dim])
    vector_dim = grow.chance.randint(0, len(batch_sizes))
    indices_dims = [*batch_sizes[:vector_dim], len(addressed), *batch_sizes[vector_dim:]]
    total = len(batch_sizes) + len(kept)
    if total > 5 or math.prod(batch_sizes) * math.prod(sizes) > 600:
        return grow.any()
    windows = tuple(sorted(grow.chance.sample(range(total), len(kept))))
    update_dims, window_sizes, batches = [], iter(sizes), iter(batch_sizes)
    for dim in range(total):
        update_dims.append(next(window_sizes) if dim in windows else next(batches))
    indices = grow.of(grow.chance.choice((DType.S32, DType.S32, DType.S64, DType.U32, DType.S8)), indices_dims)
    updates = [grow.of(array.dtype, update_dims) for array in arrays]
    attrs = grow.attrs(
        "scatter",
        update_window_dims=windows,
        inserted_window_dims=tuple(inserted),
        scatter_dims_to_operand_dims=tuple(addressed),
        input_batching_dims=tuple(batching),
        scatter_indices_batching_dims=tuple(place + (place >= vector_dim) for place in places),
        index_vector_dim=vector_dim,
    )
    function = reducer(grow, [array.dtype for array in arrays])
    return grow.op("scatter", (*arrays, indices, *updates), attrs, (function,))


def sort(grow: Grower) -> Handle:
    """By the first operand, up or down; stable, so that the rest is defined."""
    key = grow.any(ORDERED, rank=1)
    others = [grow.of(grow.chance.choice(COMMON), key.dims) for _ in range(grow.chance.choice((0, 0, 1, 2)))]
    direction = grow.chance.choice(("LT", "GT"))
    pairs = [Shape.array(value.dtype) for value in (key, *others) for _ in range(2)]

    def body(b: Builder, p: Handles) -> Handle:
        total = ComparisonType.TOTALORDER if key.dtype.is_floating else None
        return b.op("compare", p[:2], CompareAttrs(Direction(direction), total))

    comparator = grow.builder.subcomputation("comparator", pairs, body)
    attrs = grow.attrs("sort", (grow.chance.randrange(key.shape.rank),), is_stable=True)
    return grow.op("sort", (key, *others), attrs, (comparator,))


def topk(grow: Grower) -> Handle:
    value = grow.any(ORDERED, rank=1)
    k = grow.chance.randint(0, value.dims[-1])
    return grow.op("topk", (value,), grow.attrs("topk", k, grow.chance.random() < 0.7))


def some_elements(grow: Grower) -> Handle:
    """The sum, or the like, of as many elements of a dimension as another value says, perhaps joined to others."""
    b, array = grow.builder, grow.any(rank=1)
    along = grow.chance.randrange(array.shape.rank)
    bound = b.constant(array.dims[along], DType.S32)
    size = b.op("clamp", (b.constant(0, DType.S32), grow.of(DType.S32, ()), bound))
    dimension = grow.attrs("set-dimension-size", (along,))
    value = grow.op("set-dimension-size", (array, size), dimension)
    for _ in range(grow.chance.randint(0, 2)):
        kind = grow.chance.choice(("reverse", "concatenate", "select"))
        if kind == "reverse":
            value = b.reverse(value, (along,))
        elif kind == "concatenate":
            value = b.concatenate((value, array), along)
        elif value.dims == array.dims:
            value = b.op("select", (grow.of(DType.PRED, array.dims), value, array))
    start = grow.of(array.dtype, ())
    function = reducer(grow, [array.dtype])
    return grow.op("reduce", (value, start), grow.attrs("reduce", (along,)), (function,))


MAKERS = {
    "set-dimension-size": some_elements,
    "reduce": reduce,
    "reduce-window": reduce_window,
    "select-and-scatter": select_and_scatter,
    "scatter": scatter,
    "sort": sort,
    "topk": topk,
}
