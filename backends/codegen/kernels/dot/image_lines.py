"""Plans of convolutions whose input is padded line by line, and why there is none."""

from __future__ import annotations

import math
from dataclasses import replace

from xlalite.backends.codegen.arrays.index import row_major_strides
from xlalite.backends.codegen.arrays.types import representation
from xlalite.backends.codegen.kernels.dot.plan import DotPlan
from xlalite.backends.codegen.kernels.dot.staging import PaddedLine, Staging
from xlalite.backends.codegen.kernels.dot.units import PIECES
from xlalite.backends.codegen.kernels.dot.view import view_of_convolution
from xlalite.backends.codegen.kernels.zero_pad import LEAST_LINE_BYTES
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.convolution import ConvolutionAttrs

_COPY = 4.0
"""Cycles to copy a vector."""

_NEAR = 8
"""Part of the second cache that a copy should take at most: [8,56,56,64] by 3x3 of f32 takes 8.8 ms where it takes 0.9
MB, in copies of 240 KB 8.6.
"""

_FEWEST = PIECES * 3 // 4
"""Pieces without which threads would wait for one another."""

_AGAIN = 1.2
"""How many times as much may be copied so that copies stay near."""


def why_no_lines(convolution: HloInstruction) -> str | None:
    """Why the input of a convolution cannot be padded line by line; None if it can."""
    image, value = convolution.operand(0).operands
    attrs: ConvolutionAttrs = convolution.attrs
    labels, rank = attrs.dim_labels, convolution.shape.rank
    padding = convolution.operand(0).attrs.padding
    if image.opcode != "parameter":
        return "what is padded is computed"
    if value.opcode != "constant" or any(value.attrs.literal.value.tobytes()):
        return "it is padded with other numbers than zero"
    if any(low < 0 or high < 0 or interior for low, high, interior in padding):
        return "padding cuts, or goes between pixels"
    space = labels.input_spatial
    is_ordered = [*space] == sorted(space) and [*labels.output_spatial] == sorted(labels.output_spatial)
    if (
        len(space) > 3
        or labels.input_batch
        or labels.output_batch
        or not is_ordered
        or labels.input_feature not in (1, rank - 1)
    ):
        return "images do not lie one after another"
    if any(map(any, (padding[labels.input_batch], padding[labels.input_feature]))):
        return "not only pixels are added"
    if max(attrs.feature_group_count, attrs.batch_group_count) > 1:
        return "there are groups"
    if _line(convolution).width < LEAST_LINE_BYTES:
        return "lines are short"
    return None


def plan_with_lines(plan: DotPlan, convolution: HloInstruction, target: TargetInfo) -> DotPlan | None:
    """The plan in pieces that copy the lines that they see; None if that is not worth it.

    Pieces are as large as copies that stay near, unless many lines would be copied twice.
    """
    view, labels = plan.view, convolution.attrs.dim_labels
    image_rows = math.prod(convolution.shape.dims[dim] for dim in labels.output_spatial)
    count = convolution.shape.dims[labels.output_spatial[0]] if len(labels.output_spatial) > 1 else 1
    line_rows = image_rows // count
    if view.exchanged or plan.parts > 1 or plan.column_units > 1 or line_rows % plan.row_run:
        return None
    images = view.m // image_rows

    def copied(lines: int) -> tuple[Staging, int]:
        staging, pieces = _staging(convolution, lines, image_rows, line_rows), -(-count // lines)
        return staging, view.batch_count * images * pieces * staging.size_bytes

    chosen, number = count, view.batch_count * images
    staging, written = copied(count)
    least = written
    for pieces in range(1, count + 1):
        lines = -(-count // pieces)
        if images > 1 and count % lines:
            continue
        found, size = copied(lines)
        if size > _AGAIN * least:
            break
        chosen, staging, written, number = lines, found, size, view.batch_count * images * pieces
        if staging.size_bytes <= target.cache_bytes[1] // _NEAR and number >= PIECES:
            break
    if staging.size_bytes > target.cache_bytes[1] or number < min(_FEWEST, plan.units):
        return None
    dims = list(convolution.operand(0).shape.dims)
    first = labels.input_spatial[0]
    if len(labels.input_spatial) > 1:
        dims[first] = staging.lines
    seen = view_of_convolution(convolution, tuple(dims))
    image = seen.rhs if seen.exchanged else seen.lhs
    origin = image.origin - staging.first * row_major_strides(dims)[first]
    depth = image.depth if view.lhs.looked_up <= 1 else image.depth.in_runs(view.lhs.looked_up)
    lhs = replace(view.lhs, outer=image.outer, depth=depth, batch=image.batch, origin=origin)
    vectors = written / (plan.lanes * plan.numbers.kept.size_bytes)
    return replace(
        plan,
        view=replace(view, lhs=lhs),
        unit_rows=chosen * line_rows,
        cycles=plan.cycles + _COPY * vectors,
        staging=staging,
    )


def _staging(convolution: HloInstruction, lines: int, image_rows: int, line_rows: int) -> Staging:
    """The copies for pieces of so many lines of results."""
    attrs: ConvolutionAttrs = convolution.attrs
    image, padding, labels = convolution.operand(0).operand(0), convolution.operand(0).attrs.padding, attrs.dim_labels
    planes = image.shape.dims[1] if labels.input_feature == 1 else 1
    line = _line(convolution)
    if len(labels.input_spatial) == 1:
        return Staging(image_rows, line_rows, 0, 1, 1, 0, 1, planes, 1, line)
    dimension, one = labels.input_spatial[0], attrs.window.dimensions[0]
    seen = (lines - 1) * one.stride + one.dilated_size
    low, height = padding[dimension][0], image.shape.dims[dimension]
    return Staging(image_rows, line_rows, -one.pad_low, one.stride, one.dilated_size, low, height, planes, seen, line)


def _line(convolution: HloInstruction) -> PaddedLine:
    labels, (image, _) = convolution.attrs.dim_labels, convolution.operand(0).operands
    padding, padded = convolution.operand(0).attrs.padding, convolution.operand(0).shape
    pixel = representation(image.shape.dtype).size_bytes
    pixel *= 1 if labels.input_feature == 1 else image.shape.dims[labels.input_feature]
    *others, last = labels.input_spatial
    row = padded.dims[last] * pixel
    first, rows, count = padding[last][0] * pixel, 1, 1
    if len(others) > 1:
        dimension = others[-1]
        first += padding[dimension][0] * row
        rows, count = image.shape.dims[dimension], padded.dims[dimension]
    return PaddedLine(first, rows, image.shape.dims[last] * pixel, row, count * row)
