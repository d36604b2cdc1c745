"""Rules for broadcast, reshape, transpose, reverse and iota. All of them only say where elements come from."""

from __future__ import annotations

import numpy as np

from xlalite.hlo.building.construct import broadcast, iota, reshape, reverse, splat_like, transpose
from xlalite.hlo.building.create import create
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.passes.rewriting.patterns import is_integer, splat_literal, used_once
from xlalite.passes.rewriting.rewrite import RewriteRule, RuleResult
from xlalite.passes.simplify.dimensions import dimension_groups, inverse, is_increasing, positions, without_ones

_MOST_FUNCTIONS = 4
"""Through so many a transpose looks for what is replicated."""


def broadcast_nothing(instruction: HloInstruction) -> RuleResult:
    """broadcast(A) to A's own sizes, dimensions in order = A."""
    operand, dimensions = instruction.operand(0), instruction.attrs.dimensions
    return operand if dimensions == tuple(range(instruction.shape.rank)) else None


def broadcast_of_broadcast(instruction: HloInstruction) -> RuleResult:
    """broadcast(broadcast(A)) = broadcast(A)."""
    inner = instruction.operand(0)
    if inner.opcode != "broadcast":
        return None
    outer = instruction.attrs.dimensions
    dimensions = [outer[dimension] for dimension in inner.attrs.dimensions]
    return broadcast(inner.operand(0), instruction.shape.dims, dimensions)


def broadcast_as_reshape(instruction: HloInstruction) -> RuleResult:
    """broadcast(A) that replicates nothing = reshape(A), of a transpose when dimensions trade places."""
    operand, dimensions = instruction.operand(0), instruction.attrs.dimensions
    if operand.shape.element_count != instruction.shape.element_count or operand.shape.element_count == 0:
        return None
    if splat_literal(operand) is not None:
        return None
    order = sorted(range(len(dimensions)), key=lambda position: dimensions[position])
    return reshape(transpose(operand, order), instruction.shape.dims)


def broadcast_of_ones(instruction: HloInstruction) -> RuleResult:
    """broadcast(reshape(A)) = broadcast(A) when the reshape only inserts and drops dimensions of size 1.

    Those that are dropped must be in the result, too, where they belong.
    """
    inner, dims = instruction.operand(0), instruction.shape.dims
    if inner.opcode != "reshape" or not is_increasing(instruction.attrs.dimensions):
        return None
    source = inner.operand(0)
    if without_ones(inner.shape.dims) != without_ones(source.shape.dims):
        return None
    kept = [d for d, size in zip(instruction.attrs.dimensions, inner.shape.dims, strict=True) if size != 1]
    places, ones = iter(kept), [d for d, size in enumerate(dims) if size == 1]
    found: list[int] = []
    for size in source.shape.dims:
        behind = found[-1] if found else -1
        place = next(places) if size != 1 else next((one for one in ones if one > behind), None)
        if place is None or place <= behind:
            return None
        found.append(place)
    return broadcast(source, dims, found)


def broadcast_of_transpose(instruction: HloInstruction) -> RuleResult:
    """broadcast(transpose(A)) = broadcast(A) when the dimensions of A are in order in the result."""
    inner = instruction.operand(0)
    if inner.opcode != "transpose":
        return None
    dimensions = [instruction.attrs.dimensions[position] for position in inverse(inner.attrs.dimensions)]
    return broadcast(inner.operand(0), instruction.shape.dims, dimensions) if is_increasing(dimensions) else None


def reshape_nothing(instruction: HloInstruction) -> RuleResult:
    """reshape(A) to A's own sizes = A."""
    operand = instruction.operand(0)
    return operand if operand.shape.dims == instruction.shape.dims else None


def reshape_of_reshape(instruction: HloInstruction) -> RuleResult:
    """reshape(reshape(A)) = reshape(A)."""
    inner = instruction.operand(0)
    return reshape(inner.operand(0), instruction.shape.dims) if inner.opcode == "reshape" else None


