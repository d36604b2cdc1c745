"""One operation of a graph as its rule sees it: the builder, the types of its results, and ATen's manners.

ATen's manners are its broadcasting, its promotion of types, axes that count from the end, and arithmetic on narrow
floating-point types that is done in f32 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import torch

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.ir.monoid import MonoidKind, monoid_identity
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType, Kind
from xlalite.hlo.types.shape import Shape
from xlalite.interop.torch.dtypes import DTYPES, TORCH_DTYPES
from xlalite.interop.torch.rules.registry import Declined

Number: TypeAlias = bool | int | float | complex
Operand: TypeAlias = Handle | Number
Refusals: TypeAlias = dict[tuple[type[Exception], str], Handle]
_NARROW = (DType.F16, DType.BF16, DType.F8E4M3FN, DType.F8E5M2, DType.F8E4M3FNUZ, DType.F8E5M2FNUZ)


@dataclass(frozen=True, slots=True)
class Operation:
    """What a rule works with.

    Attributes:
        builder: Where instructions are made.
        name: The overload, as in `aten.add.Tensor`.
        results: Types of the results; None for one that is not there.
        refusals: Conditions that must not hold anywhere, by what is raised then, for the whole module.
    """

    builder: Builder
    name: str
    results: tuple[Shape | None, ...]
    refusals: Refusals

    @property
    def shape(self) -> Shape:
        """Type of the first result."""
        shape = self.results[0]
        if shape is None:
            raise Declined(f"{self.name}: has no result")
        return shape

    @property
    def dtype(self) -> DType:
        """Element type of the first result."""
        return self.shape.dtype

    @property
    def dims(self) -> tuple[int, ...]:
        """Sizes of the first result."""
        return self.shape.dims

    @property
    def unique_name(self) -> str:
        """A name that no other operation of the module has, for computations that a rule makes."""
        return f"{self.builder.computation.name}_{len(self.builder.computation.instructions)}"

    def shape_like(self, value: Handle, dtype: DType) -> Shape:
        """The type of a value of the same sizes."""
        return Shape.array(dtype, value.dims)

    def refuse_where(self, condition: Handle, message: str, error: type[Exception] = RuntimeError) -> None:
        """Makes a call raise an error where a condition holds."""
        found, said = self.reduce(condition, range(len(condition.dims)), "or", False), (error, message)
        self.refusals[said] = found | self.refusals[said] if said in self.refusals else found

    def cast(self, value: Operand, dtype: DType) -> Handle:
        """A handle in another element type, or a number as a constant of it."""
        if isinstance(value, Handle):
            if dtype is DType.PRED and value.dtype is not dtype:
                return self.builder.compare(value, self.number(0, value.dtype), "NE")
            if value.dtype.kind is Kind.COMPLEX and dtype.kind is not Kind.COMPLEX:
                value = self.builder.op("real", (value,))
            return self.builder.convert(value, dtype)
        return self.number(value, dtype)

    def number(self, value: Number, dtype: DType) -> Handle:
        """A constant, converted as ATen converts numbers: truncated, wrapped round, or compared with zero."""
        match dtype.kind:
            case Kind.PRED:
                value = bool(value)
            case Kind.SIGNED | Kind.UNSIGNED:
                if isinstance(value, complex) or (isinstance(value, float) and not math.isfinite(value)):
                    raise Declined(f"{self.name}: {value} as {dtype.value}")
                low = -(1 << dtype.bits - 1) if dtype.kind is Kind.SIGNED else 0
                value = (int(value) - low) % (1 << dtype.bits) + low
            case _:
                value = value if isinstance(value, complex) else float(value)
        return self.builder.constant(value, dtype)

    def full(self, value: Operand, dtype: DType, dims: Sequence[int]) -> Handle:
        """One value everywhere; a number that the type does not hold is an error of torch."""
        if isinstance(value, int) and dtype.is_integral and not _holds(dtype, value):
            raise Declined(f"{self.name}: {value} as {dtype.value}")
        return self.expand(self.cast(value, dtype), dims)

    def expand(self, value: Handle, dims: Sequence[int]) -> Handle:
        """Broadcasting: dimensions are aligned at the end, and those of size 1 are stretched."""
        target = tuple(dims)
        if value.dims == target:
            return value
        shift = len(target) - len(value.dims)
        return self.builder.broadcast_in_dim(value, target, range(shift, len(target)))

    def promoted(self, x: Operand, y: Operand) -> DType:
        """The type in which ATen computes with two operands together."""
        return DTYPES[torch.result_type(_example(x), _example(y))]

    def wide(self, value: Operand, dtype: DType | None = None) -> Handle:
        """A value in the type in which torch's kernels compute: f32 for narrower floating-point types."""
        return self.cast(value, wide_dtype(dtype or self.dtype))

    def unary(self, opcode: str, value: Handle) -> Handle:
        """A function of each element, computed in the wide type and rounded once."""
        return self.cast(self.builder.op(opcode, (self.wide(value),)), self.dtype)

    def binary(self, opcode: str, lhs: Operand, rhs: Operand, dtype: DType | None = None) -> Handle:
        """A function of two operands at the result's sizes; in the result's type if no other is given."""
        own = dtype or self.dtype
        operands = [self.expand(self.cast(value, own), self.dims) for value in (lhs, rhs)]
        return self.builder.op(opcode, operands)

    def axis(self, number: int, rank: int) -> int:
        """An axis that may count from the end; a scalar has one axis, too."""
        return number % max(1, rank)

    def axes(self, numbers: Sequence[int] | int | None, rank: int) -> tuple[int, ...]:
        """Axes in ascending order; all of them when none are named."""
        if numbers is None or numbers == [] or numbers == ():
            return tuple(range(rank))
        named = (numbers,) if isinstance(numbers, int) else numbers
        return tuple(sorted(self.axis(number, rank) for number in named)) if rank else ()

    def reduce(self, value: Handle, axes: Sequence[int], opcode: str, initial: Number, keep: bool = False) -> Handle:
        """A reduction along axes; kept ones have size 1."""
        reduced = self.builder.reduce(value, self.number(initial, value.dtype), axes, opcode)
        if not keep:
            return reduced
        return self.builder.reshape(reduced, [1 if i in axes else size for i, size in enumerate(value.dims)])


def wide_dtype(dtype: DType) -> DType:
    """The type in which torch's kernels compute with an element type."""
    return DType.F32 if dtype in _NARROW else dtype


def lowest(dtype: DType) -> Number:
    """The identity of the maximum."""
    number: Number = monoid_identity(MonoidKind.MAXIMUM, dtype).item()
    return number


def highest(dtype: DType) -> Number:
    """The identity of the minimum."""
    number: Number = monoid_identity(MonoidKind.MINIMUM, dtype).item()
    return number


def _holds(dtype: DType, value: int) -> bool:
    low, high = lowest(dtype), highest(dtype)
    assert isinstance(low, int), "the type is integral"
    assert isinstance(high, int), "the type is integral"
    return low <= value <= high


def _example(value: Operand) -> Any:
    """A tensor of the same type that is a scalar where the value is; a number itself."""
    if not isinstance(value, Handle):
        return value
    return torch.empty((1,) if value.dims else (), dtype=TORCH_DTYPES[value.dtype])
