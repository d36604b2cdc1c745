"""Merges dimensions that every array of a kernel walks through together, so that most kernels are 1-D or 2-D loops.

Two neighbouring dimensions of an instruction can merge when nothing tells them apart: no broadcast enters between
them, no reduction takes only one, no slice cuts one. Whether a boundary between dimensions must stay is one bit;
operations tie the bits of their operands and results together, so the answer is a union-find over all boundaries.

Before: `f32[8,16,4] add(f32[8,16,4] x, f32[8,16,4] broadcast(f32[4] b), dimensions={2})`
After:  `f32[128,4] add(f32[128,4] x, f32[128,4] broadcast(f32[4] b), dimensions={1})`
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Attrs, Trait
from xlalite.hlo.ops.dot import DotAttrs, free_dimensions
from xlalite.hlo.ops.gathering import GatherAttrs
from xlalite.hlo.ops.structural import ConstantAttrs
from xlalite.hlo.types.literal import Literal
from xlalite.hlo.types.shape import Shape
from xlalite.hlo.types.window import Window, WindowDimension

DimensionRuns = tuple[tuple[int, ...], ...]
"""Runs of dimensions that merge, in order; together they are all dimensions."""


def collapse(body: HloComputation) -> HloComputation:
    """A copy of a kernel's computation with merged dimensions; `body` is left as it is."""
    boundaries = _Boundaries()
    for instruction in body.post_order():
        _RELATIONS.get(instruction.opcode, _relate_by_traits)(boundaries, instruction)
    return _rebuild(body, boundaries)


class _Boundaries:
    """Union-find over (instruction, dimension d): the boundary between dimensions d - 1 and d."""

    def __init__(self) -> None:
        self._parent: dict[tuple[HloInstruction, int], tuple[HloInstruction, int]] = {}
        self._cut: set[tuple[HloInstruction, int]] = set()

    def find(self, instruction: HloInstruction, dimension: int) -> tuple[HloInstruction, int]:
        node = (instruction, dimension)
        while (parent := self._parent.get(node, node)) != node:
            grandparent = self._parent.get(parent, parent)
            self._parent[node] = grandparent
            node = grandparent
        return node

    def tie(self, a: HloInstruction, i: int, b: HloInstruction, j: int) -> None:
        x, y = self.find(a, i), self.find(b, j)
        if x != y:
            self._parent[y] = x
            if y in self._cut:
                self._cut.add(x)

    def cut(self, instruction: HloInstruction, dimension: int) -> None:
        self._cut.add(self.find(instruction, dimension))

    def cut_all(self, instruction: HloInstruction) -> None:
        for dimension in range(1, _rank(instruction)):
            self.cut(instruction, dimension)

    def cut_around(self, instruction: HloInstruction, dimension: int) -> None:
        for boundary in (dimension, dimension + 1):
            if 0 < boundary < instruction.shape.rank:
                self.cut(instruction, boundary)

    def is_cut(self, instruction: HloInstruction, dimension: int) -> bool:
        return self.find(instruction, dimension) in self._cut

    def runs(self, instruction: HloInstruction) -> DimensionRuns:
        """The runs of dimensions of an array, or of the arrays of equal sizes that an operation gives."""
        runs: list[tuple[int, ...]] = []
        for dimension in range(_rank(instruction)):
            if dimension and not self.is_cut(instruction, dimension):
                runs[-1] += (dimension,)
            else:
                runs.append((dimension,))
        return tuple(runs)


def _rank(instruction: HloInstruction) -> int:
    shape = instruction.shape
    return shape.elements[0].rank if shape.is_tuple and shape.elements else shape.rank


def _relate_by_traits(boundaries: _Boundaries, instruction: HloInstruction) -> None:
    if instruction.op.has(Trait.ELEMENTWISE) or instruction.opcode in ("copy", "map"):
        for operand in instruction.operands:
            if operand.shape.rank == instruction.shape.rank:
                for dimension in range(1, instruction.shape.rank):
                    boundaries.tie(operand, dimension, instruction, dimension)
        return
    if instruction.opcode in ("parameter", "constant", "tuple"):
        return
    for whole in (*instruction.operands, instruction):
        boundaries.cut_all(whole)


def _relate_broadcast(boundaries: _Boundaries, instruction: HloInstruction) -> None:
    operand = instruction.operand(0)
    source = {dimension: i for i, dimension in enumerate(instruction.attrs.dimensions)}
    _relate_embedding(boundaries, small=operand, large=instruction, source=source)


