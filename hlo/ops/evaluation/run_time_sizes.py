"""Evaluates operations on arrays whose sizes are known only at run time.

Sizes that the text calls equal may differ then: `add(f32[<=5], f32[<=5])` of 3 and 4 elements. As in XLA, which keeps
such arrays in memory of the largest size, every operand is cut to the smallest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from xlalite.hlo.errors import EvaluationError, ShapeError
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Place, Trait
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Array, Value
from xlalite.hlo.types.shape import Shape

SIZE = Shape.array(DType.S32)
"""A size as a value."""


def concerns_run_time_sizes(instruction: HloInstruction) -> bool:
    """Whether an operand or the result has a size that is known only at run time."""
    return instruction.shape.is_dynamic or any(operand.shape.is_dynamic for operand in instruction.operands)


def evaluate_fitted(
    instruction: HloInstruction,
    operands: Sequence[Value],
    value_of: Callable[[HloInstruction, Sequence[Value]], Value],
) -> Value:
    """The value of an operation on operands that are cut until they fit together.

    Raises:
        EvaluationError: They do not fit even so, or the result has other sizes than the program says.
    """
    try:
        value = value_of(instruction, _fitted(instruction, operands))
    except ValueError as error:
        raise EvaluationError(f"{_described(instruction, operands)} do not fit together: {error}") from error
    if isinstance(value, np.ndarray) and not instruction.shape.has_sizes(value.shape):
        raise EvaluationError(
            f"{_described(instruction, operands)} give {list(value.shape)}, expected {instruction.shape.text()}"
        )
    return value


def all_operands(instruction: HloInstruction) -> Iterable[tuple[Place, ...]]:
    """The places of operations whose operands are alike in all dimensions, but for scalars among them."""
    rank = max(operand.shape.rank for operand in instruction.operands)
    numbers = [number for number, operand in enumerate(instruction.operands) if operand.shape.rank == rank]
    return [tuple((number, dimension) for number in numbers) for dimension in range(rank)]


def bounded(shape: Shape) -> Shape:
    """The shape with every size at its largest.

    Raises:
        ShapeError: A size has no bound.
    """
    if shape.is_tuple:
        return Shape.tuple([bounded(element) for element in shape.elements])
    if min(shape.dims, default=0) < 0:
        raise ShapeError(f"{shape.text()}: only sizes with a bound, such as <=8, can be compiled")
    return replace(shape, dynamic=()) if shape.is_dynamic else shape


def bounded_leaves(shapes: Sequence[Shape]) -> tuple[Shape, ...]:
    """The arrays in shapes at their largest sizes, then a size for each dimension of those with run-time sizes.

    So compiled entries take and give them.
    """
    leaves = [leaf for shape in shapes for _, leaf in shape.leaves() if leaf.is_array]
    sizes = sum(leaf.rank for leaf in leaves if leaf.is_dynamic)
    return (*(bounded(leaf).without_layout() for leaf in leaves), *(SIZE,) * sizes)


def whole_dimensions(operand: Shape, sizes: Sequence[int], value: Array) -> tuple[int, ...]:
    """Sizes of a window on an array: where it is a whole dimension whose size is known at run time, the size it has."""
    return tuple(
        found if operand.dynamic and operand.dynamic[dimension] and size == operand.dims[dimension] else size
        for dimension, (size, found) in enumerate(zip(sizes, value.shape, strict=True))
    )


def _fitted(instruction: HloInstruction, operands: Sequence[Value]) -> Sequence[Value]:
    aligned = instruction.op.aligned
    if aligned is None:
        if not instruction.op.has(Trait.ELEMENTWISE):
            return operands
        aligned = all_operands
    fitted = list(operands)
    for places in aligned(instruction):
        smallest = min(_size(fitted[number], dimension) for number, dimension in places)
        for number, dimension in places:
            if _size(fitted[number], dimension) != smallest:
                fitted[number] = _array(fitted[number])[(slice(None),) * dimension + (slice(0, smallest),)]
    return fitted


def _array(value: Value) -> Array:
    assert isinstance(value, np.ndarray), "only dimensions of arrays are aligned"
    return value


def _size(value: Value, dimension: int) -> int:
    size: int = _array(value).shape[dimension]
    return size


def _described(instruction: HloInstruction, operands: Sequence[Value]) -> str:
    sizes = ", ".join(str(list(value.shape)) for value in operands if isinstance(value, np.ndarray))
    return f"{instruction.opcode}: operands of the run-time sizes {sizes}"
