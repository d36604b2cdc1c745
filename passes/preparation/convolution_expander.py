"""Expresses convolutions of many features by products of matrices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.convolution import ConvolutionAttrs
from xlalite.hlo.ops.dot import DotAttrs
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape
from xlalite.hlo.types.window import WindowDimension
from xlalite.passes.rewriting.expander import OpExpander


@dataclass(frozen=True, slots=True)
class ConvolutionExpander(OpExpander):
    """convolution -> a loop over the positions of the kernel, or over those of the result where these are fewer.

    Each position is a product of matrices: of what the kernel position sees with its weights, added to the result; or
    of all that a result position sees with all weights. What it would see beyond the edge, or in holes, is left out,
    not multiplied by zero.

    Attributes:
        fewest_feature_pairs: With fewer pairs of an input feature and an output feature in each group it stays.
    """

    name: ClassVar[str] = "convolution-expander"
    opcodes: ClassVar[frozenset[str]] = frozenset({"convolution"})

    fewest_feature_pairs: int = 256

    def may_expand(self, instruction: HloInstruction) -> bool:
        """Whether matrices of its features are large enough to be worth it."""
        attrs, sizes, dtype = instruction.attrs, instruction.operand(1).shape.dims, instruction.shape.dtype
        dims, groups = attrs.dim_labels, max(attrs.feature_group_count, attrs.batch_group_count)
        pairs = sizes[dims.kernel_input_feature] * sizes[dims.kernel_output_feature] // groups
        is_number = dtype.is_floating or dtype.is_complex or dtype.is_integral
        has_elements = all(
            shape.element_count for shape in (instruction.shape, *(o.shape for o in instruction.operands))
        )
        return has_elements and is_number and pairs >= self.fewest_feature_pairs

    def expand(self, builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...]) -> Handle:
        """Builds the loop."""
        work = _Convolution(instruction)
        lhs, rhs = work.grouped(builder, *operands)
        kernel_first = math.prod(work.kernel_space) <= math.prod(work.out_space)
        positions, step = (
            (work.kernel_space, work.add_kernel_position)
            if kernel_first
            else (work.out_space, work.put_output_position)
        )
        return work.ungrouped(builder, work.loop(builder, lhs, rhs, positions, step))


_Step = Callable[[Builder, Handle, Handle, Handle, "Sequence[Handle]"], Handle]


class _Convolution:
    """One convolution of [groups, batch, space.., inputs] with [groups, space.., inputs, outputs]."""

    def __init__(self, instruction: HloInstruction) -> None:
        attrs: ConvolutionAttrs = instruction.attrs
        dims, shapes = attrs.dim_labels, [operand.shape.dims for operand in instruction.operands]
        self.attrs, self.dims, self.shape, self.name = attrs, dims, instruction.shape, instruction.name
        self.groups = max(attrs.feature_group_count, attrs.batch_group_count)
        self.window = attrs.window.dimensions
        self.in_space = [shapes[0][dim] for dim in dims.input_spatial]
        self.kernel_space = list(attrs.window.sizes)
        self.out_space = [instruction.shape.dims[dim] for dim in dims.output_spatial]
        self.dtype = _accumulated(instruction.shape.dtype)

    def grouped(self, builder: Builder, lhs: Handle, rhs: Handle) -> tuple[Handle, Handle]:
        """The operands in the order of dimensions above, the first with its padding and holes."""
        dims = self.dims
        lhs = builder.transpose(lhs, (dims.input_batch, *dims.input_spatial, dims.input_feature))
        order = (*dims.kernel_spatial, dims.kernel_input_feature, dims.kernel_output_feature)
        rhs = builder.transpose(rhs, order)
        axis = len(lhs.dims) - 1 if self.attrs.feature_group_count > 1 else 0
        lhs, rhs = _split(builder, lhs, axis, self.groups), _split(builder, rhs, len(rhs.dims) - 1, self.groups)
        flipped = [1 + place for place, dim in enumerate(self.window) if dim.reversal]
        padding = [(dim.pad_low, dim.pad_high, dim.lhs_dilate - 1) for dim in self.window]
        lhs = builder.pad(lhs, builder.zeros(Shape.array(lhs.dtype)), [(0, 0, 0), (0, 0, 0), *padding, (0, 0, 0)])
        return lhs, builder.reverse(rhs, flipped) if flipped else rhs

    def ungrouped(self, builder: Builder, result: Handle) -> Handle:
        """The result [groups, batch, space.., outputs] as the instruction has it."""
        rank = len(result.dims)
        moved = builder.transpose(result, (*range(1, rank - 1), 0, rank - 1))
        merged = builder.reshape(moved, (*moved.dims[:-2], moved.dims[-2] * moved.dims[-1]))
        order = [0] * self.shape.rank
        for position, dim in enumerate((self.dims.output_batch, *self.dims.output_spatial, self.dims.output_feature)):
            order[dim] = position
        return builder.convert(builder.transpose(merged, order), self.shape.dtype)

    def loop(self, builder: Builder, lhs: Handle, rhs: Handle, positions: Sequence[int], step: _Step) -> Handle:
        """What the steps at all positions make of zeros."""
        zeros = builder.zeros(Shape.array(self.dtype, (*lhs.dims[:2], *self.out_space, rhs.dims[-1])))
        start = builder.tuple([builder.constant(0, DType.S32), zeros, lhs, rhs])

        def body(inner: Builder, state: Handle) -> Handle:
            number, result, left, right = (inner.element(state, n) for n in range(4))
            place = []
            rest = number
            for size in reversed(positions):
                place.append(rest % size)
                rest = rest / size
            return inner.tuple([number + 1, step(inner, result, left, right, place[::-1]), left, right])

        condition = builder.subcomputation(
            f"{self.name}.condition",
            (start.shape,),
            lambda b, p: b.compare(b.element(p[0], 0), math.prod(positions), "LT"),
        )
        step_body = builder.subcomputation(f"{self.name}.body", (start.shape,), lambda b, p: body(b, p[0]))
        return builder.element(builder.op("while", (start,), called=(condition, step_body)), 1)

    def add_kernel_position(
        self, builder: Builder, result: Handle, lhs: Handle, rhs: Handle, place: Sequence[Handle]
    ) -> Handle:
        """The result with the products of one kernel position."""
        starts = [at * dim.rhs_dilate for at, dim in zip(place, self.window, strict=True)]
        seen = _window(builder, lhs, starts, self.out_space, [dim.stride for dim in self.window])
        sizes = (rhs.dims[0], *(1 for _ in place), *rhs.dims[-2:])
        zero = builder.constant(0, DType.S32)
        weights = builder.reshape(
            builder.dynamic_slice(rhs, (zero, *place, zero, zero), sizes), (sizes[0], *sizes[-2:])
        )
        last = len(seen.dims) - 1
        product = self._product(builder, seen, weights, (last,), (1,))
        offsets = [at - dim.pad_low for at, dim in zip(starts, self.window, strict=True)]
        exists = self._exists(builder, offsets, self.out_space, [dim.stride for dim in self.window])
        if exists is not None:
            exists = builder.broadcast(exists, product.dims, range(2, last))
            product = builder.select(exists, product, builder.zeros(product.shape))
        return result + product

    def put_output_position(
        self, builder: Builder, result: Handle, lhs: Handle, rhs: Handle, place: Sequence[Handle]
    ) -> Handle:
        """The result with one position computed."""
        starts = [at * dim.stride for at, dim in zip(place, self.window, strict=True)]
        seen = _window(builder, lhs, starts, self.kernel_space, [dim.rhs_dilate for dim in self.window])
        offsets = [at - dim.pad_low for at, dim in zip(starts, self.window, strict=True)]
        exists = self._exists(builder, offsets, self.kernel_space, [dim.rhs_dilate for dim in self.window])
        last = len(seen.dims) - 1
        if exists is not None:
            exists = builder.broadcast(exists, rhs.dims, range(1, last - 1))
            rhs = builder.select(exists, rhs, builder.zeros(rhs.shape))
        product = self._product(builder, seen, rhs, range(2, last + 1), range(1, last))
        piece = builder.reshape(product, (*result.dims[:2], *(1 for _ in place), result.dims[-1]))
        zero = builder.constant(0, DType.S32)
        return builder.op("dynamic-update-slice", (result, piece, zero, zero, *place, zero))

    def _product(
        self, builder: Builder, lhs: Handle, rhs: Handle, lhs_summed: Sequence[int], rhs_summed: Sequence[int]
    ) -> Handle:
        attrs = DotAttrs(
            (0,), tuple(lhs_summed), (0,), tuple(rhs_summed), self.attrs.operand_precision, self.attrs.algorithm
        )
        free = [size for dim, size in enumerate(lhs.dims) if dim and dim not in lhs_summed]
        return builder.op("dot", (lhs, rhs), attrs, shape=Shape.array(self.dtype, (lhs.dims[0], *free, rhs.dims[-1])))

    def _exists(
        self, builder: Builder, offsets: Sequence[Handle], sizes: Sequence[int], steps: Sequence[int]
    ) -> Handle | None:
        """Where in an array of some sizes position * step + offset is an element of the input; None if everywhere."""
        found = None
        for place, (dim, offset) in enumerate(zip(self.window, offsets, strict=True)):
            if dim.pad_low <= 0 and dim.pad_high <= 0 and dim.lhs_dilate == 1:
                continue
            position = builder.iota(DType.S32, (sizes[place],), 0) * steps[place] + builder.broadcast(
                offset, (sizes[place],)
            )
            here = _is_element(builder, position, dim, self.in_space[place])
            here = builder.broadcast(here, sizes, (place,))
            found = here if found is None else found & here
        return found


def _accumulated(dtype: DType) -> DType:
    """The type in which products of all positions are added."""
    if dtype.is_floating and dtype.bits < 32:
        return DType.F32
    if dtype.is_integral and dtype.bits < 32:
        return DType.S32 if dtype.is_signed else DType.U32
    return dtype


def _split(builder: Builder, array: Handle, axis: int, groups: int) -> Handle:
    """The array with a new first axis: the equal parts of one axis."""
    sizes = (*array.dims[:axis], groups, array.dims[axis] // groups, *array.dims[axis + 1 :])
    rest = (dimension for dimension in range(len(sizes)) if dimension != axis)
    return builder.transpose(builder.reshape(array, sizes), (axis, *rest))


def _window(
    builder: Builder, lhs: Handle, starts: Sequence[Handle], sizes: Sequence[int], steps: Sequence[int]
) -> Handle:
    """The elements start + i * step of the spatial dimensions, i below sizes."""
    spans = [(size - 1) * step + 1 for size, step in zip(sizes, steps, strict=True)]
    zero = builder.constant(0, DType.S32)
    around, inputs = lhs.dims[:2], lhs.dims[-1]
    span = builder.dynamic_slice(lhs, (zero, zero, *starts, zero), (*around, *spans, inputs))
    if all(step == 1 for step in steps):
        return span
    return builder.slice(span, [0] * len(span.dims), span.dims, (1, 1, *steps, 1))


def _is_element(builder: Builder, position: Handle, dim: WindowDimension, size: int) -> Handle:
    """Whether a position of the input with holes, counted without padding, has an element."""
    inside = builder.compare(position, 0, "GE") & builder.compare(position, (size - 1) * dim.lhs_dilate, "LE")
    return inside if dim.lhs_dilate == 1 else inside & builder.compare(position % dim.lhs_dilate, 0, "EQ")
