"""Operations that combine elements with a scalar computation: reduce, map."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Caller, Calls, OpDef, ShapeContext
from xlalite.hlo.ops.evaluation.run_time_sizes import all_operands
from xlalite.hlo.ops.rules.shapes import (
    array_value,
    check_called,
    check_dimensions,
    dynamic_flags,
    elements_of,
    results_shape,
    same_kind,
    tuple_unless_one,
    value_or_tuple,
)
from xlalite.hlo.records import dataclass
from xlalite.hlo.spelling.attributes import attribute
from xlalite.hlo.spelling.codecs import INT_LIST
from xlalite.hlo.types.literal import Value
from xlalite.hlo.types.shape import Shape


@dataclass(frozen=True, slots=True)
class ReduceAttrs:
    """The dimensions that go away."""

    dimensions: tuple[int, ...] = attribute(INT_LIST)


def reduction_operands(context: ShapeContext) -> tuple[list[Shape], list[Shape]]:
    """Operands x1..xN and their initial scalars; all x have the same sizes."""
    total = len(context.operands)
    context.require(total >= 2 and total % 2 == 0, "takes as many initial values as arrays")
    count = total // 2
    arrays = [context.array(position) for position in range(count)]
    starts = [context.array(position, "initial value") for position in range(count, total)]
    for position, (array, start) in enumerate(zip(arrays, starts, strict=True)):
        if array.dims != arrays[0].dims:
            raise context.error(f"sizes of operands 0 and {position} differ")
        if not start.is_scalar:
            raise context.error(f"initial value {position} must be a scalar")
        if not same_kind(array.dtype, start.dtype):
            raise context.error(
                f"operand {position} has element type {array.dtype.value}, its initial value {start.dtype.value}"
            )
    return arrays, starts


def check_reducer(context: ShapeContext, starts: Sequence[Shape], what: str = "to_apply") -> tuple[Shape, ...]:
    """The accumulators of the reducer: (accumulators..., elements...) -> accumulators, all scalars.

    The types of operands and accumulators may differ in floating-point precision.
    """
    if len(context.called) < 1:
        raise context.error(f"{what} is missing")
    program = context.called[0]
    accumulators = elements_of(program.result)
    wanted = (*starts, *starts)
    if not (
        len(accumulators) == len(starts)
        and len(program.parameters) == len(wanted)
        and all(shape.is_scalar for shape in (*accumulators, *program.parameters))
        and all(same_kind(a.dtype, b.dtype) for a, b in zip(accumulators, starts, strict=True))
        and all(same_kind(a.dtype, b.dtype) for a, b in zip(program.parameters, wanted, strict=True))
        and all(a.dtype is b.dtype for a, b in zip(accumulators, program.parameters, strict=False))
    ):
        raise context.error(
            f"{what} has the signature {program}, expected ({', '.join(shape.text() for shape in wanted)}) -> "
            f"{tuple_unless_one(starts).text()}"
        )
    return accumulators


def _reduce_shape(context: ShapeContext) -> Shape:
    arrays, starts = reduction_operands(context)
    dimensions = context.attrs.dimensions
    check_dimensions(context, dimensions, arrays[0].rank, "dimensions")
    kept = [dimension for dimension in range(arrays[0].rank) if dimension not in dimensions]
    flags = dynamic_flags(arrays[0])
    return results_shape(
        context,
        [
            Shape.array(
                accumulator.dtype,
                [arrays[0].dims[dimension] for dimension in kept],
                dynamic=[flags[dimension] for dimension in kept],
            )
            for accumulator in check_reducer(context, starts)
        ],
    )


def _reduce(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    from xlalite.hlo.ops.evaluation.reduction_evaluation import reduce_arrays

    count = len(operands) // 2
    results = reduce_arrays(
        instruction.called_computations[0],
        [array_value(operand) for operand in operands[:count]],
        [array_value(operand) for operand in operands[count:]],
        instruction.attrs.dimensions,
        call,
    )
    return value_or_tuple(results, instruction.shape)


def _reduce_flops(instruction: HloInstruction) -> int:
    """One application of the reducer for each element that is folded away."""
    before = instruction.operand(0).shape
    kept = [size for dim, size in enumerate(before.dims) if dim not in instruction.attrs.dimensions]
    applications = before.element_count - math.prod(kept)
    return max(0, applications) * scalar_flops(instruction)


def scalar_flops(instruction: HloInstruction) -> int:
    """Arithmetic operations in one application of the scalar computation."""
    return sum(1 for inner in instruction.called_computations[0].instructions if inner.op.is_elementwise)


@dataclass(frozen=True, slots=True)
class MapAttrs:
    """Dimensions of the operands; whatever they are, the function is applied along all."""

    dimensions: tuple[int, ...] = attribute(INT_LIST, default=(), print_default=True)


def _map_shape(context: ShapeContext) -> Shape:
    context.require(len(context.operands) >= 1, "needs at least one operand")
    shapes = [context.array(position) for position in range(len(context.operands))]
    for position, shape in enumerate(shapes):
        if shape.dims != shapes[0].dims:
            raise context.error(f"sizes of operands 0 and {position} differ")
    check_dimensions(context, context.attrs.dimensions, shapes[0].rank, "dimensions")
    program = check_called(context, 0, [Shape.array(shape.dtype) for shape in shapes], "to_apply")
    context.require(program.result.is_scalar, "to_apply must give a scalar")
    return shapes[0].with_dtype(program.result.dtype)


def _map(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    from xlalite.hlo.ops.evaluation.scalar_function import array_function

    function = array_function(instruction.called_computations[0], call)
    return function([array_value(operand) for operand in operands])[0]


OPS = (
    OpDef(
        "reduce",
        "to_apply(...to_apply(to_apply(initial, x0), x1)..., xn) along dimensions, grouped in any way; "
        "initial counts once for each result, also along no dimension",
        None,
        _reduce_shape,
        _reduce,
        attrs=ReduceAttrs,
        calls=Calls(("to_apply",), applies_to_elements=True),
        aligned=all_operands,
        flops=_reduce_flops,
    ),
    OpDef(
        "map",
        "result[i] = to_apply(x[i], y[i], ...)",
        None,
        _map_shape,
        _map,
        attrs=MapAttrs,
        calls=Calls(("to_apply",), applies_to_elements=True),
        aligned=all_operands,
        flops=lambda instruction: instruction.shape.element_count * scalar_flops(instruction),
    ),
)
