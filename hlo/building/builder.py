"""Builds computations operation by operation; shapes are inferred, and handles take Python's operators.

>>> builder = Builder("axpb")
>>> x = builder.parameter(Shape.array(DType.F32, (8,)), "x")
>>> module = builder.build_module(x * 2.5 + 1.0)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from xlalite.hlo.building import construct
from xlalite.hlo.building.create import create
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction, Metadata
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ir.op import Attrs
from xlalite.hlo.ops import OPS
from xlalite.hlo.ops.comparison import Direction
from xlalite.hlo.ops.structural import ParameterAttrs
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Literal
from xlalite.hlo.types.shape import Shape

Number: TypeAlias = bool | int | float | complex | np.generic
Handles: TypeAlias = "tuple[Handle, ...]"


class Handle:
    """A value under construction. Operators take handles of the same shape, scalars of it, or Python numbers.

    A scalar operand (handle or number) is broadcast to the other operand's sizes; nothing else is.
    """

    __slots__ = ("builder", "instruction")
    __array_priority__ = 1000

    def __init__(self, builder: Builder, instruction: HloInstruction) -> None:
        self.builder = builder
        self.instruction = instruction

    @property
    def shape(self) -> Shape:
        """Type of the value."""
        return self.instruction.shape

    @property
    def dtype(self) -> DType:
        """Element type of the value."""
        return self.instruction.shape.dtype

    @property
    def dims(self) -> tuple[int, ...]:
        """Sizes of the value."""
        return self.instruction.shape.dims

    def _binary(self, opcode: str, other: Handle | Number, *, swapped: bool = False) -> Handle:
        lhs, rhs = self.builder.match(self, other)
        return self.builder.op(opcode, (rhs, lhs) if swapped else (lhs, rhs))

    def __add__(self, other: Handle | Number) -> Handle:
        return self._binary("add", other)

    def __radd__(self, other: Number) -> Handle:
        return self._binary("add", other, swapped=True)

    def __sub__(self, other: Handle | Number) -> Handle:
        return self._binary("subtract", other)

    def __rsub__(self, other: Number) -> Handle:
        return self._binary("subtract", other, swapped=True)

    def __mul__(self, other: Handle | Number) -> Handle:
        return self._binary("multiply", other)

    def __rmul__(self, other: Number) -> Handle:
        return self._binary("multiply", other, swapped=True)

    def __truediv__(self, other: Handle | Number) -> Handle:
        """Quotient, truncated toward zero for integers."""
        return self._binary("divide", other)

    def __rtruediv__(self, other: Number) -> Handle:
        return self._binary("divide", other, swapped=True)

    def __mod__(self, other: Handle | Number) -> Handle:
        """Remainder with the dividend's sign."""
        return self._binary("remainder", other)

    def __pow__(self, other: Handle | Number) -> Handle:
        return self._binary("power", other)

    def __and__(self, other: Handle | Number) -> Handle:
        """Bitwise or logical and."""
        return self._binary("and", other)

    def __or__(self, other: Handle | Number) -> Handle:
        """Bitwise or logical or."""
        return self._binary("or", other)

    def __xor__(self, other: Handle | Number) -> Handle:
        """Bitwise or logical exclusive or."""
        return self._binary("xor", other)

    def __neg__(self) -> Handle:
        return self.builder.op("negate", (self,))

    def __invert__(self) -> Handle:
        """Bitwise or logical not."""
        return self.builder.op("not", (self,))

    def __getitem__(self, index: int) -> Handle:
        return self.builder.element(self, index)

    def __bool__(self) -> bool:
        raise TypeError("the truth value of a handle is not known while the program is being built; use select")

    def __repr__(self) -> str:
        return f"Handle({self.instruction!r})"


