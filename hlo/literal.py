"""Literals: immutable values of a shape, as constants hold them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, Union

import numpy as np
import numpy.typing as npt

from xlalite.hlo.dtype import DType
from xlalite.hlo.errors import LiteralError
from xlalite.hlo.shape import Shape

Array: TypeAlias = npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class Token:
    """The value of a token; it carries nothing."""


Value: TypeAlias = Union[Array, Token, "tuple[Value, ...]"]


class Literal:
    """A value that does not change: an array, or a tuple of literals.

    Two literals are equal when their shapes are (layouts aside) and their bytes are, so NaN equals the same NaN and -0
    differs from 0.
    """

    __slots__ = ("_hash", "elements", "shape", "value")

    shape: Shape
    value: Array
    elements: tuple[Literal, ...]

    def __init__(self, value: npt.ArrayLike | Value | tuple[Literal, ...], shape: Shape | None = None) -> None:
        """Takes a copy of `value`, converted to the shape's element type when that loses nothing.

        Args:
            value: An array, a number, or a tuple of values for a tuple shape.
            shape: The wanted shape; inferred from a NumPy value when absent.

        Raises:
            LiteralError: The value does not fit the shape.
        """
        self._hash: int | None = None
        if isinstance(value, tuple) and (shape is None or shape.is_tuple):
            self._set_tuple(value, shape)
            return
        if isinstance(value, Token):
            self.shape, self.value, self.elements = Shape.token(), np.zeros((), np.bool_), ()
            return
        array = np.array(value)
        if shape is None:
            shape = Shape.array(DType.from_numpy(array.dtype), array.shape)
        if not shape.is_array:
            raise LiteralError(f"literal: an array of {array.dtype} cannot be a value of shape {shape.text()}")
        if array.shape != shape.dims:
            raise LiteralError(f"literal: sizes {list(array.shape)} do not fit shape {shape.text()}")
        self.shape, self.elements = shape, ()
        self.value = _exactly(array, shape)
        self.value.setflags(write=False)

    def _set_tuple(self, value: tuple[object, ...], shape: Shape | None) -> None:
        if shape is not None and len(value) != len(shape.elements):
            raise LiteralError(f"literal: {len(value)} elements do not fit shape {shape.text()}")
        parts = shape.elements if shape is not None else (None,) * len(value)
        self.elements = tuple(
            element if isinstance(element, Literal) else Literal(element, part)  # type: ignore[arg-type]
            for element, part in zip(value, parts, strict=True)
        )
        self.shape = shape if shape is not None else Shape.tuple([element.shape for element in self.elements])
        self.value = np.zeros((), np.bool_)

    def to_value(self) -> Value:
        """The value as the evaluator holds it: a read-only array, a token, or a tuple of values."""
        if self.shape.is_tuple:
            return tuple(element.to_value() for element in self.elements)
        return Token() if self.shape.is_token else self.value

    @property
    def size_bytes(self) -> int:
        """Bytes of all arrays in the literal."""
        return self.shape.size_bytes

    def is_all(self, number: float) -> bool:
        """Whether every element is exactly `number`, the sign of zero included; false for tuples and empty arrays."""
        if not self.shape.is_array or self.value.size == 0:
            return False
        with np.errstate(all="ignore"):
            wanted = np.asarray(number).astype(self.shape.dtype.numpy)
            if wanted.astype(np.complex128) != np.complex128(number):
                return False
        return bool((_bits(self.value) == _bits(wanted.reshape(1))).all())

    def __eq__(self, other: object) -> bool:
        """Whether shapes and bytes are the same."""
        if not isinstance(other, Literal):
            return NotImplemented
        if self is other:
            return True
        return (
            self.shape.compatible(other.shape)
            and self.elements == other.elements
            and self.value.tobytes() == other.value.tobytes()
        )

    def __hash__(self) -> int:
        """Hash of type, sizes and bytes."""
        if self._hash is None:
            self._hash = hash((self.shape.dtype, self.shape.dims, self.elements, self.value.tobytes()))
        return self._hash

    def __repr__(self) -> str:
        """Shape and, when small, value."""
        shown = repr(self.value.tolist()) if self.value.size <= 10 else "..."
        return f"Literal({self.shape.text()}, {self.elements if self.shape.is_tuple else shown})"


def _exactly(array: Array, shape: Shape) -> Array:
    """The array as a fresh contiguous one of the shape's type; numbers must survive the conversion."""
    wanted = shape.dtype.numpy
    if array.dtype == wanted:
        return np.array(array, dtype=wanted, order="C", copy=True)
    with np.errstate(all="ignore"):
        converted = np.ascontiguousarray(array.astype(wanted)).reshape(array.shape)
        if shape.dtype.is_integral or shape.dtype is DType.PRED:
            back = converted.astype(array.dtype) if array.dtype != np.bool_ else converted
            if not np.array_equal(back, array):
                raise LiteralError(f"literal: a value is out of range for {shape.text()}")
    return converted


def _bits(array: Array) -> npt.NDArray[np.uint8]:
    contiguous = np.ascontiguousarray(array)
    return contiguous.view(np.uint8).reshape(contiguous.size, -1) if contiguous.size else contiguous.view(np.uint8)
