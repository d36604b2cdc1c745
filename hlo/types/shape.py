"""Shapes: the type of every HLO value.

A shape is an array (element type and dimension sizes, perhaps a layout), a tuple of shapes, a token or an opaque value.
Layouts say how bytes lie in memory; they do not change the meaning of any operation but `bitcast`, and
`Shape.compatible` ignores them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from functools import cache
from typing import TypeAlias

from xlalite.hlo.errors import ShapeError
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType

ShapeIndex: TypeAlias = tuple[int, ...]
# Inside `Shape`, `tuple` is the constructor of tuple shapes, so annotations there use these names.
DimensionOrder: TypeAlias = tuple[int, ...]
Leaf: TypeAlias = "tuple[ShapeIndex, Shape]"


@dataclass(frozen=True, slots=True)
class Layout:
    """How the dimensions of an array lie in memory.

    Attributes:
        minor_to_major: Dimension numbers, the fastest varying first.
        tags: Whatever stood after the colon in the text (tiles, memory space, ...), kept verbatim.
    """

    minor_to_major: tuple[int, ...]
    tags: str = ""

    def __str__(self) -> str:
        """XLA's text, braces included."""
        numbers = ",".join(map(str, self.minor_to_major))
        return "{" + numbers + (":" + self.tags if self.tags else "") + "}"

    @staticmethod
    def row_major(rank: int) -> Layout:
        """The default layout: the last dimension varies fastest."""
        return Layout(tuple(range(rank - 1, -1, -1)))


