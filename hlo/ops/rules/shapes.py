"""Checks and conversions that the shape rules and evaluators of many operations share."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType

import numpy as np

from xlalite.hlo.errors import EvaluationError
from xlalite.hlo.ir.op import ShapeContext
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Array, Value
from xlalite.hlo.types.shape import ProgramShape, Shape


def check_dimensions(context: ShapeContext, dimensions: Sequence[int], rank: int, what: str) -> None:
    """Requires distinct dimension numbers of an array of the given rank."""
    for dimension in dimensions:
        if not 0 <= dimension < rank:
            raise context.error(f"{what} has {dimension}, which is not a dimension of rank {rank}")
    if len(set(dimensions)) != len(dimensions):
        raise context.error(f"{what} {list(dimensions)} names a dimension twice")


def dynamic_flags(shape: Shape) -> tuple[bool, ...]:
    """For each dimension whether its size is known only at run time."""
    return shape.dynamic or (False,) * shape.rank


def tuple_unless_one(shapes: Sequence[Shape]) -> Shape:
    """The shape itself when it is the only one, else the tuple."""
    return shapes[0] if len(shapes) == 1 else Shape.tuple(shapes)


def results_shape(context: ShapeContext, shapes: Sequence[Shape]) -> Shape:
    """The shape of several results; of a single one a tuple, too, if that is declared."""
    declared = context.declared
    if len(shapes) == 1 and declared is not None and declared.is_tuple:
        return Shape.tuple(shapes)
    return tuple_unless_one(shapes)


def elements_of(shape: Shape) -> tuple[Shape, ...]:
    """The elements of a tuple, or the shape itself as the only one."""
    return shape.elements if shape.is_tuple else (shape,)


def check_called(context: ShapeContext, position: int, parameters: Sequence[Shape], what: str) -> ProgramShape:
    """The called computation's signature, whose parameters must be compatible with the given shapes."""
    if position >= len(context.called):
        raise context.error(f"{what} is missing")
    program = context.called[position]
    if len(program.parameters) != len(parameters) or not all(
        have.compatible(want) for have, want in zip(program.parameters, parameters, strict=True)
    ):
        raise context.error(
            f"{what} takes ({', '.join(shape.text() for shape in program.parameters)}), "
            f"it is given ({', '.join(shape.text() for shape in parameters)})"
        )
    return program


def same_kind(a: DType, b: DType) -> bool:
    """Whether the types are equal but for floating-point precision."""
    return a is b or (a.is_floating and b.is_floating)


def array_value(value: Value) -> Array:
    """The value as an array.

    Raises:
        EvaluationError: It is a tuple or a token.
    """
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, np.generic):
        return np.asarray(value)
    raise EvaluationError(f"expected an array, found a {type(value).__name__}")


def flatten_values(value: Value) -> tuple[Value, ...]:
    """The elements of a tuple value, or the value itself as the only one."""
    return value if isinstance(value, tuple) else (value,)


def value_or_tuple(values: Sequence[Value], shape: Shape) -> Value:
    """The tuple of values when the shape is a tuple, else the only value."""
    return tuple(values) if shape.is_tuple else values[0]


def array_index(slices: Sequence[slice]) -> tuple[slice | EllipsisType, ...]:
    """The slices as an index that gives an array even when there are none."""
    return (..., *slices)
