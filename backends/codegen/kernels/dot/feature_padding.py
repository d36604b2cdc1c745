"""The pass that gives inputs of convolutions whole words of features, where several terms are multiplied at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import ClassVar

from xlalite.backends.codegen.kernels.dot.numbers import in_words, numbers_of, why_no_numbers
from xlalite.backends.codegen.kernels.dot.plan import plan_dot
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.building.create import create
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.convolution import ConvolutionAttrs
from xlalite.hlo.ops.structural import ParameterAttrs
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.shape import Shape
from xlalite.passes.analysis.matrix_products import is_in_phases, is_matrix_product
from xlalite.passes.rewriting.expander import OpExpander

_PAD = 8.0
"""Cycles to write a vector with features between the others."""


@dataclass(frozen=True, slots=True)
class ConvolutionFeaturePadding(OpExpander):
    """convolution(x, k) -> convolution(pad(x), pad(k)), with features of zeros behind each pixel's own.

    Of images with features last, words of 8-bit integers or of bf16 are neighbours in a row of a window, and 3 features
    make none. Comes after whatever gives convolutions the form of products. Declines where the product in words, and
    the larger image before it, are no cheaper.

    Attributes:
        target: What the code is for.
    """

    name: ClassVar[str] = "convolution-feature-padding"
    opcodes: ClassVar[frozenset[str]] = frozenset({"convolution"})

    target: TargetInfo = field(default_factory=TargetInfo.host)

    def may_expand(self, instruction: HloInstruction) -> bool:
        """Whether there are features to add, and the product is cheaper with them."""
        added = self._added(instruction)
        return added > 0 and self._cycles_with(added, instruction) < self._cycles(instruction)

    def least_cycles(self, convolution: HloInstruction) -> float:
        """Those of a product as it is, or of writing features to it and of the larger one."""
        added, before = self._added(convolution), self._cycles(convolution)
        return min(before, self._cycles_with(added, convolution)) if added else before

    def _cycles_with(self, added: int, convolution: HloInstruction) -> float:
        """Those of writing so many features to a product, and of the larger one."""
        shapes = _padded_shapes(convolution, added)
        written = sum(shape.element_count for shape in shapes) / self.target.lanes(32)
        larger = on_parameters(convolution, shapes, convolution.attrs, convolution.shape)
        return _PAD * written + self._cycles(larger)

    def _cycles(self, convolution: HloInstruction) -> float:
        if is_matrix_product(convolution):
            return plan_dot(convolution, self.target).cycles
        from xlalite.backends.codegen.kernels.dot.phases import cycles_of_phases  # which few programs need

        return cycles_of_phases(convolution, self.target)

    def expand(self, builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...]) -> Handle:
        """Builds the larger operands and the convolution of them."""
        added, padded = self._added(instruction), list[Handle]()
        for operand, dimension in zip(operands, _feature_dimensions(instruction), strict=True):
            padding = [(0, added * (number == dimension), 0) for number in range(operand.shape.rank)]
            padded.append(builder.pad(operand, builder.constant(0, operand.shape.dtype), padding))
        return builder.op("convolution", padded, instruction.attrs, shape=instruction.shape)

    def _added(self, convolution: HloInstruction) -> int:
        """Features that fill up the last word of a pixel; 0 if none are missing or nothing is multiplied in words."""
        attrs: ConvolutionAttrs = convolution.attrs
        last = convolution.operand(0).shape.rank - 1
        if attrs.feature_group_count * attrs.batch_group_count > 1 or attrs.dim_labels.input_feature != last:
            return 0
        if not (is_matrix_product(convolution) or is_in_phases(convolution)) or why_no_numbers(convolution) is not None:
            return 0
        numbers = in_words(numbers_of(convolution), self.target, lambda terms: True)
        return -convolution.operand(0).shape.dims[last] % numbers.word


def on_parameters(
    convolution: HloInstruction, shapes: Sequence[Shape], attrs: ConvolutionAttrs, shape: Shape
) -> HloInstruction:
    """A convolution like another one, of other operands; a loose instruction."""
    parameters = [
        create("parameter", (), ParameterAttrs(number), shape=one, name="operand") for number, one in enumerate(shapes)
    ]
    return create(convolution.opcode, parameters, attrs, shape=shape)


def _feature_dimensions(convolution: HloInstruction) -> tuple[int, int]:
    """Which dimension of each operand has the input's features."""
    labels = convolution.attrs.dim_labels
    return labels.input_feature, labels.kernel_input_feature


def _padded_shapes(convolution: HloInstruction, added: int) -> list[Shape]:
    shapes = list[Shape]()
    for operand, dimension in zip(convolution.operands, _feature_dimensions(convolution), strict=True):
        sizes = list(operand.shape.dims)
        sizes[dimension] += added
        shapes.append(Shape.array(operand.shape.dtype, tuple(sizes)))
    return shapes