def _relate_reduce(boundaries: _Boundaries, instruction: HloInstruction) -> None:
    count = len(instruction.operands) // 2
    reduced = set(instruction.attrs.dimensions)
    kept = [d for d in range(instruction.operand(0).shape.rank) if d not in reduced]
    source = {dimension: i for i, dimension in enumerate(kept)}
    first, *others = instruction.operands[:count]
    _relate_embedding(boundaries, small=instruction, large=first, source=source)
    # All operands are walked at one index, boundaries between two reduced dimensions included.
    for other in others:
        for dimension in range(1, first.shape.rank):
            boundaries.tie(first, dimension, other, dimension)


def _relate_embedding(
    boundaries: _Boundaries, *, small: HloInstruction, large: HloInstruction, source: dict[int, int]
) -> None:
    """The dimensions of `small` are some of those of `large`; boundaries between the two kinds stay."""
    tied: set[int] = set()
    for dimension in range(1, large.shape.rank):
        before, here = source.get(dimension - 1), source.get(dimension)
        if (before is None) != (here is None):
            boundaries.cut(large, dimension)
        elif before is not None and here is not None:
            if here == before + 1:
                boundaries.tie(small, here, large, dimension)
                tied.add(here)
            else:
                boundaries.cut(large, dimension)
    for dimension in range(1, len(source)):
        if dimension not in tied:
            boundaries.cut(small, dimension)


def _relate_tuple_element(boundaries: _Boundaries, instruction: HloInstruction) -> None:
    producer = instruction.operand(0)
    for dimension in range(1, instruction.shape.rank):
        boundaries.tie(producer, dimension, instruction, dimension)


def _relate_transpose(boundaries: _Boundaries, instruction: HloInstruction) -> None:
    operand, order = instruction.operand(0), instruction.attrs.dimensions
    tied: set[int] = set()
    for dimension in range(1, len(order)):
        if order[dimension] == order[dimension - 1] + 1:
            boundaries.tie(operand, order[dimension], instruction, dimension)
            tied.add(order[dimension])
        else:
            boundaries.cut(instruction, dimension)
    for dimension in range(1, len(order)):
        if dimension not in tied:
            boundaries.cut(operand, dimension)


def _relate_reshape(boundaries: _Boundaries, instruction: HloInstruction) -> None:
    """Boundaries at the same place of the row-major order are one; others need not stay for the reshape's sake."""
    operand = instruction.operand(0)
    if operand.shape.element_count == 0:
        boundaries.cut_all(operand)
        boundaries.cut_all(instruction)
        return
    places = {_elements_after(operand, d): d for d in range(1, operand.shape.rank)}
    seen: set[int] = set()
    for dimension in range(1, instruction.shape.rank):
        after = _elements_after(instruction, dimension)
        if after in places and after not in seen:
            seen.add(after)
            boundaries.tie(operand, places[after], instruction, dimension)


def _elements_after(instruction: HloInstruction, dimension: int) -> int:
    return math.prod(instruction.shape.dims[dimension:])


def _relate_dot(boundaries: _Boundaries, instruction: HloInstruction) -> None:
    """Dimensions that follow one another in every array that has them merge."""
    attrs: DotAttrs = instruction.attrs
    lhs, rhs = instruction.operands
    lhs_free = free_dimensions(lhs.shape.rank, attrs.lhs_batch_dims, attrs.lhs_contracting_dims)
    rhs_free = free_dimensions(rhs.shape.rank, attrs.rhs_batch_dims, attrs.rhs_contracting_dims)
    batch, left = len(attrs.lhs_batch_dims), len(attrs.lhs_batch_dims) + len(lhs_free)
    rows, columns = range(batch, left), range(left, instruction.shape.rank)
    # One array may be both operands, so what is tied counts by role, not by instruction.
    arrays = (lhs, rhs, instruction)
    runs: tuple[dict[int, Sequence[int]], ...] = (
        {0: attrs.lhs_batch_dims, 1: attrs.rhs_batch_dims, 2: range(batch)},
        {0: lhs_free, 2: rows},
        {1: rhs_free, 2: columns},
        {0: attrs.lhs_contracting_dims, 1: attrs.rhs_contracting_dims},
    )
    tied: set[tuple[int, int]] = set()
    for run in runs:
        for number in range(1, len(next(iter(run.values())))):
            if all(dimensions[number] == dimensions[number - 1] + 1 for dimensions in run.values()):
                first, *others = [(role, dimensions[number]) for role, dimensions in run.items()]
                tied.update((first, *others))
                for role, dimension in others:
                    boundaries.tie(arrays[first[0]], first[1], arrays[role], dimension)
    for role, array in enumerate(arrays):
        for dimension in range(1, array.shape.rank):
            if (role, dimension) not in tied:
                boundaries.cut(array, dimension)


