"""Literals: immutable values of a shape, as constants hold them."""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias, Union

import numpy as np
import numpy.typing as npt

from xlalite.hlo.errors import LiteralError
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.limits import DEFAULT_LIMITS
from xlalite.hlo.types.pseudo_values import pseudo_array
from xlalite.hlo.types.shape import Shape

Array: TypeAlias = npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class Token:
    """The value of a token; it carries nothing."""


# Enough to tell most literals apart.
_HASHED_ELEMENTS = 1024

Value: TypeAlias = Union[Array, Token, "tuple[Value, ...]"]


class Literal:
    """A value that does not change: an array, or a tuple of literals.

    Two literals are equal when their shapes are (layouts aside) and their bytes are, so NaN equals the same NaN and -0
    differs from 0. An elided literal, whose values a text left out, equals those of its shape and no others; its values
    are made up when they are asked for.

    Attributes:
        shape: Type and sizes.
        elements: The parts of a tuple.
        is_elided: Whether the values of the array were left out.
    """

    __slots__ = ("_hash", "_limit", "_value", "elements", "is_elided", "shape")

    shape: Shape
    elements: tuple[Literal, ...]
    is_elided: bool
    _limit: int

    def __init__(self, value: npt.ArrayLike | Value | tuple[Literal, ...], shape: Shape | None = None) -> None:
        """Takes a copy of `value`, converted to the shape's element type when that loses nothing.

        Args:
            value: An array, a number, or a tuple of values for a tuple shape. A scalar that `numpy.broadcast_to` made
                an array of goes on taking the memory of a scalar.
            shape: The wanted shape; inferred from a NumPy value when absent.

        Raises:
            LiteralError: The value does not fit the shape.
        """
        self._hash: int | None = None
        self._value: Array | None = None
        self.is_elided = False
        if isinstance(value, tuple) and (shape is None or shape.is_tuple):
            self._set_tuple(value, shape)
            return
        if isinstance(value, Token):
            self.shape, self._value, self.elements = Shape.token(), np.zeros((), np.bool_), ()
            return
        array = np.asarray(value)
        if shape is None:
            shape = Shape.array(DType.from_numpy(array.dtype), array.shape)
        if not shape.is_array:
            raise LiteralError(f"literal: an array of {array.dtype} cannot be a value of shape {shape.text()}")
        if array.shape != shape.dims:
            raise LiteralError(f"literal: sizes {list(array.shape)} do not fit shape {shape.text()}")
        self.shape, self.elements = shape, ()
        self._value = _exactly(array, shape)
        self._value.setflags(write=False)

    @classmethod
    def owning(cls, array: Array, shape: Shape) -> Literal:
        """The literal that takes over an array of exactly the shape's element type and sizes."""
        assert array.dtype == shape.dtype.numpy, "the element type is the shape's"
        assert array.shape == shape.dims, "the sizes are the shape's"
        return cls._of(shape, array)

    @classmethod
    def elided(cls, shape: Shape, limit: int = DEFAULT_LIMITS.literal_elements) -> Literal:
        """The literal of a shape whose values are not known; of a scalar nothing is left out.

        Args:
            shape: An array's, a token's or a tuple of such.
            limit: How many elements may be made up when somebody asks for them.
        """
        if shape.is_tuple:
            return cls(tuple(cls.elided(element, limit) for element in shape.elements), shape)
        if not shape.is_array:
            return cls(Token())
        literal = cls._of(shape, pseudo_array(shape) if shape.is_scalar else None)
        literal.is_elided, literal._limit = not shape.is_scalar, limit
        return literal

    @classmethod
    def _of(cls, shape: Shape, value: Array | None) -> Literal:
        literal = cls.__new__(cls)
        literal._hash, literal.shape, literal.elements, literal.is_elided = None, shape, (), False
        literal._value = value
        if value is not None:
            value.setflags(write=False)
        return literal

    @property
    def value(self) -> Array:
        """The array, read-only; not to be asked of tuples.

        Raises:
            LiteralError: The values are elided, and there are more than the parser's limits allow.
        """
        if self._value is None:
            count = self.shape.element_count
            if count > self._limit:
                raise LiteralError(
                    f"literal: the values of {self.shape.text()} were left out of the text; "
                    f"they are asked for, but {count} elements are more than {self._limit}"
                )
            self._value = pseudo_array(self.shape)
            self._value.setflags(write=False)
        return self._value

    def _set_tuple(self, value: tuple[object, ...], shape: Shape | None) -> None:
        if shape is not None and len(value) != len(shape.elements):
            raise LiteralError(f"literal: {len(value)} elements do not fit shape {shape.text()}")
        parts = shape.elements if shape is not None else (None,) * len(value)
        self.elements = tuple(
            element if isinstance(element, Literal) else Literal(element, part)  # type: ignore[arg-type]
            for element, part in zip(value, parts, strict=True)
        )
        self.shape = shape if shape is not None else Shape.tuple([element.shape for element in self.elements])
        self._value = np.zeros((), np.bool_)

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
        if not self.shape.is_array or self.is_elided or self.value.size == 0:
            return False
        wanted = _exact_bits(self.shape.dtype, repr(number), number)
        return wanted is not None and bool((_bits(_stored(self.value)) == wanted).all())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return NotImplemented
        if self is other:
            return True
        if self.is_elided != other.is_elided or not self.shape.compatible(other.shape):
            return False
        if self.is_elided or self.shape.is_tuple:
            return self.elements == other.elements
        return bool((_bits(_stored(self.value)) == _bits(_stored(other.value))).all())

    def __hash__(self) -> int:
        if self._hash is None:
            first = b"" if self.is_elided else self.value.flat[:_HASHED_ELEMENTS].tobytes()
            self._hash = hash((self.shape.dtype, self.shape.dims, self.elements, first))
        return self._hash

    def __repr__(self) -> str:
        shown = "..." if self.shape.element_count > 10 or self.is_elided else repr(self.value.tolist())
        return f"Literal({self.shape.text()}, {self.elements if self.shape.is_tuple else shown})"


