"""Expresses ragged-dot by products of what lies in one group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.dot import DotAttrs, free_dimensions
from xlalite.hlo.ops.special_dots import RaggedDotAttrs, RaggedMode, outer_dims
from xlalite.hlo.ops.windows import ReduceWindowAttrs
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape
from xlalite.hlo.types.window import Window, WindowDimension
from xlalite.passes.rewriting.expander import OpExpander

_FEWEST, _MOST = 16, 256
"""Sizes of a tile: what the last tile of a group computes in vain, against products that are too small."""


@dataclass(frozen=True, slots=True)
class RaggedDotExpander(OpExpander):
    """ragged-dot -> while over tiles of the ragged dimension, none of which lies in two groups: a dot of each.

    What of a tile is not its group's keeps what it had (rows), or counts as zero (terms), so a group costs its own size
    and at most a tile. Groups of a batch dimension change nothing: that is a dot.
    """

    name: ClassVar[str] = "ragged-dot-expander"
    opcodes: ClassVar[frozenset[str]] = frozenset({"ragged-dot"})

    def may_expand(self, instruction: HloInstruction) -> bool:
        """Whether all sizes are known."""
        return not any(operand.shape.is_dynamic for operand in instruction.operands)

    def expand(self, builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...]) -> Handle:
        """Builds the dot, or the loop."""
        attrs: RaggedDotAttrs = instruction.attrs
        if attrs.mode is RaggedMode.BATCH:
            return builder.op("dot", operands[:2], attrs.plain, shape=instruction.shape)
        if not all(operand.shape.element_count for operand in instruction.operands):
            return builder.zeros(instruction.shape)
        return _Loop(instruction).build(builder, operands)


@dataclass(frozen=True, slots=True)
class _Tile:
    """A tile in the loop: places along q, the groups and the ragged dimension, and which of it are the group's."""

    q: Handle
    group: Handle
    begin: Handle
    inside: Handle