def _relate_gather(boundaries: _Boundaries, instruction: HloInstruction) -> None:
    """Batch dimensions merge as those of the indices, window dimensions as whole ones of the operand."""
    operand, indices = instruction.operands
    attrs: GatherAttrs = instruction.attrs
    offsets = set(attrs.offset_dims)
    whole = [d for d in range(operand.shape.rank) if d not in attrs.dropped_dims]
    batch = [d for d in range(indices.shape.rank) if d != attrs.index_vector_dim]
    windows = dict(zip(attrs.offset_dims, whole, strict=True))
    vectors = dict(zip((d for d in range(instruction.shape.rank) if d not in offsets), batch, strict=True))
    apart = {d for d in whole if attrs.slice_sizes[d] != operand.shape.dims[d] or d in attrs.start_index_map}
    tied: set[tuple[int, int]] = set()
    for dimension in range(1, instruction.shape.rank):
        for role, array, source, single in (
            (0, operand, windows, apart),
            (1, indices, vectors, set(attrs.start_indices_batching_dims)),
        ):
            before, here = source.get(dimension - 1), source.get(dimension)
            if before is not None and here == before + 1 and not {before, here} & single:
                boundaries.tie(array, here, instruction, dimension)
                tied |= {(role, here), (2, dimension)}
    for role, array in enumerate((operand, indices, instruction)):
        for dimension in range(1, array.shape.rank):
            if (role, dimension) not in tied:
                boundaries.cut(array, dimension)


def _relate_iota(boundaries: _Boundaries, instruction: HloInstruction) -> None:
    boundaries.cut_around(instruction, instruction.attrs.iota_dimension)


def _relate_partial(touched: Callable[[HloInstruction], set[int]]) -> Callable[[_Boundaries, HloInstruction], None]:
    """Relation of an operation that touches some dimensions of its first operand and passes the others through."""

    def relate(boundaries: _Boundaries, instruction: HloInstruction) -> None:
        dimensions, rank = touched(instruction), _rank(instruction)
        arrays = [o for o in instruction.operands if o.shape.rank == rank and rank]
        for dimension in range(1, rank):
            if dimension in dimensions or dimension - 1 in dimensions:
                for array in (*arrays, instruction):
                    boundaries.cut(array, dimension)
            else:
                for array in arrays:
                    boundaries.tie(array, dimension, instruction, dimension)

    return relate


def _relate_concatenate(boundaries: _Boundaries, instruction: HloInstruction) -> None:
    """Only the boundary in front of the concatenated dimension stays: what is inside lies in one piece with it."""
    for dimension in range(1, instruction.shape.rank):
        for operand in instruction.operands:
            boundaries.tie(operand, dimension, instruction, dimension)
        if dimension == instruction.attrs.dimension:
            boundaries.cut(instruction, dimension)


def _resized(instruction: HloInstruction) -> set[int]:
    operand = instruction.operand(1 if instruction.opcode == "dynamic-update-slice" else 0)
    return {d for d, size in enumerate(instruction.shape.dims) if operand.shape.dims[d] != size}


_RELATIONS: dict[str, Callable[[_Boundaries, HloInstruction], None]] = {
    "broadcast": _relate_broadcast,
    "reduce": _relate_reduce,
    "get-tuple-element": _relate_tuple_element,
    "transpose": _relate_transpose,
    "reshape": _relate_reshape,
    "bitcast": _relate_reshape,
    "gather": _relate_gather,
    "iota": _relate_iota,
    "dot": _relate_dot,
    "slice": _relate_partial(
        lambda i: {
            d
            for d, ((start, _, stride), size) in enumerate(zip(i.attrs.slice, i.operand(0).shape.dims, strict=True))
            if start or stride != 1 or i.shape.dims[d] != size
        }
    ),
    "dynamic-slice": _relate_partial(_resized),
    "dynamic-update-slice": _relate_partial(_resized),
    "pad": _relate_partial(lambda i: {d for d, amounts in enumerate(i.attrs.padding) if any(amounts)}),
    "reverse": _relate_partial(lambda i: set(i.attrs.dimensions)),
    "concatenate": _relate_concatenate,
    **dict.fromkeys(
        ("reduce-window", "select-and-scatter"),
        _relate_partial(lambda i: {d for d, dim in enumerate(i.attrs.window.dimensions) if dim != WindowDimension(1)}),
    ),
}


