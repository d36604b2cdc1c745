"""The pass that puts features of convolutions last, where only they make words of terms to be multiplied at once."""

from __future__ import annotations

from dataclasses import field, replace
from typing import ClassVar

from xlalite.backends.codegen.kernels.dot.feature_padding import ConvolutionFeaturePadding, on_parameters
from xlalite.backends.codegen.kernels.dot.numbers import in_words, numbers_of, why_no_numbers
from xlalite.backends.codegen.kernels.dot.plan import plan_dot
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.convolution import ConvolutionAttrs
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.convolution_dims import ConvolutionDims
from xlalite.hlo.types.shape import Shape
from xlalite.passes.analysis.matrix_products import is_matrix_product
from xlalite.passes.rewriting.expander import OpExpander

_MOVE = 32.0
"""Cycles to move a vector to its other place."""


@dataclass(frozen=True, slots=True)
class ConvolutionFeatureOrder(OpExpander):
    """convolution(x, k) -> transpose(convolution(transpose(x), transpose(k))), all three with features last.

    Words are neighbouring terms in a run of a window; where pixels are last, such runs are a few pixels. Comes after
    whatever gives convolutions the form of products, and before features are added. Declines where there are words
    already, or what is moved costs more than the product gains.

    Attributes:
        target: What the code is for.
    """

    name: ClassVar[str] = "convolution-feature-order"
    opcodes: ClassVar[frozenset[str]] = frozenset({"convolution"})

    target: TargetInfo = field(default_factory=TargetInfo.host)

    def may_expand(self, instruction: HloInstruction) -> bool:
        """Whether the product is in words only with features last, and cheaper so."""
        attrs: ConvolutionAttrs = instruction.attrs
        if attrs.feature_group_count * attrs.batch_group_count > 1 or attrs.dim_labels == _features_last(instruction):
            return False
        if not is_matrix_product(instruction) or why_no_numbers(instruction) is not None:
            return False
        if in_words(numbers_of(instruction), self.target, lambda terms: True).word == 1:
            return False
        plan = plan_dot(instruction, self.target)
        if plan.numbers.word > 1:
            return False
        moved = (*(operand.shape for operand in instruction.operands), instruction.shape)
        vectors = sum(shape.element_count for shape in moved) / self.target.lanes(32)
        last = self._last(instruction)
        return ConvolutionFeaturePadding(self.target).least_cycles(last) + _MOVE * vectors < plan.cycles

    def expand(self, builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...]) -> Handle:
        """Builds the transposes and the convolution between them."""
        attrs: ConvolutionAttrs = instruction.attrs
        before, after = attrs.dim_labels, _features_last(instruction)
        orders = order_of(before.input, after.input), order_of(before.kernel, after.kernel)
        moved = [builder.transpose(operand, order) for operand, order in zip(operands, orders, strict=True)]
        last = self._last(instruction)
        result = builder.op("convolution", moved, last.attrs, shape=last.shape)
        return builder.transpose(result, order_of(after.output, before.output))

    def _last(self, convolution: HloInstruction) -> HloInstruction:
        """The convolution with features last; a loose instruction."""
        attrs: ConvolutionAttrs = convolution.attrs
        before, after = attrs.dim_labels, _features_last(convolution)
        lhs, rhs = (operand.shape for operand in convolution.operands)
        shapes = moved(lhs, before.input, after.input), moved(rhs, before.kernel, after.kernel)
        shape = moved(convolution.shape, before.output, after.output)
        return on_parameters(convolution, shapes, replace(attrs, dim_labels=after), shape)


def _features_last(convolution: HloInstruction) -> ConvolutionDims:
    space = "".join(str(number) for number in range(convolution.attrs.dim_labels.spatial_rank))
    return ConvolutionDims(f"b{space}f", f"{space}io", f"b{space}f")


def order_of(before: str, after: str) -> tuple[int, ...]:
    """The permutation of dimensions that leads from labels to others."""
    return tuple(map(before.index, after))


def moved(shape: Shape, before: str, after: str) -> Shape:
    """A shape with its dimensions in the order of other labels."""
    return Shape.array(shape.dtype, tuple(shape.dims[dim] for dim in order_of(before, after)))
