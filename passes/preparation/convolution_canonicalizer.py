"""Brings convolutions into the form in which they are products of matrices."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.convolution import ConvolutionAttrs
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.window import Window, WindowDimension
from xlalite.passes.analysis.matrix_products import (
    has_plain_window,
    holds_product,
    is_grouped_convolution,
    reads_backwards,
    skips_holes,
)
from xlalite.passes.preparation.convolution_phases import padded, phases_apart, plain_convolution, without_holes
from xlalite.passes.rewriting.expander import OpExpander

_MOST_PHASES = 16
"""Phases of a convolution in groups that are worth a kernel each."""


@dataclass(frozen=True, slots=True)
class ConvolutionCanonicalizer(OpExpander):
    """convolution -> convolution(pad(lhs), reverse(rhs)), so that every element that a window sees is in memory.

    A kernel that is read backwards as fast as forwards is not reversed.
    With holes between the elements of the input, as in the gradient of a convolution with strides, results fall into
    phases, which see a part of the kernel each: convolutions of their own, without holes, or output features of one.

    Convolutions in groups of few features, which are no products, keep their padding, and holes that their kernel can
    skip. Declines for those too small for a product of matrices.
    """

    name: ClassVar[str] = "convolution-canonicalizer"
    opcodes: ClassVar[frozenset[str]] = frozenset({"convolution"})

    def may_expand(self, instruction: HloInstruction) -> bool:
        """Whether the convolution holds a product and is not in the form yet."""
        if holds_product(instruction):
            return not has_plain_window(instruction)
        has_phases = 1 < _phases(instruction) <= _MOST_PHASES
        return has_phases and is_grouped_convolution(instruction) and not skips_holes(instruction)

    def expand(self, builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...]) -> Handle:
        """Builds the convolution in the form, and what is before and behind it."""
        attrs: ConvolutionAttrs = instruction.attrs
        labels, window = attrs.dim_labels, attrs.window.dimensions
        lhs, rhs = operands
        turned = [dim for dim, one in zip(labels.kernel_spatial, window, strict=True) if one.reversal and one.size > 1]
        is_whole = holds_product(instruction) and all(one.lhs_dilate == 1 for one in window)
        if turned and not (is_whole and reads_backwards(instruction)):
            rhs = builder.reverse(rhs, turned)
            window = tuple(replace(one, reversal=False) for one in window)
        if is_whole:
            filled = padded(builder, attrs, lhs, window)
            return plain_convolution(builder, attrs, instruction.shape, filled, rhs, window)
        if not holds_product(instruction):
            as_it_is = [WindowDimension(1)] * len(window)
            return phases_apart(builder, attrs, instruction.shape, lhs, rhs, as_it_is)
        return without_holes(builder, attrs, instruction.shape, lhs, rhs)


def _phases(convolution: HloInstruction) -> int:
    window: Window = convolution.attrs.window
    return math.prod(one.lhs_dilate for one in window.dimensions)
