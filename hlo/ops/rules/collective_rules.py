"""Shape rules of the collectives."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.hlo.ir.op import ShapeContext, ShapeRule
from xlalite.hlo.ops.reduction import check_reducer
from xlalite.hlo.ops.rules.shapes import check_dimensions, elements_of, results_shape, tuple_unless_one
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape


def _arrays(context: ShapeContext) -> list[Shape]:
    context.require(len(context.operands) >= 1, "needs at least one operand")
    shapes = [context.array(position) for position in range(len(context.operands))]
    sizes = {len(group) for group in context.attrs.replica_groups.groups}
    if len(sizes) > 1:
        raise context.error(f"groups must have one size, found {sorted(sizes)}")
    return shapes


def _declared_results(context: ShapeContext, count: int) -> tuple[Shape | None, ...]:
    """The declared shape of each of `count` results, None where none is declared."""
    if context.declared is None:
        return (None,) * count
    declared = elements_of(context.declared)
    if len(declared) != count:
        raise context.error(f"{count} operands need as many results, declared are {len(declared)}")
    return declared


def _group_size(context: ShapeContext, small: Shape | None, large: Shape | None, dimension: int) -> int:
    """Devices in a group; without groups the shapes say how much larger one dimension is than another."""
    groups = context.attrs.replica_groups.groups
    if groups:
        return max(1, len(groups[0]))
    if small is None or large is None or not (small.is_array and large.is_array) or small.rank != large.rank:
        return 1
    return max(1, large.dims[dimension] // max(1, small.dims[dimension]))


def _one_dimension(context: ShapeContext, shapes: Sequence[Shape]) -> int:
    dimensions: tuple[int, ...] = context.attrs.dimensions
    context.require(len(dimensions) == 1, "dimensions must have exactly one entry")
    for position, shape in enumerate(shapes):
        check_dimensions(context, dimensions, shape.rank, f"dimensions, for operand {position},")
    return dimensions[0]


def _resized(shape: Shape, dimension: int, size: int) -> Shape:
    return Shape.array(shape.dtype, (*shape.dims[:dimension], size, *shape.dims[dimension + 1 :]))


def all_reduce_shape(context: ShapeContext) -> Shape:
    """The shapes of the operands."""
    shapes = _arrays(context)
    check_reducer(context, [Shape.array(shape.dtype) for shape in shapes[:1]])
    return results_shape(context, shapes)


def all_gather_shape(context: ShapeContext) -> Shape:
    """The operands' shapes, one dimension as many times larger as a group has devices."""
    shapes = _arrays(context)
    dimension = _one_dimension(context, shapes)
    declared = _declared_results(context, len(shapes))
    return results_shape(
        context,
        [
            _resized(shape, dimension, shape.dims[dimension] * _group_size(context, shape, result, dimension))
            for shape, result in zip(shapes, declared, strict=True)
        ],
    )


def all_gather_start_shape(context: ShapeContext) -> Shape:
    """(operands, results)."""
    declared = context.declared
    if declared is not None:
        context.require(
            declared.is_tuple and len(declared.elements) >= 2, "the result shape must be (operands, results)"
        )
        declared = declared.elements[1]
    plain = ShapeContext(context.opcode, context.operands, context.attrs, context.called, declared)
    return Shape.tuple([tuple_unless_one(context.operands), all_gather_shape(plain)])