@lru_cache
def _exact_bits(dtype: DType, text: str, number: float) -> Array | None:
    """The bits of a number in an element type; None if the type does not hold it. Its text tells -0 from 0."""
    with np.errstate(all="ignore"):
        converted = np.asarray(number).astype(dtype.numpy)
        is_exact = converted.astype(np.complex128) == np.complex128(number)
    return _bits(converted.reshape(1)) if is_exact else None


def _exactly(array: Array, shape: Shape) -> Array:
    """The array as a fresh contiguous one of the shape's type; numbers must survive the conversion."""
    wanted = shape.dtype.numpy
    if array.size > 1 and not any(array.strides):
        one = _exactly(array[(0,) * array.ndim], Shape.array(shape.dtype))
        return np.broadcast_to(one, shape.dims)
    if array.dtype == wanted:
        return np.array(array, dtype=wanted, order="C", copy=True)
    with np.errstate(all="ignore"):
        converted = np.ascontiguousarray(array.astype(wanted)).reshape(array.shape)
        if shape.dtype.is_integral or shape.dtype is DType.PRED:
            back = converted.astype(array.dtype) if array.dtype != np.bool_ else converted
            if not np.array_equal(back, array):
                raise LiteralError(f"literal: a value is out of range for {shape.text()}")
    return converted


def _stored(array: Array) -> Array:
    """The elements that are in memory: all of them, or the one that stands for all."""
    return array[(0,) * array.ndim].reshape(1) if array.size > 1 and not any(array.strides) else array


def _bits(array: Array) -> npt.NDArray[np.uint8]:
    contiguous = np.ascontiguousarray(array)
    return contiguous.view(np.uint8).reshape(contiguous.size, -1) if contiguous.size else contiguous.view(np.uint8)
