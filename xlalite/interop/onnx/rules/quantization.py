"""Numbers as small integers and back, and products of such."""

from __future__ import annotations

import math

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.building.common import max_axes, reduce_axes
from xlalite.hlo.building.indexing import gather_rows
from xlalite.hlo.numerics.conversion import integer_range
from xlalite.hlo.types.dtype import DType
from xlalite.interop.onnx.context import NodeContext, filled, rule
from xlalite.interop.onnx.rules.convolutions import biased, convolution
from xlalite.interop.onnx.rules.elementwise import cast
from xlalite.interop.onnx.rules.products import matmul


def _spread(context: NodeContext, values: Handle, like: Handle) -> Handle:
    """Scales or zero points at the sizes of the array: one for all, for each place of an axis, or for each block."""
    b = context.builder
    if values.shape.element_count == 1 and len(values.dims) <= 1:
        return b.broadcast(b.reshape(values, ()), like.dims)
    block = context.integer("block_size", 0)
    axis = context.axis(len(like.dims), 1)
    if len(values.dims) == 1 and not (block and len(like.dims) == 1):
        return b.broadcast(values, like.dims, [axis])
    if not block:
        raise context.error(f"scales of sizes {values.dims} without a block size")
    places = b.iota(DType.S32, (like.dims[axis],), 0) / b.full(block, DType.S32, (like.dims[axis],))
    return gather_rows(b, values, places, axis)


@rule("QuantizeLinear")
def _quantize_linear(context: NodeContext) -> Handle:
    x, scale, zero = context.operand(0), context.operand(1), context.optional(2)
    dtype = zero.dtype if zero is not None else context.dtype("output_dtype", DType.U8)
    zero = None if zero is None else _spread(context, zero, x)
    return quantized(context, x, _spread(context, scale, x), zero, dtype)


def quantized(context: NodeContext, x: Handle, scale: Handle, zero: Handle | None, dtype: DType) -> Handle:
    """round(x / scale) + zero point, held within the type; halves go to even."""
    b = context.builder
    wide = DType.F64 if DType.F64 in (x.dtype, scale.dtype) else DType.F32
    ratio = b.convert(x, wide) / b.convert(scale, wide)
    if dtype.is_floating:
        if zero is not None:
            ratio = ratio + b.convert(zero, wide)
        return cast(context, ratio, dtype)
    ratio = b.op("round-nearest-even", (ratio,))
    if zero is not None:
        ratio = ratio + b.convert(zero, wide)
    low, high = integer_range(dtype)
    bounded = b.op("maximum", (ratio, filled(low, ratio)))
    bounded = b.op("minimum", (bounded, filled(high, ratio)))
    return b.convert(b.convert(bounded, DType.S32) if dtype.bits < 32 else bounded, dtype)


@rule("DequantizeLinear")
def _dequantize_linear(context: NodeContext) -> Handle:
    b, x, scale = context.builder, context.operand(0), context.operand(1)
    result = context.dtype("output_dtype", scale.dtype)
    wide = DType.F32 if scale.dtype is not DType.F64 else DType.F64
    if x.dtype is DType.S32 or x.dtype.bits > 16:
        whole = x if not context.has(2) else x - _spread(context, context.operand(2), x)
        own = b.convert(whole, wide)
    else:
        own = b.convert(x, wide)
        if context.has(2):
            own = own - b.convert(_spread(context, context.operand(2), x), wide)
    return b.convert(own * b.convert(_spread(context, scale, x), wide), result)


@rule("DynamicQuantizeLinear")
def _dynamic_quantize_linear(context: NodeContext) -> tuple[Handle, Handle, Handle]:
    b, x = context.builder, context.operand(0)
    axes = tuple(range(len(x.dims)))
    zero = context.constant(0, x.dtype)
    largest = b.op("maximum", (max_axes(b, x, axes), zero))
    least = b.op("minimum", (reduce_axes(b, x, "minimum", math.inf, axes, False), zero))
    scale = (largest - least) / context.constant(255, x.dtype)
    point = b.op("round-nearest-even", (zero - least / scale,))
    bounded = b.op("minimum", (b.op("maximum", (point, zero)), context.constant(255, x.dtype)))
    zero_point = b.convert(bounded, DType.U8)
    found = quantized(context, x, b.broadcast(scale, x.dims), b.broadcast(zero_point, x.dims), DType.U8)
    return found, scale, zero_point


def _without_zero(context: NodeContext, position: int, zero_position: int, axis: int) -> Handle:
    """Integers (s32) less their zero point, which may be one for each place of an axis."""
    b, x = context.builder, context.operand(position)
    wide = b.convert(x, DType.S32)
    if not context.has(zero_position):
        return wide
    zero = b.convert(context.operand(zero_position), DType.S32)
    if zero.shape.element_count == 1:
        return wide - b.broadcast(b.reshape(zero, ()), x.dims)
    if len(zero.dims) == 1:
        return wide - b.broadcast(zero, x.dims, [axis % len(x.dims)])
    return wide - context.common(zero, wide)[0]


@rule("MatMulInteger")
def _matmul_integer(context: NodeContext) -> Handle:
    return matmul(context, _without_zero(context, 0, 2, -2), _without_zero(context, 1, 3, -1))


@rule("ConvInteger")
def _conv_integer(context: NodeContext) -> Handle:
    return convolution(context, _without_zero(context, 0, 2, 1), _without_zero(context, 1, 3, 0))


@rule("QLinearMatMul")
def _qlinear_matmul(context: NodeContext) -> Handle:
    product = matmul(context, _without_zero(context, 0, 2, -2), _without_zero(context, 3, 5, -1))
    return _rescaled(context, product, context.operand(1), context.operand(4), 6, -1)


@rule("QLinearConv")
def _qlinear_conv(context: NodeContext) -> Handle:
    found = convolution(context, _without_zero(context, 0, 2, 1), _without_zero(context, 3, 5, 0))
    return _rescaled(context, biased(context, found, 8), context.operand(1), context.operand(4), 6, 1)


def _rescaled(context: NodeContext, found: Handle, first: Handle, second: Handle, position: int, axis: int) -> Handle:
    """Sums of integers in the result's scale; the second operand's scale may be one for each place of an axis."""
    b = context.builder
    scale, zero = context.operand(position), context.operand(position + 1)
    wide = DType.F32

    def at_sizes(values: Handle, along: int) -> Handle:
        flat = b.convert(values, wide)
        if flat.shape.element_count == 1:
            return b.broadcast(b.reshape(flat, ()), found.dims)
        if len(flat.dims) == 1:
            return b.broadcast(flat, found.dims, [along % len(found.dims)])
        return context.common(flat, found)[0]

    exact = b.convert(found, wide) * (at_sizes(first, -2) * at_sizes(second, axis))
    return quantized(context, exact, at_sizes(scale, -2), at_sizes(zero, -2), zero.dtype)
