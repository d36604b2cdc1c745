"""Expresses products of complex numbers, convolutions too, by those of real ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.dot import DotAttrs, dot_flops, free_dimensions
from xlalite.hlo.records import dataclass
from xlalite.hlo.spelling.codecs import Precision
from xlalite.hlo.types.shape import Shape
from xlalite.passes.rewriting.expander import OpExpander

if TYPE_CHECKING:
    from xlalite.hlo.ops.convolution import ConvolutionAttrs


@dataclass(frozen=True, slots=True)
class ComplexDotExpander(OpExpander):
    """dot(A, B) or convolution of complex numbers -> one of real numbers.

    There are four real multiplications for a complex one, none of them wasted.

    An array of complex numbers is one of real numbers whose last dimension has the two parts; the larger operand is
    read as that, where it lies.

    - Where its last dimension is contracted, so are the parts: [Re A, Im A] times [[Re B, Im B], [-Im B, Re B]] has the
      parts of AB. What the other operand becomes is B and iB side by side, or their conjugates where that way its
      contracted dimensions end up together.
    - Else both operands' parts are kept, and the four products are put together behind the dot.

    Sums of parts have twice the terms, some with the other sign; the highest precision makes up for what that costs.

    A convolution has the two parts as features: [Re A, Im A] by [[Re B, Im B], [-Im B, Re B]].

    Declines for products too small to be worth arranging operands for, and for convolutions in groups.

    Attributes:
        least_flops: Smaller products stay; they are computed element by element.
    """

    name: ClassVar[str] = "complex-dot-expander"
    opcodes: ClassVar[frozenset[str]] = frozenset({"dot", "convolution"})

    least_flops: int = 1 << 15

    def may_expand(self, instruction: HloInstruction) -> bool:
        """Whether the numbers are complex and many enough."""
        if not instruction.shape.dtype.is_complex:
            return False
        if instruction.opcode == "dot":
            return dot_flops(instruction) >= self.least_flops
        attrs: ConvolutionAttrs = instruction.attrs
        kernel = instruction.operand(1).shape
        terms = kernel.element_count // max(1, kernel.dims[attrs.dim_labels.kernel_output_feature])
        is_whole = attrs.feature_group_count == attrs.batch_group_count == 1
        return is_whole and 2 * terms * instruction.shape.element_count >= self.least_flops

    def expand(self, builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...]) -> Handle:
        """Builds the product of real numbers."""
        attrs, shape = instruction.attrs, instruction.shape
        left, right = (builder.convert(operand, shape.dtype) for operand in operands)
        if instruction.opcode == "convolution":
            return _convolution(builder, attrs, shape, left, right)
        sides = [
            _Side(left, attrs.lhs_batch_dims, attrs.lhs_contracting_dims),
            _Side(right, attrs.rhs_batch_dims, attrs.rhs_contracting_dims),
        ]
        large = int(left.shape.element_count < right.shape.element_count)
        if sides[large].last_is_contracted:
            sides[large], sides[1 - large] = sides[large].as_real(contracted=True), sides[1 - large].twice()
        else:
            sides = [side.as_real(contracted=False) for side in sides]
        lhs, rhs = sides
        product = builder.op("dot", (lhs.array, rhs.array), _attrs(attrs, lhs, rhs))
        first = len(lhs.batch), product.shape.rank - len(rhs.free)
        places = [
            start + side.free.index(side.parts)
            for start, side in zip(first, sides, strict=True)
            if side.parts is not None
        ]
        return _joined(product, places, shape)


def _convolution(builder: Builder, attrs: ConvolutionAttrs, shape: Shape, lhs: Handle, rhs: Handle) -> Handle:
    labels = attrs.dim_labels
    inputs, outputs, features = labels.kernel_input_feature, labels.kernel_output_feature, labels.output_feature
    image = builder.concatenate([builder.op("real", (lhs,)), builder.op("imag", (lhs,))], labels.input_feature)
    real, imaginary = builder.op("real", (rhs,)), builder.op("imag", (rhs,))
    rows = [builder.concatenate(row, outputs) for row in ([real, imaginary], [-imaginary, real])]
    dims = (*shape.dims[:features], 2 * shape.dims[features], *shape.dims[features + 1 :])
    product = builder.op(
        "convolution",
        (image, builder.concatenate(rows, inputs)),
        attrs,
        shape=shape.with_dims(dims).with_dtype(shape.dtype.component),
    )
    parts = builder.reshape(product, (*dims[:features], 2, *shape.dims[features:]))
    return _joined(parts, [features], shape)


@dataclass(frozen=True, slots=True)
class _Side:
    """An operand.

    Attributes:
        array: The operand.
        batch: Its batch dimensions.
        contracted: Its contracted dimensions.
        parts: The free dimension that has the parts; None if there is none.
    """

    array: Handle
    batch: tuple[int, ...]
    contracted: tuple[int, ...]
    parts: int | None = None

    @property
    def free(self) -> list[int]:
        """The dimensions that the result has."""
        return free_dimensions(self.array.shape.rank, self.batch, self.contracted)

    @property
    def last_is_contracted(self) -> bool:
        """Whether neighbours are terms of one sum."""
        return self.array.shape.rank - 1 in self.contracted

    def as_real(self, *, contracted: bool) -> _Side:
        """The same memory with the two parts as a last dimension, contracted or free."""
        rank, dims = self.array.shape.rank, (*self.array.dims, 2)
        shape = Shape.array(self.array.dtype.component, dims)
        array = self.array.builder.op("bitcast", (self.array,), shape=shape)
        if contracted:
            return replace(self, array=array, contracted=(*self.contracted, rank))
        return replace(self, array=array, parts=rank)

    def twice(self) -> _Side:
        """The operand, in real numbers, once for each part of the result; one of the new dimensions is contracted."""
        builder = self.array.builder
        real, imaginary = builder.op("real", (self.array,)), builder.op("imag", (self.array,))
        if self.last_is_contracted:
            place = max(self.free, default=-1) + 1
            parts = (real, -imaginary), (imaginary, real)
        else:
            place = max(self.contracted) + 1
            parts = (real, imaginary), (-imaginary, real)
        dims = (*self.array.dims[:place], 1, *self.array.dims[place:])
        both = builder.concatenate([builder.reshape(builder.op("complex", pair), dims) for pair in parts], place)
        batch, contracted = (tuple(d + (d >= place) for d in old) for old in (self.batch, self.contracted))
        if self.last_is_contracted:
            return replace(_Side(both, batch, contracted).as_real(contracted=True), parts=place)
        return _Side(both, batch, (*contracted, place)).as_real(contracted=False)


def _attrs(attrs: DotAttrs, lhs: _Side, rhs: _Side) -> DotAttrs:
    return replace(
        attrs,
        lhs_batch_dims=lhs.batch,
        lhs_contracting_dims=lhs.contracted,
        rhs_batch_dims=rhs.batch,
        rhs_contracting_dims=rhs.contracted,
        operand_precision=(Precision.HIGHEST, Precision.HIGHEST),
    )


def _joined(product: Handle, places: Sequence[int], shape: Shape) -> Handle:
    """The complex numbers whose parts, or products of them, lie along some dimensions."""
    builder = product.builder
    if places == [product.shape.rank - 1]:
        return builder.op("bitcast", (product,), shape=shape)

    def part(*numbers: int) -> Handle:
        starts, limits = [0] * product.shape.rank, list(product.dims)
        for place, number in zip(places, numbers, strict=True):
            starts[place], limits[place] = number, number + 1
        return builder.reshape(builder.slice(product, starts, limits), shape.dims)

    if len(places) == 1:
        return builder.op("complex", (part(0), part(1)))
    return builder.op("complex", (part(0, 0) - part(1, 1), part(0, 1) + part(1, 0)))
