"""How far apart in memory the neighbours of a loop read: on it rests along which dimension vectors lie."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.dot import DotAttrs, free_dimensions
from xlalite.passes.fusion.domain import reduced_domain
from xlalite.passes.fusion.seams import Line, Lines, operand_lines

if TYPE_CHECKING:
    from xlalite.hlo.ops.gathering import GatherAttrs

FEW = 4
"""Terms that a vector loop computes one after the other, and elements of a line that it computes side by side."""

MOST_COLUMNS = 16
"""Terms that lie side by side: all are loaded in whole vectors, and the columns sorted out of them."""


def read_steps(results: Sequence[HloInstruction], dims: Sequence[int], dimension: int) -> set[int] | None:
    """The distances of elements that neighbours along a dimension of a loop read; None if not all are known.

    Args:
        results: What the loop gives.
        dims: Sizes of each.
        dimension: Along which the neighbours lie.
    """
    identity = tuple(Line(dimension=each) for each in range(len(dims)))
    waiting: list[tuple[HloInstruction, Lines]] = [(result, identity) for result in results]
    seen, steps = set(waiting), set[int]()
    while waiting:
        instruction, lines = waiting.pop()
        if instruction.opcode in ("parameter", "constant"):
            strides = (math.prod(instruction.shape.dims[place + 1 :]) for place in range(len(lines)))
            moving = (line.stride if line.dimension == dimension else 0 for line in lines)
            steps.add(abs(sum(map(operator.mul, strides, moving))))
            continue
        followed = [*operand_lines(instruction, lines)] or [
            *_summed(instruction, lines),
            *_cut_out(instruction, lines),
            *_merged(instruction, lines, dimension),
        ]
        known = {operand for operand, _ in followed}
        if any(operand not in known and not operand.shape.is_scalar for operand in instruction.operands):
            return None
        waiting += (each for each in followed if each not in seen)
        seen.update(followed)
    return steps


def sums_few(reduce: HloInstruction) -> bool:
    """Whether a vector loop computes the terms of a reduction one after the other."""
    domain = reduced_domain(reduce)
    return 0 < domain.column_count <= (MOST_COLUMNS if domain.has_minor_columns else FEW)


def _cut_out(instruction: HloInstruction, lines: Lines) -> Iterator[tuple[HloInstruction, Lines]]:
    """What windows are cut out of at places known late, which are left out: one window for all, or each its own."""
    if instruction.opcode == "dynamic-slice":
        yield instruction.operand(0), lines
    elif instruction.opcode == "gather":
        attrs: GatherAttrs = instruction.attrs
        offsets = iter([lines[place] for place in attrs.offset_dims])
        batch = [line for place, line in enumerate(lines) if place not in attrs.offset_dims]
        operand, indices = instruction.operands
        kept = [Line() if place in attrs.dropped_dims else next(offsets) for place in range(operand.shape.rank)]
        yield operand, tuple(kept)
        vector = (Line(),) if attrs.index_vector_dim < indices.shape.rank else ()
        yield indices, (*batch[: attrs.index_vector_dim], *vector, *batch[attrs.index_vector_dim :])


def _merged(instruction: HloInstruction, lines: Lines, dimension: int) -> Iterator[tuple[HloInstruction, Lines]]:
    """What a reshape takes apart: neighbours move along all the dimensions that were one."""
    if instruction.opcode != "reshape" or instruction.shape.element_count == 0:
        return
    places = list(zip(lines, instruction.shape.dims, strict=True))
    found: list[Line] = []
    for size in reversed(instruction.operand(0).shape.dims):
        inside, stride = 1, 0
        while places and inside < size:
            line, own = places.pop()
            stride += inside * line.stride * (line.dimension == dimension)
            inside *= own
        if inside != size:
            return
        found.append(Line(0, stride, dimension) if stride else Line())
    yield instruction.operand(0), tuple(reversed(found))


def _summed(instruction: HloInstruction, lines: Lines) -> Iterator[tuple[HloInstruction, Lines]]:
    """What reductions and products of few terms read."""
    if instruction.opcode == "get-tuple-element" and instruction.operand(0).opcode == "reduce":
        yield instruction.operand(0), lines
    elif instruction.opcode == "reduce":
        reduced, kept = instruction.attrs.dimensions, iter(lines)
        dims = instruction.operand(0).shape.dims
        if sums_few(instruction):
            own = tuple(Line() if dimension in reduced else next(kept) for dimension in range(len(dims)))
            yield from ((array, own) for array in instruction.operands[: len(instruction.operands) // 2])
    elif instruction.opcode == "dot":
        attrs: DotAttrs = instruction.attrs
        batch, free = lines[: len(attrs.lhs_batch_dims)], iter(lines[len(attrs.lhs_batch_dims) :])
        for operand, batched, summed in (
            (instruction.operand(0), attrs.lhs_batch_dims, attrs.lhs_contracting_dims),
            (instruction.operand(1), attrs.rhs_batch_dims, attrs.rhs_contracting_dims),
        ):
            places = dict(zip(batched, batch, strict=True))
            places |= {dimension: next(free) for dimension in free_dimensions(operand.shape.rank, batched, summed)}
            if math.prod(operand.shape.dims[dimension] for dimension in summed) <= FEW:
                yield operand, tuple(places.get(dimension, Line()) for dimension in range(operand.shape.rank))
