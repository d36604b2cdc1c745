"""Rules for reduce, sort and topk."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.hlo.building.construct import broadcast, compare, convert, element, iota, reshape, scalar, transpose
from xlalite.hlo.building.create import create
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.monoid import Monoid, MonoidKind, recognise_monoid, recognise_monoids
from xlalite.hlo.ir.wide_function import wide_function
from xlalite.hlo.numerics.conversion import integer_range
from xlalite.hlo.ops.comparison import CompareAttrs, ComparisonType, Direction
from xlalite.hlo.ops.reduction import ReduceAttrs
from xlalite.hlo.ops.sorting import SortAttrs
from xlalite.hlo.ops.structural import ParameterAttrs
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape
from xlalite.passes.rewriting.inlining import apply_elementwise, apply_to_elements, is_elementwise_function
from xlalite.passes.rewriting.patterns import splat_literal, used_once
from xlalite.passes.rewriting.rewrite import Declined, RewriteRule, RuleResult, Strictness
from xlalite.passes.simplify.dimensions import dimension_groups
from xlalite.passes.simplify.stacks import Stack

# Repeating an element changes nothing.
_IDEMPOTENT = frozenset({MonoidKind.MAXIMUM, MonoidKind.MINIMUM, MonoidKind.AND, MonoidKind.OR})

_MOST_STACKED = 16
"""Arrays on one another that are reduced element by element: they are read in one loop."""


def reduce_of_nothing(instruction: HloInstruction) -> RuleResult:
    """reduce(empty, v) = broadcast(v)."""
    if not _is_plain(instruction) or instruction.operand(0).shape.element_count:
        return None
    return broadcast(instruction.operand(1), instruction.shape.dims)


def reduce_of_one(instruction: HloInstruction) -> RuleResult:
    """reduce(A, v) along dimensions of size 1 = f(v, A)."""
    operand = instruction.operand(0)
    if not _is_plain(instruction) or operand.shape.element_count == 0:
        return None
    if any(operand.shape.dims[dimension] != 1 for dimension in instruction.attrs.dimensions):
        return None
    function = instruction.called_computations[0]
    if not is_elementwise_function(function):
        return Declined("the reducer is not elementwise")
    dims, dtype = instruction.shape.dims, instruction.shape.dtype
    elements = broadcast(instruction.operand(1), dims), reshape(operand, dims)
    wide = wide_function(function) if recognise_monoid(function) is None else None
    if wide is None:
        return apply_elementwise(function, elements, dims)
    combined = apply_elementwise(wide, [convert(one, DType.F32) for one in elements], dims)
    assert combined is not None, "the reducer is elementwise"
    return convert(combined, dtype)


def reduce_of_stack(instruction: HloInstruction) -> RuleResult:
    """reduce(concatenate(A, B), v) along pieces of size 1 = f(f(v, A), B)."""
    count, dimensions = len(instruction.operands) // 2, instruction.attrs.dimensions
    arrays, starts = instruction.operands[:count], instruction.operands[count:]
    if len(dimensions) != 1 or not 1 < arrays[0].shape.dims[dimensions[0]] <= _MOST_STACKED:
        return None
    function = instruction.called_computations[0]
    if not is_elementwise_function(function):
        return Declined("the reducer is not elementwise")
    given = [one.shape.dtype for one in (*starts, *arrays)]
    if given != [one.shape.dtype for one in function.parameters] or _sums_in_more_precision(function):
        return None
    stack = Stack(dimensions[0], arrays[0].shape.dims)
    if not all(map(stack.holds, arrays)) or not stack.is_one:
        return None
    stacks = [stack.pieces(array) for array in arrays]
    dims = arrays[0].shape.dims[: dimensions[0]] + arrays[0].shape.dims[dimensions[0] + 1 :]
    results = tuple(broadcast(start, dims) for start in starts)
    for pieces in zip(*stacks, strict=True):
        combined = apply_to_elements(function, (*results, *(reshape(piece, dims) for piece in pieces)), dims)
        assert combined is not None, "the function is elementwise"
        results = combined
    return results[0] if count == 1 else create("tuple", results)


def reduce_of_broadcast(instruction: HloInstruction) -> RuleResult:
    """reduce(broadcast(A)) = broadcast(reduce(A)) for max, min, and, or: repeated elements change nothing."""
    inner = instruction.operand(0)
    if inner.opcode != "broadcast" or inner.shape.element_count == 0:
        return None
    monoid = _monoid(instruction)
    if monoid is None or monoid.kind not in _IDEMPOTENT:
        return None
    source, places = inner.operand(0), inner.attrs.dimensions
    kept = [d for d in range(inner.shape.rank) if d not in instruction.attrs.dimensions]
    reduced = [i for i, place in enumerate(places) if place in instruction.attrs.dimensions]
    if len(reduced) == len(instruction.attrs.dimensions):
        return None
    partial = _reduce_like(instruction, source, reduced)
    dimensions = [kept.index(place) for place in places if place in kept]
    return broadcast(partial, instruction.shape.dims, dimensions)


def reduce_of_reduce(instruction: HloInstruction) -> RuleResult:
    """reduce(reduce(A, identity), v) = reduce(A, v) over the dimensions of both, in any order of combination."""
    inner = instruction.operand(0)
    if inner.opcode != "reduce" or not used_once(inner):
        return None
    monoid = _monoid(instruction)
    if monoid is None or _monoid(inner) != monoid:
        return None
    start = splat_literal(inner.operand(1))
    if start is None or (start.value.tobytes() != monoid.identity.tobytes() and not _is_zero_of_sum(monoid, inner)):
        return None
    source = inner.operand(0)
    kept = [d for d in range(source.shape.rank) if d not in inner.attrs.dimensions]
    dimensions = sorted((*inner.attrs.dimensions, *(kept[d] for d in instruction.attrs.dimensions)))
    return _reduce_like(instruction, source, dimensions)


def reduce_of_transpose(instruction: HloInstruction) -> RuleResult:
    """reduce(transpose(A)) = transpose(reduce(A)), in any order of combination."""
    inner = instruction.operand(0)
    if inner.opcode != "transpose" or _monoid(instruction) is None:
        return None
    order = inner.attrs.dimensions
    dimensions = tuple(sorted(order[d] for d in instruction.attrs.dimensions))
    partial = _reduce_like(instruction, inner.operand(0), dimensions)
    kept = [d for d in range(inner.shape.rank) if d not in dimensions]
    wanted = [order[d] for d in range(inner.shape.rank) if d not in instruction.attrs.dimensions]
    return transpose(partial, [kept.index(dimension) for dimension in wanted])


def reduce_of_reshape(instruction: HloInstruction) -> RuleResult:
    """reduce(reshape(A)) = reshape(reduce(A)) when the reshape does not mix reduced and kept dimensions.

    Minor dimensions with one element that it drops stay dropped: they would be columns, of which each fills a vector.
    """
    inner = instruction.operand(0)
    if inner.opcode != "reshape" or _monoid(instruction) is None:
        return None
    source = inner.operand(0)
    if source.shape.dims[-1:] == (1,) != inner.shape.dims[-1:]:
        return None
    groups = dimension_groups(source.shape.dims, inner.shape.dims)
    if groups is None:
        return None
    dimensions: list[int] = []
    for group in groups:
        reduced = [d for d in group.after if d in instruction.attrs.dimensions]
        if reduced and len(reduced) != len(group.after):
            return None
        if reduced:
            dimensions.extend(group.before)
    if not dimensions:
        return None
    partial = _reduce_like(instruction, source, dimensions)
    return reshape(partial, instruction.shape.dims)


def exact_reduce_of_reduce(instruction: HloInstruction) -> RuleResult:
    """reduce(reduce(A, identity), v) = reduce(A, v) for operations without rounding."""
    return reduce_of_reduce(instruction) if _is_exact(instruction, "reduce") else None


def exact_reduce_of_transpose(instruction: HloInstruction) -> RuleResult:
    """reduce(transpose(A)) = transpose(reduce(A)) for operations without rounding."""
    return reduce_of_transpose(instruction) if _is_exact(instruction, "transpose") else None


def exact_reduce_of_reshape(instruction: HloInstruction) -> RuleResult:
    """reduce(reshape(A)) = reshape(reduce(A)) for operations without rounding."""
    return reduce_of_reshape(instruction) if _is_exact(instruction, "reshape") else None


def reduce_with_short_positions(instruction: HloInstruction) -> RuleResult:
    """The arg max of A counts in 32 bits, its result in 64: arg(A, iota s64) = convert(arg(A, iota s32)).

    Vectors then have as many positions as values.
    """
    operands, function = instruction.operands, instruction.called_computations[0]
    if len(operands) != 4 or operands[1].opcode != "iota" or operands[1].shape.dtype not in (DType.S64, DType.U64):
        return None
    counted, first = operands[1], splat_literal(operands[3])
    dimension, last = counted.attrs.iota_dimension, integer_range(DType.S32)[1]
    if instruction.attrs.dimensions != (dimension,) or counted.shape.dims[dimension] > last:
        return None
    if first is None or not -last <= int(first.value) <= last:
        return None
    from xlalite.hlo.ir.extreme import recognise_extreme

    if recognise_extreme(function) is None:
        return None
    short = _with_positions(function, DType.S32)
    if short is None:
        return Declined("the reducer does more with positions than to compare and choose")
    if instruction.module is not None:
        instruction.module.add(short)
    start = scalar(int(first.value), DType.S32)
    arrays = operands[0], iota(DType.S32, counted.shape.dims, dimension), operands[2], start
    found = create("reduce", arrays, instruction.attrs, (short,))
    return create("tuple", (element(found, 0), convert(element(found, 1), counted.shape.dtype)))


def _with_positions(function: HloComputation, dtype: DType) -> HloComputation | None:
    """A computation on values and positions whose positions have another type; None if it does other things to them."""
    copies: dict[HloInstruction, HloInstruction] = {}
    body = HloComputation(function.name)
    positions = function.parameters[1].shape.dtype
    for one in function.post_order():
        operands = [copies[operand] for operand in one.operands]
        if one.opcode == "parameter" and one.attrs.number % 2:
            copies[one] = create("parameter", (), one.attrs, shape=Shape.array(dtype), name=one.name)
        elif not any(part.shape.dtype is positions for part in (one, *one.operands)):
            copies[one] = one.clone(operands)
        elif one.opcode == "compare":
            copies[one] = compare(operands[0], operands[1], one.attrs.direction)
        elif one.opcode in ("select", "tuple"):
            copies[one] = create(one.opcode, operands)
        else:
            return None
        body.add(copies[one])
    body.set_root(copies[function.root])
    return body


def sort_of_one(instruction: HloInstruction) -> RuleResult:
    """sort(A) along a dimension of size 1 or less = A."""
    first = instruction.operand(0)
    if first.shape.dims[instruction.attrs.dimensions[0]] > 1:
        return None
    return first if len(instruction.operands) == 1 else create("tuple", instruction.operands)


def top_of_whole_rows(instruction: HloInstruction) -> RuleResult:
    """topk(A) with k the size of a row = sort(A, iota)."""
    array, last = instruction.operand(0), instruction.operand(0).shape.rank - 1
    if instruction.attrs.k != array.shape.dims[last]:
        return None
    dtype = array.shape.dtype
    order, sides = _order("before", (dtype, DType.S32))
    kind = ComparisonType.TOTALORDER if dtype.is_floating else None
    direction = Direction.GT if instruction.attrs.largest else Direction.LT
    order.set_root(order.add(create("compare", sides[:2], CompareAttrs(direction, kind))))
    if instruction.module is not None:
        instruction.module.add(order)
    places = iota(DType.S32, array.shape.dims, last)
    return create("sort", (array, places), SortAttrs((last,), is_stable=True), (order,))


def sort_of_what_is_used(instruction: HloInstruction) -> RuleResult:
    """sort(..., A, ...)[i] = sort(A), if the order looks at A only, and nobody at the other results."""
    sort, number = instruction.operand(0), instruction.attrs.index
    if sort.opcode != "sort" or not used_once(sort):
        return None
    old = sort.called_computations[0]
    if any(p.user_count or p.is_root for p in old.parameters if p.attrs.number // 2 != number):
        return None
    order, sides = _order(old.name, (sort.operand(number).shape.dtype,))
    copies = dict(zip(old.parameters[2 * number : 2 * number + 2], sides, strict=True))
    for one in old.post_order():
        if one.opcode != "parameter":
            copies[one] = order.add(one.clone([copies[operand] for operand in one.operands]))
    order.set_root(copies[old.root])
    if instruction.module is not None:
        instruction.module.add(order)
    return create("sort", (sort.operand(number),), sort.attrs, (order,))


def _order(name: str, dtypes: Sequence[DType]) -> tuple[HloComputation, list[HloInstruction]]:
    """The beginning of a comparator, and its parameters: two for each array."""
    order = HloComputation(name)
    shapes = [Shape.array(dtype) for dtype in dtypes for _ in range(2)]
    return order, [
        order.add(create("parameter", (), ParameterAttrs(number), shape=shape, name=f"p{number}"))
        for number, shape in enumerate(shapes)
    ]


def _reduce_like(instruction: HloInstruction, operand: HloInstruction, dimensions: Sequence[int]) -> HloInstruction:
    attrs = ReduceAttrs(tuple(dimensions))
    return create("reduce", (operand, instruction.operand(1)), attrs, instruction.called_computations)


def _is_plain(instruction: HloInstruction) -> bool:
    """Whether one array is reduced, and accumulator, element and initial value have one type."""
    if len(instruction.operands) != 2:
        return False
    array, start = instruction.operands
    types = {array.shape.dtype, start.shape.dtype, instruction.shape.dtype}
    return len(types) == 1 and all(p.shape.dtype in types for p in instruction.called_computations[0].parameters)


def _monoid(instruction: HloInstruction) -> Monoid | None:
    return recognise_monoid(instruction.called_computations[0]) if _is_plain(instruction) else None


def _sums_in_more_precision(function: HloComputation) -> bool:
    """Whether kernels round sums, or what may be one, once instead of with every term."""
    monoids = recognise_monoids(function)
    if monoids is not None and all(monoid.kind not in (MonoidKind.ADD, MonoidKind.MULTIPLY) for monoid in monoids):
        return False
    dtypes = {parameter.shape.dtype for parameter in function.parameters}
    return any(dtype.is_floating and dtype.bits < DType.F32.bits for dtype in dtypes)


def _is_exact(instruction: HloInstruction, reduced: str) -> bool:
    """Whether the result of some operation is reduced without rounding."""
    monoid = _monoid(instruction) if instruction.operand(0).opcode == reduced else None
    if monoid is None:
        return False
    return monoid.dtype.is_integral or monoid.kind not in (MonoidKind.ADD, MonoidKind.MULTIPLY)


def _is_zero_of_sum(monoid: Monoid, inner: HloInstruction) -> bool:
    """Whether the inner sum starts at 0: it differs from -0, the identity, only in the sign of a zero."""
    start = splat_literal(inner.operand(1))
    return monoid.kind is MonoidKind.ADD and start is not None and start.is_all(0)


RULES: tuple[RewriteRule, ...] = (
    RewriteRule("reduce", reduce_of_nothing),
    RewriteRule("reduce", reduce_of_one),
    RewriteRule("reduce", reduce_of_stack, Strictness.REDUCTION_ORDER),
    RewriteRule("reduce", reduce_of_broadcast),
    RewriteRule("reduce", exact_reduce_of_reduce),
    RewriteRule("reduce", exact_reduce_of_transpose),
    RewriteRule("reduce", exact_reduce_of_reshape),
    RewriteRule("reduce", reduce_of_reduce, Strictness.REDUCTION_ORDER),
    RewriteRule("reduce", reduce_of_transpose, Strictness.REDUCTION_ORDER),
    RewriteRule("reduce", reduce_of_reshape, Strictness.REDUCTION_ORDER),
    RewriteRule("reduce", reduce_with_short_positions),
    RewriteRule("sort", sort_of_one),
    RewriteRule("topk", top_of_whole_rows),
    RewriteRule("get-tuple-element", sort_of_what_is_used),
)