def reshape_of_broadcast(instruction: HloInstruction) -> RuleResult:
    """reshape(broadcast(A)) = broadcast(reshape(A)) when no merged or split dimension is replicated only in part."""
    inner = instruction.operand(0)
    if inner.opcode != "broadcast":
        return None
    source, kept = inner.operand(0), inner.attrs.dimensions
    if source.shape.is_scalar:
        return broadcast(source, instruction.shape.dims)
    groups = dimension_groups(inner.shape.dims, instruction.shape.dims)
    if groups is None or not is_increasing(kept):
        return None
    dimensions: list[int] = []
    for group in groups:
        own = [dimension for dimension in group.before if dimension in kept]
        if own and len(own) != len(group.before):
            return None
        if own:
            dimensions.extend(group.after)
    dims = [instruction.shape.dims[dimension] for dimension in dimensions]
    return broadcast(reshape(source, dims), instruction.shape.dims, dimensions)


def reshape_of_iota(instruction: HloInstruction) -> RuleResult:
    """reshape(iota) = iota when the reshape only inserts or removes dimensions of size 1."""
    inner = instruction.operand(0)
    if inner.opcode != "iota":
        return None
    groups = dimension_groups(inner.shape.dims, instruction.shape.dims)
    if groups is None or without_ones(inner.shape.dims) != without_ones(instruction.shape.dims):
        return None
    for group in groups:
        if group.before == (inner.attrs.iota_dimension,):
            return iota(instruction.shape.dtype, instruction.shape.dims, group.after[0])
    return None


def reshape_of_transpose(instruction: HloInstruction) -> RuleResult:
    """reshape(transpose(A)) = transpose(reshape(A)) when the reshape only drops dimensions of size 1."""
    inner, dims = instruction.operand(0), instruction.shape.dims
    if inner.opcode != "transpose" or not used_once(inner) or without_ones(inner.shape.dims) != without_ones(dims):
        return None
    if len(dims) >= inner.shape.rank:
        return None
    order = [d for d, size in zip(inner.attrs.dimensions, inner.shape.dims, strict=True) if size != 1]
    source = inner.operand(0)
    moved = transpose(
        reshape(source, without_ones(source.shape.dims)), [sorted(order).index(dimension) for dimension in order]
    )
    return reshape(moved, dims)


def transpose_nothing(instruction: HloInstruction) -> RuleResult:
    """transpose(A) by the identity = A."""
    identity = tuple(range(instruction.shape.rank))
    return instruction.operand(0) if instruction.attrs.dimensions == identity else None


def transpose_of_transpose(instruction: HloInstruction) -> RuleResult:
    """transpose(transpose(A)) = transpose(A)."""
    inner = instruction.operand(0)
    if inner.opcode != "transpose":
        return None
    first = inner.attrs.dimensions
    return transpose(inner.operand(0), [first[dimension] for dimension in instruction.attrs.dimensions])


def transpose_as_reshape(instruction: HloInstruction) -> RuleResult:
    """transpose(A) = reshape(A) when only dimensions of size 1 move."""
    operand = instruction.operand(0)
    moving = [d for d in instruction.attrs.dimensions if operand.shape.dims[d] != 1]
    if not is_increasing(moving) or operand.shape.element_count == 0:
        return None
    return reshape(operand, instruction.shape.dims)


def transpose_of_broadcast(instruction: HloInstruction) -> RuleResult:
    """transpose(broadcast(A)) = broadcast(A)."""
    inner = instruction.operand(0)
    if inner.opcode != "broadcast":
        return None
    place = inverse(instruction.attrs.dimensions)
    dimensions = [place[dimension] for dimension in inner.attrs.dimensions]
    return broadcast(inner.operand(0), instruction.shape.dims, dimensions)


def transpose_of_replicated(instruction: HloInstruction) -> RuleResult:
    """transpose(broadcast(A) * broadcast(B)) = transpose(broadcast(A)) * transpose(broadcast(B)), for any function.

    So for functions of such functions: an outer product is written in the order in which it is wanted.
    """
    inner = instruction.operand(0)
    if inner.opcode == "broadcast" or not _is_replicated(inner, _MOST_FUNCTIONS):
        return None
    order = instruction.attrs.dimensions
    operands = [transpose(operand, order) if operand.shape.rank else operand for operand in inner.operands]
    return create(inner.opcode, operands, inner.attrs, shape=inner.shape.with_dims(instruction.shape.dims))


