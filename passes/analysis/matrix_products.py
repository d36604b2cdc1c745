"""Which instructions are products of matrices, whatever they are called."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.types.dtype import DType

if TYPE_CHECKING:
    from xlalite.hlo.ops.convolution import ConvolutionAttrs

_FEWEST_TERMS = 8
_LEAST_FLOPS = 1 << 16
_FEWEST_OF_GROUP = 16
"""Output features of a group that fill a vector; with fewer, vectors of several groups leave fewer lanes idle."""

_MOST_OF_GROUP = 16
"""Input features of a group up to which there are such vectors."""

_FEWEST_APART = 4
"""Output features of a group that make a product where there are none."""

_MOST_HOLES, _SHORT_WINDOW = 4, 8
"""Distance of elements of the input, and length of a window, up to which it is spelt out which results see holes."""


def is_matrix_product(instruction: HloInstruction) -> bool:
    """Whether it is a dot, or a convolution that is one as its operands lie and worth being computed as one."""
    if instruction.opcode == "dot":
        return True
    return instruction.opcode == "convolution" and holds_product(instruction) and has_plain_window(instruction)


def holds_product(convolution: HloInstruction) -> bool:
    """Whether a convolution, obstacles out of the way, is a product of matrices that fill vectors and tiles."""
    attrs: ConvolutionAttrs = convolution.attrs
    lhs, rhs = convolution.operands
    types = (lhs.shape.dtype, rhs.shape.dtype, convolution.shape.dtype)
    groups = max(attrs.feature_group_count, attrs.batch_group_count)
    features = rhs.shape.dims[attrs.dim_labels.kernel_output_feature]
    inputs = rhs.shape.dims[attrs.dim_labels.kernel_input_feature]
    lie_together = not (_are_last(attrs.dim_labels.output) and not _are_last(attrs.dim_labels.input))
    together = attrs.batch_group_count == 1 and inputs <= _MOST_OF_GROUP and lie_together
    fewest = _FEWEST_OF_GROUP if together else _FEWEST_APART
    if DType.F8E8M0FNU in types or (groups > 1 and features < fewest * groups) or is_kernel_gradient(convolution):
        return False
    if not (all(t.is_floating for t in types) or all(t.is_integral for t in types)):
        return False
    terms = math.prod(rhs.shape.dims) // max(1, features)
    return terms >= _FEWEST_TERMS and 2 * terms * convolution.shape.element_count >= _LEAST_FLOPS


def _are_last(labels: str) -> bool:
    return labels.endswith("f")


def is_grouped_convolution(instruction: HloInstruction) -> bool:
    """Whether it is a convolution that is no product of matrices, in groups."""
    if instruction.opcode != "convolution" or is_matrix_product(instruction):
        return False
    attrs: ConvolutionAttrs = instruction.attrs
    return max(attrs.feature_group_count, attrs.batch_group_count) > 1


def is_kernel_gradient(convolution: HloInstruction) -> bool:
    """Whether it is the gradient of a kernel in groups of a few features, which vectors of several groups fill."""
    attrs: ConvolutionAttrs = convolution.attrs
    labels, groups, (lhs, rhs) = attrs.dim_labels, attrs.batch_group_count, convolution.operands
    if groups == 1 or (labels.output[-1], labels.input[-1], labels.kernel[-1]) != ("f", "b", "o"):
        return False
    inputs, outputs = lhs.shape.dims[-1] // groups, rhs.shape.dims[-1] // groups
    return (
        max(inputs, outputs) > 1
        and outputs < _FEWEST_OF_GROUP
        and inputs <= 2 * _MOST_OF_GROUP
        and len(labels.output_spatial) > 0
        and convolution.shape.dims[max(labels.output_spatial)] <= _SHORT_WINDOW
        and not any(one.lhs_dilate > 1 or one.reversal for one in attrs.window.dimensions)
    )


def skips_holes(convolution: HloInstruction) -> bool:
    """Whether the kernel of one in groups knows where holes in the input lie: features are last and windows short."""
    attrs: ConvolutionAttrs = convolution.attrs
    return attrs.dim_labels.output_feature == convolution.shape.rank - 1 and all(
        one.lhs_dilate <= _MOST_HOLES
        and one.stride * one.rhs_dilate == 1
        and max(one.size, one.pad_low, one.pad_high) <= _SHORT_WINDOW
        for one in attrs.window.dimensions
        if one.lhs_dilate > 1
    )


def is_in_phases(instruction: HloInstruction) -> bool:
    """Whether it is a convolution with holes in its input whose phases are products of what lies in memory."""
    if instruction.opcode != "convolution" or all(one.lhs_dilate == 1 for one in instruction.attrs.window.dimensions):
        return False
    from xlalite.passes.analysis.convolution_phases import have_products  # which few programs need

    return have_products(instruction)


def has_tiles(instruction: HloInstruction) -> bool:
    """Whether a kernel computes it in tiles, out of operands in memory."""
    return is_matrix_product(instruction) or is_grouped_convolution(instruction) or is_in_phases(instruction)


def has_plain_window(convolution: HloInstruction) -> bool:
    """Whether windows see neither padding nor holes in the input, and read the kernel as it can be read."""
    is_backwards = reads_backwards(convolution)
    return all(
        max(dim.pad_low, dim.pad_high) <= 0
        and dim.lhs_dilate == 1
        and (is_backwards or not (dim.reversal and dim.size > 1))
        for dim in convolution.attrs.window.dimensions
    )


def reads_backwards(convolution: HloInstruction) -> bool:
    """Whether a product can read the kernel backwards as fast as forwards: neighbours in it, and rows, are features."""
    labels, last = convolution.attrs.dim_labels, convolution.shape.rank - 1
    return labels.output_feature == last and last not in labels.kernel_spatial
