"""Rules that move broadcasts, reshapes and transposes past elementwise operations, toward the result.

Elementwise work before a broadcast is less than after it; reshapes and transposes meet others of their kind, dots and
reductions on the way, and are merged there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xlalite.hlo.building.construct import broadcast, reshape, transpose
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops import comparison, conversion, elementwise_binary, elementwise_ternary, elementwise_unary, random
from xlalite.hlo.types.shape import Shape
from xlalite.passes.rewriting.patterns import splat_literal, used_once
from xlalite.passes.rewriting.rewrite import Declined, RewriteRule, RuleResult
from xlalite.passes.simplify.dimensions import corresponding_dimensions, without_ones

_MOST_FUNCTIONS = 4
"""Through so many a reshape looks for one that it undoes, or for rows."""

_VECTOR = 16
"""Elements of a vector."""


def elementwise_of_broadcasts(instruction: HloInstruction) -> RuleResult:
    """F(broadcast(A), broadcast(B)) = broadcast(F(A, B)) for equal dimensions; constants and scalars join in."""
    first = _first(instruction, "broadcast")
    if first is None or first.operand(0).shape.element_count >= instruction.shape.element_count:
        return None
    dimensions, dims = first.attrs.dimensions, first.operand(0).shape.dims
    for operand in instruction.operands:
        if operand is first or splat_literal(operand) is not None:
            continue
        if operand.shape.is_scalar and instruction.shape.dims:
            continue
        if operand.opcode != "broadcast" or operand.operand(0).shape.dims != dims:
            return None
        if operand.attrs.dimensions != dimensions:
            return None
    inner = [_before_broadcast(operand, dims, instruction) for operand in instruction.operands]
    return broadcast(_apply(instruction, inner, dims), instruction.shape.dims, dimensions)


def elementwise_of_reshapes(instruction: HloInstruction) -> RuleResult:
    """F(reshape(A), reshape(B)) = reshape(F(A, B)) for A and B of equal sizes; broadcasts join in, as far as they can.

    A reshape that others read too only moves when all it does is to add or remove dimensions of size 1; one to a scalar
    stays, since a scalar is the best form a single number can have.
    """
    first = _first(instruction, "reshape")
    if first is None or instruction.shape.is_scalar:
        return None
    dims = first.operand(0).shape.dims
    for operand in instruction.operands:
        if splat_literal(operand) is not None or (operand.shape.is_scalar and instruction.shape.dims):
            continue
        if _places_at(operand, dims) is not None:
            continue
        if operand.opcode != "reshape" or operand.operand(0).shape.dims != dims:
            return None
        if not _all_uses_here(operand, instruction) and without_ones(dims) != without_ones(operand.shape.dims):
            return Declined("the reshape has other uses")
    inner = [_before_reshape(operand, dims, instruction) for operand in instruction.operands]
    return reshape(_apply(instruction, inner, dims), instruction.shape.dims)


def elementwise_of_reshaped_rows(instruction: HloInstruction) -> RuleResult:
    """F(reshape(A), broadcast(B)) = reshape(F(A, reshape(broadcast(B)))) when rows of A are reduced for A itself.

    What scales the channels of normalised groups then belongs to the kernel that has the rows at hand. The dimensions
    that the broadcast adds last have to be those of whole vectors, which then take one element.
    """
    first = _first(instruction, "reshape")
    if first is None or not _all_uses_here(first, instruction) or not _is_of_rows(first.operand(0), _MOST_FUNCTIONS):
        return None
    dims = first.operand(0).shape.dims
    for operand in instruction.operands:
        if operand is first or splat_literal(operand) is not None or operand.shape.is_scalar:
            continue
        if operand.opcode != "broadcast" or not operand.attrs.dimensions:
            return None
        if math.prod(operand.shape.dims[operand.attrs.dimensions[-1] + 1 :]) % _VECTOR:
            return None
    inner = [_at_sizes(operand, dims) for operand in instruction.operands]
    return reshape(_apply(instruction, inner, dims), instruction.shape.dims)


def _is_of_rows(value: HloInstruction, functions: int) -> bool:
    """Whether a few functions lead to it from what is computed once a row of a reduction of rows."""
    if value.opcode == "broadcast":
        dimensions = value.attrs.dimensions
        return dimensions == tuple(range(len(dimensions))) and _is_reduced(value.operand(0), _MOST_FUNCTIONS)
    if not functions or not value.op.is_elementwise:
        return False
    return any(_is_of_rows(operand, functions - 1) for operand in value.operands)


def _is_reduced(value: HloInstruction, functions: int) -> bool:
    if value.opcode == "reduce":
        return True
    is_function = functions > 0 and value.op.is_elementwise
    return is_function and any(_is_reduced(operand, functions - 1) for operand in value.operands)


def reshape_around_functions(instruction: HloInstruction) -> RuleResult:
    """reshape(F(reshape(A), broadcast(B))) = F(A, reshape(broadcast(B))) at the sizes of A; so for functions of such.

    A reshape there and back would hide that each element needs the one of A at its own index.
    """
    inner, dims = instruction.operand(0), instruction.shape.dims
    if not inner.op.is_elementwise or not used_once(inner) or not dims:
        return None
    leaves = _leaves(inner, dims, _MOST_FUNCTIONS)
    return _at_sizes(inner, dims) if leaves is not None and "reshape" in leaves else None


def _leaves(value: HloInstruction, dims: Sequence[int], functions: int) -> set[str] | None:
    """What a few functions start from, if that can be had at some sizes: reshapes of such and broadcasts; else None."""
    if value.opcode == "broadcast" or value.shape.is_scalar:
        return {"broadcast"}
    if value.opcode == "reshape":
        return {"reshape"} if value.operand(0).shape.dims == tuple(dims) else None
    if not functions or not value.op.is_elementwise or not used_once(value):
        return None
    found = [_leaves(operand, dims, functions - 1) for operand in value.operands]
    known = [leaves for leaves in found if leaves is not None]
    return set().union(*known) if len(known) == len(found) else None


def _at_sizes(value: HloInstruction, dims: Sequence[int]) -> HloInstruction:
    """A value whose `_leaves` can be had at some sizes, at those."""
    if value.opcode == "reshape":
        return value.operand(0)
    if value.shape.is_scalar:
        return value
    if value.opcode == "broadcast":
        return reshape(value, dims)
    return _apply(value, [_at_sizes(operand, dims) for operand in value.operands], dims)


def elementwise_of_transposes(instruction: HloInstruction) -> RuleResult:
    """F(transpose(A), transpose(B)) = transpose(F(A, B)) when nobody else reads the transposes; broadcasts join in."""
    first = _first(instruction, "transpose")
    if first is None:
        return None
    order = first.attrs.dimensions
    dims = first.operand(0).shape.dims
    for operand in instruction.operands:
        if operand.opcode == "broadcast" or splat_literal(operand) is not None:
            continue
        if operand.shape.is_scalar and instruction.shape.dims:
            continue
        if operand.opcode != "transpose" or operand.attrs.dimensions != order:
            return None
        if not _all_uses_here(operand, instruction):
            return Declined("the transpose has other uses")
    inner = [_before_transpose(operand, order, dims, instruction) for operand in instruction.operands]
    return transpose(_apply(instruction, inner, dims), order)


def _first(instruction: HloInstruction, opcode: str) -> HloInstruction | None:
    """The first operand of an operation that has its sizes and is no broadcast scalar constant."""
    for operand in instruction.operands:
        has_sizes = operand.shape.dims == instruction.shape.dims  # unlike a scalar that chooses between arrays
        if operand.opcode == opcode and has_sizes and splat_literal(operand) is None:
            return operand
    return None


def _all_uses_here(operand: HloInstruction, instruction: HloInstruction) -> bool:
    return operand.user_count == 1 and operand.users[0] is instruction and not operand.is_root


def _apply(instruction: HloInstruction, operands: Sequence[HloInstruction], dims: Sequence[int]) -> HloInstruction:
    shape = Shape.array(instruction.shape.dtype, dims)
    return instruction.clone(operands, shape=shape, name=instruction.opcode)


def _before_broadcast(operand: HloInstruction, dims: Sequence[int], instruction: HloInstruction) -> HloInstruction:
    if splat_literal(operand) is not None or (operand.shape.is_scalar and instruction.shape.dims):
        return _splat_at(operand, dims, instruction)
    return operand.operand(0)


def _places_at(operand: HloInstruction, dims: Sequence[int]) -> dict[int, int] | None:
    """Where dimensions of a broadcast array are found at sizes that differ in dimensions of size 1 only."""
    old = operand.shape.dims
    if operand.opcode != "broadcast" or splat_literal(operand) is not None or without_ones(old) != without_ones(dims):
        return None
    return corresponding_dimensions(old, dims)


def _before_reshape(operand: HloInstruction, dims: Sequence[int], instruction: HloInstruction) -> HloInstruction:
    if operand.opcode == "reshape":
        return operand.operand(0)
    places = _places_at(operand, dims)
    if places is None:
        return _splat_at(operand, dims, instruction)
    kept = [dimension for dimension in operand.attrs.dimensions if dimension in places]
    source = reshape(operand.operand(0), [operand.shape.dims[dimension] for dimension in kept])
    return broadcast(source, dims, [places[dimension] for dimension in kept])


def _before_transpose(
    operand: HloInstruction, order: Sequence[int], dims: Sequence[int], instruction: HloInstruction
) -> HloInstruction:
    if operand.opcode == "transpose":
        return operand.operand(0)
    if operand.opcode == "broadcast":
        places = [order[dimension] for dimension in operand.attrs.dimensions]
        return broadcast(operand.operand(0), dims, places)
    return _splat_at(operand, dims, instruction)


def _splat_at(operand: HloInstruction, dims: Sequence[int], instruction: HloInstruction) -> HloInstruction:
    """A filled array at other sizes; a scalar beside arrays, as select and clamp take them, as it is."""
    if operand.shape.is_scalar and instruction.shape.dims:
        return operand
    while operand.opcode == "broadcast":
        operand = operand.operand(0)
    return broadcast(operand, dims)


_FAMILIES = (elementwise_unary, elementwise_binary, elementwise_ternary, comparison, conversion, random)

RULES: tuple[RewriteRule, ...] = (
    RewriteRule("reshape", reshape_around_functions),
    *(
        RewriteRule(op.name, rule)
        for family in _FAMILIES
        for op in family.OPS
        if op.is_elementwise
        for rule in (
            elementwise_of_broadcasts,
            elementwise_of_reshapes,
            elementwise_of_reshaped_rows,
            elementwise_of_transposes,
        )
    ),
)