def _is_replicated(value: HloInstruction, functions: int) -> bool:
    """Whether it consists of broadcasts, under at most so many functions of which each has one user."""
    if not value.shape.rank or value.opcode == "broadcast":
        return True
    if not functions or not value.op.is_elementwise or not used_once(value):
        return False
    return all(_is_replicated(operand, functions - 1) for operand in value.operands)


def transpose_of_iota(instruction: HloInstruction) -> RuleResult:
    """transpose(iota) = iota along another dimension."""
    inner = instruction.operand(0)
    if inner.opcode != "iota":
        return None
    dimension = instruction.attrs.dimensions.index(inner.attrs.iota_dimension)
    return iota(instruction.shape.dtype, instruction.shape.dims, dimension)


def reverse_nothing(instruction: HloInstruction) -> RuleResult:
    """reverse(A) along dimensions of size 1, or along which A is replicated = A, for those dimensions."""
    operand, dimensions = instruction.operand(0), instruction.attrs.dimensions
    needed = [d for d in dimensions if operand.shape.dims[d] > 1]
    if operand.opcode == "broadcast":
        needed = [d for d in needed if d in operand.attrs.dimensions]
    return reverse(operand, needed) if len(needed) != len(dimensions) else None


def reverse_of_reverse(instruction: HloInstruction) -> RuleResult:
    """reverse(reverse(A)) = A reversed along the dimensions named once."""
    inner = instruction.operand(0)
    if inner.opcode != "reverse":
        return None
    dimensions = sorted(set(instruction.attrs.dimensions) ^ set(inner.attrs.dimensions))
    return reverse(inner.operand(0), dimensions)


def constant_that_counts(instruction: HloInstruction) -> RuleResult:
    """constant({0, 1, 2, ...}) = iota, which takes no memory and whose elements are known to be positions."""
    literal, dims = instruction.attrs.literal, instruction.shape.dims
    if not instruction.shape.is_array or not is_integer(instruction) or literal.is_elided or 0 in dims:
        return None
    rank = len(dims)
    nexts = ((dim, tuple(int(dim == other) for other in range(rank))) for dim in range(rank) if dims[dim] > 1)
    along = [dim for dim, place in nexts if int(literal.value[place]) != 0]
    if len(along) != 1 or not np.array_equal(literal.value.astype(np.int64), positions(dims, along[0])):
        return None
    return iota(instruction.shape.dtype, dims, along[0])


def iota_of_one(instruction: HloInstruction) -> RuleResult:
    """An iota along a dimension of size 1 = 0."""
    if instruction.shape.dims[instruction.attrs.iota_dimension] != 1:
        return None
    return splat_like(0, instruction)


MERGING: tuple[RewriteRule, ...] = (
    RewriteRule("broadcast", broadcast_nothing),
    RewriteRule("broadcast", broadcast_of_broadcast),
    RewriteRule("reshape", reshape_nothing),
    RewriteRule("reshape", reshape_of_reshape),
    RewriteRule("transpose", transpose_nothing),
    RewriteRule("transpose", transpose_of_transpose),
)

RULES: tuple[RewriteRule, ...] = (
    *MERGING,
    RewriteRule("broadcast", broadcast_of_ones),
    RewriteRule("broadcast", broadcast_of_transpose),
    RewriteRule("broadcast", broadcast_as_reshape),
    RewriteRule("reshape", reshape_of_broadcast),
    RewriteRule("reshape", reshape_of_iota),
    RewriteRule("reshape", reshape_of_transpose),
    RewriteRule("transpose", transpose_as_reshape),
    RewriteRule("transpose", transpose_of_broadcast),
    RewriteRule("transpose", transpose_of_replicated),
    RewriteRule("transpose", transpose_of_iota),
    RewriteRule("reverse", reverse_nothing),
    RewriteRule("reverse", reverse_of_reverse),
    RewriteRule("constant", constant_that_counts),
    RewriteRule("iota", iota_of_one),
)
