"""Convolution: any rank, stride, padding, dilation, reversal, grouping and order of dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Caller, OpDef, ShapeContext
from xlalite.hlo.ops.dot import DOT_ALGORITHM, DotAlgorithm
from xlalite.hlo.ops.evaluation.products import product_dtype
from xlalite.hlo.ops.rules.shapes import array_value
from xlalite.hlo.ops.windows import check_window
from xlalite.hlo.records import dataclass
from xlalite.hlo.spelling.attributes import attribute
from xlalite.hlo.spelling.codecs import DIM_LABELS, INT, PRECISION, WINDOW, Precision
from xlalite.hlo.types.convolution_dims import ConvolutionDims
from xlalite.hlo.types.literal import Array, Value
from xlalite.hlo.types.shape import Shape
from xlalite.hlo.types.window import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvolutionAttrs:
    """How the kernel moves, what the dimensions are, and into how many independent parts features or batch fall."""

    window: Window = attribute(WINDOW, default=Window())
    dim_labels: ConvolutionDims = attribute(DIM_LABELS)
    feature_group_count: int = attribute(INT, default=1)
    batch_group_count: int = attribute(INT, default=1)
    operand_precision: tuple[Precision, ...] = attribute(PRECISION, default=())
    algorithm: DotAlgorithm = attribute(DOT_ALGORITHM, default=DotAlgorithm.UNSET)


def _convolution_shape(context: ShapeContext) -> Shape:
    lhs, rhs = context.array(0, "input"), context.array(1, "kernel")
    attrs: ConvolutionAttrs = context.attrs
    dims, window = attrs.dim_labels, attrs.window
    dtype = product_dtype(context, lhs.dtype, rhs.dtype)
    if not (dims.problem is None and "?" not in str(dims)):
        raise context.error(f"dim_labels {dims}: {dims.problem or 'unknown dim'}")
    rank = dims.spatial_rank + 2
    if not (lhs.rank == rhs.rank == rank):
        raise context.error(f"dim_labels {dims} describe arrays of rank {rank}, found {lhs.rank} and {rhs.rank}")
    check_window(context, window, dims.spatial_rank)
    kernel_space = tuple(rhs.dims[dim] for dim in dims.kernel_spatial)
    if window.sizes != kernel_space:
        raise context.error(
            f"the window has size {list(window.sizes)}, the kernel's spatial sizes are {list(kernel_space)}"
        )
    batch, outputs = lhs.dims[dims.input_batch], rhs.dims[dims.kernel_output_feature]
    _check_groups(context, lhs.dims[dims.input_feature], rhs.dims[dims.kernel_input_feature], batch, outputs)
    sizes = [0] * rank
    sizes[dims.output_batch], sizes[dims.output_feature] = batch // attrs.batch_group_count, outputs
    space = window.output_sizes([lhs.dims[dim] for dim in dims.input_spatial])
    for dim, size in zip(dims.output_spatial, space, strict=True):
        sizes[dim] = size
    return Shape.array(dtype, sizes)


def _check_groups(context: ShapeContext, inputs: int, kernel_inputs: int, batch: int, outputs: int) -> None:
    feature_groups, batch_groups = context.attrs.feature_group_count, context.attrs.batch_group_count
    if not (feature_groups >= 1 and batch_groups >= 1 and (feature_groups == 1 or batch_groups == 1)):
        raise context.error(
            f"feature_group_count {feature_groups} and batch_group_count {batch_groups} must be positive and one of "
            "them 1"
        )
    if inputs != kernel_inputs * feature_groups:
        raise context.error(
            f"the input has {inputs} features, the kernel takes {kernel_inputs} in each of {feature_groups} groups"
        )
    for what, size, groups in (
        ("output features", outputs, feature_groups),
        ("output features", outputs, batch_groups),
        ("batch size", batch, batch_groups),
    ):
        if size % groups != 0:
            raise context.error(f"{what} {size} is not divisible by the group count {groups}")


def _convolution(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    from xlalite.hlo.ops.evaluation.convolution_evaluation import convolve

    attrs: ConvolutionAttrs = instruction.attrs
    dims = attrs.dim_labels
    lhs = array_value(operands[0]).transpose(dims.input_batch, *dims.input_spatial, dims.input_feature)
    rhs = array_value(operands[1]).transpose(
        *dims.kernel_spatial, dims.kernel_input_feature, dims.kernel_output_feature
    )
    groups = max(attrs.feature_group_count, attrs.batch_group_count)
    grouped_axis = lhs.ndim - 1 if attrs.feature_group_count > 1 else 0
    result = convolve(
        _split(lhs, grouped_axis, groups), _split(rhs, rhs.ndim - 1, groups), attrs.window, instruction.shape.dtype
    )
    merged = np.moveaxis(result, 0, -2)
    merged = merged.reshape(*merged.shape[:-2], merged.shape[-2] * merged.shape[-1])
    order = [0] * merged.ndim
    for position, dim in enumerate((dims.output_batch, *dims.output_spatial, dims.output_feature)):
        order[dim] = position
    return merged.transpose(order)


def _split(array: Array, axis: int, groups: int) -> Array:
    """The array with a new first axis: the equal parts of one axis."""
    sizes = (*array.shape[:axis], groups, array.shape[axis] // groups, *array.shape[axis + 1 :])
    return np.moveaxis(array.reshape(sizes), axis, 0)


def _convolution_flops(instruction: HloInstruction) -> int:
    """A multiplication and an addition for each result element and each kernel element that meets no hole, about."""
    rhs = instruction.operand(1).shape
    dims: ConvolutionDims = instruction.attrs.dim_labels
    terms = math.prod(rhs.dims) // max(1, rhs.dims[dims.kernel_output_feature])
    window: Window = instruction.attrs.window
    return 2 * instruction.shape.element_count * terms // math.prod(one.lhs_dilate for one in window.dimensions)


OPS = (
    OpDef(
        "convolution",
        "result[b, o, f] = sum over k, i of lhs[b, o * stride - pad + k, i] * rhs[k, i, f]",
        2,
        _convolution_shape,
        _convolution,
        attrs=ConvolutionAttrs,
        flops=_convolution_flops,
    ),
)
