"""Rules for dot."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial, reduce

from xlalite.hlo.building.builder import Builder
from xlalite.hlo.building.construct import (
    binary,
    broadcast,
    convert,
    reshape,
    scalar,
    slice_of,
    splat_like,
    transpose,
)
from xlalite.hlo.building.create import create
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.dot import DotAlgorithm, DotAttrs, free_dimensions
from xlalite.hlo.ops.reduction import ReduceAttrs
from xlalite.hlo.types.dtype import DType
from xlalite.passes.rewriting.patterns import IEEE_TYPES, is_integer, used_once
from xlalite.passes.rewriting.rewrite import Declined, RewriteRule, RuleResult, Strictness
from xlalite.passes.simplify.dimensions import corresponding_dimensions, inverse, is_increasing, without_ones

_FEW = 4
"""More terms of a sum, and matrices with more rows or columns, are for kernels of dots."""

_MANY = 8
"""So many pairs of small matrices fill vectors: products of 20,000 of [2,2] take 4 us instead of 28 (220 if turned).

Of one pair, what is summed over all rows of a result would be computed three or four at a time: how far 2,000 points
are from others that are turned takes 5.9 us, and would take 8.4.
"""

_MOVEMENT = frozenset({"broadcast", "reshape", "slice", "transpose"})
_LOOKED_AT = 24
"""Instructions of which an operand is computed that are asked whether they are elementwise."""


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


def dot_of_large_transpose(instruction: HloInstruction) -> RuleResult:
    """dot(transpose(A), B) = transpose(dot(A, B)) when the result is smaller than A; so for transpose(B)."""
    attrs: DotAttrs = instruction.attrs
    batch = len(attrs.lhs_batch_dims)
    left = instruction.operand(0).shape.rank - len(attrs.lhs_contracting_dims)
    for side, first, pairs in (
        (0, batch, (attrs.lhs_batch_dims, attrs.lhs_contracting_dims)),
        (1, left, (attrs.rhs_batch_dims, attrs.rhs_contracting_dims)),
    ):
        operand = instruction.operand(side)
        if operand.opcode != "transpose" or operand.shape.element_count <= instruction.shape.element_count:
            continue
        order = operand.attrs.dimensions
        free = [order[dimension] for dimension in free_dimensions(operand.shape.rank, *pairs)]
        if is_increasing(free):
            continue
        places = [*range(instruction.shape.rank)]
        places[first : first + len(free)] = [first + sorted(free).index(dimension) for dimension in free]
        dims = [instruction.shape.dims[place] for place in inverse(places)]
        sides = _with_pairs(instruction, side, *(tuple(order[d] for d in dimensions) for dimensions in pairs))
        operands = list(instruction.operands)
        operands[side] = operand.operand(0)
        return transpose(create("dot", operands, sides, shape=instruction.shape.with_dims(dims)), places)
    return None


def dot_of_reshape(instruction: HloInstruction) -> RuleResult:
    """dot(reshape(A), B) = reshape(dot(A, B)) when the reshape only adds free dimensions of size 1."""
    attrs: DotAttrs = instruction.attrs
    for side, pairs in (
        (0, (attrs.lhs_batch_dims, attrs.lhs_contracting_dims)),
        (1, (attrs.rhs_batch_dims, attrs.rhs_contracting_dims)),
    ):
        operand = instruction.operand(side)
        source = operand.operand(0) if operand.opcode == "reshape" else operand
        dims, kept = operand.shape.dims, source.shape.dims
        paired = [dimension for dimensions in pairs for dimension in dimensions]
        if source.shape.rank >= operand.shape.rank or without_ones(dims) != without_ones(kept):
            continue
        if any(dims[dimension] == 1 for dimension in paired):
            continue
        place = corresponding_dimensions(dims, kept)
        batch, contracting = (tuple(place[d] for d in dimensions) for dimensions in pairs)
        operands = list(instruction.operands)
        operands[side] = source
        new_attrs = _with_pairs(instruction, side, batch, contracting)
        sizes = [kept[d] for d in free_dimensions(source.shape.rank, batch, contracting)]
        first, whole, old = len(batch), instruction.shape.dims, operand.shape.rank - len(paired)
        before, after = (whole[:first], whole[first + old :]) if side == 0 else (whole[: len(whole) - old], ())
        dot = create("dot", operands, new_attrs, shape=instruction.shape.with_dims((*before, *sizes, *after)))
        return reshape(dot, whole)
    return None


def dot_of_ones(instruction: HloInstruction) -> RuleResult:
    """dot(A, B) = reshape(dot(reshape(A), reshape(B))) without free and contracted dimensions of size 1.

    Of each kind one dimension stays, and free ones do where there is no batch: whole networks have them then.
    """
    attrs: DotAttrs = instruction.attrs
    lhs, rhs = instruction.operands
    sides = (
        (lhs, attrs.lhs_batch_dims, attrs.lhs_contracting_dims),
        (rhs, attrs.rhs_batch_dims, attrs.rhs_contracting_dims),
    )
    sizes = [lhs.shape.dims[d] for d in attrs.lhs_contracting_dims]
    summed = _without_ones(range(len(sizes)), sizes)
    operands, pairs, dims = [], [], [lhs.shape.dims[d] for d in attrs.lhs_batch_dims]
    for operand, batch, contracting in sides:
        free = free_dimensions(operand.shape.rank, batch, contracting)
        kept = _without_ones(free, [operand.shape.dims[d] for d in free]) if batch else free
        dims += [operand.shape.dims[d] for d in kept]
        left = sorted((*batch, *kept, *(contracting[number] for number in summed)))
        operands.append(reshape(operand, [operand.shape.dims[d] for d in left]))
        pairs += [tuple(map(left.index, batch)), tuple(left.index(contracting[number]) for number in summed)]
    if all(new is old for new, old in zip(operands, instruction.operands, strict=True)):
        return None
    names = ("lhs_batch_dims", "lhs_contracting_dims", "rhs_batch_dims", "rhs_contracting_dims")
    new_attrs = instruction.with_attrs(**dict(zip(names, pairs, strict=True)))
    dot = create("dot", operands, new_attrs, shape=instruction.shape.with_dims(dims))
    return reshape(dot, instruction.shape.dims)


def _without_ones(dimensions: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """Those of other sizes than 1, or else the first one."""
    return [d for d, size in zip(dimensions, sizes, strict=True) if size != 1] or list(dimensions[:1])


def dot_of_broadcast(instruction: HloInstruction) -> RuleResult:
    """dot(A, broadcast(B)) of a batch = dot(A, B) without one, when all of the batch have the same B."""
    lhs, rhs = instruction.operands
    attrs: DotAttrs = instruction.attrs
    if rhs.opcode != "broadcast" or not attrs.rhs_batch_dims:
        return None
    kept = [dimension for dimension in range(rhs.shape.rank) if dimension not in attrs.rhs_batch_dims]
    free = free_dimensions(lhs.shape.rank, attrs.lhs_batch_dims, attrs.lhs_contracting_dims)
    if list(rhs.attrs.dimensions) != kept or not is_increasing([*attrs.lhs_batch_dims, *free]):
        return None
    new_attrs = instruction.with_attrs(
        lhs_batch_dims=(),
        rhs_batch_dims=(),
        rhs_contracting_dims=tuple(map(kept.index, attrs.rhs_contracting_dims)),
    )
    return create("dot", (lhs, rhs.operand(0)), new_attrs, shape=instruction.shape)


def transpose_of_dot(instruction: HloInstruction) -> RuleResult:
    """transpose(dot(A, B)) = transpose(dot(B, A)), or dot(B, A) itself, when a free dimension of A becomes the last.

    The transpose then moves whole rows, or nothing.
    """
    inner = instruction.operand(0)
    if inner.opcode != "dot" or not used_once(inner) or inner.attrs.algorithm is not DotAlgorithm.UNSET:
        return None
    lhs, rhs = inner.operands
    attrs: DotAttrs = inner.attrs
    batch = len(attrs.lhs_batch_dims)
    left = lhs.shape.rank - len(attrs.lhs_contracting_dims)
    order = instruction.attrs.dimensions
    if not batch <= order[-1] < left or left == inner.shape.rank or lhs.shape.dtype is not rhs.shape.dtype:
        return None
    new_attrs = DotAttrs(
        attrs.rhs_batch_dims,
        attrs.rhs_contracting_dims,
        attrs.lhs_batch_dims,
        attrs.lhs_contracting_dims,
        attrs.operand_precision[::-1],
    )
    swapped = (*range(batch), *range(left, inner.shape.rank), *range(batch, left))
    dims = [inner.shape.dims[d] for d in swapped]
    product = create("dot", (rhs, lhs), new_attrs, shape=inner.shape.with_dims(dims))
    return transpose(product, [swapped.index(d) for d in order])


def dot_as_product(instruction: HloInstruction) -> RuleResult:
    """A dot that sums over one element = broadcast(A) * broadcast(B) + 0: a sum is never -0."""
    if _contracted(instruction) != 1 or instruction.attrs.algorithm is not DotAlgorithm.UNSET:
        return None
    dtype = instruction.shape.dtype
    lhs, rhs = instruction.operands
    if (dtype not in IEEE_TYPES and not dtype.is_integral) or lhs.shape.dtype is not rhs.shape.dtype:
        return None
    if lhs.shape.dtype.bits > dtype.bits or lhs.shape.dtype.is_floating != dtype.is_floating:
        return Declined("the product is rounded to a narrower type")
    product = _terms(instruction, dtype)[0]
    return product if dtype.is_integral else binary("add", product, splat_like(0, product))


def dot_of_few(instruction: HloInstruction) -> RuleResult:
    """A dot of two to four terms by small matrices = their sum, in one kernel with what computes the larger operand.

    Narrow floats are multiplied and summed in f32, as those of other dots.
    """
    attrs: DotAttrs = instruction.attrs
    terms, dtype = _contracted(instruction), _type_of_sums(instruction)
    if not 2 <= terms <= _FEW or attrs.algorithm is not DotAlgorithm.UNSET or dtype is None:
        return None
    small, large = sorted(instruction.operands, key=lambda operand: operand.shape.element_count)
    lines = terms * math.prod(instruction.shape.dims[: len(attrs.lhs_batch_dims)])
    if lines < terms * _MANY or small.shape.element_count > _FEW * lines:
        return None
    if not _is_computed(large) and not lines < small.shape.element_count <= large.shape.element_count <= _FEW * lines:
        return None
    return convert(reduce(partial(binary, "add"), _terms(instruction, dtype)), instruction.shape.dtype)


def dot_of_lines(instruction: HloInstruction) -> RuleResult:
    """A dot of many pairs of lines = reduce(A * B), which shares a kernel with what the lines are computed of.

    Narrow floats are multiplied and summed in f32, as those of other dots.
    """
    lhs, rhs = instruction.operands
    attrs: DotAttrs = instruction.attrs
    left, right = (
        (*attrs.lhs_batch_dims, *attrs.lhs_contracting_dims),
        (*attrs.rhs_batch_dims, *attrs.rhs_contracting_dims),
    )
    if len(left) < lhs.shape.rank or len(right) < rhs.shape.rank or instruction.shape.element_count < 2:
        return None
    if instruction.module is None:
        return None
    dtype = _type_of_sums(instruction)
    if attrs.algorithm is not DotAlgorithm.UNSET or dtype is None:
        return None
    if not is_increasing(attrs.lhs_batch_dims):
        (lhs, rhs), (left, right) = (rhs, lhs), (right, left)
    batch = left[: len(attrs.lhs_batch_dims)]
    beside = transpose(rhs, [right[left.index(dimension)] for dimension in range(len(left))])
    product = binary("multiply", convert(lhs, dtype), convert(beside, dtype))
    function = Builder("sums", instruction.module).scalar_function("add", dtype)
    dimensions = tuple(sorted(left[len(batch) :]))
    found = create("reduce", (product, scalar(0, dtype)), ReduceAttrs(dimensions), (function,))
    return convert(transpose(found, [sorted(batch).index(dimension) for dimension in batch]), instruction.shape.dtype)


def _with_pairs(dot: HloInstruction, side: int, batch: tuple[int, ...], contracting: tuple[int, ...]) -> DotAttrs:
    """The attributes with other dimensions of one operand."""
    attrs: DotAttrs = dot.attrs
    if side == 0:
        return replace(attrs, lhs_batch_dims=batch, lhs_contracting_dims=contracting)
    return replace(attrs, rhs_batch_dims=batch, rhs_contracting_dims=contracting)


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


def _type_of_sums(dot: HloInstruction) -> DType | None:
    """In which type the terms of a sum are added by a reduction or one by one; None where only kernels of dots do."""
    dtypes = {one.shape.dtype for one in (dot, *dot.operands)}
    if dtypes <= IEEE_TYPES:
        return max((*dtypes, DType.F32), key=lambda one: one.bits)
    return dot.shape.dtype if len(dtypes) == 1 and is_integer(dot) else None


def _is_computed(operand: HloInstruction) -> bool:
    """Whether a loop computes it element by element: an epilogue of a dot's or a reduction's kernel does not."""
    found, reached = False, [operand]
    for one in reached:
        if one.opcode in ("dot", "convolution", "reduce"):
            return False
        found |= one.op.is_elementwise and bool(one.operands)
        if (one.op.is_elementwise or one.opcode in _MOVEMENT) and len(reached) < _LOOKED_AT:
            reached += one.operands
    return found


def _terms(dot: HloInstruction, dtype: DType) -> list[HloInstruction]:
    """The products that a dot sums, each spread over the dimensions of the result."""
    attrs: DotAttrs = dot.attrs
    lhs, rhs = dot.operands
    batch = len(attrs.lhs_batch_dims)
    lhs_free = free_dimensions(lhs.shape.rank, attrs.lhs_batch_dims, attrs.lhs_contracting_dims)
    rhs_free = free_dimensions(rhs.shape.rank, attrs.rhs_batch_dims, attrs.rhs_contracting_dims)
    products = []
    for index in itertools.product(*(range(lhs.shape.dims[d]) for d in attrs.lhs_contracting_dims)):
        left, right = _at(lhs, attrs.lhs_contracting_dims, index), _at(rhs, attrs.rhs_contracting_dims, index)
        spread = (
            _placed(convert(left, dtype), attrs.lhs_batch_dims, lhs_free, batch, dot),
            _placed(convert(right, dtype), attrs.rhs_batch_dims, rhs_free, batch + len(lhs_free), dot),
        )
        products.append(binary("multiply", *spread))
    return products


def _at(operand: HloInstruction, dimensions: tuple[int, ...], index: Sequence[int]) -> HloInstruction:
    """The part of an operand at an index of some dimensions, which stay with size 1."""
    ranges = [(0, size, 1) for size in operand.shape.dims]
    for dimension, place in zip(dimensions, index, strict=True):
        ranges[dimension] = place, place + 1, 1
    return slice_of(operand, ranges)


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
    RewriteRule("dot", dot_of_large_transpose),
    RewriteRule("dot", dot_of_reshape),
    RewriteRule("dot", dot_of_ones),
    RewriteRule("dot", dot_of_broadcast),
    RewriteRule("transpose", transpose_of_dot),
    RewriteRule("dot", dot_as_product),
    RewriteRule("dot", dot_of_lines, Strictness.REDUCTION_ORDER),
    RewriteRule("dot", dot_of_few, Strictness.REDUCTION_ORDER),
)