def _rebuild(body: HloComputation, boundaries: _Boundaries) -> HloComputation:
    twin = HloComputation(body.name)
    copies: dict[HloInstruction, HloInstruction] = {}
    for instruction in body.post_order():
        runs = {i: boundaries.runs(i) for i in (*instruction.operands, instruction) if i.shape.is_array}
        shape = _merged_shape(instruction, boundaries)
        attrs = _ATTRS.get(instruction.opcode, _same_attrs)(instruction, runs, shape)
        operands = [copies[operand] for operand in instruction.operands]
        kept = _KEPT_OPERANDS.get(instruction.opcode)
        if kept is not None:
            operands = [copies[operand] for operand in kept(instruction, runs)]
        copies[instruction] = instruction.clone(operands, shape=shape, attrs=attrs)
    for instruction in body.instructions:
        twin.add(copies[instruction])
    twin.set_root(copies[body.root])
    return twin


def _merged_shape(instruction: HloInstruction, boundaries: _Boundaries) -> Shape:
    shape = instruction.shape
    if shape.is_tuple and instruction.opcode == "tuple":
        return Shape.tuple([_merged_shape(operand, boundaries) for operand in instruction.operands])
    if shape.is_tuple:
        # The element arrays of a variadic reduce have equal sizes; their boundaries are kept under the instruction.
        runs = boundaries.runs(instruction)
        return Shape.tuple([element.with_dims(_merge(element.dims, runs)) for element in shape.elements])
    if not shape.is_array:
        return shape
    return shape.with_dims(_merge(shape.dims, boundaries.runs(instruction)))


def _merge(dims: tuple[int, ...], runs: DimensionRuns) -> tuple[int, ...]:
    return tuple(math.prod(dims[d] for d in run) for run in runs)


def _number_of(runs: DimensionRuns, dimension: int) -> int:
    return next(number for number, run in enumerate(runs) if dimension in run)


RunsOf = dict[HloInstruction, DimensionRuns]


def _same_attrs(instruction: HloInstruction, runs: RunsOf, shape: Shape) -> Attrs:
    return instruction.attrs


def _constant_attrs(instruction: HloInstruction, runs: RunsOf, shape: Shape) -> Attrs:
    literal = instruction.attrs.literal
    return ConstantAttrs(Literal(literal.value.reshape(shape.dims), shape)) if shape.is_array else instruction.attrs


def _broadcast_attrs(instruction: HloInstruction, runs: RunsOf, shape: Shape) -> Attrs:
    own, old = runs[instruction], instruction.attrs.dimensions
    operand = runs[instruction.operand(0)]
    return replace(instruction.attrs, dimensions=tuple(_number_of(own, old[run[0]]) for run in operand))


def _dimension_list(instruction: HloInstruction, runs: RunsOf, shape: Shape) -> Attrs:
    """For dimensions of the first operand, each run wholly in or out."""
    source = runs[instruction.operand(0)]
    numbers = dict.fromkeys(_number_of(source, dimension) for dimension in instruction.attrs.dimensions)
    return replace(instruction.attrs, dimensions=tuple(numbers))


def _transpose_attrs(instruction: HloInstruction, runs: RunsOf, shape: Shape) -> Attrs:
    own, source = runs[instruction], runs[instruction.operand(0)]
    order = tuple(_number_of(source, instruction.attrs.dimensions[run[0]]) for run in own)
    return replace(instruction.attrs, dimensions=order)


def _dot_attrs(instruction: HloInstruction, runs: RunsOf, shape: Shape) -> Attrs:
    lhs, rhs = (runs[operand] for operand in instruction.operands)
    attrs: DotAttrs = instruction.attrs

    def merged(operand: DimensionRuns, dimensions: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(_number_of(operand, dimension) for dimension in dimensions))

    return replace(
        attrs,
        lhs_batch_dims=merged(lhs, attrs.lhs_batch_dims),
        lhs_contracting_dims=merged(lhs, attrs.lhs_contracting_dims),
        rhs_batch_dims=merged(rhs, attrs.rhs_batch_dims),
        rhs_contracting_dims=merged(rhs, attrs.rhs_contracting_dims),
    )


