"""Which dimensions of a kernel's arrays merge.

Two neighbouring dimensions of an instruction can merge when nothing tells them apart: no broadcast enters between
them, no reduction takes only one, no slice cuts one. Whether a boundary between dimensions must stay is one bit;
operations tie the bits of their operands and results together, so the answer is a union-find over all boundaries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Trait
from xlalite.hlo.types.window import WindowDimension
from xlalite.passes.analysis.accumulation import accumulated_dimension
from xlalite.passes.fusion.kernel_shape import results_of

if TYPE_CHECKING:
    from xlalite.hlo.ops.dot import DotAttrs
    from xlalite.hlo.ops.gathering import GatherAttrs

DimensionRuns = tuple[tuple[int, ...], ...]
"""Runs of dimensions that merge, in order; together they are all dimensions."""


_VECTORS = 32
"""Elements of two vectors, about: rows of so many ask once, not for each element, whether they are padding."""


def find_boundaries(body: HloComputation) -> Boundaries:
    """The boundaries between dimensions of all instructions, with those cut that must stay."""
    boundaries = Boundaries()
    for instruction in body.post_order():
        _RELATIONS.get(instruction.opcode, _relate_by_traits)(boundaries, instruction)
        if instruction.opcode == "reduce":
            _relate_results(boundaries, instruction, results_of(body))
    return boundaries


class Boundaries:
    """Union-find over (instruction, dimension d): the boundary between dimensions d - 1 and d."""

    def __init__(self) -> None:
        self._parent: dict[tuple[HloInstruction, int], tuple[HloInstruction, int]] = {}
        self._cut: set[tuple[HloInstruction, int]] = set()

    def find(self, instruction: HloInstruction, dimension: int) -> tuple[HloInstruction, int]:
        """The boundary that stands for all that are tied to one."""
        node = (instruction, dimension)
        while (parent := self._parent.get(node, node)) != node:
            grandparent = self._parent.get(parent, parent)
            self._parent[node] = grandparent
            node = grandparent
        return node

    def tie(self, a: HloInstruction, i: int, b: HloInstruction, j: int) -> None:
        """Makes two boundaries one: both stay or neither."""
        x, y = self.find(a, i), self.find(b, j)
        if x != y:
            self._parent[y] = x
            if y in self._cut:
                self._cut.add(x)

    def cut(self, instruction: HloInstruction, dimension: int) -> None:
        """Makes a boundary stay."""
        self._cut.add(self.find(instruction, dimension))

    def cut_all(self, instruction: HloInstruction) -> None:
        """Makes all boundaries of an instruction stay."""
        for dimension in range(1, _rank(instruction)):
            self.cut(instruction, dimension)

    def cut_around(self, instruction: HloInstruction, dimension: int) -> None:
        """Makes the boundaries on both sides of a dimension stay."""
        for boundary in (dimension, dimension + 1):
            if 0 < boundary < instruction.shape.rank:
                self.cut(instruction, boundary)

    def is_cut(self, instruction: HloInstruction, dimension: int) -> bool:
        """Whether a boundary stays."""
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


def _relate_by_traits(boundaries: Boundaries, instruction: HloInstruction) -> None:
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


def _relate_broadcast(boundaries: Boundaries, instruction: HloInstruction) -> None:
    operand = instruction.operand(0)
    source = {dimension: i for i, dimension in enumerate(instruction.attrs.dimensions)}
    _relate_embedding(boundaries, small=operand, large=instruction, source=source)


def _relate_reduce(boundaries: Boundaries, instruction: HloInstruction) -> None:
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


def _relate_results(boundaries: Boundaries, reduce: HloInstruction, results: Sequence[HloInstruction]) -> None:
    """What a kernel of rows gives of the size of its rows is walked at the index of what it reduces, too."""
    operand = reduce.operand(0)
    for result in results:
        if result.shape.is_array and result.shape.dims == operand.shape.dims:
            for dimension in range(1, operand.shape.rank):
                boundaries.tie(operand, dimension, result, dimension)


def _relate_embedding(
    boundaries: Boundaries, *, small: HloInstruction, large: HloInstruction, source: dict[int, int]
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


def _relate_tuple_element(boundaries: Boundaries, instruction: HloInstruction) -> None:
    producer = instruction.operand(0)
    for dimension in range(1, instruction.shape.rank):
        boundaries.tie(producer, dimension, instruction, dimension)


def _relate_transpose(boundaries: Boundaries, instruction: HloInstruction) -> None:
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


def _relate_reshape(boundaries: Boundaries, instruction: HloInstruction) -> None:
    """Boundaries at the same place of the row-major order are one; others need not stay for the reshape's sake."""
    operand = instruction.operand(0)
    if operand.shape.element_count == 0:
        boundaries.cut_all(operand)
        boundaries.cut_all(instruction)
        return
    places = {_elements_after(instruction, d): d for d in range(instruction.shape.rank - 1, 0, -1)}
    for dimension in range(1, operand.shape.rank):
        place = places.get(_elements_after(operand, dimension))
        if place is not None:
            boundaries.tie(operand, dimension, instruction, place)


