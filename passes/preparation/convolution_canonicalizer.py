"""Brings convolutions into the form in which they are products of matrices."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.convolution import ConvolutionAttrs
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.convolution_dims import ConvolutionDims
from xlalite.hlo.types.window import Window, WindowDimension
from xlalite.passes.analysis.matrix_products import (
    has_plain_window,
    holds_product,
    is_grouped_convolution,
    is_in_phases,
    reads_backwards,
    skips_holes,
)
from xlalite.passes.preparation.convolution_phases import (
    are_better_together,
    features_behind,
    padded,
    phases_apart,
    plain_convolution,
    without_holes,
)
from xlalite.passes.rewriting.expander import OpExpander

_MOST_PHASES = 16
"""Phases of a convolution in groups that are worth a kernel each."""

_USES = 64
"""Multiplications of an element of the input from which on it is moved to those of its group."""


@dataclass(frozen=True, slots=True)
class ConvolutionCanonicalizer(OpExpander):
    """convolution -> convolution(pad(lhs), reverse(rhs)), so that every element that a window sees is in memory.

    A kernel that is read backwards as fast as forwards is not reversed.
    With holes between the elements of the input, as in the gradient of a convolution with strides, results fall into
    phases, which see a part of the kernel each: convolutions of their own, without holes, or output features of one.
    Where a kernel computes products of all phases, what they read is only padded; features are moved behind for that.

    With features last, what a group sees of the input becomes an image of its own: rows of tiles are as far apart as
    pixels, and of many features, these crowd out one another in the nearest cache.

    Convolutions in groups of few features, which are no products, keep their padding, and holes that their kernel can
    skip; their kernel gets output features last. Declines for those too small for a product of matrices.
    """

    name: ClassVar[str] = "convolution-canonicalizer"
    opcodes: ClassVar[frozenset[str]] = frozenset({"convolution"})

    def may_expand(self, instruction: HloInstruction) -> bool:
        """Whether the convolution holds a product and is not in the form yet."""
        if holds_product(instruction):
            return not (has_plain_window(instruction) or _stays_in_phases(instruction)) or _are_groups_mixed(
                instruction
            )
        return is_grouped_convolution(instruction) and (_has_phases(instruction) or _is_kernel_gathered(instruction))

    def expand(self, builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...]) -> Handle:
        """Builds the convolution in the form, and what is before and behind it."""
        attrs: ConvolutionAttrs = instruction.attrs
        lhs, rhs = operands
        is_product = holds_product(instruction)
        if is_product and (moved := features_behind(instruction)) is not None:
            return self._moved(builder, instruction, moved, operands)
        if is_product and _are_groups_mixed(instruction):
            attrs, lhs = _groups_apart(builder, attrs, lhs)
        if not is_product and _is_kernel_gathered(instruction):
            attrs, rhs = _features_last(builder, attrs, rhs)
        labels, window = attrs.dim_labels, attrs.window.dimensions
        if not is_product and not _has_phases(instruction):
            return builder.op("convolution", (lhs, rhs), attrs, shape=instruction.shape)
        turned = [dim for dim, one in zip(labels.kernel_spatial, window, strict=True) if one.reversal and one.size > 1]
        if turned and not (is_product and reads_backwards(instruction)):
            rhs = builder.reverse(rhs, turned)
            window = tuple(replace(one, reversal=False) for one in window)
            attrs = replace(attrs, window=Window(window))
        if is_product and all(one.lhs_dilate == 1 for one in window):
            filled = padded(builder, attrs, lhs, window)
            return plain_convolution(builder, attrs, instruction.shape, filled, rhs, window)
        if not is_product:
            as_it_is = [WindowDimension(1)] * len(window)
            return phases_apart(builder, attrs, instruction.shape, lhs, rhs, as_it_is)
        return without_holes(builder, attrs, instruction.shape, lhs, rhs)

    def _moved(
        self, builder: Builder, instruction: HloInstruction, moved: HloInstruction, operands: tuple[Handle, ...]
    ) -> Handle:
        """The convolution with features last, of a moved input; its result is moved back."""
        labels, order = moved.attrs.dim_labels, instruction.attrs.dim_labels
        lhs, rhs = operands
        lhs = builder.transpose(lhs, [order.input.index(name) for name in labels.input])
        if self.may_expand(moved):
            found = self.expand(builder, moved, (lhs, rhs))
        else:
            found = builder.op("convolution", (lhs, rhs), moved.attrs, shape=moved.shape)
        return builder.transpose(found, [labels.output.index(name) for name in order.output])


def _stays_in_phases(product: HloInstruction) -> bool:
    """Whether a convolution has holes that a kernel skips, and is best left so."""
    kernel = product.operand(1).shape
    return is_in_phases(product) and not are_better_together(product.attrs, kernel, in_one_kernel=True)


def _are_groups_mixed(product: HloInstruction) -> bool:
    """Whether the input's elements of each group lie between those of others, and are worth being moved."""
    attrs: ConvolutionAttrs = product.attrs
    labels, (lhs, rhs) = attrs.dim_labels, product.operands
    groups = max(attrs.feature_group_count, attrs.batch_group_count)
    grouped = "f" if attrs.feature_group_count > 1 else "b"
    if groups == 1 or not (labels.output.endswith("f") and labels.input.endswith(grouped)):
        return False
    terms = math.prod(rhs.shape.dims) // rhs.shape.dims[labels.kernel_output_feature]
    return terms * product.shape.element_count >= _USES * lhs.shape.element_count


