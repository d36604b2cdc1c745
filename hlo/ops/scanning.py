"""The sequential scan along a dimension."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Caller, Calls, OpDef, ShapeContext
from xlalite.hlo.ops.rules.shapes import array_value, check_dimensions, elements_of, flatten_values, value_or_tuple
from xlalite.hlo.records import dataclass
from xlalite.hlo.spelling.attributes import attribute
from xlalite.hlo.spelling.codecs import BOOL, INT, INT_LIST
from xlalite.hlo.types.literal import Array, Value
from xlalite.hlo.types.shape import ProgramShape, Shape


@dataclass(frozen=True, slots=True)
class ScanAttrs:
    """Dimension and direction; how many operands are carries when that is written (-1: it follows from the shapes)."""

    dimensions: tuple[int, ...] = attribute(INT_LIST)
    num_carries: int = attribute(INT, default=-1)
    is_reverse: bool = attribute(BOOL, default=False)
    is_associative: bool = attribute(BOOL, default=False, print_default=True)

    @property
    def dimension(self) -> int:
        """The only entry of `dimensions`."""
        return self.dimensions[0]


def carry_count(operands: Sequence[Shape], program: ProgramShape, attrs: ScanAttrs) -> int:
    """Number of carries: the last operands, which the computation takes as they are and not in slices."""
    if attrs.num_carries >= 0:
        return attrs.num_carries
    count = 0
    for operand, parameter in zip(reversed(operands), reversed(program.parameters), strict=False):
        if not operand.compatible(parameter):
            break
        count += 1
    return count


def _slice_shape(shape: Shape, dimension: int) -> Shape:
    return Shape.array(shape.dtype, (*shape.dims[:dimension], *shape.dims[dimension + 1 :]))


def _scan_shape(context: ShapeContext) -> Shape:
    attrs: ScanAttrs = context.attrs
    context.require(len(context.called) == 1, "to_apply is missing")
    context.require(len(attrs.dimensions) == 1, "dimensions must have exactly one entry")
    program, along = context.called[0], attrs.dimension
    carries = carry_count(context.operands, program, attrs)
    inputs = len(context.operands) - carries
    context.require(inputs >= 1, f"needs at least one input besides its {carries} carries")
    arrays = [context.array(position) for position in range(inputs)]
    for position, array in enumerate(arrays):
        check_dimensions(context, (along,), array.rank, f"dimensions, for input {position},")
        context.require(
            array.dims[along] == arrays[0].dims[along], f"inputs 0 and {position} differ in dimension {along}"
        )
    taken = [*(_slice_shape(array, along) for array in arrays), *context.operands[inputs:]]
    context.require(
        len(program.parameters) == len(taken)
        and all(have.compatible(want) for have, want in zip(program.parameters, taken, strict=True)),
        f"to_apply has the signature {program}, it is given ({', '.join(shape.text() for shape in taken)})",
    )
    results = elements_of(program.result)
    outputs = len(results) - carries
    context.require(
        outputs >= 0
        and all(a.compatible(b) for a, b in zip(results[outputs:], context.operands[inputs:], strict=True)),
        f"to_apply gives {program.result.text()}, which does not end with the {carries} carries",
    )
    stacked = []
    for position, result in enumerate(results[:outputs]):
        context.require(
            result.is_array and along <= result.rank,
            f"output {position}, {result.text()}, has no place for dimension {along}",
        )
        stacked.append(Shape.array(result.dtype, (*result.dims[:along], arrays[0].dims[along], *result.dims[along:])))
    return Shape.tuple([*stacked, *results[outputs:]]) if program.result.is_tuple else (*stacked, *results[outputs:])[0]


def _scan(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    attrs: ScanAttrs = instruction.attrs
    body = instruction.called_computations[0]
    along = attrs.dimension
    carries = carry_count([operand.shape for operand in instruction.operands], body.program_shape, attrs)
    inputs = [np.moveaxis(array_value(operand), along, 0) for operand in operands[: len(operands) - carries]]
    state: tuple[Value, ...] = tuple(operands[len(operands) - carries :])
    shapes = elements_of(instruction.shape)
    outputs: list[Array] = [
        np.moveaxis(np.empty(shape.dims, shape.dtype.numpy), along, 0) for shape in shapes[: len(shapes) - carries]
    ]
    steps = range(len(inputs[0]))
    for step in reversed(steps) if attrs.is_reverse else steps:
        results = flatten_values(call(body, [*(np.asarray(array[step]) for array in inputs), *state]))
        for output, result in zip(outputs, results, strict=False):
            output[step] = array_value(result)
        state = results[len(outputs) :]
    return value_or_tuple([*(np.moveaxis(output, 0, along) for output in outputs), *state], instruction.shape)


OPS = (
    OpDef(
        "scan",
        "(outputs[i], carries) = to_apply(inputs[i], carries) for one i of a dimension after the other",
        None,
        _scan_shape,
        _scan,
        attrs=ScanAttrs,
        calls=Calls(("to_apply",)),
    ),
)