@dataclass(frozen=True, slots=True)
class Shape:
    """The type of a value; use the constructors `array`, `tuple`, `token`, `opaque`.

    Attributes:
        dtype: Element type; TUPLE, TOKEN, OPAQUE or BUFFER for what is not an array.
        dims: Dimension sizes; for a bounded dynamic dimension, the bound. -1 is an unbounded dimension.
        layout: The written layout, or None for the default one.
        dynamic: One flag a dimension, or empty when no dimension is dynamic.
        elements: Shapes of a tuple's elements; the one array of a buffer.
        is_dynamic: Whether a dimension, here or in an element, has a size known only at run time.
    """

    dtype: DType
    dims: tuple[int, ...] = ()
    layout: Layout | None = None
    dynamic: tuple[bool, ...] = ()
    elements: tuple[Shape, ...] = ()
    # Found once: a tuple's thousand elements are not asked again for each of its thousand readers.
    is_dynamic: bool = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_dynamic", bool(self.dynamic) or any(e.is_dynamic for e in self.elements))

    @staticmethod
    def array(
        dtype: DType, dims: Sequence[int] = (), layout: Layout | None = None, dynamic: Sequence[bool] = ()
    ) -> Shape:
        """An array shape.

        Raises:
            ShapeError: The type holds no array, a size is negative, or the layout does not fit the rank.
        """
        sizes = tuple(int(size) for size in dims)
        if not dtype.is_array:
            raise ShapeError(f"array shape: {dtype.value} is not the element type of an array")
        flags = tuple(dynamic) if any(dynamic) else ()
        if any(size < 0 and not (flags and flags[i] and size == -1) for i, size in enumerate(sizes)):
            raise ShapeError(f"array shape: sizes must not be negative, found {list(sizes)}")
        if layout is not None and sorted(layout.minor_to_major) != list(range(len(sizes))):
            raise ShapeError(
                f"array shape: layout {layout} does not order the {len(sizes)} dimensions of {list(sizes)}"
            )
        if flags and len(flags) != len(sizes):
            raise ShapeError(f"array shape: {len(flags)} dynamic flags for {len(sizes)} dimensions")
        return Shape(dtype, sizes, layout, flags)

    @staticmethod
    def tuple(elements: Sequence[Shape]) -> Shape:
        """A tuple shape."""
        return Shape(DType.TUPLE, elements=tuple(elements))

    @staticmethod
    def token() -> Shape:
        """The shape of a token, which only orders side effects."""
        return Shape(DType.TOKEN)

    @staticmethod
    def opaque() -> Shape:
        """The shape of a value that only custom calls understand."""
        return Shape(DType.OPAQUE)

    @property
    def is_array(self) -> bool:
        """Whether the value is an array."""
        return self.dtype.is_array

    @property
    def is_tuple(self) -> bool:
        """Whether the value is a tuple."""
        return self.dtype is DType.TUPLE

    @property
    def is_token(self) -> bool:
        """Whether the value is a token."""
        return self.dtype is DType.TOKEN

    @property
    def is_scalar(self) -> bool:
        """Whether the value is an array without dimensions."""
        return self.dtype.is_array and not self.dims

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.dims)

    @property
    def element_count(self) -> int:
        """Number of elements of an array; 1 for a scalar."""
        return math.prod(self.dims)

    @property
    def size_bytes(self) -> int:
        """Bytes of all arrays in the shape, one byte an element for sub-byte types."""
        if self.is_array:
            return self.element_count * self.dtype.size_bytes
        return sum(element.size_bytes for element in self.elements)

    @property
    def minor_to_major(self) -> DimensionOrder:
        """The layout's order, the default one when none is written."""
        return self.layout.minor_to_major if self.layout is not None else tuple(range(self.rank - 1, -1, -1))

    @property
    def is_row_major(self) -> bool:
        """Whether the array lies in memory with its last dimension fastest, size-1 dimensions aside."""
        order = [dim for dim in self.minor_to_major if self.dims[dim] != 1]
        return order == sorted(order, reverse=True)

    @property
    def says_layout(self) -> bool:
        """Whether a layout is written, here or in elements, that is not the one where none is written."""
        if self.is_tuple:
            return any(element.says_layout for element in self.elements)
        layout = self.layout
        return layout is not None and (
            bool(layout.tags) or layout.minor_to_major != tuple(range(self.rank - 1, -1, -1))
        )

    def has_sizes(self, sizes: Sequence[int]) -> bool:
        """Whether an array of the shape may have these sizes: those known only at run time are within their bounds."""
        if tuple(sizes) == self.dims:
            return True
        return len(sizes) == len(self.dims) == len(self.dynamic) and all(
            0 <= size <= bound or bound < 0 if is_dynamic else size == bound
            for size, bound, is_dynamic in zip(sizes, self.dims, self.dynamic, strict=True)
        )

    def compatible(self, other: Shape) -> bool:
        """Whether both are the same type; layouts are ignored."""
        if self is other:
            return True
        if self.dtype is not other.dtype or self.dims != other.dims or self.dynamic != other.dynamic:
            return False
        if not self.elements or len(self.elements) != len(other.elements):
            return len(self.elements) == len(other.elements)
        return all(a.compatible(b) for a, b in zip(self.elements, other.elements, strict=True))

    def without_layout(self) -> Shape:
        """The shape with no written layout, here and in elements."""
        if self.is_tuple:
            return Shape.tuple([element.without_layout() for element in self.elements])
        return Shape(self.dtype, self.dims, None, self.dynamic, self.elements) if self.layout is not None else self

    def with_default_layout(self) -> Shape:
        """The shape with a written layout on every array; row-major where none was written."""
        if self.is_tuple:
            return Shape.tuple([element.with_default_layout() for element in self.elements])
        if self.layout is not None or not self.is_array:
            return self
        return replace(self, layout=Layout.row_major(self.rank))

    def with_dtype(self, dtype: DType) -> Shape:
        """An array of the same sizes with another element type."""
        return Shape(dtype, self.dims, self.layout, self.dynamic, self.elements)

    def with_dims(self, dims: Sequence[int]) -> Shape:
        """A static array of the same element type with other sizes and the default layout."""
        return Shape.array(self.dtype, dims)

    def leaves(self, prefix: ShapeIndex = ()) -> Iterator[Leaf]:
        """The shapes that are no tuples, depth first, each with its index."""
        return self._leaves_of_elements(prefix) if self.is_tuple else iter(((prefix, self),))

    def _leaves_of_elements(self, prefix: ShapeIndex) -> Iterator[Leaf]:
        for position, element in enumerate(self.elements):
            yield from element.leaves((*prefix, position))

    def subshape(self, index: ShapeIndex) -> Shape:
        """The shape at a tuple index; `()` is the shape itself.

        Raises:
            ShapeError: The index leads nowhere.
        """
        shape = self
        for position in index:
            if not shape.is_tuple or not 0 <= position < len(shape.elements):
                raise ShapeError(f"shape index: {list(index)} does not exist in {self.text()}")
            shape = shape.elements[position]
        return shape

    def text(self, *, layout: bool = False) -> str:
        """XLA's text, with or without layouts. Scalars have none."""
        if self.is_tuple:
            parts = [
                (f"/*index={i}*/" if i and i % 5 == 0 else "") + element.text(layout=layout)
                for i, element in enumerate(self.elements)
            ]
            return "(" + ", ".join(parts) + ")"
        if self.dtype is DType.BUFFER:
            return "b(" + self.elements[0].text(layout=layout) + ")"
        sizes = map(str, self.dims)
        if self.dynamic:
            flagged = zip(self.dims, self.dynamic, strict=True)
            sizes = map(str, ("?" if size < 0 else f"<={size}" if flag else size for size, flag in flagged))
        written: str = f"{self.dtype.value}[{','.join(sizes)}]"
        if not layout or not (self.dims or self.layout) or not self.is_array:
            return written
        if self.layout is None:
            return written + _row_major_text(len(self.dims))
        return written + str(self.layout) if self.layout.minor_to_major or self.layout.tags else written

    def __str__(self) -> str:
        """XLA's text with layouts."""
        return self.text(layout=True)


@cache
def _row_major_text(rank: int) -> str:
    return str(Layout.row_major(rank))


@dataclass(frozen=True, slots=True)
class ProgramShape:
    """The signature of a computation."""

    parameters: tuple[Shape, ...]
    result: Shape

    def __str__(self) -> str:
        """XLA's text: `(shape, shape) -> shape`."""
        return "(" + ", ".join(p.text() for p in self.parameters) + ") -> " + self.result.text()