def _gather_attrs(instruction: HloInstruction, runs: RunsOf, shape: Shape) -> Attrs:
    own = runs[instruction]
    operand, indices = (runs[operand] for operand in instruction.operands)
    attrs: GatherAttrs = instruction.attrs

    def merged(runs: DimensionRuns, dimensions: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(_number_of(runs, dimension) for dimension in dimensions))

    rank = instruction.operand(1).shape.rank
    last = attrs.index_vector_dim == rank
    return replace(
        attrs,
        offset_dims=merged(own, attrs.offset_dims),
        collapsed_slice_dims=merged(operand, attrs.collapsed_slice_dims),
        start_index_map=merged(operand, attrs.start_index_map),
        operand_batching_dims=merged(operand, attrs.operand_batching_dims),
        start_indices_batching_dims=merged(indices, attrs.start_indices_batching_dims),
        index_vector_dim=len(indices) if last else _number_of(indices, attrs.index_vector_dim),
        slice_sizes=tuple(math.prod(attrs.slice_sizes[d] for d in run) for run in operand),
    )


def _iota_attrs(instruction: HloInstruction, runs: RunsOf, shape: Shape) -> Attrs:
    return replace(instruction.attrs, iota_dimension=_number_of(runs[instruction], instruction.attrs.iota_dimension))


def _slice_attrs(instruction: HloInstruction, runs: RunsOf, shape: Shape) -> Attrs:
    operand = instruction.operand(0)
    ranges = [
        instruction.attrs.slice[run[0]] if len(run) == 1 else (0, math.prod(operand.shape.dims[d] for d in run), 1)
        for run in runs[instruction]
    ]
    return replace(instruction.attrs, slice=tuple(ranges))


def _pad_attrs(instruction: HloInstruction, runs: RunsOf, shape: Shape) -> Attrs:
    amounts = [instruction.attrs.padding[run[0]] if len(run) == 1 else (0, 0, 0) for run in runs[instruction]]
    return replace(instruction.attrs, padding=tuple(amounts))


def _dynamic_slice_attrs(instruction: HloInstruction, runs: RunsOf, shape: Shape) -> Attrs:
    return replace(instruction.attrs, dynamic_slice_sizes=shape.dims)


def _window_attrs(instruction: HloInstruction, runs: RunsOf, shape: Shape) -> Attrs:
    old: Window = instruction.attrs.window
    own = runs[instruction.operand(0)]
    dimensions = [old.dimensions[run[0]] if len(run) == 1 else WindowDimension(1) for run in own]
    return replace(instruction.attrs, window=Window(tuple(dimensions)))


def _concatenate_attrs(instruction: HloInstruction, runs: RunsOf, shape: Shape) -> Attrs:
    number = _number_of(runs[instruction], instruction.attrs.dimension)
    return replace(instruction.attrs, dimensions=(number,))


_ATTRS: dict[str, Callable[[HloInstruction, RunsOf, Shape], Attrs]] = {
    "constant": _constant_attrs,
    "broadcast": _broadcast_attrs,
    "reduce": _dimension_list,
    "reverse": _dimension_list,
    "map": lambda instruction, runs, shape: replace(instruction.attrs, dimensions=tuple(range(shape.rank))),
    "transpose": _transpose_attrs,
    "gather": _gather_attrs,
    "iota": _iota_attrs,
    "dot": _dot_attrs,
    "slice": _slice_attrs,
    "pad": _pad_attrs,
    "dynamic-slice": _dynamic_slice_attrs,
    "concatenate": _concatenate_attrs,
    "reduce-window": _window_attrs,
    "select-and-scatter": _window_attrs,
}


def _starts_kept(first: int) -> Callable[[HloInstruction, RunsOf], list[HloInstruction]]:
    """Start indices: those of merged dimensions are all zero after clamping, any one of them serves."""

    def kept(instruction: HloInstruction, runs: RunsOf) -> list[HloInstruction]:
        starts = instruction.operands[first:]
        return [*instruction.operands[:first], *(starts[run[0]] for run in runs[instruction])]

    return kept


_KEPT_OPERANDS: dict[str, Callable[[HloInstruction, RunsOf], list[HloInstruction]]] = {
    "dynamic-slice": _starts_kept(1),
    "dynamic-update-slice": _starts_kept(2),
}