class _Loop:
    """The loop for one ragged-dot; q are all dimensions that may have groups of their own.

    Groups of rows: [q, rows, x, k] x [g, b, k, n] -> [q, rows, x, n], the b of a q being q / `inner`.
    Groups of terms: [q, rows, x, m] x [q, rows, x, n] -> [g, b, m, n].
    """

    def __init__(self, instruction: HloInstruction) -> None:
        lhs, _, sizes = (operand.shape for operand in instruction.operands)
        attrs: RaggedDotAttrs = instruction.attrs
        self.attrs, self.shape, self.name = attrs, instruction.shape, instruction.name
        self.is_of_rows = attrs.mode is RaggedMode.FREE
        self.outer = outer_dims(attrs, lhs.rank)
        self.inner = math.prod(lhs.dims[dim] for dim in self.outer[len(attrs.lhs_batch_dims) :])
        self.groups, self.rows = sizes.dims[-1], lhs.dims[attrs.lhs_ragged_dims[0]]
        share = -(-self.rows // (2 * self.groups))
        self.tile = min(self.rows, max(_FEWEST, min(_MOST, 1 << (share - 1).bit_length())))

    def build(self, builder: Builder, operands: tuple[Handle, ...]) -> Handle:
        """The loop, and what it leaves as the instruction's result."""
        lhs, rhs = self._arranged_operands(builder, *operands[:2])
        starts, ends = self._limits(builder, operands[2], lhs.dims[0])
        (entries,) = starts.dims
        counts = (ends - starts + (self.tile - 1)) / self.tile
        counted = builder.reshape(_running_sums(builder, builder.reshape(counts, (1, entries))), (entries,))
        total = builder.reshape(builder.slice(counted, [entries - 1], [entries]), ())
        zero, result = builder.constant(0, DType.S64), builder.zeros(self._loop_shape(lhs, rhs))
        start = builder.tuple((zero, total, starts, ends, counted - counts, counted, lhs, rhs, result))
        condition = builder.subcomputation(
            f"{self.name}.condition", (start.shape,), lambda b, p: b.compare(p[0][0], p[0][1], "LT")
        )
        body = builder.subcomputation(f"{self.name}.body", (start.shape,), lambda b, p: self._body(b, p[0]))
        end = builder.op("while", (start,), called=(condition, body))
        found = builder.element(end, len(start.shape.elements) - 1)
        return builder.reshape(builder.convert(found, self.shape.dtype), self.shape.dims)

    def _arranged_operands(self, builder: Builder, lhs: Handle, rhs: Handle) -> tuple[Handle, Handle]:
        attrs, (ragged,) = self.attrs, self.attrs.lhs_ragged_dims
        rank, batch, summed = len(lhs.dims), attrs.lhs_batch_dims, attrs.lhs_contracting_dims
        inside = [dim for dim in range(rank) if dim not in self.outer and dim != ragged]
        if self.is_of_rows:
            beside = [dim for dim in inside if dim not in summed]
            (group,) = attrs.rhs_group_dims
            columns = free_dimensions(len(rhs.dims), (*attrs.rhs_batch_dims, group), attrs.rhs_contracting_dims)
            own = ((group,), attrs.rhs_batch_dims, attrs.rhs_contracting_dims, columns)
            return _arranged(builder, lhs, (self.outer, (ragged,), beside, summed)), _arranged(builder, rhs, own)
        partners = (*attrs.rhs_batch_dims, *attrs.rhs_contracting_dims)
        partner = dict(zip((*batch, *summed), partners, strict=True))
        left = (self.outer, (ragged,), [dim for dim in summed if dim in inside])
        free = free_dimensions(rank, batch, summed)
        columns = free_dimensions(len(rhs.dims), attrs.rhs_batch_dims, attrs.rhs_contracting_dims)
        right = (*([partner[dim] for dim in part] for part in left), columns)
        return _arranged(builder, lhs, (*left, free)), _arranged(builder, rhs, right)

    def _loop_shape(self, lhs: Handle, rhs: Handle) -> Shape:
        """Terms of several tiles are rounded once."""
        dtype, (q, rows, x, m), n = self.shape.dtype, lhs.dims, rhs.dims[3]
        if self.is_of_rows:
            return Shape.array(dtype, (q, rows, x, n))
        is_narrow = dtype.is_floating and dtype.bits < 32
        return Shape.array(DType.F32 if is_narrow else dtype, (self.groups, q // self.inner, m, n))

    def _limits(self, builder: Builder, sizes: Handle, q: int) -> tuple[Handle, Handle]:
        """Where groups begin and end, [q * g]; what is beyond the last row is in no group."""
        if sizes.dtype is DType.U64:
            sizes = builder.op("minimum", builder.match(sizes, self.rows))
        sizes = builder.convert(sizes, DType.S64)
        if len(sizes.dims) == 1:
            sizes = builder.broadcast(sizes, (q, self.groups), (1,))
        sizes = builder.reshape(sizes, (q, self.groups))
        low, high = (builder.constant(bound, DType.S64) for bound in (0, self.rows))
        sizes = builder.op("clamp", (low, sizes, high))
        ends = _running_sums(builder, sizes)
        limits = [builder.op("minimum", builder.match(each, self.rows)) for each in (ends - sizes, ends)]
        return builder.reshape(limits[0], (q * self.groups,)), builder.reshape(limits[1], (q * self.groups,))

    def _body(self, builder: Builder, state: Handle) -> Handle:
        parts = [builder.element(state, part) for part in range(len(state.shape.elements))]
        number, _, starts, ends, firsts, counted, lhs, rhs, result = parts
        before = builder.convert(builder.compare(counted, number, "LE"), DType.S64)
        entry = builder.reduce(before, 0, (0,), "add")
        start, end, first = (
            builder.reshape(builder.dynamic_slice(each, (entry,), (1,)), ()) for each in (starts, ends, firsts)
        )
        begin = start + (number - first) * self.tile
        window = builder.op("minimum", builder.match(begin, self.rows - self.tile))
        positions = builder.iota(DType.S64, (self.tile,), 0) + window
        inside = builder.compare(positions, begin, "GE") & builder.compare(positions, end, "LT")
        tile = _Tile(entry / self.groups, entry % self.groups, window, inside)
        updated = (self._with_rows if self.is_of_rows else self._with_terms)(builder, tile, lhs, rhs, result)
        return builder.tuple((number + 1, *parts[1:-1], updated))

    def _with_rows(self, builder: Builder, tile: _Tile, lhs: Handle, rhs: Handle, result: Handle) -> Handle:
        """The result with the rows of a tile."""
        (_, _, x, k), n, zero = lhs.dims, rhs.dims[3], builder.constant(0, DType.S64)
        places = (tile.q, tile.begin, zero, zero)
        left = _window(builder, lhs, places, (self.tile * x, k), self.tile)
        right = _window(builder, rhs, (tile.group, tile.q / self.inner, zero, zero), (k, n))
        product = self._product(builder, left, right, 1, self.shape.dtype)
        sizes = (1, self.tile, x, n)
        inside = builder.broadcast(tile.inside, sizes, (1,))
        chosen = builder.select(inside, builder.reshape(product, sizes), builder.dynamic_slice(result, places, sizes))
        return builder.op("dynamic-update-slice", (result, chosen, *places))

    def _with_terms(self, builder: Builder, tile: _Tile, lhs: Handle, rhs: Handle, result: Handle) -> Handle:
        """The result with the terms of a tile added to those of its group."""
        zero = builder.constant(0, DType.S64)
        sides = []
        for operand in (lhs, rhs):
            _, _, x, free = operand.dims
            taken = _window(builder, operand, (tile.q, tile.begin, zero, zero), (self.tile, x, free), self.tile)
            inside = builder.broadcast(tile.inside, taken.dims, (0,))
            chosen = builder.select(inside, taken, builder.zeros(taken.shape))
            sides.append(builder.reshape(chosen, (self.tile * x, free)))
        product = self._product(builder, sides[0], sides[1], 0, result.dtype)
        places = (tile.group, tile.q / self.inner, zero, zero)
        known = builder.dynamic_slice(result, places, (1, 1, *product.dims))
        product = builder.reshape(product, known.dims)
        total = known | product if result.dtype is DType.PRED else known + product
        return builder.op("dynamic-update-slice", (result, total, *places))

    def _product(self, builder: Builder, left: Handle, right: Handle, summed: int, dtype: DType) -> Handle:
        dims = (left.dims[1 - summed], right.dims[1])
        attrs = DotAttrs((), (summed,), (), (0,), self.attrs.operand_precision)
        return builder.op("dot", (left, right), attrs, shape=Shape.array(dtype, dims))


def _arranged(builder: Builder, array: Handle, parts: Sequence[Sequence[int]]) -> Handle:
    """The array with dimensions in the order of some parts, those of each part merged."""
    order = [dim for part in parts for dim in part]
    sizes = [math.prod(array.dims[dim] for dim in part) for part in parts]
    return builder.reshape(builder.transpose(array, order), sizes)


def _window(builder: Builder, array: Handle, places: Sequence[Handle], dims: Sequence[int], along: int = 1) -> Handle:
    """What begins at some places of an array of rank 4, all of its last two dimensions, with other sizes."""
    return builder.reshape(builder.dynamic_slice(array, places, (1, along, *array.dims[2:])), dims)


def _running_sums(builder: Builder, array: Handle) -> Handle:
    """Those of the rows of a matrix."""
    size = array.dims[1]
    window = Window((WindowDimension(1), WindowDimension(size, pad_low=size - 1)))
    function = builder.scalar_function("add", array.dtype)
    operands = (array, builder.constant(0, array.dtype))
    return builder.op("reduce-window", operands, ReduceWindowAttrs(window), (function,))