def reduce_scatter_shape(context: ShapeContext) -> Shape:
    """The operands' shapes, one dimension as many times smaller as a group has devices."""
    shapes = _arrays(context)
    dimension = _one_dimension(context, shapes)
    check_reducer(context, [Shape.array(shape.dtype) for shape in shapes[:1]])
    results = []
    for position, (shape, result) in enumerate(zip(shapes, _declared_results(context, len(shapes)), strict=True)):
        count = _group_size(context, result, shape, dimension)
        size = shape.dims[dimension]
        if size % count != 0:
            raise context.error(
                f"dimension {dimension} of operand {position} is {size}, not divisible by {count} devices"
            )
        results.append(_resized(shape, dimension, size // count))
    return results_shape(context, results)


def all_to_all_shape(context: ShapeContext) -> Shape:
    """The operand's shape, or the tuple of the operands when no dimension is given."""
    shapes = _arrays(context)
    if not context.attrs.dimensions:
        for position, shape in enumerate(shapes):
            if not shape.compatible(shapes[0]):
                raise context.error(f"operands 0 and {position} differ")
        return Shape.tuple(shapes) if context.declared is None or context.declared.is_tuple else shapes[0]
    dimension = _one_dimension(context, shapes)
    context.require(len(shapes) == 1, "takes one operand when a dimension is given")
    groups = context.attrs.replica_groups.groups
    count = len(groups[0]) if groups else 1
    size = shapes[0].dims[dimension]
    if not (count == 0 or size % count == 0):
        raise context.error(f"dimension {dimension} is {size}, not divisible by {count} devices")
    return shapes[0]


def ragged_all_to_all_shape(context: ShapeContext) -> Shape:
    """The shape of the array that receives."""
    operand, output = context.array(0), context.array(1, "output")
    context.require(
        operand.dtype is output.dtype and operand.rank == output.rank >= 1 and operand.dims[1:] == output.dims[1:],
        "operand and output may differ in their first dimension only",
    )
    for position in range(2, 6):
        shape = context.array(position)
        if not (shape.rank == 1 and shape.dtype.is_integral and shape.dims == context.operands[2].dims):
            raise context.error(f"operand {position} must be a vector of offsets or sizes, found {shape.text()}")
    return output


def first_array_shape(context: ShapeContext) -> Shape:
    """The shapes of the operands, whatever arrays they are."""
    context.require(len(context.operands) >= 1, "needs at least one operand")
    return tuple_unless_one([context.array(position) for position in range(len(context.operands))])


def permute_shape(context: ShapeContext) -> Shape:
    """The shapes of the operands; that of the output if it is updated in place."""
    sizes = context.attrs.slice_sizes
    if not sizes:
        return first_array_shape(context)
    context.require(len(context.operands) == 4, "takes input, output and their start indices with slice_sizes")
    source, output = context.array(0, "input"), context.array(1, "output")
    context.require(source.dtype is output.dtype, "input and output must have one element type")
    for position, target in ((2, source), (3, output)):
        starts = context.operands[position]
        rows = starts.elements if starts.is_tuple and all(e.is_tuple for e in starts.elements) else (starts,)
        if not (
            len(rows) == len(sizes)
            and all(row.is_tuple and len(row.elements) == target.rank for row in rows)
            and all(e.is_scalar and e.dtype.is_integral for row in rows for e in row.elements)
        ):
            raise context.error(
                f"operand {position} must hold {len(sizes)} tuples of {target.rank} start indices, "
                f"found {starts.text()}"
            )
    for size in sizes:
        for array in (source, output):
            if not (len(size) == array.rank and all(0 <= n <= dim for n, dim in zip(size, array.dims, strict=True))):
                raise context.error(f"a slice of sizes {list(size)} does not fit {array.text()}")
    return output


def permute_start_shape(context: ShapeContext) -> Shape:
    """(operand, result, contexts...)."""
    shape = permute_shape(context)
    first = context.operands[0] if context.attrs.slice_sizes else shape
    inferred = Shape.tuple([first, shape, Shape.array(DType.U32), Shape.array(DType.U32)])
    declared = context.declared
    if declared is None:
        return inferred
    if not (
        declared.is_tuple
        and len(declared.elements) >= 2
        and declared.elements[0].compatible(first)
        and declared.elements[1].compatible(shape)
    ):
        raise context.error(f"the declared shape {declared.text()} must start with operand and result")
    return declared


def element_shape(index: int) -> ShapeRule:
    """The rule of a -done operation: one element of what its -start operation gave."""

    def rule(context: ShapeContext) -> Shape:
        operand = context.operands[0]
        context.require(operand.is_tuple and len(operand.elements) > index, "the operand must be the -start operation")
        return operand.elements[index]

    return rule
