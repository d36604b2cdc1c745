"""Brings convolutions into the form in which they are products of matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.convolution import ConvolutionAttrs
from xlalite.passes.analysis.matrix_products import has_plain_window, holds_product
from xlalite.passes.preparation.convolution_phases import padded, plain_convolution, without_holes
from xlalite.passes.rewriting.expander import OpExpander


@dataclass(frozen=True, slots=True)
class ConvolutionCanonicalizer(OpExpander):
    """convolution -> convolution(pad(lhs), reverse(rhs)), so that every element that a window sees is in memory.

    With holes between the elements of the input, as in the gradient of a convolution with strides, results fall into
    phases, which see a part of the kernel each: convolutions of their own, without holes, or output features of one.

    Declines for convolutions too small for a product of matrices, in all or in each group.
    """

    name: ClassVar[str] = "convolution-canonicalizer"
    opcodes: ClassVar[frozenset[str]] = frozenset({"convolution"})

    def may_expand(self, instruction: HloInstruction) -> bool:
        """Whether the convolution holds a product and is not in the form yet."""
        return holds_product(instruction) and not has_plain_window(instruction)

    def expand(self, builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...]) -> Handle:
        """Builds the convolution in the form, and what is before and behind it."""
        attrs: ConvolutionAttrs = instruction.attrs
        labels, window = attrs.dim_labels, attrs.window.dimensions
        lhs, rhs = operands
        turned = [dim for dim, one in zip(labels.kernel_spatial, window, strict=True) if one.reversal and one.size > 1]
        if turned:
            rhs = builder.reverse(rhs, turned)
        if any(one.lhs_dilate > 1 for one in window):
            return without_holes(builder, attrs, instruction.shape, lhs, rhs)
        filled = padded(builder, attrs, lhs, window)
        return plain_convolution(builder, attrs, instruction.shape, filled, rhs, window)
