"""Operations that order elements: sort, topk."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Caller, Calls, OpDef, ShapeContext
from xlalite.hlo.ops.evaluation.run_time_sizes import all_operands
from xlalite.hlo.ops.reduction import scalar_flops
from xlalite.hlo.ops.rules.elementwise_rules import is_real, require_type
from xlalite.hlo.ops.rules.shapes import array_value, check_called, check_dimensions, results_shape, value_or_tuple
from xlalite.hlo.records import dataclass
from xlalite.hlo.spelling.attributes import attribute
from xlalite.hlo.spelling.codecs import BOOL, INT, INT_LIST
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Array, Value
from xlalite.hlo.types.shape import Shape


@dataclass(frozen=True, slots=True)
class SortAttrs:
    """The one dimension that is sorted, and whether equal elements keep their order."""

    dimensions: tuple[int, ...] = attribute(INT_LIST)
    is_stable: bool = attribute(BOOL, default=False)

    @property
    def dimension(self) -> int:
        """The only entry of `dimensions`."""
        return self.dimensions[0]


def _sort_shape(context: ShapeContext) -> Shape:
    context.require(len(context.operands) >= 1, "needs at least one operand")
    shapes = [context.array(position) for position in range(len(context.operands))]
    for position, shape in enumerate(shapes):
        context.require(shape.dims == shapes[0].dims, f"sizes of operands 0 and {position} differ")
    context.require(len(context.attrs.dimensions) == 1, "dimensions must have exactly one entry")
    check_dimensions(context, context.attrs.dimensions, shapes[0].rank, "dimensions")
    pairs = [Shape.array(shape.dtype) for shape in shapes for _ in range(2)]
    result = check_called(context, 0, pairs, "to_apply").result
    context.require(result.is_scalar and result.dtype is DType.PRED, f"to_apply gives {result.text()}, expected pred[]")
    return results_shape(context, shapes)


def _sort(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    from xlalite.hlo.ops.evaluation.sorting_evaluation import sorted_order

    axis = instruction.attrs.dimension
    moved = [np.moveaxis(array_value(operand), axis, -1) for operand in operands]
    sizes = moved[0].shape
    rows = [array.reshape(int(np.prod(sizes[:-1])), sizes[-1]) for array in moved]
    order = sorted_order(instruction.called_computations[0], rows, call)
    results = [np.moveaxis(np.take_along_axis(array, order, axis=1).reshape(sizes), -1, axis) for array in rows]
    return value_or_tuple(results, instruction.shape)


def _sort_flops(instruction: HloInstruction) -> int:
    """About log2 n comparisons an element."""
    first = instruction.operand(0).shape
    length: int = first.dims[instruction.attrs.dimension]
    return first.element_count * max(0, length - 1).bit_length() * scalar_flops(instruction)


@dataclass(frozen=True, slots=True)
class TopkAttrs:
    """How many of the largest (or smallest) elements of the last dimension."""

    k: int = attribute(INT)
    largest: bool = attribute(BOOL, default=True, print_default=True)
    is_stable: bool = attribute(BOOL, default=True)


def _topk_shape(context: ShapeContext) -> Shape:
    operand, k = require_type(context, 0, is_real), context.attrs.k
    context.require(operand.rank >= 1, "the operand must have at least one dimension")
    context.require(0 <= k <= operand.dims[-1], f"k {k} is not in [0, {operand.dims[-1]}]")
    dims = (*operand.dims[:-1], k)
    return Shape.tuple([Shape.array(operand.dtype, dims), Shape.array(DType.S32, dims)])


def _topk(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    """Elements in the total order, in which NaN is the largest; of equal ones the first come first."""
    attrs: TopkAttrs = instruction.attrs
    values = array_value(operands[0])
    return top_elements(values, attrs.k, largest=attrs.largest)


def top_elements(values: Array, k: int, *, largest: bool) -> Value:
    """The k first elements of the last axis in descending (or ascending) order, and their positions as s32."""
    from xlalite.hlo.ops.evaluation.sorting_evaluation import ascending_order, integer_keys

    keys = integer_keys(values)
    order = ascending_order(np.invert(keys) if largest else keys)[..., :k]
    return np.take_along_axis(values, order, axis=-1), order.astype(np.int32)


OPS = (
    OpDef(
        "sort",
        "the operands reordered along a dimension so that to_apply(x[j], x[i], ...) never holds for i < j",
        None,
        _sort_shape,
        _sort,
        attrs=SortAttrs,
        calls=Calls(("to_apply",), applies_to_elements=True),
        aligned=all_operands,
        flops=_sort_flops,
    ),
    OpDef(
        "topk",
        "the k largest elements of the last dimension, in order, and their positions",
        1,
        _topk_shape,
        _topk,
        attrs=TopkAttrs,
    ),
)