def _relate_bitcast_convert(boundaries: Boundaries, instruction: HloInstruction) -> None:
    """The parts of an element stay a dimension of their own; all others are walked alike."""
    operand = instruction.operand(0)
    common = min(operand.shape.rank, instruction.shape.rank)
    for dimension in range(1, common):
        boundaries.tie(operand, dimension, instruction, dimension)
    for array in (operand, instruction):
        if array.shape.rank > common > 0:
            boundaries.cut(array, common)


def _elements_after(instruction: HloInstruction, dimension: int) -> int:
    return math.prod(instruction.shape.dims[dimension:])


def _relate_dot(boundaries: Boundaries, instruction: HloInstruction) -> None:
    """Dimensions that follow one another in every array that has them merge."""
    from xlalite.hlo.ops.dot import free_dimensions

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


def _relate_gather(boundaries: Boundaries, instruction: HloInstruction) -> None:
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


def _relate_iota(boundaries: Boundaries, instruction: HloInstruction) -> None:
    boundaries.cut_around(instruction, instruction.attrs.iota_dimension)


def _relate_partial(
    touched: Callable[[HloInstruction], set[int]], shifted: Callable[[HloInstruction], set[int]] = lambda _: set()
) -> Callable[[Boundaries, HloInstruction], None]:
    """Relation of an operation that touches some dimensions of its first operand and passes the others through.

    What is inside a dimension of which it reads neighbours somewhere else lies in one piece with it.
    """

    def relate(boundaries: Boundaries, instruction: HloInstruction) -> None:
        apart, rank = touched(instruction), _rank(instruction)
        begin = apart | shifted(instruction)
        arrays = [o for o in instruction.operands if o.shape.rank == rank and rank]
        for dimension in range(1, rank):
            if dimension in begin or dimension - 1 in apart:
                for array in (*arrays, instruction):
                    boundaries.cut(array, dimension)
            else:
                for array in arrays:
                    boundaries.tie(array, dimension, instruction, dimension)

    return relate


def _relate_concatenate(boundaries: Boundaries, instruction: HloInstruction) -> None:
    """Only the boundary in front of the concatenated dimension stays: what is inside lies in one piece with it."""
    for dimension in range(1, instruction.shape.rank):
        for operand in instruction.operands:
            boundaries.tie(operand, dimension, instruction, dimension)
        if dimension == instruction.attrs.dimension:
            boundaries.cut(instruction, dimension)


def _resized(instruction: HloInstruction) -> set[int]:
    operand = instruction.operand(1 if instruction.opcode == "dynamic-update-slice" else 0)
    return {d for d, size in enumerate(instruction.shape.dims) if operand.shape.dims[d] != size}


def _padded(instruction: HloInstruction) -> set[int]:
    return {d for d, amounts in enumerate(instruction.attrs.padding) if any(amounts)}


def _under_windows(instruction: HloInstruction) -> set[int]:
    return {d for d, dim in enumerate(instruction.attrs.window.dimensions) if dim != WindowDimension(1)}


def _is_apart(instruction: HloInstruction, dimension: int) -> bool:
    """Whether what is inside of a dimension under a window is not one line with it."""
    dim: WindowDimension = instruction.attrs.window.dimensions[dimension]
    is_long = _elements_after(instruction.operand(0), dimension + 1) >= _VECTORS
    return is_long or dim.stride > 1 or dim.lhs_dilate > 1 or accumulated_dimension(instruction) is not None


_RELATIONS: dict[str, Callable[[Boundaries, HloInstruction], None]] = {
    "broadcast": _relate_broadcast,
    "reduce": _relate_reduce,
    "get-tuple-element": _relate_tuple_element,
    "transpose": _relate_transpose,
    "reshape": _relate_reshape,
    "bitcast": _relate_reshape,
    "bitcast-convert": _relate_bitcast_convert,
    "gather": _relate_gather,
    "iota": _relate_iota,
    "dot": _relate_dot,
    "slice": _relate_partial(lambda i: {d for d, (_, _, stride) in enumerate(i.attrs.slice) if stride != 1}, _resized),
    "dynamic-slice": _relate_partial(_resized),
    "dynamic-update-slice": _relate_partial(_resized),
    "pad": _relate_partial(
        lambda i: {d for d in _padded(i) if i.attrs.padding[d][2] or _elements_after(i, d + 1) >= _VECTORS}, _padded
    ),
    "reverse": _relate_partial(lambda i: set(i.attrs.dimensions)),
    "concatenate": _relate_concatenate,
    **dict.fromkeys(("cholesky", "triangular-solve"), _relate_partial(lambda i: {i.shape.rank - 2, i.shape.rank - 1})),
    "reduce-window": _relate_partial(
        lambda i: {d for d in _under_windows(i) if _is_apart(i, d)},
        _under_windows,
    ),
    "select-and-scatter": _relate_partial(_under_windows),
}
