"""Phases of convolutions with holes between the elements of the input: results that see the same part of the kernel."""

from __future__ import annotations

import math

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.convolution import ConvolutionAttrs
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape
from xlalite.hlo.types.window import WindowDimension
from xlalite.passes.analysis.matrix_products import holds_product, reads_backwards

MOST_PHASES = 16
"""Phases that are worth a product each."""

READ = (DType.F32, DType.F64)
"""Types of elements that tiles read where they lie; others are packed, for each phase anew."""


@dataclass(frozen=True, slots=True)
class Phase:
    """Results as many apart as there are phases, of which each sees kernel elements start + step * j.

    Attributes:
        number: The first of these results.
        start: The first element of the kernel that meets elements of the input rather than holes.
        step: Distance of such elements of the kernel.
        window: How these elements of the kernel move over the input.
    """

    number: int
    start: int
    step: int
    window: WindowDimension

    def read(self, one: WindowDimension) -> tuple[int, int, int]:
        """What is read of a dimension of the kernel, as a slice of it."""
        return *read_range(one, self.start, self.start + (self.window.size - 1) * self.step + 1), self.step


def read_range(one: WindowDimension, start: int, end: int) -> tuple[int, int]:
    """Where elements of a kernel lie along a dimension, from one on and below another."""
    return (one.size - end, one.size - start) if one.reversal else (start, end)


def phase_count(one: WindowDimension) -> int:
    """How many phases the results along a dimension fall into."""
    return one.lhs_dilate // math.gcd(one.lhs_dilate, one.stride)


def phase_of(one: WindowDimension, size: int, count: int, number: int) -> Phase:
    """A phase of the results along a dimension, of which there are so many, of an input of a size."""
    d, phases = one.lhs_dilate, phase_count(one)
    if d == 1:
        return Phase(0, 0, 1, one)
    step = d // math.gcd(d, one.rhs_dilate)
    place = number * one.stride - one.pad_low
    start = next((j for j in range(step) if (place + j * one.rhs_dilate) % d == 0), one.size)
    seen = max(0, -(-(one.size - start) // step))
    low = -((place + start * one.rhs_dilate) // d)
    stride, dilation = phases * one.stride // d, step * one.rhs_dilate // d
    high = (count - 1) * stride + (seen - 1) * dilation + 1 - size - low
    return Phase(number, start, step, WindowDimension(seen, stride, low, high, 1, dilation, one.reversal))


def phases_of(attrs: ConvolutionAttrs, lhs: Shape, result: Shape) -> list[list[Phase]]:
    """The phases along each dimension of space; as many along some as there are results, if these are fewer."""
    labels = attrs.dim_labels
    sizes, totals = (lhs.dims[dim] for dim in labels.input_spatial), (result.dims[dim] for dim in labels.output_spatial)
    return [
        [
            phase_of(one, size, len(range(number, total, phase_count(one))), number)
            for number in range(min(phase_count(one), total))
        ]
        for one, size, total in zip(attrs.window.dimensions, sizes, totals, strict=True)
    ]


def may_be_products(attrs: ConvolutionAttrs, lhs: Shape, result: Shape) -> bool:
    """Whether each phase is a product, and results lie where its kernel can store them, if no window sees padding.

    Features are last, and several, so that a result is a row; those of an input that is packed, too, so that words are
    its neighbours.
    """
    labels = attrs.dim_labels
    if attrs.feature_group_count * attrs.batch_group_count > 1:
        return False
    if not labels.output.endswith("f") or result.dims[-1] == 1:
        return False
    if lhs.dtype not in READ and not labels.input.endswith("f"):
        return False
    found = phases_of(attrs, lhs, result)
    return 1 < math.prod(map(len, found)) <= MOST_PHASES and all(phase.window.size for each in found for phase in each)


def have_products(convolution: HloInstruction) -> bool:
    """Whether the phases of a convolution are products of what lies in memory."""
    attrs: ConvolutionAttrs = convolution.attrs
    lhs = convolution.operand(0).shape
    if not holds_product(convolution):
        return False
    if any(one.reversal and one.size > 1 for one in attrs.window.dimensions) and not reads_backwards(convolution):
        return False
    return may_be_products(attrs, lhs, convolution.shape) and all(
        max(phase.window.pad_low, phase.window.pad_high) <= 0
        for of_dimension in phases_of(attrs, lhs, convolution.shape)
        for phase in of_dimension
    )