class Builder:
    """Builds one computation.

    `op` makes any operation of HLO; the other methods are the ones whose arguments can be said more shortly.
    """

    def __init__(self, name: str, module: HloModule | None = None) -> None:
        """Starts an empty computation.

        Args:
            name: Name of the computation, and of the module made by `build_module`.
            module: The module that called computations belong to; a new one when absent.
        """
        self.computation = HloComputation(name)
        self.module = module if module is not None else HloModule(name)
        self._metadata = Metadata()

    @contextmanager
    def metadata(self, metadata: Metadata) -> Iterator[None]:
        """Gives every instruction made inside the metadata."""
        before, self._metadata = self._metadata, metadata
        try:
            yield
        finally:
            self._metadata = before

    def op(
        self,
        opcode: str,
        operands: Sequence[Handle] = (),
        attrs: Attrs = None,
        called: Sequence[HloComputation] = (),
        *,
        shape: Shape | None = None,
        name: str = "",
    ) -> Handle:
        """Any operation.

        Raises:
            ShapeError: Shapes or attributes do not fit.
        """
        own = [self._own(operand) for operand in operands]
        return self._added(create(opcode, own, attrs, called, shape=shape, name=name))

    @property
    def name(self) -> str:
        """Name of the computation."""
        return self.computation.name

    def parameter(self, shape: Shape, name: str = "", number: int | None = None) -> Handle:
        """The next parameter, or the one with a number."""
        position = self.computation.parameter_count if number is None else number
        return self.op("parameter", (), ParameterAttrs(position), shape=shape, name=name or f"p{position}")

    def constant(self, value: npt.ArrayLike | Literal, dtype: DType | None = None) -> Handle:
        """A constant: a literal, an array, or a number of a given type.

        Raises:
            LiteralError: The number does not exist in the type.
        """
        if not isinstance(value, Literal):
            array = np.asarray(value)
            value = Literal(array, None if dtype is None else Shape.array(dtype, array.shape))
        return self._added(construct.constant(value))

    def full(self, value: Number, dtype: DType, dims: Sequence[int]) -> Handle:
        """An array with one value everywhere."""
        return self.broadcast(self.constant(value, dtype), dims)

    def zeros(self, shape: Shape) -> Handle:
        """Zeros of a shape; a token where it has one."""
        if shape.is_tuple:
            return self.tuple([self.zeros(element) for element in shape.elements])
        if not shape.is_array:
            return self.op("after-all")
        return self.broadcast(self.constant(np.zeros((), shape.dtype.numpy), shape.dtype), shape.dims)

    def match(self, lhs: Handle, rhs: Handle | Number) -> tuple[Handle, Handle]:
        """Both operands at the same sizes: numbers become constants of the other's type, scalars are broadcast."""
        if not isinstance(rhs, Handle):
            rhs = self.constant(rhs, lhs.dtype)
        if lhs.dims == rhs.dims:
            return lhs, rhs
        if not rhs.dims:
            return lhs, self.broadcast(rhs, lhs.dims)
        if not lhs.dims:
            return self.broadcast(lhs, rhs.dims), rhs
        return lhs, rhs

    def broadcast(self, operand: Handle, dims: Sequence[int], dimensions: Sequence[int] = ()) -> Handle:
        """Replicates: operand dimension i becomes result dimension dimensions[i]."""
        return self._added(construct.broadcast(self._own(operand), dims, dimensions))

    def broadcast_in_dim(self, operand: Handle, dims: Sequence[int], dimensions: Sequence[int]) -> Handle:
        """Replicates and stretches: as `broadcast`, but dimensions of size 1 become any size."""
        target = tuple(dims)
        kept = [i for i, place in enumerate(dimensions) if operand.dims[i] == target[place]]
        if any(size != 1 for i, size in enumerate(operand.dims) if i not in kept):
            return self.broadcast(operand, target, dimensions)  # whose rule says what is wrong
        if len(kept) < len(operand.dims):
            operand = self.reshape(operand, [operand.dims[i] for i in kept])
        return self.broadcast(operand, target, [dimensions[i] for i in kept])

    def reshape(self, operand: Handle, dims: Sequence[int]) -> Handle:
        """The same elements in row-major order with other sizes."""
        return self._added(construct.reshape(self._own(operand), dims))

    def transpose(self, operand: Handle, dimensions: Sequence[int]) -> Handle:
        """Result dimension i is operand dimension dimensions[i]."""
        return self._added(construct.transpose(self._own(operand), dimensions))

    def slice(
        self, operand: Handle, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int] | None = None
    ) -> Handle:
        """The elements starts[i], starts[i] + strides[i], ... below limits[i] of every dimension i."""
        steps = strides if strides is not None else [1] * len(starts)
        ranges = list(zip(starts, limits, steps, strict=True))
        return self._added(construct.slice_of(self._own(operand), ranges))

    def scalars(self, vector: Handle) -> Handles:
        """The elements of an array `[n]`, n scalars."""
        return (*(self.reshape(self.slice(vector, [i], [i + 1]), ()) for i in range(vector.dims[0])),)

    def dynamic_slice(self, operand: Handle, starts: Sequence[Handle], sizes: Sequence[int]) -> Handle:
        """A window of given sizes that begins at scalar indices."""
        return self._added(construct.dynamic_slice(self._own(operand), [*map(self._own, starts)], sizes))

    def pad(self, operand: Handle, value: Handle, padding: Sequence[tuple[int, int, int]]) -> Handle:
        """A scalar around and between the elements: (low, high, interior) for every dimension."""
        return self._added(construct.pad(self._own(operand), self._own(value), padding))

    def concatenate(self, operands: Sequence[Handle], dimension: int) -> Handle:
        """The operands one behind the other."""
        return self._added(construct.concatenate([*map(self._own, operands)], dimension))

    def reverse(self, operand: Handle, dimensions: Sequence[int]) -> Handle:
        """The elements turned round along dimensions."""
        return self._added(construct.reverse(self._own(operand), dimensions))

    def convert(self, operand: Handle, dtype: DType) -> Handle:
        """The values in another element type."""
        return self._added(construct.convert(self._own(operand), dtype))

    def iota(self, dtype: DType, dims: Sequence[int], dimension: int) -> Handle:
        """The index along one dimension."""
        return self._added(construct.iota(dtype, dims, dimension))

    def element(self, operand: Handle, index: int) -> Handle:
        """Element of a tuple."""
        return self._added(construct.element(self._own(operand), index))

    def tuple(self, elements: Sequence[Handle]) -> Handle:
        """A tuple of values."""
        return self.op("tuple", elements)

    def compare(self, lhs: Handle, rhs: Handle | Number, direction: str) -> Handle:
        """A comparison: EQ, NE, LT, LE, GT or GE, with the element type's default order."""
        left, right = map(self._own, self.match(lhs, rhs))
        return self._added(construct.compare(left, right, Direction(direction)))

    def select(self, condition: Handle, on_true: Handle, on_false: Handle | Number) -> Handle:
        """Element by element: on_true where the condition holds, else on_false."""
        return self.op("select", (condition, *self.match(on_true, on_false)))

    def reduce(
        self,
        operands: Handle | Sequence[Handle],
        initial: Handle | Number | Sequence[Handle],
        dimensions: Sequence[int],
        to_apply: str | HloComputation,
    ) -> Handle:
        """Reduces along dimensions.

        Args:
            operands: One array, or several for a variadic reduction.
            initial: The identity for each operand.
            dimensions: The dimensions that go away.
            to_apply: An opcode such as `add`, or a computation (accumulators..., elements...) -> accumulators.
        """
        arrays = (operands,) if isinstance(operands, Handle) else tuple(operands)
        starts: Sequence[Handle]
        if isinstance(initial, Handle):
            starts = (initial,)
        elif isinstance(initial, Sequence):
            starts = tuple(initial)
        else:
            starts = (self.constant(initial, arrays[0].dtype),)
        function = self.scalar_function(to_apply, arrays[0].dtype) if isinstance(to_apply, str) else to_apply
        return self.op("reduce", (*arrays, *starts), OPS["reduce"].attrs(tuple(dimensions)), (function,))

    def scalar_function(self, opcode: str, dtype: DType) -> HloComputation:
        """The computation (x, y) -> opcode(x, y) on scalars; one for each opcode and type in the module."""
        name = f"{opcode}_{dtype.value}"
        try:
            return self.module.find(name)
        except KeyError:
            scalar = Shape.array(dtype)
            return self.subcomputation(name, (scalar, scalar), lambda b, p: b.op(opcode, p))

    def subcomputation(
        self, name: str, parameters: Sequence[Shape], body: Callable[[Builder, Handles], Handle]
    ) -> HloComputation:
        """A computation of the same module: `body(builder, parameters)` builds it and returns its root."""
        inner = Builder(name, self.module)
        with inner.metadata(self._metadata):
            root = body(inner, tuple(inner.parameter(shape) for shape in parameters))
        return inner.build(root)

    def build(self, root: Handle, *, entry: bool = False) -> HloComputation:
        """Closes the computation with its root and adds it to the module."""
        self.computation.set_root(root.instruction)
        return self.module.add(self.computation, entry=entry)

    def build_module(self, root: Handle) -> HloModule:
        """Closes the computation as the module's entry and returns the module."""
        self.build(root, entry=True)
        return self.module

    def _own(self, operand: Handle) -> HloInstruction:
        if operand.instruction.parent is not self.computation:
            home = operand.builder.name
            raise ShapeError(f"building {self.name}: operand {operand!r} belongs to another computation, {home}")
        return operand.instruction

    def _added(self, instruction: HloInstruction) -> Handle:
        """The handle of an instruction, which joins the computation unless it is there already."""
        if instruction.parent is None:
            instruction.metadata = self._metadata
            self.computation.add(instruction)
        return Handle(self, instruction)
