"""Between what callers hold and the flat arrays that executables work on.

Arguments of any kind become exact arrays, or errors for what does not fit.

Arrays must have the declared shape and element type; byte order, strides and alignment are put right by a copy. Python
numbers and nested lists have no element type of their own and take the declared one where no information can get lost
but a float's last digits. Nothing is broadcast.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xlalite.hlo.errors import ArgumentError
from xlalite.hlo.types.dtype import DType, Kind
from xlalite.hlo.types.literal import Literal, Token, Value
from xlalite.hlo.types.shape import Shape

Array = NDArray[Any]

_GENERALITY = {Kind.PRED: 0, Kind.UNSIGNED: 1, Kind.SIGNED: 1, Kind.FLOAT: 2, Kind.COMPLEX: 3}


def flatten_arguments(name: str, arguments: Sequence[object], shapes: Sequence[Shape]) -> list[object]:
    """What was given for the arrays among the parameters' leaves, in order; tokens are left out.

    Args:
        name: Who is called.
        arguments: One for each parameter, nested tuples for tuples.
        shapes: Shapes of the parameters.

    Raises:
        ArgumentError: Their number, or the structure of a tuple, does not fit.
    """
    if len(arguments) != len(shapes):
        raise ArgumentError(f"calling {name}: found {len(arguments)} arguments, expected {len(shapes)}")
    flat: list[object] = []
    for number, (argument, shape) in enumerate(zip(arguments, shapes, strict=True)):
        _flatten(argument, shape, f"argument {number} of {name}", flat)
    return flat


def nested_value(shape: Shape, arrays: Iterator[Array]) -> Value:
    """The value of a shape whose arrays are the next ones."""
    if shape.is_tuple:
        return tuple(nested_value(element, arrays) for element in shape.elements)
    return next(arrays) if shape.is_array else Token()


def _flatten(argument: object, shape: Shape, where: str, flat: list[object]) -> None:
    if shape.is_array:
        flat.append(argument)
        return
    if not shape.is_tuple:
        return
    if not isinstance(argument, (tuple, list)) or len(argument) != len(shape.elements):
        raise ArgumentError(f"{where} is {type(argument).__name__}; expected a tuple of {len(shape.elements)} elements")
    for number, (element, part) in enumerate(zip(argument, shape.elements, strict=True)):
        _flatten(element, part, f"{where}, element {number}", flat)


def to_array(argument: object, shape: Shape, where: str) -> Array:
    """An argument as a row-major, aligned array of a shape; the argument itself where it is one.

    Raises:
        ArgumentError: Its sizes or its element type do not fit.
    """
    if isinstance(argument, Literal):
        argument = argument.to_value()
    if isinstance(argument, (bool, int, float, complex, list, tuple)) and not isinstance(argument, np.generic):
        array = _from_python(argument, shape, where)
    elif isinstance(argument, np.ma.MaskedArray):
        raise ArgumentError(f"{where} is a masked array; expected {shape.text(layout=False)} (its mask would be lost)")
    else:
        array = np.asarray(argument)
        if not _has_type(array, shape.dtype):
            raise ArgumentError(f"{where} is {_describe(array)}; expected {shape.text(layout=False)}")
    if not shape.has_sizes(array.shape):
        raise ArgumentError(f"{where} is {_describe(array)}; expected {shape.text(layout=False)}")
    return np.require(array, shape.dtype.numpy, ("C_CONTIGUOUS", "ALIGNED"))


def _from_python(argument: object, shape: Shape, where: str) -> Array:
    """A number or nested lists of numbers in the wanted element type."""
    try:
        natural = np.asarray(argument)
        found = DType.from_numpy(natural.dtype)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{where} is {reprlib.repr(argument)}; expected {shape.text(layout=False)}") from error
    wanted = shape.dtype
    if natural.size and _GENERALITY[found.kind] > _GENERALITY[wanted.kind]:
        raise ArgumentError(f"{where} is {reprlib.repr(argument)} ({found.value}); expected {shape.text(layout=False)}")
    if wanted.is_integral and found.is_integral and natural.size:
        lowest = -(1 << wanted.bits - 1) if wanted.is_signed else 0
        if int(natural.min()) < lowest or int(natural.max()) >= lowest + (1 << wanted.bits):
            raise ArgumentError(f"{where} is {reprlib.repr(argument)}, which does not fit into {wanted.value}")
    return natural.astype(wanted.numpy)


def _has_type(array: Array, dtype: DType) -> bool:
    return array.dtype.newbyteorder("=") == dtype.numpy


def _describe(array: Array) -> str:
    try:
        return Shape.array(DType.from_numpy(array.dtype), array.shape).text(layout=False)
    except TypeError:
        return f"an array of {array.dtype} with shape {list(array.shape)}"
