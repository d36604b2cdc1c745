"""The pass that puts features last in the results of convolutions, where what is transposed then is small."""

from __future__ import annotations

import math
from dataclasses import field, replace
from typing import ClassVar

from xlalite.backends.codegen.kernels.dot.feature_order import moved, order_of
from xlalite.backends.codegen.kernels.dot.feature_padding import on_parameters
from xlalite.backends.codegen.kernels.dot.numbers import why_no_numbers
from xlalite.backends.codegen.kernels.dot.plan import plan_dot
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.convolution import ConvolutionAttrs
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.shape import Shape
from xlalite.passes.analysis.matrix_products import is_matrix_product
from xlalite.passes.rewriting.expander import OpExpander

_MOST_FEATURES = 64
"""Features that leave packing what windows see a large part of a product: the gradient of a kernel of 3x3 by images
[8,32,56,56] to 32 takes 5.1 ms of one core so, 3.2 in the other order, of [8,64,28,28] to 64 4.4 and 3.1, of one to 128
as much.
"""

_MOVE = 64.0
"""Cycles to move a vector of the result to its other place."""


@dataclass(frozen=True, slots=True)
class ConvolutionResultOrder(OpExpander):
    """convolution(x, k) -> transpose(convolution(x, k)), whose result has its features last.

    In the gradient of a kernel of images with pixels last, terms are pixels, and so lie runs of both operands. With
    features last, rows of the product are elements of the kernel, which tiles read where they lie, and the other
    operand, the smaller one, is packed; else all that windows see is. Comes after whatever gives convolutions the
    form of products. Declines where features are many, windows no larger than results, or the product gains less than
    moving the result costs.

    Attributes:
        target: What the code is for.
    """

    name: ClassVar[str] = "convolution-result-order"
    opcodes: ClassVar[frozenset[str]] = frozenset({"convolution"})

    target: TargetInfo = field(default_factory=TargetInfo.host)

    def may_expand(self, instruction: HloInstruction) -> bool:
        """Whether the product is cheaper so."""
        attrs: ConvolutionAttrs = instruction.attrs
        labels, dims = attrs.dim_labels, instruction.shape.dims
        if labels.output.endswith("f") or dims[labels.output_feature] > _MOST_FEATURES:
            return False
        seen, results = (one.size for one in attrs.window.dimensions), (dims[dim] for dim in labels.output_spatial)
        if math.prod(seen) <= math.prod(results) or attrs.feature_group_count * attrs.batch_group_count > 1:
            return False
        if not is_matrix_product(instruction) or why_no_numbers(instruction) is not None:
            return False
        last = on_parameters(instruction, [one.shape for one in instruction.operands], *_features_last(instruction))
        cycles = plan_dot(last, self.target).cycles + _MOVE * instruction.shape.element_count / self.target.lanes(32)
        return cycles < plan_dot(instruction, self.target).cycles

    def expand(self, builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...]) -> Handle:
        """Builds the convolution and the transpose of its result."""
        attrs, shape = _features_last(instruction)
        result = builder.op("convolution", operands, attrs, shape=shape)
        return builder.transpose(result, order_of(attrs.dim_labels.output, instruction.attrs.dim_labels.output))


def _features_last(convolution: HloInstruction) -> tuple[ConvolutionAttrs, Shape]:
    """Attributes and result of the convolution whose features come last, and before them whatever makes longer runs."""
    attrs: ConvolutionAttrs = convolution.attrs
    labels, dims = attrs.dim_labels, convolution.shape.dims
    space = "".join(str(number) for number in range(labels.spatial_rank))
    is_wide = dims[labels.output_batch] <= dims[labels.output_spatial[-1]]
    order = f"b{space}f" if is_wide else f"{space}bf"
    shape = moved(convolution.shape, labels.output, order)
    return replace(attrs, dim_labels=replace(labels, output=order)), shape