def _groups_apart(builder: Builder, attrs: ConvolutionAttrs, lhs: Handle) -> tuple[ConvolutionAttrs, Handle]:
    """The input with an image, or a feature, for each group where there was one: groups of the other kind."""
    labels, groups = attrs.dim_labels, (attrs.batch_group_count, attrs.feature_group_count)
    count, (*dims, last) = max(groups), lhs.dims
    other, grouped = ("b", "f") if attrs.feature_group_count > 1 else ("f", "b")
    outer, space = labels.input.index(other), labels.input_spatial
    apart = builder.reshape(lhs, (*dims, count, last // count))
    apart = builder.transpose(apart, (len(dims), outer, *space, len(dims) + 1))
    moved = builder.reshape(apart, (count * dims[outer], *(dims[dim] for dim in space), last // count))
    names = "".join(str(number) for number in range(len(space)))
    attrs = replace(
        attrs,
        dim_labels=ConvolutionDims(f"{other}{names}{grouped}", labels.kernel, labels.output),
        feature_group_count=groups[0],
        batch_group_count=groups[1],
    )
    return attrs, moved


def _has_phases(grouped: HloInstruction) -> bool:
    """Whether the kernel for convolutions in groups cannot skip the holes, and each phase is worth one."""
    window: Window = grouped.attrs.window
    return 1 < math.prod(one.lhs_dilate for one in window.dimensions) <= _MOST_PHASES and not skips_holes(grouped)


def _is_kernel_gathered(grouped: HloInstruction) -> bool:
    """Whether the kernel for convolutions in groups would gather vectors of weights."""
    labels, rhs = grouped.attrs.dim_labels, grouped.operand(1).shape
    if not labels.output.endswith("f") or labels.kernel.endswith("o"):
        return False
    return any(size > 1 for size in rhs.dims[labels.kernel_output_feature + 1 :])


def _features_last(builder: Builder, attrs: ConvolutionAttrs, rhs: Handle) -> tuple[ConvolutionAttrs, Handle]:
    """The kernel with its output features last."""
    labels = attrs.dim_labels
    last = labels.kernel_output_feature
    kernel = labels.kernel.replace("o", "") + "o"
    moved = builder.transpose(rhs, [*(dim for dim in range(rhs.shape.rank) if dim != last), last])
    return replace(attrs, dim_labels=ConvolutionDims(labels.input, kernel, labels.output)), moved
