"""Rules for dot."""

from __future__ import annotations

import math

from xlalite.hlo.building.construct import binary, broadcast, convert, reshape, splat_like, transpose
from xlalite.hlo.building.create import create
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.dot import DotAlgorithm, DotAttrs, free_dimensions
from xlalite.hlo.types.dtype import DType
from xlalite.passes.rewriting.patterns import IEEE_TYPES, used_once
from xlalite.passes.rewriting.rewrite import Declined, RewriteRule, RuleResult, Strictness
from xlalite.passes.simplify.dimensions import is_increasing


def dot_of_nothing(instruction: HloInstruction) -> RuleResult:
    """A dot that sums over no elements = 0."""
    if instruction.shape.element_count == 0 or _contracted(instruction) != 0:
        return None
    return splat_like(False if instruction.shape.dtype is DType.PRED else 0, instruction)


def dot_of_transpose(instruction: HloInstruction) -> RuleResult:
    """dot(transpose(A), B) = dot(A, B) with other dimension numbers, when free dimensions keep their order."""
    lhs, rhs = instruction.operands
    attrs: DotAttrs = instruction.attrs
    left = _through_transpose(lhs, attrs.lhs_batch_dims, attrs.lhs_contracting_dims)
    right = _through_transpose(rhs, attrs.rhs_batch_dims, attrs.rhs_contracting_dims)
    if left is None and right is None:
        return None
    new_lhs, lhs_batch, lhs_contracting = left or (lhs, attrs.lhs_batch_dims, attrs.lhs_contracting_dims)
    new_rhs, rhs_batch, rhs_contracting = right or (rhs, attrs.rhs_batch_dims, attrs.rhs_contracting_dims)
    new_attrs = instruction.with_attrs(
        lhs_batch_dims=lhs_batch,
        lhs_contracting_dims=lhs_contracting,
        rhs_batch_dims=rhs_batch,
        rhs_contracting_dims=rhs_contracting,
    )
    return create("dot", (new_lhs, new_rhs), new_attrs, shape=instruction.shape)


def transpose_of_dot(instruction: HloInstruction) -> RuleResult:
    """transpose(dot(A, B)) = dot(B, A) when it swaps A's free dimensions with B's."""
    inner = instruction.operand(0)
    if inner.opcode != "dot" or not used_once(inner) or inner.attrs.algorithm is not DotAlgorithm.UNSET:
        return None
    lhs, rhs = inner.operands
    attrs: DotAttrs = inner.attrs
    batch = len(attrs.lhs_batch_dims)
    lhs_free = lhs.shape.rank - batch - len(attrs.lhs_contracting_dims)
    rank = inner.shape.rank
    swapped = (*range(batch), *range(batch + lhs_free, rank), *range(batch, batch + lhs_free))
    if instruction.attrs.dimensions != swapped or lhs.shape.dtype is not rhs.shape.dtype:
        return None
    new_attrs = DotAttrs(
        attrs.rhs_batch_dims,
        attrs.rhs_contracting_dims,
        attrs.lhs_batch_dims,
        attrs.lhs_contracting_dims,
        attrs.operand_precision[::-1],
    )
    return create("dot", (rhs, lhs), new_attrs, shape=instruction.shape)


def dot_as_product(instruction: HloInstruction) -> RuleResult:
    """A dot that sums over one element = broadcast(A) * broadcast(B) (the sum would turn -0 to 0)."""
    if _contracted(instruction) != 1 or instruction.attrs.algorithm is not DotAlgorithm.UNSET:
        return None
    dtype = instruction.shape.dtype
    lhs, rhs = instruction.operands
    if (dtype not in IEEE_TYPES and not dtype.is_integral) or lhs.shape.dtype is not rhs.shape.dtype:
        return None
    if lhs.shape.dtype.bits > dtype.bits or lhs.shape.dtype.is_floating != dtype.is_floating:
        return Declined("the product is rounded to a narrower type")
    attrs: DotAttrs = instruction.attrs
    batch = len(attrs.lhs_batch_dims)
    lhs_free = free_dimensions(lhs.shape.rank, attrs.lhs_batch_dims, attrs.lhs_contracting_dims)
    rhs_free = free_dimensions(rhs.shape.rank, attrs.rhs_batch_dims, attrs.rhs_contracting_dims)
    return binary(
        "multiply",
        _placed(convert(lhs, dtype), attrs.lhs_batch_dims, lhs_free, batch, instruction),
        _placed(convert(rhs, dtype), attrs.rhs_batch_dims, rhs_free, batch + len(lhs_free), instruction),
    )


def _contracted(instruction: HloInstruction) -> int:
    lhs = instruction.operand(0).shape
    return math.prod(lhs.dims[dimension] for dimension in instruction.attrs.lhs_contracting_dims)


def _through_transpose(
    operand: HloInstruction, batch: tuple[int, ...], contracting: tuple[int, ...]
) -> tuple[HloInstruction, tuple[int, ...], tuple[int, ...]] | None:
    if operand.opcode != "transpose":
        return None
    order = operand.attrs.dimensions
    if not is_increasing([order[dimension] for dimension in free_dimensions(operand.shape.rank, batch, contracting)]):
        return None
    return operand.operand(0), tuple(order[d] for d in batch), tuple(order[d] for d in contracting)


def _placed(
    operand: HloInstruction, batch: tuple[int, ...], free: list[int], first_free: int, result: HloInstruction
) -> HloInstruction:
    """The operand, its contracting dimensions dropped, spread over the result's dimensions."""
    order = (*batch, *free)
    rest = [d for d in range(operand.shape.rank) if d not in order]
    from_operand = transpose(operand, (*order, *rest))
    dims = [operand.shape.dims[d] for d in order]
    dropped = reshape(from_operand, dims)
    places = (*range(len(batch)), *range(first_free, first_free + len(free)))
    return broadcast(dropped, result.shape.dims, places)


RULES: tuple[RewriteRule, ...] = (
    RewriteRule("dot", dot_of_nothing),
    RewriteRule("dot", dot_of_transpose),
    RewriteRule("transpose", transpose_of_dot),
    RewriteRule("dot", dot_as_product, Strictness.REDUCTION_ORDER),
)
