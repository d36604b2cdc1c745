"""Merges dimensions that every array of a kernel walks through together, so that most kernels are 1-D or 2-D loops.

Before: `f32[8,16,4] add(f32[8,16,4] x, f32[8,16,4] broadcast(f32[4] b), dimensions={2})`
After:  `f32[128,4] add(f32[128,4] x, f32[128,4] broadcast(f32[4] b), dimensions={1})`
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from xlalite.backends.codegen.kernels.dimension_runs import Boundaries, DimensionRuns, find_boundaries
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Attrs
from xlalite.hlo.ops.structural import ConstantAttrs
from xlalite.hlo.types.literal import Literal
from xlalite.hlo.types.shape import Shape
from xlalite.hlo.types.window import Window, WindowDimension

if TYPE_CHECKING:
    from xlalite.hlo.ops.dot import DotAttrs
    from xlalite.hlo.ops.gathering import GatherAttrs


_T = TypeVar("_T")


def collapse(body: HloComputation) -> HloComputation:
    """A copy of a kernel's computation with merged dimensions, or the computation itself where there are none."""
    boundaries = find_boundaries(body)
    order = body.post_order()
    runs = {instruction: boundaries.runs(instruction) for instruction in order if instruction.shape.is_array}
    shapes = {instruction: _merged_shape(instruction, boundaries, runs) for instruction in order}
    if all(instruction.shape == shape for instruction, shape in shapes.items()):
        return body
    twin = HloComputation(body.name)
    copies: dict[HloInstruction, HloInstruction] = {}
    for instruction, shape in shapes.items():
        merged_attrs = _ATTRS.get(instruction.opcode)
        attrs = merged_attrs(instruction, runs, shape) if merged_attrs is not None else instruction.attrs
        operands = [copies[operand] for operand in instruction.operands]
        kept = _KEPT_OPERANDS.get(instruction.opcode)
        if kept is not None:
            operands = [copies[operand] for operand in kept(instruction, runs)]
        copies[instruction] = instruction.clone(operands, shape=shape, attrs=attrs)
    for instruction in body.instructions:
        twin.add(copies[instruction])
    twin.set_root(copies[body.root])
    return twin


def _merged_shape(instruction: HloInstruction, boundaries: Boundaries, runs: RunsOf) -> Shape:
    shape = instruction.shape
    if shape.is_tuple and instruction.opcode == "tuple":
        return Shape.tuple([_merged_shape(operand, boundaries, runs) for operand in instruction.operands])
    if shape.is_tuple and instruction.opcode != "custom-call":
        # The element arrays of a variadic reduce have equal sizes; their boundaries are kept under the instruction.
        common = boundaries.runs(instruction)
        return Shape.tuple([element.with_dims(_merge(element.dims, common)) for element in shape.elements])
    if not shape.is_array:
        return shape
    own = runs[instruction]
    if len(own) == shape.rank and shape.layout is None and not shape.is_dynamic:
        return shape
    return shape.with_dims(_merge(shape.dims, own))


def _merge(dims: tuple[int, ...], runs: DimensionRuns) -> tuple[int, ...]:
    return tuple(math.prod(dims[d] for d in run) for run in runs)


def _number_of(runs: DimensionRuns, dimension: int) -> int:
    return next(number for number, run in enumerate(runs) if dimension in run)


RunsOf = dict[HloInstruction, DimensionRuns]


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


def _first_of_runs(instruction: HloInstruction, attrs: Sequence[_T], runs: RunsOf) -> Iterator[tuple[_T, int]]:
    """What holds for the first dimension of each run of the first operand, and how many elements are inside of it."""
    operand = instruction.operand(0)
    for run in runs[operand]:
        yield attrs[run[0]], math.prod(operand.shape.dims[d] for d in run[1:])


def _slice_attrs(instruction: HloInstruction, runs: RunsOf, shape: Shape) -> Attrs:
    ranges = [
        (start * inside, limit * inside, stride)
        for (start, limit, stride), inside in _first_of_runs(instruction, instruction.attrs.slice, runs)
    ]
    return replace(instruction.attrs, slice=tuple(ranges))


def _pad_attrs(instruction: HloInstruction, runs: RunsOf, shape: Shape) -> Attrs:
    amounts = [
        (low * inside, high * inside, interior)
        for (low, high, interior), inside in _first_of_runs(instruction, instruction.attrs.padding, runs)
    ]
    return replace(instruction.attrs, padding=tuple(amounts))


def _dynamic_slice_attrs(instruction: HloInstruction, runs: RunsOf, shape: Shape) -> Attrs:
    return replace(instruction.attrs, dynamic_slice_sizes=shape.dims)


def _window_attrs(instruction: HloInstruction, runs: RunsOf, shape: Shape) -> Attrs:
    dimensions = [
        replace(dim, pad_low=dim.pad_low * inside, pad_high=dim.pad_high * inside, rhs_dilate=dim.rhs_dilate * inside)
        if dim != WindowDimension(1)
        else dim
        for dim, inside in _first_of_runs(instruction, instruction.attrs.window.dimensions, runs)
    ]
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
