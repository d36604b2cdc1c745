"""Shapes of graph tensors, in which sizes and even the rank may be unknown."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from xlalite.hlo.errors import ShapeError

Dims: TypeAlias = "tuple[int | None, ...]"
ShapeLike: TypeAlias = "TensorShape | Sequence[Any] | np.ndarray[Any, Any] | int | Dimension | None"


class Dimension:
    """One size, perhaps unknown; arithmetic with an unknown size gives an unknown size."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        """Takes a non-negative integer, None or another dimension."""
        self._value = as_size(value)

    @property
    def value(self) -> int | None:
        """The size, or None."""
        return self._value

    def is_compatible_with(self, other: Any) -> bool:
        """Whether both may stand for the same size."""
        size = as_size(other)
        return self._value is None or size is None or self._value == size

    def merge_with(self, other: Any) -> Dimension:
        """The dimension that satisfies both.

        Raises:
            ShapeError: the sizes are known and differ.
        """
        return Dimension(_merge_sizes(self._value, as_size(other), f"dimensions {self} and {other}"))

    def __int__(self) -> int:
        if self._value is None:
            raise TypeError("the size of this dimension is unknown, so it is no integer")
        return self._value

    def __index__(self) -> int:
        """The known size, wherever Python wants an integer."""
        return int(self)

    def __eq__(self, other: object) -> bool:
        """Whether the sizes are the same; an unknown size equals only None."""
        try:
            return self._value == as_size(other)
        except (TypeError, ShapeError):
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self._value)

    def __add__(self, other: Any) -> Dimension:
        return self._combine(other, lambda a, b: a + b)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Dimension:
        return self._combine(other, lambda a, b: a - b)

    def __rsub__(self, other: Any) -> Dimension:
        return Dimension(other) - self

    def __mul__(self, other: Any) -> Dimension:
        return self._combine(other, lambda a, b: a * b)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Dimension:
        """Quotient, rounded down."""
        return self._combine(other, lambda a, b: a // b)

    def __mod__(self, other: Any) -> Dimension:
        return self._combine(other, lambda a, b: a % b)

    def _combine(self, other: Any, function: Any) -> Dimension:
        size = as_size(other)
        if self._value is None or size is None:
            return Dimension(None)
        return Dimension(function(self._value, size))

    def __str__(self) -> str:
        """The size, or `?`."""
        return "?" if self._value is None else str(self._value)

    def __repr__(self) -> str:
        return f"Dimension({self._value})"


class TensorShape:
    """An immutable tuple of sizes, each perhaps unknown, or a shape of unknown rank."""

    __slots__ = ("_dims",)

    _dims: Dims | None

    def __init__(self, dims: ShapeLike) -> None:
        """Takes None (unknown rank), a sequence of sizes, one size, or another shape; -1 is not a size."""
        if dims is None:
            self._dims = None
            return
        if isinstance(dims, TensorShape):
            self._dims = dims._dims
            return
        # An array has __index__ whatever its sizes; a scalar's list is a number.
        listed = dims.tolist() if isinstance(dims, np.ndarray) else dims
        if isinstance(listed, Dimension) or hasattr(listed, "__index__"):
            self._dims = (as_size(listed),)
        elif hasattr(listed, "__iter__"):
            self._dims = tuple(as_size(size) for size in listed)
        else:
            raise TypeError(f"a shape must be None, an integer or a sequence of integers, found {dims!r}")

    @property
    def dims(self) -> Dims | None:
        """Sizes (None where unknown), or None when the rank is unknown."""
        return self._dims

    @property
    def rank(self) -> int | None:
        """Number of dimensions, or None."""
        return None if self._dims is None else len(self._dims)

    @property
    def ndims(self) -> int | None:
        """The same as `rank`."""
        return self.rank

    def is_fully_defined(self) -> bool:
        """Whether rank and all sizes are known."""
        return self._dims is not None and None not in self._dims

    def known_dims(self) -> tuple[int, ...]:
        """All sizes.

        Raises:
            ShapeError: something is unknown.
        """
        if self._dims is None:
            raise ShapeError("the rank of this shape is unknown")
        known = tuple(size for size in self._dims if size is not None)
        if len(known) != len(self._dims):
            raise ShapeError(f"the shape {self} is not fully known")
        return known

    def as_list(self) -> list[int | None]:
        """Sizes as a list, None where unknown.

        Raises:
            ShapeError: the rank is unknown.
        """
        if self._dims is None:
            raise ShapeError("as_list() is not defined on a shape of unknown rank")
        return list(self._dims)

    def num_elements(self) -> int | None:
        """Number of elements, or None when it is not known."""
        if self._dims is None or None in self._dims:
            return None
        return math.prod(self.known_dims())

    def is_compatible_with(self, other: ShapeLike) -> bool:
        """Whether one array could have both shapes."""
        theirs = TensorShape(other)._dims
        if self._dims is None or theirs is None:
            return True
        return len(self._dims) == len(theirs) and all(
            a is None or b is None or a == b for a, b in zip(self._dims, theirs, strict=True)
        )

    def merge_with(self, other: ShapeLike) -> TensorShape:
        """The shape that knows what either knows.

        Raises:
            ShapeError: the two contradict each other.
        """
        theirs = TensorShape(other)
        if self._dims is None:
            return theirs
        if theirs._dims is None:
            return self
        if len(self._dims) != len(theirs._dims):
            raise ShapeError(f"shapes {self} and {theirs} have different ranks")
        what = f"shapes {self} and {theirs}"
        return TensorShape([_merge_sizes(a, b, what) for a, b in zip(self._dims, theirs._dims, strict=True)])

    def concatenate(self, other: ShapeLike) -> TensorShape:
        """This shape followed by the dimensions of another."""
        theirs = TensorShape(other)._dims
        return TensorShape(None if self._dims is None or theirs is None else self._dims + theirs)

    def with_rank(self, rank: int) -> TensorShape:
        """This shape, known to have `rank` dimensions.

        Raises:
            ShapeError: the rank is another one.
        """
        if self._dims is None:
            return TensorShape([None] * rank)
        if len(self._dims) != rank:
            raise ShapeError(f"shape {self} must have rank {rank}")
        return self

    def with_rank_at_least(self, rank: int) -> TensorShape:
        """This shape, checked to have at least `rank` dimensions where the rank is known.

        Raises:
            ShapeError: the rank is smaller.
        """
        if self._dims is not None and len(self._dims) < rank:
            raise ShapeError(f"shape {self} must have rank at least {rank}")
        return self

    def assert_is_compatible_with(self, other: ShapeLike) -> None:
        """Raises ShapeError unless one array could have both shapes."""
        if not self.is_compatible_with(other):
            raise ShapeError(f"shapes {self} and {TensorShape(other)} are incompatible")

    def __getitem__(self, key: int | slice) -> Any:
        """One `Dimension`, or a `TensorShape` for a slice."""
        if self._dims is None:
            return TensorShape(None) if isinstance(key, slice) else Dimension(None)
        return TensorShape(self._dims[key]) if isinstance(key, slice) else Dimension(self._dims[key])

    def __len__(self) -> int:
        if self._dims is None:
            raise ShapeError("the rank of this shape is unknown, so it has no length")
        return len(self._dims)

    def __iter__(self) -> Iterator[Dimension]:
        return iter([Dimension(size) for size in self.as_list()])

    def __bool__(self) -> bool:
        return self._dims is not None

    def __add__(self, other: ShapeLike) -> TensorShape:
        return self.concatenate(other)

    def __eq__(self, other: object) -> bool:
        try:
            return self._dims == TensorShape(other)._dims  # type: ignore[arg-type]
        except (TypeError, ShapeError):
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self._dims)

    def __str__(self) -> str:
        """`(2, ?)`, `()` or `<unknown>`."""
        if self._dims is None:
            return "<unknown>"
        inner = ", ".join("?" if size is None else str(size) for size in self._dims)
        return f"({inner},)" if len(self._dims) == 1 else f"({inner})"

    def __repr__(self) -> str:
        """`TensorShape([2, None])`."""
        return f"TensorShape({None if self._dims is None else list(self._dims)})"


def as_shape(shape: ShapeLike) -> TensorShape:
    """`shape` as a `TensorShape`."""
    return shape if isinstance(shape, TensorShape) else TensorShape(shape)


def as_size(value: Any) -> int | None:
    """A size as a plain integer or None.

    Raises:
        ShapeError: the size is negative.
        TypeError: the value is no integer.
    """
    if value is None:
        return None
    if isinstance(value, Dimension):
        return value.value
    size = int(value.__index__()) if hasattr(value, "__index__") else _not_a_size(value)
    if size < 0:
        raise ShapeError(f"a dimension must not be negative, found {size}")
    return size


def unknown_shape(rank: int | None = None) -> TensorShape:
    """A shape of which at most the rank is known."""
    return TensorShape(None if rank is None else [None] * rank)


def _not_a_size(value: Any) -> int:
    raise TypeError(f"a dimension must be an integer or None, found {value!r}")


def _merge_sizes(a: int | None, b: int | None, what: str) -> int | None:
    if a is None or b is None or a == b:
        return b if a is None else a
    raise ShapeError(f"{what} are not compatible: sizes {a} and {b} differ")
