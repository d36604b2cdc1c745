"""Operations that move a window over arrays: reduce-window, select-and-scatter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Caller, Calls, OpDef, ShapeContext
from xlalite.hlo.ops.evaluation.run_time_sizes import all_operands
from xlalite.hlo.ops.reduction import check_reducer, reduction_operands, scalar_flops
from xlalite.hlo.ops.rules.shapes import array_value, results_shape, same_kind, value_or_tuple
from xlalite.hlo.records import dataclass
from xlalite.hlo.spelling.attributes import attribute
from xlalite.hlo.spelling.codecs import WINDOW
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Array, Value
from xlalite.hlo.types.shape import Shape
from xlalite.hlo.types.window import Window

if TYPE_CHECKING:
    from xlalite.hlo.ops.evaluation.scatter_evaluation import Places


@dataclass(frozen=True, slots=True)
class ReduceWindowAttrs:
    """The window, with one entry for each dimension of the operands."""

    window: Window = attribute(WINDOW, default=Window(), print_default=True)


def check_window(context: ShapeContext, window: Window, rank: int) -> None:
    """Requires a sensible window with one entry for each of `rank` dimensions and at least one element."""
    if window.rank != rank:
        raise context.error(f"the window has {window.rank} dimensions, expected {rank}")
    problem = window.problem
    context.require(problem is None, problem or "")
    for position, dim in enumerate(window.dimensions):
        if dim.size <= 0:
            raise context.error(f"window size of dimension {position} must be positive, found {dim.size}")


def _reduce_window_shape(context: ShapeContext) -> Shape:
    arrays, starts = reduction_operands(context)
    check_window(context, context.attrs.window, arrays[0].rank)
    sizes = context.attrs.window.output_sizes(arrays[0].dims)
    return results_shape(
        context,
        [
            Shape.array(accumulator.dtype, sizes, dynamic=arrays[0].dynamic)
            for accumulator in check_reducer(context, starts)
        ],
    )


def _reduce_window(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    from xlalite.hlo.ops.evaluation.window_evaluation import reduce_window

    arrays = [array_value(operand) for operand in operands]
    count = len(arrays) // 2
    results = reduce_window(
        instruction.called_computations[0], arrays[:count], arrays[count:], instruction.attrs.window, call
    )
    return value_or_tuple(results, instruction.shape)


def _reduce_window_flops(instruction: HloInstruction) -> int:
    """One application of the function for each window position and window element."""
    window: Window = instruction.attrs.window
    _, first = next(instruction.shape.leaves())
    return first.element_count * math.prod(window.sizes) * scalar_flops(instruction)


@dataclass(frozen=True, slots=True)
class SelectAndScatterAttrs:
    """The window, without dilation."""

    window: Window = attribute(WINDOW, default=Window(), print_default=True)


def _select_and_scatter_shape(context: ShapeContext) -> Shape:
    operand, source = context.array(0), context.array(1, "source")
    start, window = context.array(2, "initial value"), context.attrs.window
    check_window(context, window, operand.rank)
    context.require(start.is_scalar, "the initial value must be a scalar")
    context.require(
        all(dim.lhs_dilate == 1 and dim.rhs_dilate == 1 for dim in window.dimensions),
        "the window must not have dilation",
    )
    positions = window.output_sizes(operand.dims)
    if source.dims != positions:
        raise context.error(f"the source has sizes {list(source.dims)}, the window has {list(positions)} positions")
    if not (same_kind(operand.dtype, source.dtype) and same_kind(source.dtype, start.dtype)):
        raise context.error(f"element types {operand.dtype.value}, {source.dtype.value} and {start.dtype.value} differ")
    context.require(len(context.called) == 2, "select and scatter are both needed")
    select, scatter = context.called
    scalar, element = Shape.array(operand.dtype), Shape.array(source.dtype)
    if not (
        len(select.parameters) == 2
        and all(parameter.compatible(scalar) for parameter in select.parameters)
        and select.result.compatible(Shape.array(DType.PRED))
    ):
        raise context.error(f"select has the signature {select}, expected ({scalar.text()}, {scalar.text()}) -> pred[]")
    if not (
        len(scatter.parameters) == 2
        and all(parameter.compatible(element) for parameter in scatter.parameters)
        and scatter.result.compatible(element)
    ):
        raise context.error(
            f"scatter has the signature {scatter}, expected ({element.text()}, {element.text()}) -> {element.text()}"
        )
    return operand


def _select_and_scatter(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    from xlalite.hlo.ops.evaluation.scatter_evaluation import combine_at

    operand, source, initial = (array_value(value) for value in operands)
    select, scatter = instruction.called_computations
    window: Window = instruction.attrs.window
    target = np.full(operand.size, initial.astype(operand.dtype))
    if not source.size:
        return target.reshape(operand.shape)
    places = _chosen_places(operand, window, select, call)
    found = places >= 0
    return combine_at(scatter, [target], places[found], [source[found]], call)[0].reshape(operand.shape)


def _chosen_places(operand: Array, window: Window, select: HloComputation, call: Caller) -> Places:
    """For each window position the flat index of the element that `select` keeps, -1 where all is padding."""
    from xlalite.hlo.ops.evaluation.scalar_function import array_function
    from xlalite.hlo.ops.evaluation.window_evaluation import pad_to_window, window_element

    function = array_function(select, call)
    values = pad_to_window(operand, np.zeros((), operand.dtype), window)
    numbers = pad_to_window(np.arange(operand.size).reshape(operand.shape), np.asarray(-1), window)
    sizes = window.output_sizes(operand.shape)
    best_value, best_number = np.zeros(sizes, operand.dtype), np.full(sizes, -1, np.int64)
    for offsets in np.ndindex(*window.sizes):
        value = window_element(values, offsets, window)
        number = window_element(numbers, offsets, window).astype(np.int64)
        stays = function([best_value, value])[0].astype(np.bool_) | (number < 0)
        keep = (best_number >= 0) & stays
        best_value, best_number = np.where(keep, best_value, value), np.where(keep, best_number, number)
    return best_number


def _select_and_scatter_flops(instruction: HloInstruction) -> int:
    """One selection for each window position and element, one combination for each position."""
    window: Window = instruction.attrs.window
    return instruction.operand(1).shape.element_count * (math.prod(window.sizes) + 1)


OPS = (
    OpDef(
        "reduce-window",
        "result[i] = reduction of the elements below the window at position i",
        None,
        _reduce_window_shape,
        _reduce_window,
        attrs=ReduceWindowAttrs,
        calls=Calls(("to_apply",), applies_to_elements=True),
        aligned=all_operands,
        flops=_reduce_window_flops,
    ),
    OpDef(
        "select-and-scatter",
        "result[selected element of window i] = scatter(result[...], source[i]), from the initial value",
        3,
        _select_and_scatter_shape,
        _select_and_scatter,
        attrs=SelectAndScatterAttrs,
        calls=Calls(("select", "scatter"), applies_to_elements=True),
        flops=_select_and_scatter_flops,
    ),
)
